//! How a node is configured, and opened on a data directory.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locknode_engine::durable::{Durability, Machine, Start, Store, StoreSettings};
use locknode_engine::{Engine, EngineConfig, GuardConfig, GuardMode, Options};
use tokio::sync::{Notify, watch};

use crate::clock::{Clock, SystemClock, stopwatch};
use crate::directory::Directory;
use crate::disk_thread::{DiskStatus, DiskThread};
use crate::machine_identity::machine_identity;
use crate::node::Node;
use crate::notes::Notes;
use crate::open_error::OpenNodeError;
use crate::process::{Process, Traffic};
use crate::shared::Shared;
#[cfg(feature = "acl")]
use crate::users_file::UsersFile;

/// Builds a [`Node`].
#[derive(Debug)]
pub struct NodeBuilder {
    config: EngineConfig,
    settings: StoreSettings,
    clock: Arc<dyn Clock>,
    drain: Duration,
    config_file: String,
    restart_guard: bool,
    machine: Option<Machine>,
    #[cfg(feature = "hand-over")]
    legacy: crate::hand_over::Legacy,
    #[cfg(feature = "acl")]
    users_file: PathBuf,
}

impl Node {
    /// Creates a builder with the defaults of [`Options`], one shard and the system's clocks.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::new()
    }
}

impl NodeBuilder {
    /// The upper limit of [`max_ttl`](Self::max_ttl).
    ///
    /// Nobody wants a node to refuse locks for longer than a day, and longer locks are on the log
    /// anyway.
    pub const MAX_TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    fn new() -> Self {
        let (high, low): (u32, u128) = rand::random();
        let run_id = format!("{high:08x}{low:032x}");
        let mut config = EngineConfig::new(rand::random(), run_id);
        config.stopwatch = Some(stopwatch);
        config.start_thread = Some(|work| {
            let thread = std::thread::Builder::new().name("locknode-script".to_owned());
            thread.spawn(work).is_ok()
        });
        Self {
            config,
            settings: StoreSettings {
                max_ttl: MAX_TTL,
                durability: Durability::Long,
                is_first_start: false,
                needs_state: false,
            },
            clock: Arc::new(SystemClock::start()),
            drain: DRAIN,
            config_file: String::new(),
            restart_guard: true,
            machine: None,
            #[cfg(feature = "hand-over")]
            legacy: crate::hand_over::Legacy::default(),
            #[cfg(feature = "acl")]
            users_file: PathBuf::new(),
        }
    }

    /// Sets the options, under their Redis names.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.config.options = options;
        self
    }

    /// Sets the number of shards of the lock table, 1 to 64, rounded up to a power of two.
    ///
    /// Use 1 (the default) when one thread serves the node, 64 when several do.
    #[must_use]
    pub const fn shards(mut self, shards: usize) -> Self {
        self.config.shards = shards;
        self
    }

    /// Sets the source of the node's time; the system's clocks by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how long [`Node::serve`] waits at the end for clients to take their replies; 5 seconds
    /// by default.
    #[must_use]
    pub const fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Sets the configuration file that INFO reports.
    #[must_use]
    pub fn config_file(mut self, path: impl Into<String>) -> Self {
        self.config_file = path.into();
        self
    }

    /// Begins with the users of a file, which ACL LOAD reads again and ACL SAVE writes.
    ///
    /// Without one, everybody is the user `default` until ACL SETUSER makes others, and the option
    /// `aclfile` is ignored.
    #[cfg(feature = "acl")]
    #[must_use]
    pub fn users_file(mut self, file: UsersFile) -> Self {
        self.users_file = file.path;
        self.config.users = Some(file.list);
        self
    }

    /// Turns the restart guard on or off; on by default.
    ///
    /// Without it the node behaves like plain Redis: no quarantine, no limit on TTLs, and a restart
    /// forgets all locks `[G15]`.
    #[must_use]
    pub const fn restart_guard(mut self, is_on: bool) -> Self {
        self.restart_guard = is_on;
        self
    }

    /// Sets the longest TTL that the restart guard covers, 1 ms to 24 hours; 60 seconds by default.
    ///
    /// Locks with a longer TTL or none are written to disk, or refused without a data directory. A
    /// node that knows nothing of its past refuses locks for this long after its start `[G3]`. So
    /// lowering it shortens the wait for locks that an earlier run granted, unless there is a data
    /// directory, which remembers the earlier value `[G5]`.
    #[must_use]
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.settings.max_ttl = max_ttl.clamp(Duration::from_millis(1), Self::MAX_TTL_MAX);
        self
    }

    /// States that no node in this place of the clients' list has ever granted a lock, so that the
    /// first start need not wait `[G4]`.
    ///
    /// This is true of a test's node whose clients have known no earlier one. It is not true of a
    /// node that replaces one that is gone.
    #[must_use]
    pub const fn first_start(mut self, is_first_start: bool) -> Self {
        self.settings.is_first_start = is_first_start;
        self
    }

    /// Makes [`open`](Self::open) refuse a data directory without a state, unless this is the
    /// [first start](Self::first_start); off by default.
    ///
    /// When off, a node whose disk was lost waits until every lock with a TTL up to
    /// [`max_ttl`](Self::max_ttl) has expired; locks with a longer TTL or none are lost with the
    /// disk `[G3]`. When on, no lock is lost, but the operator must know when every long lock has
    /// expired before starting the node again.
    #[must_use]
    pub const fn require_state(mut self, needs_state: bool) -> Self {
        self.settings.needs_state = needs_state;
        self
    }

    /// Sets which locks are written to disk before they are granted, if there is a data directory.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.settings.durability = durability;
        self
    }

    /// Sets the machine that the node's clock belongs to; the real one by default.
    #[must_use]
    pub const fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Begins with what another process's node has left: see [`Node::hand_over`](Node). A node with a data directory
    /// finds the locks there.
    #[cfg(feature = "hand-over")]
    #[must_use]
    pub fn take_over(mut self, legacy: crate::hand_over::Legacy) -> Self {
        if !legacy.run_id.is_empty() {
            self.config.run_id.clone_from(&legacy.run_id);
        }
        self.legacy = legacy;
        self
    }

    /// Builds the node without a data directory: a restart forgets its locks.
    ///
    /// It starts with a quarantine unless its restart guard is off or this is its [first
    /// start](NodeBuilder::first_start).
    #[cfg_attr(
        not(feature = "hand-over"),
        expect(unused_mut, reason = "nothing is left to it")
    )]
    pub fn build(mut self) -> Node {
        let reading = self.clock.reading();
        let settings = self.settings;
        let (mode, mut start) = if self.restart_guard {
            let is_first = settings.is_first_start;
            let start = Start::without_directory(settings.max_ttl, is_first, reading);
            (GuardMode::Memory, start)
        } else {
            (GuardMode::Off, Start::without_guard(reading))
        };
        #[cfg(feature = "hand-over")]
        {
            let files = std::mem::take(&mut self.legacy.files);
            let max_ttl = settings.max_ttl;
            start = crate::hand_over::read(files, max_ttl, &*self.clock).unwrap_or(start);
        }
        let shared = self.assemble(mode, &start, PathBuf::new());
        for lock in start.locks() {
            shared.engine.restore(&lock, reading.moment.time);
        }
        Node {
            shared: Arc::new(shared),
        }
    }

    /// Opens the node on a data directory, whose files decide how long it refuses locks.
    ///
    /// The directory is created if missing, and belongs to this node alone until the node is
    /// [closed](Node::close) or dropped.
    ///
    /// A directory without a state is a disk that was lost: the node waits until every lock with a
    /// TTL up to [`max_ttl`](Self::max_ttl) has expired; locks with a longer TTL or none are lost
    /// with the disk, unless the node [requires](Self::require_state) a state.
    ///
    /// A thread of the node's own writes to the directory.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be used or is in use, when its files are damaged or newer
    /// than this version, or when they contradict `first_start`. Nothing is overwritten then, and
    /// the error names the file and says what to do.
    pub fn open(self, directory: impl Into<PathBuf>) -> Result<Node, OpenNodeError> {
        let directory = Directory::open(directory)?;
        let path = directory.path().to_owned();
        let machine = self.machine.unwrap_or_else(machine_identity);
        let reading = self.clock.reading();
        let entropy = rand::random();
        let (store, start) = Store::open(directory, &self.settings, machine, reading, entropy)?;
        let mode = GuardMode::Store(self.settings.durability);
        let mut shared = self.assemble(mode, &start, path);
        for lock in start.locks() {
            shared.engine.restore(&lock, reading.moment.time);
        }
        let disk_thread = DiskThread::start(
            store,
            Arc::clone(&shared.engine),
            Arc::clone(&shared.clock),
            Arc::clone(&shared.disk_status),
        );
        let disk_thread = disk_thread.map_err(OpenNodeError::thread)?;
        shared.disk = Some(disk_thread.thread());
        shared.disk_thread = Mutex::new(Some(disk_thread));
        Ok(Node {
            shared: Arc::new(shared),
        })
    }

    fn assemble(mut self, mode: GuardMode, start: &Start, directory: PathBuf) -> Shared {
        let traffic = Arc::<Traffic>::default();
        let disk_status = Arc::<DiskStatus>::default();
        let notes = Arc::<Notes>::default();
        self.config.guard = GuardConfig::new(mode, self.settings.max_ttl, start);
        #[cfg(feature = "acl")]
        {
            self.config.options.aclfile = self.users_file.display().to_string();
        }
        self.config.host = Box::new(Process {
            traffic: Arc::clone(&traffic),
            disk_status: Arc::clone(&disk_status),
            notes: Arc::clone(&notes),
            config_file: self.config_file,
            directory,
            #[cfg(feature = "acl")]
            users_file: self.users_file,
        });
        let engine = Engine::new(self.config, self.clock.now());
        #[cfg(feature = "hand-over")]
        for script in &self.legacy.scripts {
            engine.load_script(script);
        }
        Shared {
            engine: Arc::new(engine),
            clock: self.clock,
            traffic,
            disk_thread: Mutex::new(None),
            disk: None,
            disk_status,
            notes,
            leaves_no_snapshot: AtomicBool::new(false),
            sweep_turn: tokio::sync::Mutex::new(()),
            sweeper_waits_for: AtomicU8::new(0),
            commands_came: Notify::new(),
            stopped: watch::Sender::new(false),
            drain: self.drain,
            #[cfg(feature = "hand-over")]
            carried: crate::hand_over::Carried::default(),
        }
    }
}

/// A node that knows nothing of its past refuses locks for this long. Most locks are held for
/// seconds, and rolling restarts allow for a minute.
const MAX_TTL: Duration = Duration::from_secs(60);

/// How long clients have at the end to take their replies.
const DRAIN: Duration = Duration::from_secs(5);
