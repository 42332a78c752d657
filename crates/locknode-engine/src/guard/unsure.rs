//! The keys of which a disk in trouble has not taken what it was asked to keep.

use std::collections::BTreeSet;

use crate::durable::Record;

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Unsure {
    keys: BTreeSet<(u8, Box<[u8]>)>,
    /// Databases that were emptied; `None` is all.
    cleared: BTreeSet<Option<u8>>,
}

impl Unsure {
    /// The keys of encoded records.
    pub(super) fn of(mut records: &[u8]) -> Self {
        let mut unsure = Self::default();
        while let Some((record, rest)) = Record::decode(records) {
            unsure.note(&record);
            records = rest;
        }
        unsure
    }

    /// Adds the keys of one more record.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        match *record {
            Record::Put(lock) => self.keys.insert((lock.db, lock.key.into())),
            Record::Remove { db, key } => self.keys.insert((db, key.into())),
            Record::Clear { db } => self.cleared.insert(db),
        };
    }

    /// Whether a key is among them.
    pub(super) fn has(&self, db: u8, key: &[u8]) -> bool {
        self.cleared.contains(&None)
            || self.cleared.contains(&Some(db))
            || self.keys.contains(&(db, key.into()))
    }
}
