//! The patterns of keys, or of channels, that a user may use.

use super::access::Access;
use crate::glob::Pattern;

/// All, or those that match one of some patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternList {
    is_all: bool,
    patterns: Vec<Allowed>,
}

#[derive(Clone, Debug)]
struct Allowed {
    text: Box<[u8]>,
    pattern: Pattern,
    access: Access,
}

impl PatternList {
    pub(super) const ALL: Self = Self {
        is_all: true,
        patterns: Vec::new(),
    };

    pub(super) const NONE: Self = Self {
        is_all: false,
        patterns: Vec::new(),
    };

    pub(super) const fn is_all(&self) -> bool {
        self.is_all
    }

    /// Adds a pattern, or widens what is allowed where it is there.
    pub(super) fn add(&mut self, text: &[u8], access: Access) {
        if let Some(known) = self.patterns.iter_mut().find(|it| *it.text == *text) {
            known.access = known.access.and(access);
            return;
        }
        self.patterns.push(Allowed {
            text: text.into(),
            pattern: Pattern::of(text),
            access,
        });
    }

    /// Returns whether this may be done to a key, or to a channel.
    pub(super) fn allows(&self, name: &[u8], access: Access) -> bool {
        let allows = |it: &Allowed| {
            it.access.has(access)
                // What would take long to compare is not allowed.
                && it.pattern.looks_per_byte().saturating_mul(name.len()) <= LOOKS_MAX
                && it.pattern.matches(name)
        };
        self.is_all || self.patterns.iter().any(allows)
    }

    /// Returns whether this very pattern is there.
    pub(super) fn has(&self, text: &[u8]) -> bool {
        self.is_all || self.patterns.iter().any(|it| *it.text == *text)
    }

    /// Appends the rules that make it: those of keys with what may be done to them.
    pub(super) fn describe(&self, sigil: u8, out: &mut Vec<u8>) {
        let mut is_first = true;
        let mut put = |before: &[u8], text: &[u8]| {
            if !std::mem::take(&mut is_first) {
                out.push(b' ');
            }
            out.extend_from_slice(before);
            out.push(sigil);
            out.extend_from_slice(text);
        };
        if self.is_all {
            put(b"", b"*");
        }
        for it in &self.patterns {
            let before: &[u8] = match it.access {
                Access::READ => b"%R",
                Access::WRITE => b"%W",
                _ => b"",
            };
            put(before, &it.text);
        }
    }
}

/// How many comparisons of bytes with parts of one pattern a name is worth: a millisecond. Keys of
/// locks have tens of bytes; a pattern such as `*:x` compares each byte twice.
const LOOKS_MAX: usize = 1_000_000;
