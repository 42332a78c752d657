//! What a running command sees of the node: its own key lookups, the clock, the session, the settings.

use locknode_resp::Encoder;

use crate::command::{Flags, Keys, Spec};
use crate::durable::{LockRecord, Record};
use crate::engine::Engine;
use crate::fence::Grant;
use crate::guard::{Denial, Permit, Rest};
use crate::keyspace::Space;
use crate::session::Session;
use crate::shard::Probe;
use crate::time::{Deadline, Moment};

/// What the driver does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on with the next command.
    Continue,
    /// Send what was replied, then close the connection.
    Close,
    /// Nothing was executed: the node is paused for this command. Offer it again when [`Engine::pause_end`] says
    /// so or when the client's waker is woken.
    Paused,
    /// Go on, but let other connections go first: what this one asks for takes long.
    Yield,
    /// Send what was replied to others, then end the node in order.
    Shutdown,
    /// As [`Flow::Shutdown`], but leave no snapshot: the next start is one after a crash.
    ShutdownNoSave,
}

/// The running command's view; see the module text. `'k` is the batch, `'c` the command.
#[derive(Debug)]
pub(crate) struct Context<'c, 'k> {
    pub(crate) engine: &'k Engine,
    pub(crate) session: &'c mut Session,
    pub(crate) space: &'c mut Space<'k>,
    pub(crate) moment: Moment,
    pub(crate) flow: Flow,
    /// What has to be durable before the batch's replies leave.
    pub(crate) rest: &'c mut Rest,
}

/// A live lock as a command reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock<'a> {
    pub(crate) value: &'a [u8],
    pub(crate) deadline: Deadline,
}

impl Context<'_, '_> {
    /// Finds a key for an operation that goes on to change it (and for plain presence tests).
    #[inline]
    pub(crate) fn probe(&mut self, key: &[u8]) -> Probe {
        let hash = self.space.hash(self.session.db, key);
        let probe = self
            .space
            .shard_of(hash)
            .probe(self.moment.time, self.session.db, hash, key);
        if self.engine.guard.has_awaited() {
            self.rest_on(&probe, key);
        }
        probe
    }

    /// Somebody waits for the disk: what is told of this key may have to wait, too.
    #[cold]
    fn rest_on(&mut self, probe: &Probe, key: &[u8]) {
        let shard = self.space.shard_of(probe.hash());
        let is_riding = shard.grant(probe).is_some_and(|it| !it.is_logged());
        let rides_until = shard.deadline(probe).filter(|_| is_riding);
        let now = self.moment.time;
        let guard = &self.engine.guard;
        let need = guard.need_of(now, self.session.db, key, rides_until);
        if !need.is_none() {
            self.rest.saw(need, probe.hash());
        }
    }

    /// Ends a command while somebody waits for the disk.
    #[cold]
    pub(crate) fn end(&mut self, spec: &Spec) {
        if spec.keys == Keys::All && !spec.flags.has(Flags::WRITE) {
            self.rest_on_all(spec);
        }
        self.rest.end_command();
    }

    /// As [`Context::probe`], for a command that looks at the whole table. What tells of the node itself, as INFO does, is
    /// told also when it never becomes durable.
    pub(crate) fn rest_on_all(&mut self, spec: &Spec) {
        let guard = &self.engine.guard;
        let need = guard.need_of_all();
        let is_told_anyway = spec.flags.has(Flags::LOADING) && guard.is_hopeless(&need);
        if !need.is_none() && !is_told_anyway {
            self.rest.saw_all(need);
        }
    }

    /// As [`Context::probe`], for an operation that also replies the value: counts as a hit or a miss in INFO.
    pub(crate) fn probe_read(&mut self, key: &[u8]) -> Probe {
        let probe = self.probe(key);
        self.space
            .shard_of(probe.hash())
            .count_read(probe.is_live());
        probe
    }

    /// The value that a probe found.
    #[inline]
    pub(crate) fn value(&mut self, probe: &Probe) -> Option<&[u8]> {
        self.space.shard_of(probe.hash()).value(probe)
    }

    /// The deadline that a probe found.
    #[inline]
    pub(crate) fn deadline(&mut self, probe: &Probe) -> Option<Deadline> {
        self.space.shard_of(probe.hash()).deadline(probe)
    }

    /// The lock that a probe found.
    #[inline]
    pub(crate) fn lock(&mut self, probe: &Probe) -> Option<Lock<'_>> {
        let (value, deadline) = self.space.shard_of(probe.hash()).entry(probe)?;
        Some(Lock { value, deadline })
    }

    /// Asks the restart guard whether a key may be held until a deadline; replies the refusal otherwise. To be called
    /// when nothing else stands against the grant, and before anything is changed or replied.
    #[inline]
    pub(crate) fn permit(
        &mut self,
        probe: &Probe,
        deadline: Deadline,
        reply: &mut Encoder<'_>,
    ) -> Option<Permit> {
        match self.engine.guard.permit_within(self.moment.time, deadline) {
            Some(permit) => Some(permit),
            None => self.permit_beyond(probe, deadline, reply),
        }
    }

    /// [`Context::permit`] beyond what the guard's bounds allow.
    #[inline(never)]
    fn permit_beyond(
        &mut self,
        probe: &Probe,
        deadline: Deadline,
        reply: &mut Encoder<'_>,
    ) -> Option<Permit> {
        if self.rest.is_provisional {
            return Some(Permit::plain(deadline));
        }
        let guard = &self.engine.guard;
        let shard = self.space.shard_of(probe.hash());
        let is_on_log = || shard.grant(probe).is_some_and(Grant::is_logged);
        let need = &mut self.rest.need;
        match guard.permit(self.moment.time, deadline, is_on_log, need) {
            Ok(permit) => Some(permit),
            Err(denial) => {
                denial.refuse(reply);
                None
            }
        }
    }

    /// Whether the lock that a probe found, if it found one, may be released; replies the refusal otherwise. The release of
    /// a lock without a deadline has to be durable `[L3]`. To be called before anything is changed or replied.
    #[inline]
    pub(crate) fn may_remove(&mut self, probe: &Probe, reply: &mut Encoder<'_>) -> bool {
        self.engine.guard.is_healthy() || self.may_remove_in_trouble(probe, reply)
    }

    /// [`Context::may_remove`] for the locks under several keys.
    #[inline]
    pub(crate) fn may_remove_all(&mut self, keys: &[&[u8]], reply: &mut Encoder<'_>) -> bool {
        let Err(denial) = self.engine.guard.may_log() else {
            return true;
        };
        if self.rest.is_provisional {
            return true;
        }
        let (now, db) = (self.moment.time, self.session.db);
        keys.iter().all(|key| {
            let hash = self.space.hash(db, key);
            let probe = self.space.shard_of(hash).probe(now, db, hash, key);
            self.may_remove_unlogged(&probe, &denial, reply)
        })
    }

    #[cold]
    fn may_remove_in_trouble(&mut self, probe: &Probe, reply: &mut Encoder<'_>) -> bool {
        match self.engine.guard.may_log() {
            Ok(()) => true,
            Err(_) if self.rest.is_provisional => true,
            Err(denial) => self.may_remove_unlogged(probe, &denial, reply),
        }
    }

    #[cold]
    fn may_remove_unlogged(
        &mut self,
        probe: &Probe,
        denial: &Denial,
        reply: &mut Encoder<'_>,
    ) -> bool {
        let shard = self.space.shard_of(probe.hash());
        let waits = shard.deadline(probe) == Some(Deadline::NEVER)
            && shard.grant(probe).is_some_and(Grant::is_logged);
        if waits {
            denial.refuse(reply);
        }
        !waits
    }

    /// Creates or overwrites the key; returns the key's fence counter at the lock's grant.
    #[inline]
    pub(crate) fn put(&mut self, probe: Probe, key: &[u8], value: &[u8], permit: Permit) -> u64 {
        let shard = self.space.shard_of(probe.hash());
        let grant = shard.put(probe, self.session.db, key, value, permit);
        let need = &mut self.rest.need;
        self.engine.guard.note_counter(grant.counter(), need);
        if grant.is_logged() && !self.rest.is_provisional {
            self.log_put(key, value, permit.deadline, grant);
        }
        grant.counter()
    }

    /// Moves a live lock's deadline; `false` without a live lock.
    pub(crate) fn set_deadline(&mut self, probe: &Probe, key: &[u8], permit: Permit) -> bool {
        let shard = self.space.shard_of(probe.hash());
        let has_moved = shard.set_deadline(probe, permit);
        if let Some(grant) = shard.grant(probe)
            && grant.is_logged()
            && !self.rest.is_provisional
        {
            let token = shard.value(probe).unwrap_or_default();
            let record = held(self.session.db, key, token, permit.deadline, grant);
            self.engine.guard.log(&record, true, &mut self.rest.need);
        }
        has_moved
    }

    /// Removes a live lock; `false` without one. Only the release of a lock without a deadline has to be durable: a
    /// crash may bring another back, but for no longer than it had left `[L3]`. Ask [`Context::may_remove`] first.
    #[inline]
    pub(crate) fn remove(&mut self, probe: Probe, key: &[u8]) -> bool {
        self.rest.released(probe.hash());
        match self.space.shard_of(probe.hash()).remove(probe) {
            Some((grant, deadline)) => {
                if grant.is_logged() && !self.rest.is_provisional {
                    self.log_removal(key, deadline);
                }
                true
            }
            None => false,
        }
    }

    #[cold]
    pub(crate) fn log_removal(&mut self, key: &[u8], deadline: Deadline) {
        let record = Record::Remove {
            db: self.session.db,
            key,
        };
        let waits = deadline == Deadline::NEVER;
        let need = &mut self.rest.need;
        self.engine.guard.log(&record, waits, need);
    }

    /// Removes every key of one database, or of all; all shards are locked. `false`: it replied why it may not.
    pub(crate) fn clear(&mut self, db: Option<u8>, reply: &mut Encoder<'_>) -> bool {
        let guard = &self.engine.guard;
        if guard.has_log()
            && let Err(denial) = guard.may_log()
        {
            denial.refuse(reply);
            return false;
        }
        for shard in self.space.shards() {
            shard.clear(db);
        }
        if self.engine.guard.has_log() {
            let record = Record::Clear { db };
            self.engine.guard.log(&record, true, &mut self.rest.need);
        }
        true
    }

    /// The grant of the lock that a probe found.
    pub(crate) fn grant(&mut self, probe: &Probe) -> Option<u64> {
        let grant = self.space.shard_of(probe.hash()).grant(probe)?;
        Some(grant.counter())
    }

    /// The grant of the lock that a probe found, with whether it is on the log.
    pub(crate) fn full_grant(&mut self, probe: &Probe) -> Option<Grant> {
        self.space.shard_of(probe.hash()).grant(probe)
    }

    /// A key's fence counter, to be told.
    pub(crate) fn counter(&mut self, probe: &Probe, key: &[u8]) -> u64 {
        let shard = self.space.shard_of(probe.hash());
        let counter = shard.counter(self.session.db, key);
        let need = &mut self.rest.need;
        self.engine.guard.note_counter(counter, need);
        counter
    }

    /// Raises a key's fence counter to `fence` if it is lower.
    pub(crate) fn import(&mut self, probe: &Probe, key: &[u8], fence: u64) {
        let shard = self.space.shard_of(probe.hash());
        let counter = shard.import(self.session.db, key, fence);
        let need = &mut self.rest.need;
        self.engine.guard.note_counter(counter, need);
    }

    #[cold]
    fn log_put(&mut self, key: &[u8], token: &[u8], deadline: Deadline, grant: Grant) {
        let record = held(self.session.db, key, token, deadline, grant);
        self.engine.guard.log(&record, true, &mut self.rest.need);
    }

    /// A read that counts as a hit or a miss in INFO.
    pub(crate) fn read(&mut self, key: &[u8]) -> Option<Lock<'_>> {
        let probe = self.probe_read(key);
        let (value, deadline) = self.space.shard_of(probe.hash()).entry(&probe)?;
        Some(Lock { value, deadline })
    }
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
