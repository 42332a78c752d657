//! The room of messages that were read, for those to come: a world sends thousands.

/// Empty buffers.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// An empty one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// A message was read: its room is for another one.
    pub(crate) fn recycle(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() > 0 && self.0.len() < BUFFERS_MAX {
            bytes.clear();
            self.0.push(bytes);
        }
    }
}

/// More than are under way at once.
const BUFFERS_MAX: usize = 64;
