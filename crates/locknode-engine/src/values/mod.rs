//! What a key may hold besides a token: a hash, a list, a set or a sorted set, as some lock libraries
//! keep their locks.
//!
//! ```text
//!  slot: key, deadline, grant with a mark, index --> Values[index] --> Hash | List | Set | SortedSet
//! ```
//!
//! To the lock table such an entry is a lock like any other: deadline, fence, restart guard, SCAN,
//! DEL and expiry know nothing of what it holds. Its slot stores an index into this table of the
//! shard in place of a token, and its grant has a mark. An empty value is no key.

mod access;
mod encoding;
mod sorted_set;
mod store;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub(crate) use encoding::decode;
pub(crate) use sorted_set::{Score, SortedSet};
pub(crate) use store::Values;
pub(crate) use table::{Element, Field, Table};

/// The value of a key that holds no token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Hash(Hash),
    List(Box<List>),
    // Rarer than a hash: in a place of its own it leaves each value the size of a hash.
    Set(Box<Set>),
    SortedSet(Box<SortedSet>),
}

/// Fields and their values, in the order in which they were added while they are few.
pub(crate) type Hash = Table<Field>;

/// Members, in the order in which they were added while they are few.
pub(crate) type Set = Table<Box<[u8]>>;

/// Elements from left to right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    elements: VecDeque<Box<[u8]>>,
    bytes: usize,
}

/// One kind of value.
pub(crate) trait Kind: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
    fn len(&self) -> usize;
}

impl Value {
    /// Returns what TYPE replies.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Hash(hash) => hash.len() == 0,
            Self::List(list) => list.len() == 0,
            Self::Set(set) => set.len() == 0,
            Self::SortedSet(set) => set.len() == 0,
        }
    }

    /// Returns the bytes that it occupies, about; at most [`BYTES_MAX`].
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Hash(hash) => hash.bytes(),
            Self::List(list) => list.bytes,
            Self::Set(set) => set.bytes(),
            Self::SortedSet(set) => set.bytes(),
        }
    }
}

impl List {
    pub(crate) fn len(&self) -> usize {
        self.elements.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        self.elements.get(index).map(|element| &**element)
    }

    pub(crate) fn push(&mut self, end: End, element: &[u8]) {
        self.bytes += element.len() + ELEMENT_BYTES;
        match end {
            End::Left => self.elements.push_front(element.into()),
            End::Right => self.elements.push_back(element.into()),
        }
    }

    pub(crate) fn pop(&mut self, end: End) -> Option<Box<[u8]>> {
        let element = match end {
            End::Left => self.elements.pop_front(),
            End::Right => self.elements.pop_back(),
        }?;
        self.bytes -= element.len() + ELEMENT_BYTES;
        Some(element)
    }

    /// Returns the elements of a range of positions.
    pub(crate) fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &[u8]> {
        self.elements.range(range).map(|element| &**element)
    }

    /// Removes up to `count` elements equal to `doomed`, beginning at one end; returns how many.
    pub(crate) fn remove(&mut self, doomed: &[u8], end: End, count: usize) -> usize {
        let mut left = count;
        let mut keep = |element: &[u8]| {
            let goes = left > 0 && element == doomed;
            left -= usize::from(goes);
            !goes
        };
        match end {
            End::Left => self.elements.retain(|element| keep(element)),
            End::Right => {
                let mut kept: VecDeque<_> = std::mem::take(&mut self.elements)
                    .into_iter()
                    .rev()
                    .filter(|element| keep(element))
                    .collect();
                kept.make_contiguous().reverse();
                self.elements = kept;
            }
        }
        let removed = count - left;
        self.bytes -= removed * (doomed.len() + ELEMENT_BYTES);
        removed
    }
}

/// One end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Left,
    Right,
}

macro_rules! kinds {
    ($($kind:ty, $variant:ident, $wrap:path;)*) => {
        $(impl Kind for $kind {
            fn of(value: &Value) -> Option<&Self> {
                match value {
                    Value::$variant(it) => Some(it),
                    _ => None,
                }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(it) => Some(it),
                    _ => None,
                }
            }

            fn into_value(self) -> Value {
                Value::$variant($wrap(self))
            }

            fn len(&self) -> usize {
                self.len()
            }
        })*
    };
}

kinds! {
    Hash, Hash, std::convert::identity;
    List, List, Box::new;
    Set, Set, Box::new;
    SortedSet, SortedSet, Box::new;
}

/// The largest value. A change of a value that is on the log writes all of it, which so takes about a
/// millisecond; ten thousand waiters of a fair lock fit.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// What an element takes besides its bytes, about: its pointers and the allocator's share.
pub(crate) const ELEMENT_BYTES: usize = 40;
