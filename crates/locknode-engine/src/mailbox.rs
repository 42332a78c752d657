//! What a connection is sent that it did not ask for just now: messages, invalidations, and replies
//! to commands that waited.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::guard::Need;

/// Bytes for one connection, from any thread; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    has_mail: AtomicBool,
    mail: Mutex<Mail>,
}

#[derive(Debug, Default)]
struct Mail {
    bytes: Vec<u8>,
    /// What must be durable before the bytes may be sent.
    need: Need,
}

impl Mailbox {
    /// Appends what `write` writes, to be sent once `need` is durable, and returns how many bytes then
    /// wait.
    #[cfg(feature = "compat")]
    pub(crate) fn append(&self, need: Need, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let mut mail = self.mail.lock();
        write(&mut mail.bytes);
        mail.need = mail.need.and(need);
        self.has_mail
            .store(!mail.bytes.is_empty(), Ordering::Release);
        mail.bytes.len()
    }

    /// Returns whether anything waits.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Moves all that waits to the end of `out`; returns what must be durable before it is sent.
    pub(crate) fn take(&self, out: &mut Vec<u8>) -> Need {
        let mut mail = self.mail.lock();
        self.has_mail.store(false, Ordering::Release);
        out.append(&mut mail.bytes);
        std::mem::take(&mut *mail).need
    }
}
