//! The two dialects of the protocol that a connection can speak.

/// The dialect in which replies are written; a connection starts with RESP2 and HELLO changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// The dialect of every client; nulls, maps and doubles are spelt with older types.
    #[default]
    Resp2,
    /// Adds nulls, maps, sets, booleans, doubles, verbatim strings and pushes.
    Resp3,
}
