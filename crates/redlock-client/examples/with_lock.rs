//! Work inside a lock: `cargo run -p redlock-client --example with_lock`, or with addresses after ` -- `.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::time::Duration;

use redlock_client::{Error, Redlock, RenewPolicy};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let redlock = Redlock::builder().nodes(nodes::from_arguments()).build()?;
    let request = redlock
        .lock("import")
        .ttl(Duration::from_secs(1))
        .wait_for(Duration::from_secs(5));

    // The lock is released when the work is done, whatever it returned.
    let rows = redlock
        .with_lock(request.clone(), async |scope| {
            let mut rows = 0;
            for _ in 0..3 {
                // Before each step that must not be done by two.
                scope.check()?;
                tokio::time::sleep(Duration::from_millis(100)).await;
                rows += 1;
            }
            Ok::<u32, Error>(rows)
        })
        .await??;
    println!("imported {rows} rows");

    // Work that outlasts its lock is dropped shortly before the validity ends.
    let request = request.renew(RenewPolicy::times(1));
    let outcome = redlock
        .with_lock(request, async |_| tokio::time::sleep(FOREVER).await)
        .await;
    match outcome {
        Ok(()) => println!("an hour has passed"),
        Err(error) => println!("given up ({:?}): {error}", error.kind()),
    }
    redlock.close().await;
    Ok(())
}

const FOREVER: Duration = Duration::from_secs(3600);
