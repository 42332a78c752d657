//! Reports the end of a lock to work in other tasks.

use tokio_util::sync::CancellationToken;

/// Reports when a lock is no longer held. Clones report the same lock.
///
/// ```no_run
/// # async fn example(guard: &redlock_client::Guard) {
/// let cancellation = guard.cancellation();
/// tokio::spawn(async move {
///     while !cancellation.is_cancelled() {
///         // One step of the work.
///     }
/// });
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cancellation(CancellationToken);

impl Cancellation {
    pub(crate) fn new(token: CancellationToken) -> Self {
        Self(token)
    }

    /// Whether the lock is no longer held.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when the lock is no longer held.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}
