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
    let rows: Vec<(String, &str)> = vec![
        (deep("(", "1", ")"), "too many syntax levels"),
        (deep("{", "", "}"), "too many syntax levels"),
        (deep("not ", "1", ""), "too many syntax levels"),
        (deep("", "1", "+1"), "too many syntax levels"),
        (deep("", "1", " ..1"), "too many syntax levels"),
        (deep("", "KEYS", "[1]"), "too many syntax levels"),
        ("do ".repeat(5_000), "too many syntax levels"),
        (
            format!("return 1 --{}", "x".repeat(70_000)),
            "script of more than 65536 bytes",
        ),
        ("while true do end".into(), "more than 100000 steps"),
        ("repeat until false".into(), "more than 100000 steps"),
        (
            "for i = 1, 1e300, 0.5 do end".into(),
            "more than 100000 steps",
        ),
        (
            "local function f() return f() end f()".into(),
            "stack overflow",
        ),
        (
            "local s = 'x' while true do s = s .. s end".into(),
            "more than 100000 steps",
        ),
        (
            "local t = {} while true do t[#t + 1] = 1 end".into(),
            "more than",
        ),
        ("local t = {} while true do t = {t} end".into(), "more than"),
        (
            "local t = {} while true do table.insert(t, 1, 1) end".into(),
            "more than",
        ),
        (
            "local t = {} t[1] = t return t".into(),
            "reached lua stack limit",
        ),
        (
            "local t = {1} for i = 1, 60 do t = {t, t} end return t".into(),
            "its reply is too large",
        ),
        (
            "return unpack({}, 1, 1e8)".into(),
            "too many results to unpack",
        ),
        (
            "while true do redis.call('get', KEYS[1]) end".into(),
            "more than",
        ),
        (
            format!("while true do local t = {{{}}} end", "1,".repeat(30_000)),
            "more than",
        ),
        (
            "local t = {} t[1e300] = 1 t[-1] = 1 t[0.5] = 1 return t[0.5] + nil".into(),
            "arithmetic",
        ),
    ];
    for (source, want) in rows {
        let reply = run(&source);
        assert!(
            reply.contains(want),
            "{}: {reply}",
            &source[..source.len().min(60)]
        );
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

const WORDS: [&str; 45] = [
    "if",
    "then",
    "else",
    "elseif",
    "end",
    "return",
    "local",
    "function",
    "for",
    "in",
    "do",
    "while",
    "repeat",
    "until",
    "break",
    "not",
    "and",
    "or",
    "nil",
    "true",
    "x",
    "y",
    "f",
    "KEYS[1]",
    "ARGV[1]",
    "redis.call('get',KEYS[1])",
    "redis.pcall('del',KEYS[1])",
    "ipairs(KEYS)",
    "unpack(KEYS)",
    "=",
    "==",
    "~=",
    "<",
    "..",
    "+",
    "-",
    "#",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    "1",
];

proptest! {
    #[test]
    fn any_bytes_compile_or_are_refused(source in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Program::compile(&source);
    }

    #[test]
    fn any_words_compile_and_run_or_are_refused(
        words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40),
    ) {
        let source = words.join(" ");
        if let Ok(program) = Program::compile(source.as_bytes()) {
            let mut store = Store::with(Some("t"), None);
            let first = program.run(&[b"k"], &[b"t", b"5"], false, &mut store);
            let mut store = Store::with(Some("t"), None);
            prop_assert_eq!(first, program.run(&[b"k"], &[b"t", b"5"], false, &mut store));
        }
    }
}
