//! One key of the lock table as a command works on it: what it holds, what the restart guard says, what is put on the log.

use locknode_resp::Encoder;

use crate::durable::{LockRecord, Record};
use crate::fence::Grant;
use crate::guard::{Denial, Guard, Permit, Rest};
use crate::shard::{Probe, Shard};
use crate::time::{Deadline, Time};

/// A key and its place in its shard, as [`Context::entry`](crate::command::Context::entry) finds it.
#[derive(Debug)]
pub(crate) struct Entry<'e> {
    pub(crate) db: u8,
    pub(crate) key: &'e [u8],
    pub(crate) probe: Probe,
    pub(crate) shard: &'e mut Shard,
    pub(crate) guard: &'e Guard,
    pub(crate) rest: &'e mut Rest,
    pub(crate) now: Time,
}

/// A live lock as a command reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock<'a> {
    pub(crate) value: &'a [u8],
    pub(crate) deadline: Deadline,
}

impl Entry<'_> {
    /// Whether the key is held.
    #[inline]
    pub(crate) const fn is_live(&self) -> bool {
        self.probe.is_live()
    }

    /// The token that the key holds.
    #[inline]
    pub(crate) fn value(&self) -> Option<&[u8]> {
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

    /// Counts a read as a hit or a miss in INFO.
    pub(crate) fn count_read(&mut self) {
        self.shard.count_read(self.probe.is_live());
    }

    /// Asks the restart guard whether the key may be held until a deadline; replies the refusal otherwise. To be called
    /// when nothing else stands against the grant, and before anything is changed or replied.
    #[inline]
    pub(crate) fn permit(&mut self, deadline: Deadline, reply: &mut Encoder<'_>) -> Option<Permit> {
        match self.guard.permit_within(self.now, deadline) {
            Some(permit) => Some(permit),
            None => {
                let is_on_log = self.grant().is_some_and(Grant::is_logged);
                permit_beyond(self.guard, self.now, deadline, is_on_log, self.rest, reply)
            }
        }
    }

    /// Whether the lock, if there is one, may be released; replies the refusal otherwise. The release of a lock without a
    /// deadline has to be durable `[L3]`. To be called before anything is changed or replied.
    #[inline]
    pub(crate) fn may_remove(&self, reply: &mut Encoder<'_>) -> bool {
        self.guard.is_healthy()
            || may_remove_in_trouble(self.guard, self.shard, self.probe, self.rest, reply)
    }

    /// Holds the token under the key; returns the key's fence counter at the lock's grant.
    #[inline(always)]
    pub(crate) fn put(self, token: &[u8], permit: Permit) -> u64 {
        let grant = self.shard.put(self.probe, self.db, self.key, token, permit);
        let need = &mut self.rest.need;
        self.guard.note_counter(grant.counter(), need);
        if grant.is_logged() && !self.rest.is_provisional {
            let record = held(self.db, self.key, token, permit.deadline, grant);
            log(self.guard, &record, true, self.rest);
        }
        grant.counter()
    }

    /// Moves a live lock's deadline; nothing without a live lock.
    pub(crate) fn set_deadline(self, permit: Permit) {
        self.shard.set_deadline(self.probe, permit);
        if let Some(grant) = self.grant()
            && grant.is_logged()
            && !self.rest.is_provisional
        {
            let token = self.shard.value(self.probe).unwrap_or_default();
            let record = held(self.db, self.key, token, permit.deadline, grant);
            log(self.guard, &record, true, self.rest);
        }
    }

    /// Removes a live lock; `false` without one. Only the release of a lock without a deadline has to be durable: a
    /// crash may bring another back, but for no longer than it had left `[L3]`. Ask [`Entry::may_remove`] first.
    #[inline]
    pub(crate) fn remove(self) -> bool {
        self.rest.released(self.probe.hash());
        match self.shard.remove(self.probe) {
            Some((grant, deadline)) => {
                if grant.is_logged() && !self.rest.is_provisional {
                    log_removal(self.guard, self.db, self.key, deadline, self.rest);
                }
                true
            }
            None => false,
        }
    }

    /// The key's fence counter, to be told.
    pub(crate) fn counter(&mut self) -> u64 {
        let counter = self.shard.counter(self.db, self.key);
        self.guard.note_counter(counter, &mut self.rest.need);
        counter
    }

    /// Raises the key's fence counter to `fence` if it is lower.
    pub(crate) fn import(&mut self, fence: u64) {
        let counter = self.shard.import(self.db, self.key, fence);
        self.guard.note_counter(counter, &mut self.rest.need);
    }
}

/// Somebody waits for the disk: what is told of a key may have to wait, too.
#[cold]
pub(crate) fn rest_on(
    guard: &Guard,
    now: Time,
    (db, key): (u8, &[u8]),
    shard: &Shard,
    probe: Probe,
    rest: &mut Rest,
) {
    let is_riding = shard.grant(probe).is_some_and(|it| !it.is_logged());
    let rides_until = shard.deadline(probe).filter(|_| is_riding);
    let need = guard.need_of(now, db, key, rides_until);
    if !need.is_none() {
        rest.saw(need, probe.hash());
    }
}

/// [`Entry::permit`] beyond what the guard's bounds allow.
#[inline(never)]
fn permit_beyond(
    guard: &Guard,
    now: Time,
    deadline: Deadline,
    is_on_log: bool,
    rest: &mut Rest,
    reply: &mut Encoder<'_>,
) -> Option<Permit> {
    if rest.is_provisional {
        return Some(Permit::plain(deadline));
    }
    match guard.permit(now, deadline, || is_on_log, &mut rest.need) {
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
    rest: &Rest,
    reply: &mut Encoder<'_>,
) -> bool {
    match guard.may_log() {
        Ok(()) => true,
        Err(_) if rest.is_provisional => true,
        Err(denial) => may_remove_unlogged(shard, probe, &denial, reply),
    }
}

/// [`Entry::may_remove`] while nothing can be put on the log.
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

/// Puts the release of a lock with that deadline on the log.
pub(crate) fn log_removal(guard: &Guard, db: u8, key: &[u8], deadline: Deadline, rest: &mut Rest) {
    let record = Record::Remove { db, key };
    log(guard, &record, deadline == Deadline::NEVER, rest);
}

#[cold]
fn log(guard: &Guard, record: &Record<'_>, waits: bool, rest: &mut Rest) {
    guard.log(record, waits, &mut rest.need);
}

/// The record of a lock that is on the log.
const fn held<'a>(
    db: u8,
    key: &'a [u8],
    token: &'a [u8],
    deadline: Deadline,
    grant: Grant,
) -> Record<'a> {
    Record::Put(LockRecord {
        db,
        key,
        token,
        grant: grant.counter(),
        deadline,
        is_logged: true,
    })
}
