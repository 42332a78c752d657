//! How a connection is sent what it did not ask for just now, from any thread.
//!
//! ```text
//!  Client::send, post --> Mailbox --> wake, or WakeQueue --> the connection's task: take_mail
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use locknode_resp::{Encoder, Protocol};

use crate::client::{Client, Clients};
use crate::message::Message;
use crate::output_limit::PubsubLimit;
use crate::time::Time;

impl Client {
    /// Sends the connection what `write` writes, in its protocol, and wakes its task.
    pub(crate) fn send(&self, write: impl FnOnce(&mut Encoder<'_>)) {
        if self.put(write) {
            self.wake();
        }
        self.registry.evict();
    }

    /// The same without waking its task; returns whether it must be woken.
    pub(crate) fn put(&self, write: impl FnOnce(&mut Encoder<'_>)) -> bool {
        let mut bytes = Vec::new();
        write(&mut Encoder::new(&mut bytes, self.protocol()));
        self.add_mail(bytes.into())
    }

    /// Sends the connection a message; returns whether its task must be woken.
    pub(crate) fn post(&self, message: &Message<'_>) -> bool {
        self.add_mail(message.bytes(self.protocol()))
    }

    /// Adds to the mailbox, and returns whether the task must be woken. Closes the connection instead
    /// if it has left too much there.
    pub(crate) fn add_mail(&self, bytes: Arc<[u8]>) -> bool {
        let registry = &self.registry;
        let Some(added) = self.mailbox.add(bytes, &self.killed) else {
            return false;
        };
        let size = added.size as u64;
        registry.buffered.fetch_add(size, Ordering::Relaxed);
        if added.total >= registry.settings.mail_max() {
            self.kill();
            return false;
        }
        added.was_empty
    }

    /// Returns whether the connection has been sent something that [`Client::take_mail`] has not
    /// taken.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.mailbox.has_mail()
    }

    /// Moves what the connection was sent to the end of `out`, until that has `len_max` bytes.
    pub fn take_mail(&self, out: &mut Vec<u8>, len_max: usize) {
        if self.has_mail() {
            let taken = self.mailbox.take(out, len_max);
            self.forget_mail(taken);
        }
    }

    /// Returns what waits, in bytes as the limits count them.
    pub(crate) fn mail_size(&self) -> u64 {
        self.mailbox.size() as u64
    }

    /// Discards what waits, of a client that is killed.
    pub(crate) fn discard_mail(&self) {
        let size = self.mailbox.clear();
        self.forget_mail(size);
    }

    fn forget_mail(&self, size: usize) {
        let buffered = &self.registry.buffered;
        buffered.fetch_sub(size as u64, Ordering::Relaxed);
    }

    /// Returns whether more than the soft limit has waited for longer than it may.
    pub(crate) fn is_slow(&self, limit: PubsubLimit, now: Time) -> bool {
        let since = self.mailbox.over_since(limit.soft_size(), now);
        since.is_some_and(|since| now.since(since) > limit.soft_time())
    }

    /// Returns the protocol of what the connection is sent.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol.load(Ordering::Relaxed) {
            3 => Protocol::Resp3,
            _ => Protocol::Resp2,
        }
    }
}

impl Clients {
    /// Wakes the tasks of connections that were sent something: a few at once, the others one by
    /// one as connections have their turns.
    pub(crate) fn wake_in_turn(&self, mut clients: Vec<Arc<Client>>) {
        let later = clients.split_off(clients.len().min(WAKES_AT_ONCE));
        clients.iter().for_each(|client| client.wake());
        self.wake_queue.add(later);
        self.evict();
    }

    /// Wakes the next connection of those that wait for their turn.
    #[inline]
    pub(crate) fn wake_next(&self) {
        if !self.wake_queue.is_empty() {
            self.wake_first();
        }
    }

    #[cold]
    fn wake_first(&self) {
        let open = self.wake_queue.take(|client| !client.is_killed());
        if let Some(client) = open {
            client.wake();
        }
    }

    /// Wakes all of them: a task that ends while it is woken passes nothing on.
    pub(crate) fn wake_all_in_turn(&self) {
        while !self.wake_queue.is_empty() {
            self.wake_first();
        }
    }
}

/// The tasks that one message wakes at once: together they run for a third of a millisecond, and a
/// request that comes meanwhile waits for them twice.
const WAKES_AT_ONCE: usize = 16;
