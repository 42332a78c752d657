//! The two dialects of the protocol that a connection can speak.

/// The dialect of replies; a connection starts with RESP2, and HELLO changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// The dialect that every client knows; nulls, maps and doubles are written as older types.
    #[default]
    Resp2,
    /// Adds nulls, maps, sets, booleans, doubles, verbatim strings and pushes.
    Resp3,
}
