//! Splits a script into Lua 5.1 tokens.
//!
//! The lexer accepts every token of Lua 5.1, including those that the parser then refuses, so that
//! syntax errors and unsupported constructs can be distinguished. Its error texts are Lua's own,
//! because people search for them. It works on bytes: scripts and tokens need not be UTF-8.

use crate::script::error::CompileError;
use crate::script::number;

/// One token. Names borrow from the source; strings own their unescaped bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'s> {
    /// An identifier that is not a keyword.
    Name(&'s [u8]),
    /// A string literal without its quotes, escapes resolved.
    Text(Vec<u8>),
    Number(f64),
    /// A keyword such as `if`.
    Word(&'static str),
    /// An operator or a separator such as `==`.
    Sign(&'static str),
    /// A byte that begins no token. The parser reports it.
    Other(u8),
    End,
}

/// Reads tokens in order.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    source: &'s [u8],
    /// Where the next token is searched.
    at: usize,
    /// Where the latest token begins, for error texts.
    start: usize,
    line: u32,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s [u8], line: u32) -> Self {
        Self {
            source,
            at: 0,
            start: 0,
            line,
        }
    }

    /// The line of the latest token, counted from 1.
    pub(super) fn line(&self) -> u32 {
        self.line
    }

    /// Reads the next token.
    pub(super) fn token(&mut self) -> Result<Token<'s>, CompileError> {
        self.skip_blanks()?;
        self.start = self.at;
        let Some(first) = self.peek(0) else {
            return Ok(Token::End);
        };
        match first {
            b'"' | b'\'' => self.quoted(first),
            b'[' if self.long_level().is_some() => Ok(Token::Text(self.long("string")?)),
            b'[' if self.peek(1) == Some(b'=') => {
                while self.peek(1) == Some(b'=') {
                    self.at += 1;
                }
                self.at += 1;
                Err(self.error("invalid long string delimiter", &self.raw()))
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_some_and(|next| next.is_ascii_digit()) => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(self.word()),
            _ => Ok(self.sign(first)),
        }
    }

    /// The text of the latest token as Lua prints it in `near '...'`.
    pub(super) fn near(&self, token: &Token<'_>) -> Vec<u8> {
        match token {
            Token::End => b"<eof>".to_vec(),
            Token::Word(text) | Token::Sign(text) => text.as_bytes().to_vec(),
            Token::Other(byte) if byte.is_ascii_control() => format!("char({byte})").into_bytes(),
            _ => self.raw(),
        }
    }

    fn raw(&self) -> Vec<u8> {
        self.source
            .get(self.start..self.at)
            .unwrap_or_default()
            .to_vec()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    fn error(&self, what: &str, near: &[u8]) -> CompileError {
        CompileError::syntax(self.line, what, Some(near))
    }

    fn skip_blanks(&mut self) -> Result<(), CompileError> {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' | b'\r' => self.newline(),
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'-' if self.peek(1) == Some(b'-') => self.comment()?,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Consumes one line end; `\r\n` and `\n\r` are one.
    fn newline(&mut self) {
        let first = self.peek(0);
        self.at += 1;
        let second = self.peek(0);
        if matches!(second, Some(b'\n' | b'\r')) && second != first {
            self.at += 1;
        }
        self.line = self.line.saturating_add(1);
    }

    fn comment(&mut self) -> Result<(), CompileError> {
        self.at += 2;
        self.start = self.at;
        if self.peek(0) == Some(b'[') && self.long_level().is_some() {
            self.long("comment")?;
            return Ok(());
        }
        while !matches!(self.peek(0), None | Some(b'\n' | b'\r')) {
            self.at += 1;
        }
        Ok(())
    }

    /// The number of `=` when a long bracket opens here.
    fn long_level(&self) -> Option<usize> {
        let mut level = 0;
        while self.peek(1 + level) == Some(b'=') {
            level += 1;
        }
        (self.peek(1 + level) == Some(b'[')).then_some(level)
    }

    fn long(&mut self, what: &str) -> Result<Vec<u8>, CompileError> {
        let level = self.long_level().unwrap_or(0);
        self.at += level + 2;
        if matches!(self.peek(0), Some(b'\n' | b'\r')) {
            self.newline();
        }
        let mut text = Vec::new();
        loop {
            match self.peek(0) {
                None => return Err(self.error(&format!("unfinished long {what}"), b"<eof>")),
                Some(b']') if self.closes(level) => {
                    self.at += level + 2;
                    return Ok(text);
                }
                Some(b'\n' | b'\r') => {
                    text.push(b'\n');
                    self.newline();
                }
                Some(byte) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn closes(&self, level: usize) -> bool {
        (0..level).all(|ahead| self.peek(1 + ahead) == Some(b'='))
            && self.peek(1 + level) == Some(b']')
    }

    fn quoted(&mut self, quote: u8) -> Result<Token<'s>, CompileError> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.peek(0) {
                None => return Err(self.error("unfinished string", b"<eof>")),
                Some(b'\n' | b'\r') => {
                    return Err(self.error("unfinished string", &[&[quote], &text[..]].concat()));
                }
                Some(b'\\') => self.escape(quote, &mut text)?,
                Some(byte) => {
                    self.at += 1;
                    if byte == quote {
                        return Ok(Token::Text(text));
                    }
                    text.push(byte);
                }
            }
        }
    }

    fn escape(&mut self, quote: u8, text: &mut Vec<u8>) -> Result<(), CompileError> {
        self.at += 1;
        let Some(byte) = self.peek(0) else {
            return Ok(());
        };
        match byte {
            b'\n' | b'\r' => {
                text.push(b'\n');
                self.newline();
                return Ok(());
            }
            b'0'..=b'9' => return self.decimal_escape(quote, text),
            _ => {}
        }
        self.at += 1;
        text.push(match byte {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            other => other,
        });
        Ok(())
    }

    fn decimal_escape(&mut self, quote: u8, text: &mut Vec<u8>) -> Result<(), CompileError> {
        let mut code: u32 = 0;
        for _ in 0..3 {
            let Some(digit) = self.peek(0).filter(u8::is_ascii_digit) else {
                break;
            };
            code = code * 10 + u32::from(digit - b'0');
            self.at += 1;
        }
        match u8::try_from(code) {
            Ok(byte) => text.push(byte),
            Err(_) => {
                let near = [&[quote], text.as_slice()].concat();
                return Err(self.error("escape sequence too large", &near));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Token<'s>, CompileError> {
        while self
            .peek(0)
            .is_some_and(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            self.at += 1;
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(0), Some(b'+' | b'-')) {
                self.at += 1;
            }
        }
        while self
            .peek(0)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.at += 1;
        }
        let raw = self.raw();
        match number::parse(&raw) {
            Some(value) => Ok(Token::Number(value)),
            None => Err(self.error("malformed number", &raw)),
        }
    }

    fn word(&mut self) -> Token<'s> {
        while self
            .peek(0)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.at += 1;
        }
        let text = self.source.get(self.start..self.at).unwrap_or_default();
        match WORDS.iter().find(|word| word.as_bytes() == text) {
            Some(word) => Token::Word(word),
            None => Token::Name(text),
        }
    }

    fn sign(&mut self, first: u8) -> Token<'s> {
        let rest = self.source.get(self.at..).unwrap_or_default();
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
            self.at += sign.len();
            return Token::Sign(sign);
        }
        self.at += 1;
        Token::Other(first)
    }
}

const WORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Longer signs precede their own prefixes.
const SIGNS: [&str; 26] = [
    "...", "..", "==", "~=", "<=", ">=", ".", "+", "-", "*", "/", "%", "^", "#", "<", ">", "=",
    "(", ")", "{", "}", "[", "]", ";", ":", ",",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &[u8]) -> Result<Vec<Token<'_>>, String> {
        let mut lexer = Lexer::new(source, 1);
        let mut all = Vec::new();
        loop {
            match lexer.token() {
                Ok(Token::End) => return Ok(all),
                Ok(token) => all.push(token),
                Err(error) => return Err(String::from_utf8(error.into_reply()).unwrap()),
            }
        }
    }

    #[test]
    fn strings_resolve_their_escapes() {
        let rows: [(&[u8], &[u8]); 8] = [
            (b"'a'", b"a"),
            (br#""a\"b""#, b"a\"b"),
            (br"'\65\066\q'", b"ABq"),
            (b"'x\\\ny'", b"x\ny"),
            (b"'x\\\r\ny'", b"x\ny"),
            (b"[[\nraw\\n]]", b"raw\\n"),
            (b"[==[a]]b]=]c]==]", b"a]]b]=]c"),
            (b"[[a\r\nb]]", b"a\nb"),
        ];
        for (source, want) in rows {
            assert_eq!(tokens(source), Ok(vec![Token::Text(want.to_vec())]));
        }
    }

    #[test]
    fn comments_and_blanks_vanish() {
        for source in [
            "--x\n1",
            "--[[x\ny]]1",
            "--[==[ ]] ]==] 1",
            "\r\n\t1 --",
            "--[=x\n1",
        ] {
            assert_eq!(
                tokens(source.as_bytes()),
                Ok(vec![Token::Number(1.0)]),
                "{source}"
            );
        }
    }

    #[test]
    fn bad_tokens_have_the_texts_of_lua() {
        let rows = [
            ("'abc", "user_script:1: unfinished string near '<eof>'"),
            ("'a\nb'", "user_script:1: unfinished string near ''a'"),
            (
                "'a\\300'",
                "user_script:1: escape sequence too large near ''a'",
            ),
            ("3x", "user_script:1: malformed number near '3x'"),
            ("3..2", "user_script:1: malformed number near '3..2'"),
            ("[[a", "user_script:1: unfinished long string near '<eof>'"),
            (
                "\n--[[a",
                "user_script:2: unfinished long comment near '<eof>'",
            ),
        ];
        for (source, want) in rows {
            let want = format!("ERR Error compiling script (new function): {want}");
            assert_eq!(tokens(source.as_bytes()), Err(want), "{source}");
        }
    }
}
