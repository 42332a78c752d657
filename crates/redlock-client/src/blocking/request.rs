//! What a blocking caller asks for.

use std::sync::Arc;
use std::time::Duration;

use super::guard::Guard;
use super::{Client, mirror};
use crate::error::Error;
use crate::{RenewPolicy, RetryPolicy};

mirror::request! {
    /// A request for one lock: set what differs from the defaults, then acquire.
    ///
    /// It is the blocking form of [`LockRequest`](crate::LockRequest), with the same options.
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
