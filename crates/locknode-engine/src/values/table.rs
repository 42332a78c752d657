//! A small set of elements, each with a key: the fields of a hash, the members of a set, scores.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::{ELEMENT_BYTES, Score};

/// A set of elements; see the module docs.
///
/// The locks of most libraries have one or two, which a row holds in the least memory and in the
/// order in which they were added. From [`ROW_MAX`] on they are sorted, so that no number of them
/// makes a command slow.
#[derive(Clone, Debug)]
pub(crate) struct Table<E> {
    elements: Elements<E>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Elements<E> {
    Row(Vec<E>),
    Sorted(BTreeSet<Keyed<E>>),
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

/// A field of a hash with its value. Both are in one allocation: most hashes are locks, with one
/// field and a short value, and another allocation would take more than all that is in it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    bytes: Box<[u8]>,
    name_len: u32,
}

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
        Self {
            bytes: [name, value].concat().into(),
            // All of a hash is at most `BYTES_MAX` bytes.
            name_len: u32::try_from(name.len()).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.parts().1
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let name_len = usize::try_from(self.name_len).unwrap_or(usize::MAX);
        self.bytes.split_at_checked(name_len).unwrap_or_default()
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
        self.bytes.len()
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

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self {
            elements: Elements::Row(Vec::new()),
            bytes: 0,
        }
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
        match &self.elements {
            Elements::Row(row) => row.len(),
            Elements::Sorted(set) => set.len(),
        }
    }

    /// Returns the bytes that the elements occupy, about.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&E> {
        match &self.elements {
            Elements::Row(row) => row.iter().find(|each| each.key() == key),
            Elements::Sorted(set) => set.get(key).map(|Keyed(element)| element),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        let (row, set) = match &self.elements {
            Elements::Row(row) => (Some(row), None),
            Elements::Sorted(set) => (None, Some(set)),
        };
        let set = set.into_iter().flatten().map(|Keyed(element)| element);
        row.into_iter().flatten().chain(set)
    }

    /// Adds an element, or puts it in the place of the one with its key; returns that one.
    pub(crate) fn put(&mut self, element: E) -> Option<E> {
        self.bytes += element.heap_len() + ELEMENT_BYTES;
        let old = match &mut self.elements {
            Elements::Row(row) => {
                let is_it = |each: &E| each.key() == element.key();
                match row.iter().position(is_it) {
                    Some(place) => Some(std::mem::replace(&mut row[place], element)),
                    None if row.len() < ROW_MAX => {
                        // One element takes the room of one: most locks never have another.
                        if row.is_empty() {
                            row.reserve_exact(1);
                        }
                        row.push(element);
                        None
                    }
                    None => {
                        let row = std::mem::take(row).into_iter();
                        let set = row.chain([element]).map(Keyed).collect();
                        self.elements = Elements::Sorted(set);
                        None
                    }
                }
            }
            Elements::Sorted(set) => set.replace(Keyed(element)).map(|Keyed(old)| old),
        };
        self.forget(old)
    }

    /// Removes an element and returns it.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<E> {
        let old = match &mut self.elements {
            Elements::Row(row) => {
                let place = row.iter().position(|each| each.key() == key);
                place.map(|place| row.remove(place))
            }
            Elements::Sorted(set) => set.take(key).map(|Keyed(old)| old),
        };
        self.forget(old)
    }

    fn forget(&mut self, old: Option<E>) -> Option<E> {
        if let Some(old) = &old {
            self.bytes -= old.heap_len() + ELEMENT_BYTES;
        }
        old
    }
}

/// The longest row: to look through it costs about as much as to hash a key.
const ROW_MAX: usize = 32;
