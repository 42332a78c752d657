//! A lock held by a blocking caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Client, mirror};
use crate::error::Error;
use crate::{Cancellation, FencingToken, Released, Token};

mirror::guard! {
    /// A lock that is held. Dropping it releases the lock in the background and never waits.
    ///
    /// It is the blocking form of [`Guard`](crate::Guard). It keeps the client's thread alive.
    #[must_use = "the lock is released when its guard is dropped"]
    Guard
}

impl Guard {
    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// What proves that the lock is ours. It opens the lock: not for logs.
    pub fn token(&self) -> &Token {
        self.inner.token()
    }

    /// As the async [`fencing`](crate::Guard::fencing).
    pub fn fencing(&self) -> Option<FencingToken> {
        self.inner.fencing()
    }

    /// How many attempts it took.
    pub fn tries(&self) -> u32 {
        self.inner.tries()
    }

    /// When the validity ends if the lock is not extended, for a timer. Decide by
    /// [`is_valid`](Self::is_valid).
    pub fn valid_until(&self) -> Instant {
        self.inner.valid_until()
    }

    /// Is cancelled at the moment at which [`lost`](Self::lost) returns.
    pub fn cancellation(&self) -> Cancellation {
        self.inner.cancellation()
    }

    /// Releases the lock on every node. Returns once a majority of them is known not to hold it any
    /// more; the others are told in the background.
    pub fn release(self) -> Released {
        let guard = self.inner;
        let released = self
            .client
            .wait(async move { guard.release_by_ref().await });
        released.unwrap_or_else(|_| self.client.nobody_told())
    }

    /// Lets the lock live until its TTL ends, without renewal and without release; whoever has the
    /// token can [`adopt`](super::Redlock::adopt) or release it.
    pub fn leak(self) -> Token {
        let token = *self.inner.token();
        // Every call gave its share back before it returned, so this one is the last.
        if let Some(guard) = Arc::into_inner(self.inner) {
            guard.leak();
        }
        token
    }
}
