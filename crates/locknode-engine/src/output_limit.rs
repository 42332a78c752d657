//! `client-output-buffer-limit`, whose value consists of groups of four words.

#[cfg(feature = "compat")]
use std::time::Duration;

use locknode_resp::parse_integer;

use crate::byte_size;

/// What may wait for a client that does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLimits {
    /// The longest reply in bytes, the hard limit of class `normal`; 0 for no limit.
    pub normal: u64,
    /// What may wait that the client did not ask for just now: messages and invalidations.
    pub pubsub: PubsubLimit,
}

/// The limit of class `pubsub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PubsubLimit {
    /// Bytes at which the connection is closed at once; 0 for no limit.
    pub hard: u64,
    /// Bytes beyond which it is closed after a while; 0 for no limit.
    pub soft: u64,
    /// That while; 0 for no limit.
    pub soft_seconds: u64,
}

impl Default for OutputLimits {
    /// Redis has no limit for normal clients, so one MGET can request any amount of memory. Its
    /// limit for subscribers is the one here.
    fn default() -> Self {
        Self {
            normal: 64 << 20,
            pubsub: PubsubLimit {
                hard: 32 << 20,
                soft: 8 << 20,
                soft_seconds: 60,
            },
        }
    }
}

impl OutputLimits {
    /// Changes the limits of the classes that the text names.
    pub(crate) fn set(&mut self, text: &[u8]) -> Result<(), &'static str> {
        let words: Vec<&[u8]> = text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .collect();
        let groups = words.chunks_exact(4);
        if !groups.remainder().is_empty() {
            return Err("Wrong number of arguments in buffer limit configuration.");
        }
        let mut changed = *self;
        for group in groups {
            let &[class, hard, soft, seconds] = group else {
                continue;
            };
            let is = |name: &[u8]| class.eq_ignore_ascii_case(name);
            if !is(b"normal") && !is(b"pubsub") && !is(b"slave") && !is(b"replica") {
                return Err("Invalid client class specified in buffer limit configuration.");
            }
            let limits = (
                byte_size::parse(hard),
                byte_size::parse(soft),
                parse_integer(seconds).map(u64::try_from),
            );
            let (Some(hard), Some(soft), Some(Ok(soft_seconds))) = limits else {
                return Err(
                    "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
                );
            };
            if is(b"normal") && soft != 0 && soft_seconds != 0 {
                return Err("Soft limits are not supported for class normal, use 0 0.");
            }
            if is(b"normal") {
                changed.normal = hard;
            } else if is(b"pubsub") {
                changed.pubsub = PubsubLimit {
                    hard,
                    soft,
                    soft_seconds,
                };
            }
        }
        *self = changed;
        Ok(())
    }

    /// Returns the text that sets these limits.
    pub(crate) fn show(&self, size: fn(u64) -> String) -> String {
        let PubsubLimit {
            hard,
            soft,
            soft_seconds,
        } = self.pubsub;
        let (normal, hard, soft) = (size(self.normal), size(hard), size(soft));
        format!("normal {normal} 0 0 pubsub {hard} {soft} {soft_seconds}")
    }
}

#[cfg(feature = "compat")]
impl PubsubLimit {
    /// Returns the soft limit; `usize::MAX` for none.
    pub(crate) fn soft_size(self) -> usize {
        match (self.soft, self.soft_seconds) {
            (0, _) | (_, 0) => usize::MAX,
            (soft, _) => usize::try_from(soft).unwrap_or(usize::MAX),
        }
    }

    pub(crate) const fn soft_time(self) -> Duration {
        Duration::from_secs(self.soft_seconds)
    }
}
