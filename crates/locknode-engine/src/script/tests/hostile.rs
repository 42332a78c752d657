//! Scripts that mean harm.

use proptest::prelude::*;

use super::*;

#[test]
fn hostile_scripts_end_with_an_error() {
    let deep = |open: &str, inner: &str, close: &str| {
        format!(
            "return {}{inner}{}",
            open.repeat(5_000),
            close.repeat(5_000)
        )
    };
    let table = rows(
        "
        while true do end => more than 2000000 instructions
        repeat until false => more than 2000000 instructions
        for i = 1, 1e300, 0.5 do end => more than 2000000 instructions
        local function f() return 1 + f() end f() => stack overflow
        local s = 'x' while true do s = s .. s end => more than 4194304 bytes
        local t = {} while true do t[#t + 1] = 1 end => more than
        local t = {} while true do t = {t} end => more than
        local t = {} while true do table.insert(t, 1, 1) end => more than
        local t = {} t[1] = t return t => reached lua stack limit
        local t = {1} for i = 1, 60 do t = {t, t} end return t => its reply is too large
        # What the instructions of Lua do not show: time in its library.
        return (('a'):rep(25)..'b'):find(('a*'):rep(25)..'c') => more than 2000000 instructions
        return ('x'):rep(1e9) => more than 4194304 bytes
        return #(''):rep(1e9) => 0
        table.insert({}, -2147483648, 1) => position out of bounds
        local t = {} for i = 1, 1000 do t[i] = i % 7 end table.sort(t, function() return true end) return #t => 1000
        # A limit cannot be caught.
        while true do pcall(function() while true do end end) end => more than 2000000 instructions
        while true do xpcall(function() while true do end end, function() while true do end end) end => more than 2000000 instructions
        local s = 'x' while true do pcall(function() s = s .. s end) end => more than 4194304 bytes
        local t = setmetatable({}, {__index = function() while true do end end}) while true do pcall(function() return t.x end) end => more than 2000000 instructions
        local t = {} while true do pcall(function() t[#t + 1] = redis.call('mget', KEYS[1], KEYS[1], KEYS[1]) end) end => stopped
        local function f() return pcall(f) end return f() => 1
        # Nothing of one script is left for the next.
        table.insert(redis, 1) => readonly table
        redis.call = nil => readonly table
        string.rep = nil => readonly table
        KEYS = nil => readonly table
        setmetatable(_G, {}) => readonly table
        return getmetatable('') => nil
        return ('').x => nil
        return io => nonexistent global variable 'io'
        return os => nonexistent global variable 'os'
        return loadstring => nonexistent global
        return require => nonexistent global
        return coroutine => nonexistent global
        return collectgarbage => nonexistent global
        return newproxy => nonexistent global
        return unpack({}, 1, 1e8) => too many results to unpack
        while true do redis.call('get', KEYS[1]) end => more than
        local t = {} t[1e300] = 1 t[-1] = 1 t[0.5] = 1 return t[0.5] + nil => arithmetic
        ",
    );
    let made = [
        (deep("(", "1", ")"), "too many syntax levels"),
        (deep("{", "", "}"), "too many syntax levels"),
        (deep("not ", "1", ""), "too many syntax levels"),
        (deep("", "1", " ..1"), "too many syntax levels"),
        ("do ".repeat(5_000), "too many syntax levels"),
        (
            format!("return 1 --{}", "x".repeat(70_000)),
            "a script of more than 65536 bytes",
        ),
        (
            format!("while true do local t = {{{}}} end", "1,".repeat(30_000)),
            "more than",
        ),
    ];
    for (source, want) in table.into_iter().chain(made) {
        let reply = run(&source);
        assert!(reply.contains(want), "{source:.60}: {reply:.200}");
    }
}

#[test]
fn the_longest_flat_scripts_compile_and_run() {
    let rows = [
        format!(
            "local a = 1 {} return a",
            "if a == 2 then return 0 end ".repeat(2_000)
        ),
        format!(
            "if KEYS[1] == 1 then {} end return 1",
            "elseif KEYS[1] == 2 then return 0 ".repeat(1_800)
        ),
        format!(
            "if KEYS[1] == 1 then {} end return 1",
            "elseif KEYS[1] == 2 then ".repeat(2_000)
        ),
        format!("return ({})", ["1"; 190].join("+")),
    ];
    for source in rows {
        assert!(!run(&source).starts_with(['-', '!']), "{}", run(&source));
    }
}

#[test]
fn deep_nesting_within_the_limits_does_not_overflow_the_stack() {
    let nest = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let rows = [
        format!("return {}", nest("(", "1", ")", 190)),
        format!("return {}", nest("{", "", "}", 190)),
        nest("if true then ", "return 1", " end", 190),
        format!(
            "local function f() {} end f()",
            nest("do ", "f()", " end", 180)
        ),
        format!(
            "local function f(x) return {} end return f(1)",
            nest("{", "f(1)", "}", 150)
        ),
    ];
    for source in rows {
        let reply = run(&source);
        assert!(!reply.is_empty(), "{source}");
    }
}

const WORDS: &str = "if then else elseif end return local function for in do while repeat until \
    break not and or nil true x y f KEYS[1] ARGV[1] redis.call('get',KEYS[1]) \
    redis.pcall('del',KEYS[1]) ipairs(KEYS) unpack(KEYS) = == ~= < .. + - # ( ) { } [ ] , 1";

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(WORDS.split_ascii_whitespace().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn any_bytes_compile_or_are_refused(source in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Program::compile(&source, &MACHINE);
    }

    #[test]
    fn any_words_compile_and_run_or_are_refused(
        words in prop::collection::vec(word(), 0..40),
    ) {
        let source = words.join(" ");
        if let Ok(program) = Program::compile(source.as_bytes(), &MACHINE) {
            let mut store = Store::with(Some("t"), None);
            let first = program.run(&MACHINE, &[b"k"], &[b"t", b"5"], &mut store);
            let mut store = Store::with(Some("t"), None);
            prop_assert_eq!(first, program.run(&MACHINE, &[b"k"], &[b"t", b"5"], &mut store));
        }
    }
}
