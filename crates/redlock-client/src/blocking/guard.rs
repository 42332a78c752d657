//! A lock held by a blocking caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Client, mirror};
use crate::error::Error;
use crate::{Cancellation, FencingToken, Released, Token};

mirror::guard! {
    /// A held lock. Dropping it releases the lock in the background and never blocks.
    ///
    /// It is the blocking form of [`Guard`](crate::Guard). It keeps the client's thread alive.
    #[must_use = "the lock is released when its guard is dropped"]
    Guard
}

mirror::single_lock!(Guard);

impl Guard {
    /// The number of attempts that it took.
    pub fn tries(&self) -> u32 {
        self.inner.tries()
    }

    /// When the validity ends without an extension. For timers only: decide by
    /// [`is_valid`](Self::is_valid).
    pub fn valid_until(&self) -> Instant {
        self.inner.valid_until()
    }

    /// Fires when [`lost`](Self::lost) returns.
    pub fn cancellation(&self) -> Cancellation {
        self.inner.cancellation()
    }

    /// Releases the lock on every node. Returns once a majority is known not to hold it; the rest
    /// happens in the background.
    pub fn release(self) -> Released {
        let guard = self.inner;
        let released = self
            .client
            .wait(async move { guard.release_by_ref().await });
        released.unwrap_or_else(|_| self.client.nothing_sent())
    }

    /// Leaves the lock to its TTL, without renewal or release. Any process with the token can
    /// [`adopt`](super::Redlock::adopt) or release it.
    pub fn leak(self) -> Token {
        let token = *self.inner.token();
        // Every call dropped its clone before it returned, so this is the last.
        if let Some(guard) = Arc::into_inner(self.inner) {
            guard.leak();
        }
        token
    }
}
