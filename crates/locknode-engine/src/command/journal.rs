//! The changes of a running script or transaction, which are committed or undone when it ends.
//!
//! A script may set a key without a deadline and add one in its next line, so what its commands
//! grant is provisional. At the end, each changed key gets the permit and the record that a single
//! command with the same result would get. A script that leaves what the guard refuses, or that was
//! stopped, has changed nothing. The same holds for a transaction, of which scripts may be parts.

use std::collections::BTreeMap;

use locknode_resp::Encoder;

use super::command_entry::key_positions;
use super::context::Context;
use super::spec::{Flags, Keys, Spec};
#[cfg(feature = "compat")]
use crate::channels::TopicKind;
use crate::entry::log_removal;
use crate::fence::Grant;
use crate::guard::{Denial, Permit};
use crate::observers::ChangeKind;
use crate::reports::Report;
use crate::time::Deadline;

/// What a script or transaction has changed; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// That of the transaction of which the script is a part.
    outer: Option<Box<Self>>,
    /// What each key was before; by database and key.
    before: BTreeMap<(u8, Box<[u8]>), Option<Before>>,
    bytes: usize,
    /// How much work its scripts and searches have been, in instructions.
    steps: usize,
    /// What others will be told, in its order.
    reports: Vec<Report>,
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
    /// Begins to run several commands as one; all shards are locked.
    pub(crate) fn begin(context: &mut Context<'_, '_>) {
        let outer = context.journal.take();
        context.journal = Some(Box::new(Self {
            outer,
            ..Self::default()
        }));
        context.needs.is_provisional = true;
    }

    /// Runs one of the commands; returns `false` when it does not, because all of them together
    /// change more than a journal can hold.
    pub(crate) fn run(
        context: &mut Context<'_, '_>,
        spec: &'static Spec,
        args: &[&[u8]],
        reply: &mut Encoder<'_>,
    ) -> bool {
        context.key_hash = None;
        let may_write = spec.flags.has(Flags::WRITE) || spec.flags.has(Flags::MAY_WRITE);
        if may_write && !Self::note_all(context, key_positions(spec), args) {
            return false;
        }
        (spec.call.run)(context, args, reply);
        context.note_reads(spec, args);
        let reads_all = spec.keys == Keys::All && !spec.flags.has(Flags::WRITE);
        if reads_all && context.services.guard.has_waiting_replies() {
            context.depend_on_all(spec.flags);
        }
        if context.services.observers.are_there() {
            let changes = context.take_changes();
            if let Some(journal) = &mut context.journal {
                let command = spec.name;
                return journal.report(Report::Changes { command, changes });
            }
        }
        true
    }

    /// Sends a message at the end; returns `false` when there are more than a journal can hold.
    #[cfg(feature = "compat")]
    pub(crate) fn publish(&mut self, kind: TopicKind, channel: &[u8], text: &[u8]) -> bool {
        self.report(Report::Message {
            kind,
            channel: channel.into(),
            text: text.into(),
        })
    }

    fn report(&mut self, report: Report) -> bool {
        self.bytes += report.size();
        self.reports.push(report);
        self.bytes <= BYTES_MAX
    }

    /// Ends the commands. If they stay, their changes become part of the surrounding transaction or
    /// are committed; otherwise they are undone.
    ///
    /// # Errors
    ///
    /// Returns why they may not stay and were undone.
    pub(crate) fn end(context: &mut Context<'_, '_>, stays: bool) -> Result<(), Denial> {
        let Some(mut journal) = context.journal.take() else {
            return Ok(());
        };
        context.journal = journal.outer.take();
        context.needs.is_provisional = context.journal.is_some();
        Self::note_steps(context, journal.steps);
        if !stays {
            journal.undo(context);
        } else if let Some(outer) = &mut context.journal {
            outer.absorb(*journal);
        } else if let Err(denial) = journal.commit(context) {
            journal.undo(context);
            return Err(denial);
        } else {
            // What the commit itself changes is no news.
            if context.services.observers.are_there() {
                context.take_changes();
            }
            for report in std::mem::take(&mut journal.reports) {
                match report {
                    #[cfg(feature = "compat")]
                    Report::Message {
                        kind,
                        channel,
                        text,
                    } => {
                        context.publish(kind, &channel, &text);
                    }
                    Report::Changes { command, changes } => context.report(command, changes),
                }
            }
        }
        Ok(())
    }

    /// Notes work of a script or a search.
    pub(crate) fn note_steps(context: &mut Context<'_, '_>, steps: usize) {
        if let Some(journal) = &mut context.journal {
            journal.steps = journal.steps.saturating_add(steps);
        }
    }

    /// Returns the work noted so far.
    #[cfg(feature = "compat")]
    pub(crate) fn steps(context: &Context<'_, '_>) -> usize {
        context.journal.as_ref().map_or(0, |journal| journal.steps)
    }

    /// Records the keys of a command before it changes them.
    fn note_all(context: &mut Context<'_, '_>, keys: Keys, args: &[&[u8]]) -> bool {
        let Some(mut journal) = context.journal.take() else {
            return true;
        };
        let fits = keys.of(args).all(|key| journal.note(context, key));
        context.journal = Some(journal);
        fits
    }

    /// Adds the changes of a script that was a part of these.
    fn absorb(&mut self, inner: Self) {
        for (name, before) in inner.before {
            self.before.entry(name).or_insert(before);
        }
        self.bytes += inner.bytes;
        self.reports.extend(inner.reports);
    }

    /// Records a key before it is changed; returns `false` when the script changes more than a
    /// journal can hold.
    fn note(&mut self, context: &mut Context<'_, '_>, key: &[u8]) -> bool {
        let name = (context.session.db, Box::from(key));
        if self.before.contains_key(&name) {
            return true;
        }
        let entry = context.entry(key);
        let before = entry.lock().zip(entry.grant()).map(|(lock, grant)| Before {
            token: lock.value.into(),
            deadline: lock.deadline,
            grant,
        });
        self.bytes += ENTRY_BYTES + key.len() + before.as_ref().map_or(0, |lock| lock.token.len());
        self.before.insert(name, before);
        self.bytes <= BYTES_MAX
    }

    /// Gives each changed key its permit and its record, or none of them when one is refused.
    ///
    /// # Errors
    ///
    /// Returns why one of them may not stay as it is.
    fn commit(&self, context: &mut Context<'_, '_>) -> Result<(), Denial> {
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

    /// Restores every key. Observers are told only of keys that had expired.
    fn undo(self, context: &mut Context<'_, '_>) {
        for ((db, key), before) in self.before {
            let hash = context.space.hash(db, &key);
            let shard = context.space.shard_of(hash);
            let probe = shard.probe(context.moment.time, db, hash, &key);
            shard.remove(probe);
            if let Some(lock) = before {
                shard.insert(db, hash, &key, &lock.token, lock.deadline, lock.grant);
            }
        }
        if context.services.observers.are_there() {
            context.take_changes();
        }
        for report in self.reports {
            match report {
                Report::Changes {
                    command,
                    mut changes,
                } => {
                    changes.retain(|change| change.kind == ChangeKind::Expired);
                    context.report(command, changes);
                }
                #[cfg(feature = "compat")]
                Report::Message { .. } => {}
            }
        }
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

/// The other limit on a script's memory, applied here too.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// What an entry takes besides key and token, roughly.
const ENTRY_BYTES: usize = 96;
