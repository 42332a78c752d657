//! Whole scripts: the language, its errors, the behaviours of the known scripts, and hostile input.
//!
//! Expected replies were taken from a Redis 8.0 server.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::*;

mod behaviours;
mod hostile;
mod language;
mod library;
mod patterns;
mod reference;

/// A keyspace with a clock, enough for what lock scripts do.
#[derive(Debug, Default)]
struct Store {
    now_ms: i64,
    keys: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>,
}

/// One for all tests: scripts run one at a time anyway.
static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::new(None, None));

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
    fn call(&mut self, args: &[&[u8]], _: Protocol, reply: &mut Vec<u8>) {
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
                let Some(last) = integer(last) else {
                    return reply.extend(NOT_INTEGER);
                };
                let end = usize::try_from(last + 1).unwrap_or(0);
                bulk(&value[..end.min(value.len())])
            }
            (b"incr", [_]) => NOT_INTEGER.to_vec(),
            (b"time", []) => b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n".to_vec(),
            (b"get" | b"set" | b"mset" | b"msetnx" | b"mget" | b"del", _) => WRONG_ARITY.to_vec(),
            _ => b"-ERR Unknown Redis command called from script\r\n".to_vec(),
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
        Value::Boolean(is_true) => format!("#{is_true}"),
        Value::Double(number) => format!(",{number}"),
        Value::BigNumber(bytes) => format!("({}", text(bytes)),
        Value::Verbatim(format, bytes) => format!("={}:{}", text(format), text(bytes)),
        Value::Map(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| format!("{}:{}", show(key), show(value)));
            format!("%[{}]", pairs.collect::<Vec<_>>().join(" "))
        }
        Value::Set(list) => format!("~[{}]", list.iter().map(show).collect::<Vec<_>>().join(" ")),
        Value::Array(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(" ")),
    }
}

fn run_on(store: &mut Store, source: &[u8], keys: &[&str], args: &[&str]) -> String {
    match Program::compile(source, &MACHINE) {
        Ok(program) => outcome(&program, store, keys, args),
        Err(error) => format!("-{}", String::from_utf8_lossy(&error.into_reply())),
    }
}

fn outcome(program: &Program, store: &mut Store, keys: &[&str], args: &[&str]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| key.as_bytes()).collect();
    let args: Vec<_> = args.iter().map(|arg| arg.as_bytes()).collect();
    match program.run(&MACHINE, &keys, &args, store) {
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

/// Reads a table of lines `script => reply`, and `# comment`. In a script, `<LF>` is a line feed.
fn rows(table: &str) -> Vec<(String, &str)> {
    let lines = table.lines().map(str::trim);
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with("# "));
    rows.map(|row| {
        let (script, reply) = row.split_once(" => ").unwrap();
        (script.replace("<LF>", "\n"), reply)
    })
    .collect()
}

/// Checks a table of scripts and their replies.
fn check(table: &str) {
    let wrong = rows(table).into_iter().filter_map(|(source, want)| {
        let have = run(&source);
        (have != want).then(|| format!("{source}\n  have {have}\n  want {want}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
