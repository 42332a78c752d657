//! Without async: `cargo run -p redlock-client --features blocking --example blocking`, or with addresses after ` -- `.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod nodes;

use std::thread;
use std::time::Duration;

use redlock_client::Error;
use redlock_client::blocking::Redlock;

fn main() -> Result<(), Error> {
    let redlock = Redlock::builder()
        .nodes(nodes::from_arguments())
        .build_blocking()?;

    // Three threads, one lock: they take turns.
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=3)
            .map(|number| {
                scope.spawn({
                    let redlock = &redlock;
                    move || take_turn(redlock, number)
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect::<Result<(), Error>>()
    })?;

    // What is still to be released is released before the process ends.
    redlock.close();
    Ok(())
}

fn take_turn(redlock: &Redlock, number: u32) -> Result<(), Error> {
    let request = redlock
        .lock("printer")
        .ttl(Duration::from_secs(5))
        .wait_for(Duration::from_secs(30));
    redlock.with_lock(request, |guard| {
        println!("thread {number} has the printer for {:?}", guard.validity());
        thread::sleep(Duration::from_millis(200));
        println!("thread {number} is done, valid: {}", guard.is_valid());
    })
}
