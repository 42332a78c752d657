//! What the holder of a lock says of itself, for people, and since when it has held the lock `[C2]`.

use locknode_resp::Encoder;

use crate::time::Time;

/// A label with the time of the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label<'a> {
    pub(crate) text: &'a [u8],
    /// `None`: before this run of the node.
    pub(crate) since: Option<Time>,
}

/// A label outside the table, while a script or transaction runs.
#[derive(Clone, Debug)]
pub(crate) struct OwnedLabel {
    text: Box<[u8]>,
    since: Option<Time>,
}

impl<'a> Label<'a> {
    /// Returns the label of a lock that is granted now; replies with the error if it is not one.
    ///
    /// It is shown in terminals and logs, so it is printable, and as ASCII alone it can hide nothing.
    pub(crate) fn new(text: &'a [u8], now: Time, reply: &mut Encoder<'_>) -> Option<Self> {
        if text.len() > LABEL_LEN_MAX {
            reply.error("ERR a label has at most 64 bytes");
            return None;
        }
        if !is_label(text) {
            reply.error("ERR a label is printable ASCII, and not empty");
            return None;
        }
        let since = Some(now);
        Some(Self { text, since })
    }

    /// Returns the label of a lock that an earlier run has granted.
    pub(crate) fn restored(text: &'a [u8]) -> Option<Self> {
        is_label(text).then_some(Self { text, since: None })
    }

    /// Returns how long the lock has been held, as replies tell it; -1 for since before this run.
    pub(crate) fn held_ms(&self, now: Time) -> i64 {
        self.since.map_or(-1, |since| {
            i64::try_from(now.since(since).as_millis()).unwrap_or(i64::MAX)
        })
    }

    pub(crate) fn to_owned(self) -> OwnedLabel {
        OwnedLabel {
            text: self.text.into(),
            since: self.since,
        }
    }
}

impl OwnedLabel {
    pub(crate) fn borrow(&self) -> Label<'_> {
        Label {
            text: &self.text,
            since: self.since,
        }
    }
}

fn is_label(text: &[u8]) -> bool {
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
    !text.is_empty() && text.len() <= LABEL_LEN_MAX && text.iter().all(is_printable)
}

/// The longest label in bytes: host, process and program fit, and a label takes no more memory than
/// the lock that has it.
pub(crate) const LABEL_LEN_MAX: usize = 64;
