//! The changes of a running script, which are committed or undone when it ends.
//!
//! A script may set a key without a deadline and add one in its next line, so what its commands
//! grant is provisional. At the end, each changed key gets the permit and the record that a single
//! command with the same result would get. A script that leaves what the guard refuses, or that was
//! stopped, has changed nothing. While a long script is suspended, its changes are out of the table
//! ([`Journal::swap`]), so that the sweep, a snapshot and other clients see what was before.

use std::collections::BTreeMap;

use super::context::Context;
use crate::entry::log_removal;
use crate::fence::Grant;
use crate::guard::{Denial, Permit};
use crate::time::Deadline;

/// The keys that a script has changed; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// What each key was before; by database and key.
    before: BTreeMap<(u8, Box<[u8]>), Option<Before>>,
    bytes: usize,
}

/// A lock as it was when the script began.
#[derive(Debug)]
struct Before {
    token: Box<[u8]>,
    deadline: Deadline,
    grant: Grant,
}

/// What a changed key needs when the script ends.
#[derive(Debug)]
enum Change {
    Held(Permit),
    Released(Deadline),
}

impl Journal {
    /// Records a key before it is changed; returns `false` when the script changes more than
    /// `bytes_max`.
    pub(crate) fn note(
        &mut self,
        context: &mut Context<'_, '_>,
        key: &[u8],
        bytes_max: usize,
    ) -> bool {
        let name = (context.session.db, Box::from(key));
        if self.before.contains_key(&name) {
            return true;
        }
        // Looks the key up as a command does, so that the reply depends on what it has seen.
        let _ = context.entry(key);
        let before = Before::of(context, context.session.db, key);
        self.bytes += ENTRY_BYTES + key.len() + before.as_ref().map_or(0, |lock| lock.token.len());
        self.before.insert(name, before);
        self.bytes <= bytes_max
    }

    /// Gives each changed key its permit and its record, or none of them when one is refused.
    ///
    /// # Errors
    ///
    /// Returns why one of them may not stay as it is.
    pub(crate) fn commit(&self, context: &mut Context<'_, '_>) -> Result<(), Denial> {
        let session_db = context.session.db;
        let mut changes = Vec::new();
        for ((db, key), before) in &self.before {
            context.session.db = *db;
            let change = judge(context, key, before.as_ref());
            match change {
                Ok(Some(change)) => changes.push((*db, key, change)),
                Ok(None) => {}
                Err(denial) => {
                    context.session.db = session_db;
                    return Err(denial);
                }
            }
        }
        for (db, key, change) in changes {
            context.session.db = db;
            match change {
                Change::Held(permit) => context.entry(key).set_deadline(permit),
                Change::Released(deadline) => {
                    log_removal(&context.services.guard, db, key, deadline, context.needs);
                }
            }
        }
        context.session.db = session_db;
        Ok(())
    }

    /// Restores every key.
    pub(crate) fn undo(mut self, context: &mut Context<'_, '_>) {
        self.swap(context);
    }

    /// Exchanges what the changed keys are and what the journal holds of them: takes the changes out
    /// of the table, or puts them back.
    pub(crate) fn swap(&mut self, context: &mut Context<'_, '_>) {
        for ((db, key), image) in &mut self.before {
            let current = Before::of(context, *db, key);
            let hash = context.space.hash(*db, key);
            let shard = context.space.shard_of(hash);
            let probe = shard.probe(context.moment.time, *db, hash, key);
            shard.remove(probe);
            if let Some(lock) = std::mem::replace(image, current) {
                shard.insert(*db, hash, key, &lock.token, lock.deadline, lock.grant);
            }
        }
    }
}

impl Before {
    /// Copies a key's lock; `None` without one.
    fn of(context: &mut Context<'_, '_>, db: u8, key: &[u8]) -> Option<Self> {
        let hash = context.space.hash(db, key);
        let shard = context.space.shard_of(hash);
        let probe = shard.probe(context.moment.time, db, hash, key);
        let (token, deadline) = shard.entry(probe)?;
        Some(Self {
            token: token.into(),
            deadline,
            grant: shard.grant(probe)?,
        })
    }
}

/// Decides what a key needs that was `before` and now is what it is; `None` when it needs nothing.
fn judge(
    context: &mut Context<'_, '_>,
    key: &[u8],
    before: Option<&Before>,
) -> Result<Option<Change>, Denial> {
    let was_logged = before.is_some_and(|lock| lock.grant.is_logged());
    let entry = context.entry(key);
    let now = entry.deadline().zip(entry.grant());
    let Some((deadline, grant)) = now else {
        let Some(released) = before.filter(|_| was_logged) else {
            return Ok(None);
        };
        if released.deadline == Deadline::NEVER {
            context.services.guard.may_log()?;
        }
        return Ok(Some(Change::Released(released.deadline)));
    };
    if before.is_some_and(|lock| lock.deadline == deadline && lock.grant == grant) {
        return Ok(None);
    }
    let guard = &context.services.guard;
    let need = &mut context.needs.need;
    let permit = guard.permit(context.moment.time, deadline, || was_logged, need)?;
    // A lock that is on the log stays there through every change `[L3]`.
    let is_logged = permit.is_logged || was_logged || grant.is_logged();
    Ok(is_logged.then_some(Change::Held(Permit {
        is_logged,
        ..permit
    })))
}

/// What an entry takes besides key and token, roughly.
const ENTRY_BYTES: usize = 96;
