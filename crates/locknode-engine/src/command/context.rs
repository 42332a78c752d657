//! A running command's view of the node: its keys, the clock, the session, the settings.

use locknode_resp::Encoder;

use super::Commands;
use super::changes::Journal;
use super::keys::Keys;
#[cfg(feature = "compat")]
use crate::channels::TopicKind;
use crate::durable::Record;
use crate::entry::{Entry, depend_on, may_remove_unlogged};
use crate::flags::Flags;
use crate::guard::BatchNeeds;
use crate::key_change::{Cause, KeyChange};
use crate::key_hash::KeyHash;
use crate::keyspace::Space;
use crate::services::Services;
use crate::session::Session;
use crate::shard::Shard;
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
    /// There is no reply yet: execute nothing more until
    /// [`Session::is_waiting`](crate::Session::is_waiting) is false. A wake-up of the client, or the
    /// time [`Session::wait_end`](crate::Session::wait_end), may end the wait.
    Blocked,
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
    /// That of the running script or transaction.
    pub(crate) journal: Option<Box<Journal>>,
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

    /// Locks and finds a key, for a script that reads it first of all and locks its own keys.
    #[inline(always)]
    pub(crate) fn lock_entry<'e>(&'e mut self, key: &'e [u8]) -> Entry<'e> {
        self.key_hash = Some(self.space.lock_one(self.session.db, key));
        #[cfg(feature = "compat")]
        let is_tracked = self.session.tracks_reads();
        let entry = self.entry(key);
        #[cfg(feature = "compat")]
        if is_tracked {
            entry.shard.note_read(entry.db, key);
        }
        entry
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
        let changes = self.take_changes();
        self.report(command, changes);
    }

    /// Takes the changes that a command has made in the locked shards.
    pub(crate) fn take_changes(&mut self) -> Vec<KeyChange> {
        self.space.shards().flat_map(Shard::take_changes).collect()
    }

    /// Does what may take long when it is the connection's turn; a transaction had its own.
    pub(crate) fn in_turn(&mut self, work: impl FnOnce(&mut Self)) {
        if self.journal.is_some() {
            return work(self);
        }
        let turns = &self.services.turns;
        let Some(turn) = turns.begin(&mut self.session.place) else {
            self.session.begin_waiting_for_turn();
            self.flow = Flow::Paused;
            return;
        };
        work(self);
        if turns.end(turn) && self.flow == Flow::Continue {
            self.flow = Flow::Yield;
        }
    }

    /// Reports changes of a command.
    pub(crate) fn report(&mut self, command: &'static str, changes: Vec<KeyChange>) {
        let cause = Cause {
            command: Some(command),
            client: Some(self.session.client.id),
        };
        let services = self.services;
        services.observers.report(changes, cause, &services.clients);
    }

    /// Sends a message to the subscribers of a channel, and returns how often it is sent. Inside a
    /// script or transaction it is sent at the end.
    ///
    /// # Errors
    ///
    /// Returns why it is not sent.
    #[cfg(feature = "compat")]
    pub(crate) fn publish(
        &mut self,
        kind: TopicKind,
        channel: &[u8],
        text: &[u8],
    ) -> Result<usize, &'static str> {
        let services = self.services;
        let channels = &services.observers.notifications.channels;
        if kind == TopicKind::Channel && channels.is_too_long(channel) {
            return Err(CHANNEL_TOO_LONG);
        }
        let Some(journal) = &mut self.journal else {
            return Ok(channels.publish(kind, channel, text, &services.clients));
        };
        let receivers = channels.receivers(kind, channel);
        if receivers == 0 || journal.publish(kind, channel, text, receivers) {
            Ok(receivers)
        } else {
            Err(TOO_MANY_MESSAGES)
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

#[cfg(feature = "compat")]
const CHANNEL_TOO_LONG: &str =
    "ERR the channel is too long to be compared with all patterns that clients are subscribed to";

#[cfg(feature = "compat")]
const TOO_MANY_MESSAGES: &str =
    "ERR a script or transaction publishes at most 16777216 bytes, to 200000 receivers";
