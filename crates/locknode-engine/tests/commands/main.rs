//! The string, generic and keyspace commands of the engine, by request and reply.
//!
//! * `node`: a node with a clock that the test moves, and its scripts of requests and replies
//! * `set`, `get`, `multi`, `number`, `release`, `expiry`, `scan`, `script`, `limits`: rows per family
//! * `provisional`: what scripts leave, judged at their end
//! * `model`: random command sequences against a naive model

#![cfg(test)]

mod expiry;
mod get;
mod limits;
mod lock;
mod model;
mod multi;
mod node;
mod number;
// Its scripts are not native.
#[cfg(feature = "compat")]
mod provisional;
mod release;
mod scan;
mod script;
mod set;
