//! The options in force, and what the hot path reads of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locknode_resp::Limits;
use parking_lot::RwLock;

use crate::options::Options;

/// The options in force.
#[derive(Debug)]
pub(crate) struct Settings {
    options: RwLock<Options>,
    /// Copies of what the hot path reads.
    maxmemory: AtomicU64,
    output_max: AtomicU64,
    mail_max: AtomicU64,
    bulk_len_max: AtomicU64,
    request_len_max: AtomicU64,
    is_sweeping_off: AtomicBool,
}

impl Settings {
    pub(crate) fn new(options: Options) -> Self {
        let settings = Self {
            options: RwLock::new(Options::default()),
            maxmemory: AtomicU64::new(0),
            output_max: AtomicU64::new(0),
            mail_max: AtomicU64::new(0),
            bulk_len_max: AtomicU64::new(0),
            request_len_max: AtomicU64::new(0),
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
            .store(options.client_output_buffer_limit.normal, Ordering::Relaxed);
        self.mail_max.store(
            options.client_output_buffer_limit.pubsub.hard,
            Ordering::Relaxed,
        );
        result
    }

    /// Returns `maxmemory` in bytes; 0 for no limit.
    #[inline]
    pub(crate) fn maxmemory(&self) -> u64 {
        self.maxmemory.load(Ordering::Relaxed)
    }

    /// Returns the longest reply to one command in bytes; `usize::MAX` for no limit.
    pub(crate) fn output_max(&self) -> usize {
        or_no_limit(self.output_max.load(Ordering::Relaxed))
    }

    /// Returns how much may wait for a connection that it did not ask for just now; `usize::MAX` for
    /// no limit.
    #[cfg(feature = "compat")]
    pub(crate) fn mail_max(&self) -> usize {
        or_no_limit(self.mail_max.load(Ordering::Relaxed))
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

/// A limit in bytes; 0 means that there is none.
fn or_no_limit(limit: u64) -> usize {
    match limit {
        0 => usize::MAX,
        max => usize::try_from(max).unwrap_or(usize::MAX),
    }
}
