//! One question to all nodes, and what their answers amount to.
//!
//! ```text
//!                 asked(node, incarnation)          on_vote(now, vote, answer)
//!  caller ------------------------------> Round <------------------------------ a reply arrived
//!                                           |   <------------------------------ on_disconnected(node, incarnation)
//!                 verdict(now) <------------+   <------------------------------ on_time(now)
//! ```
//!
//! Rounds know no clock, no randomness and no sockets: their driver, a tokio task or a simulator, says what time
//! it is and what happened. They are values: two clones that are given the same events reach the same verdicts.
//!
//! Invariant: a vote counts only for the round it was asked in, from the incarnation of the node that was asked,
//! and once. A reply to an older round, a repeated reply and one from before a reconnection change nothing.
//!
//! A fencing token, where nodes count, is part of the round that acquires: see the notes in `round/fencing.rs`.
//!
//! Source: "The Redlock algorithm" of the Redis documentation on distributed locks.

mod acquire;
mod ballot;
mod extend;
mod fencing;
mod release;
#[cfg(test)]
mod tests;

pub use acquire::{AcquireRound, AcquireVerdict, Refusal};
pub use ballot::{Answer, Ballot, RoundId, Vote};
pub use extend::{ExtendRound, ExtendVerdict};
pub(crate) use fencing::WRITABLE_MAX;
pub use release::{ReleaseRound, ReleaseVerdict};
