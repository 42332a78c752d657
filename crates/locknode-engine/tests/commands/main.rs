//! The commands of the engine, by request and reply.
//!
//! * `node`: a node with several clients and a clock that the test moves, and its scripts of requests and replies
//! * `set`, `get`, `multi`, `number`, `release`, `expiry`, `scan`, `script`, `lock`, `limits`: rows per family
//! * `provisional`: what scripts leave, judged at their end
//! * `redisson`: its hot scripts, native and in Lua
//! * `values`: hashes, lists, sets and sorted sets
//! * `suspended`: scripts that take long: who is served meanwhile, who waits
//! * `model`: random command sequences against a naive model
//! * `acl`: users, and what they may do (feature `acl`)
//! * `connection`: HELLO, AUTH, SELECT, PING, ECHO, RESET, QUIT
//! * `client`: CLIENT and its subcommands, with pauses and kills
//! * `config`, `info`, `introspection`: CONFIG, INFO, COMMAND
//! * `transaction`, `no_transaction`: MULTI and its relatives; without the feature `compat` they are refused
//! * `pubsub`, `events`: messages to subscribers; keyspace events
//! * `latency`: SLOWLOG and LATENCY
//! * `admin`: TIME, ROLE, WAIT, SHUTDOWN, DEBUG, and what is always empty or refused
//! * `strange`: every command with arguments that make no sense

#![cfg(test)]

#[cfg(feature = "acl")]
mod acl;
mod admin;
mod client;
mod config;
mod connection;
#[cfg(feature = "compat")]
mod events;
mod expiry;
mod get;
mod info;
mod introspection;
mod label;
#[cfg(feature = "metrics")]
mod latency;
mod limits;
mod lock;
mod model;
#[cfg(feature = "compat")]
mod monitor;
mod multi;
#[cfg(not(feature = "compat"))]
mod no_transaction;
mod node;
mod number;
// Its scripts are not native.
#[cfg(feature = "compat")]
mod provisional;
#[cfg(feature = "compat")]
mod pubsub;
#[cfg(feature = "compat")]
mod redisson;
mod release;
mod scan;
mod script;
mod set;
mod strange;
#[cfg(feature = "compat")]
mod suspended;
#[cfg(feature = "compat")]
mod tracking;
#[cfg(feature = "compat")]
mod transaction;
#[cfg(feature = "compat")]
mod values;
