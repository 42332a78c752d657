//! What clients ask for, as they mean it and as it is on the wire.

use std::time::{Duration, Instant};

use locknode_resp::Reply;

use crate::ledger::Ledger;

/// A lock that the client holds, or has to get rid of.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) key: String,
    pub(crate) token: String,
    /// The number of the grant, where it was told.
    pub(crate) grant: Option<u64>,
    pub(crate) is_eternal: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Set {
        lock: Held,
        ttl: Option<Duration>,
        floor: u64,
    },
    Acquire {
        lock: Held,
        ttl: Duration,
        floor: u64,
        hint: u64,
    },
    /// As `Set`, with replies turned off before and on afterwards: the one reply says nothing of the lock.
    Mute {
        lock: Held,
        ttl: Option<Duration>,
    },
    Extend {
        lock: Held,
        ttl: Duration,
    },
    Release {
        lock: Held,
        by_script: bool,
        was_eternal: bool,
    },
    Fence {
        lock: Held,
        fence: u64,
    },
    Get {
        key: String,
    },
    LockGet {
        key: String,
        floor: u64,
    },
    Ping,
}

impl Request {
    /// Tells the ledger what is about to be sent.
    pub(crate) fn begin(&mut self, ledger: &mut Ledger<'_>, sent: Instant) {
        match self {
            Self::Set { lock, ttl, floor } => {
                *floor = ledger.fence_floor(&lock.key);
                ledger.acquires(&lock.key, &lock.token, sent, *ttl);
            }
            Self::Mute { lock, ttl } => ledger.acquires(&lock.key, &lock.token, sent, *ttl),
            Self::Acquire {
                lock, ttl, floor, ..
            } => {
                *floor = ledger.fence_floor(&lock.key);
                ledger.acquires(&lock.key, &lock.token, sent, Some(*ttl));
            }
            Self::Extend { lock, ttl } => ledger.extends(&lock.key, &lock.token, sent, *ttl),
            Self::Release {
                lock, was_eternal, ..
            } => {
                *was_eternal = ledger.releases(&lock.key, &lock.token, sent);
            }
            Self::LockGet { key, floor } => *floor = ledger.fence_floor(key),
            Self::Fence { .. } | Self::Get { .. } | Self::Ping => {}
        }
    }

    /// The commands that are sent for it.
    pub(crate) fn commands(&self) -> Vec<Vec<String>> {
        match self {
            Self::Mute { .. } => vec![
                words_of(&["CLIENT", "REPLY", "OFF"]),
                self.words(),
                words_of(&["CLIENT", "REPLY", "ON"]),
            ],
            _ => vec![self.words()],
        }
    }

    /// The words of the request.
    pub(crate) fn words(&self) -> Vec<String> {
        let ms = |ttl: &Duration| ttl.as_millis().to_string();
        let words = match self {
            Self::Set {
                lock, ttl: None, ..
            }
            | Self::Mute { lock, ttl: None } => vec!["SET", &lock.key, &lock.token, "NX"],
            Self::Set {
                lock,
                ttl: Some(ttl),
                ..
            }
            | Self::Mute {
                lock,
                ttl: Some(ttl),
            } => {
                return words_of(&["SET", &lock.key, &lock.token, "NX", "PX", &ms(ttl)]);
            }
            Self::Acquire {
                lock, ttl, hint: 0, ..
            } => {
                return words_of(&["LOCK.ACQUIRE", &lock.key, &lock.token, &ms(ttl)]);
            }
            Self::Acquire {
                lock, ttl, hint, ..
            } => {
                let hint = hint.to_string();
                return words_of(&[
                    "LOCK.ACQUIRE",
                    &lock.key,
                    &lock.token,
                    &ms(ttl),
                    "FLOOR",
                    &hint,
                ]);
            }
            Self::Extend { lock, ttl } => {
                return words_of(&["LOCK.EXTEND", &lock.key, &lock.token, &ms(ttl)]);
            }
            Self::Release {
                lock,
                by_script: true,
                ..
            } => vec!["EVAL", RELEASE, "1", &lock.key, &lock.token],
            Self::Release { lock, .. } => vec!["LOCK.RELEASE", &lock.key, &lock.token],
            Self::Fence { lock, fence } => {
                let grant = lock.grant.unwrap_or_default().to_string();
                return words_of(&[
                    "LOCK.FENCE",
                    &lock.key,
                    &lock.token,
                    &grant,
                    &fence.to_string(),
                ]);
            }
            Self::Get { key } => vec!["GET", key],
            Self::LockGet { key, .. } => vec!["LOCK.GET", key],
            Self::Ping => vec!["PING"],
        };
        words_of(&words)
    }

    /// Whether it asks for a lock that needs the log.
    pub(crate) fn is_long(&self, max_ttl: Duration) -> bool {
        match self {
            Self::Set { ttl, .. } | Self::Mute { ttl, .. } => ttl.is_none_or(|ttl| ttl > max_ttl),
            Self::Acquire { ttl, .. } | Self::Extend { ttl, .. } => *ttl > max_ttl,
            _ => false,
        }
    }
}

/// A reply for people.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Bulk(text) => from_wire(text),
        Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Reply::Array(replies) => format!(
            "[{}]",
            replies.iter().map(text).collect::<Vec<_>>().join(", ")
        ),
        Reply::Integer(number) => number.to_string(),
        Reply::Null => "null".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A token that is to fill the log, in full.
pub(crate) fn to_wire(word: String) -> String {
    let is_fat = word.ends_with(FAT);
    word + &"x".repeat(if is_fat { FAT_LEN } else { 0 })
}

/// The other way round; what is not whole is nobody's token.
pub(crate) fn from_wire(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let word = text.trim_end_matches('x');
    let padding = if word.ends_with(FAT) { FAT_LEN } else { 0 };
    if text.len() - word.len() == padding {
        word.to_owned()
    } else {
        format!("{word} and {} bytes", text.len() - word.len())
    }
}

fn words_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// As lock libraries release.
pub(crate) const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// Marks tokens that are long.
pub(crate) const FAT: &str = "-fat";

/// So long that the log goes through several segments and is compacted.
const FAT_LEN: usize = 60_000;
