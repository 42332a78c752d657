//! The token that proves who holds a lock.

use std::fmt;

use crate::argument_error::ArgumentError;

/// The value stored under a lock's key. Only those who know it can extend or release the lock.
///
/// The client makes a new one for every attempt: 20 random bytes as 40 hexadecimal digits.
/// [`Token::new`] takes one from another process, for example to release its lock.
///
/// ```
/// # use redlock_proto as redlock_client;
/// use redlock_client::Token;
///
/// let token = Token::new("a4f1c9").unwrap();
/// assert_eq!(token.as_ref(), b"a4f1c9");
/// assert!(Token::new("").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    len: u8,
    /// Zero from `len` on, so that equal tokens have equal bytes.
    bytes: [u8; TOKEN_LEN_MAX],
}

impl Token {
    /// An existing token: 1 to [`TOKEN_LEN_MAX`] arbitrary bytes.
    ///
    /// # Errors
    /// If the token is empty or too long.
    pub fn new(token: impl AsRef<[u8]>) -> Result<Self, ArgumentError> {
        let token = token.as_ref();
        let mut bytes = [0; TOKEN_LEN_MAX];
        match (u8::try_from(token.len()), bytes.get_mut(..token.len())) {
            (Ok(len), Some(head)) if len > 0 => {
                head.copy_from_slice(token);
                Ok(Self { len, bytes })
            }
            _ => Err(ArgumentError::new(format!(
                "a token has 1 to {TOKEN_LEN_MAX} bytes, got {}",
                token.len()
            ))),
        }
    }

    /// A new token made of random bytes.
    pub fn from_random(random: [u8; TOKEN_RANDOM_BYTES]) -> Self {
        let mut bytes = [0; TOKEN_LEN_MAX];
        for (pair, byte) in bytes.chunks_exact_mut(2).zip(random) {
            if let [high, low] = pair {
                *high = hex_digit(byte >> 4);
                *low = hex_digit(byte & 15);
            }
        }
        // Two digits for each of 20 bytes.
        Self { len: 40, bytes }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Token {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// As text; bytes outside printable ASCII are escaped.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// A token is a secret, so debug output shows only its beginning.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.as_bytes().get(..6).unwrap_or_default();
        write!(f, "Token({}..)", head.escape_ascii())
    }
}

fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + (nibble - 10),
    }
}

/// The number of random bytes in a token, as in the Redlock description.
pub const TOKEN_RANDOM_BYTES: usize = 20;

/// The longest token, in bytes: room for the UUIDs and host names that other libraries use, and small
/// enough to store inline.
pub const TOKEN_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_tokens_are_forty_hexadecimal_digits() {
        let mut random = [0xff; TOKEN_RANDOM_BYTES];
        random[0] = 0x0a;
        let token = Token::from_random(random);
        assert_eq!(token.to_string(), format!("0a{}", "f".repeat(38)));
        assert_eq!(format!("{token:?}"), "Token(0affff..)");
    }

    #[test]
    fn tokens_are_opaque_bytes_up_to_their_limit() {
        for (len, is_ok) in [(0, false), (1, true), (64, true), (65, false), (300, false)] {
            assert_eq!(Token::new(vec![0xfe; len]).is_ok(), is_ok, "{len} bytes");
        }
        assert_eq!(Token::new(b"a\r\n\0").unwrap().to_string(), "a\\r\\n\\x00");
    }
}
