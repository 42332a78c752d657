//! The state of one lock, shared by its guard and the driver.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use redlock_proto::{LockTerms, OpId, Time};

use crate::error::Error;

/// One lock as its holder sees it. The driver writes it, the guard reads it.
#[derive(Debug)]
pub(crate) struct LockState {
    pub(crate) terms: Arc<LockTerms>,
    /// The length of the client's prefix in the key.
    prefix_len: usize,
    /// Whether another process acquired it: dropping the request then does not release it.
    pub(crate) is_adopted: bool,
    /// When the caller made the request; zero without an observer.
    pub(crate) started: Time,
    /// The driver's number, and its id of the lock.
    op: Mutex<Option<(u64, OpId)>>,
    /// When the lock stops being held, in nanoseconds; zero after its end.
    valid_until: AtomicU64,
    error: OnceLock<Error>,
    has_ended: AtomicBool,
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
            has_ended: AtomicBool::new(false),
            cancellation: OnceLock::new(),
        }
    }

    /// The key without the client's prefix.
    pub(crate) fn key(&self) -> &[u8] {
        self.terms.key.get(self.prefix_len..).unwrap_or_default()
    }

    /// The lock's id, if it belongs to this driver.
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

    /// Ends the lock, lost or released, and notifies everyone who watches it. Only the first reason
    /// counts.
    pub(crate) fn end(&self, error: Error) {
        let is_first = self.error.set(error).is_ok();
        self.valid_until.store(0, Ordering::Release);
        if is_first {
            self.has_ended.store(true, Ordering::SeqCst);
        }
        if let (true, Some(cancellation)) = (is_first, self.cancellation.get()) {
            cancellation.cancel();
        }
    }

    /// Why the lock has ended, if it has.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.get()
    }

    /// Fires when the lock ends.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        let cancellation = self.cancellation.get_or_init(CancellationToken::new);
        // `end` may have run just before the token existed.
        if self.has_ended.load(Ordering::SeqCst) {
            cancellation.cancel();
        }
        cancellation
    }
}
