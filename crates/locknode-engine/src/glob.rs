//! Redis's patterns over bytes: `*`, `?`, `[a-z]`, `[^a]` and `\x`.
//!
//! A pattern is parsed once, so that a class costs the same however it is written. The matcher
//! backtracks only to the last star, so its time is bounded by the product of the two lengths; a
//! recursive matcher takes exponential time for `*a*a*a*a*b`.

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<Part>);

/// The texts that match a pattern, as long as comparing them does not take long.
#[derive(Debug)]
pub(crate) struct Filter {
    /// `None` when all texts pass.
    pattern: Option<Pattern>,
    looks: usize,
}

/// A part that matches one byte, or any number of them if it is a star.
#[derive(Clone, Debug)]
enum Part {
    Star,
    Any,
    Literal(u8),
    Class(Box<Class>),
}

/// The bytes of a class, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Class([u64; 4]);

/// Returns whether the whole text matches the pattern.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    Pattern::of(pattern).matches(text)
}

impl Filter {
    /// A filter for keys, of which `*` lets all pass.
    pub(crate) fn of(pattern: &[u8]) -> Self {
        let pattern = (pattern != b"*").then(|| Pattern::of(pattern));
        Self { pattern, looks: 0 }
    }

    /// Returns whether a text passes; `false` once the filter is spent.
    pub(crate) fn passes(&mut self, text: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        pattern.matches_within(text, &mut self.looks)
    }

    /// Returns how many bytes were compared.
    pub(crate) const fn looks(&self) -> usize {
        self.looks
    }

    /// Returns whether comparing took too long, so that texts did not pass that match.
    pub(crate) const fn is_spent(&self) -> bool {
        self.looks >= LOOKS_MAX
    }
}

impl From<Pattern> for Filter {
    fn from(pattern: Pattern) -> Self {
        Self {
            pattern: Some(pattern),
            looks: 0,
        }
    }
}

impl Pattern {
    pub(crate) fn of(mut text: &[u8]) -> Self {
        let mut parts = Vec::new();
        while let [first, rest @ ..] = text {
            let (part, rest) = match (first, rest) {
                (b'*', _) => (Part::Star, rest),
                (b'?', _) => (Part::Any, rest),
                (b'[', _) => {
                    let (class, rest) = Class::of(rest);
                    (Part::Class(Box::new(class)), rest)
                }
                (b'\\', [escaped, rest @ ..]) => (Part::Literal(*escaped), rest),
                (literal, _) => (Part::Literal(*literal), rest),
            };
            text = rest;
            // Consecutive stars are one.
            if !matches!((&part, parts.last()), (Part::Star, Some(Part::Star))) {
                parts.push(part);
            }
        }
        Self(parts)
    }

    /// Returns how often a byte of a text is compared at most; those before the first star are compared
    /// once.
    #[cfg(any(feature = "acl", feature = "compat"))]
    pub(crate) fn looks_per_byte(&self) -> usize {
        let between_stars = self.0.split(|part| matches!(part, Part::Star));
        between_stars.skip(1).map(<[_]>::len).max().unwrap_or(0)
    }

    /// Returns whether the whole text matches. As in Redis, only the empty pattern matches the
    /// empty text; the commands treat the pattern `*` as no pattern.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        self.matches_while(text, || true)
    }

    /// The same, and counts the comparisons of bytes up to [`LOOKS_MAX`].
    fn matches_within(&self, text: &[u8], looks: &mut usize) -> bool {
        self.matches_while(text, || {
            *looks += 1;
            *looks < LOOKS_MAX
        })
    }

    /// The same; `false` when `goes_on`, which is asked before each comparison, says no.
    #[inline]
    fn matches_while(&self, text: &[u8], mut goes_on: impl FnMut() -> bool) -> bool {
        if text.is_empty() {
            return self.0.is_empty();
        }
        let (mut at, mut seen) = (0, 0);
        // The pattern after the last star, and the text that the star has not consumed yet.
        let mut star = None;
        while goes_on() {
            let part = self.0.get(at);
            if matches!(part, Some(Part::Star)) {
                at += 1;
                star = Some((at, seen));
                continue;
            }
            let Some(&byte) = text.get(seen) else {
                // If the star consumed more, the text would only be shorter still.
                return part.is_none();
            };
            if part.is_some_and(|part| part.has(byte)) {
                at += 1;
                seen += 1;
            } else if let Some((after_star, taken)) = star {
                at = after_star;
                seen = taken + 1;
                star = Some((after_star, seen));
            } else {
                return false;
            }
        }
        false
    }
}

impl Part {
    /// Returns whether this part, which is not a star, matches the byte.
    fn has(&self, byte: u8) -> bool {
        match self {
            Self::Star => false,
            Self::Any => true,
            Self::Literal(literal) => *literal == byte,
            Self::Class(class) => class.has(byte),
        }
    }
}

impl Class {
    /// Parses a class after its `[`; returns it and what follows its `]`, which may be missing at
    /// the end of the pattern.
    fn of(text: &[u8]) -> (Self, &[u8]) {
        let mut class = Self::default();
        let (is_negated, mut rest) = match text {
            [b'^', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        loop {
            rest = match rest {
                [] => break,
                [b'\\', escaped, rest @ ..] => {
                    class.add(*escaped);
                    rest
                }
                [b']', after @ ..] => {
                    rest = after;
                    break;
                }
                [first, b'-', last, rest @ ..] => {
                    (*first.min(last)..=*first.max(last)).for_each(|byte| class.add(byte));
                    rest
                }
                [literal, rest @ ..] => {
                    class.add(*literal);
                    rest
                }
            };
        }
        if is_negated {
            class.0 = class.0.map(|word| !word);
        }
        (class, rest)
    }

    fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    fn has(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6)).copied().unwrap_or(0);
        word & 1 << (byte & 63) != 0
    }
}

/// How many comparisons of bytes others wait for at most: some tens of milliseconds. A channel of 200
/// bytes may be compared with 10,000 patterns such as `*:channel`.
pub(crate) const LOOKS_MAX: usize = 20_000_000;

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

    #[cfg(any(feature = "acl", feature = "compat"))]
    #[test]
    fn the_longest_part_after_a_star_is_looked_for_at_each_byte() {
        let rows = [
            ("lock:*", 0),
            ("lock:1", 0),
            ("*", 0),
            ("*:lock", 5),
            ("a*b?[cd]*e", 3),
        ];
        for (pattern, looks) in rows {
            assert_eq!(
                super::Pattern::of(pattern.as_bytes()).looks_per_byte(),
                looks,
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_hostile_pattern_takes_at_most_the_product_of_the_lengths() {
        let pattern = [b"*a".repeat(500), b"b".to_vec()].concat();
        let text = b"a".repeat(5_000);
        assert!(!matches(&pattern, &text));
    }

    /// If it were parsed again for every byte, the class would be read 16,000 million times.
    #[test]
    fn a_long_class_costs_no_more_than_a_short_one() {
        let pattern = [b"*[".as_slice(), &b"xyzw".repeat(4_000), b"]b"].concat();
        let text = b"x".repeat(1_000_000);
        assert!(!matches(&pattern, &text));
    }
}
