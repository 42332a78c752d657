//! A running command's view of the node: its keys, the clock, the session, the settings.

use locknode_resp::Encoder;

use super::Commands;
use super::keys::Keys;
use crate::durable::Record;
use crate::entry::{Entry, depend_on, may_remove_unlogged};
use crate::flags::Flags;
use crate::guard::BatchNeeds;
use crate::key_hash::KeyHash;
use crate::keyspace::Space;
use crate::observers::{Cause, KeyChange};
use crate::services::Services;
use crate::session::Session;
use crate::time::Moment;

/// What the driver does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next command.
    Continue,
    /// Send the replies, then close the connection.
    Close,
    /// The command waits: for the end of a pause, or of a script. Offer it again at
    /// [`Engine::wait_end`](crate::Engine::wait_end), which may come closer when the client's waker is
    /// woken.
    Paused,
    /// Continue, but serve other connections first: this one's commands take long.
    Yield,
    /// Send the replies to the other connections, then stop the node cleanly.
    Shutdown,
    /// Like [`Flow::Shutdown`], but leave no snapshot: the next start is one after a crash.
    ShutdownNoSave,
}

/// The running command's view; see the module docs. `'k` is the batch, `'c` the command.
#[derive(Debug)]
pub(crate) struct Context<'c, 'k> {
    pub(crate) services: &'k Services,
    pub(crate) commands: &'k Commands,
    pub(crate) session: &'c mut Session,
    pub(crate) space: &'c mut Space<'k>,
    pub(crate) moment: Moment,
    /// The hash of the key, if the command locked just one.
    pub(crate) key_hash: Option<KeyHash>,
    pub(crate) flow: Flow,
    /// Whether the command may end with [`Flow::Paused`]: not within a transaction.
    pub(crate) may_wait: bool,
    /// What must be durable before the batch's replies are sent.
    pub(crate) needs: &'c mut BatchNeeds,
}

impl Context<'_, '_> {
    /// Finds a key, which the command has locked. Inlined, so that the fields of the entry stay in
    /// registers.
    #[inline(always)]
    pub(crate) fn entry<'e>(&'e mut self, key: &'e [u8]) -> Entry<'e> {
        let hash = match self.key_hash {
            Some(hash) => hash,
            None => self.space.hash(self.session.db, key),
        };
        let entry = self.find(hash, key);
        if entry.guard.has_waiting_replies() {
            let name = (entry.db, key);
            depend_on(
                entry.guard,
                entry.now,
                name,
                entry.shard,
                entry.probe,
                entry.needs,
            );
        }
        entry
    }

    /// Like [`Context::entry`], for an operation that also replies with the value: counts as a hit
    /// or a miss in INFO.
    pub(crate) fn entry_to_read<'e>(&'e mut self, key: &'e [u8]) -> Entry<'e> {
        let mut entry = self.entry(key);
        entry.count_read();
        entry
    }

    /// Locks and finds a key, for a command that locks its own keys.
    #[inline(always)]
    pub(crate) fn lock_entry<'e>(&'e mut self, key: &'e [u8]) -> Entry<'e> {
        self.key_hash = Some(self.space.lock_one(self.session.db, key));
        self.entry(key)
    }

    #[inline(always)]
    fn find<'e>(&'e mut self, hash: KeyHash, key: &'e [u8]) -> Entry<'e> {
        let (db, now) = (self.session.db, self.moment.time);
        debug_assert_eq!(hash, self.space.hash(db, key), "the hash is the key's");
        let shard = self.space.shard_of(hash);
        Entry {
            db,
            key,
            probe: shard.probe(now, db, hash, key),
            shard,
            guard: &self.services.guard,
            needs: self.needs,
            now,
        }
    }

    /// [`Entry::may_remove`] for several keys.
    #[inline]
    pub(crate) fn may_remove_all(&mut self, keys: &[&[u8]], reply: &mut Encoder<'_>) -> bool {
        let Err(denial) = self.services.guard.may_log() else {
            return true;
        };
        if self.needs.is_provisional {
            return true;
        }
        keys.iter().all(|key| {
            let hash = self.space.hash(self.session.db, key);
            let entry = self.find(hash, key);
            may_remove_unlogged(entry.shard, entry.probe, &denial, reply)
        })
    }

    /// Ends a command while a reply waits for the disk.
    #[cold]
    pub(crate) fn end(&mut self, keys: Keys, flags: Flags) {
        if keys == Keys::All && !flags.has(Flags::WRITE) {
            self.depend_on_all(flags);
        }
        self.needs.end_command();
    }

    /// Reports the changes that a command has made.
    #[cold]
    pub(crate) fn report_changes(&mut self, command: &'static str) {
        let cause = self.cause(command);
        let services = self.services;
        for shard in self.space.shards() {
            let changes = shard.take_changes();
            services.observers.report(changes, cause, &services.clients);
        }
    }

    /// Reports changes that a command of a script has made.
    pub(crate) fn report(&self, changes: Vec<KeyChange>, command: &'static str) {
        let services = self.services;
        let cause = self.cause(command);
        services.observers.report(changes, cause, &services.clients);
    }

    fn cause(&self, command: &'static str) -> Cause {
        Cause {
            command: Some(command),
            client: Some(self.session.client.id),
        }
    }

    /// Like [`Context::entry`], for a command that reads the whole table. A reply about the node
    /// itself, such as INFO, is sent even if the table never becomes durable.
    pub(crate) fn depend_on_all(&mut self, flags: Flags) {
        let guard = &self.services.guard;
        let need = guard.need_of_all();
        let is_sent_anyway = flags.has(Flags::LOADING) && guard.is_hopeless(&need);
        if !need.is_none() && !is_sent_anyway {
            self.needs.saw_all(need);
        }
    }

    /// Removes every key of one database, or of all, with all shards locked; `false` if it refused.
    pub(crate) fn clear(&mut self, db: Option<u8>, reply: &mut Encoder<'_>) -> bool {
        let guard = &self.services.guard;
        if guard.has_log()
            && let Err(denial) = guard.may_log()
        {
            denial.refuse(reply);
            return false;
        }
        for shard in self.space.shards() {
            shard.clear(db);
        }
        if self.services.guard.has_log() {
            let record = Record::Clear { db };
            self.services.guard.log(&record, true, &mut self.needs.need);
        }
        true
    }
}
