//! Whole scripts: the language, its errors, the behaviours of the known scripts, and hostile input.
//!
//! Expected replies were taken from a Redis 8.0 server.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A keyspace with a clock, enough for what lock scripts do.
#[derive(Debug, Default)]
struct Store {
    now_ms: i64,
    keys: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>,
}

const WRONG_ARITY: &[u8] = b"-ERR Wrong number of args calling Redis command from script\r\n";
const NOT_INTEGER: &[u8] = b"-ERR value is not an integer or out of range\r\n";

impl Store {
    fn with(value: Option<&str>, ttl_ms: Option<i64>) -> Self {
        let mut store = Self {
            now_ms: 1_000_000,
            ..Self::default()
        };
        if let Some(value) = value {
            let deadline = ttl_ms.map(|ttl| store.now_ms + ttl);
            store
                .keys
                .insert(b"k".to_vec(), (value.as_bytes().to_vec(), deadline));
        }
        store
    }

    fn show(&self) -> String {
        let show = |(key, (value, deadline)): (&Vec<u8>, &(Vec<u8>, Option<i64>))| {
            let ttl = deadline.map_or(String::new(), |deadline| {
                format!(" {}", deadline - self.now_ms)
            });
            format!(
                "{}={}{ttl}",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(value)
            )
        };
        self.keys.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    fn set(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        let (mut nx, mut xx, mut deadline) = (false, false, None);
        let mut options = args[3..].iter();
        while let Some(option) = options.next() {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => nx = true,
                b"xx" => xx = true,
                unit @ (b"px" | b"ex" | b"pxat") => {
                    let Some(time) = options.next().and_then(|text| integer(text)) else {
                        return reply.extend(NOT_INTEGER);
                    };
                    if time <= 0 {
                        return reply.extend(b"-ERR invalid expire time in 'set' command\r\n");
                    }
                    deadline = Some(match unit {
                        b"px" => self.now_ms + time,
                        b"ex" => self.now_ms + time * 1000,
                        _ => time,
                    });
                }
                _ => return reply.extend(b"-ERR syntax error\r\n"),
            }
        }
        let present = self.keys.contains_key(args[1]);
        if (nx && present) || (xx && !present) {
            return reply.extend(b"$-1\r\n");
        }
        self.keys
            .insert(args[1].to_vec(), (args[2].to_vec(), deadline));
        reply.extend(b"+OK\r\n");
    }

    fn expire(&mut self, key: &[u8], time: Option<&[u8]>, scale: i64, base: i64) -> Vec<u8> {
        let Some(time) = time.and_then(integer) else {
            return NOT_INTEGER.to_vec();
        };
        let deadline = base + time * scale;
        let Some(entry) = self.keys.get_mut(key) else {
            return b":0\r\n".to_vec();
        };
        entry.1 = Some(deadline);
        if deadline <= self.now_ms {
            self.keys.remove(key);
        }
        b":1\r\n".to_vec()
    }

    fn bulk(&self, key: &[u8]) -> Vec<u8> {
        self.keys
            .get(key)
            .map_or(b"$-1\r\n".to_vec(), |(value, _)| bulk(value))
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

impl Caller for Store {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        let now = self.now_ms;
        self.keys
            .retain(|_, (_, deadline)| deadline.is_none_or(|deadline| deadline > now));
        let name = args[0].to_ascii_lowercase();
        let number = |value: i64| format!(":{value}\r\n").into_bytes();
        let answer = match (name.as_slice(), &args[1..]) {
            (b"set", [_, _, ..]) => return self.set(args, reply),
            (b"get", [key]) => self.bulk(key),
            (b"mget", [_, ..]) => {
                let values = args[1..].iter().flat_map(|key| self.bulk(key));
                format!("*{}\r\n", args.len() - 1)
                    .into_bytes()
                    .into_iter()
                    .chain(values)
                    .collect()
            }
            (b"del" | b"unlink", [_, ..]) => number(
                args[1..]
                    .iter()
                    .map(|&key| i64::from(self.keys.remove(key).is_some()))
                    .sum(),
            ),
            (b"exists", [key]) => number(i64::from(self.keys.contains_key(*key))),
            (b"type", [key]) if self.keys.contains_key(*key) => b"+string\r\n".to_vec(),
            (b"type", [_]) => b"+none\r\n".to_vec(),
            (b"pexpire", [key, time, ..]) => self.expire(key, Some(time), 1, now),
            (b"expire", [key, time]) => self.expire(key, Some(time), 1000, now),
            (b"pexpireat", [key, time]) => self.expire(key, Some(time), 1, 0),
            (b"persist", [key]) => {
                let cleared = self.keys.get_mut(*key).and_then(|entry| entry.1.take());
                number(i64::from(cleared.is_some()))
            }
            (b"ttl" | b"pttl", [key]) => number(match self.keys.get(*key) {
                None => -2,
                Some((_, None)) => -1,
                Some((_, Some(deadline))) if name == b"ttl" => (deadline - now + 500) / 1000,
                Some((_, Some(deadline))) => deadline - now,
            }),
            (b"setnx", [key, value]) => {
                return {
                    let absent = !self.keys.contains_key(*key);
                    if absent {
                        self.keys.insert(key.to_vec(), (value.to_vec(), None));
                    }
                    reply.extend(number(i64::from(absent)));
                };
            }
            (b"setex", [key, time, value]) => {
                return self.set(&[b"set", key, value, b"ex", time], reply);
            }
            (b"mset" | b"msetnx", [_, _, ..]) => {
                let pairs: Vec<_> = args[1..].chunks(2).map(|pair| (pair[0], pair[1])).collect();
                let taken = pairs.iter().any(|(key, _)| self.keys.contains_key(*key));
                if name == b"msetnx" && taken {
                    return reply.extend(b":0\r\n");
                }
                for (key, value) in pairs {
                    self.keys.insert(key.to_vec(), (value.to_vec(), None));
                }
                if name == b"mset" {
                    b"+OK\r\n".to_vec()
                } else {
                    number(1)
                }
            }
            (b"getrange", [key, _, last]) => {
                let value = self.keys.get(*key).map_or(&b""[..], |(value, _)| value);
                let end = integer(last).and_then(|last| usize::try_from(last + 1).ok());
                bulk(&value[..end.unwrap_or(0).min(value.len())])
            }
            (b"incr", [_]) => NOT_INTEGER.to_vec(),
            (b"time", []) => b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n".to_vec(),
            _ => WRONG_ARITY.to_vec(),
        };
        reply.extend(answer);
    }
}

fn show(value: &Value) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Bulk(bytes) => format!("'{}'", text(bytes)),
        Value::Status(bytes) => format!("+{}", text(bytes)),
        Value::Error(bytes) => format!("-{}", text(bytes)),
        Value::Array(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(" ")),
    }
}

fn run_on(store: &mut Store, source: &[u8], keys: &[&str], args: &[&str]) -> String {
    let program = match Program::compile(source) {
        Ok(program) => program,
        Err(error) => return format!("-{}", String::from_utf8_lossy(&error.into_reply())),
    };
    let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
    let args: Vec<_> = args.iter().map(|arg| arg.as_bytes()).collect();
    match program.run(&keys, &args, false, store) {
        Ok(value) => show(&value),
        Err(error) => format!(
            "!{} @{}",
            String::from_utf8_lossy(&error.message),
            error.line
        ),
    }
}

fn run(source: &str) -> String {
    run_on(
        &mut Store::with(Some("v"), None),
        source.as_bytes(),
        &["k", "k2"],
        &["a", "5"],
    )
}

fn check(rows: &[(&str, &str)]) {
    for (source, want) in rows {
        assert_eq!(run(source), *want, "{source}");
    }
}

#[test]
fn values_become_replies_by_the_rules_of_redis() {
    check(&[
        ("return", "nil"),
        ("return false", "nil"),
        ("return true", "1"),
        ("return 3.99", "3"),
        ("return -1.5", "-1"),
        ("return 1e30", "-9223372036854775808"),
        ("return 'x'", "'x'"),
        ("return 1, 2", "1"),
        ("return {1,2,nil,3}", "[1 2]"),
        (
            "return {1,{2,'x',{ok='k'}},false,3}",
            "[1 [2 'x' +k] nil 3]",
        ),
        ("return {nil,1}", "[]"),
        ("return {ok='a\\r\\nb'}", "+a  b"),
        ("return {err='x y'}", "-x y"),
        ("return {ok=5}", "[]"),
        ("return redis.error_reply('ERROR')", "-ERR ERROR"),
        ("return redis.error_reply('-MY ERROR')", "-MY ERROR"),
        (
            "return redis.error_reply(5)",
            "-ERR wrong number or type of arguments",
        ),
        ("return redis.status_reply('OK')", "+OK"),
        ("return redis.call('get','none')", "nil"),
        ("return redis.call('get','none') == false", "1"),
        ("return redis.call('set','x','y')", "+OK"),
        ("return redis.call('set','x','y').ok", "'OK'"),
        ("return redis.call('set','x','y','nx') and 1 or 0", "1"),
        (
            "return redis.pcall('incr','k')",
            "-ERR value is not an integer or out of range",
        ),
        (
            "return redis.pcall('incr','k').err",
            "'ERR value is not an integer or out of range'",
        ),
        ("return KEYS", "['k' 'k2']"),
        (
            "return {#KEYS, #ARGV, ARGV[2], KEYS[3] or 'none'}",
            "[2 2 '5' 'none']",
        ),
    ]);
}

#[test]
fn the_language_means_what_lua_says() {
    check(&[
        ("return '10' + 5", "15"),
        ("return '0x10' * 1", "16"),
        ("return 10 .. 5", "'105'"),
        ("return 1.5 .. ''", "'1.5'"),
        ("return '10' .. 5 + 1", "'106'"),
        ("return 2 ^ 3 ^ 2", "512"),
        ("return -2 ^ 2", "-4"),
        ("return -5 % 3", "1"),
        ("return tostring(5 % -3)", "'-1'"),
        ("return tostring(0/0)", "'-nan'"),
        ("return tostring(-0)", "'-0'"),
        ("return 1 == '1'", "nil"),
        ("return nil == false", "nil"),
        ("return 'Z' < 'a'", "1"),
        ("return 3 and nil or 5", "5"),
        ("return not nil", "1"),
        ("return tonumber('  12  ')", "12"),
        ("return tonumber('12a')", "nil"),
        ("return tonumber('5', 10)", "5"),
        (
            "return type({}) .. type(nil) .. type(type)",
            "'tablenilfunction'",
        ),
        ("return {unpack({1,2}),unpack({3,4})}", "[1 3 4]"),
        ("return {(unpack({1,2}))}", "[1]"),
        ("return {unpack({1,2,3},2,3)}", "[2 3]"),
        (
            "local t = {} table.insert(t,5) table.insert(t,1,6) return t",
            "[6 5]",
        ),
        (
            "local t = {1,2,3} t[3] = nil return {#t, table.getn(t)}",
            "[2 2]",
        ),
        (
            "local t = {x=1} t.y, t['z'] = 2, 3 return {t.x, t.y, t.z}",
            "[1 2 3]",
        ),
        ("local a, b = 1, 2 a, b = b, a return {a, b}", "[2 1]"),
        ("local a = 1 do local a = 2 end return a", "1"),
        (
            "local s = 0 for i = 3, 1, -1 do s = s * 10 + i end return s",
            "321",
        ),
        (
            "for i = 1, 2 do local x if i == 2 then return x end x = 5 end",
            "nil",
        ),
        (
            "local n = 0 while true do n = n + 1 if n == 3 then break end end return n",
            "3",
        ),
        (
            "local n = 0 repeat local m = n n = n + 1 until m == 2 return n",
            "3",
        ),
        (
            "local t = {} for i, k in ipairs(KEYS) do t[i] = k .. i end return t",
            "['k1' 'k22']",
        ),
        (
            "for i, v in pairs({'a', false}) do if not v then return i end end",
            "2",
        ),
        (
            "local function f(a, b) return b, a end local x, y = f(1, 2) return {x, y}",
            "[2 1]",
        ),
        ("local f = function(a) return a end return f(7)", "7"),
        (
            "local n = 1 local function f() n = n + 1 end f() f() return n",
            "3",
        ),
        (
            "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(9)",
            "9",
        ),
        ("local call = redis.call return call('get', KEYS[1])", "'v'"),
        (
            "return math.max(1, '5', 3) + math.min(4, 2) + math.floor(1.9) + math.ceil(0.1)",
            "9",
        ),
        ("return string.sub('hello', 2, -2)", "'ell'"),
        ("return string.len(123) + #'abc'", "6"),
        (
            "return redis.sha1hex('')",
            "'da39a3ee5e6b4b0d3255bfef95601890afd80709'",
        ),
        ("return redis.replicate_commands()", "1"),
        ("return redis.log(redis.LOG_WARNING, 'x')", "nil"),
        ("return server.call('get', KEYS[1])", "'v'"),
        ("KEYS[1] = 'x' return KEYS[1]", "'x'"),
        ("local ARGV = {'b'} return ARGV[1]", "'b'"),
        (
            "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])",
            "'v'",
        ),
    ]);
}

#[test]
fn run_time_errors_have_the_text_and_line_of_redis() {
    check(&[
        (
            "\nreturn redis.call('incr','k')",
            "!ERR value is not an integer or out of range @2",
        ),
        (
            "redis.call(\n'incr',\n'k')",
            "!ERR value is not an integer or out of range @1",
        ),
        (
            "return redis.call('get')",
            "!ERR Wrong number of args calling Redis command from script @1",
        ),
        (
            "return redis.call()",
            "!ERR Please specify at least one argument for this redis lib call @1",
        ),
        (
            "return redis.call('get', nil)",
            "!ERR Lua redis lib command arguments must be strings or integers @1",
        ),
        (
            "return redis.call(KEYS[1])",
            "!ERR Unknown Redis command called from script @1",
        ),
        (
            "x = 5",
            "!ERR user_script:1: Attempt to modify a readonly table @1",
        ),
        (
            "return x",
            "!ERR user_script:1: Script attempted to access nonexistent global variable 'x' @1",
        ),
        (
            "return nil < 1",
            "!ERR user_script:1: attempt to compare nil with number @1",
        ),
        (
            "return {} < {}",
            "!ERR user_script:1: attempt to compare two table values @1",
        ),
        (
            "return 1 > '2'",
            "!ERR user_script:1: attempt to compare string with number @1",
        ),
        (
            "local a return a + 1",
            "!ERR user_script:1: attempt to perform arithmetic on local 'a' (a nil value) @1",
        ),
        (
            "local t = {} return t[1] + 1",
            "!ERR user_script:1: attempt to perform arithmetic on field '?' (a nil value) @1",
        ),
        (
            "return 1 +\nnil",
            "!ERR user_script:2: attempt to perform arithmetic on a nil value @2",
        ),
        (
            "return 'x' .. nil",
            "!ERR user_script:1: attempt to concatenate a nil value @1",
        ),
        (
            "local t = {} return t.a.b",
            "!ERR user_script:1: attempt to index field 'a' (a nil value) @1",
        ),
        (
            "local t t.x = 1",
            "!ERR user_script:1: attempt to index local 't' (a nil value) @1",
        ),
        (
            "return redis.call('get','none').ok",
            "!ERR user_script:1: attempt to index a boolean value @1",
        ),
        (
            "local a local function f() return a.x end return f()",
            "!ERR user_script:1: attempt to index upvalue 'a' (a nil value) @1",
        ),
        (
            "return KEYS + 1",
            "!ERR user_script:1: attempt to perform arithmetic on global 'KEYS' (a table value) @1",
        ),
        (
            "return #5",
            "!ERR user_script:1: attempt to get length of a number value @1",
        ),
        (
            "local f = 5 f()",
            "!ERR user_script:1: attempt to call local 'f' (a number value) @1",
        ),
        (
            "local t = {} t[nil] = 1",
            "!ERR user_script:1: table index is nil @1",
        ),
        (
            "for i = 'a', 3 do end",
            "!ERR user_script:1: 'for' initial value must be a number @1",
        ),
        (
            "for _, k in ipairs(nil) do end",
            "!ERR user_script:1: bad argument #1 to 'ipairs' (table expected, got nil) @1",
        ),
        (
            "return math.floor('x')",
            "!ERR user_script:1: bad argument #1 to 'floor' (number expected, got string) @1",
        ),
        (
            "return tonumber()",
            "!ERR user_script:1: bad argument #1 to 'tonumber' (value expected) @1",
        ),
        (
            "#!lua flags=no-writes\nreturn redis.call('del','k')",
            "!ERR Write commands are not allowed from read-only scripts. @2",
        ),
    ]);
}

#[test]
fn text_that_is_not_lua_gets_the_error_of_lua() {
    check(&[
        (
            "return 1 return 2",
            "-ERR Error compiling script (new function): user_script:1: '<eof>' expected near 'return'",
        ),
        (
            "if",
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'",
        ),
        (
            "if 1 then\n",
            "-ERR Error compiling script (new function): user_script:2: 'end' expected (to close 'if' at line 1) near '<eof>'",
        ),
        (
            "return redis.call('get','a'",
            "-ERR Error compiling script (new function): user_script:1: ')' expected near '<eof>'",
        ),
        (
            "x = = 5",
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '='",
        ),
        (
            "return @",
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '@'",
        ),
        (
            "\u{1b}Lua",
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near 'char(27)'",
        ),
        (
            "break",
            "-ERR Error compiling script (new function): user_script:1: no loop to break near '<eof>'",
        ),
        (
            "f\n()",
            "-ERR Error compiling script (new function): user_script:2: ambiguous syntax (function call x new statement) near '('",
        ),
        (
            "return 5 // 2",
            "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '/'",
        ),
    ]);
}

#[test]
fn what_is_not_native_is_named_with_its_line() {
    let rows = [
        (
            "\nreturn redis.call('zadd', KEYS[1], 1, 'x')",
            "redis.call('zadd') at line 2",
        ),
        ("return string.format('%d', 3)", "string.format at line 1"),
        ("return cjson.decode('1')", "cjson.decode at line 1"),
        ("return ('x'):len()", "method call at line 1"),
        ("function f() end", "global function at line 1"),
        ("return pcall(redis.call, 'get', 'k')", "pcall at line 1"),
        (
            "for k in next, KEYS do end",
            "for over something other than ipairs(...) or pairs(...) at line 1",
        ),
        ("return tonumber('10', 2)", "tonumber with a base at line 1"),
        ("return redis", "redis as a value at line 1"),
        ("return ...", "'...' at line 1"),
    ];
    for (source, want) in rows {
        let error = Program::compile(source.as_bytes()).unwrap_err();
        let want = format!("UNSUPPORTED This node runs lock scripts only, it has no {want}");
        assert_eq!(error.into_reply(), want.as_bytes());
    }
}

#[test]
fn a_read_only_run_refuses_to_write_and_changes_nothing() {
    let program = Program::compile(b"return redis.call('del', KEYS[1])").unwrap();
    let mut store = Store::with(Some("v"), None);
    let error = program.run(&[b"k"], &[], true, &mut store).unwrap_err();
    assert_eq!(
        error.message,
        b"ERR Write commands are not allowed from read-only scripts."
    );
    assert_eq!(store.show(), "k=v");
}

/// Runs a behaviour by name on a key with a value and TTL, and shows the reply and the keys after it.
fn behave(name: &str, value: Option<&str>, ttl: Option<i64>, args: &[&str]) -> String {
    let known = behaviours::ALL
        .iter()
        .find(|known| known.name() == name)
        .unwrap();
    let mut store = Store::with(value, ttl);
    let reply = run_on(&mut store, known.source(), &["k"], args);
    format!("{reply} | {}", store.show())
}

#[test]
fn behaviours_of_one_key_do_what_their_libraries_expect() {
    const OWN: Option<&str> = Some("t");
    const OTHER: Option<&str> = Some("o");
    const TTL: Option<i64> = Some(900);
    type Row<'a> = (
        &'a str,
        Option<&'a str>,
        Option<i64>,
        &'a [&'a str],
        &'a str,
    );
    let rows: &[Row<'_>] = &[
        ("release", OWN, TTL, &["t"], "1 | "),
        ("release", OTHER, TTL, &["t"], "0 | k=o 900"),
        ("release", None, None, &["t"], "0 | "),
        ("release", OWN, TTL, &[], "0 | k=t 900"),
        ("release_absent_minus_one", None, None, &["t"], "-1 | "),
        ("release_absent_minus_one", OTHER, None, &["t"], "0 | k=o"),
        ("release_graded", None, None, &["t"], "-1 | "),
        ("release_graded", OTHER, None, &["t"], "-2 | k=o"),
        ("release_or_nil", OWN, None, &["t"], "1 | "),
        ("release_or_nil", OTHER, None, &["t"], "nil | k=o"),
        ("release_or_error", None, None, &["t"], "+OK | "),
        ("release_or_error", OWN, None, &["t"], "1 | "),
        ("release_or_error", OTHER, None, &["t"], "-ERR ERROR | k=o"),
        ("release_string", OWN, None, &["t"], "1 | "),
        ("delete", OTHER, None, &[], "1 | "),
        ("extend", OWN, TTL, &["t", "50"], "1 | k=t 50"),
        ("extend", OWN, None, &["t", "50"], "1 | k=t 50"),
        ("extend", OWN, TTL, &["t", "0"], "1 | "),
        ("extend", OTHER, TTL, &["t", "50"], "0 | k=o 900"),
        ("extend", OTHER, TTL, &["t", "x"], "0 | k=o 900"),
        (
            "extend",
            OWN,
            TTL,
            &["t", "x"],
            "!ERR value is not an integer or out of range @4 | k=t 900",
        ),
        ("extend_or_nil", OWN, TTL, &["t", "50"], "1 | k=t 50"),
        (
            "extend_seconds_inverted",
            OWN,
            TTL,
            &["t", "5"],
            "0 | k=t 5000",
        ),
        (
            "extend_seconds_or_persist",
            OWN,
            TTL,
            &["t", "5"],
            "1 | k=t 5000",
        ),
        (
            "extend_seconds_or_persist",
            OWN,
            TTL,
            &["t", "0"],
            "1 | k=t",
        ),
        ("extend_seconds_with_ttl", OWN, None, &["t", "5"], "2 | k=t"),
        (
            "extend_seconds_with_ttl",
            OTHER,
            TTL,
            &["t", "5"],
            "1 | k=o 900",
        ),
        (
            "extend_later_or_error",
            OTHER,
            TTL,
            &["t", "5"],
            "-NOT LOCKED | k=o 900",
        ),
        ("extend_at", OWN, TTL, &["t", "1000070"], "1 | k=t 70"),
        (
            "extend_at_and_read",
            OWN,
            TTL,
            &["t", "1000070"],
            "1 | k=t 70",
        ),
        ("extend_by_set", OWN, TTL, &["t", "50"], "1 | k=t 50"),
        (
            "extend_by_set_or_text",
            OTHER,
            TTL,
            &["t", "50"],
            "'ERR' | k=o 900",
        ),
        ("extend_or_acquire", None, None, &["t", "50"], "1 | k=t 50"),
        ("extend_or_acquire", OTHER, TTL, &["t", "50"], "0 | k=o 900"),
        ("extend_or_create", None, None, &["t", "50"], "1 | k=t 50"),
        ("extend_or_create", OTHER, TTL, &["t", "50"], "-1 | k=o 900"),
        ("extend_with_ttl", OWN, None, &["t", "50"], "0 | k=t"),
        ("extend_adding", OWN, TTL, &["t", "50"], "1 | k=t 950"),
        (
            "extend_adding_or_replacing",
            OWN,
            TTL,
            &["t", "50", "0"],
            "1 | k=t 950",
        ),
        (
            "extend_adding_or_replacing",
            OWN,
            TTL,
            &["t", "50", "1"],
            "1 | k=t 50",
        ),
        (
            "extend_adding_or_replacing",
            OWN,
            None,
            &["t", "50", "1"],
            "0 | k=t",
        ),
        (
            "extend_enough_left",
            None,
            None,
            &["t", "5", "50"],
            "[-1 -2] | ",
        ),
        (
            "extend_enough_left",
            OWN,
            TTL,
            &["t", "901", "50"],
            "[0 900] | k=t 900",
        ),
        (
            "extend_enough_left",
            OWN,
            TTL,
            &["t", "5", "50"],
            "[1 900] | k=t 50",
        ),
        (
            "extend_enough_left",
            OTHER,
            TTL,
            &["t", "5", "50"],
            "[-1 900] | k=o 900",
        ),
        ("acquire", None, None, &["t", "50"], "+OK | k=t 50"),
        ("acquire", OWN, TTL, &["t", "50"], "nil | k=t 900"),
        ("acquire_and_read", None, None, &["t", "50"], "+OK | k=t 50"),
        (
            "acquire_at_and_read",
            None,
            None,
            &["t", "1000070"],
            "+OK | k=t 70",
        ),
        ("force_and_read", OTHER, TTL, &["t", "50"], "+OK | k=t 50"),
        (
            "force_at_and_read",
            OTHER,
            TTL,
            &["t", "1000070"],
            "+OK | k=t 70",
        ),
        ("acquire_or_extend", OWN, TTL, &["t", "50"], "+OK | k=t 50"),
        (
            "acquire_or_extend",
            OTHER,
            TTL,
            &["t", "50"],
            "nil | k=o 900",
        ),
        (
            "acquire_if_allowed_or_extend",
            None,
            None,
            &["t", "50", "no"],
            "nil | ",
        ),
        (
            "acquire_if_allowed_or_extend",
            None,
            None,
            &["t", "50", "yes"],
            "+OK | k=t 50",
        ),
        (
            "acquire_if_allowed_or_extend",
            OWN,
            TTL,
            &["t", "50", "no"],
            "+OK | k=t 50",
        ),
        (
            "acquire_or_error",
            OTHER,
            TTL,
            &["t", "50"],
            "-ERR ERROR | k=o 900",
        ),
        ("acquire_or_nil", None, None, &["t", "50"], "1 | k=t 50"),
        ("acquire_or_nil", OTHER, TTL, &["t", "50"], "nil | k=o 900"),
        ("acquire_optional_ttl", None, None, &["t", ""], "1 | k=t"),
        (
            "acquire_optional_ttl",
            None,
            None,
            &["t", "50"],
            "1 | k=t 50",
        ),
        (
            "acquire_optional_ttl",
            OWN,
            TTL,
            &["t", "50"],
            "0 | k=t 900",
        ),
        ("acquire_reentrant", OWN, TTL, &["t", "50"], "1 | k=t 900"),
        ("acquire_reentrant", OTHER, TTL, &["t", "50"], "0 | k=o 900"),
        ("acquire_free", OWN, TTL, &["t", "50"], "0 | k=t 900"),
        (
            "acquire_free_seconds",
            None,
            None,
            &["t", "5"],
            "+OK | k=t 5000",
        ),
        (
            "obtain_one",
            Some("tX"),
            TTL,
            &["tY", "1", "50"],
            "+OK | k=tY 50",
        ),
        (
            "obtain_one",
            OTHER,
            TTL,
            &["tY", "1", "50"],
            "nil | k=o 900",
        ),
        ("ttl_or_minus_three", OTHER, TTL, &["t"], "-3 | k=o 900"),
        ("ttl_or_zero", OWN, None, &["t"], "0 | k=t"),
        ("ttl_or_zero", OWN, TTL, &["t"], "900 | k=t 900"),
        ("ttl_or_error", None, None, &["t"], "-ERR ERROR | "),
        ("ttl_or_error", OWN, TTL, &["t"], "1 | k=t 900"),
        ("token_and_ttl", None, None, &[], "[nil -2] | "),
        ("token_and_ttl_or_nil", None, None, &[], "nil | "),
        ("token_and_ttl_or_nil", OWN, TTL, &[], "['t' 900] | k=t 900"),
        ("time_probe", None, None, &[], "1 | k=1 1"),
    ];
    for (name, value, ttl, args, want) in rows {
        assert_eq!(
            behave(name, *value, *ttl, args),
            *want,
            "{name} {value:?} {args:?}"
        );
    }
}

#[test]
fn behaviours_of_several_keys_take_all_or_none() {
    type Row<'a> = (&'a str, Option<&'a str>, &'a [&'a str], &'a str);
    let rows: &[Row<'_>] = &[
        ("acquire_all", None, &["t", "50"], "2 | k=t 50, k2=t 50"),
        ("acquire_all", Some("o"), &["t", "50"], "0 | k=o"),
        ("extend_all", Some("t"), &["t", "50"], "0 | k=t"),
        ("release_all", Some("t"), &["t"], "1 | "),
        (
            "acquire_each",
            None,
            &["a", "b", "50"],
            "[1 2] | k=a 50, k2=b 50",
        ),
        (
            "acquire_each",
            Some("o"),
            &["a", "b", "50"],
            "[0 1 'k'] | k=o",
        ),
        (
            "obtain_all",
            None,
            &["t", "1", "50"],
            "+OK | k=t 50, k2=t 50",
        ),
        ("obtain_all", Some("o"), &["t", "1", "50"], "nil | k=o"),
        ("release_all_or_none", Some("t"), &["t"], "nil | k=t"),
        ("extend_all_or_none", Some("t"), &["t", "50"], "nil | k=t"),
        ("shortest_ttl", Some("t"), &["t"], "nil | k=t"),
        (
            "first_free",
            Some("o"),
            &["slot", "5", "t"],
            "'slot2' | k=o, k2=t 5000",
        ),
    ];
    for (name, value, args, want) in rows {
        let known = behaviours::ALL
            .iter()
            .find(|known| known.name() == *name)
            .unwrap();
        let mut store = Store::with(*value, None);
        let reply = run_on(&mut store, known.source(), &["k", "k2"], args);
        assert_eq!(format!("{reply} | {}", store.show()), *want, "{name}");
    }
}

#[test]
fn an_expired_key_is_absent() {
    let mut store = Store::with(Some("t"), Some(900));
    store.now_ms += 900;
    assert_eq!(
        run_on(&mut store, behaviours::RELEASE.source(), &["k"], &["t"]),
        "0"
    );
    assert_eq!(
        run_on(
            &mut store,
            behaviours::ACQUIRE.source(),
            &["k"],
            &["u", "5"]
        ),
        "+OK"
    );
}

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
