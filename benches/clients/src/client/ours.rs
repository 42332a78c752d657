//! Our client, as any program would use it.

use redlock_client::{Guard, Redlock};

use crate::client::TTL;
use crate::client::load::LockClient;

#[derive(Debug)]
pub(crate) struct Ours(Redlock);

impl Ours {
    /// Connects on first use.
    pub(crate) fn new(addresses: &[String]) -> Result<Self, String> {
        let urls = addresses.iter().map(|node| format!("redis://{node}"));
        let redlock = Redlock::builder().nodes(urls).build();
        redlock.map(Self).map_err(|error| error.to_string())
    }
}

impl LockClient for Ours {
    type Held = Guard;

    fn title(&self) -> String {
        // All packages of the workspace have one version.
        let version = env!("CARGO_PKG_VERSION");
        format!("redlock-client {version} (tokio, one thread)")
    }

    async fn acquire(&self, key: &str) -> Option<Guard> {
        let guard = self.0.lock(key).ttl(TTL).try_acquire().await;
        guard.ok().flatten()
    }

    async fn release(&self, held: Guard) -> bool {
        held.release().await.is_free()
    }

    /// An acquire and a release return at a quorum; the other nodes' replies are awaited here.
    async fn settle(&self) {
        self.0.close().await;
    }
}
