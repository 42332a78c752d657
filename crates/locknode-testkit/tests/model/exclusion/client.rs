//! A client of the model: what it is at, as far as the nodes are not concerned.

/// One client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// Attempts begun.
    pub(crate) begun: u8,
    /// Attempts left.
    pub(crate) tries: u8,
    /// Extensions left.
    pub(crate) extends: u8,
}

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing, or the last attempt is over.
    Idle,
    /// The nodes were asked `age` ticks ago.
    Acquiring { age: u8 },
    /// It believes that it holds the lock, for `left` ticks more.
    Held {
        left: u8,
        /// The nodes were asked for more time so many ticks ago.
        extension: Option<u8>,
    },
}

impl Client {
    /// The attempt that it is at.
    pub(crate) fn attempt(&self) -> Option<u8> {
        (self.phase != Phase::Idle).then(|| self.begun - 1)
    }

    /// The extension has failed; the lock is what it was.
    pub(crate) fn end_extension(&mut self) {
        if let Phase::Held { extension, .. } = &mut self.phase {
            *extension = None;
        }
    }

    pub(crate) fn is_holder(&self) -> bool {
        matches!(self.phase, Phase::Held { .. })
    }
}
