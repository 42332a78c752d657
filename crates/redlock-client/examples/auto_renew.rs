//! Renewal and loss: `cargo run -p redlock-client --example auto_renew`, or with addresses after ` -- `.
//!
//! Stop the nodes while it runs to see the work being given up.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::time::Duration;

use redlock_client::{Error, Redlock, RenewPolicy};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let redlock = Redlock::builder().nodes(nodes::from_arguments()).build()?;
    let guard = redlock
        .lock("nightly-report")
        .ttl(Duration::from_secs(2))
        // Extended every 667 ms, a third of the TTL, and never held longer than a minute.
        .renew(RenewPolicy::until(Duration::from_secs(60)))
        .acquire()
        .await?;

    // When the lock is lost the work's future is dropped, at its next `await`.
    tokio::select! {
        () = work() => println!("done, the lock was held all the time"),
        error = guard.lost() => println!("given up: {error}"),
    }
    // For work in other tasks: `guard.cancellation()`, a token that is cancelled at that moment.

    let _ = guard.release().await;
    redlock.close().await;
    Ok(())
}

async fn work() {
    for step in 1..=5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        println!("step {step} of 5");
    }
}
