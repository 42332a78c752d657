//! What the integration tests share: nodes on free ports or in-memory streams, a clock that tests step, raw bytes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test"
)]

mod manual_clock;
mod wire;

pub use manual_clock::ManualClock;
pub use wire::{Wire, serve_tcp};
