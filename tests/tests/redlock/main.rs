//! The Redlock client against nodes that fail in every way, and against real ones.
//!
//! * `fake_node` - the fakes themselves, by raw bytes
//! * `stage` - several fakes and a client; a client's clock that a test moves
//! * `misbehaviour` - one node, and a majority, answering wrongly: acquire, extend, release
//! * `late` - replies and requests that come when nobody waits for them
//! * `down` - nodes that are down cost nothing, and come back
//! * `fencing` - fencing tokens: round trips, counters that differ, mixed clusters, order
//! * `identity` - one server by two addresses, passwords
//! * `configuration` - bad input is refused before a byte is sent
//! * `dropping` - futures dropped at every await point leave no key behind
//! * `ends` - how ends are told: of locks, of calls, of the client; and votes that are split
//! * `scenario` - the same scenes over locknodes, real servers and both
//! * `blocking` - the client without async
//! * `kill_and_restart` - lock cycles while nodes come and go
//! * `reports` - what users of other lock libraries reported, one test each

#![cfg(test)]

mod blocking;
mod configuration;
mod down;
mod dropping;
mod ends;
mod fake_node;
mod fencing;
mod identity;
mod kill_and_restart;
mod late;
mod misbehaviour;
mod reports;
mod scenario;
mod stage;
