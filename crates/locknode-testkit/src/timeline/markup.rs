//! Tags of an SVG or HTML file, written so that no text of a history can become one.
//!
//! All text goes through [`Escaped`], so a file is plain ASCII whatever keys are called. This is a writer only; where
//! things stand in the picture is not known here.

use std::fmt::{Display, Formatter, Result as FmtResult, Write};

use crate::history::{History, KeyNo};

/// A tag that is being written.
#[derive(Debug)]
pub(crate) struct Tag<'o> {
    out: &'o mut String,
    name: &'static str,
}

/// A text in which nothing is markup any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

/// Thousandths of a pixel, written as pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pixels(pub(crate) u64);

impl<'o> Tag<'o> {
    pub(crate) fn new(out: &'o mut String, name: &'static str) -> Self {
        out.push('<');
        out.push_str(name);
        Self { out, name }
    }

    /// An attribute.
    pub(crate) fn set(self, attribute: &str, value: impl Display) -> Self {
        write(self.out, format_args!(" {attribute}=\""));
        write(self.out, Escaped(&value.to_string()));
        self.out.push('"');
        self
    }

    /// Nothing is inside.
    pub(crate) fn end(self) {
        self.out.push_str("/>\n");
    }

    /// A text is inside.
    pub(crate) fn text(self, text: &str) {
        self.out.push('>');
        write(self.out, Escaped(text));
        write(self.out, format_args!("</{}>\n", self.name));
    }

    /// Adds a text that is shown when somebody points at the shape.
    pub(crate) fn titled(self, title: &str) {
        self.out.push('>');
        Tag::new(self.out, "title").text(&clipped(title, TITLE_CHARS_MAX));
        if self.out.ends_with('\n') {
            self.out.pop();
        }
        write(self.out, format_args!("</{}>\n", self.name));
    }

    /// Other tags are inside, which the caller closes.
    pub(crate) fn open(self) {
        self.out.push_str(">\n");
    }
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                ' '..='~' => f.write_char(c)?,
                '\n' => f.write_str("&#10;")?,
                // Not even as a reference may XML have these.
                '\0'..='\t'
                | '\u{b}'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{fffe}'
                | '\u{ffff}' => {
                    write!(f, "\\x{:02x}", u32::from(c))?;
                }
                _ => write!(f, "&#x{:x};", u32::from(c))?,
            }
        }
        Ok(())
    }
}

impl Display for Pixels {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "{}", self.0 / 1000)?;
        match self.0 % 1000 {
            0 => Ok(()),
            rest => f.write_str(format!(".{rest:03}").trim_end_matches('0')),
        }
    }
}

/// Writes to a text, which does not fail.
pub(crate) fn write(out: &mut String, what: impl Display) {
    let _ = write!(out, "{what}");
}

/// The text, or its beginning when it is longer than `chars_max` characters.
pub(crate) fn clipped(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let kept = text.chars().take(chars_max.saturating_sub(3));
            kept.chain("...".chars()).collect()
        }
    }
}

/// The name of a key, or the beginning of a long one.
pub(crate) fn key_name(history: &History, key: KeyNo) -> String {
    clipped(history.key(key), KEY_CHARS_MAX)
}

/// Room for any name that people gave; the rest of a longer one says little.
const KEY_CHARS_MAX: usize = 60;

/// Some lines in a tooltip; what is longer is the text of a message or an error, whose beginning says enough.
const TITLE_CHARS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        for (text, escaped) in [
            ("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"),
            ("plain", "plain"),
            ("\u{e9}\u{1f512}", "&#xe9;&#x1f512;"),
            ("\0\n\u{1b}\u{7f}", "\\x00&#10;\\x1b\\x7f"),
        ] {
            assert_eq!(Escaped(text).to_string(), escaped, "{text:?}");
        }
    }

    #[test]
    fn thousandths_are_written_as_pixels() {
        for (thousandths, text) in [(0, "0"), (1, "0.001"), (1_500, "1.5"), (12_000, "12")] {
            assert_eq!(Pixels(thousandths).to_string(), text);
        }
    }

    #[test]
    fn a_text_is_clipped_between_characters() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abc...");
        assert_eq!(clipped("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", 4), "\u{e9}...");
    }
}
