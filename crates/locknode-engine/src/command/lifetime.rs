//! The TTL options EX, PX, EXAT, PXAT, KEEPTTL and PERSIST.

use locknode_resp::{Encoder, parse_integer};

use super::option_word::OptionWord;
use super::refusal;
use crate::time::{Deadline, Moment};

/// The deadline that an option list specifies. The number is kept as text, because Redis parses it
/// only when the whole list is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lifetime<'a> {
    /// No option: a write removes the key's deadline.
    #[default]
    Unspecified,
    /// KEEPTTL: a write keeps the deadline.
    Keep,
    /// PERSIST: the deadline is removed.
    Persist,
    /// The key expires at a time.
    Ends { unit: Unit, number: &'a [u8] },
}

/// The unit of a lifetime's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Millis,
    /// EXAT: Unix seconds.
    UnixSeconds,
    /// PXAT: Unix milliseconds.
    UnixMillis,
}

/// Why a lifetime's number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidLifetime {
    NotAnInteger,
    OutOfRange,
}

impl<'a> Lifetime<'a> {
    /// Consumes the next word of an option list and, if needed, its number; returns the words that
    /// follow.
    ///
    /// `None` when the word is not about lifetimes, contradicts an earlier one or lacks its number.
    /// The same word may appear again; the last one counts.
    #[inline]
    pub(crate) fn take<'w>(
        &mut self,
        word: OptionWord,
        rest: &'w [&'a [u8]],
    ) -> Option<&'w [&'a [u8]]> {
        let unit = match word {
            OptionWord::Px => Unit::Millis,
            OptionWord::Ex => Unit::Seconds,
            OptionWord::PxAt => Unit::UnixMillis,
            OptionWord::ExAt => Unit::UnixSeconds,
            OptionWord::KeepTtl => return self.replace(Self::Keep).then_some(rest),
            OptionWord::Persist => return self.replace(Self::Persist).then_some(rest),
            _ => return None,
        };
        let (number, rest) = rest.split_first()?;
        self.replace(Self::Ends { unit, number }).then_some(rest)
    }

    #[inline]
    fn replace(&mut self, next: Self) -> bool {
        let agrees = match (*self, next) {
            (Self::Unspecified, _) | (Self::Keep, Self::Keep) | (Self::Persist, Self::Persist) => {
                true
            }
            (Self::Ends { unit: old, .. }, Self::Ends { unit: new, .. }) => old == new,
            _ => false,
        };
        *self = next;
        agrees
    }
}

impl Unit {
    #[inline]
    pub(super) const fn millis(self) -> i64 {
        match self {
            Self::Millis | Self::UnixMillis => 1,
            Self::Seconds | Self::UnixSeconds => MILLIS_PER_SECOND,
        }
    }

    /// Returns whether the number is a Unix time rather than a time from now.
    pub(super) const fn is_absolute(self) -> bool {
        matches!(self, Self::UnixSeconds | Self::UnixMillis)
    }

    /// Returns the deadline for a number in this unit at `moment`; `None` when it has already
    /// passed, which only an absolute time can have.
    ///
    /// # Errors
    ///
    /// Refuses what Redis refuses: non-integers, zero or less, and overflows as Unix milliseconds.
    #[inline]
    pub(crate) fn deadline(
        self,
        number: &[u8],
        moment: Moment,
    ) -> Result<Option<Deadline>, InvalidLifetime> {
        let number = parse_integer(number).ok_or(InvalidLifetime::NotAnInteger)?;
        if number <= 0 {
            return Err(InvalidLifetime::OutOfRange);
        }
        let ms = number
            .checked_mul(self.millis())
            .ok_or(InvalidLifetime::OutOfRange)?;
        let wall_ms = moment.wall.as_unix_millis();
        match self {
            Self::Millis | Self::Seconds => match wall_ms.checked_add(ms) {
                Some(_) => Ok(Some(Deadline::after_millis(moment.time, ms))),
                None => Err(InvalidLifetime::OutOfRange),
            },
            Self::UnixMillis | Self::UnixSeconds if ms <= wall_ms => Ok(None),
            Self::UnixMillis | Self::UnixSeconds => Ok(Some(Deadline::at_unix_millis(moment, ms))),
        }
    }
}

/// Returns the deadline of a TTL in milliseconds; replies with the refusal, worded for the command
/// `name`, if there is none.
#[inline]
pub(super) fn deadline_after(
    moment: Moment,
    ttl: &[u8],
    reply: &mut Encoder<'_>,
    name: &str,
) -> Option<Deadline> {
    match Unit::Millis.deadline(ttl, moment) {
        Ok(deadline) => deadline,
        Err(invalid) => {
            invalid.refuse(reply, name);
            None
        }
    }
}

impl InvalidLifetime {
    /// Replies with the reason, worded for the command `name`.
    #[cold]
    pub(crate) fn refuse(self, reply: &mut Encoder<'_>, name: &str) {
        match self {
            Self::NotAnInteger => reply.error(refusal::NOT_AN_INTEGER),
            Self::OutOfRange => refusal::invalid_expire(reply, name),
        }
    }
}

pub(super) const MILLIS_PER_SECOND: i64 = 1000;

/// The reply for the time left of a lock without a deadline.
pub(super) const NO_DEADLINE: i64 = -1;
