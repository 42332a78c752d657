//! Lua 5.1's patterns with a bound: a pattern that backtracks for too long is stopped.

use smallvec::SmallVec;

/// Where a pattern matched, counted from 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) captures: SmallVec<[Capture; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    Text {
        start: usize,
        end: usize,
    },
    /// `()`, the position itself.
    Position(usize),
    Open {
        start: usize,
    },
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatternError<E> {
    Malformed(&'static str),
    /// The caller's bound.
    Stopped(E),
}

impl<E> From<E> for PatternError<E> {
    fn from(stop: E) -> Self {
        Self::Stopped(stop)
    }
}

/// Finds the first match at or after `init`. `spend` is called with the steps taken. As in Lua, a zero ends the pattern.
pub(super) fn find<E>(
    text: &[u8],
    pattern: &[u8],
    init: usize,
    has_anchor: bool,
    spend: &mut dyn FnMut(usize) -> Result<(), E>,
) -> Result<Option<Match>, PatternError<E>> {
    let pattern = pattern.split(|byte| *byte == 0).next();
    let (is_anchored, pattern) = match pattern.unwrap_or_default() {
        [b'^', rest @ ..] if has_anchor => (true, rest),
        pattern => (false, pattern),
    };
    let mut matcher = Matcher {
        text,
        pattern,
        captures: SmallVec::new(),
        depth: 0,
        steps: 0,
        spend,
    };
    let last = if is_anchored { init } else { text.len() };
    for start in init..=last {
        matcher.captures.clear();
        if let Some(end) = matcher.matches(start, 0)? {
            let is_open = |capture: &Capture| matches!(capture, Capture::Open { .. });
            if matcher.captures.iter().any(is_open) {
                return Err(PatternError::Malformed("unfinished capture"));
            }
            let captures = matcher.captures;
            return Ok(Some(Match {
                start,
                end,
                captures,
            }));
        }
    }
    Ok(None)
}

struct Matcher<'a, E> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: SmallVec<[Capture; 4]>,
    depth: usize,
    steps: usize,
    spend: &'a mut dyn FnMut(usize) -> Result<(), E>,
}

type Found<E> = Result<Option<usize>, PatternError<E>>;

impl<E> Matcher<'_, E> {
    fn step(&mut self, count: usize) -> Result<(), PatternError<E>> {
        self.steps += count;
        if self.steps >= STEPS_AT_ONCE {
            (self.spend)(std::mem::take(&mut self.steps))?;
        }
        Ok(())
    }

    fn at(&self, place: usize) -> Option<u8> {
        self.pattern.get(place).copied()
    }

    /// Matches the text from `s` with the pattern from `p`; returns where the match ends.
    fn matches(&mut self, s: usize, p: usize) -> Found<E> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(PatternError::Malformed("pattern too complex"));
        }
        let found = self.items(s, p);
        self.depth -= 1;
        found
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Found<E> {
        loop {
            self.step(1)?;
            match (self.at(p), self.at(p + 1)) {
                (None, _) => return Ok(Some(s)),
                (Some(b'('), Some(b')')) => {
                    return self.capture(Capture::Position(s), s, p + 2);
                }
                (Some(b'('), _) => return self.capture(Capture::Open { start: s }, s, p + 1),
                (Some(b')'), _) => return self.close(s, p + 1),
                (Some(b'$'), None) => return Ok((s == self.text.len()).then_some(s)),
                (Some(b'%'), Some(b'b')) => {
                    let Some(end) = self.balanced(s, p + 2)? else {
                        return Ok(None);
                    };
                    (s, p) = (end, p + 4);
                    continue;
                }
                (Some(b'%'), Some(b'f')) => {
                    p += 2;
                    if self.at(p) != Some(b'[') {
                        let error = "missing '[' after '%f' in pattern";
                        return Err(PatternError::Malformed(error));
                    }
                    let end = self.class_end(p)?;
                    let before = s.checked_sub(1).and_then(|s| self.text.get(s));
                    let here = self.text.get(s).copied().unwrap_or(0);
                    if self.set_has(before.copied().unwrap_or(0), p, end - 1)
                        || !self.set_has(here, p, end - 1)
                    {
                        return Ok(None);
                    }
                    p = end;
                    continue;
                }
                (Some(b'%'), Some(digit @ b'0'..=b'9')) => {
                    let Some(end) = self.same_as_capture(s, digit)? else {
                        return Ok(None);
                    };
                    (s, p) = (end, p + 2);
                    continue;
                }
                _ => {}
            }
            let end = self.class_end(p)?;
            match self.at(end) {
                Some(b'?') => {
                    if self.one(s, p, end)?
                        && let Some(found) = self.matches(s + 1, end + 1)?
                    {
                        return Ok(Some(found));
                    }
                    p = end + 1;
                }
                Some(b'*') => return self.longest(s, p, end),
                Some(b'+') => {
                    return if self.one(s, p, end)? {
                        self.longest(s + 1, p, end)
                    } else {
                        Ok(None)
                    };
                }
                Some(b'-') => return self.shortest(s, p, end),
                _ => {
                    if !self.one(s, p, end)? {
                        return Ok(None);
                    }
                    (s, p) = (s + 1, end);
                }
            }
        }
    }

    fn longest(&mut self, s: usize, p: usize, end: usize) -> Found<E> {
        let mut last = s;
        while self.one(last, p, end)? {
            last += 1;
        }
        for at in (s..=last).rev() {
            if let Some(found) = self.matches(at, end + 1)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn shortest(&mut self, mut s: usize, p: usize, end: usize) -> Found<E> {
        loop {
            if let Some(found) = self.matches(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.one(s, p, end)? {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn capture(&mut self, capture: Capture, s: usize, p: usize) -> Found<E> {
        if self.captures.len() >= CAPTURES_MAX {
            return Err(PatternError::Malformed("too many captures"));
        }
        let count = self.captures.len();
        self.captures.push(capture);
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.captures.truncate(count);
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Found<E> {
        let is_open = |capture: &Capture| matches!(capture, Capture::Open { .. });
        let place = self.captures.iter().rposition(is_open);
        let Some((place, Capture::Open { start })) =
            place.and_then(|place| Some((place, *self.captures.get(place)?)))
        else {
            return Err(PatternError::Malformed("invalid pattern capture"));
        };
        self.set(place, Capture::Text { start, end: s });
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.set(place, Capture::Open { start });
        }
        Ok(found)
    }

    fn set(&mut self, place: usize, capture: Capture) {
        if let Some(known) = self.captures.get_mut(place) {
            *known = capture;
        }
    }

    fn same_as_capture(&mut self, s: usize, digit: u8) -> Found<E> {
        let number = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let (start, end) = match self.captures.get(number) {
            Some(Capture::Text { start, end }) => (*start, *end),
            // Lua takes it for a text longer than any.
            Some(Capture::Position(_)) => return Ok(None),
            _ => return Err(PatternError::Malformed("invalid capture index")),
        };
        self.step((end - start) / 8)?;
        let captured = self.text.get(start..end).unwrap_or_default();
        let rest = self.text.get(s..).unwrap_or_default();
        Ok(rest.starts_with(captured).then_some(s + captured.len()))
    }

    /// `%bxy`.
    fn balanced(&mut self, s: usize, p: usize) -> Found<E> {
        let (Some(open), Some(close)) = (self.at(p), self.at(p + 1)) else {
            return Err(PatternError::Malformed("unbalanced pattern"));
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut level = 1;
        for at in s + 1..self.text.len() {
            self.step(1)?;
            match self.text.get(at) {
                Some(byte) if *byte == close => {
                    level -= 1;
                    if level == 0 {
                        return Ok(Some(at + 1));
                    }
                }
                Some(byte) if *byte == open => level += 1,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Where the single-character class at `p` ends.
    fn class_end(&self, p: usize) -> Result<usize, PatternError<E>> {
        match self.at(p) {
            Some(b'%') if self.at(p + 1).is_none() => {
                Err(PatternError::Malformed("malformed pattern (ends with '%')"))
            }
            Some(b'%') => Ok(p + 2),
            Some(b'[') => {
                let mut at = p + 1;
                if self.at(at) == Some(b'^') {
                    at += 1;
                }
                loop {
                    // The first byte may be a `]`.
                    match self.at(at) {
                        None => {
                            let error = "malformed pattern (missing ']')";
                            return Err(PatternError::Malformed(error));
                        }
                        Some(b'%') => at += 2,
                        Some(_) => at += 1,
                    }
                    if self.at(at) == Some(b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Returns whether the byte of the text at `s` is in the class.
    fn one(&mut self, s: usize, p: usize, end: usize) -> Result<bool, PatternError<E>> {
        self.step(end - p)?;
        let Some(&byte) = self.text.get(s) else {
            return Ok(false);
        };
        Ok(match self.at(p) {
            Some(b'.') => true,
            Some(b'%') => in_class(byte, self.at(p + 1).unwrap_or(0)),
            Some(b'[') => self.set_has(byte, p, end - 1),
            other => other == Some(byte),
        })
    }

    /// Returns whether a set from its `[` at `p` to its `]` at `last` has a byte.
    fn set_has(&self, byte: u8, p: usize, last: usize) -> bool {
        let is_inverted = self.at(p + 1) == Some(b'^');
        let mut at = p + 1 + usize::from(is_inverted);
        while at < last {
            let here = self.at(at).unwrap_or(0);
            let (has_byte, len) = if here == b'%' {
                (in_class(byte, self.at(at + 1).unwrap_or(0)), 2)
            } else if self.at(at + 1) == Some(b'-') && at + 2 < last {
                ((here..=self.at(at + 2).unwrap_or(0)).contains(&byte), 3)
            } else {
                (here == byte, 1)
            };
            if has_byte {
                return !is_inverted;
            }
            at += len;
        }
        is_inverted
    }
}

/// `%a` and its like; any other letter is itself.
const fn in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

/// Steps between two looks at the bound: some microseconds.
const STEPS_AT_ONCE: usize = 1024;

/// Lua's own limit.
const CAPTURES_MAX: usize = 32;

/// The deepest recursion, one level for each repetition or capture of a pattern. Each takes some
/// hundred bytes of the stack.
const DEPTH_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(text: &str, pattern: &str) -> Result<Option<(usize, usize, usize)>, String> {
        let mut left = 1_000_000_usize;
        let mut spend = |steps: usize| {
            left = left.saturating_sub(steps);
            if left == 0 { Err(()) } else { Ok(()) }
        };
        match find(text.as_bytes(), pattern.as_bytes(), 0, true, &mut spend) {
            Ok(found) => Ok(found.map(|it| (it.start, it.end, it.captures.len()))),
            Err(PatternError::Malformed(what)) => Err(what.to_owned()),
            Err(PatternError::Stopped(())) => Err("stopped".to_owned()),
        }
    }

    #[test]
    fn patterns_match_as_in_lua() {
        let rows = [
            ("hello", "l+", Some((2, 4, 0))),
            ("hello", "^l", None),
            ("hello", "", Some((0, 0, 0))),
            ("hello", "o$", Some((4, 5, 0))),
            ("a.b", "%.", Some((1, 2, 0))),
            ("key=val", "(%w+)=(%w+)", Some((0, 7, 2))),
            ("x12", "()%d", Some((1, 2, 1))),
            ("f(a(b)c)d", "%b()", Some((1, 8, 0))),
            ("THE (quick) fox", "%f[%a]%a+%f[%A]", Some((0, 3, 0))),
            ("aXbXc", "a.-X", Some((0, 2, 0))),
            ("abab", "(ab)%1", Some((0, 4, 1))),
            ("[x]", "[]x]+", Some((1, 3, 0))),
            ("a-z", "[a%-]+", Some((0, 2, 0))),
            ("B", "[^a-z]", Some((0, 1, 0))),
            ("color colour", "colou?r$", Some((6, 12, 0))),
        ];
        for (text, pattern, want) in rows {
            assert_eq!(matched(text, pattern), Ok(want), "{text} {pattern}");
        }
    }

    #[test]
    fn malformed_patterns_have_the_texts_of_lua() {
        let rows = [
            ("%", "malformed pattern (ends with '%')"),
            ("[a", "malformed pattern (missing ']')"),
            ("(a", "unfinished capture"),
            ("a)", "invalid pattern capture"),
            ("%1", "invalid capture index"),
            ("%fa", "missing '[' after '%f' in pattern"),
            ("%b", "unbalanced pattern"),
        ];
        for (pattern, want) in rows {
            assert_eq!(matched("aaa", pattern), Err(want.to_owned()), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_backtracks_is_stopped() {
        let text = "a".repeat(30) + "b";
        let pattern = "a*".repeat(30) + "c";
        assert_eq!(matched(&text, &pattern), Err("stopped".to_owned()));
        let deep = "a?".repeat(1000);
        assert_eq!(
            matched(&"a".repeat(1000), &deep),
            Err("pattern too complex".to_owned())
        );
    }
}
