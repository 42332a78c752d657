//! A shape's answers and the unit of its TTL.

/// A shape's answer in one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// An integer reply.
    Integer(i64),
    /// The null reply.
    Nil,
}

/// The unit of a TTL argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Whole seconds, as EX and EXPIRE take them.
    Seconds,
    /// Whole milliseconds, as PX and PEXPIRE take them.
    Millis,
}
