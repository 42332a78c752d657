//! The changes of a running script or transaction, as they are collected.

use std::collections::BTreeMap;

use crate::fence::Grant;
use crate::keyspace::Space;
use crate::label::{Label, OwnedLabel};
use crate::reports::Report;
use crate::shard::{Probe, Shard};
use crate::time::{Deadline, Time};
use crate::values::Value;

/// What a script or transaction has changed; `journal.rs` commits or undoes it.
#[derive(Debug)]
pub(crate) struct Journal {
    /// That of the transaction of which the script is a part.
    pub(super) outer: Option<Box<Self>>,
    /// What each key was before; by database and key.
    pub(super) before: BTreeMap<(u8, Box<[u8]>), Option<Before>>,
    pub(super) bytes: usize,
    pub(super) bytes_max: usize,
    /// How much work its scripts and searches have been, in instructions.
    pub(super) steps: usize,
    /// How often its messages will be sent.
    #[cfg(feature = "compat")]
    pub(super) deliveries: usize,
    /// How many changes have events.
    #[cfg(feature = "compat")]
    pub(super) changes: usize,
    /// What others will be told, in its order.
    pub(super) reports: Vec<Report>,
    /// The lists that a suspended script has pushed to, for those who wait for an element.
    #[cfg(feature = "compat")]
    pub(super) pushed: Vec<(u8, Box<[u8]>)>,
}

/// A lock as it was when the script began.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) content: Content,
    pub(super) deadline: Deadline,
    pub(super) grant: Grant,
    label: Option<OwnedLabel>,
}

/// What a key held.
#[derive(Debug)]
pub(super) enum Content {
    Token(Box<[u8]>),
    Collection(Value),
}

impl Journal {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            outer: None,
            before: BTreeMap::new(),
            bytes: 0,
            bytes_max,
            steps: 0,
            #[cfg(feature = "compat")]
            deliveries: 0,
            #[cfg(feature = "compat")]
            changes: 0,
            reports: Vec::new(),
            #[cfg(feature = "compat")]
            pushed: Vec::new(),
        }
    }

    /// Adds the changes of a script that was a part of these.
    pub(super) fn absorb(&mut self, inner: Self) {
        for (name, before) in inner.before {
            self.before.entry(name).or_insert(before);
        }
        self.bytes += inner.bytes;
        #[cfg(feature = "compat")]
        {
            self.deliveries += inner.deliveries;
            self.changes += inner.changes;
        }
        self.reports.extend(inner.reports);
    }

    /// Exchanges what the changed keys are and what the journal holds of them.
    pub(super) fn swap(&mut self, space: &mut Space<'_>, now: Time) {
        let mut taken = 0;
        for ((db, key), image) in &mut self.before {
            let hash = space.hash(*db, key);
            let shard = space.shard_of(hash);
            let probe = shard.probe(now, *db, hash, key);
            let current = Before::of(shard, probe);
            taken += Before::size(current.as_ref(), key);
            shard.remove(probe);
            if let Some(lock) = std::mem::replace(image, current) {
                let (deadline, grant) = (lock.deadline, lock.grant);
                let label = lock.label.as_ref().map(OwnedLabel::borrow);
                match (lock.content, label) {
                    (Content::Token(token), Some(label)) => {
                        let name = (*db, &**key);
                        shard.insert_labelled(name, hash, &token, &label, deadline, grant);
                    }
                    (Content::Token(token), None) => {
                        shard.insert(*db, hash, key, &token, deadline, grant);
                    }
                    (Content::Collection(value), _) => {
                        shard.insert_collection(*db, hash, key, value, deadline, grant);
                    }
                }
            }
        }
        // What a suspended script has set is limited, too: each turn copies it.
        self.bytes = self.bytes.max(taken);
    }
}

impl Before {
    /// Copies a key's lock; `None` without one.
    pub(super) fn of(shard: &Shard, probe: Probe) -> Option<Self> {
        let (token, deadline) = shard.entry(probe)?;
        let value = shard.collection(probe).cloned();
        Some(Self {
            content: value.map_or_else(|| Content::Token(token.into()), Content::Collection),
            deadline,
            grant: shard.grant(probe)?,
            label: shard.label(probe).map(Label::to_owned),
        })
    }

    /// Returns about how many bytes a key and its lock take in a journal.
    pub(super) fn size(lock: Option<&Self>, key: &[u8]) -> usize {
        ENTRY_BYTES + key.len() + lock.map_or(0, |lock| lock.content.bytes())
    }
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Token(token) => token.len(),
            Self::Collection(value) => value.bytes(),
        }
    }
}

/// What an entry takes besides key and token, roughly.
const ENTRY_BYTES: usize = 96;
