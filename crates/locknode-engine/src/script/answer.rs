//! What a shape does to its key, and what it answers.

/// A shape's answer in one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// An integer reply.
    Integer(i64),
    /// The null reply.
    Nil,
}

/// What a script does to a key that holds its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// Deletes it.
    Delete,
    /// Sets a new TTL.
    Expire(Unit),
}

/// The unit of a TTL argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Whole seconds, as EX and EXPIRE take them.
    Seconds,
    /// Whole milliseconds, as PX and PEXPIRE take them.
    Millis,
}
