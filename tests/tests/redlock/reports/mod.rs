//! What users of other lock libraries reported, and what is wrong in the sources of those libraries: each as a test of
//! this client, named after the behaviour, with the public reports in its doc comment.
//!
//! * `acquiring` - validity, quorum, retry, errors told apart
//! * `extending` - no extension of what is gone, no release by a failed one
//! * `renewing` - automatic extension: when it stops, when it goes on
//! * `releasing` - on every node, once, bounded, whatever became of the caller
//! * `several` - several keys, several owners, waiting
//! * `nodes` - nodes that are down, slow, loading, restarted
//! * `clocks` - validity from before the first byte, drift, clocks that jump
//!
//! Ruled out by the interface, so that there is nothing to test:
//!
//! * mike-marcacci/node-redlock#95, #120: a TTL with a fraction reaches a script. A TTL is a `Duration`, sent as whole
//!   milliseconds (one test looks at the bytes all the same).
//! * SPSCommerce/redlock-py PR#3: the drift added instead of subtracted by a sign in a formula of floats. Spans have no
//!   sign here; the boundary is tested in the client's own crate and in `clocks`.
//! * redis/redis-py#1091, #415, #489: a token as text compared with a token as bytes. A token is bytes, there is no
//!   other kind.
//! * redis/redisson#5761, #543, #763, spring-projects/spring-integration#10471: an unlock message that is missed. This
//!   client does not subscribe: a waiter asks again, at the latest when the holder's TTL ends.
//! * redis/redisson#1104, #2883, #3730, #5019: deadlines of a fair queue that drift, and leftovers in it. No queue is
//!   kept on the nodes; `several` shows that a waiter who gave up leaves nothing.
//! * redis/redisson#4645, #3474, #5586, #6716: WAIT that is unknown, refused or never satisfied. The client sends no WAIT,
//!   no WATCH and no transaction.
//! * bsm/redislock#93, swarthy/redis-semaphore#127: fencing tokens. The client gives them where nodes count grants, and says
//!   `None` elsewhere; see `fencing`.
//! * leandromoreira/redlock-rb, deprecated options that are accepted and have no effect: there are none.
//! * nodes that differ between clients' lists, and a list changed in one step: a client cannot see another's list.

mod acquiring;
mod clocks;
mod extending;
mod nodes;
mod releasing;
mod renewing;
mod several;
