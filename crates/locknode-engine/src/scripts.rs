//! The scripts that a node knows: those of known lock libraries from the start, others as clients
//! send them.
//!
//! A script is found by its SHA1 (EVALSHA) or by its text (EVAL). Hashing the text of every EVAL
//! with SHA-1 would cost more than the release that it performs, so texts are remembered.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hashbrown::{HashMap, HashTable};
use parking_lot::RwLock;

use crate::script::{CompileError, Machine, Program, Shape, StartThread, all_known};

/// A script's SHA1 as forty lower-case digits, the form in which it arrives and is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sha([u64; 5]);

impl PartialEq for Sha {
    /// Compares words; what is derived calls a function that compares bytes.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let differences = self.0.iter().zip(&other.0).map(|(a, b)| a ^ b);
        differences.fold(0, |all, each| all | each) == 0
    }
}

/// A script ready to run.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) sha: Sha,
    pub(crate) program: Program,
}

/// All scripts of a node.
#[derive(Debug)]
pub(crate) struct Scripts {
    known: &'static HashTable<Arc<Script>>,
    cache: RwLock<Cache>,
    machine: Machine,
}

#[derive(Debug, Default)]
struct Cache {
    by_sha: HashTable<Arc<Script>>,
    by_text: HashMap<Box<[u8]>, Arc<Script>, foldhash::quality::FixedState>,
    /// Texts sent by EVAL, oldest first; those of SCRIPT LOAD stay.
    passing: VecDeque<(Sha, Box<[u8]>)>,
    loaded: usize,
    text_bytes: usize,
}

impl Script {
    /// The operation on the table that the script is, if it is one.
    #[inline]
    pub(crate) fn shape(&self) -> Option<&Shape> {
        self.program.shape()
    }

    /// Returns whether the whole script is refused when memory is short: it has a `#!` line with
    /// neither allow-oom nor no-writes.
    pub(crate) fn needs_memory_first(&self) -> bool {
        let flags = self.program.flags;
        flags.shebang && !flags.allow_oom && !flags.no_writes
    }
}

/// The scripts of known libraries, by their SHA1: the same for every node of a process.
static KNOWN: LazyLock<HashTable<Arc<Script>>> = LazyLock::new(|| {
    let mut known: HashTable<Arc<Script>> = HashTable::with_capacity(all_known().count());
    for (hex, behaviour) in all_known() {
        if let Some(sha) = Sha::from_hex(hex) {
            let program = Program::known(behaviour);
            let script = Arc::new(Script { sha, program });
            known.insert_unique(sha.hash(), script, |script| script.sha.hash());
        }
    }
    known
});

impl Scripts {
    /// `stopwatch` is what limits the time of a script, and `start_thread` lets long ones go on.
    pub(crate) fn new(
        stopwatch: Option<fn() -> Duration>,
        start_thread: Option<StartThread>,
    ) -> Self {
        Self {
            known: &KNOWN,
            cache: RwLock::default(),
            machine: Machine::new(stopwatch, start_thread),
        }
    }

    /// What runs the scripts that are not native.
    pub(crate) const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Finds the script with that SHA1 in hexadecimal, in any case.
    #[inline]
    pub(crate) fn by_sha(&self, hex: &[u8]) -> Option<Arc<Script>> {
        let sha = Sha::from_hex(hex)?;
        if let Some(known) = self.find_known(&sha) {
            return Some(Arc::clone(known));
        }
        self.cache.read().find(&sha).cloned()
    }

    /// Finds the shape of a known script by its SHA1 as nearly all clients write it, in lower case.
    #[inline]
    pub(crate) fn known_shape(&self, hex: &[u8]) -> Option<&'static Shape> {
        self.find_known(&Sha::from_lower_case(hex)?)?.shape()
    }

    /// Finds the shape of the script with that SHA1 in any case, without cloning its `Arc`.
    pub(crate) fn shape_by_sha(&self, hex: &[u8]) -> Option<Shape> {
        let sha = Sha::from_hex(hex)?;
        match self.find_known(&sha) {
            Some(known) => known.shape().copied(),
            None => self.cache.read().find(&sha)?.shape().copied(),
        }
    }

    /// Finds the shape of a known text.
    #[inline]
    pub(crate) fn shape_by_text(&self, text: &[u8]) -> Option<Shape> {
        self.cache.read().by_text.get(text)?.shape().copied()
    }

    /// Finds the script with a known text.
    pub(crate) fn find_text(&self, text: &[u8]) -> Option<Arc<Script>> {
        self.cache.read().by_text.get(text).cloned()
    }

    /// Adds the script with a new text.
    ///
    /// # Errors
    ///
    /// Returns the error reply, including its code, when the script cannot run here.
    pub(crate) fn by_text(&self, text: &[u8]) -> Result<Arc<Script>, Vec<u8>> {
        let script = self.compile(text)?;
        let mut cache = self.cache.write();
        if let Some(script) = cache.by_text.get(text) {
            return Ok(Arc::clone(script));
        }
        cache.insert(text, &script);
        cache.passing.push_back((script.sha, text.into()));
        while cache.passing.len() > PASSING_MAX || cache.text_bytes > TEXT_BYTES_MAX {
            let Some((sha, text)) = cache.passing.pop_front() else {
                break;
            };
            cache.remove(&sha, &text);
        }
        Ok(script)
    }

    /// Keeps a script until SCRIPT FLUSH; returns its SHA1.
    ///
    /// # Errors
    ///
    /// Returns the error reply when the script cannot run here or the cache is full.
    pub(crate) fn load(&self, text: &[u8]) -> Result<Sha, Vec<u8>> {
        let script = self.compile(text)?;
        let mut cache = self.cache.write();
        if let Some(place) = cache.passing.iter().position(|(sha, _)| *sha == script.sha) {
            cache.passing.remove(place);
            cache.loaded += 1;
        } else if cache.find(&script.sha).is_none() {
            if cache.loaded >= LOADED_MAX || cache.text_bytes + text.len() > TEXT_BYTES_MAX {
                let full = format!(
                    "ERR the script cache is full ({} scripts, {} bytes); SCRIPT FLUSH empties it",
                    cache.loaded, cache.text_bytes
                );
                return Err(full.into_bytes());
            }
            cache.insert(text, &script);
            cache.loaded += 1;
        }
        Ok(script.sha)
    }

    /// Removes the scripts that clients sent; known scripts stay.
    pub(crate) fn flush(&self) {
        *self.cache.write() = Cache::default();
    }

    /// Returns the texts of the scripts that clients sent.
    #[cfg(feature = "hand-over")]
    pub(crate) fn texts(&self) -> Vec<Vec<u8>> {
        let cache = self.cache.read();
        cache.by_text.keys().map(|text| text.to_vec()).collect()
    }

    /// Returns the number of scripts that clients sent, and the bytes of their texts.
    pub(crate) fn cached(&self) -> (usize, usize) {
        let cache = self.cache.read();
        (cache.by_sha.len(), cache.text_bytes)
    }

    fn compile(&self, text: &[u8]) -> Result<Arc<Script>, Vec<u8>> {
        let sha = Sha::of(text);
        if let Some(known) = self.find_known(&sha) {
            return Ok(Arc::clone(known));
        }
        let program = Program::compile(text, &self.machine).map_err(CompileError::into_reply)?;
        Ok(Arc::new(Script { sha, program }))
    }

    #[inline]
    fn find_known(&self, sha: &Sha) -> Option<&'static Arc<Script>> {
        self.known.find(sha.hash(), |known| known.sha == *sha)
    }
}

impl Cache {
    #[inline]
    fn find(&self, sha: &Sha) -> Option<&Arc<Script>> {
        self.by_sha.find(sha.hash(), |script| script.sha == *sha)
    }

    fn insert(&mut self, text: &[u8], script: &Arc<Script>) {
        self.text_bytes += text.len();
        if self.find(&script.sha).is_none() {
            let script = Arc::clone(script);
            self.by_sha
                .insert_unique(script.sha.hash(), script, |script| script.sha.hash());
        }
        self.by_text.insert(text.into(), Arc::clone(script));
    }

    fn remove(&mut self, sha: &Sha, text: &[u8]) {
        if self.by_text.remove(text).is_some() {
            if let Ok(entry) = self
                .by_sha
                .find_entry(sha.hash(), |script| script.sha == *sha)
            {
                entry.remove();
            }
            self.text_bytes -= text.len();
        }
    }
}

impl Sha {
    /// Reads forty hexadecimal digits in any case; `None` for any other length. Invalid digits are
    /// kept, and the result is then never found.
    #[inline]
    fn from_hex(hex: &[u8]) -> Option<Self> {
        let Self(digits) = Self::from_lower_case(hex)?;
        // Letters become lower case, digits stay. A byte with neither of the two bits is not a digit
        // and must not become one.
        let can_be = |word: &u64| ((word >> 5) | (word >> 6)) & LOW_BITS == LOW_BITS;
        let sha = Self(digits.map(|word| word | LOWER_CASE));
        digits.iter().all(can_be).then_some(sha)
    }

    /// Reads forty digits, those above nine in lower case; with others, the result is never found.
    #[inline]
    fn from_lower_case(hex: &[u8]) -> Option<Self> {
        let hex: &[u8; 40] = hex.try_into().ok()?;
        let mut words = [0; 5];
        for (word, digits) in words.iter_mut().zip(hex.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*digits);
        }
        Some(Self(words))
    }

    /// Returns whether this can be a SHA1, judging by its length.
    pub(crate) const fn has_length(hex: &[u8]) -> bool {
        hex.len() == 40
    }

    /// Returns a hash for tables. The digits are random already; multiplying moves them to where
    /// tables look.
    #[inline]
    fn hash(&self) -> u64 {
        (self.0[0] ^ self.0[1].rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn of(text: &[u8]) -> Self {
        let hex = sha1_smol::Sha1::from(text).digest().to_string();
        Self::from_hex(hex.as_bytes()).unwrap_or(Self([0; 5]))
    }

    /// Returns the digits in lower case, as clients write them.
    pub(crate) fn to_hex(self) -> [u8; 40] {
        let mut hex = [0; 40];
        for (bytes, word) in hex.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *bytes = word.to_le_bytes();
        }
        hex
    }
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const LOWER_CASE: u64 = 0x2020_2020_2020_2020;

/// The number of EVAL scripts remembered, the same as in Redis.
const PASSING_MAX: usize = 500;

/// The maximum number of SCRIPT LOAD scripts: a hundred libraries with a hundred versions each.
const LOADED_MAX: usize = 10_000;

/// The maximum bytes of script texts remembered.
const TEXT_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sha_is_forty_digits_of_any_case() {
        let sha = Sha::from_hex(b"4E92fdc63815b3a0a2dd1c1df3694de73607c88D").unwrap();
        assert_eq!(&sha.to_hex(), b"4e92fdc63815b3a0a2dd1c1df3694de73607c88d");
        for bad in ["", "4e92", &"0".repeat(41), &"\u{11}".repeat(40)] {
            assert_eq!(Sha::from_hex(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(
            &Sha::of(b"").to_hex(),
            b"da39a3ee5e6b4b0d3255bfef95601890afd80709"
        );
    }

    #[test]
    fn every_known_script_is_found() {
        let scripts = Scripts::new(None, None);
        for (hex, _) in all_known() {
            assert!(scripts.by_sha(hex).is_some());
        }
    }
}
