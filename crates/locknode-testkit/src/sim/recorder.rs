//! What a world remembers: its history, what it has counted, and the hash of all that happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::{AttemptNo, Entry, Event, History, KeyNo, Message};
use crate::span::SimTime;

/// How much a world remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// What checkers need.
    #[default]
    Events,
    /// Messages too, with their words: for the timeline.
    Messages,
}

/// How often things happened: faults, and states worth reaching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// In the order of the names.
    counts: Vec<(&'static str, u64)>,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) history: History,
    pub(crate) counters: Counters,
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) recording: Recording,
    /// The hash after each event, when asked for.
    pub(crate) hashes: Option<Vec<u64>>,
    /// The numbers of the keys.
    keys: BTreeMap<Vec<u8>, KeyNo>,
    /// For each key the attempts by their tokens.
    attempts: Vec<BTreeMap<Vec<u8>, AttemptNo>>,
    next_attempt: AttemptNo,
    /// By attempt: the client whose it is.
    owners: BTreeMap<AttemptNo, u8>,
}

impl Counters {
    /// How often it happened.
    pub fn of(&self, what: &str) -> u64 {
        let counted = self.iter().find(|(name, _)| *name == what);
        counted.map_or(0, |(_, count)| count)
    }

    /// All that happened, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().copied()
    }

    /// Adds what happened in another world.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in other.iter() {
            self.raise(name, count);
        }
    }

    pub(crate) fn bump(&mut self, what: &'static str) {
        // Names are literals: mostly it is the very same one, and no byte of it has to be compared.
        let mut counts = self.counts.iter_mut();
        match counts.find(|(name, _)| std::ptr::eq(*name, what)) {
            Some((_, count)) => *count += 1,
            None => self.raise(what, 1),
        }
    }

    fn raise(&mut self, what: &'static str, by: u64) {
        let place = self.counts.partition_point(|(name, _)| *name < what);
        match self.counts.get_mut(place) {
            Some((name, count)) if *name == what => *count += by,
            _ => self.counts.insert(place, (what, by)),
        }
    }
}

impl Recorder {
    pub(crate) fn new(nodes: u8, clients: u8, recording: Recording) -> Self {
        Self {
            history: History {
                nodes,
                clients,
                ..History::default()
            },
            counters: Counters::default(),
            hash: HASH_START,
            events: 0,
            recording,
            hashes: None,
            keys: BTreeMap::new(),
            attempts: Vec::new(),
            next_attempt: 0,
            owners: BTreeMap::new(),
        }
    }

    /// The client whose attempt it is, as far as known.
    pub(crate) fn owner(&self, attempt: AttemptNo) -> Option<u8> {
        let owner = self.owners.get(&attempt).copied();
        owner.filter(|owner| *owner != SHARED)
    }

    /// An attempt is of more than one client.
    pub(crate) fn is_shared(&mut self, attempt: AttemptNo) {
        self.owners.insert(attempt, SHARED);
    }

    /// An attempt is a client's from now on, unless it is of more than one.
    pub(crate) fn owns(&mut self, client: u8, attempt: AttemptNo) {
        let owner = self.owners.entry(attempt).or_insert(client);
        if *owner != SHARED {
            *owner = client;
        }
    }

    /// Something happened that checkers may want to know.
    #[inline]
    pub(crate) fn push(&mut self, at: SimTime, event: Event) {
        self.history.entries.push(Entry { at, event });
    }

    /// An event of the world is about to happen.
    #[inline]
    pub(crate) fn note(&mut self, at: u64, words: [u64; 2], bytes: &[u8]) {
        self.events += 1;
        let mut hash = mix(self.hash ^ at);
        hash = mix(hash ^ words[0]);
        hash = mix(hash ^ words[1]);
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            hash = mix(hash ^ u64::from_le_bytes(*chunk));
        }
        let tail = rest.iter().fold(rest.len() as u64, |tail, byte| {
            (tail << 8) | u64::from(*byte)
        });
        hash = mix(hash ^ tail);
        self.hash = hash;
        if let Some(hashes) = &mut self.hashes {
            hashes.push(hash);
        }
    }

    /// The number of a key.
    pub(crate) fn key(&mut self, key: &[u8]) -> KeyNo {
        if let Some(number) = self.keys.get(key) {
            return *number;
        }
        let names = &mut self.history.keys;
        let number = KeyNo::try_from(names.len()).unwrap_or(KeyNo::MAX);
        names.push(Arc::from(&*String::from_utf8_lossy(key)));
        self.keys.insert(key.to_vec(), number);
        number
    }

    /// The number of a key, if it has been seen.
    pub(crate) fn known_key(&self, db: u8, key: &[u8]) -> Option<KeyNo> {
        match db {
            0 => self.keys.get(key).copied(),
            _ => self.keys.get(&name_in(db, key)).copied(),
        }
    }

    /// The numbers of a key and of an attempt, if they have been seen.
    pub(crate) fn known(&self, db: u8, key: &[u8], token: &[u8]) -> Option<(KeyNo, AttemptNo)> {
        let key = self.known_key(db, key)?;
        let attempts = self.attempts.get(usize::from(key))?;
        Some((key, *attempts.get(token)?))
    }

    /// The number of an attempt: of a token under a key.
    pub(crate) fn attempt(&mut self, key: KeyNo, token: &[u8]) -> AttemptNo {
        let place = usize::from(key);
        if self.attempts.len() <= place {
            self.attempts.resize_with(place + 1, BTreeMap::new);
        }
        let Some(attempts) = self.attempts.get_mut(place) else {
            return AttemptNo::MAX;
        };
        if let Some(attempt) = attempts.get(token) {
            return *attempt;
        }
        attempts.insert(token.to_vec(), self.next_attempt);
        self.next_attempt += 1;
        self.next_attempt - 1
    }

    /// Records a message, if messages are recorded; its place.
    pub(crate) fn message(&mut self, message: impl FnOnce() -> Message) -> u32 {
        if self.recording != Recording::Messages {
            return NO_MESSAGE;
        }
        if self.history.messages.len() >= MESSAGES_MAX {
            self.history.left_out.messages += 1;
            return NO_MESSAGE;
        }
        self.history.messages.push(message());
        u32::try_from(self.history.messages.len() - 1).unwrap_or(NO_MESSAGE)
    }

    /// A message arrived.
    pub(crate) fn arrived(&mut self, message: u32, at: SimTime) {
        let place = usize::try_from(message).unwrap_or(usize::MAX);
        if let Some(message) = self.history.messages.get_mut(place) {
            message.arrived = Some(at);
        }
    }
}

/// The name of a key of another database than the first.
pub(crate) fn name_in(db: u8, key: &[u8]) -> Vec<u8> {
    [format!("db{db}/").as_bytes(), key].concat()
}

#[inline]
const fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

const HASH_START: u64 = 0x6c6f_636b_6e6f_6465;

/// The owner of what more than one client held.
const SHARED: u8 = u8::MAX;

/// No message was recorded.
pub(crate) const NO_MESSAGE: u32 = u32::MAX;

/// A picture of more would show nothing.
const MESSAGES_MAX: usize = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_too_many_are_counted() {
        let message = || Message {
            client: 0,
            node: 0,
            is_request: true,
            sent: SimTime::ZERO,
            arrived: None,
            text: "".into(),
        };
        let mut recorder = Recorder::new(1, 1, Recording::Messages);
        for _ in 0..MESSAGES_MAX {
            assert_ne!(recorder.message(message), NO_MESSAGE);
        }
        assert_eq!(recorder.history.left_out.messages, 0);
        assert_eq!(recorder.message(message), NO_MESSAGE);
        assert_eq!(recorder.history.left_out.messages, 1);
        // Who records no messages leaves none out.
        let mut recorder = Recorder::new(1, 1, Recording::Events);
        assert_eq!(recorder.message(message), NO_MESSAGE);
        assert_eq!(recorder.history.left_out, Default::default());
    }

    #[test]
    fn each_key_has_a_number_of_its_own() {
        let mut recorder = Recorder::new(5, 1, Recording::Events);
        for _ in 0..2 {
            for number in 0..KeyNo::MAX {
                assert_eq!(recorder.key(format!("k{number}").as_bytes()), number);
            }
        }
        assert_eq!(recorder.history.key(7), "k7");
        // What is no text is told apart all the same.
        let mut recorder = Recorder::new(5, 1, Recording::Events);
        let numbers = [&[0xff][..], &[0xfe], &[0xff]].map(|key| recorder.key(key));
        assert_eq!(numbers, [0, 1, 0]);
    }
}
