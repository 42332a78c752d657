//! The requests to nodes, in the commands that each node has.

use std::time::Duration;

use itoa::Buffer;
use locknode_resp::encode_command;

use crate::fencing_token::FencingToken;

/// The commands by which a node compares a token and acts in one step. Detected once per connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    /// `EVALSHA` of two small scripts, `EVAL` if the node does not know them: every Redis since 2.6.
    Script,
    /// `DELEX key IFEQ token` and `SET ... IFEQ`: Redis 8.4 and later, locknode.
    DelEx,
    /// `DELIFEQ key token` and `SET ... IFEQ`: Valkey 9.0 and later.
    DelIfEq,
    /// `LOCK.ACQUIRE` and its family, which return the counts for fencing tokens, without labels and
    /// `LOCK.FORCE`: locknode 0.1.
    EarlyLock,
    /// The whole family: locknode.
    Lock,
}

impl Dialect {
    /// Whether a node with this dialect counts its grants.
    pub fn has_fences(self) -> bool {
        matches!(self, Self::EarlyLock | Self::Lock)
    }
}

/// How a request refers to a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptForm {
    /// By its SHA1, which a node knows only after it has seen the text.
    Sha,
    /// By its text.
    Text,
}

/// Sets the key if it does not exist: `SET key token NX PX ttl` or `LOCK.ACQUIRE key token ttl`, where a
/// floor makes the node count from there, and a label says who asks.
pub(crate) fn acquire(
    out: &mut Vec<u8>,
    dialect: Dialect,
    key: &[u8],
    token: &[u8],
    ttl: Duration,
    floor: Option<FencingToken>,
    label: Option<&str>,
) {
    let (mut digits, mut floor_digits) = (Buffer::new(), Buffer::new());
    let ttl = digits.format(millis(ttl)).as_bytes();
    if !dialect.has_fences() {
        return encode_command(out, &[b"SET", key, token, b"NX", b"PX", ttl]);
    }
    let floor = floor.map(|floor| floor_digits.format(floor.get()).as_bytes());
    let label = label
        .filter(|_| dialect == Dialect::Lock)
        .map(str::as_bytes);
    match (floor, label) {
        (None, None) => encode_command(out, &[b"LOCK.ACQUIRE", key, token, ttl]),
        (Some(floor), None) => {
            encode_command(out, &[b"LOCK.ACQUIRE", key, token, ttl, b"FLOOR", floor]);
        }
        (None, Some(label)) => {
            encode_command(out, &[b"LOCK.ACQUIRE", key, token, ttl, b"LABEL", label]);
        }
        (Some(floor), Some(label)) => encode_command(
            out,
            &[
                b"LOCK.ACQUIRE",
                key,
                token,
                ttl,
                b"FLOOR",
                floor,
                b"LABEL",
                label,
            ],
        ),
    }
}

/// Raises the key's counter to the fencing token if this token and this very grant still hold the key.
pub(crate) fn fence(
    out: &mut Vec<u8>,
    key: &[u8],
    token: &[u8],
    grant: FencingToken,
    fence: FencingToken,
) {
    let (mut grant_digits, mut fence_digits) = (Buffer::new(), Buffer::new());
    let grant = grant_digits.format(grant.get()).as_bytes();
    let fence = fence_digits.format(fence.get()).as_bytes();
    encode_command(out, &[b"LOCK.FENCE", key, token, grant, fence]);
}

/// Deletes the key if it has this token.
pub(crate) fn release(
    out: &mut Vec<u8>,
    dialect: Dialect,
    form: ScriptForm,
    key: &[u8],
    token: &[u8],
) {
    match (dialect, form) {
        (Dialect::DelEx, _) => encode_command(out, &[b"DELEX", key, b"IFEQ", token]),
        (Dialect::DelIfEq, _) => encode_command(out, &[b"DELIFEQ", key, token]),
        (Dialect::EarlyLock | Dialect::Lock, _) => {
            encode_command(out, &[b"LOCK.RELEASE", key, token]);
        }
        (Dialect::Script, ScriptForm::Sha) => {
            encode_command(out, &[b"EVALSHA", RELEASE_SHA, b"1", key, token]);
        }
        (Dialect::Script, ScriptForm::Text) => {
            encode_command(out, &[b"EVAL", RELEASE.as_bytes(), b"1", key, token]);
        }
    }
}

/// Gives the key a new TTL if it has this token. Never creates a key.
pub(crate) fn extend(
    out: &mut Vec<u8>,
    dialect: Dialect,
    form: ScriptForm,
    key: &[u8],
    token: &[u8],
    ttl: Duration,
) {
    let mut digits = Buffer::new();
    let ttl = digits.format(millis(ttl)).as_bytes();
    match (dialect, form) {
        (Dialect::DelEx | Dialect::DelIfEq, _) => {
            encode_command(out, &[b"SET", key, token, b"IFEQ", token, b"PX", ttl]);
        }
        (Dialect::EarlyLock | Dialect::Lock, _) => {
            encode_command(out, &[b"LOCK.EXTEND", key, token, ttl]);
        }
        (Dialect::Script, ScriptForm::Sha) => {
            encode_command(out, &[b"EVALSHA", EXTEND_SHA, b"1", key, token, ttl]);
        }
        (Dialect::Script, ScriptForm::Text) => {
            encode_command(out, &[b"EVAL", EXTEND.as_bytes(), b"1", key, token, ttl]);
        }
    }
}

/// Who holds the key: the token, and where nodes know more, all of it.
pub(crate) fn describe(out: &mut Vec<u8>, dialect: Dialect, key: &[u8]) {
    let name: &[u8] = match dialect {
        Dialect::Lock => b"LOCK.GET",
        _ => b"GET",
    };
    encode_command(out, &[name, key]);
}

/// Deletes the key, no matter who holds it, and returns who held it.
pub(crate) fn force(out: &mut Vec<u8>, dialect: Dialect, key: &[u8]) {
    match dialect {
        Dialect::Lock => encode_command(out, &[b"LOCK.FORCE", key]),
        // Redis before 6.2 has no GETDEL.
        Dialect::Script => encode_command(out, &[b"EVAL", FORCE.as_bytes(), b"1", key]),
        _ => encode_command(out, &[b"GETDEL", key]),
    }
}

/// Whole milliseconds, at least one: a node refuses a TTL of zero.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// The script of the Redis documentation on distributed locks, by which every node can delete only its own.
const RELEASE: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";
const RELEASE_SHA: &[u8; 40] = b"b70c2384248f88e6b75b9f89241a180f856ad852";

/// The same comparison, then a new TTL.
const EXTEND: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\",KEYS[1],ARGV[2]) else return 0 end";
const EXTEND_SHA: &[u8; 40] = b"36e94d1c6e02fcefaa7ee5d79eee614dbac55f10";

const FORCE: &str =
    "local token = redis.call(\"get\",KEYS[1]) redis.call(\"del\",KEYS[1]) return token";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn every_dialect_says_the_same_in_its_words() {
        let ttl = Duration::from_millis(1500);
        let floor = FencingToken::new(41);
        for dialect in [Dialect::Script, Dialect::DelEx, Dialect::DelIfEq] {
            let acquire = text(|out| acquire(out, dialect, b"k", b"t", ttl, floor, Some("me")));
            assert_eq!(acquire, "*6 $3 SET $1 k $1 t $2 NX $2 PX $4 1500 ");
        }
        let rows = [
            (Dialect::DelEx, "*4 $5 DELEX $1 k $4 IFEQ $1 t "),
            (Dialect::DelIfEq, "*3 $7 DELIFEQ $1 k $1 t "),
        ];
        for (dialect, expected) in rows {
            let release = text(|out| release(out, dialect, ScriptForm::Sha, b"k", b"t"));
            assert_eq!(release, expected);
            let extend = text(|out| extend(out, dialect, ScriptForm::Text, b"k", b"t", ttl));
            assert_eq!(extend, "*7 $3 SET $1 k $1 t $4 IFEQ $1 t $2 PX $4 1500 ");
        }
        let by_sha = text(|out| release(out, Dialect::Script, ScriptForm::Sha, b"k", b"t"));
        assert!(by_sha.starts_with("*5 $7 EVALSHA $40 "), "{by_sha}");
        assert!(by_sha.ends_with(" $1 1 $1 k $1 t "), "{by_sha}");
        let by_text = text(|out| extend(out, Dialect::Script, ScriptForm::Text, b"k", b"t", ttl));
        assert!(by_text.starts_with("*6 $4 EVAL $"), "{by_text}");
        assert!(
            by_text.contains("pexpire") && by_text.ends_with(" $4 1500 "),
            "{by_text}"
        );
    }

    /// `[F5]` `[F7]`
    #[test]
    fn a_node_that_counts_is_asked_so_that_it_tells() {
        let (ttl, n) = (Duration::from_millis(1500), FencingToken::new);
        let dialect = Dialect::Lock;
        let form = ScriptForm::Sha;
        let rows = [
            (
                text(|out| acquire(out, dialect, b"k", b"t", ttl, None, None)),
                "*4 $12 LOCK.ACQUIRE $1 k $1 t $4 1500 ",
            ),
            (
                text(|out| acquire(out, dialect, b"k", b"t", ttl, n(41), None)),
                "*6 $12 LOCK.ACQUIRE $1 k $1 t $4 1500 $5 FLOOR $2 41 ",
            ),
            (
                text(|out| acquire(out, dialect, b"k", b"t", ttl, None, Some("me"))),
                "*6 $12 LOCK.ACQUIRE $1 k $1 t $4 1500 $5 LABEL $2 me ",
            ),
            (
                text(|out| acquire(out, dialect, b"k", b"t", ttl, n(41), Some("me"))),
                "*8 $12 LOCK.ACQUIRE $1 k $1 t $4 1500 $5 FLOOR $2 41 $5 LABEL $2 me ",
            ),
            (
                text(|out| acquire(out, Dialect::EarlyLock, b"k", b"t", ttl, None, Some("me"))),
                "*4 $12 LOCK.ACQUIRE $1 k $1 t $4 1500 ",
            ),
            (
                text(|out| describe(out, dialect, b"k")),
                "*2 $8 LOCK.GET $1 k ",
            ),
            (
                text(|out| describe(out, Dialect::EarlyLock, b"k")),
                "*2 $3 GET $1 k ",
            ),
            (
                text(|out| force(out, dialect, b"k")),
                "*2 $10 LOCK.FORCE $1 k ",
            ),
            (
                text(|out| force(out, Dialect::DelIfEq, b"k")),
                "*2 $6 GETDEL $1 k ",
            ),
            (
                text(|out| extend(out, dialect, form, b"k", b"t", ttl)),
                "*4 $11 LOCK.EXTEND $1 k $1 t $4 1500 ",
            ),
            (
                text(|out| release(out, dialect, form, b"k", b"t")),
                "*3 $12 LOCK.RELEASE $1 k $1 t ",
            ),
            (
                text(|out| fence(out, b"k", b"t", n(7).unwrap(), n(41).unwrap())),
                "*5 $10 LOCK.FENCE $1 k $1 t $1 7 $2 41 ",
            ),
        ];
        for (said, expected) in rows {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn ttls_are_whole_milliseconds_and_never_zero() {
        for (nanos, expected) in [(0, 1), (999_999, 1), (1_999_999, 1), (2_000_000, 2)] {
            assert_eq!(millis(Duration::from_nanos(nanos)), expected);
        }
    }
}
