//! The engine against a real server: the same requests, the same reply bytes.
//!
//! Seeded random sequences of commands, good and bad, as arrays and inline, under RESP2 and RESP3, go to a server that
//! the test starts and to the decoder and engine. `LOCKNODE_TEST_REDIS` names the server (`redis-server` from the PATH
//! without it; Valkey's will do); where there is none the test says so and passes. `LOCKNODE_TEST_SEED` chooses
//! other sequences, `LOCKNODE_TEST_ROUNDS` how many times as many.
//!
//! * `sequence`: what is sent; the random commands
//! * `blocking`: commands that wait, and clients that want no replies
//! * `malformed`: bytes that are almost requests
//! * `interleaving`: transactions of two clients, command by command
//! * `server`: the real server
//! * `node`: our side
//! * `scripts`: random Lua
//! * `tracking`: invalidations, to a client that caches
//! * `reply`: splitting reply bytes into replies
//! * `states`: no memory, scripts and transactions that fail half way, keys of another type
//! * `pubsub`: messages and keyspace events, on several connections
//! * `users`: who may do what, by random rules
//! * `difference`: the list of replies that may differ, with the reasons

#![cfg(test)]

mod blocking;
mod difference;
mod interleaving;
mod malformed;
mod node;
mod pubsub;
mod reply;
mod scripts;
mod sequence;
mod server;
mod states;
mod tracking;
mod users;

use std::fmt::Display;

use difference::Peculiarities;
use node::Node;
use sequence::{Dice, Request};
use server::Server;

#[test]
fn patterns_match_the_same_keys() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let nodes = [Node::new(1), Node::new(8)];
    let peculiarities = Peculiarities::of(&mut server);
    let mut dice = Dice::new(seed());
    for _ in 0..rounds(PATTERN_ROUNDS) {
        let requests = sequence::patterns(&mut dice, REQUESTS);
        let mismatch = first_mismatch((&mut server, &nodes), &peculiarities, &requests);
        assert_eq!(mismatch, None, "LOCKNODE_TEST_SEED={}", seed());
    }
}

#[test]
fn replies_are_those_of_a_real_server_byte_for_byte() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let nodes = [Node::new(1), Node::new(8)];
    let peculiarities = Peculiarities::of(&mut server);
    println!("compared with {}", peculiarities.version);
    let seed = seed();
    let mut compared = 0;
    for number in 0..rounds(SEQUENCES) {
        let mut dice = Dice::new(seed.wrapping_add(number));
        let requests = sequence::random(&mut dice, REQUESTS, &peculiarities);
        compared += requests.len();
        if let Some(mismatch) = first_mismatch((&mut server, &nodes), &peculiarities, &requests) {
            println!(
                "LOCKNODE_TEST_SEED={}: {mismatch}",
                seed.wrapping_add(number)
            );
            report(seed.wrapping_add(number), requests, |requests| {
                first_mismatch((&mut server, &nodes), &peculiarities, requests)
            });
        }
    }
    println!("{compared} replies compared");
}

/// How many sequences a test sends.
fn rounds(once: u64) -> u64 {
    std::env::var("LOCKNODE_TEST_ROUNDS").map_or(1, |times| times.parse().expect("a number")) * once
}

fn seed() -> u64 {
    std::env::var("LOCKNODE_TEST_SEED").map_or(SEED, |seed| seed.parse().expect("a number"))
}

/// Sends the sequence to both sides; what differs first, in words.
fn first_mismatch(
    (server, nodes): (&mut Server, &[Node]),
    peculiarities: &Peculiarities,
    requests: &[Request],
) -> Option<String> {
    let theirs = server.run(requests);
    nodes.iter().find_map(|node| {
        let ours = node.run(requests);
        let mut replies = requests.iter().zip(theirs.iter().zip(&ours));
        replies.find_map(|(request, (theirs, ours))| {
            (!peculiarities.allow(request, theirs, ours)).then(|| {
                format!(
                    "{request}\n  real: {}\n  ours: {}",
                    theirs.escape_ascii(),
                    ours.escape_ascii()
                )
            })
        })
    })
}

/// Leaves out whatever the mismatch does not need, and panics with the rest.
fn report<T: Clone + Display>(
    seed: u64,
    mut steps: Vec<T>,
    mut first_mismatch: impl FnMut(&[T]) -> Option<String>,
) -> ! {
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if first_mismatch(&fewer).is_some() {
            steps = fewer;
        } else {
            at += 1;
        }
    }
    let lines: String = steps.iter().map(|step| format!("  {step}\n")).collect();
    let mismatch = first_mismatch(&steps);
    let mismatch = mismatch.unwrap_or_else(|| "the mismatch did not come again".to_owned());
    panic!("LOCKNODE_TEST_SEED={seed}, after\n{lines}\n{mismatch}");
}

/// Any number would do; this one is printed when a sequence fails.
const SEED: u64 = 7_101;

/// Enough to meet each pair of a command and an option many times, in a few seconds.
const SEQUENCES: u64 = 500;
const REQUESTS: usize = 50;

/// Patterns are cheaper and their space is larger.
const PATTERN_ROUNDS: u64 = 100;
