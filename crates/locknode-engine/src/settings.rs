//! The options of a node that its engine obeys, under Redis's names where Redis has them.
//!
//! The valid values of an option are defined only here; flags, files and CONFIG SET use these
//! definitions.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locknode_resp::Limits;
use parking_lot::RwLock;

use crate::command::output_limit;

/// The options as set at the start or by CONFIG SET. Sizes are in bytes, times in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// `requirepass`: the password of the user `default`; empty for none.
    pub requirepass: String,
    /// `maxclients`: the maximum number of connections.
    pub maxclients: u64,
    /// `maxmemory`: the maximum bytes of locks; 0 for no limit. Beyond it new locks are refused;
    /// none is evicted.
    pub maxmemory: u64,
    /// `timeout`: the idle seconds after which a connection is closed; 0 for never.
    pub timeout: u64,
    /// `tcp-keepalive`: the seconds of silence before the kernel probes a peer; 0 for never.
    pub tcp_keepalive: u64,
    /// `proto-max-bulk-len`: the longest argument in bytes.
    pub proto_max_bulk_len: u64,
    /// `client-query-buffer-limit`: the longest request in bytes.
    pub client_query_buffer_limit: u64,
    /// `client-output-buffer-limit` (class normal, hard): the longest reply to one command in
    /// bytes; 0 for no limit.
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
            // Redis allows 512 MB. A lock's token takes tens of bytes; 1 MiB is the lowest value
            // that Redis accepts.
            proto_max_bulk_len: 1 << 20,
            // Redis allows 1 GB. 64 MiB fits a script on a million keys.
            client_query_buffer_limit: 64 << 20,
            // Redis has no limit for normal clients, so one MGET can request any amount of memory.
            client_output_buffer_limit: 64 << 20,
            protected_mode: true,
            enable_debug_command: false,
        }
    }
}

impl Options {
    /// `maxclients`, as in Redis; zero would lock everybody out.
    pub const MAXCLIENTS: RangeInclusive<u64> = 1..=u32::MAX as u64;
    /// `maxmemory`.
    pub const MAXMEMORY: RangeInclusive<u64> = 0..=u64::MAX;
    /// `timeout` and `tcp-keepalive`, as in Redis.
    pub const SECONDS: RangeInclusive<u64> = 0..=i32::MAX as u64;
    /// `proto-max-bulk-len` and `client-query-buffer-limit`, as in Redis: less than 1 MiB would
    /// refuse ordinary requests.
    pub const REQUEST_LEN: RangeInclusive<u64> = 1 << 20..=i64::MAX as u64;

    /// Parses `client-output-buffer-limit`: groups of `class hard soft seconds`. Returns `None`
    /// when class `normal` is not among them.
    ///
    /// Only the hard limit of class `normal` matters here: there are no replicas or subscribers,
    /// and replies are not kept long enough for a soft limit.
    ///
    /// # Errors
    ///
    /// Returns what is wrong, in Redis's words.
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

    /// Returns a copy of the options in force.
    pub(crate) fn options(&self) -> Options {
        self.options.read().clone()
    }

    /// Reads the options in force.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&Options) -> R) -> R {
        look(&self.options.read())
    }

    /// Changes the options.
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

    /// Returns `maxmemory` in bytes; 0 for no limit.
    #[inline]
    pub(crate) fn maxmemory(&self) -> u64 {
        self.maxmemory.load(Ordering::Relaxed)
    }

    /// Returns the longest reply to one command in bytes; `usize::MAX` for no limit.
    pub(crate) fn output_max(&self) -> usize {
        match self.output_max.load(Ordering::Relaxed) {
            0 => usize::MAX,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        }
    }

    /// Returns whether clients must authenticate.
    pub(crate) fn has_password(&self) -> bool {
        self.has_password.load(Ordering::Relaxed)
    }

    /// Returns whether expired locks are reclaimed in the background; DEBUG SET-ACTIVE-EXPIRE 0
    /// turns this off.
    pub(crate) fn is_sweeping(&self) -> bool {
        !self.is_sweeping_off.load(Ordering::Relaxed)
    }

    /// Turns background reclaiming of expired locks on or off.
    pub(crate) fn set_sweeping(&self, is_on: bool) {
        self.is_sweeping_off.store(!is_on, Ordering::Relaxed);
    }

    /// Returns the limits for a decoder.
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
