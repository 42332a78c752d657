//! Several locks at once for a blocking caller, all or none.

use std::sync::Arc;
use std::time::Duration;

use super::{Client, mirror};
use crate::error::Error;
use crate::{FencingToken, Released, RenewPolicy, RetryPolicy};

mirror::request! {
    /// Several locks that are wanted together.
    ///
    /// It is the blocking form of [`MultiLockRequest`](crate::MultiLockRequest), with the same
    /// options: each counts for each lock, a wait for all of them together.
    MultiLockRequest gives MultiGuard
}

mirror::guard! {
    /// Several locks that are held together. Dropping it releases them all in the background.
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

    /// Releases all of them at the same time; the outcomes are in the order of the keys.
    pub fn release(self) -> Vec<Released> {
        let count = self.inner.guards().len();
        // Every call gave its share back before it returned, so this one is the last; were it not,
        // the releases would be background ones.
        let guard = Arc::into_inner(self.inner);
        let released = guard.map(|guard| self.client.wait(guard.release()));
        released
            .and_then(Result::ok)
            .unwrap_or_else(|| vec![self.client.nobody_told(); count])
    }
}
