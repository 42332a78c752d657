//! What can go wrong, told apart by what a caller does about it.

/// The kinds of errors, by what a caller does about them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another client holds the lock, a majority of the nodes says so: try later.
    Busy,
    /// Nobody is known to hold the lock, and it could not be had: several clients tried at the same moment, again and
    /// again, or keys that are left on a few nodes were in the way. Try later.
    Contended,
    /// No majority of the nodes could be reached or took part: look at the nodes.
    NoQuorum,
    /// The lock was held and a majority of the nodes says it no longer is: stop the work it protects.
    Lost,
    /// The lock's validity ended, or would have before the caller could use it: stop the work it protects.
    Expired,
    /// The lock was released, or its client closed, before the operation was done.
    Cancelled,
    /// The time to wait ended before the nodes had decided.
    Timeout,
    /// Something in the configuration or the arguments is wrong; nothing was sent.
    Config,
}

impl ErrorKind {
    /// A short name for labels; it never changes, while the sentence of an error may.
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
