//! What a benchmark sends: steps that are repeated, each a kind of command with the only right reply to it.

use clap::ValueEnum;

use crate::server_connection::encode;

/// The kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Workload {
    /// SET NX PX on keys that are always new; they stay until their TTL has passed
    Set,
    /// SET NX PX, then release by the script that lock libraries use (EVALSHA)
    CycleEvalsha,
    /// SET NX PX, then release by DELEX key IFEQ token (Redis 8.4, locknode)
    CycleDelex,
    /// SET NX PX, then release by DELIFEQ key token (Valkey 9, locknode)
    CycleDelifeq,
    /// LOCK.ACQUIRE, then LOCK.RELEASE (locknode)
    CycleLock,
    /// The same with a FLOOR that every fencing token is above
    CycleLockFloor,
    /// Acquire and unlock of Redisson's RLock by its scripts (EVALSHA), and DEL of what the unlock leaves
    CycleRedisson,
    /// SET NX PX, eight extensions and a release, by the scripts that lock libraries use (EVALSHA)
    Extend,
    /// Locks held while more are acquired: SET NX PX, again in vain for a tenth of them, extended and released by EVALSHA
    Mixed,
    /// PING, the least that a server can do
    Ping,
}

/// One command of a workload, with a place for the number of the key.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// How it is called in the results.
    pub(super) name: &'static str,
    /// The command on the wire.
    pub(super) request: Vec<u8>,
    /// Where the [`NUMBER_LEN`] digits of the key's number stand, once for each of its keys.
    pub(super) numbers_at: Vec<usize>,
    /// The only right reply; [`NUMBER`] in it stands for a number of any length.
    pub(super) reply: Vec<u8>,
    /// How often it is sent in ten operations: ten times for once in each.
    pub(super) per_ten: usize,
    /// How many more pipelines of locks the connection acquires before it is sent.
    pub(super) after: usize,
}

/// What the commands of one connection have in common.
#[derive(Clone, Debug)]
pub(super) struct Material {
    /// The key up to its number.
    pub(super) key_prefix: Vec<u8>,
    pub(super) token: Vec<u8>,
    pub(super) ttl_ms: u64,
    /// The SHA1s of the scripts, as the server returned them; empty for a workload without scripts.
    pub(super) scripts: ScriptShas,
}

/// The SHA1s of [`RELEASE_SCRIPT`] and [`EXTEND_SCRIPT`], and those by which Redisson's scripts run.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptShas {
    pub(super) release: String,
    pub(super) extend: String,
    pub(super) redisson_acquire: String,
    pub(super) redisson_unlock: String,
}

/// A script of a library: the SHA1 of its text, and a text of our own that does the same with the same commands, for a
/// server that does not know it by the SHA1.
#[derive(Clone, Copy, Debug)]
pub(super) struct LibraryScript {
    pub(super) sha: &'static str,
    pub(super) text: &'static str,
}

impl Workload {
    /// The name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Whether every command takes a key that was never used.
    pub(super) const fn needs_fresh_keys(self) -> bool {
        matches!(self, Self::Set)
    }

    /// Whether it sends [`RELEASE_SCRIPT`] or [`EXTEND_SCRIPT`] by its SHA1.
    pub(super) const fn needs_scripts(self) -> bool {
        matches!(self, Self::CycleEvalsha | Self::Extend | Self::Mixed)
    }

    /// Pipelines of locks that a connection holds at the same time.
    pub(super) const fn pipelines_held(self) -> u64 {
        match self {
            Self::Mixed => MIXED_HELD,
            _ => 1,
        }
    }

    /// The commands that make one operation, in order.
    pub(super) fn steps(self, material: &Material) -> Vec<Step> {
        let ttl_ms = material.ttl_ms.to_string();
        let granted = format!("*3\r\n:1\r\n:{}\r\n:{ttl_ms}\r\n", char::from(NUMBER));
        let key = [material.key_prefix.as_slice(), &[b'0'; NUMBER_LEN]].concat();
        let (key, token) = (key.as_slice(), material.token.as_slice());
        let acquire = || {
            let args: [&[u8]; 6] = [b"SET", key, token, b"NX", b"PX", ttl_ms.as_bytes()];
            Step::new("acquire", &args, &[1], "+OK\r\n")
        };
        let release = |args: &[&[u8]], key_at| Step::new("release", args, &[key_at], ":1\r\n");
        let lock = |floor: &[&[u8]]| {
            let args = [&[b"LOCK.ACQUIRE", key, token, ttl_ms.as_bytes()], floor].concat();
            vec![
                Step::new("acquire", &args, &[1], &granted),
                release(&[b"LOCK.RELEASE", key, token], 1),
            ]
        };
        let release_script = || {
            let sha = material.scripts.release.as_bytes();
            release(&[b"EVALSHA", sha, b"1", key, token], 3)
        };
        let extend_script = || {
            let sha = material.scripts.extend.as_bytes();
            let args = [b"EVALSHA", sha, b"1", key, token, ttl_ms.as_bytes()];
            Step::new("extend", &args, &[3], ":1\r\n")
        };
        match self {
            Self::Set => vec![acquire()],
            Self::CycleEvalsha => vec![acquire(), release_script()],
            Self::Extend => vec![acquire(), extend_script().sent(80, 0), release_script()],
            Self::Mixed => {
                let contender = vec![OTHER_TOKEN; token.len()];
                let args = [b"SET", key, &contender, b"NX", b"PX", ttl_ms.as_bytes()];
                let refused = Step::new("refused", &args, &[1], "$-1\r\n").sent(1, 1);
                let (extend, release) = (extend_script(), release_script());
                vec![acquire(), refused, extend.sent(10, 2), release.sent(10, 3)]
            }
            Self::CycleDelex => vec![acquire(), release(&[b"DELEX", key, b"IFEQ", token], 1)],
            Self::CycleDelifeq => vec![acquire(), release(&[b"DELIFEQ", key, token], 1)],
            Self::CycleLock => lock(&[]),
            Self::CycleLockFloor => lock(&[b"FLOOR", FLOOR]),
            Self::CycleRedisson => {
                let scripts = &material.scripts;
                let (acquire, unlock) = (&scripts.redisson_acquire, &scripts.redisson_unlock);
                let (ttl_ms, latch) = (ttl_ms.as_bytes(), [LATCH, key].concat());
                let acquire: [&[u8]; 6] =
                    [b"EVALSHA", acquire.as_bytes(), b"1", key, ttl_ms, token];
                let unlock: [&[u8]; 11] = [
                    b"EVALSHA",
                    unlock.as_bytes(),
                    b"3",
                    key,
                    CHANNEL,
                    &latch,
                    b"0",
                    ttl_ms,
                    token,
                    b"PUBLISH",
                    ttl_ms,
                ];
                vec![
                    Step::new("acquire", &acquire, &[3], "$-1\r\n"),
                    Step::new("unlock", &unlock, &[3, 5], ":1\r\n"),
                    Step::new("forget", &[b"DEL", &latch], &[1], ":1\r\n"),
                ]
            }
            Self::Ping => vec![Step::new("ping", &[b"PING"], &[], "+PONG\r\n")],
        }
    }
}

impl Step {
    fn new(name: &'static str, args: &[&[u8]], keys: &[usize], reply: &str) -> Self {
        let request = encode(args);
        // What stands after the digits at the end of a key.
        let after_key = |&key: &usize| encode(&args[key + 1..]).len() - COUNT_LEN + 2;
        let number_at = |key| request.len() - after_key(key) - NUMBER_LEN;
        Self {
            name,
            numbers_at: keys.iter().map(number_at).collect(),
            request,
            reply: reply.into(),
            per_ten: 10,
            after: 0,
        }
    }

    /// The same, sent that often, for the locks of an earlier pipeline.
    pub(super) fn sent(self, per_ten: usize, after: usize) -> Self {
        Self {
            per_ten,
            after,
            ..self
        }
    }
}

/// Stands for a number in a reply.
pub(super) const NUMBER: u8 = b'#';

/// As long as a fencing token is, and below all of them.
const FLOOR: &[u8] = b"1000000000000000";

/// The first line of a request of up to nine arguments.
const COUNT_LEN: usize = 4;

/// What Redisson calls its channel and, before a name of its own, what an unlock leaves.
const CHANNEL: &[u8] = b"redisson_lock__channel";
const LATCH: &[u8] = b"redisson_unlock_latch:";

/// Fills the token of a client that asks for what another one holds: no digit, so that it is nobody else's.
const OTHER_TOKEN: u8 = b'x';

/// One pipeline that is acquired, and those that the later steps of `Mixed` come after.
const MIXED_HELD: u64 = 4;

/// Digits of a key's number, hexadecimal.
pub(super) const NUMBER_LEN: usize = 16;

/// The release that the Redis documentation gives and most lock libraries send.
pub(super) const RELEASE_SCRIPT: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n    return redis.call(\"del\",KEYS[1])\nelse\n    return 0\nend";

/// The extension of the same libraries.
pub(super) const EXTEND_SCRIPT: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n    return redis.call(\"pexpire\",KEYS[1],ARGV[2])\nelse\n    return 0\nend";

/// RLock's acquire, as Redisson 4.7 sends it.
pub(super) const REDISSON_ACQUIRE: LibraryScript = LibraryScript {
    sha: "149c5a8bf18676fd99e9e6e24923bd64d9b62f94",
    text: "local lock, holder = KEYS[1], ARGV[2]
if redis.call('exists', lock) == 1 and redis.call('hexists', lock, holder) == 0 then
    return redis.call('pttl', lock)
end
redis.call('hincrby', lock, holder, 1)
redis.call('pexpire', lock, ARGV[1])
return false",
};

/// Its unlock.
pub(super) const REDISSON_UNLOCK: LibraryScript = LibraryScript {
    sha: "6866459238a13a701d42f4971f12d9f3a50e2442",
    text: "local lock, latch, holder = KEYS[1], KEYS[3], ARGV[3]
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
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_key_stands_where_the_step_says() {
        let material = Material {
            key_prefix: b"lock:".to_vec(),
            token: b"token".to_vec(),
            ttl_ms: 30_000,
            scripts: ScriptShas {
                release: "a".repeat(40),
                extend: "b".repeat(40),
                redisson_acquire: "c".repeat(40),
                redisson_unlock: "d".repeat(40),
            },
        };
        for workload in Workload::value_variants() {
            let steps = workload.steps(&material);
            let last = steps.iter().map(|step| step.after).max().expect("a step");
            assert_eq!(
                workload.pipelines_held(),
                1 + u64::try_from(last).expect("few")
            );
            for step in steps {
                for at in step.numbers_at {
                    assert_eq!(&step.request[at..at + NUMBER_LEN], &[b'0'; NUMBER_LEN]);
                    assert!(
                        step.request[..at].ends_with(b"lock:"),
                        "{workload:?} {}",
                        step.name
                    );
                    assert!(step.request[at + NUMBER_LEN..].starts_with(b"\r\n"));
                }
            }
        }
        let steps = Workload::CycleDelifeq.steps(&material);
        assert_eq!(
            steps[0].request,
            b"*6\r\n$3\r\nSET\r\n$21\r\nlock:0000000000000000\r\n$5\r\ntoken\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n"
        );
        assert_eq!(
            steps[1].request,
            b"*3\r\n$7\r\nDELIFEQ\r\n$21\r\nlock:0000000000000000\r\n$5\r\ntoken\r\n"
        );
    }
}
