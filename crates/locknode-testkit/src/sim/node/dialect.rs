//! What a node of another dialect does not know.

use crate::random::Random;
use crate::scenario::Dialect;

impl Dialect {
    /// What this node of a world says it has.
    pub(super) fn of_node(self, seed: u64, node: u8) -> Self {
        if self != Self::Mixed {
            return self;
        }
        let others = [Self::DelEx, Self::DelIfEq, Self::Script];
        let place = Random::stream(seed, "dialect", node.into()).index(8);
        others.get(place).copied().unwrap_or(Self::Lock)
    }

    pub(super) fn lacks(self, name: &[u8]) -> bool {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        (self != Self::DelEx && is(b"delex"))
            || (self != Self::DelIfEq && is(b"delifeq"))
            || name
                .first_chunk::<5>()
                .is_some_and(|head| head.eq_ignore_ascii_case(b"lock."))
    }

    /// The question which commands there are, without those that this dialect lacks, and a request for one of them by a name
    /// that nobody has; `None` for every other request.
    pub(super) fn hide<'a>(self, args: &[&'a [u8]]) -> Option<Vec<&'a [u8]>> {
        let (Self::DelEx | Self::DelIfEq | Self::Script, [name, info, names @ ..]) = (self, args)
        else {
            return None;
        };
        if self.lacks(name) {
            let words = [&b"-"[..], info].into_iter();
            return Some(words.chain(names.iter().copied()).collect());
        }
        if !name.eq_ignore_ascii_case(b"command") || !info.eq_ignore_ascii_case(b"info") {
            return None;
        }
        let known: &[u8] = match self {
            Self::DelEx => b"delex",
            Self::DelIfEq => b"delifeq",
            Self::Lock | Self::Script | Self::Mixed => b"",
        };
        let shown = names.iter().map(|name| {
            if name.eq_ignore_ascii_case(known) {
                *name
            } else {
                &b"-"[..]
            }
        });
        Some([*name, *info].into_iter().chain(shown).collect())
    }
}
