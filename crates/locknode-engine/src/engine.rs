//! The node as a state machine: requests in, reply bytes out, time as an argument.
//!
//! ```text
//!              args (borrowed)        Moment
//!                    |                  |
//!   Session ---> Batch::execute  <-- Engine::batch      Engine::sweep <-- Moment
//!                    |                                       |
//!              reply bytes + Flow                       expired locks reclaimed
//! ```
//!
//! The engine does no I/O, reads no clock and starts no thread, so the same engine runs in the
//! server and in a simulator.

mod admission;
mod beside_scripts;
mod carrying;
mod leaving;
mod lock_table;
mod queueing;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use locknode_resp::{Encoder, Limits};

use admission::Refusal;
pub use lock_table::LockTable;

use crate::client::{Clients, Peer};
use crate::command::{Commands, Context, Flow, Keys, Spec, refusal};
use crate::command_id::CommandId;
use crate::counters::Counters;
use crate::durable::LockRecord;
use crate::flags::Flags;
use crate::guard::{BatchNeeds, Guard, GuardConfig, Need};
use crate::host::{Host, NoHost};
use crate::key_change::Cause;
use crate::key_hash::KeyHash;
use crate::keyspace::{Keyspace, Space, TableSizes};
use crate::observers::Observers;
use crate::options::Options;
use crate::pause::Pause;
use crate::script::StartThread;
use crate::scripts::Scripts;
use crate::services::Services;
use crate::session::{ReplyMode, Session};
use crate::settings::Settings;
use crate::shard::{Shard, Swept};
use crate::slab::{KEY_LEN_MAX, VALUE_LEN_MAX};
use crate::time::{Moment, Time};
use crate::timings::Timings;
use crate::turns::Turns;
#[cfg(feature = "acl")]
use crate::users::UserList;
use crate::users::Users;

/// The configuration of an engine.
#[derive(Debug)]
pub struct EngineConfig {
    /// The options that clients can see and change.
    pub options: Options,
    /// Shards of the lock table: 1 for one thread, 64 for several.
    pub shards: usize,
    /// The initial sizes of its tables.
    pub sizes: TableSizes,
    /// The seed of the key hash: secret and different for every start, except in a simulation.
    pub hash_seed: u64,
    /// Forty hexadecimal digits that identify this run of the node in INFO; different for every
    /// start.
    pub run_id: String,
    /// The source of what INFO reports about the process.
    pub host: Box<dyn Host>,
    /// How restarts are guarded, and what is known of earlier runs.
    pub guard: GuardConfig,
    /// A clock that runs while a command runs, from any origin: it limits the time of a script.
    /// Without one, as in a simulation, the instructions of a script are counted instead.
    pub stopwatch: Option<fn() -> Duration>,
    /// Starts the threads on which scripts that take long go on, while other clients are served.
    /// Without it or a stopwatch, such scripts are stopped.
    pub start_thread: Option<StartThread>,
    /// The users at the start; `None` for `default` alone.
    #[cfg(feature = "acl")]
    pub users: Option<UserList>,
}

impl EngineConfig {
    /// Returns a configuration with one shard, default options, no host facts and no restart guard.
    pub fn new(hash_seed: u64, run_id: impl Into<String>) -> Self {
        Self {
            options: Options::default(),
            shards: 1,
            sizes: TableSizes::default(),
            hash_seed,
            run_id: run_id.into(),
            host: Box::new(NoHost),
            guard: GuardConfig::off(),
            stopwatch: None,
            start_thread: None,
            #[cfg(feature = "acl")]
            users: None,
        }
    }
}

/// One lock node.
#[derive(Debug)]
pub struct Engine {
    keyspace: Keyspace,
    commands: Commands,
    services: Services,
    sweep_shard: AtomicU64,
}

/// Exclusive use of the engine's table for one readiness batch; hold it no longer than that.
#[derive(Debug)]
pub struct Batch<'e> {
    engine: &'e Engine,
    space: Space<'e>,
    moment: Moment,
    needs: BatchNeeds,
    /// How many commands each quick one stands for when its time is taken; 0 when it is not.
    weight: u64,
}

impl Engine {
    /// Creates a node that starts at `started` without locks; see [`Engine::restore`].
    pub fn new(config: EngineConfig, started: Moment) -> Self {
        let commands = Commands::new();
        let settings = Arc::new(Settings::new(config.options));
        let observers = Arc::new(Observers::default());
        #[cfg(feature = "acl")]
        let users = Arc::new(Users::new(config.users, crate::command::numbers::names()));
        #[cfg(not(feature = "acl"))]
        let users = Arc::new(Users::new());
        let engine = Self {
            keyspace: Keyspace::new(
                config.shards,
                config.sizes,
                config.hash_seed,
                config.guard.fence_base,
                &observers,
            ),
            services: Services {
                guard: Guard::new(&config.guard, started.time),
                counters: Counters::new(commands.all().len()),
                #[cfg(feature = "compat")]
                waiters: crate::waiters::Waiters::new(Arc::clone(&observers)),
                observers,
                clients: Clients::new(Arc::clone(&settings), Arc::clone(&users)),
                users,
                settings,
                pause: Pause::default(),
                host: Arc::from(config.host),
                #[cfg(feature = "acl")]
                start_thread: config.start_thread,
                scripts: Scripts::new(config.stopwatch, config.start_thread),
                holds: Arc::default(),
                turns: Turns::new(config.stopwatch),
                run_id: config.run_id,
                started,
                timings: Timings::new(commands.all().len(), config.stopwatch),
            },
            commands,
            sweep_shard: AtomicU64::new(0),
        };
        engine.services.obey_options();
        engine
    }

    /// Registers a connection; `None` when `maxclients` are connected.
    ///
    /// The driver then sends [`Engine::REFUSED_MAXCLIENTS`] and closes the connection.
    pub fn connect(&self, peer: Peer, now: Time) -> Option<Session> {
        let Some(client) = self.services.clients.enter(peer, now) else {
            self.services.counters.note_rejected_connection();
            return None;
        };
        Some(Session::new(client, !self.services.users.needs_login()))
    }

    /// Returns whether a client needs no password.
    pub fn is_open(&self) -> bool {
        self.services.users.is_open()
    }

    /// Locks the table for one batch of commands at `moment`.
    #[inline]
    pub fn batch(&self, moment: Moment) -> Batch<'_> {
        Batch {
            engine: self,
            space: self.keyspace.enter(),
            moment,
            needs: BatchNeeds::default(),
            weight: self.services.timings.begin_batch(moment.time),
        }
    }

    /// Restores a lock that an earlier run of the node granted; call this before the first batch.
    /// Of two records for one key, the first counts.
    pub fn restore(&self, lock: &LockRecord<'_>, now: Time) {
        if lock.key.len() > KEY_LEN_MAX || lock.token.len() > VALUE_LEN_MAX {
            return;
        }
        let (db, key) = (lock.db, lock.key);
        let hash = self.keyspace.hash(db, key);
        self.keyspace
            .with_shard(self.keyspace.shard_index(hash), |shard| {
                if !shard.probe(now, db, hash, key).is_live() {
                    shard.restore(hash, lock);
                }
            });
    }

    /// Returns the restart guard.
    #[inline]
    pub const fn guard(&self) -> &Guard {
        &self.services.guard
    }

    /// Stops granting, so that the table no longer changes when it is written to a snapshot.
    pub fn close(&self) {
        self.services.guard.close();
    }

    /// Reclaims expired locks, looking at up to about `budget` slots (64 or more) from where the last
    /// call ended, until the pass over all shards is complete.
    ///
    /// This only frees memory and tells those who want to know: expired locks are invisible even if it
    /// is never called.
    pub fn sweep(&self, now: Time, budget: usize) -> Swept {
        if !self.services.settings.is_sweeping() {
            return Swept {
                finished_pass: true,
                ..Swept::default()
            };
        }
        let mut all = Swept::default();
        while all.visited < budget && !all.finished_pass {
            let shard = usize::try_from(self.sweep_shard.load(Ordering::Relaxed)).unwrap_or(0);
            let swept = self.keyspace.sweep(shard, now, budget - all.visited);
            if self.services.observers.are_there() {
                self.report_expired(shard);
            }
            all.expired += swept.expired;
            all.visited += swept.visited;
            if !swept.finished_pass {
                break;
            }
            let next = (shard + 1) % self.keyspace.shard_count();
            self.sweep_shard.store(next as u64, Ordering::Relaxed);
            all.finished_pass = next == 0;
        }
        all
    }

    /// Reports what a slice of the sweep has reclaimed.
    #[cold]
    fn report_expired(&self, shard: usize) {
        let changes = self.keyspace.with_shard(shard, Shard::take_changes);
        let cause = Cause {
            command: None,
            client: None,
        };
        let services = &self.services;
        let changes = changes.unwrap_or_default();
        services.observers.report(changes, cause, &services.clients);
        services.observers.deliver(&services.clients);
    }

    /// Returns the instant before which [`Engine::sweep`] has nothing to do; `None` when no lock
    /// has a deadline or sweeping is off.
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.services.settings.is_sweeping() {
            return None;
        }
        self.keyspace.earliest_deadline().as_time()
    }

    /// Returns a copy of the options in force.
    pub fn options(&self) -> Options {
        self.services.settings.options()
    }

    /// Returns the limits for a connection's decoder.
    pub fn limits(&self) -> Limits {
        self.services.settings.limits()
    }

    /// Returns until when a connection that was told [`Flow::Paused`] waits: for the end of a pause
    /// or of a script. `None` when its command may be offered again.
    pub fn wait_end(&self, session: &Session, now: Time) -> Option<Time> {
        let pause_end = self.services.pause.end(now);
        pause_end
            .or_else(|| session.script_wait_end(&self.services.holds, now))
            .or_else(|| session.own_wait_end(now))
    }

    /// Closes the connections that the options no longer allow; call this about once a second.
    pub fn enforce_client_limits(&self, now: Time) {
        self.services.clients.enforce_limits(now);
        self.services.timings.relax(now);
        #[cfg(feature = "compat")]
        {
            let is_quarantined = self.services.guard.quarantine_left(now).is_some();
            let (observers, clients) = (&self.services.observers, &self.services.clients);
            observers.tracking.look_after(is_quarantined, clients);
        }
    }

    /// Wakes the next connection of those that were sent a message together with many others; call
    /// this whenever a connection has its turn.
    #[inline]
    pub fn wake_next_client(&self) {
        self.services.clients.wake_next();
    }

    /// Returns whether anybody is told when a lock expires, so that [`Engine::sweep`] is due at once.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.services.observers.are_there()
    }

    /// Wakes the task of every connection, so that it checks what has changed.
    pub fn wake_clients(&self) {
        self.services.clients.wake_all();
    }

    /// Returns figures about the node for people and metrics.
    pub fn stats(&self) -> Stats {
        let mut space = self.keyspace.enter();
        space.lock_all();
        let mut stats = Stats {
            clients: self.services.clients.count(),
            ..Stats::default()
        };
        stats.commands = self.services.counters.total_calls();
        for shard in space.shards() {
            stats.keys += (0..crate::key_hash::DATABASES)
                .map(|db| shard.key_count(u8::try_from(db).unwrap_or(u8::MAX)))
                .sum::<u64>();
            stats.expired += shard.expired_count();
        }
        stats
    }

    /// Notes how long a sync of the data directory took, which ended at `moment`.
    #[cfg(feature = "metrics")]
    pub fn note_sync(&self, took: Duration, moment: Moment) {
        let services = &self.services;
        services
            .timings
            .note_sync(took, moment.wall, &services.settings);
    }

    /// Returns the node's metrics at `moment`, as Prometheus reads them.
    #[cfg(feature = "metrics")]
    pub fn metrics(&self, moment: Moment) -> String {
        let look =
            crate::metrics::Look::take(&self.services, self.commands, &self.keyspace, moment);
        crate::metrics::render(&look)
    }

    /// What a driver sends before it closes a connection beyond `maxclients`.
    pub const REFUSED_MAXCLIENTS: &'static [u8] = b"-ERR max number of clients reached\r\n";
}

/// Figures about a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys held, including expired ones not yet reclaimed.
    pub keys: u64,
    /// Locks reclaimed after their deadline.
    pub expired: u64,
    /// Commands executed since the start.
    pub commands: u64,
    /// Connected clients.
    pub clients: u64,
}

impl Batch<'_> {
    /// Executes one command, whose name is `args[0]`, and appends the reply to `out`. Empty `args`
    /// do nothing.
    ///
    /// A bad command is refused in Redis's order: unknown, wrong arity, protected, unauthenticated,
    /// inside a refused transaction, in quarantine, paused, out of memory, then by the command
    /// itself.
    pub fn execute(&mut self, session: &mut Session, args: &[&[u8]], out: &mut Vec<u8>) -> Flow {
        let Some(&name) = args.first() else {
            return Flow::Continue;
        };
        if session.is_special {
            // What came before the command, such as the last messages of a subscription.
            session.client.take_mail(out, usize::MAX);
        }
        let start = out.len();
        let mode = session.reply_mode;
        let (flow, has_failed) = match self.engine.admit(session, name, args, self.moment.time) {
            Ok((id, spec)) if self.is_watched(spec) => {
                self.run_watched(session, id, spec, args, out)
            }
            Ok((id, spec)) => self.run(session, id, spec, args, out),
            Err(Refusal::Paused) => {
                session.begin_waiting(self.moment.time);
                session.place = None;
                return Flow::Paused;
            }
            Err(Refusal::Queued(id, spec)) => {
                (Flow::Continue, self.queue(session, (id, spec), args, out))
            }
            Err(refusal) => {
                self.engine
                    .refuse(&refusal, args, &mut Encoder::new(out, session.protocol));
                queueing::note_refused(session, name, out, start);
                session.end_caching("");
                session.drop_script();
                (Flow::Continue, true)
            }
        };
        if flow == Flow::Paused {
            return flow;
        }
        if has_failed {
            self.engine.services.counters.note_error(&out[start..]);
        }
        if mode != ReplyMode::On || session.reply_mode != ReplyMode::On {
            self.engine.drop_unwanted(mode, session, name, start, out);
        }
        if session.is_special {
            // Messages that the client has sent itself follow its reply.
            session.client.take_mail(out, usize::MAX);
        }
        flow
    }

    /// Returns whether [`Batch::look_ahead`] is worth what it costs.
    #[inline]
    pub fn is_worth_looking_ahead(&self) -> bool {
        self.space.large_shard().is_some()
    }

    /// Reads the memory that commands on these keys, up to
    /// [`LOOK_AHEAD_MAX`](crate::LOOK_AHEAD_MAX), will need, so that they do not wait for it one after
    /// the other. Changes nothing, and may be left out.
    pub fn look_ahead(&self, session: &Session, keys: &[&[u8]]) {
        if let Some(shard) = self.space.large_shard() {
            shard.look_ahead(session.db, keys);
        }
    }

    /// Ends the batch and returns what must be durable before its replies may be sent.
    #[inline]
    pub fn finish(self, session: &Session, commands: u64) -> Need {
        session.client.note(self.moment.time, commands);
        self.needs.need
    }

    /// Runs an admitted command, and returns its flow and whether its reply is an error.
    ///
    /// Inlined, which saves a thirtieth of a short command; [`Batch::run_apart`] is for the others.
    #[inline(always)]
    fn run(
        &mut self,
        session: &mut Session,
        id: CommandId,
        spec: &'static Spec,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> (Flow, bool) {
        let start = out.len();
        let mut reply = Encoder::new(out, session.protocol);
        let key_hash = lock_keys(&mut self.space, session.db, spec.keys, args);
        let (mut flow, mut has_failed) = (Flow::Continue, true);
        if spec.flags.has(Flags::DENYOOM) && self.engine.services.is_out_of_memory(&self.space) {
            reply.error(refusal::OOM);
            self.engine.services.counters.note_rejected(id);
        } else {
            session.client.note_command(id);
            let mut context = Context {
                services: &self.engine.services,
                commands: &self.engine.commands,
                session,
                space: &mut self.space,
                moment: self.moment,
                key_hash,
                flow,
                journal: None,
                needs: &mut self.needs,
            };
            (spec.call.run)(&mut context, args, &mut reply);
            flow = context.flow;
            if flow == Flow::Paused {
                let observers = &self.engine.services.observers;
                if observers.are_there() {
                    observers.deliver(&self.engine.services.clients);
                }
                self.space.unlock();
                return (flow, false);
            }
            if self.engine.services.guard.has_waiting_replies() {
                context.end(spec.keys, spec.flags);
            }
            if self.engine.services.observers.are_there() {
                context.show(spec, args);
                context.note_reads(spec, args);
                context.report_changes(spec.name);
                #[cfg(feature = "compat")]
                context.serve_waiters();
                context
                    .services
                    .observers
                    .deliver(&context.services.clients);
                context.session.end_caching(spec.name);
            }
            has_failed = out.get(start) == Some(&b'-');
            self.engine.services.counters.note_call(id, has_failed);
        }
        self.space.unlock();
        (flow, has_failed)
    }
}

#[inline]
fn lock_keys(space: &mut Space<'_>, db: u8, keys: Keys, args: &[&[u8]]) -> Option<KeyHash> {
    match keys {
        Keys::None | Keys::Own => {}
        Keys::One => return args.get(1).map(|key| space.lock_one(db, key)),
        Keys::All => space.lock_all(),
        _ => space.lock_many(db, keys.of(args)),
    }
    None
}
