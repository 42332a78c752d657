//! Redisson's hot scripts, which are native: each does what the script does in Lua.
//!
//! The scripts here are our own, written from what Redisson's do. With `REDISSON_SCRIPTS`, a folder with Redisson's
//! own texts in files named by their SHA1s, those are compared.

use proptest::prelude::*;

use crate::node::Node;

/// A script, by its SHA1, and where its arguments come from.
struct Script {
    sha: &'static str,
    lua: &'static str,
    keys: &'static [&'static str],
    args: &'static [&'static [&'static str]],
}

const TTL: &[&str] = &["30000", "30000", "30000", "700", "0", "-5", "x", "1.5"];
const HOLDER: &[&str] = &["a:1", "a:1", "b:7", ""];
const TELL: &[&str] = &["publish", "publish", "SPUBLISH", "get", "unknown"];
const TEXT: &[&str] = &["0"];

const ACQUIRE: &[&[&str]] = &[TTL, HOLDER];

const SCRIPTS: &[Script] = &[
    Script {
        sha: "149c5a8bf18676fd99e9e6e24923bd64d9b62f94",
        lua: "local lock, holder = KEYS[1], ARGV[2]
            if redis.call('exists', lock) == 1 and redis.call('hexists', lock, holder) == 0 then
              return redis.call('pttl', lock)
            end
            redis.call('hincrby', lock, holder, 1)
            redis.call('pexpire', lock, ARGV[1])
            return false",
        keys: &["l"],
        args: ACQUIRE,
    },
    Script {
        sha: "dad0f8d619e548e04f21fb48d50be5034df3adae",
        lua: "local lock, holder = KEYS[1], ARGV[2]
            if redis.call('exists', lock) == 1 and redis.call('hexists', lock, holder) == 0 then
              return redis.call('pttl', lock)
            end
            redis.call('hincrby', lock, holder, 1)
            redis.call('pexpire', lock, ARGV[1])
            return false",
        keys: &["l"],
        args: ACQUIRE,
    },
    Script {
        sha: "46b5551ba403d6152a7a6eca122e08728d6c8c66",
        lua: "local lock, holder = KEYS[1], ARGV[2]
            if redis.call('exists', lock) == 1 and redis.call('hexists', lock, holder) == 0 then
              return redis.call('pttl', lock)
            end
            redis.call('incr', KEYS[2])
            redis.call('hincrby', lock, holder, 1)
            redis.call('pexpire', lock, ARGV[1])
            return false",
        keys: &["l", "f"],
        args: ACQUIRE,
    },
    Script {
        sha: "49babb5a1e6a0c5f188c2ae62b93b51cdfd63e45",
        lua: "local lock, holder = KEYS[1], ARGV[2]
            if redis.call('exists', lock) == 1 and redis.call('hexists', lock, holder) == 0 then
              return { redis.call('pttl', lock), -1 }
            end
            local fence = redis.call('incr', KEYS[2])
            redis.call('hincrby', lock, holder, 1)
            redis.call('pexpire', lock, ARGV[1])
            return { -1, fence }",
        keys: &["l", "f"],
        args: ACQUIRE,
    },
    Script {
        sha: "6866459238a13a701d42f4971f12d9f3a50e2442",
        lua: "local lock, latch, holder = KEYS[1], KEYS[3], ARGV[3]
            local outcome = redis.call('get', latch)
            if outcome then return tonumber(outcome) end
            if redis.call('hexists', lock, holder) ~= 1 then return false end
            outcome = 0
            if redis.call('hincrby', lock, holder, -1) > 0 then
              redis.call('pexpire', lock, ARGV[2])
            else
              redis.call('del', lock)
              redis.call(ARGV[4], KEYS[2], ARGV[1])
              outcome = 1
            end
            redis.call('set', latch, outcome, 'px', ARGV[5])
            return outcome",
        keys: &["l", "c", "o"],
        args: &[TEXT, TTL, HOLDER, TELL, TTL],
    },
    Script {
        sha: "73ac2729af29ea9a975f95e8097f7ee9a74cce3d",
        lua: "local lock, latch, holder = KEYS[1], KEYS[2], ARGV[2]
            local outcome = redis.call('get', latch)
            if outcome then return tonumber(outcome) end
            if redis.call('hexists', lock, holder) ~= 1 then return false end
            outcome = 0
            if redis.call('hincrby', lock, holder, -1) > 0 then
              redis.call('pexpire', lock, ARGV[1])
            else
              redis.call('del', lock)
              outcome = 1
            end
            redis.call('set', latch, outcome, 'px', ARGV[3])
            return outcome",
        keys: &["l", "o"],
        args: &[TTL, HOLDER, TTL],
    },
    Script {
        sha: "3ffe249c16dee540ac8ab32e39bd408626b9aff7",
        lua: "local lock, holder = KEYS[1], ARGV[3]
            if redis.call('hexists', lock, holder) ~= 1 then return false end
            if redis.call('hincrby', lock, holder, -1) > 0 then
              redis.call('pexpire', lock, ARGV[2])
              return 0
            end
            redis.call('del', lock)
            redis.call('publish', KEYS[2], ARGV[1])
            return 1",
        keys: &["l", "c"],
        args: &[TEXT, TTL, HOLDER, TELL],
    },
    Script {
        sha: "778cea8aada230ae060b432fc333adaec85f2f4c",
        lua: "local lock, holder = KEYS[1], ARGV[3]
            if redis.call('hexists', lock, holder) ~= 1 then return false end
            if redis.call('hincrby', lock, holder, -1) > 0 then
              redis.call('pexpire', lock, ARGV[2])
              return 0
            end
            redis.call('del', lock)
            redis.call(ARGV[4], KEYS[2], ARGV[1])
            return 1",
        keys: &["l", "c"],
        args: &[TEXT, TTL, HOLDER, TELL],
    },
    Script {
        sha: "605e338249a7a1d40df83b04f7658354f883b41b",
        lua: "local deleted = redis.call('del', KEYS[1])
            if deleted == 1 then redis.call(ARGV[2], KEYS[2], ARGV[1]) end
            return deleted",
        keys: &["l", "c"],
        args: &[TEXT, TELL],
    },
    Script {
        sha: "8e19a1ddbdee9138df9f32a480c57addab4353d1",
        lua: "local held = redis.call('hexists', KEYS[1], ARGV[2])
            if held == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end
            return held",
        keys: &["l"],
        args: ACQUIRE,
    },
    Script {
        sha: "6a3d31570dc6f4b0bd32bcdc8e75667747c6f635",
        lua: "local renewed = {}
            for at, lock in ipairs(KEYS) do
              renewed[at] = redis.call('hexists', lock, ARGV[at + 1])
              if renewed[at] == 1 then redis.call('pexpire', lock, ARGV[1]) end
            end
            return renewed",
        keys: &["l", "f", "o"],
        args: &[TTL, HOLDER, HOLDER, HOLDER],
    },
];

/// What happens between scripts, by other commands.
const OTHERS: &[&str] = &[
    "DEL l",
    "SET l text",
    "HSET l a:1 2",
    "HSET l a:1 x",
    "HSET l a:1 9223372036854775807",
    "HINCRBY l b:7 1",
    "PERSIST l",
    "SET f 41",
    "SET f text",
    "HSET f a:1 1",
    "DEL o",
    "SET o 0x1f",
    "SET o 1.5e1",
    "SET o none",
    "SET o 1e300",
    "RPUSH o element",
    "DEL o",
    "+ 500",
    "+ 30000",
];

/// A script whose keys and arguments are drawn, of which some may be missing; or another command.
fn step() -> impl Strategy<Value = Result<(usize, usize, Vec<usize>), usize>> {
    let drawn = prop::collection::vec(0..100_usize, 5);
    let missing = prop_oneof![4 => Just(0), 1 => 1..4_usize];
    prop_oneof![
        3 => (0..SCRIPTS.len(), missing, drawn).prop_map(Ok),
        1 => (0..OTHERS.len()).prop_map(Err),
    ]
}

/// A node, and two clients that are told of everything.
fn watched_node() -> Node {
    let mut node = Node::new();
    node.run("CONFIG SET notify-keyspace-events KEAnm");
    node.run("b> PSUBSCRIBE *");
    node.run("c> SSUBSCRIBE c");
    node
}

fn other(node: &mut Node, request: &str) -> String {
    match request.strip_prefix("+ ") {
        Some(millis) => {
            node.advance_millis(millis.parse().expect("milliseconds"));
            String::new()
        }
        None => node.run(request),
    }
}

/// All that can be seen of a node: its keys, and what clients were told since the last time.
fn state(node: &mut Node) -> String {
    let mut all = [node.mail(1), node.mail(2)].join(" | ");
    for key in ["l", "f", "o", "c"] {
        for command in ["TYPE", "PTTL", "GET", "HGETALL"] {
            all += &format!(" {}", node.run(&format!("{command} {key}")));
        }
    }
    // What these miss is told, too.
    node.mail(1);
    node.mail(2);
    all
}

/// The text that runs in Lua. Redisson's own must be made another one for that: its SHA1 is known.
fn text_of(script: &Script) -> String {
    match std::env::var_os("REDISSON_SCRIPTS") {
        Some(folder) => {
            let path = std::path::Path::new(&folder).join(script.sha);
            let text = std::fs::read_to_string(path).expect("a script named by its SHA1");
            let sha = Node::new().bytes(&[b"SCRIPT", b"LOAD", text.as_bytes()]);
            assert_eq!(sha, format!("$40\r\n{}\r\n", script.sha).as_bytes());
            text + " "
        }
        // On one line, as Redisson's: errors name the line.
        None => script.lua.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_native_script_does_what_it_does_in_lua(steps in prop::collection::vec(step(), 1..25)) {
        let (mut native, mut scripted) = (watched_node(), watched_node());
        for step in steps {
            let (have, want) = match step {
                Err(at) => (other(&mut native, OTHERS[at]), other(&mut scripted, OTHERS[at])),
                Ok((at, missing, drawn)) => {
                    let script = &SCRIPTS[at];
                    let keys = &script.keys[..script.keys.len() - missing.min(script.keys.len() - 1)];
                    let args = script.args.iter().zip(&drawn).map(|(words, at)| words[at % words.len()]);
                    let args: Vec<&str> = args.take(script.args.len() - missing / 2).collect();
                    let count = keys.len().to_string();
                    let call = |name, script| {
                        let words = [name, script, count.as_str()].into_iter().chain(keys.iter().copied());
                        words.chain(args.iter().copied()).map(str::as_bytes).collect::<Vec<&[u8]>>()
                    };
                    let text = text_of(script);
                    let have = native.bytes(&call("EVALSHA", script.sha));
                    let want = scripted.bytes(&call("EVAL", &text));
                    // An error names the script by its SHA1.
                    let plain = |bytes: Vec<u8>| {
                        let text = String::from_utf8(bytes).expect("text");
                        text.split(" script: ").next().unwrap_or_default().to_owned()
                    };
                    (plain(have), plain(want))
                }
            };
            prop_assert_eq!(have, want);
            prop_assert_eq!(state(&mut native), state(&mut scripted));
        }
    }
}

#[test]
fn every_script_is_known_by_its_sha1() {
    let mut node = Node::new();
    for script in SCRIPTS {
        assert_eq!(node.run(&format!("SCRIPT EXISTS {}", script.sha)), "*1 :1");
    }
}

#[test]
fn a_lock_is_acquired_renewed_and_released_by_its_holder_only() {
    let [acquire, unlock, renew] = [
        "149c5a8bf18676fd99e9e6e24923bd64d9b62f94",
        "6866459238a13a701d42f4971f12d9f3a50e2442",
        "6a3d31570dc6f4b0bd32bcdc8e75667747c6f635",
    ];
    crate::node::check(&format!(
        "EVALSHA {acquire} 1 l 30000 a:1 => $-1
         b> SUBSCRIBE c => *3 $9 subscribe $1 c :1
         EVALSHA {acquire} 1 l 30000 b:7 => :30000
         EVALSHA {acquire} 1 l 30000 a:1 => $-1
         + 1000
         EVALSHA {renew} 2 l none 30000 a:1 a:1 => *2 :1 :0
         PTTL l => :30000
         EVALSHA {unlock} 3 l c o:1 0 30000 b:7 publish 9000 => $-1
         EVALSHA {unlock} 3 l c o:2 0 30000 a:1 publish 9000 => :0
         HGETALL l => *2 $3 a:1 $1 1
         EVALSHA {unlock} 3 l c o:3 0 30000 a:1 publish 9000 => :1
         b< => *3 $7 message $1 c $1 0
         EVALSHA {unlock} 3 l c o:3 0 30000 a:1 publish 9000 => :1
         b< =>
         PTTL o:3 => :9000
         EXISTS l => :0"
    ));
}
