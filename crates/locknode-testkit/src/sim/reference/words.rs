//! The words of requests, as the model reads them.

/// Which replies a connection wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Replies {
    #[default]
    All,
    None,
    /// All but the next.
    SkipNext,
}

/// Room for a word in lower case.
#[derive(Default)]
pub(super) struct Lower([u8; 16]);

impl Lower {
    /// The word; nothing when it is longer than any that the model knows.
    pub(super) fn of(&mut self, word: &[u8]) -> &[u8] {
        let Some(lower) = self.0.get_mut(..word.len()) else {
            return &[];
        };
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        lower
    }
}

/// The options of a SET.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SetOptions<'a> {
    pub(super) is_new: bool,
    pub(super) is_old: bool,
    pub(super) if_equal: Option<&'a [u8]>,
    pub(super) wants_old: bool,
    pub(super) keeps_ttl: bool,
    /// Nanoseconds.
    pub(super) ttl: Option<u64>,
}

impl<'a> SetOptions<'a> {
    /// What the words say; `None` when one of them is not known here.
    pub(super) fn of(mut words: &[&'a [u8]]) -> Option<Self> {
        let (mut options, mut room) = (Self::default(), Lower::default());
        while let [word, rest @ ..] = words {
            words = rest;
            match room.of(word) {
                b"nx" => options.is_new = true,
                b"xx" => options.is_old = true,
                b"get" => options.wants_old = true,
                b"keepttl" => options.keeps_ttl = true,
                name @ (b"ifeq" | b"px" | b"ex") => {
                    let [operand, rest @ ..] = words else {
                        return None;
                    };
                    words = rest;
                    match name {
                        b"ifeq" => options.if_equal = Some(operand),
                        b"px" => options.ttl = Some(millis(operand)?),
                        _ => options.ttl = Some(seconds(operand)?),
                    }
                }
                _ => return None,
            }
        }
        Some(options)
    }
}

pub(super) fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Milliseconds, in nanoseconds; none is none that a node takes.
pub(super) fn millis(word: &[u8]) -> Option<u64> {
    number(word).filter(|ms| *ms > 0)?.checked_mul(1_000_000)
}

pub(super) fn seconds(word: &[u8]) -> Option<u64> {
    number(word).filter(|s| *s > 0)?.checked_mul(1_000_000_000)
}

/// What is told of the time left: whole milliseconds, never less than there is.
pub(super) fn left(now: u64, ends: u64) -> i64 {
    match ends {
        u64::MAX => -1,
        _ => i64::try_from(ends.saturating_sub(now).div_ceil(1_000_000)).unwrap_or(i64::MAX),
    }
}
