//! A small map from bytes to something: the fields of a hash, the members of a set, scores.

use std::collections::BTreeMap;

use super::ELEMENT_BYTES;

/// A map; see the module docs.
///
/// The locks of most libraries have one or two entries, which a row holds in the least memory and in
/// the order in which they were added. From [`ROW_MAX`] on they are sorted, so that no number of them
/// makes a command slow.
#[derive(Clone, Debug)]
pub(crate) struct Table<V> {
    entries: Entries<V>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Entries<V> {
    Row(Vec<(Box<[u8]>, V)>),
    Sorted(BTreeMap<Box<[u8]>, V>),
}

/// Something that a table holds, with the bytes that it has elsewhere.
pub(crate) trait Item {
    fn heap_bytes(&self) -> usize;
}

impl Item for () {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Item for f64 {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Item for Box<[u8]> {
    fn heap_bytes(&self) -> usize {
        self.len() + ELEMENT_BYTES / 2
    }
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self {
            entries: Entries::Row(Vec::new()),
            bytes: 0,
        }
    }
}

impl<V: PartialEq> PartialEq for Table<V> {
    /// The order does not count.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, item)| other.get(key) == Some(item))
    }
}

impl<V> Table<V> {
    pub(crate) fn len(&self) -> usize {
        match &self.entries {
            Entries::Row(row) => row.len(),
            Entries::Sorted(map) => map.len(),
        }
    }

    /// Returns the bytes that the entries occupy, about.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        match &self.entries {
            Entries::Row(row) => {
                let entry = row.iter().find(|(each, _)| **each == *key);
                entry.map(|(_, item)| item)
            }
            Entries::Sorted(map) => map.get(key),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &V)> {
        let (row, map) = match &self.entries {
            Entries::Row(row) => (Some(row), None),
            Entries::Sorted(map) => (None, Some(map)),
        };
        let row = row.into_iter().flatten().map(|(key, item)| (&**key, item));
        row.chain(map.into_iter().flatten().map(|(key, item)| (&**key, item)))
    }
}

impl<V: Item> Table<V> {
    /// Adds an entry, or replaces what is there; returns the replaced one.
    pub(crate) fn insert(&mut self, key: &[u8], item: V) -> Option<V> {
        let added = item.heap_bytes();
        let old = match &mut self.entries {
            Entries::Row(row) => match row.iter().position(|(each, _)| **each == *key) {
                Some(place) => Some(std::mem::replace(&mut row[place].1, item)),
                None if row.len() < ROW_MAX => {
                    // One entry takes the room of one: most locks never have another.
                    if row.is_empty() {
                        row.reserve_exact(1);
                    }
                    row.push((key.into(), item));
                    None
                }
                None => {
                    let mut map: BTreeMap<_, _> = std::mem::take(row).into_iter().collect();
                    map.insert(key.into(), item);
                    self.entries = Entries::Sorted(map);
                    None
                }
            },
            Entries::Sorted(map) => map.insert(key.into(), item),
        };
        self.bytes += added;
        self.bytes -= match &old {
            Some(old) => old.heap_bytes(),
            None => 0,
        };
        if old.is_none() {
            self.bytes += key.len() + ELEMENT_BYTES;
        }
        old
    }

    /// Removes an entry and returns it.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<V> {
        let item = match &mut self.entries {
            Entries::Row(row) => {
                let place = row.iter().position(|(each, _)| **each == *key)?;
                row.remove(place).1
            }
            Entries::Sorted(map) => map.remove(key)?,
        };
        self.bytes -= key.len() + ELEMENT_BYTES + item.heap_bytes();
        Some(item)
    }
}

/// The longest row: to look through it costs about as much as to hash a key.
const ROW_MAX: usize = 32;
