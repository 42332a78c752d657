//! What a running command sees of the node: its own key lookups, the clock, the session, the settings.

use crate::engine::Engine;
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
    /// Send what was replied to others, then end the node.
    Shutdown,
}

/// The running command's view; see the module text. `'k` is the batch, `'c` the command.
#[derive(Debug)]
pub(crate) struct Context<'c, 'k> {
    pub(crate) engine: &'k Engine,
    pub(crate) session: &'c mut Session,
    pub(crate) space: &'c mut Space<'k>,
    pub(crate) moment: Moment,
    pub(crate) flow: Flow,
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
        self.space
            .shard_of(hash)
            .probe(self.moment.time, self.session.db, hash, key)
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

    /// Creates or overwrites the key.
    #[inline]
    pub(crate) fn put(&mut self, probe: Probe, key: &[u8], value: &[u8], deadline: Deadline) {
        self.space
            .shard_of(probe.hash())
            .put(probe, self.session.db, key, value, deadline);
    }

    /// Moves a live lock's deadline; `false` without a live lock.
    pub(crate) fn set_deadline(&mut self, probe: &Probe, deadline: Deadline) -> bool {
        self.space
            .shard_of(probe.hash())
            .set_deadline(probe, deadline)
    }

    /// Removes a live lock; `false` without one.
    #[inline]
    pub(crate) fn remove(&mut self, probe: Probe) -> bool {
        self.space.shard_of(probe.hash()).remove(probe)
    }

    /// A read that counts as a hit or a miss in INFO.
    pub(crate) fn read(&mut self, key: &[u8]) -> Option<Lock<'_>> {
        let hash = self.space.hash(self.session.db, key);
        let shard = self.space.shard_of(hash);
        let probe = shard.probe(self.moment.time, self.session.db, hash, key);
        shard.count_read(probe.is_live());
        let (value, deadline) = shard.entry(&probe)?;
        Some(Lock { value, deadline })
    }
}
