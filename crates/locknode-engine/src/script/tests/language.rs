//! The language and its errors, as Redis has them. Expected replies were taken from Redis 8.0.

use super::*;

#[test]
fn values_become_replies_by_the_rules_of_redis() {
    check(
        r"
        return => nil
        return false => nil
        return true => 1
        return 3.99 => 3
        return -1.5 => -1
        return 1e30 => -9223372036854775808
        return 'x' => 'x'
        return 1, 2 => 1
        return {1,2,nil,3} => [1 2]
        return {1,{2,'x',{ok='k'}},false,3} => [1 [2 'x' +k] nil 3]
        return {nil,1} => []
        return {ok='a\r\nb'} => +a  b
        return {err='x y'} => -x y
        return {ok=5} => []
        return redis.error_reply('ERROR') => -ERR ERROR
        return redis.error_reply('-MY ERROR') => -MY ERROR
        return redis.error_reply(5) => -ERR wrong number or type of arguments
        return redis.status_reply('OK') => +OK
        return redis.call('get','none') => nil
        return redis.call('get','none') == false => 1
        return redis.call('set','x','y') => +OK
        return redis.call('set','x','y').ok => 'OK'
        return redis.call('set','x','y','nx') and 1 or 0 => 1
        return redis.pcall('incr','k') => -ERR value is not an integer or out of range
        return redis.pcall('incr','k').err => 'ERR value is not an integer or out of range'
        return KEYS => ['k' 'k2']
        return {#KEYS, #ARGV, ARGV[2], KEYS[3] or 'none'} => [2 2 '5' 'none']
        ",
    );
}

#[test]
fn the_language_means_what_lua_says() {
    check(
        r"
        return '10' + 5 => 15
        return '0x10' * 1 => 16
        return 10 .. 5 => '105'
        return 1.5 .. '' => '1.5'
        return '10' .. 5 + 1 => '106'
        return 2 ^ 3 ^ 2 => 512
        return -2 ^ 2 => -4
        return -5 % 3 => 1
        return tostring(5 % -3) => '-1'
        return tostring(0/0) => '-nan'
        return tostring(-0) => '-0'
        return 1 == '1' => nil
        return nil == false => nil
        return 'Z' < 'a' => 1
        return 3 and nil or 5 => 5
        return not nil => 1
        return tonumber('  12  ') => 12
        return tonumber('12a') => nil
        return tonumber('5', 10) => 5
        return type({}) .. type(nil) .. type(type) => 'tablenilfunction'
        return {unpack({1,2}),unpack({3,4})} => [1 3 4]
        return {(unpack({1,2}))} => [1]
        return {unpack({1,2,3},2,3)} => [2 3]
        local t = {} table.insert(t,5) table.insert(t,1,6) return t => [6 5]
        local t = {1,2,3} t[3] = nil return {#t, table.getn(t)} => [2 2]
        local t = {x=1} t.y, t['z'] = 2, 3 return {t.x, t.y, t.z} => [1 2 3]
        local a, b = 1, 2 a, b = b, a return {a, b} => [2 1]
        local a = 1 do local a = 2 end return a => 1
        local s = 0 for i = 3, 1, -1 do s = s * 10 + i end return s => 321
        for i = 1, 2 do local x if i == 2 then return x end x = 5 end => nil
        local n = 0 while true do n = n + 1 if n == 3 then break end end return n => 3
        local n = 0 repeat local m = n n = n + 1 until m == 2 return n => 3
        local t = {} for i, k in ipairs(KEYS) do t[i] = k .. i end return t => ['k1' 'k22']
        for i, v in pairs({'a', false}) do if not v then return i end end => 2
        local function f(a, b) return b, a end local x, y = f(1, 2) return {x, y} => [2 1]
        local f = function(a) return a end return f(7) => 7
        local n = 1 local function f() n = n + 1 end f() f() return n => 3
        local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(9) => 9
        local call = redis.call return call('get', KEYS[1]) => 'v'
        return math.max(1, '5', 3) + math.min(4, 2) + math.floor(1.9) + math.ceil(0.1) => 9
        return string.sub('hello', 2, -2) => 'ell'
        return string.len(123) + #'abc' => 6
        return redis.sha1hex('') => 'da39a3ee5e6b4b0d3255bfef95601890afd80709'
        return redis.replicate_commands() => 1
        return redis.log(redis.LOG_WARNING, 'x') => nil
        return server.call('get', KEYS[1]) => 'v'
        KEYS[1] = 'x' return KEYS[1] => 'x'
        local ARGV = {'b'} return ARGV[1] => 'b'
        #!lua flags=no-writes<LF>return redis.call('get', KEYS[1]) => 'v'
        ",
    );
}

#[test]
fn run_time_errors_have_the_text_and_line_of_redis() {
    check(
        r"
        <LF>return redis.call('incr','k') => !ERR value is not an integer or out of range @2
        redis.call(<LF>'incr',<LF>'k') => !ERR value is not an integer or out of range @1
        return redis.call('get') => !ERR Wrong number of args calling Redis command from script @1
        return redis.call() => !ERR Please specify at least one argument for this redis lib call @1
        return redis.call('get', nil) => !ERR Lua redis lib command arguments must be strings or integers @1
        return redis.call(KEYS[1]) => !ERR Unknown Redis command called from script @1
        x = 5 => !ERR user_script:1: Attempt to modify a readonly table @1
        return x => !ERR user_script:1: Script attempted to access nonexistent global variable 'x' @1
        return nil < 1 => !ERR user_script:1: attempt to compare nil with number @1
        return {} < {} => !ERR user_script:1: attempt to compare two table values @1
        return 1 > '2' => !ERR user_script:1: attempt to compare string with number @1
        local a return a + 1 => !ERR user_script:1: attempt to perform arithmetic on local 'a' (a nil value) @1
        local t = {} return t[1] + 1 => !ERR user_script:1: attempt to perform arithmetic on field '?' (a nil value) @1
        return 1 +<LF>nil => !ERR user_script:2: attempt to perform arithmetic on a nil value @2
        return 'x' .. nil => !ERR user_script:1: attempt to concatenate a nil value @1
        local t = {} return t.a.b => !ERR user_script:1: attempt to index field 'a' (a nil value) @1
        local t t.x = 1 => !ERR user_script:1: attempt to index local 't' (a nil value) @1
        return redis.call('get','none').ok => !ERR user_script:1: attempt to index a boolean value @1
        local a local function f() return a.x end return f() => !ERR user_script:1: attempt to index upvalue 'a' (a nil value) @1
        return KEYS + 1 => !ERR user_script:1: attempt to perform arithmetic on global 'KEYS' (a table value) @1
        return #5 => !ERR user_script:1: attempt to get length of a number value @1
        local f = 5 f() => !ERR user_script:1: attempt to call local 'f' (a number value) @1
        local t = {} t[nil] = 1 => !ERR user_script:1: table index is nil @1
        for i = 'a', 3 do end => !ERR user_script:1: 'for' initial value must be a number @1
        for _, k in ipairs(nil) do end => !ERR user_script:1: bad argument #1 to 'ipairs' (table expected, got nil) @1
        return math.floor('x') => !ERR user_script:1: bad argument #1 to 'floor' (number expected, got string) @1
        return tonumber() => !ERR user_script:1: bad argument #1 to 'tonumber' (value expected) @1
        ",
    );
}

#[test]
fn text_that_is_not_lua_gets_the_error_of_lua() {
    check(
        r"
        return 1 return 2 => -ERR Error compiling script (new function): user_script:1: '<eof>' expected near 'return'
        if => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'
        if 1 then<LF> => -ERR Error compiling script (new function): user_script:2: 'end' expected (to close 'if' at line 1) near '<eof>'
        return redis.call('get','a' => -ERR Error compiling script (new function): user_script:1: ')' expected near '<eof>'
        x = = 5 => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '='
        return @ => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '@'
        break => -ERR Error compiling script (new function): user_script:1: no loop to break near '<eof>'
        f<LF>() => -ERR Error compiling script (new function): user_script:2: ambiguous syntax (function call x new statement) near '('
        return 5 // 2 => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '/'
        ",
    );
    let binary =
        "-ERR Error compiling script (new function): attempt to load a binary chunk (mode is 't')";
    assert_eq!(run("\u{1b}Lua"), binary);
}

#[test]
fn the_library_is_that_of_redis() {
    check(
        r"
        return redis.pcall('nosuch').err => 'ERR Unknown Redis command called from script'
        redis.pcall('nosuch') return 1 => 1
        return redis.call(ARGV[1], 'x') => !ERR Unknown Redis command called from script @1
        local ok, e = pcall(redis.call, 'nosuch') return e => 'ERR Unknown Redis command called from script'
        local ok, e = pcall(redis.call, 'nosuch') error(e) => !ERR user_script:1: ERR Unknown Redis command called from script @1
        return pcall(redis.call, 'get', 'k') => 1
        local ok, e = pcall(error, 'x') return e => 'x'
        local ok, e = pcall(function() error('x') end) return e => 'user_script:1: x'
        local ok, e = xpcall(function() error('x', 0) end, function(e) return e .. 'y' end) return e => 'xy'
        <LF>error('x') => !ERR user_script:2: x @2
        error({err='MY own'}) => !MY own @1
        error({}) => !ERR unknown error @1
        assert(false, 'why') => !ERR user_script:1: why @1
        return redis.sha1hex({}) => 'da39a3ee5e6b4b0d3255bfef95601890afd80709'
        return redis.sha1hex('\255') => '85e53271e14006f0265921d02d4d736cdc580b0b'
        return redis.setresp(3) => nil
        return redis.breakpoint() => nil
        return redis.sha1hex() => !ERR wrong number of arguments @1
        return ('a'):find('%') => !ERR user_script:1: malformed pattern (ends with '%') @1
        return {pcall(string.find, 'a', '%')} => [nil 'malformed pattern (ends with '%')']
        return string.format('%d:%s', 3, 'x') => '3:x'
        return {('key=val'):match('(%w+)=(%w+)')} => ['key' 'val']
        return {('hello'):find('l')} => [3 3]
        return {('hello'):find('.', 2, true) or 'none'} => ['none']
        return {('a.b'):find('.', 1, true)} => [2 2]
        return {('hello'):find('', 10) or 'none'} => [6]
        return {('hello'):find('xyz', 1) or 'none', ('hello'):find('')} => ['none' 1 0]
        local t = {} for w in ('one two'):gmatch('%a+') do t[#t + 1] = w end return t => ['one' 'two']
        local n = 0 for _ in ('abc'):gmatch('') do n = n + 1 end return n => 4
        return {('hello world'):gsub('o', '0')} => ['hell0 w0rld' 2]
        return {('hello'):gsub('', '-')} => ['-h-e-l-l-o-' 6]
        return {('abc'):gsub('%w', '%0%0', 2)} => ['aabbc' 2]
        return {('a b'):gsub('(%w) (%w)', '%2 %1')} => ['b a' 1]
        return (('$name'):gsub('%$(%w+)', {name = 'x'})) => 'x'
        return (('abc'):gsub('%w', function(c) if c == 'b' then return 'B' end end)) => 'aBc'
        return {('aaa'):gsub('^a', 'b')} => ['baa' 1]
        local t = {3, 1, 2} table.sort(t) return t => [1 2 3]
        local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t => [3 2 1]
        return table.concat({1, 2, 'x'}, ',') => '1,2,x'
        local t = {1, 2, 3} table.insert(t, 2, 9) table.remove(t, 1) return t => [9 2 3]
        return {tonumber('10', 2), tonumber('zz', 36)} => [2 1295]
        return select('#', 1, nil, nil) => 3
        local t = setmetatable({}, {__index = function(_, k) return k .. '!' end}) return t.x => 'x!'
        return #KEYS + #ARGV => 4
        return _G.KEYS[1] => 'k'
        for k in next, {a = 1} do return k end => 'a'
        local function f(...) return select('#', ...) end return f(1, 2) => 2
        ",
    );
}

#[test]
fn a_script_draws_random_numbers_where_the_last_one_stopped() {
    let machine = Machine::new(None, None);
    let rows = [
        ("return {math.random(1000), math.random(1000)}", "[171 750]"),
        ("math.randomseed(10) return math.random(1000)", "879"),
        ("return {math.random(1000), math.random(1000)}", "[796 481]"),
    ];
    for (source, want) in rows {
        let program = Program::compile(source.as_bytes(), &machine).unwrap();
        let value = program.run(&machine, &[], &[], &mut Store::default());
        assert_eq!(show(&value.unwrap()), want, "{source}");
    }
}
