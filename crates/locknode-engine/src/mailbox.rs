//! What a connection is sent that it did not ask for just now: messages, invalidations, and replies
//! to commands that waited.
//!
//! A message to ten thousand subscribers waits in ten thousand mailboxes, and its bytes are in
//! memory once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::time::Time;

/// Bytes for one connection, from any thread; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    has_mail: AtomicBool,
    /// `None` until something is sent: most connections are never sent anything.
    waiting: Mutex<Option<Box<Waiting>>>,
}

/// What the connection has not taken yet.
#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<Arc<[u8]>>,
    /// What they take, as the limits count it.
    size: usize,
    /// Since when `size` was found above the soft limit.
    over_since: Option<Time>,
}

/// A mailbox after something was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// What the piece takes.
    pub(crate) size: usize,
    /// What all pieces take.
    pub(crate) total: usize,
    /// Whether nothing waited before, so that the connection's task may be asleep.
    pub(crate) was_empty: bool,
}

impl Mailbox {
    /// Adds a piece, unless `is_closed`.
    pub(crate) fn add(&self, piece: Arc<[u8]>, is_closed: &AtomicBool) -> Option<Added> {
        let size = piece.len() + PIECE_SIZE;
        let mut waiting = self.waiting.lock();
        if is_closed.load(Ordering::Relaxed) {
            return None;
        }
        let waiting = waiting.get_or_insert_default();
        let was_empty = waiting.pieces.is_empty();
        waiting.pieces.push_back(piece);
        waiting.size += size;
        self.has_mail.store(true, Ordering::Release);
        Some(Added {
            size,
            total: waiting.size,
            was_empty,
        })
    }

    /// Returns whether anything waits.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Returns what all pieces take.
    pub(crate) fn size(&self) -> usize {
        self.waiting.lock().as_ref().map_or(0, |it| it.size)
    }

    /// Moves what waits to the end of `out` until that has `len_max` bytes or more, and returns what
    /// it took.
    pub(crate) fn take(&self, out: &mut Vec<u8>, len_max: usize) -> usize {
        let mut slot = self.waiting.lock();
        let Some(waiting) = slot.as_mut() else {
            return 0;
        };
        let before = waiting.size;
        while out.len() < len_max
            && let Some(piece) = waiting.pieces.pop_front()
        {
            waiting.size -= piece.len() + PIECE_SIZE;
            out.extend_from_slice(&piece);
        }
        let taken = before - waiting.size;
        if waiting.pieces.is_empty() {
            self.has_mail.store(false, Ordering::Release);
            waiting.over_since = None;
            if waiting.pieces.capacity() > PIECES_KEPT {
                *slot = None;
            }
        }
        taken
    }

    /// Discards what waits, and returns what it took.
    pub(crate) fn clear(&self) -> usize {
        let waiting = self.waiting.lock().take();
        self.has_mail.store(false, Ordering::Release);
        waiting.map_or(0, |it| it.size)
    }

    /// Returns since when more than `soft` has waited, as far as calls of this have seen.
    pub(crate) fn over_since(&self, soft: usize, now: Time) -> Option<Time> {
        let mut slot = self.waiting.lock();
        let waiting = slot.as_mut()?;
        waiting.over_since = if waiting.size > soft {
            waiting.over_since.or(Some(now))
        } else {
            None
        };
        waiting.over_since
    }
}

/// What a piece takes besides its bytes: its place in the queue, its counts, and the allocator's
/// header.
const PIECE_SIZE: usize = 48;

/// The queue keeps room for this many pieces.
const PIECES_KEPT: usize = 32;
