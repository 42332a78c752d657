//! One lock: `cargo run -p redlock-client --example basic`, or with node addresses after ` -- `.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::time::Duration;

use redlock_client::{Error, Redlock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let redlock = Redlock::builder().nodes(nodes::from_arguments()).build()?;
    for node in redlock.nodes().await? {
        match node.state {
            Ok(server) => println!("{}: {} {}", node.address, server.name, server.version),
            Err(cause) => println!("{}: {cause}", node.address),
        }
    }

    // Three attempts by default; `try_acquire` makes one, `wait_for` as many as fit in a time.
    let request = redlock.lock("invoice/42").ttl(Duration::from_secs(10));
    let guard = request.clone().acquire().await?;
    println!("held for {:?} at least", guard.validity());

    match request.try_acquire().await? {
        Some(_) => println!("held twice: this never happens"),
        None => println!("a second client does not get it"),
    }

    // Between two steps of the work: is it still ours?
    if guard.is_valid() {
        guard.extend(Duration::from_secs(20)).await?;
        println!("extended, held for {:?} from now on", guard.validity());
    }

    let released = guard.release().await;
    println!(
        "released on {} nodes, {} more are being told",
        released.confirmed(),
        released.pending()
    );
    redlock.close().await;
    Ok(())
}
