//! The server from outside: raw bytes in, raw bytes out.
//!
//! * `bytes` - requests at every split, protocol errors, what comes before and after them
//! * `pressure` - clients that do not read, trickle, open and close, or ask for too much
//! * `pubsub`: messages between connections, and how late an expiry is told
//! * `script`: scripts that mean harm
//! * `transaction`: MULTI and EXEC on two threads, long ones, large ones
//! * `life` - shutdown, several nodes, Unix sockets, limits on connections, protected mode
//! * `waiting`: commands that wait for others
//! * `tls`: versions, certificates that are good, bad and renewed, peers that are slow or speak none
//! * `tracking` - invalidations for clients that cache
//! * `time` - TTLs on a stepped clock, jumps of the wall clock, CLIENT PAUSE, idle clients

#![cfg(test)]

mod bytes;
mod life;
mod pressure;
mod pubsub;
mod script;
mod time;
mod tls;
mod tracking;
mod transaction;
mod waiting;

use locknode::{Node, Options};

/// A node that serves from the first moment on.
fn node() -> Node {
    node_with(|_| ())
}

/// The same with other options.
fn node_with(change: impl FnOnce(&mut Options)) -> Node {
    let mut options = Options::default();
    change(&mut options);
    let builder = Node::builder().restart_guard(false);
    builder.options(options).build()
}
