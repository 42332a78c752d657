//! What a guard and the driver both know of one lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use redlock_proto::{LockTerms, OpId, Time};

use crate::error::Error;

/// One lock as its holder sees it. The driver writes, the guard reads.
#[derive(Debug)]
pub(crate) struct LockState {
    /// What was asked for.
    pub(crate) terms: Arc<LockTerms>,
    /// How much of the key is the client's prefix.
    prefix_len: usize,
    /// Whether it was acquired elsewhere: nobody's interest in it is no reason to release it.
    pub(crate) is_adopted: bool,
    /// When the caller asked; known only if an observer wants to know.
    pub(crate) started: Time,
    /// The driver's name for the lock, and which driver it is.
    op: Mutex<Option<(u64, OpId)>>,
    /// The moment from which on the lock is not held, in nanoseconds; zero when it is over.
    valid_until: AtomicU64,
    error: OnceLock<Error>,
    /// Whether it is over.
    is_over: AtomicBool,
    cancellation: OnceLock<CancellationToken>,
}

impl LockState {
    pub(crate) fn new(
        terms: Arc<LockTerms>,
        prefix_len: usize,
        is_adopted: bool,
        started: Time,
    ) -> Self {
        Self {
            terms,
            prefix_len,
            is_adopted,
            started,
            op: Mutex::new(None),
            valid_until: AtomicU64::new(0),
            error: OnceLock::new(),
            is_over: AtomicBool::new(false),
            cancellation: OnceLock::new(),
        }
    }

    /// The key without the client's prefix.
    pub(crate) fn key(&self) -> &[u8] {
        self.terms.key.get(self.prefix_len..).unwrap_or_default()
    }

    /// The lock's name at this driver, if it is this driver's.
    pub(crate) fn op(&self, driver: u64) -> Option<OpId> {
        (*self.op.lock())
            .filter(|(owner, _)| *owner == driver)
            .map(|(_, op)| op)
    }

    pub(crate) fn set_op(&self, driver: u64, op: OpId) {
        *self.op.lock() = Some((driver, op));
    }

    pub(crate) fn valid_until(&self) -> Time {
        Time::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    pub(crate) fn set_valid_until(&self, valid_until: Time) {
        if self.error.get().is_none() {
            self.valid_until
                .store(valid_until.as_nanos(), Ordering::Release);
        }
    }

    /// The lock is over, lost or let go: nobody believes in it any more, and all who watch it are told. Only the first
    /// reason counts.
    pub(crate) fn end(&self, error: Error) {
        let is_first = self.error.set(error).is_ok();
        self.valid_until.store(0, Ordering::Release);
        if is_first {
            self.is_over.store(true, Ordering::SeqCst);
        }
        if let (true, Some(cancellation)) = (is_first, self.cancellation.get()) {
            cancellation.cancel();
        }
    }

    /// Why the lock is over, if it is.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.get()
    }

    /// Cancelled when the lock is over.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        let cancellation = self.cancellation.get_or_init(CancellationToken::new);
        // The lock may have ended between the look of `end` and the token's making.
        if self.is_over.load(Ordering::SeqCst) {
            cancellation.cancel();
        }
        cancellation
    }
}
