//! Several locks at once: `cargo run -p redlock-client --example multi_resource`, or with addresses after ` -- `.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::time::Duration;

use redlock_client::{Error, Redlock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let redlock = Redlock::builder().nodes(nodes::from_arguments()).build()?;

    // They name the accounts in opposite orders. The client takes them in the order of the keys, so neither waits
    // for the other for ever.
    let (there, back) = tokio::join!(
        transfer(&redlock, "account/1", "account/2"),
        transfer(&redlock, "account/2", "account/1"),
    );
    there?;
    back?;
    redlock.close().await;
    Ok(())
}

async fn transfer(redlock: &Redlock, from: &str, to: &str) -> Result<(), Error> {
    let guard = redlock
        .lock_all([from, to])
        .ttl(Duration::from_secs(10))
        .wait_for(Duration::from_secs(30))
        .acquire()
        .await?;
    println!("{from} to {to}: both locks for {:?}", guard.validity());
    tokio::time::sleep(Duration::from_millis(200)).await;
    // The shortest of the validities counts.
    println!("{from} to {to}: done, still valid: {}", guard.is_valid());
    let _ = guard.release().await;
    Ok(())
}
