//! Lists in which everything has a number: nodes, clients, connections.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A list whose items go by their numbers, from 0. Numbers come from the list itself; one that a scenario names is checked
/// where it comes in, so that asking for an item that is not there is a bug of the kit.
#[derive(Clone, Debug)]
pub(crate) struct ByNumber<T>(Vec<T>);

impl<T> ByNumber<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an item and returns its number.
    pub(crate) fn push(&mut self, item: T) -> u32 {
        self.0.push(item);
        u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX)
    }
}

impl<T> FromIterator<T> for ByNumber<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T> Deref for ByNumber<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for ByNumber<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T, N: Into<u32>> Index<N> for ByNumber<T> {
    type Output = T;

    fn index(&self, number: N) -> &T {
        &self.0[number.into() as usize]
    }
}

impl<T, N: Into<u32>> IndexMut<N> for ByNumber<T> {
    fn index_mut(&mut self, number: N) -> &mut T {
        &mut self.0[number.into() as usize]
    }
}
