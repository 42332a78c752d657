//! A lock entered twice: `cargo run -p redlock-client --example reentrant`, or with addresses after ` -- `.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::time::Duration;

use redlock_client::{Error, Redlock, Reentrant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let redlock = Redlock::builder().nodes(nodes::from_arguments()).build()?;

    // One owner per line of work. Its clones are the same owner; others are kept out.
    let owner = redlock.reentrant();
    close_account(&redlock, &owner).await?;

    let other = redlock.reentrant();
    let entry = other.enter(redlock.lock("account/7")).await?;
    println!("free again for others: {}", entry.is_valid());
    let _ = entry.leave().await;
    redlock.close().await;
    Ok(())
}

async fn close_account(redlock: &Redlock, owner: &Reentrant) -> Result<(), Error> {
    let entry = owner.enter(redlock.lock("account/7").ttl(TTL)).await?;
    println!("outer: in {} times", entry.entries());
    pay_out(redlock, owner).await?;
    println!("outer: in {} times", entry.entries());
    // The last one to leave releases the lock.
    let released = entry.leave().await;
    println!(
        "released: {}",
        released.is_some_and(|released| released.is_free())
    );
    Ok(())
}

/// Needs the lock, whether or not its caller has it.
async fn pay_out(redlock: &Redlock, owner: &Reentrant) -> Result<(), Error> {
    let entry = owner.enter(redlock.lock("account/7").ttl(TTL)).await?;
    println!("inner: in {} times", entry.entries());
    let _ = entry.leave().await;
    Ok(())
}

const TTL: Duration = Duration::from_secs(10);
