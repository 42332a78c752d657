//! Five lock nodes in one process, any fault, replayed from one seed.
//!
//! What lock code does when a node crashes, a reply is lost, a clock runs fast or a holder stands still is seldom tested, since
//! nobody can make it happen twice. Here it can be made to happen, exactly, as often as wanted.
//!
//! * A [`World`] simulates nodes, clients and what lies between them in one thread: the shipped node engine, store and
//!   request decoder, the shipped client core, bytes on ordered streams, clocks and disks that go wrong. No sockets, no
//!   real time: a minute takes some five milliseconds.
//! * A [`Scenario`] is all data of a run, with one seed for the rest; it is a text file. The same scenario is the same run,
//!   event by event, on any machine.
//! * A [`Swarm`] makes a scenario of each seed. [`check()`] judges what happened, [`shrink()`] makes a failing scenario short,
//!   [`Timeline`] draws it, and [`History::json_lines`] hands it to programs in any language.
//! * A `Cluster` (module `cluster`, feature of the same name, on by default) runs the same nodes as real servers, in memory
//!   under paused time or on loopback ports, for your own code and for clients in any language.
//!
//! It is not a proxy for production, and does not simulate threads: what several cores do to one node's memory is
//! not seen here.
//!
//! # A test in ten lines
//!
//! Nobody ever holds a lock twice, whatever happens:
//!
//! ```
//! use locknode_testkit::Swarm;
//!
//! for seed in 0..20 {
//!     Swarm::default().nodes(5).clients(3).run(seed).assert_safe();
//! }
//! ```
//!
//! When a promise is broken, `assert_safe` panics with what was broken, the shortest scenario that still breaks it and how to
//! run that again, and leaves its timeline in a file.
//!
//! # A story, step by step
//!
//! Client 0 holds the lock with nodes 0, 1 and 2. Node 2 crashes and comes back. With the restart guard it stays out of the lock
//! until that has ended; without, it gives the lock to client 1:
//!
//! ```
//! use std::time::Duration;
//! use locknode_testkit::{
//!     Crash, Fault, GuardMode, Hook, Links, LockAction, Scenario, Setup, ViolationKind, Way, World, check_all,
//! };
//!
//! # fn overlap(guard: GuardMode) -> bool {
//! let s = Duration::from_secs(1);
//! let scenario = Scenario::new(Setup { guard, ..Setup::default() })
//!     .at(s, Fault::Cut(Links::between(0, [3, 4]), Way::Both))
//!     .act(2 * s, 0, LockAction::new("invoice", 8 * s).hold(6 * s).into())
//!     .on(Hook::Acquired(0), Fault::Crash(2, Crash::Kill))
//!     .on(Hook::Down(2), Fault::Restart(2))
//!     .act(3 * s, 1, LockAction::new("invoice", 8 * s).hold(s).into());
//! let mut world = World::new(&scenario);
//! world.run();
//! let violations = check_all(world.history(), &scenario);
//! # violations.iter().any(|it| it.kind == ViolationKind::Exclusion)
//! # }
//! assert!(overlap(GuardMode::Off), "two clients hold the lock");
//! assert!(!overlap(GuardMode::Long), "one does");
//! ```
//!
//! # What is promised under which fault
//!
//! | fault | one holder at a time | fencing tokens in order | progress |
//! |---|---|---|---|
//! | crashes, power loss, torn writes, restarts, partitions, losses, delays, pauses, wall clocks, drift within the allowance, sleep | yes | yes | when it is over |
//! | disk lost, TTLs up to `max-ttl`; locks with a longer TTL or none are lost with the disk | yes | if the calendar was right | when it is over |
//! | clocks beyond the allowance, a frozen client | no | yes | when it is over |
//! | disk taken back, no restart guard and a crash | no | if the calendar was right | when it is over |
//!
//! [`Promise`] has all of it, with the reasons.
//!
//! # Determinism
//!
//! Whatever a world does is decided by its scenario: randomness comes from named streams of its seed ([`Random`], whose
//! numbers never change), time is an argument everywhere, nothing iterates over a hash map, nothing uses floating point.
//! [`check_determinism`] runs a scenario twice and shows the first event that differs.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `cluster` (default) | the nodes as real servers; without it the crate needs no server and no sockets |

mod assertion;
mod bug;
mod check;
#[cfg(feature = "cluster")]
pub mod cluster;
mod determinism;
mod fault;
pub mod faulty_disk;
pub mod history;
mod lock_effect;
mod named;
mod parse_error;
mod random;
mod report;
mod scenario;
mod shrink;
mod sim;
mod span;
mod swarm;
mod timeline;

pub use bug::Bug;
pub use check::{Bounds, Promise, Tolerance, Violation, ViolationKind, check, check_all};
pub use determinism::{Difference, check_determinism, first_difference};
pub use fault::*;
pub use history::{History, Window};
pub use parse_error::ParseError;
pub use random::Random;
pub use report::Report;
pub use scenario::{
    Action, ClientAction, ClientKind, Dialect, Ending, GuardMode, Hook, LockAction, Scenario,
    Setup, Step, Trigger,
};
pub use shrink::{Shrunk, shrink, shrink_with};
pub use sim::{Counters, Recording, World};
pub use span::{SimTime, Span, parse_span};
pub use swarm::{FaultKind, FaultKinds, Swarm};
pub use timeline::{Headline, Mark, Timeline};

/// The examples of README are compiled and run.
#[cfg(all(doctest, feature = "cluster"))]
#[doc = include_str!("../README.md")]
struct Readme;
