//! Splits a script into tokens, as far as recognising lock scripts needs it.
//!
//! Whatever lock scripts do not use (escapes, fractions, arithmetic) ends the attempt with `None`.

/// One token, borrowed from the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'s> {
    /// An identifier that is not a keyword.
    Name(&'s [u8]),
    /// A string without its quotes.
    Text(&'s [u8]),
    /// A whole number.
    Number(i64),
    /// A keyword, an operator or a separator.
    Sign(&'static str),
    End,
}

/// Reads tokens in order.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    rest: &'s [u8],
    /// Whether the latest token is on another line than the one before.
    pub(super) is_new_line: bool,
}

impl<'s> Lexer<'s> {
    pub(super) const fn new(source: &'s [u8]) -> Self {
        Self {
            rest: source,
            is_new_line: false,
        }
    }

    /// Reads the next token.
    pub(super) fn token(&mut self) -> Option<Token<'s>> {
        self.skip_blanks()?;
        let Some(&first) = self.rest.first() else {
            return Some(Token::End);
        };
        match first {
            b'"' | b'\'' => self.quoted(first),
            b'[' if self.rest.starts_with(b"[[") => Some(Token::Text(self.bracketed()?)),
            b'0'..=b'9' => {
                let digits = str::from_utf8(self.word()).ok()?;
                let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
                let is_whole = is_decimal && self.rest.first() != Some(&b'.');
                Some(Token::Number(digits.parse().ok().filter(|_| is_whole)?))
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let word = self.word();
                let keyword = KEYWORDS.iter().find(|it| it.as_bytes() == word);
                Some(keyword.map_or(Token::Name(word), |it| Token::Sign(it)))
            }
            _ => {
                let rest = self.rest;
                let sign = SIGNS.iter().find(|it| rest.starts_with(it.as_bytes()))?;
                self.take(sign.len());
                Some(Token::Sign(sign))
            }
        }
    }

    fn take(&mut self, length: usize) -> &'s [u8] {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, &[]));
        self.is_new_line |= taken.contains(&b'\n') || taken.contains(&b'\r');
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) -> Option<()> {
        self.is_new_line = false;
        loop {
            match self.rest {
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => {
                    self.take(1);
                }
                [b'-', b'-', b'[', b'=', ..] => return None,
                [b'-', b'-', b'[', b'[', ..] => {
                    self.take(2);
                    self.bracketed()?;
                }
                [b'-', b'-', ..] => {
                    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
                    let length = self.rest.iter().position(is_end);
                    self.take(length.unwrap_or(self.rest.len()));
                }
                _ => return Some(()),
            }
        }
    }

    fn word(&mut self) -> &'s [u8] {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = self.rest.iter().position(|byte| !is_part(byte));
        self.take(length.unwrap_or(self.rest.len()))
    }

    fn quoted(&mut self, quote: u8) -> Option<Token<'s>> {
        self.take(1);
        let length = self.rest.iter().position(|&byte| byte == quote)?;
        let text = self.take(length);
        self.take(1);
        let is_plain = !text
            .iter()
            .any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
        is_plain.then_some(Token::Text(text))
    }

    fn bracketed(&mut self) -> Option<&'s [u8]> {
        self.take(2);
        let length = self.rest.windows(2).position(|pair| pair == b"]]")?;
        let text = self.take(length);
        self.take(2);
        // Lua drops a first line end and rewrites others.
        let is_plain = !text.contains(&b'\n') && !text.contains(&b'\r');
        is_plain.then_some(text)
    }
}

const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Longer signs precede their own prefixes.
const SIGNS: [&str; 15] = [
    "==", "~=", "<=", ">=", "<", ">", "=", "(", ")", "[", "]", ".", ",", ";", "-",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> Option<Vec<Token<'_>>> {
        let mut lexer = Lexer::new(source.as_bytes());
        let mut all = Vec::new();
        loop {
            match lexer.token()? {
                Token::End => return Some(all),
                token => all.push(token),
            }
        }
    }

    #[test]
    fn comments_and_blanks_vanish() {
        for source in ["--x\n1", "--[[x y]]1", "\r\n\t1 --", "--[x\n1"] {
            assert_eq!(tokens(source), Some(vec![Token::Number(1)]), "{source}");
        }
    }

    #[test]
    fn what_lock_scripts_do_not_use_has_no_tokens() {
        for source in [
            "'a",
            "'a\nb'",
            "'\\65'",
            "3x",
            "3.2",
            "0x3",
            "99999999999999999999",
            "[[a",
            "--[[a",
            "--[=[a]=]",
            "a + b",
            "#a",
            "{}",
            "f:g",
            "\u{e9}",
        ] {
            assert_eq!(tokens(source), None, "{source}");
        }
    }

    #[test]
    fn a_token_on_a_new_line_says_so() {
        let mut lexer = Lexer::new(b"a b\n( -- x\n)");
        let is_new = ["a", "b", "(", ")"].map(|_| {
            lexer.token();
            lexer.is_new_line
        });
        assert_eq!(is_new, [false, false, true, true]);
    }
}
