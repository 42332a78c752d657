//! Conditions on a key's value: IFEQ, IFNE, IFDEQ, IFDNE.
//!
//! They make release and extension single commands: `DELEX key IFEQ token`, `SET key token PX ttl
//! IFEQ token`.

use locknode_resp::Encoder;
use xxhash_rust::xxh3::xxh3_64;

use super::option_word::OptionWord;

/// A condition on a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition<'a> {
    /// The value is this.
    Equal(&'a [u8]),
    /// The value is not this.
    NotEqual(&'a [u8]),
    /// The digest of the value is this.
    DigestEqual(&'a [u8]),
    /// The digest of the value is not this.
    DigestNotEqual(&'a [u8]),
}

/// A digest argument does not have the length of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidDigest;

impl<'a> Condition<'a> {
    /// Returns the condition of an option word and its operand; `None` for other words.
    #[inline]
    pub(crate) fn of(word: OptionWord, operand: &'a [u8]) -> Option<Self> {
        match word {
            OptionWord::IfEq => Some(Self::Equal(operand)),
            OptionWord::IfNe => Some(Self::NotEqual(operand)),
            OptionWord::IfDeq => Some(Self::DigestEqual(operand)),
            OptionWord::IfDne => Some(Self::DigestNotEqual(operand)),
            _ => None,
        }
    }

    /// Returns whether the condition holds for a value.
    ///
    /// # Errors
    ///
    /// Refuses a digest that is not 16 bytes long. Like Redis, it checks only the length.
    #[inline]
    pub(crate) fn holds(self, value: &[u8]) -> Result<bool, InvalidDigest> {
        match self {
            Self::Equal(operand) => Ok(value == operand),
            Self::NotEqual(operand) => Ok(value != operand),
            Self::DigestEqual(digest) => has_digest(value, digest),
            Self::DigestNotEqual(digest) => has_digest(value, digest).map(|is_equal| !is_equal),
        }
    }

    /// Returns whether the condition holds for a missing key, where a command may create it.
    #[inline]
    pub(crate) const fn holds_for_missing(self) -> bool {
        matches!(self, Self::NotEqual(_) | Self::DigestNotEqual(_))
    }
}

impl InvalidDigest {
    #[cold]
    pub(crate) fn refuse(self, reply: &mut Encoder<'_>) {
        reply.error("ERR must be exactly 16 hexadecimal characters");
    }
}

/// Returns the digest of a value: 64-bit XXH3 in lower-case hexadecimal digits.
pub(crate) fn digest(value: &[u8]) -> [u8; DIGEST_LEN] {
    let mut hash = xxh3_64(value);
    let mut digits = [b'0'; DIGEST_LEN];
    for digit in digits.iter_mut().rev() {
        *digit = HEX[(hash & 0xf) as usize];
        hash >>= 4;
    }
    digits
}

fn has_digest(value: &[u8], wanted: &[u8]) -> Result<bool, InvalidDigest> {
    if wanted.len() != DIGEST_LEN {
        return Err(InvalidDigest);
    }
    Ok(digest(value).eq_ignore_ascii_case(wanted))
}

/// 64 bits in hexadecimal.
const DIGEST_LEN: usize = 16;
const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn the_digest_matches_the_examples_in_redis_documentation() {
        let rows = [
            ("hello", "9555e8555c62dcfd"),
            ("", "2d06800538d394c2"),
            ("123", "404a763b3f4c8c9a"),
            ("v8", "0cc76dbb41381419"),
        ];
        for (value, want) in rows {
            assert_eq!(digest(value.as_bytes()), want.as_bytes(), "{value:?}");
        }
    }
}
