//! One change of a key, as a shard records it for those who want to know.

/// One change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyChange {
    pub(crate) db: u8,
    /// Empty when all keys went.
    pub(crate) key: Box<[u8]>,
    pub(crate) kind: ChangeKind,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// It did not exist before.
    Created,
    /// It has another value, or the same one set again.
    Written,
    /// Its deadline was set or moved.
    DeadlineMoved,
    /// Its deadline was removed.
    DeadlineRemoved,
    /// A command removed it.
    Removed,
    /// Its deadline passed, as a command or the sweep has seen.
    Expired,
    /// Every key of its database was removed, or of all if `is_all`.
    Cleared { is_all: bool },
    /// It was read and is missing, which changes nothing; only events tell of it.
    Missed,
    /// Nothing: a tracking client has read it. A script may set a key and read it, and then the
    /// client wants to know of the changes after that, so reads keep their place among the changes.
    #[cfg(feature = "compat")]
    Read,
}

/// What led to a change.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "compat"), expect(dead_code, reason = "no observers"))]
pub(crate) struct Cause {
    /// The command's name in lower case; `None` for the sweep.
    pub(crate) command: Option<&'static str>,
    /// The client that sent it.
    pub(crate) client: Option<u64>,
}
