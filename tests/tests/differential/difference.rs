//! Which replies may differ from the real server's, and why.
//!
//! | Reply | Reason |
//! |---|---|
//! | TTL, PTTL, EXPIRETIME, PEXPIRETIME: the number, by up to five seconds | their clocks are read at different times |
//! | KEYS, SCAN: the order | hash tables have none |
//! | RANDOMKEY: which key | it is random |
//! | DBSIZE: more than ours | a key whose EXAT has passed may be stored there, and counted until it is reclaimed |
//! | HELLO: the contents | names, versions and numbers of the server |
//! | GETEX on a missing key, or one of another type, with a bad number, on Valkey | Valkey reads the number first; we do as Redis does |
//! | MSETEX: error texts on Valkey | Valkey words them differently |
//! | EVAL, EVALSHA, EVALSHA_RO: error texts on Valkey | it does not name the script's hash, and words some errors differently |
//! | MULTI and WATCH after MULTI, on Valkey | not sent: Valkey ends the transaction; we do as Redis does |
//! | Protocol errors, on Valkey: all that follows | it refuses line ends other than CRLF, and takes words that touch a quoted one |
//! | BLPOP of several lists, when one becomes another type | not sent: here it goes on waiting for the others |
//! | CLIENT REPLY after MULTI | not sent: the servers send an array of fewer elements than they say |
//! | Scores on Redis 7 and older: their digits | they write 17 of them, newer ones as few as read back the same |
//! | SCAN with an empty cursor, on Redis 7 and older | they read it as 0; newer ones refuse it as we do |
//! | SCAN with an unknown TYPE, on Valkey | Valkey refuses it; on Redis no key has that type |
//! | NOPERM on Redis 7 and older: the text | newer ones name the user, as we do |
//! | ACL GETUSER and LIST on Redis 7 and older, and on Valkey: the order of rules and the fields | they keep the rules differently, and Valkey has databases, too |
//! | Random scripts that catch errors, on Valkey | not sent: they work with the text, which Valkey words differently |
//! | commands and options that the server lacks | not sent |

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::node::Node;
use crate::reply;
use crate::sequence::Request;
use crate::server::Server;

/// What this server has and how it differs.
pub(crate) struct Peculiarities {
    pub(crate) version: String,
    pub(crate) now_secs: u64,
    pub(crate) is_valkey: bool,
    is_before_8: bool,
    commands: BTreeMap<&'static str, bool>,
    set_options: BTreeSet<&'static str>,
}

impl Peculiarities {
    pub(crate) fn of(server: &mut Server) -> Self {
        let info = String::from_utf8_lossy(&server.ask(&["INFO", "server"])).into_owned();
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::to_owned)
        };
        let valkey = field("valkey_version");
        let version = valkey.clone().map(|version| format!("Valkey {version}"));
        let version = version
            .unwrap_or_else(|| format!("Redis {}", field("redis_version").unwrap_or_default()));
        let mut commands = BTreeMap::new();
        let node = Node::new(1);
        for name in COMMANDS.split(' ') {
            let theirs = !is_unknown(&server.ask(&[name]));
            let ours = !is_unknown(&node.run(&[Request::array([name.as_bytes().to_vec()])])[0]);
            if !(theirs && ours) {
                println!(
                    "left out: {name}, served by {}",
                    if ours { "us only" } else { "the server only" }
                );
            }
            commands.insert(name, theirs && ours);
        }
        let options = ["IFEQ", "IFNE", "IFDEQ", "IFDNE"];
        let set_options = options
            .into_iter()
            .filter(|option| {
                !server
                    .ask(&["SET", "k", "v", option, "0000000000000000"])
                    .starts_with(b"-")
            })
            .collect();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a clock after 1970");
        Self {
            now_secs: now.as_secs(),
            is_valkey: valkey.is_some(),
            is_before_8: ["Redis 7.", "Redis 6."]
                .iter()
                .any(|old| version.starts_with(old)),
            version,
            commands,
            set_options,
        }
    }

    /// Whether both sides serve the command; unknown ones are sent as what they are.
    pub(crate) fn has_command(&self, name: &str) -> bool {
        self.commands.get(name).copied().unwrap_or(true)
    }

    pub(crate) fn has_set_option(&self, option: &str) -> bool {
        self.set_options.contains(option)
    }

    /// Whether the word may be written in other letters without another meaning.
    pub(crate) fn is_case_free(&self, word: &str) -> bool {
        self.commands.contains_key(word) || WORDS.contains(&word)
    }

    /// Whether a request leaves a transaction in a state that is not compared.
    pub(crate) fn is_unfit_for_transaction(&self, line: &str) -> bool {
        let is_nested = line == "MULTI" || line.starts_with("WATCH");
        is_nested && self.is_valkey || line.starts_with("CLIENT REPLY")
    }

    /// Whether all that two connections received agrees.
    pub(crate) fn allow_all(&self, theirs: &[u8], ours: &[u8]) -> bool {
        let both = [(theirs, ours), (ours, theirs)];
        let mut valid = both
            .map(|(it, other)| (before_protocol_error(it), other))
            .into_iter();
        theirs == ours
            || self.is_valkey
                && valid.any(|(valid, other)| valid.is_some_and(|it| other.starts_with(it)))
    }

    /// Whether the two replies agree.
    pub(crate) fn allow(&self, request: &Request, theirs: &[u8], ours: &[u8]) -> bool {
        if theirs == ours {
            return true;
        }
        if self.is_before_8 && is_denied(theirs) && is_denied(ours) {
            return true;
        }
        let are_errors = theirs.starts_with(b"-") && ours.starts_with(b"-");
        let is_their_error = theirs.starts_with(b"-");
        match request.name().as_str() {
            "ttl" | "expiretime" => is_near(theirs, ours, 5),
            "pttl" | "pexpiretime" => is_near(theirs, ours, 5_000),
            "dbsize" => reply::integer(theirs) > reply::integer(ours),
            "keys" => sorted(theirs) == sorted(ours),
            "scan" if theirs.starts_with(b"-ERR unknown type name") => self.is_valkey,
            "scan" if ours.starts_with(b"-ERR invalid cursor") => {
                self.is_before_8 && request.words[1].is_empty()
            }
            "scan" => {
                let (theirs, ours) = (reply::elements(theirs), reply::elements(ours));
                theirs.len() == 2
                    && ours.len() == 2
                    && theirs[0] == ours[0]
                    && sorted(&theirs[1]) == sorted(&ours[1])
            }
            "randomkey" => {
                theirs[0] == b'$' && ours[0] == b'$' && theirs[1] != b'-' && ours[1] != b'-'
            }
            "acl" if self.is_before_8 || self.is_valkey => theirs[0] == ours[0],
            "hello" => theirs[0] == ours[0] && !is_their_error,
            "getex" if self.is_valkey => {
                let ours_before = [&b"$-1\r\n"[..], b"_\r\n", b"-WRONGTYPE"];
                is_their_error && ours_before.iter().any(|it| ours.starts_with(it))
            }
            "msetex" | "eval" | "eval_ro" | "evalsha" | "evalsha_ro" if self.is_valkey => {
                are_errors
            }
            "zscore" | "zincrby" | "zrange" | "zrevrange" | "zrangebyscore" | "eval"
            | "eval_ro"
                if self.is_before_8 =>
            {
                are_alike(theirs, ours)
            }
            _ => false,
        }
    }
}

/// The replies before the last one, if that says that the bytes are no request.
fn before_protocol_error(received: &[u8]) -> Option<&[u8]> {
    let error = b"-ERR Protocol error";
    let start = received.windows(error.len()).rposition(|it| it == error)?;
    received[start..]
        .ends_with(b"\r\n")
        .then_some(&received[..start])
}

/// Whether a user was not allowed to do something.
fn is_denied(reply: &[u8]) -> bool {
    let text = String::from_utf8_lossy(reply);
    let words = [
        "NOPERM",
        "ACL failure in script",
        "The user executing the script",
    ];
    text.starts_with('-') && words.iter().any(|it| text.contains(it))
}

fn is_unknown(reply: &[u8]) -> bool {
    reply.starts_with(b"-ERR unknown command")
}

fn is_near(theirs: &[u8], ours: &[u8], tolerance: i64) -> bool {
    match (reply::integer(theirs), reply::integer(ours)) {
        (Some(theirs @ 0..), Some(ours @ 0..)) => (theirs - ours).abs() <= tolerance,
        _ => false,
    }
}

/// Whether the replies differ in the digits of numbers only.
fn are_alike(theirs: &[u8], ours: &[u8]) -> bool {
    let lines = |reply: &[u8]| -> Vec<String> {
        let reply = String::from_utf8_lossy(reply).into_owned();
        let lines = reply.split("\r\n").filter(|line| !line.starts_with('$'));
        lines
            .map(|line| line.trim_start_matches(',').to_owned())
            .collect()
    };
    let (theirs, ours) = (lines(theirs), lines(ours));
    let is_same = |(a, b): (&String, &String)| {
        let numbers = (a.parse::<f64>(), b.parse::<f64>());
        a == b || matches!(numbers, (Ok(a), Ok(b)) if a == b || a.is_nan() && b.is_nan())
    };
    theirs.len() == ours.len() && theirs.iter().zip(&ours).all(is_same)
}

fn sorted(reply: &[u8]) -> Vec<Vec<u8>> {
    let mut elements = reply::elements(reply);
    elements.sort();
    elements
}

const COMMANDS: &str = "\
    SET GET GETDEL STRLEN TYPE PERSIST DIGEST GETEX GETSET SETNX SETEX PSETEX MSET MSETNX MSETEX \
    DEL UNLINK EXISTS TOUCH MGET INCR DECR INCRBY DECRBY GETRANGE SUBSTR EXPIRE PEXPIRE EXPIREAT \
    PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME DELEX DELIFEQ KEYS SCAN RANDOMKEY DBSIZE FLUSHDB \
    FLUSHALL PING ECHO SELECT HELLO AUTH CLIENT EVAL HSET HSETNX HINCRBY HGET HEXISTS HLEN HGETALL \
    HKEYS HDEL LPUSH RPUSH LPOP LREM LLEN LINDEX LRANGE SADD SREM SCARD SISMEMBER ZADD ZINCRBY ZREM \
    ZREMRANGEBYSCORE ZSCORE ZCARD ZCOUNT ZRANGE ZREVRANGE ZRANGEBYSCORE";

const WORDS: [&str; 29] = [
    "NX",
    "XX",
    "GET",
    "KEEPTTL",
    "PERSIST",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "IFEQ",
    "IFNE",
    "IFDEQ",
    "IFDNE",
    "GT",
    "LT",
    "MATCH",
    "COUNT",
    "TYPE",
    "SYNC",
    "ASYNC",
    "string",
    "SETNAME",
    "GETNAME",
    "CH",
    "WITHSCORES",
    "REV",
    "BYSCORE",
    "LIMIT",
    "zset",
];
