//! The number that lets a resource reject a late holder.

use std::fmt;
use std::num::NonZeroU64;

/// A number that grows with each holder of a lock.
///
/// Send it with every write that the lock protects. A resource that remembers the highest token and
/// rejects lower ones (see `FenceCheck`) is safe from a holder that was paused for too long.
///
/// Two locks of a key, acquired one after the other, have tokens in that order, whatever clocks, networks
/// and nodes do, and no two are equal. Tokens of different keys are not comparable.
///
/// A token is at least 1 and below 2^53, which every language and database can represent.
///
/// ```
/// # use redlock_proto as redlock_client;
/// use redlock_client::FencingToken;
///
/// let token = FencingToken::new(7).unwrap();
/// assert!(token < FencingToken::new(8).unwrap());
/// assert_eq!((token.get(), i64::from(token), token.to_string().as_str()), (7, 7, "7"));
/// assert_eq!(FencingToken::new(1 << 53), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// The highest token.
    pub const MAX: Self = match Self::new((1 << 53) - 1) {
        Some(max) => max,
        None => Self(NonZeroU64::MIN),
    };

    /// A token from its number; `None` for 0 and for 2^53 and above.
    pub const fn new(token: u64) -> Option<Self> {
        match NonZeroU64::new(token) {
            Some(token) if token.get() >> 53 == 0 => Some(Self(token)),
            _ => None,
        }
    }

    /// The token as a number, 1 to 2^53 - 1.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.get()
    }
}

/// For databases, whose integers are signed.
impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        // A token is below 2^53.
        Self::try_from(token.get()).unwrap_or(Self::MAX)
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[F6]`
    #[test]
    fn tokens_are_numbers_that_a_double_can_hold() {
        let rows = [
            (0, false),
            (1, true),
            ((1 << 53) - 1, true),
            (1 << 53, false),
            (u64::MAX, false),
        ];
        for (number, is_ok) in rows {
            let token = FencingToken::new(number);
            assert_eq!(token.map(FencingToken::get), is_ok.then_some(number));
        }
        assert_eq!(FencingToken::MAX.get(), (1 << 53) - 1);
        assert_eq!(i64::from(FencingToken::MAX), (1 << 53) - 1);
        assert_eq!(size_of::<Option<FencingToken>>(), 8);
    }
}
