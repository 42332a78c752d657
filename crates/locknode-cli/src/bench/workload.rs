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
    /// Where the [`NUMBER_LEN`] digits of the key's number stand, if it has a key.
    pub(super) number_at: Option<usize>,
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

/// The SHA1s of [`RELEASE_SCRIPT`] and [`EXTEND_SCRIPT`].
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptShas {
    pub(super) release: String,
    pub(super) extend: String,
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

    /// Whether it sends scripts by their SHA1.
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
            Step::new("acquire", &args, Some(1), "+OK\r\n")
        };
        let release = |args: &[&[u8]], key_at| Step::new("release", args, Some(key_at), ":1\r\n");
        let lock = |floor: &[&[u8]]| {
            let args = [&[b"LOCK.ACQUIRE", key, token, ttl_ms.as_bytes()], floor].concat();
            vec![
                Step::new("acquire", &args, Some(1), &granted),
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
            Step::new("extend", &args, Some(3), ":1\r\n")
        };
        match self {
            Self::Set => vec![acquire()],
            Self::CycleEvalsha => vec![acquire(), release_script()],
            Self::Extend => vec![acquire(), extend_script().sent(80, 0), release_script()],
            Self::Mixed => {
                let contender = vec![OTHER_TOKEN; token.len()];
                let args = [b"SET", key, &contender, b"NX", b"PX", ttl_ms.as_bytes()];
                let refused = Step::new("refused", &args, Some(1), "$-1\r\n").sent(1, 1);
                let (extend, release) = (extend_script(), release_script());
                vec![acquire(), refused, extend.sent(10, 2), release.sent(10, 3)]
            }
            Self::CycleDelex => vec![acquire(), release(&[b"DELEX", key, b"IFEQ", token], 1)],
            Self::CycleDelifeq => vec![acquire(), release(&[b"DELIFEQ", key, token], 1)],
            Self::CycleLock => lock(&[]),
            Self::CycleLockFloor => lock(&[b"FLOOR", FLOOR]),
            Self::Ping => vec![Step::new("ping", &[b"PING"], None, "+PONG\r\n")],
        }
    }
}

impl Step {
    fn new(name: &'static str, args: &[&[u8]], key: Option<usize>, reply: &str) -> Self {
        // What stands before and in the key, less the digits at its end. The count in the first line is of one digit
        // in both.
        let until_key = |key| encode(&args[..=key]).len() - 2 - NUMBER_LEN;
        Self {
            name,
            request: encode(args),
            number_at: key.map(until_key),
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
                let Some(at) = step.number_at else { continue };
                assert_eq!(&step.request[at..at + NUMBER_LEN], &[b'0'; NUMBER_LEN]);
                assert!(
                    step.request[..at].ends_with(b"\r\nlock:"),
                    "{workload:?} {}",
                    step.name
                );
                assert!(step.request[at + NUMBER_LEN..].starts_with(b"\r\n"));
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
