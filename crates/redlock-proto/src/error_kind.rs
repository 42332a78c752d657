//! The kinds of errors.

/// The kinds of errors, grouped by what a caller does about them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A majority of the nodes reports another holder: try later.
    Busy,
    /// No holder was found, but the lock could not be acquired: clients kept splitting the votes, or a
    /// few nodes still have an old key. Try later.
    Contended,
    /// No majority of the nodes could be reached or took part: check the nodes.
    NoQuorum,
    /// A majority of the nodes no longer holds the lock: stop the work it protects.
    Lost,
    /// The lock expired, or would have before the caller could use it: stop the work it protects.
    Expired,
    /// The lock was released, or the client closed, before the operation finished.
    Cancelled,
    /// The wait ended before the nodes had decided.
    Timeout,
    /// The configuration or an argument is wrong; nothing was sent.
    Config,
}

impl ErrorKind {
    /// A short name for metric labels. It never changes, while an error's message may.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Contended => "contended",
            Self::NoQuorum => "no_quorum",
            Self::Lost => "lost",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Config => "config",
        }
    }
}
