//! How much is searched, and what is wrong in it.

/// The scope of a search, and what is wrong in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Of a lock, in ticks.
    pub(crate) ttl: u8,
    /// What a client takes off the validity for clocks that differ, in ticks.
    pub(crate) drift: u8,
    /// Ticks that a restarted node grants nothing.
    pub(crate) quarantine: u8,
    /// How many times each client tries to get the lock.
    pub(crate) tries: &'static [u8],
    /// How many extensions each client begins.
    pub(crate) extends: &'static [u8],
    /// How many times a node crashes.
    pub(crate) crashes: u8,
    /// How many ticks a node counts that nobody else does.
    pub(crate) fast_ticks: u8,
    /// Whether clients hear of refusals. Off, a refusal is as good as no reply.
    pub(crate) refusals: bool,
    /// Whether replies to a round that is over still arrive.
    pub(crate) late_replies: bool,
    /// Whether what can make no difference any more is dropped.
    pub(crate) reduced: bool,
    /// Whether states that differ by names alone count as one. Off, a trace keeps the names that it began with.
    pub(crate) symmetric: bool,
    pub(crate) bug: Option<Bug>,
}

/// What can be wrong where the model hands something to the real code, or takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A node that restarted grants at once.
    NoQuarantine,
    /// A node that restarted waits for one tick less than the TTL.
    ShortQuarantine,
    /// The client takes nothing off the validity although a node's clock is fast.
    NoAllowance,
    /// The round is told that it began when the reply came.
    ValidityFromReply,
    /// A reply to an earlier attempt is said to belong to the present one.
    VotesKept,
    /// A release deletes the key whoever holds it.
    ReleaseWithoutCompare,
    /// An extension moves the deadline whoever holds the key.
    ExtendWithoutCompare,
}

impl Rules {
    pub(crate) fn tries(self, tries: &'static [u8]) -> Self {
        Self { tries, ..self }
    }

    pub(crate) fn extends(self, extends: &'static [u8]) -> Self {
        Self { extends, ..self }
    }

    pub(crate) fn crashes(self, crashes: u8) -> Self {
        Self { crashes, ..self }
    }

    /// Fast ticks, and an allowance for them.
    pub(crate) fn fast_ticks(self, fast_ticks: u8) -> Self {
        Self {
            fast_ticks,
            drift: fast_ticks,
            ..self
        }
    }

    pub(crate) fn refusals(self) -> Self {
        Self {
            refusals: true,
            ..self
        }
    }

    pub(crate) fn late_replies(self) -> Self {
        Self {
            late_replies: true,
            ..self
        }
    }

    /// Whether requests compare the token that they name.
    pub(crate) fn compares(&self) -> bool {
        !matches!(
            self.bug,
            Some(Bug::ReleaseWithoutCompare | Bug::ExtendWithoutCompare)
        )
    }

    /// The same, with those bugs planted that are nothing but another number.
    pub(crate) fn broken(self) -> Self {
        match self.bug {
            Some(Bug::NoQuarantine) => Self {
                quarantine: 0,
                ..self
            },
            Some(Bug::ShortQuarantine) => Self {
                quarantine: self.quarantine - 1,
                ..self
            },
            Some(Bug::NoAllowance) => Self { drift: 0, ..self },
            _ => self,
        }
    }
}
