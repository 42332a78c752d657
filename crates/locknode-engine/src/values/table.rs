//! A small set of elements, each with a key: the fields of a hash, the members of a set, scores.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::slice;

use super::{ELEMENT_BYTES, Score};

/// A set of elements; see the module docs.
///
/// The locks of most libraries have one, which takes no memory beside its own. Few are in a row, in
/// the order in which they were added. From [`ROW_MAX`] on they are sorted, so that no number of
/// them makes a command slow.
#[derive(Clone, Debug, Default)]
pub(crate) enum Table<E> {
    #[default]
    None,
    One(E),
    Many(Box<Many<E>>),
}

/// All elements are in the row, or all are sorted.
#[derive(Clone, Debug)]
pub(crate) struct Many<E> {
    row: Vec<E>,
    sorted: BTreeSet<Keyed<E>>,
    bytes: usize,
}

/// Something that a table holds.
pub(crate) trait Element {
    fn key(&self) -> &[u8];

    /// Returns whether an element with the same key is the same in all else.
    fn is_same(&self, other: &Self) -> bool;

    /// Returns how many bytes it has elsewhere.
    fn heap_len(&self) -> usize {
        self.key().len()
    }
}

/// A field of a hash with its value. Both are in one allocation, behind the length of the name: most
/// hashes are locks, with one field and a short value, and another allocation would take more than
/// all that is in it.
#[derive(Clone, Debug)]
pub(crate) struct Field(Box<[u8]>);

/// A member of a sorted set.
#[derive(Clone, Debug)]
pub(crate) struct Scored {
    pub(crate) member: Box<[u8]>,
    pub(crate) score: Score,
}

/// An element in the order of the keys.
#[derive(Clone, Debug)]
struct Keyed<E>(E);

impl Field {
    pub(crate) fn new(name: &[u8], value: &[u8]) -> Self {
        // All of a hash is at most `BYTES_MAX` bytes.
        let name_len = u32::try_from(name.len()).unwrap_or(u32::MAX);
        Self([&name_len.to_le_bytes(), name, value].concat().into())
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.parts().1
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let (name_len, bytes) = self.0.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let name_len = usize::try_from(u32::from_le_bytes(*name_len)).unwrap_or(usize::MAX);
        bytes.split_at_checked(name_len).unwrap_or_default()
    }
}

impl Element for Field {
    fn key(&self) -> &[u8] {
        self.parts().0
    }

    fn is_same(&self, other: &Self) -> bool {
        self.value() == other.value()
    }

    fn heap_len(&self) -> usize {
        self.0.len()
    }
}

impl Element for Box<[u8]> {
    fn key(&self) -> &[u8] {
        self
    }

    fn is_same(&self, _: &Self) -> bool {
        true
    }
}

impl Element for Scored {
    fn key(&self) -> &[u8] {
        &self.member
    }

    fn is_same(&self, other: &Self) -> bool {
        self.score == other.score
    }
}

impl<E: Element> Borrow<[u8]> for Keyed<E> {
    fn borrow(&self) -> &[u8] {
        self.0.key()
    }
}

impl<E: Element> PartialEq for Keyed<E> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<E: Element> Eq for Keyed<E> {}

impl<E: Element> PartialOrd for Keyed<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E: Element> Ord for Keyed<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl<E: Element> PartialEq for Table<E> {
    /// The order does not count.
    fn eq(&self, other: &Self) -> bool {
        let has = |element: &E| {
            let found = other.get(element.key());
            found.is_some_and(|found| found.is_same(element))
        };
        self.len() == other.len() && self.iter().all(has)
    }
}

impl<E: Element> Table<E> {
    pub(crate) fn len(&self) -> usize {
        let (row, sorted) = self.parts();
        row.len() + sorted.map_or(0, BTreeSet::len)
    }

    /// Returns the bytes that the elements occupy, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(element) => element.heap_len() + ALLOCATION_BYTES,
            Self::Many(many) => many.bytes,
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&E> {
        let (row, sorted) = self.parts();
        let in_row = row.iter().find(|each| each.key() == key);
        in_row.or_else(|| sorted?.get(key).map(|Keyed(element)| element))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        let (row, sorted) = self.parts();
        let sorted = sorted.into_iter().flatten();
        row.iter().chain(sorted.map(|Keyed(element)| element))
    }

    /// Adds an element, or puts it in the place of the one with its key; returns that one.
    pub(crate) fn put(&mut self, element: E) -> Option<E> {
        match self {
            Self::Many(many) => return many.put(element),
            Self::One(one) if one.key() == element.key() => {
                return Some(std::mem::replace(one, element));
            }
            _ => {}
        }
        *self = match std::mem::take(self) {
            Self::One(one) => Self::Many(Box::new(Many::of([one, element]))),
            _ => Self::One(element),
        };
        None
    }

    /// Removes an element and returns it.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<E> {
        if let Self::Many(many) = self {
            let old = many.remove(key);
            if let Some(one) = many.take_only() {
                *self = Self::One(one);
            }
            return old;
        }
        match std::mem::take(self) {
            Self::One(one) if one.key() == key => Some(one),
            other => {
                *self = other;
                None
            }
        }
    }

    fn parts(&self) -> (&[E], Option<&BTreeSet<Keyed<E>>>) {
        match self {
            Self::None => (&[], None),
            Self::One(one) => (slice::from_ref(one), None),
            Self::Many(many) => (&many.row, Some(&many.sorted)),
        }
    }
}

impl<E: Element> Many<E> {
    fn of(row: [E; 2]) -> Self {
        Self {
            bytes: row.iter().map(bytes_of).sum(),
            row: row.into(),
            sorted: BTreeSet::new(),
        }
    }

    fn put(&mut self, element: E) -> Option<E> {
        self.bytes += bytes_of(&element);
        let is_it = |each: &E| each.key() == element.key();
        let old = if let Some(place) = self.row.iter().position(is_it) {
            Some(std::mem::replace(&mut self.row[place], element))
        } else if self.sorted.is_empty() && self.row.len() < ROW_MAX {
            self.row.push(element);
            None
        } else {
            let row = std::mem::take(&mut self.row);
            self.sorted.extend(row.into_iter().map(Keyed));
            self.sorted.replace(Keyed(element)).map(|Keyed(old)| old)
        };
        self.forget(old)
    }

    fn remove(&mut self, key: &[u8]) -> Option<E> {
        let place = self.row.iter().position(|each| each.key() == key);
        let old = match place {
            Some(place) => Some(self.row.remove(place)),
            None => self.sorted.take(key).map(|Keyed(old)| old),
        };
        self.forget(old)
    }

    fn forget(&mut self, old: Option<E>) -> Option<E> {
        self.bytes -= old.as_ref().map_or(0, bytes_of);
        old
    }

    /// Takes the only element out; `None` if there are others.
    fn take_only(&mut self) -> Option<E> {
        match self.row.len() + self.sorted.len() {
            1 => (self.row.pop()).or_else(|| self.sorted.pop_first().map(|Keyed(one)| one)),
            _ => None,
        }
    }
}

/// Returns the bytes of one element of many, about.
fn bytes_of(element: &impl Element) -> usize {
    element.heap_len() + ELEMENT_BYTES
}

/// The longest row: to look through it costs about as much as to hash a key.
const ROW_MAX: usize = 32;

/// The allocator's share of an allocation, about: its header, and what it rounds up.
const ALLOCATION_BYTES: usize = 16;
