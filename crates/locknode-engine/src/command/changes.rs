//! The changes of a running script or transaction, as they are collected.

use std::collections::BTreeMap;

use crate::fence::Grant;
use crate::reports::Report;
use crate::time::Deadline;
use crate::values::Value;

/// What a script or transaction has changed; `journal.rs` commits or undoes it.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// That of the transaction of which the script is a part.
    pub(super) outer: Option<Box<Self>>,
    /// What each key was before; by database and key.
    pub(super) before: BTreeMap<(u8, Box<[u8]>), Option<Before>>,
    pub(super) bytes: usize,
    /// How much work its scripts and searches have been, in instructions.
    pub(super) steps: usize,
    /// What others will be told, in its order.
    pub(super) reports: Vec<Report>,
}

/// A lock as it was when the script began.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) content: Content,
    pub(super) deadline: Deadline,
    pub(super) grant: Grant,
}

/// What a key held.
#[derive(Debug)]
pub(super) enum Content {
    Token(Box<[u8]>),
    Collection(Value),
}

impl Journal {
    /// Adds the changes of a script that was a part of these.
    pub(super) fn absorb(&mut self, inner: Self) {
        for (name, before) in inner.before {
            self.before.entry(name).or_insert(before);
        }
        self.bytes += inner.bytes;
        self.reports.extend(inner.reports);
    }
}

impl Content {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Token(token) => token.len(),
            Self::Collection(value) => value.bytes(),
        }
    }
}
