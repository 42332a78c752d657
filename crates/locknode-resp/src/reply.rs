//! A reply as a client sees it.

/// One reply, or one element of an aggregate reply.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// A simple string such as `OK`.
    Simple(Vec<u8>),
    /// An error, its code first.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// Null, in any of its three forms.
    Null,
    /// An array.
    Array(Vec<Self>),
    /// A map in the order in which it was sent, including repeated keys.
    Map(Vec<(Self, Self)>),
    /// A set in the order in which it was sent.
    Set(Vec<Self>),
    /// A message that answers no request.
    Push(Vec<Self>),
    /// A boolean.
    Boolean(bool),
    /// A floating-point number.
    Double(f64),
    /// A text with its format.
    Verbatim {
        /// Three letters such as `txt`.
        format: [u8; 3],
        /// The text without the format.
        text: Vec<u8>,
    },
    /// An integer of any length, in decimal.
    BigNumber(Vec<u8>),
}
