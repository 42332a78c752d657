//! The changes of a running script or transaction, which are committed or undone when it ends.
//!
//! A script may set a key without a deadline and add one in its next line, so what its commands
//! grant is provisional. At the end, each changed key gets the permit and the record that a single
//! command with the same result would get. A script that leaves what the guard refuses, or that was
//! stopped, has changed nothing. The same holds for a transaction, of which scripts may be parts.
//! While a long script is suspended, its changes are out of the table ([`Journal::suspend`]), so that
//! the sweep, a snapshot and other clients see what was before.

use locknode_resp::Encoder;

use super::changes::{Before, Content, Journal};
use super::command_entry::key_positions;
use super::context::Context;
use super::spec::{Flags, Keys, Spec};
#[cfg(feature = "compat")]
use crate::channels::TopicKind;
use crate::entry::{Entry, log_removal};
use crate::guard::{Denial, Permit};
use crate::key_change::{ChangeKind, KeyChange};
#[cfg(feature = "compat")]
use crate::notifications::DELIVERIES_MAX;
use crate::reports::Report;
use crate::time::Deadline;

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
            ..Self::new(BYTES_MAX)
        }));
        context.needs.is_provisional = true;
    }

    /// Returns the journal of a script that begins suspended.
    #[cfg(feature = "compat")]
    pub(crate) fn suspended() -> Box<Self> {
        Box::new(Self::new(SUSPENDED_BYTES_MAX))
    }

    /// Takes the changes of a script out of the table, until [`Journal::resume`].
    #[cfg(feature = "compat")]
    pub(crate) fn suspend(context: &mut Context<'_, '_>) -> Option<Box<Self>> {
        let mut journal = context.journal.take()?;
        context.needs.is_provisional = false;
        for shard in context.space.shards() {
            journal.pushed.append(&mut shard.take_pushed());
        }
        journal.swap(context.space, context.moment.time);
        // Its own keys that have expired meanwhile are news only if it stays.
        let changes = take_expired(context);
        if !changes.is_empty() {
            let command = SUSPENDED_COMMAND;
            journal.reports.push(Report::Changes { command, changes });
        }
        Some(journal)
    }

    /// Puts the changes of a suspended script back into the table; all shards are locked.
    #[cfg(feature = "compat")]
    pub(crate) fn resume(mut self: Box<Self>, context: &mut Context<'_, '_>) {
        self.swap(context.space, context.moment.time);
        let expired = take_expired(context);
        context.report(SUSPENDED_COMMAND, expired);
        for (db, key) in std::mem::take(&mut self.pushed) {
            let hash = context.space.hash(db, &key);
            context.space.shard_of(hash).note_push(db, &key);
        }
        context.journal = Some(self);
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
        let may_write = spec.flags.has(Flags::WRITE) || spec.flags.has(Flags::MAY_WRITE);
        if may_write && !Self::note_all(context, key_positions(spec), args) {
            return false;
        }
        (spec.call.run)(context, args, reply);
        context.note_reads(spec, args);
        // A script may have stored its key's.
        context.key_hash = None;
        let reads_all = spec.keys == Keys::All && !spec.flags.has(Flags::WRITE);
        if reads_all && context.services.guard.has_waiting_replies() {
            context.depend_on_all(spec.flags);
        }
        if context.services.observers.are_there() {
            let changes = context.take_changes();
            if let Some(journal) = &mut context.journal {
                let command = spec.name;
                #[cfg(feature = "compat")]
                {
                    let has_event = |change: &&KeyChange| {
                        !matches!(change.kind, ChangeKind::Read | ChangeKind::Missed)
                    };
                    journal.changes += changes.iter().filter(has_event).count();
                    let notifications = &context.services.observers.notifications;
                    if notifications.is_storm(journal.changes) {
                        return false;
                    }
                }
                return journal.report(Report::Changes { command, changes });
            }
        }
        true
    }

    /// Sends a message at the end; returns `false` when there are more than a journal can hold.
    #[cfg(feature = "compat")]
    pub(crate) fn publish(
        &mut self,
        kind: TopicKind,
        channel: &[u8],
        text: &[u8],
        receivers: usize,
    ) -> bool {
        self.deliveries += receivers;
        let is_kept = self.deliveries <= DELIVERIES_MAX;
        is_kept
            && self.report(Report::Message {
                kind,
                channel: channel.into(),
                text: text.into(),
            })
    }

    fn report(&mut self, report: Report) -> bool {
        self.bytes += report.size();
        self.reports.push(report);
        self.bytes <= self.bytes_max
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
                        // Patterns that have come since may be too many.
                        let _ = context.publish(kind, &channel, &text);
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

    /// Returns whether the commands have called one that writes.
    pub(crate) fn has_begun(context: &Context<'_, '_>) -> bool {
        let journal = context.journal.as_ref();
        journal.is_some_and(|journal| !journal.before.is_empty())
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

    /// Records a key before it is changed; returns `false` when the script changes more than a
    /// journal can hold.
    fn note(&mut self, context: &mut Context<'_, '_>, key: &[u8]) -> bool {
        let name = (context.session.db, Box::from(key));
        if !self.before.contains_key(&name) {
            let entry = context.entry(key);
            let before = Before::of(entry.shard, entry.probe);
            self.bytes += Before::size(before.as_ref(), key);
            self.before.insert(name, before);
        }
        self.bytes <= self.bytes_max
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
        if changes.is_empty() {
            context.session.db = session_db;
            return Ok(());
        }
        let guard = &context.services.guard;
        // A crash brings back all of them or none.
        guard.log_together(|| {
            for (db, key, change) in changes {
                context.session.db = db;
                match change {
                    Change::Held(permit) => context.entry(key).set_deadline(permit),
                    Change::Released(deadline) => {
                        log_removal(guard, db, key, deadline, context.needs);
                    }
                }
            }
        });
        context.session.db = session_db;
        Ok(())
    }

    /// Restores every key. Observers are told only of keys that had expired.
    fn undo(mut self, context: &mut Context<'_, '_>) {
        self.swap(context.space, context.moment.time);
        take_expired(context);
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

impl Content {
    /// Returns whether the key's value has changed in place, which its grant does not show.
    fn is_outdated(&self, entry: &Entry<'_>) -> bool {
        match self {
            Self::Token(_) => false,
            Self::Collection(value) => entry.shard.collection(entry.probe) != Some(value),
        }
    }
}

/// Takes what the observers are to know after [`Journal::swap`]: which keys had expired.
fn take_expired(context: &mut Context<'_, '_>) -> Vec<KeyChange> {
    if !context.services.observers.are_there() {
        return Vec::new();
    }
    let mut changes = context.take_changes();
    changes.retain(|change| change.kind == ChangeKind::Expired);
    changes
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
    if before.is_some_and(|lock| {
        lock.deadline == deadline && lock.grant == grant && !lock.content.is_outdated(&entry)
    }) {
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
pub(crate) const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The same for a suspended script, whose changes are taken out of the table and put back at each
/// turn: some thousand keys, and a millisecond.
pub(crate) const SUSPENDED_BYTES_MAX: usize = 1024 * 1024;

/// What keys that expire during a suspended script are reported with.
#[cfg(feature = "compat")]
const SUSPENDED_COMMAND: &str = "eval";
