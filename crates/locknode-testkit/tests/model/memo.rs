//! Answers that are worked out once.
//!
//! The engine and the rounds are deterministic: the same question in the same state has the same answer. So the model runs
//! the real code once for each distinct pair of the two and remembers what came of it, which is exact and is what makes
//! millions of transitions affordable. It forgets nothing and estimates nothing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Mutex;

/// A function whose values are remembered.
#[derive(Debug)]
pub(crate) struct Memo<K, V> {
    known: Mutex<HashMap<K, V, BuildHasherDefault<Mix>>>,
}

impl<K: Hash + Eq, V: Copy> Memo<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
        }
    }

    /// The value for `key`, worked out at the first time.
    pub(crate) fn value(&self, key: K, work_out: impl FnOnce(&K) -> V) -> V {
        let mut known = self.known.lock().expect("no thread has failed");
        if let Some(value) = known.get(&key) {
            return *value;
        }
        let value = work_out(&key);
        known.insert(key, value);
        value
    }

    /// How many values were worked out.
    pub(crate) fn len(&self) -> usize {
        self.known.lock().expect("no thread has failed").len()
    }
}

/// FNV-1a. The keys are a few small numbers, and the hash that the standard library uses against attackers takes most of
/// the time of a build without optimisation.
#[derive(Debug)]
pub(crate) struct Mix(u64);

impl Default for Mix {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        // The table looks at the upper bits as well, which the last bytes do not reach by themselves.
        self.0 ^ (self.0 >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn write_isize(&mut self, number: isize) {
        // The discriminant of an enum.
        self.0 = (self.0 ^ number.cast_unsigned() as u64).wrapping_mul(0x0100_0000_01b3);
    }
}
