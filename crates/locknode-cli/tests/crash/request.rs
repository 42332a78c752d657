//! What clients ask for, as they mean it and as it is on the wire.

use std::time::{Duration, Instant};

use locknode_resp::Reply;

use crate::ledger::{Held, Ledger};

/// A request for or about a lock.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) what: What,
    pub(crate) lock: Held,
    /// Of an acquisition or an extension; `None` is for ever.
    pub(crate) ttl: Option<Duration>,
    /// No fence counter of the answer may be below.
    pub(crate) floor: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Set,
    Acquire {
        hint: u64,
    },
    /// As `Set`, with replies turned off before and on afterwards: the one reply says nothing of the lock.
    Mute,
    Extend,
    Release {
        by_script: bool,
        was_eternal: bool,
    },
    Fence {
        fence: u64,
    },
    Get,
    LockGet,
    Ping,
}

impl Request {
    pub(crate) fn new(what: What, lock: Held) -> Self {
        Self {
            what,
            lock,
            ttl: None,
            floor: 0,
        }
    }

    /// Tells the ledger what is about to be sent.
    pub(crate) fn begin(&mut self, ledger: &mut Ledger<'_>, sent: Instant) {
        self.floor = ledger.fence_floor(&self.lock.key);
        match &mut self.what {
            What::Set | What::Mute | What::Acquire { .. } => {
                ledger.acquires(&self.lock, sent, self.ttl);
            }
            What::Extend => ledger.extends(&self.lock, sent, self.ttl.expect("a TTL")),
            What::Release { was_eternal, .. } => *was_eternal = ledger.releases(&self.lock, sent),
            What::Fence { .. } | What::Get | What::LockGet | What::Ping => {}
        }
    }

    /// The commands that are sent for it.
    pub(crate) fn commands(&self) -> Vec<Vec<String>> {
        let line = self.line();
        let lines = match self.what {
            What::Mute => vec!["CLIENT REPLY OFF", &line, "CLIENT REPLY ON"],
            _ => vec![&*line],
        };
        let words = |line: &str| line.split(' ').map(to_wire).collect();
        lines.into_iter().map(words).collect()
    }

    /// The command for people, without what is long.
    pub(crate) fn line(&self) -> String {
        let Held { key, token, .. } = &self.lock;
        let ms = self.ttl.unwrap_or_default().as_millis();
        match self.what {
            What::Set | What::Mute if self.ttl.is_none() => format!("SET {key} {token} NX"),
            What::Set | What::Mute => format!("SET {key} {token} NX PX {ms}"),
            What::Acquire { hint: 0 } => format!("LOCK.ACQUIRE {key} {token} {ms}"),
            What::Acquire { hint } => format!("LOCK.ACQUIRE {key} {token} {ms} FLOOR {hint}"),
            What::Extend => format!("LOCK.EXTEND {key} {token} {ms}"),
            What::Release {
                by_script: true, ..
            } => format!("EVAL {RELEASE} 1 {key} {token}"),
            What::Release { .. } => format!("LOCK.RELEASE {key} {token}"),
            What::Fence { fence } => {
                let grant = self.lock.grant.unwrap_or_default();
                format!("LOCK.FENCE {key} {token} {grant} {fence}")
            }
            What::Get => format!("GET {key}"),
            What::LockGet => format!("LOCK.GET {key}"),
            What::Ping => "PING".to_owned(),
        }
    }

    /// Whether it asks for a lock that needs the log.
    pub(crate) fn is_long(&self, max_ttl: Duration) -> bool {
        match self.what {
            What::Set | What::Mute | What::Acquire { .. } | What::Extend => {
                self.ttl.is_none_or(|ttl| ttl > max_ttl)
            }
            _ => false,
        }
    }
}

/// A reply for people.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Bulk(text) => from_wire(text),
        Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Reply::Array(replies) => {
            let replies: Vec<String> = replies.iter().map(text).collect();
            format!("[{}]", replies.join(", "))
        }
        Reply::Integer(number) => number.to_string(),
        Reply::Null => "null".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A word as it is sent: a token that is to fill the log, and a script, in full.
fn to_wire(word: &str) -> String {
    match word {
        RELEASE => RELEASE_SCRIPT.to_owned(),
        fat if fat.ends_with(FAT) => fat.to_owned() + &"x".repeat(FAT_LEN),
        word => word.to_owned(),
    }
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

/// Stands for [`RELEASE_SCRIPT`].
const RELEASE: &str = "(release)";

/// As lock libraries release.
const RELEASE_SCRIPT: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// Marks tokens that are long.
pub(crate) const FAT: &str = "-fat";

/// So long that the log goes through several segments and is compacted.
const FAT_LEN: usize = 60_000;
