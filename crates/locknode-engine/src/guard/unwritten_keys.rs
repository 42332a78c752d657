//! The keys whose latest records a failing disk has not accepted.

use std::collections::BTreeSet;

use crate::durable::Record;

/// See the module docs.
#[derive(Debug, Default)]
pub(super) struct UnwrittenKeys {
    keys: BTreeSet<(u8, Box<[u8]>)>,
    /// Databases that were flushed; `None` means all.
    cleared: BTreeSet<Option<u8>>,
}

impl UnwrittenKeys {
    /// Returns the keys of encoded records.
    pub(super) fn of(mut records: &[u8]) -> Self {
        let mut unwritten = Self::default();
        while let Some((record, rest)) = Record::decode(records) {
            unwritten.note(&record);
            records = rest;
        }
        unwritten
    }

    /// Adds the key of one more record.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        match *record {
            Record::Put(lock) => self.keys.insert((lock.db, lock.key.into())),
            Record::Remove { db, key } => self.keys.insert((db, key.into())),
            Record::Clear { db } => self.cleared.insert(db),
        };
    }

    /// Returns whether a key is among them.
    pub(super) fn has(&self, db: u8, key: &[u8]) -> bool {
        self.cleared.contains(&None)
            || self.cleared.contains(&Some(db))
            || self.keys.contains(&(db, key.into()))
    }
}
