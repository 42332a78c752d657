//! `notify-keyspace-events`: which classes of events are published, and on which channels.

use std::fmt::{self, Write as _};

/// A set of classes, written as Redis's letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClasses(u16);

impl EventClasses {
    /// Publishes on `__keyspace@<db>__:<key>`.
    pub(crate) const KEYSPACE: Self = Self(1);
    /// Publishes on `__keyevent@<db>__:<event>`.
    pub(crate) const KEYEVENT: Self = Self(1 << 1);
    /// Commands on keys of any type, such as DEL and EXPIRE.
    pub(crate) const GENERIC: Self = Self(1 << 2);
    /// Commands on strings.
    pub(crate) const STRING: Self = Self(1 << 3);
    /// Keys whose deadline has passed.
    pub(crate) const EXPIRED: Self = Self(1 << 8);
    /// Reads of missing keys.
    pub(crate) const MISS: Self = Self(1 << 11);
    /// Keys that did not exist before.
    pub(crate) const NEW: Self = Self(1 << 13);
    /// The classes of the letter `A`.
    const ALL: Self = Self(0b01_0111_1111_1100);

    /// Parses the letters, in any order; `None` if one is no class.
    pub fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::default(), |classes, letter| {
            let class = match letter {
                b'A' => Self::ALL,
                _ => LETTERS.iter().find(|(it, _)| it == letter)?.1,
            };
            Some(Self(classes.0 | class.0))
        })
    }

    /// Returns whether events of a class are published on any channel.
    pub(crate) const fn publish(self, class: Self) -> bool {
        self.has(class) && (self.has(Self::KEYSPACE) || self.has(Self::KEYEVENT))
    }

    /// Returns whether all of `other` are in this set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether no event is published at all.
    pub(crate) const fn is_silent(self) -> bool {
        let channels = Self::KEYSPACE.0 | Self::KEYEVENT.0;
        self.0 & channels == 0 || self.0 & !channels == 0
    }

    pub(crate) const fn to_bits(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

impl fmt::Display for EventClasses {
    /// Writes what CONFIG GET shows; as in Redis, `n` is missing beside `A`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_all = self.has(Self::ALL);
        if has_all {
            f.write_char('A')?;
        }
        for (letter, class) in LETTERS {
            let is_in_all = Self::ALL.has(*class) || *class == Self::NEW;
            if self.has(*class) && !(has_all && is_in_all) {
                f.write_char(char::from(*letter))?;
            }
        }
        Ok(())
    }
}

/// In the order in which Redis writes them. `e` and `t` are accepted, and nothing is evicted and
/// there are no streams.
const LETTERS: &[(u8, EventClasses)] = &[
    (b'g', EventClasses::GENERIC),
    (b'$', EventClasses::STRING),
    (b'l', EventClasses(1 << 4)),
    (b's', EventClasses(1 << 5)),
    (b'h', EventClasses(1 << 6)),
    (b'z', EventClasses(1 << 7)),
    (b'x', EventClasses::EXPIRED),
    (b'e', EventClasses(1 << 9)),
    (b't', EventClasses(1 << 10)),
    (b'd', EventClasses(1 << 12)),
    (b'n', EventClasses::NEW),
    (b'K', EventClasses::KEYSPACE),
    (b'E', EventClasses::KEYEVENT),
    (b'm', EventClasses::MISS),
];

#[cfg(test)]
mod tests {
    use super::EventClasses;

    /// As Redis 8.0.6 shows them.
    #[test]
    fn letters_are_read_in_any_order_and_written_in_redis_order() {
        for (text, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("Kgx", "gxK"),
            ("Kn", "nK"),
            ("Em", "Em"),
            ("KEA$", "AKE"),
            ("KElhszxet$gdmn", "AKEm"),
            ("KEAmn", "AKEm"),
            ("zE", "zE"),
            ("KEt", "tKE"),
        ] {
            let classes = EventClasses::parse(text.as_bytes()).map(|it| it.to_string());
            assert_eq!(classes.as_deref(), Some(shown), "{text:?}");
        }
        for text in ["o", "KEc", "kE", "K E"] {
            assert_eq!(EventClasses::parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
