//! Redis' patterns over bytes: `*`, `?`, `[a-z]`, `[^a]` and `\x`.
//!
//! The matcher keeps one place to go back to, the last star, so that its time is bounded by the product of the two
//! lengths: the recursive kind takes exponential time for `*a*a*a*a*b`.

/// Whether the whole text matches the pattern. As in Redis only the empty pattern matches the empty text; the
/// commands treat the pattern `*` as no pattern.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at, mut seen) = (0, 0);
    // The pattern after the last star, and the text that the star has not taken yet.
    let mut star = None;
    loop {
        let rest = pattern.get(at..).unwrap_or_default();
        if rest.first() == Some(&b'*') {
            at += 1;
            star = Some((at, seen));
            continue;
        }
        let Some(&byte) = text.get(seen) else {
            if rest.is_empty() {
                return true;
            }
            // Taking more for the star only shortens the text that is short already.
            return false;
        };
        match match_one(rest, byte) {
            Some(len) => {
                at += len;
                seen += 1;
            }
            None => match star {
                Some((after_star, taken)) => {
                    at = after_star;
                    seen = taken + 1;
                    star = Some((after_star, seen));
                }
                None => return false,
            },
        }
    }
}

/// Whether the pattern is the one that matches everything.
pub(crate) fn is_any(pattern: &[u8]) -> bool {
    pattern == b"*"
}

/// Matches one byte with the head of the pattern, which is not a star; the length of that head if it matches.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ref class @ ..] => match_class(class, byte).map(|len| len + 1),
        [b'\\', escaped, ..] => (escaped == byte).then_some(2),
        [literal, ..] => (literal == byte).then_some(1),
    }
}

/// Matches one byte with a class, given after its `[`; the length of the class with its `]`, which may be missing at
/// the pattern's end.
fn match_class(class: &[u8], byte: u8) -> Option<usize> {
    let is_negated = class.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut is_in = false;
    loop {
        at += match *class.get(at..).unwrap_or_default() {
            [] => break,
            [b'\\', escaped, ..] => {
                is_in |= escaped == byte;
                2
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                is_in |= (first.min(last)..=first.max(last)).contains(&byte);
                3
            }
            [literal, ..] => {
                is_in |= literal == byte;
                1
            }
        };
    }
    (is_in != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_they_do_in_redis() {
        let rows = [
            ("", "", true),
            ("*", "", false),
            ("*", "a", true),
            ("a*", "a", true),
            ("a**", "a", true),
            ("*a", "a", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbcd", false),
            ("*b*", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("[\\]]", "]", true),
            ("[a\\-z]", "-", true),
            ("[a\\-z]", "b", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("[", "a", false),
            ("[", "[", false),
            ("[^", "a", true),
            ("[a", "a", true),
            ("[a", "b", false),
            ("[a-", "-", true),
            ("[a-z", "q", true),
            ("[]", "a", false),
            ("[^]", "a", true),
            ("[a-]b]", "^", true),
            ("[a-]b]", "b", true),
            ("x[]y", "xay", false),
            ("lock:*:job", "lock:eu:7:job", true),
            ("A", "a", false),
        ];
        for (pattern, text, want) in rows {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                want,
                "{pattern:?} on {text:?}"
            );
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_more_than_the_product_of_the_lengths() {
        let pattern = [b"*a".repeat(500), b"b".to_vec()].concat();
        let text = b"a".repeat(5_000);
        assert!(!matches(&pattern, &text));
    }
}
