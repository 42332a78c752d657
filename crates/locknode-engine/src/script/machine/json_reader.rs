//! Reads JSON as lua-cjson does, with its errors.

use mlua::{Error, Lua, Value};

/// A text that is being read.
pub(super) struct Reader<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    depth: usize,
}

enum Token {
    /// One of `{}[]:,`.
    Mark(u8),
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    End,
    Bad(&'static str),
}

impl<'a> Reader<'a> {
    pub(super) const fn new(lua: &'a Lua, text: &'a [u8]) -> Self {
        Self {
            lua,
            text,
            at: 0,
            depth: 0,
        }
    }

    /// Reads the only value of the text.
    pub(super) fn document(mut self) -> mlua::Result<Value> {
        if let [0, _, ..] | [_, 0, ..] = self.text {
            let text = "JSON parser does not support UTF-16 or UTF-32";
            return Err(Error::runtime(text));
        }
        let (token, start) = self.next();
        let value = self.value(token, start)?;
        match self.next() {
            (Token::End, _) => Ok(value),
            (token, start) => Err(expected("the end", &token, start)),
        }
    }

    fn value(&mut self, token: Token, start: usize) -> mlua::Result<Value> {
        match token {
            Token::Text(text) => Ok(Value::String(self.lua.create_string(text)?)),
            Token::Number(number) => Ok(Value::Number(number)),
            Token::Boolean(is_true) => Ok(Value::Boolean(is_true)),
            Token::Null => Ok(Value::NULL),
            Token::Mark(b'{') => self.object(),
            Token::Mark(b'[') => self.array(),
            token => Err(expected("value", &token, start)),
        }
    }

    fn descend(&mut self) -> mlua::Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let (depth, at) = (self.depth, self.at);
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(Error::runtime(text));
        }
        Ok(())
    }

    fn object(&mut self) -> mlua::Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let (mut token, mut start) = self.next();
        if !matches!(token, Token::Mark(b'}')) {
            loop {
                let Token::Text(key) = token else {
                    return Err(expected("object key string", &token, start));
                };
                match self.next() {
                    (Token::Mark(b':'), _) => {}
                    (token, start) => return Err(expected("colon", &token, start)),
                }
                let (first, place) = self.next();
                let value = self.value(first, place)?;
                table.raw_set(self.lua.create_string(key)?, value)?;
                match self.next() {
                    (Token::Mark(b'}'), _) => break,
                    (Token::Mark(b','), _) => (token, start) = self.next(),
                    (token, start) => return Err(expected("comma or object end", &token, start)),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> mlua::Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let (mut token, mut start) = self.next();
        if !matches!(token, Token::Mark(b']')) {
            for index in 1.. {
                table.raw_set(index, self.value(token, start)?)?;
                match self.next() {
                    (Token::Mark(b']'), _) => break,
                    (Token::Mark(b','), _) => (token, start) = self.next(),
                    (token, start) => return Err(expected("comma or array end", &token, start)),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads a token; returns it and where it begins.
    fn next(&mut self) -> (Token, usize) {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().iter().take_while(is_space).count();
        let start = self.at;
        let rest = self.rest();
        let (token, len) = match rest {
            [] => (Token::End, 0),
            [mark @ (b'{' | b'}' | b'[' | b']' | b':' | b','), ..] => (Token::Mark(*mark), 1),
            [b'"', ..] => {
                self.at += 1;
                let token = self.string().map_or_else(Token::Bad, Token::Text);
                let start = if matches!(token, Token::Bad(_)) {
                    self.at
                } else {
                    start
                };
                return (token, start);
            }
            [b't', b'r', b'u', b'e', ..] => (Token::Boolean(true), 4),
            [b'f', b'a', b'l', b's', b'e', ..] => (Token::Boolean(false), 5),
            [b'n', b'u', b'l', b'l', ..] => (Token::Null, 4),
            [b'.', ..] => (Token::Bad("invalid token"), 0),
            [first, ..] => match number(rest) {
                Some((number, len)) => (Token::Number(number), len),
                None if matches!(first, b'-' | b'+') => (Token::Bad("invalid number"), 0),
                None => (Token::Bad("invalid token"), 0),
            },
        };
        self.at += len;
        (token, start)
    }

    /// Reads a string after its quote.
    fn string(&mut self) -> Result<Vec<u8>, &'static str> {
        let mut out = Vec::new();
        loop {
            match *self.rest() {
                [] => return Err("unexpected end of string"),
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(out);
                }
                [b'\\', b'u', ..] => {
                    let Some((letter, len)) = unicode(self.rest()) else {
                        return Err("invalid unicode escape code");
                    };
                    out.extend(letter.encode_utf8(&mut [0; 4]).bytes());
                    self.at += len;
                }
                [b'\\', escape, ..] => {
                    out.push(match escape {
                        b'"' | b'\\' | b'/' => escape,
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        _ => return Err("invalid escape code"),
                    });
                    self.at += 2;
                }
                [b'\\'] => return Err("invalid escape code"),
                [byte, ..] => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
    }
}

/// Reads `\u` and its four digits, or two of them that are one letter; returns its length too.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    match unit(0)? {
        high @ 0xd800..0xdc00 => match unit(6)? {
            low @ 0xdc00..0xe000 => {
                let letter = 0x1_0000 + ((high - 0xd800) << 10 | (low - 0xdc00));
                Some((char::from_u32(letter)?, 12))
            }
            _ => None,
        },
        letter => Some((char::from_u32(letter)?, 6)),
    }
}

/// Reads a number at the beginning of a text as C's `strtod` does; returns its length too.
pub(in crate::script) fn number(text: &[u8]) -> Option<(f64, usize)> {
    let count = |at: usize, is_part: fn(&u8) -> bool| {
        let rest = text.get(at..).unwrap_or_default();
        rest.iter().take_while(|byte| is_part(byte)).count()
    };
    let begins = |at: usize, word: &[u8]| {
        let part = text.get(at..at + word.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(word))
    };
    let is_negative = begins(0, b"-");
    let sign = usize::from(is_negative || begins(0, b"+"));
    let signed = |number: f64| if is_negative { -number } else { number };
    for (word, number) in [
        (b"infinity".as_slice(), f64::INFINITY),
        (b"inf", f64::INFINITY),
        (b"nan", f64::NAN),
    ] {
        if begins(sign, word) {
            return Some((signed(number), sign + word.len()));
        }
    }
    if begins(sign, b"0x") {
        let digits = count(sign + 2, u8::is_ascii_hexdigit);
        let hex = str::from_utf8(text.get(sign + 2..sign + 2 + digits)?).ok()?;
        if digits > 0 {
            let value = |digit: char| f64::from(digit.to_digit(16).unwrap_or(0));
            let number = hex
                .chars()
                .fold(0.0, |number, digit| number * 16.0 + value(digit));
            return Some((signed(number), sign + 2 + digits));
        }
    }
    let whole = count(sign, u8::is_ascii_digit);
    let mut end = sign + whole;
    if begins(end, b".") {
        let part = count(end + 1, u8::is_ascii_digit);
        if whole + part > 0 {
            end += 1 + part;
        }
    }
    if end == sign {
        return None;
    }
    if begins(end, b"e") {
        let after = end + 1 + usize::from(begins(end + 1, b"-") || begins(end + 1, b"+"));
        let digits = count(after, u8::is_ascii_digit);
        if digits > 0 {
            end = after + digits;
        }
    }
    let number = str::from_utf8(text.get(..end)?).ok()?.parse().ok()?;
    Some((number, end))
}

fn expected(what: &str, found: &Token, start: usize) -> Error {
    let found = match found {
        Token::Mark(b'{') => "T_OBJ_BEGIN",
        Token::Mark(b'}') => "T_OBJ_END",
        Token::Mark(b'[') => "T_ARR_BEGIN",
        Token::Mark(b']') => "T_ARR_END",
        Token::Mark(b':') => "T_COLON",
        Token::Mark(_) => "T_COMMA",
        Token::Text(_) => "T_STRING",
        Token::Number(_) => "T_NUMBER",
        Token::Boolean(_) => "T_BOOLEAN",
        Token::Null => "T_NULL",
        Token::End => "T_END",
        Token::Bad(what) => what,
    };
    let place = start + 1;
    Error::runtime(format!(
        "Expected {what} but found {found} at character {place}"
    ))
}

/// lua-cjson's limits.
pub(super) const DEPTH_MAX: usize = 1000;
