//! One key of the lock table as a command works on it: its lock, the restart guard's permit, the
//! log.

use locknode_resp::Encoder;

use crate::command::refusal;
use crate::durable::{LockRecord, Record};
use crate::fence::Grant;
use crate::guard::{BatchNeeds, Denial, Guard, Permit};
use crate::label::Label;
use crate::shard::{Probe, Shard};
use crate::time::{Deadline, Time};
use crate::values::Value;

/// A key and its place in its shard, as found by
/// [`Context::entry`](crate::command::Context::entry).
#[derive(Debug)]
pub(crate) struct Entry<'e> {
    pub(crate) db: u8,
    pub(crate) key: &'e [u8],
    pub(crate) probe: Probe,
    pub(crate) shard: &'e mut Shard,
    pub(crate) guard: &'e Guard,
    pub(crate) needs: &'e mut BatchNeeds,
    pub(crate) now: Time,
}

/// A live lock as a command reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock<'a> {
    pub(crate) value: &'a [u8],
    pub(crate) deadline: Deadline,
}

impl Entry<'_> {
    /// Returns whether the key is held.
    #[inline]
    pub(crate) const fn is_live(&self) -> bool {
        self.probe.is_live()
    }

    /// Returns the entry if the key, if any, holds a token; otherwise replies with the error.
    #[inline(always)]
    pub(crate) fn only_string(self, reply: &mut Encoder<'_>) -> Option<Self> {
        if self.is_collection() {
            refusal::wrong_type(reply);
            return None;
        }
        Some(self)
    }

    /// Returns whether the key holds a value of another type in place of a token.
    #[inline]
    pub(crate) fn is_collection(&self) -> bool {
        self.shard.is_collection(self.probe)
    }

    /// Returns the token that holds the key, which [`Entry::only_string`] has checked.
    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
        debug_assert!(!self.is_collection(), "the type is checked first");
        self.shard.value(self.probe)
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.shard.deadline(self.probe)
    }

    #[inline]
    pub(crate) fn lock(&self) -> Option<Lock<'_>> {
        let (value, deadline) = self.shard.entry(self.probe)?;
        Some(Lock { value, deadline })
    }

    pub(crate) fn grant(&self) -> Option<Grant> {
        self.shard.grant(self.probe)
    }

    pub(crate) fn label(&self) -> Option<Label<'_>> {
        self.shard.label(self.probe)
    }

    /// Counts a read as a hit or a miss in INFO.
    pub(crate) fn count_read(&mut self) {
        self.shard.count_read(self.probe.is_live());
        if !self.probe.is_live() {
            self.shard.note_miss(self.db, self.key);
        }
    }

    /// Requests the restart guard's permit to hold the key until a deadline; replies with the
    /// refusal if there is none.
    ///
    /// Call this when nothing else prevents the grant, and before anything is changed or replied.
    #[inline]
    pub(crate) fn permit(&mut self, deadline: Deadline, reply: &mut Encoder<'_>) -> Option<Permit> {
        match self.guard.permit_within(self.now, deadline) {
            Some(permit) => Some(permit),
            None => {
                let is_on_log = self.grant().is_some_and(Grant::is_logged);
                permit_beyond(self.guard, self.now, deadline, is_on_log, self.needs, reply)
            }
        }
    }

    /// Returns whether the lock, if any, may be released; replies with the refusal if not.
    ///
    /// The release of a lock without a deadline must be durable `[L3]`. Call this before anything
    /// is changed or replied.
    #[inline]
    pub(crate) fn may_remove(&self, reply: &mut Encoder<'_>) -> bool {
        self.guard.is_healthy()
            || may_remove_in_trouble(self.guard, self.shard, self.probe, self.needs, reply)
    }

    /// Notes that the key was refused, because it is held.
    #[inline]
    pub(crate) fn refused(&mut self) {
        let hash = self.probe.hash();
        self.shard.tally.refused(self.now, hash, self.db, self.key);
    }

    /// Counts a release by somebody else than the holder; returns the answer to it.
    #[inline]
    pub(crate) fn foreign_release<A>(self, answer: A) -> A {
        self.shard.tally.foreign_release();
        answer
    }

    /// Counts an extension by somebody else than the holder; returns the answer to it.
    #[inline]
    pub(crate) fn foreign_extension<A>(self, answer: A) -> A {
        self.shard.tally.foreign_extension();
        answer
    }

    /// Makes `token` hold the key, and returns the key's fence counter at the grant of the lock.
    #[inline(always)]
    pub(crate) fn put(self, token: &[u8], permit: Permit) -> u64 {
        let was_live = self.is_live();
        let grant = self.shard.put(self.probe, self.db, self.key, token, permit);
        let need = &mut self.needs.need;
        self.guard.note_counter(grant.counter(), need);
        self.shard.count_put(
            self.now,
            was_live,
            self.probe.hash(),
            grant,
            (self.db, self.key),
        );
        if grant.is_logged() && !self.needs.is_provisional {
            let record = put_record(self.db, self.key, token, permit.deadline, grant);
            log(self.guard, &Record::Put(record), true, self.needs);
        }
        grant.counter()
    }

    /// [`Entry::put`] for a missing key, with a label.
    pub(crate) fn put_labelled(self, token: &[u8], label: &Label<'_>, permit: Permit) -> u64 {
        let name = (self.db, self.key);
        let grant = (self.shard).put_labelled(self.probe, name, token, label, permit);
        self.guard
            .note_counter(grant.counter(), &mut self.needs.need);
        let hash = self.probe.hash();
        self.shard.count_put(self.now, false, hash, grant, name);
        if grant.is_logged() && !self.needs.is_provisional {
            let mut record = put_record(self.db, self.key, token, permit.deadline, grant);
            record.label = Some(label.text);
            log(self.guard, &Record::Put(record), true, self.needs);
        }
        grant.counter()
    }

    /// Moves a live lock's deadline for its holder; does nothing without a live lock.
    #[inline]
    pub(crate) fn extend(self, permit: Permit) {
        self.shard.tally.extended();
        self.set_deadline(permit);
    }

    /// Moves a live lock's deadline; does nothing without a live lock.
    pub(crate) fn set_deadline(self, permit: Permit) {
        if let Some(grant) = self.shard.set_deadline(self.probe, permit)
            && grant.is_logged()
            && !self.needs.is_provisional
        {
            self.log_held(permit.deadline, grant, true);
        }
    }

    /// Creates the key, which is missing, with a value in place of a token.
    #[cfg(feature = "compat")]
    pub(crate) fn create(self, value: Value, permit: Permit) {
        let grant = (self.shard).create(self.probe, self.db, self.key, value, permit);
        self.guard
            .note_counter(grant.counter(), &mut self.needs.need);
        self.shard.count_put(
            self.now,
            false,
            self.probe.hash(),
            grant,
            (self.db, self.key),
        );
        if grant.is_logged() && !self.needs.is_provisional {
            let probe = self
                .shard
                .probe(self.now, self.db, self.probe.hash(), self.key);
            Entry { probe, ..self }.log_held(permit.deadline, grant, true);
        }
    }

    /// Notes that the value of the live key has changed.
    #[cfg(feature = "compat")]
    pub(crate) fn changed(self, waits: bool) {
        self.shard.note_changed(self.probe);
        if let Some(grant) = self.grant()
            && let Some(deadline) = self.deadline()
            && grant.is_logged()
            && !self.needs.is_provisional
        {
            self.log_held(deadline, grant, waits);
        }
    }

    /// Logs a live lock as it is.
    #[cold]
    fn log_held(self, deadline: Deadline, grant: Grant, waits: bool) {
        let encoded = self.shard.collection(self.probe).map(Value::encode);
        let token = match &encoded {
            Some(bytes) => bytes,
            None => self.shard.value(self.probe).unwrap_or_default(),
        };
        let mut record = put_record(self.db, self.key, token, deadline, grant);
        record.is_collection = encoded.is_some();
        record.label = self.shard.label(self.probe).map(|label| label.text);
        log(self.guard, &Record::Put(record), waits, self.needs);
    }

    /// Removes a live lock; returns `false` without one. Check [`Entry::may_remove`] first.
    ///
    /// Only the release of a lock without a deadline must be durable: a crash may bring any other
    /// lock back, but only for its remaining TTL `[L3]`.
    #[inline]
    pub(crate) fn remove(self) -> bool {
        self.needs.released(self.probe.hash());
        match self.shard.remove(self.probe) {
            Some((grant, deadline)) => {
                let hash = self.probe.hash();
                self.shard.tally.released(self.now, hash, grant.counter());
                if grant.is_logged() && !self.needs.is_provisional {
                    log_removal(self.guard, self.db, self.key, deadline, self.needs);
                }
                true
            }
            None => false,
        }
    }

    /// Returns the key's fence counter, for a reply.
    pub(crate) fn counter(&mut self) -> u64 {
        let counter = self.shard.counter(self.db, self.key);
        self.guard.note_counter(counter, &mut self.needs.need);
        counter
    }

    /// Raises the key's fence counter to `fence` if it is lower.
    pub(crate) fn import(&mut self, fence: u64) {
        let counter = self.shard.import(self.db, self.key, fence);
        self.guard.note_counter(counter, &mut self.needs.need);
    }
}

/// Records what a look at this key depends on, while some reply waits for the disk.
#[cold]
pub(crate) fn depend_on(
    guard: &Guard,
    now: Time,
    (db, key): (u8, &[u8]),
    shard: &Shard,
    probe: Probe,
    needs: &mut BatchNeeds,
) {
    let is_covered = shard.grant(probe).is_some_and(|it| !it.is_logged());
    let covered_until = shard.deadline(probe).filter(|_| is_covered);
    let need = guard.need_of(now, db, key, covered_until);
    if !need.is_none() {
        needs.saw(need, probe.hash());
    }
}

/// The slow path of [`Entry::permit`]: a deadline beyond the guard's bounds.
#[inline(never)]
fn permit_beyond(
    guard: &Guard,
    now: Time,
    deadline: Deadline,
    is_on_log: bool,
    needs: &mut BatchNeeds,
    reply: &mut Encoder<'_>,
) -> Option<Permit> {
    if needs.is_provisional {
        return Some(Permit::plain(deadline));
    }
    match guard.permit(now, deadline, || is_on_log, &mut needs.need) {
        Ok(permit) => Some(permit),
        Err(denial) => {
            denial.refuse(reply);
            None
        }
    }
}

#[cold]
fn may_remove_in_trouble(
    guard: &Guard,
    shard: &Shard,
    probe: Probe,
    needs: &BatchNeeds,
    reply: &mut Encoder<'_>,
) -> bool {
    match guard.may_log() {
        Ok(()) => true,
        Err(_) if needs.is_provisional => true,
        Err(denial) => may_remove_unlogged(shard, probe, &denial, reply),
    }
}

/// The slow path of [`Entry::may_remove`], while nothing can be written to the log.
#[cold]
pub(crate) fn may_remove_unlogged(
    shard: &Shard,
    probe: Probe,
    denial: &Denial,
    reply: &mut Encoder<'_>,
) -> bool {
    let waits = shard.deadline(probe) == Some(Deadline::NEVER)
        && shard.grant(probe).is_some_and(Grant::is_logged);
    if waits {
        denial.refuse(reply);
    }
    !waits
}

/// Logs the release of a lock with this deadline.
pub(crate) fn log_removal(
    guard: &Guard,
    db: u8,
    key: &[u8],
    deadline: Deadline,
    needs: &mut BatchNeeds,
) {
    let record = Record::Remove { db, key };
    log(guard, &record, deadline == Deadline::NEVER, needs);
}

#[cold]
fn log(guard: &Guard, record: &Record<'_>, waits: bool, needs: &mut BatchNeeds) {
    guard.log(record, waits, &mut needs.need);
}

/// The record of a lock that is on the log.
const fn put_record<'a>(
    db: u8,
    key: &'a [u8],
    token: &'a [u8],
    deadline: Deadline,
    grant: Grant,
) -> LockRecord<'a> {
    LockRecord {
        db,
        key,
        token,
        grant: grant.counter(),
        deadline,
        is_logged: true,
        is_collection: false,
        label: None,
    }
}
