//! The values of one shard, by number.

use super::Value;

/// A table of values; see the module docs of [`super`].
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// In chunks, so that no insert moves all of them.
    chunks: Vec<Vec<Cell>>,
    /// The place freed last.
    free: Option<u32>,
    live: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Cell {
    Used(Value),
    /// With the place freed before.
    Free(Option<u32>),
}

impl Values {
    /// Stores a value; returns its number.
    pub(crate) fn store(&mut self, value: Value) -> u32 {
        self.live += 1;
        self.bytes += value.bytes();
        if let Some(number) = self.free
            && let Some(cell) = self.cell_mut(number)
            && let Cell::Free(next) = *cell
        {
            *cell = Cell::Used(value);
            self.free = next;
            return number;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let Some(chunk) = self.chunks.last_mut() else {
            unreachable!("a chunk was just added");
        };
        chunk.push(Cell::Used(value));
        u32::try_from(before + chunk.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Value> {
        let (chunk, place) = split(number);
        match self.chunks.get(chunk)?.get(place)? {
            Cell::Used(value) => Some(value),
            Cell::Free(_) => None,
        }
    }

    /// Changes a value.
    pub(crate) fn change<R>(
        &mut self,
        number: u32,
        work: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let Some(Cell::Used(value)) = self.cell_mut(number) else {
            return None;
        };
        let before = value.bytes();
        let result = work(value);
        let after = value.bytes();
        self.bytes = self.bytes + after - before;
        Some(result)
    }

    /// Drops a value and frees its number.
    pub(crate) fn free(&mut self, number: u32) {
        let next = self.free;
        let Some(cell @ Cell::Used(_)) = self.cell_mut(number) else {
            debug_assert!(false, "a number is freed once");
            return;
        };
        if let Cell::Used(value) = std::mem::replace(cell, Cell::Free(next)) {
            self.bytes -= value.bytes();
        }
        self.free = Some(number);
        self.live -= 1;
        if self.live == 0 {
            *self = Self::default();
        }
    }

    /// Returns the bytes that all values occupy, about.
    pub(crate) const fn bytes(&self) -> u64 {
        (self.bytes + self.live * size_of::<Cell>()) as u64
    }

    /// Returns the bytes that a value takes beside its own.
    #[cfg(test)]
    pub(super) const fn cell_bytes(&self) -> usize {
        size_of::<Cell>()
    }

    fn cell_mut(&mut self, number: u32) -> Option<&mut Cell> {
        let (chunk, place) = split(number);
        self.chunks.get_mut(chunk)?.get_mut(place)
    }
}

const fn split(number: u32) -> (usize, usize) {
    (number as usize / CHUNK, number as usize % CHUNK)
}

/// Values per chunk: a growing chunk moves 24 KiB.
const CHUNK: usize = 1024;
