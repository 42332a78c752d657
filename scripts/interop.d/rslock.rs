// needs: cargo
// away: down=ok quarantine=ok
//! rslock's manager: SET NX PX with 20 random bytes, and EVALSHA with SCRIPT LOAD on NOSCRIPT.

use std::time::Duration;

use rslock::{Lock, LockManager};
use story::{Client, nodes, tell};

struct Manager(LockManager);

impl Client for Manager {
    type Handle = Lock;

    async fn connect() -> Self {
        let urls = nodes()
            .iter()
            .map(|node| format!("redis://{node}"))
            .collect();
        let mut manager = LockManager::new(urls);
        manager.set_retry(1, Duration::from_millis(10));
        Self(manager)
    }

    async fn acquire(&self, resource: &str, ttl: Duration) -> Option<Lock> {
        self.0.lock(resource, ttl).await.ok()
    }

    async fn extend(&self, handle: &Lock, ttl: Duration) -> bool {
        self.0.extend(handle, ttl).await.is_ok()
    }

    async fn release(&self, handle: &Lock) {
        self.0.unlock(handle).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let steps = tell::<Manager>().await;
    println!("rslock 0.10.0 on redis-rs 1.8.1 ({steps}, binary token)");
}
