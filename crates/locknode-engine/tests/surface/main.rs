//! The connection and administration commands of the engine, by request and reply.
//!
//! * `node`: a node with several clients and a clock that the test moves, and its scripts
//! * `connection`: HELLO, AUTH, SELECT, PING, ECHO, RESET, QUIT
//! * `client`: CLIENT and its subcommands, with pauses and kills
//! * `config`: CONFIG
//! * `info`: INFO
//! * `introspection`: COMMAND
//! * `transaction`: MULTI and its relatives, which are refused
//! * `strange`: every command with arguments that make no sense
//! * `admin`: TIME, ROLE, WAIT, SHUTDOWN, DEBUG, and what is always empty or refused

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod admin;
mod client;
mod config;
mod connection;
mod info;
mod introspection;
mod node;
mod strange;
mod transaction;
