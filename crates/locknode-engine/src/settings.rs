//! The options of a node that its engine obeys, under Redis' names where the option is Redis's.
//!
//! What values an option can have is said here and nowhere else: flags, files and CONFIG SET ask.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locknode_resp::Limits;
use parking_lot::RwLock;

use crate::command::output_limit;

/// The options as given at the start and as CONFIG SET changes them. Sizes are bytes, times are seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// `requirepass`: the password of user `default`; empty for none.
    pub requirepass: String,
    /// `maxclients`: connections at most.
    pub maxclients: u64,
    /// `maxmemory`: bytes of locks at most; 0 for no limit. New locks are refused beyond it, none is evicted.
    pub maxmemory: u64,
    /// `timeout`: idle seconds after which a connection is closed; 0 for never.
    pub timeout: u64,
    /// `tcp-keepalive`: seconds of silence before the kernel probes a peer; 0 for never.
    pub tcp_keepalive: u64,
    /// `proto-max-bulk-len`: longest argument in bytes.
    pub proto_max_bulk_len: u64,
    /// `client-query-buffer-limit`: longest request in bytes.
    pub client_query_buffer_limit: u64,
    /// `client-output-buffer-limit` (class normal, hard): longest reply to one command in bytes; 0 for no limit.
    pub client_output_buffer_limit: u64,
    /// `protected-mode`: without a password, serve loopback only.
    pub protected_mode: bool,
    /// `enable-debug-command`: serve DEBUG.
    pub enable_debug_command: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            requirepass: String::new(),
            maxclients: 10_000,
            maxmemory: 0,
            timeout: 0,
            tcp_keepalive: 300,
            // Redis allows 512 MB. A lock's token is tens of bytes; 1 MiB is the least that Redis lets one set.
            proto_max_bulk_len: 1 << 20,
            // Redis allows 1 GB. 64 MiB is a script on a million keys.
            client_query_buffer_limit: 64 << 20,
            // Redis sets none for normal clients, and one MGET can then ask for any amount of memory.
            client_output_buffer_limit: 64 << 20,
            protected_mode: true,
            enable_debug_command: false,
        }
    }
}

impl Options {
    /// `maxclients`, as in Redis; none at all would lock everybody out.
    pub const MAXCLIENTS: RangeInclusive<u64> = 1..=u32::MAX as u64;
    /// `maxmemory`.
    pub const MAXMEMORY: RangeInclusive<u64> = 0..=u64::MAX;
    /// `timeout` and `tcp-keepalive`, as in Redis.
    pub const SECONDS: RangeInclusive<u64> = 0..=i32::MAX as u64;
    /// `proto-max-bulk-len` and `client-query-buffer-limit`, as in Redis: less than 1 MiB would refuse ordinary requests.
    pub const REQUEST_LEN: RangeInclusive<u64> = 1 << 20..=i64::MAX as u64;

    /// Reads `client-output-buffer-limit`: groups of `class hard soft seconds`. Only the hard limit of class `normal`
    /// means something here: there are no replicas and no subscribers, and replies are not kept long enough for a soft
    /// limit. `None` when that class is not among them.
    ///
    /// # Errors
    ///
    /// Says what is wrong, in Redis' words.
    pub fn parse_output_limit(text: &str) -> Result<Option<u64>, &'static str> {
        output_limit::parse(text.as_bytes())
    }
}

/// The options in force.
#[derive(Debug)]
pub(crate) struct Settings {
    options: RwLock<Options>,
    /// Copies of what the hot path reads.
    maxmemory: AtomicU64,
    output_max: AtomicU64,
    bulk_len_max: AtomicU64,
    request_len_max: AtomicU64,
    has_password: AtomicBool,
    is_sweeping_off: AtomicBool,
}

impl Settings {
    pub(crate) fn new(options: Options) -> Self {
        let settings = Self {
            options: RwLock::new(Options::default()),
            maxmemory: AtomicU64::new(0),
            output_max: AtomicU64::new(0),
            bulk_len_max: AtomicU64::new(0),
            request_len_max: AtomicU64::new(0),
            has_password: AtomicBool::new(false),
            is_sweeping_off: AtomicBool::new(false),
        };
        settings.change(|current| *current = options);
        settings
    }

    /// A copy of the options in force.
    pub(crate) fn options(&self) -> Options {
        self.options.read().clone()
    }

    /// Looks at the options in force.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&Options) -> R) -> R {
        look(&self.options.read())
    }

    /// Changes options.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Options) -> R) -> R {
        let mut options = self.options.write();
        let result = change(&mut options);
        self.maxmemory.store(options.maxmemory, Ordering::Relaxed);
        self.bulk_len_max
            .store(options.proto_max_bulk_len, Ordering::Relaxed);
        self.request_len_max
            .store(options.client_query_buffer_limit, Ordering::Relaxed);
        self.output_max
            .store(options.client_output_buffer_limit, Ordering::Relaxed);
        self.has_password
            .store(!options.requirepass.is_empty(), Ordering::Relaxed);
        result
    }

    /// `maxmemory` in bytes; 0 for no limit.
    #[inline]
    pub(crate) fn maxmemory(&self) -> u64 {
        self.maxmemory.load(Ordering::Relaxed)
    }

    /// The longest reply to one command in bytes; `usize::MAX` for no limit.
    pub(crate) fn output_max(&self) -> usize {
        match self.output_max.load(Ordering::Relaxed) {
            0 => usize::MAX,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        }
    }

    /// Whether clients must authenticate.
    pub(crate) fn has_password(&self) -> bool {
        self.has_password.load(Ordering::Relaxed)
    }

    /// Whether ended locks are reclaimed in the background; DEBUG SET-ACTIVE-EXPIRE 0 turns it off.
    pub(crate) fn is_sweeping(&self) -> bool {
        !self.is_sweeping_off.load(Ordering::Relaxed)
    }

    /// Turns the reclaiming of ended locks in the background on or off.
    pub(crate) fn set_sweeping(&self, is_on: bool) {
        self.is_sweeping_off.store(!is_on, Ordering::Relaxed);
    }

    /// What a decoder allows.
    #[inline]
    pub(crate) fn limits(&self) -> Limits {
        let load =
            |word: &AtomicU64| usize::try_from(word.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        Limits {
            bulk_len_max: load(&self.bulk_len_max),
            request_len_max: load(&self.request_len_max),
            ..Limits::default()
        }
    }
}
