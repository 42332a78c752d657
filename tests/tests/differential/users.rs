//! What a user may do, by random rules that change while it is connected: commands, keys, channels, scripts and
//! transactions.

use std::collections::BTreeSet;

use crate::difference::Peculiarities;
use crate::interleaving::{Step, compare, words};
use crate::node::Node;
use crate::reply;
use crate::sequence::{self, Dice, KEYS, Request};
use crate::server::Server;

#[test]
fn users_may_do_what_a_real_server_lets_them() {
    compare(SEQUENCES, random);
}

/// Commands that only one side has are left out, and so are our own categories.
#[test]
fn categories_have_the_commands_that_they_have_on_a_real_server() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let node = Node::new(1);
    let peculiarities = Peculiarities::of(&mut server);
    let list = words(&["COMMAND", "LIST"]);
    let theirs = names(&server.run(std::slice::from_ref(&list))[0]);
    let ours = names(&node.run(&[list])[0]);
    let mut common: BTreeSet<Vec<u8>> = theirs.intersection(&ours).cloned().collect();
    // It was of other categories before Redis 7.2.
    if peculiarities.version.starts_with("Redis 7.0") {
        common.remove(&b"wait"[..]);
    }
    assert!(common.len() > 150, "{}", common.len());
    for category in CATEGORIES {
        let request = words(&["ACL", "CAT", category]);
        let theirs = names(&server.run(std::slice::from_ref(&request))[0]);
        let ours = names(&node.run(&[request])[0]);
        let [theirs, ours] = [theirs, ours].map(|all| {
            let all = all.intersection(&common);
            let texts = all.map(|name| String::from_utf8_lossy(name).into_owned());
            texts.collect::<BTreeSet<String>>()
        });
        let differences: Vec<_> = theirs.symmetric_difference(&ours).collect();
        assert!(
            differences.is_empty(),
            "{category} on {}: {differences:?}",
            peculiarities.version
        );
    }
}

/// The texts of a reply that is a list.
fn names(reply: &[u8]) -> BTreeSet<Vec<u8>> {
    let texts = reply::elements(reply).into_iter();
    texts
        .map(|bulk| {
            let text = bulk.splitn(2, |byte| *byte == b'\n').nth(1);
            text.unwrap_or_default().trim_ascii_end().to_vec()
        })
        .collect()
}

/// Client 0 may do everything and gives client 1 rules.
fn random(dice: &mut Dice, peculiarities: &Peculiarities) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut put = |client, request| {
        steps.push(Step {
            client,
            request,
            expires: false,
        });
    };
    put(0, words(&["ACL", "SETUSER", "u", "reset", "on", "nopass"]));
    for _ in 0..2 + dice.below(6) {
        put(0, set_user(dice));
    }
    put(
        0,
        words(&["ACL", "SETUSER", "u", "+@transaction", "+acl|whoami"]),
    );
    put(0, words(&["ACL", "GETUSER", "u"]));
    put(0, words(&["ACL", "LIST"]));
    put(1, words(&["AUTH", "u", "x"]));
    put(1, words(&["ACL", "WHOAMI"]));
    let mut has_begun = false;
    for number in 0..STEPS {
        let request = match dice.below(40) {
            0 => {
                put(0, set_user(dice));
                continue;
            }
            1 => {
                put(0, words(&["ACL", "GETUSER", "u"]));
                continue;
            }
            2 if peculiarities.is_valkey && has_begun => continue,
            2 => {
                has_begun = true;
                words(&["MULTI"])
            }
            3 | 4 => {
                has_begun = false;
                // Where DISCARD is not allowed, the transaction goes on.
                let ends: &[&str] = match peculiarities.is_valkey {
                    true => &["EXEC"],
                    false => &["EXEC", "EXEC", "DISCARD"],
                };
                words(&[dice.pick(ends)])
            }
            5..=10 => script(dice),
            11 => words(&["SUBSCRIBE", dice.pick(&CHANNELS)]),
            12 => words(&["PSUBSCRIBE", dice.pick(&["ch*", "c?1", "other"])]),
            13 => words(&["UNSUBSCRIBE", dice.pick(&CHANNELS)]),
            14 => words(&["PUNSUBSCRIBE", dice.pick(&["ch*", "c?1", "other"])]),
            // Nobody is subscribed to these.
            15 => words(&["PUBLISH", dice.pick(&["pub1", "other-pub"]), "text"]),
            16 => words(&["CLIENT", dice.pick(&["GETNAME", "NOSUCH", "KILL"])]),
            17 => words(&["CLIENT", "KILL", "nobody"]),
            18 => words(&["CONFIG", dice.pick(&["GET", "NOSUCH"]), "nosuch"]),
            19 => words(&["ACL", dice.pick(&["LIST", "USERS", "NOSUCH"])]),
            20 if peculiarities.is_valkey && has_begun => continue,
            20 => words(&["WATCH", dice.pick(&KEYS)]),
            21 => words(&["SELECT", dice.pick(&["0", "1", "x"])]),
            22 => words(&["EXISTS", dice.pick(&KEYS), dice.pick(&KEYS)]),
            _ => loop {
                let request = sequence::one(dice, number, peculiarities);
                let is_about_time = request.words.iter().any(|word| {
                    word.eq_ignore_ascii_case(b"EXAT") || word.eq_ignore_ascii_case(b"PXAT")
                });
                let name = request.name();
                // They make another user, or another protocol, of the client; others depend on the clock.
                let is_left_out = ["auth", "hello", "dbsize", "randomkey", "eval"];
                if !is_about_time && !is_left_out.contains(&name.as_str()) {
                    break request;
                }
            },
        };
        put(1, request);
    }
    put(0, words(&["ACL", "GETUSER", "u"]));
    put(0, words(&["ACL", "DELUSER", "u"]));
    put(1, words(&["PING"]));
    for key in KEYS {
        put(0, words(&["GET", key]));
    }
    steps
}

fn set_user(dice: &mut Dice) -> Request {
    let mut request = vec!["ACL", "SETUSER", "u"];
    for _ in 0..1 + dice.below(3) {
        request.push(match dice.below(10) {
            0..=3 => dice.pick(&COMMAND_RULES),
            4..=6 => dice.pick(&KEY_RULES),
            7 => dice.pick(&CHANNEL_RULES),
            8 => dice.pick(&OTHER_RULES),
            _ => dice.pick(&["+@all", "allkeys", "allchannels"]),
        });
    }
    words(&request)
}

/// A script that calls a command, and some that lock libraries send.
fn script(dice: &mut Dice) -> Request {
    let key = dice.pick(&KEYS);
    match dice.below(6) {
        0 => words(&["EVAL", RELEASE, "1", key, "t"]),
        1 => words(&["EVAL", EXTEND, "1", key, "t", "60000"]),
        2 => words(&["EVAL", "return 1", "1", key]),
        3 => words(&["EVAL_RO", "return redis.pcall('GET', KEYS[1])", "1", key]),
        _ => {
            let call: &[&str] = match dice.below(8) {
                0 => &["GET"],
                1 => &["SET", "t"],
                2 => &["DEL"],
                3 => &["INCR"],
                4 => &["EXISTS"],
                5 => &["PUBLISH", "text"],
                6 => &["GETDEL"],
                _ => &["PEXPIRE", "60000"],
            };
            let mut request = vec![
                "EVAL",
                "return redis.pcall(unpack(ARGV))",
                "0",
                call[0],
                key,
            ];
            request.extend(&call[1..]);
            words(&request)
        }
    }
}

const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const EXTEND: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) \
    else return 0 end";

const CHANNELS: [&str; 3] = ["ch1", "ch2", "other"];

const COMMAND_RULES: [&str; 44] = [
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@string",
    "-@string",
    "+@keyspace",
    "-@keyspace",
    "+@fast",
    "-@fast",
    "+@slow",
    "-@slow",
    "+@dangerous",
    "-@dangerous",
    "+@admin",
    "-@admin",
    "+@connection",
    "-@connection",
    "+@pubsub",
    "-@pubsub",
    "+@scripting",
    "-@scripting",
    "-@transaction",
    "+@hash",
    "-@hash",
    "+@list",
    "+@set",
    "+@sortedset",
    "nocommands",
    "+get",
    "-get",
    "+SET",
    "-del",
    "+client",
    "-client",
    "+client|getname",
    "-client|kill",
    "+select|0",
    "+select|1",
    "-select",
    "+config|get",
    "+eval",
    "+nosuch",
    "+@nosuch",
];

const KEY_RULES: [&str; 14] = [
    "~a",
    "~lock:*",
    "%R~*",
    "%W~*",
    "%R~a",
    "%W~a",
    "%R~lock:*",
    "%W~lock:*",
    "%RW~{tag}:a",
    "~*",
    "resetkeys",
    "~",
    "%X~a",
    "~[ak]*",
];

const CHANNEL_RULES: [&str; 7] = [
    "&ch*",
    "&ch1",
    "&c?1",
    "&pub*",
    "&*",
    "resetchannels",
    "&a b",
];

const OTHER_RULES: [&str; 10] = [
    "on",
    "reset",
    "nopass",
    ">x",
    "<x",
    "<other",
    "resetpass",
    "off",
    "sanitize-payload",
    "nosuch",
];

/// Redis's; a Redis with modules has more.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

const SEQUENCES: u64 = 300;
const STEPS: u64 = 60;
