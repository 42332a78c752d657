//! Criterion benches of the hot path, one file per room:
//!
//! * `wire` - decoding requests, encoding replies
//! * `engine` - acquire and release inside the engine, what the restart guard adds, growth, sweeping
//! * `connection` - a whole connection over an in-memory stream
//!
//! They are for finding out why, not for claims: `scripts/bench-peers` measures beside real servers.
