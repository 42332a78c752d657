//! Percent-escapes of URLs: `%41` for `A`. A `+` is itself, as it is outside of web forms.

use std::fmt;
use std::fmt::Write;

use super::error::Problem;

/// Undoes the escapes. A `%` without two hexadecimal digits behind it is an error.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, Problem> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(Problem::BadPercent);
        };
        decoded.push(high << 4 | low);
    }
    Ok(decoded)
}

/// Undoes the escapes of something that must be UTF-8.
pub(super) fn decode_str(text: &str) -> Result<String, Problem> {
    String::from_utf8(decode(text)?).map_err(|_| Problem::NotUtf8)
}

/// Writes `bytes` so that [`decode`] gives them back, in ASCII without blanks, `?`, `#` and `%`.
pub(super) fn encode(bytes: &[u8], to: &mut impl Write) -> fmt::Result {
    for &byte in bytes {
        if byte.is_ascii_graphic() && !b"%?#@".contains(&byte) {
            to.write_char(char::from(byte))?;
        } else {
            write!(to, "%{byte:02X}")?;
        }
    }
    Ok(())
}

fn digit(byte: Option<u8>) -> Option<u8> {
    match byte? {
        byte @ b'0'..=b'9' => Some(byte - b'0'),
        byte @ b'a'..=b'f' => Some(byte - b'a' + 10),
        byte @ b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_broken_ones_refused() {
        let rows: &[(&str, Result<&[u8], Problem>)] = &[
            ("", Ok(b"")),
            ("plain+text", Ok(b"plain+text")),
            ("%41%2f%2F", Ok(b"A//")),
            ("%00%ff", Ok(b"\x00\xff")),
            ("100%25", Ok(b"100%")),
            ("%", Err(Problem::BadPercent)),
            ("%4", Err(Problem::BadPercent)),
            ("%4g", Err(Problem::BadPercent)),
            ("%%41", Err(Problem::BadPercent)),
            ("%+1", Err(Problem::BadPercent)),
        ];
        for (text, expected) in rows {
            assert_eq!(
                decode(text).as_deref(),
                expected.as_ref().map(|b| &**b),
                "{text}"
            );
        }
        assert_eq!(decode_str("%ff"), Err(Problem::NotUtf8));
    }

    #[test]
    fn every_byte_comes_back_from_its_escape() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        encode(&bytes, &mut text).unwrap();
        assert!(text.is_ascii());
        assert_eq!(decode(&text), Ok(bytes));
    }
}
