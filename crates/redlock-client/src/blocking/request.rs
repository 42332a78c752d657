//! A blocking request for a lock.

use std::sync::Arc;
use std::time::Duration;

use super::guard::Guard;
use super::{Client, mirror};
use crate::error::Error;
use crate::{RenewPolicy, RetryPolicy};

mirror::request! {
    /// A request for a lock: the blocking form of [`LockRequest`](crate::LockRequest).
    LockRequest gives Guard
}

impl LockRequest {
    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    pub(super) fn into_inner(self) -> crate::LockRequest {
        self.inner
    }
}
