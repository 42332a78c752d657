//! The words of requests and the bytes of replies, as the model reads and writes them.

/// Which replies a connection wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Replies {
    #[default]
    All,
    None,
    /// All but the next.
    SkipNext,
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
        let mut options = Self::default();
        while let [word, rest @ ..] = words {
            words = rest;
            match &*word.to_ascii_lowercase() {
                b"nx" => options.is_new = true,
                b"xx" => options.is_old = true,
                b"get" => options.wants_old = true,
                b"keepttl" => options.keeps_ttl = true,
                b"ifeq" | b"px" | b"ex" => {
                    let [operand, rest @ ..] = words else {
                        return None;
                    };
                    words = rest;
                    match word.to_ascii_lowercase().first() {
                        Some(b'i') => options.if_equal = Some(operand),
                        Some(b'p') => options.ttl = Some(millis(operand)?),
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

pub(super) fn put_integer(out: &mut Vec<u8>, number: i64) {
    // A vector takes all that is written to it.
    out.extend_from_slice(format!(":{number}\r\n").as_bytes());
}

pub(super) fn put_counter(out: &mut Vec<u8>, number: u64) {
    put_integer(out, i64::try_from(number).unwrap_or(i64::MAX));
}

pub(super) fn put_array(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(format!("*{len}\r\n").as_bytes());
}

pub(super) fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

pub(super) const OK: &[u8] = b"+OK\r\n";
pub(super) const NULL: &[u8] = b"$-1\r\n";
