//! Criterion benches of the hot path, one file per room:
//!
//! * `wire` - decoding requests, encoding replies
//! * `engine` - acquire and release inside the engine, what the restart guard adds, growth, sweeping
//! * `connection` - a whole connection over an in-memory stream
//!
//! They are for finding out why, not for claims: `scripts/bench-peers` measures beside real servers.

/// Acquires a lock as most lock libraries do.
pub const ACQUIRE: &[&[u8]] = &[
    b"SET",
    b"lock:0123456789abcdef012345678",
    b"0123456789abcdef0123456789abcdef",
    b"NX",
    b"PX",
    b"30000",
];

/// Releases it by the script that they send.
pub const RELEASE: &[&[u8]] = &[
    b"EVALSHA",
    b"4e92fdc63815b3a0a2dd1c1df3694de73607c88d",
    b"1",
    b"lock:0123456789abcdef012345678",
    b"0123456789abcdef0123456789abcdef",
];
