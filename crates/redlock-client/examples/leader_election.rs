//! A leader among three: `cargo run -p redlock-client --example leader_election`, or with addresses after ` -- `.
//!
//! Whoever holds the lock leads. The renewal policy ends each term of office, so nobody leads for ever.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::time::Duration;

use redlock_client::{Error, Guard, Redlock, RenewPolicy};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // In life each candidate is a process of its own, and this loops for ever.
    let candidates: Vec<_> = ["ann", "bob", "cid"]
        .map(|name| tokio::spawn(run(name)))
        .into();
    for candidate in candidates {
        candidate.await.unwrap_or(Ok(()))?;
    }
    Ok(())
}

async fn run(name: &str) -> Result<(), Error> {
    let redlock = Redlock::builder().nodes(nodes::from_arguments()).build()?;
    let guard = redlock
        .lock("leader")
        .ttl(Duration::from_millis(800))
        .renew(RenewPolicy::until(Duration::from_secs(2)))
        .wait_for(Duration::from_secs(30))
        .acquire()
        .await?;
    tokio::select! {
        () = lead(name, &guard) => {}
        // The end of the term, or the nodes are gone: another may lead from now on.
        end = guard.lost() => println!("{name} steps down: {end}"),
    }
    let _ = guard.release().await;
    Ok(())
}

async fn lead(name: &str, guard: &Guard) {
    loop {
        println!("{name} leads, for {:?} at least", guard.validity());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
