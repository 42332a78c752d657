//! What a connection is sent that it did not ask for just now: messages, invalidations, and replies
//! to commands that waited.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Bytes for one connection, from any thread; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    has_mail: AtomicBool,
    bytes: Mutex<Vec<u8>>,
}

impl Mailbox {
    /// Appends what `write` writes, and returns how many bytes then wait.
    pub(crate) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let mut bytes = self.bytes.lock();
        write(&mut bytes);
        self.has_mail.store(!bytes.is_empty(), Ordering::Release);
        bytes.len()
    }

    /// Returns whether anything waits.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Moves all that waits to the end of `out`.
    pub(crate) fn take(&self, out: &mut Vec<u8>) {
        let mut bytes = self.bytes.lock();
        self.has_mail.store(false, Ordering::Release);
        out.append(&mut bytes);
        *bytes = Vec::new();
    }
}
