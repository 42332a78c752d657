//! The crate `rslock`: every node over one multiplexed connection, all replies awaited.

use std::time::Duration;

use ::rslock::{Lock, LockManager};

use crate::client::load::LockClient;
use crate::client::{TTL, pinned};

#[derive(Debug)]
pub(crate) struct Rslock(LockManager);

impl Rslock {
    /// Connects on first use.
    pub(crate) fn new(addresses: &[String]) -> Self {
        let urls = addresses.iter().map(|node| format!("redis://{node}"));
        let mut manager = LockManager::new(urls.collect());
        // A key that nobody holds needs no second try; one that fails is to be seen.
        manager.set_retry(1, Duration::from_millis(1));
        Self(manager)
    }
}

impl LockClient for Rslock {
    type Held = Lock;

    fn title(&self) -> String {
        format!(
            "rslock {} on redis-rs {} (tokio, one thread)",
            pinned("rslock"),
            pinned("redis")
        )
    }

    async fn acquire(&self, key: &str) -> Option<Lock> {
        self.0.lock(key, TTL).await.ok()
    }

    async fn release(&self, held: Lock) -> bool {
        // It does not tell whether a node let go.
        self.0.unlock(&held).await;
        true
    }

    async fn settle(&self) {}
}
