//! Model checking of the shipped code: every course that a few clients and three nodes can take, not a sample of them.
//!
//! ```text
//!  stateright ---- action ----> the model ---- request, as words ----> Engine   locknode-engine, loaded with the node
//!      ^                        in small      <---- reply bytes -----           of the state
//!      |                        numbers
//!      +---- next state, is     ---- votes, time passed ----> AcquireRound,     redlock-client, told what the attempt
//!            it a new one?      <---- verdict ---------------  ExtendRound ...  of the state has heard
//! ```
//!
//! * [`exclusion`]: in discrete time, no two clients believe at once that they hold the lock.
//! * [`fencing`]: without time, with locks that end at any moment, fencing tokens are unique and in order.
//! * [`node`]: a node in five bytes, and the engine for what it does.
//! * [`ballot`]: what the rounds of both have in common.
//! * [`memo`]: each distinct question is put to the real code once.
//! * [`search`]: running the checker, telling what it took and how a property was broken.
//!
//! **Real** are the engine (every request is a command that it executes and every reply is decoded from its bytes; it also
//! says what of a node is left: what it holds, what it counts, whether a lock has ended, whether it is in quarantine), the
//! rounds (which votes count, what they come to, how long a lock is valid, which token is fixed and who is asked to accept
//! it) and [`Start`](locknode_engine::durable::Start), whose wait after a restart is compared with the one assumed.
//!
//! **Modelled** are the network (any message late, never, or after its connection broke), time (whole ticks, on which an
//! adversary orders what happens: within one a deadline may be the first thing and a belief's end the last), crashes, what
//! survives one (nothing but a bound of the fence counter, which the store keeps and whose tests are elsewhere), and the
//! little that the client's `core` does between rounds: when it asks, whom it tells to release, what it does with a verdict.
//! Retries, renewal, connections and floors of counters are not here; the simulator runs them.
//!
//! A state holds no engine and no round but what makes either: a node's five bytes, an attempt's votes. That this is
//! all there is to know is tested: an engine that runs on agrees with one that is loaded for each request, and a round
//! that went on equals one that is made anew.
//!
//! States are few because of what is left out, each for a reason:
//!
//! * A refusal is no reply. Whoever hears of one can only end earlier what it may end at any moment. Searches with
//!   `refusals` do without this.
//! * What can make no difference any more is dropped: replies to rounds that are over, requests that name a token which
//!   the node does not have and will not have again, the name of a token that nothing names. Searches without `reduced`
//!   do without this.
//! * Nodes, clients and attempts that change places are the same state.
//! * Where locks may end at any moment, one that nothing depends on any more ends at once: a node whose key is free does
//!   all that it does otherwise, and grants.
//! * In discrete time, a node that holds nothing does not crash: it would refuse for a while, which is a refusal.
//!
//! Planted bugs show that the searches can find something: each is where the model hands something to the real code or
//! takes it back, and a shortest way in which it breaks the property is printed and its length asserted.
//!
//! `cargo test -p locknode-testkit --test model -- --nocapture` prints all figures; with `--release` the scopes are wider.

#![cfg(test)]

mod ballot;
mod exclusion;
mod fencing;
mod memo;
mod node;
mod search;
mod symmetry;
