//! Waiting for something to become true, instead of for time to pass.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Waits until `condition` holds; the test fails, naming `what`, when it takes longer than anything healthy would.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        sleep(GLANCE).await;
    }
}

/// As [`eventually`] for a condition that has to ask somebody.
pub async fn eventually_async<F: Future<Output = bool>>(
    what: &str,
    mut condition: impl FnMut() -> F,
) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "never happened: {what}");
        sleep(GLANCE).await;
    }
}

/// The output of a future that must not hang.
pub async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("hangs: {what}"),
    }
}

/// Only what will never happen takes so long, on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks at a condition.
const GLANCE: Duration = Duration::from_millis(2);
