//! The buffers that all connections of a thread share.
//!
//! A connection needs large buffers only while its task is polled. Sharing them per thread keeps an
//! idle connection at about a kilobyte; what it must keep between two polls (half a request, an
//! unsent reply) is in buffers of its own. The thread-local keeps capacity between polls, never
//! state.

use std::cell::Cell;

/// The input of one read and the output of one batch.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) input: Box<[u8]>,
    pub(crate) output: Vec<u8>,
}

impl Scratch {
    /// Lends the thread's buffers to `work`. A nested call gets buffers of its own.
    pub(crate) fn lend<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        let mut scratch = SCRATCH.take().unwrap_or_else(|| {
            Box::new(Self {
                input: vec![0; INPUT_LEN].into_boxed_slice(),
                output: Vec::with_capacity(OUTPUT_LEN),
            })
        });
        let result = work(&mut scratch);
        scratch.output.clear();
        if scratch.output.capacity() > OUTPUT_KEPT_MAX {
            scratch.output = Vec::with_capacity(OUTPUT_LEN);
        }
        SCRATCH.set(Some(scratch));
        result
    }
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// One read: a batch of about 600 acquires. Larger reads gain nothing measurable.
const INPUT_LEN: usize = 64 << 10;

/// Room for the replies to a full read of acquires.
const OUTPUT_LEN: usize = 16 << 10;

/// A larger output buffer, grown by one huge reply, is not kept.
const OUTPUT_KEPT_MAX: usize = 1 << 20;
