//! Inline requests: one line of words, with the quoting of `redis-cli` and `redis.conf`.
//!
//! Words are separated by white space. Inside `".."` the escapes are `\n \r \t \b \a \xHH`, and any
//! other escaped character stands for itself; inside `'..'` only `\'` is an escape. A closing quote
//! ends the word and must be followed by white space or the end of the line.

use crate::frame::Span;

/// Where the words of a line are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Words {
    /// In the line itself: there were no quotes.
    InLine,
    /// In the scratch buffer, without their quotes.
    InScratch,
}

/// Splits `line` into words and pushes their positions; `None` if the quotes are unbalanced.
pub(crate) fn split(line: &[u8], spans: &mut Vec<Span>, scratch: &mut Vec<u8>) -> Option<Words> {
    if line.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        split_quoted(line, spans, scratch).map(|()| Words::InScratch)
    } else {
        split_plain(line, spans);
        Some(Words::InLine)
    }
}

fn split_plain(line: &[u8], spans: &mut Vec<Span>) {
    let mut rest = line;
    loop {
        rest = skip_space(rest);
        if rest.is_empty() {
            return;
        }
        let len = rest
            .iter()
            .position(|&byte| ends_word(byte))
            .unwrap_or(rest.len());
        spans.push(Span::new(line.len() - rest.len(), len));
        rest = rest.get(len..).unwrap_or_default();
    }
}

fn split_quoted(line: &[u8], spans: &mut Vec<Span>, scratch: &mut Vec<u8>) -> Option<()> {
    let mut rest = line;
    loop {
        rest = skip_space(rest);
        if rest.is_empty() {
            return Some(());
        }
        let start = scratch.len();
        rest = word(rest, scratch)?;
        spans.push(Span::new(start, scratch.len() - start));
    }
}

/// Appends one word to `scratch` and returns what follows it.
fn word<'l>(mut rest: &'l [u8], scratch: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        match *rest {
            [b'"', ref tail @ ..] => return double_quoted(tail, scratch),
            [b'\'', ref tail @ ..] => return single_quoted(tail, scratch),
            [byte, ref tail @ ..] if !ends_word(byte) => {
                scratch.push(byte);
                rest = tail;
            }
            _ => return Some(rest),
        }
    }
}

fn double_quoted<'l>(mut rest: &'l [u8], scratch: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        rest = match *rest {
            [b'"', ref tail @ ..] => return after_quote(tail),
            [b'\\', b'x', high, low, ref tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                scratch.push(hex(high) << 4 | hex(low));
                tail
            }
            [b'\\', escaped, ref tail @ ..] => {
                scratch.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                tail
            }
            [byte, ref tail @ ..] => {
                scratch.push(byte);
                tail
            }
            [] => return None,
        };
    }
}

fn single_quoted<'l>(mut rest: &'l [u8], scratch: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        rest = match *rest {
            [b'\'', ref tail @ ..] => return after_quote(tail),
            [b'\\', b'\'', ref tail @ ..] => {
                scratch.push(b'\'');
                tail
            }
            [byte, ref tail @ ..] => {
                scratch.push(byte);
                tail
            }
            [] => return None,
        };
    }
}

fn after_quote(rest: &[u8]) -> Option<&[u8]> {
    rest.first()
        .is_none_or(|&byte| is_space(byte))
        .then_some(rest)
}

fn skip_space(line: &[u8]) -> &[u8] {
    let len = line
        .iter()
        .position(|&byte| !is_space(byte))
        .unwrap_or(line.len());
    line.get(len..).unwrap_or_default()
}

/// White space, as defined by C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// As in Redis, vertical tab and form feed separate words only where a word would begin.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
