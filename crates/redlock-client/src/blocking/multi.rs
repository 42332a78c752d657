//! Several locks for a blocking caller, all or none.

use std::sync::Arc;
use std::time::Duration;

use super::{Client, mirror};
use crate::error::Error;
use crate::{FencingToken, Released, RenewPolicy, RetryPolicy};

mirror::request! {
    /// A request for several locks: the blocking form of
    /// [`MultiLockRequest`](crate::MultiLockRequest).
    ///
    /// Options count for each lock, a wait for all of them together.
    MultiLockRequest gives MultiGuard
}

mirror::guard! {
    /// Several held locks. Dropping it releases them all in the background.
    #[must_use = "a guard that is dropped releases its locks at once"]
    MultiGuard
}

impl MultiGuard {
    /// The keys, sorted, without the client's prefix.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.inner.guards().iter().map(crate::Guard::key)
    }

    /// The fencing tokens of the locks, in the order of their keys; see the async
    /// [`fencing`](crate::Guard::fencing).
    pub fn fencing(&self) -> impl ExactSizeIterator<Item = Option<FencingToken>> {
        self.inner.guards().iter().map(crate::Guard::fencing)
    }

    /// Releases all of them at the same time. The outcomes are in the order of the keys.
    pub fn release(self) -> Vec<Released> {
        let count = self.inner.guards().len();
        // Every call dropped its clone before it returned, so this is the last. Otherwise the releases
        // would happen in the background.
        let guard = Arc::into_inner(self.inner);
        let released = guard.map(|guard| self.client.wait(guard.release()));
        released
            .and_then(Result::ok)
            .unwrap_or_else(|| vec![self.client.nothing_sent(); count])
    }
}
