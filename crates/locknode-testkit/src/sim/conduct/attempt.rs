//! What is known of an attempt, and of the connections over which it was asked for.

use std::collections::VecDeque;
use std::time::Duration;

use redlock_proto::{OpId, Time};

use super::wire::Ask;

/// The connection to a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) is_open: bool,
    pub(super) has_heard: bool,
    /// What has not been answered, oldest first.
    pub(super) asked: VecDeque<Asked>,
    pub(super) input: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) attempt: u32,
    pub(super) ask: Ask,
    pub(super) at: Time,
    pub(super) turn: u32,
}

/// What is known of an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) key: Vec<u8>,
    pub(super) token: Vec<u8>,
    pub(super) part: Part,
    /// When it was asked for, and for how long.
    pub(super) since: Time,
    pub(super) ttl: Duration,
    /// The TTL of the last extension.
    pub(super) last_ttl: Duration,
    pub(super) is_written_back: bool,
    /// The last extension that succeeded.
    pub(super) confirmed: Option<Confirmed>,
    pub(super) valid_until: Time,
    /// How often it is to be renewed while it is held, if it is.
    pub(super) renews: Option<Duration>,
    /// Since when that could have been done and was not.
    pub(super) unrenewed_since: Option<Time>,
    /// Since when that is so for too long.
    pub(super) overdue_since: Option<Time>,
    pub(super) views: Vec<NodeView>,
}

/// What an attempt is to its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Nobody knows yet.
    #[default]
    Open,
    /// It is the lock of a caller.
    Held(OpId),
    /// It was, or was another client's; it is left to its TTL, and not released before this.
    Left(Time),
    /// It is to be released, since this turn.
    Over(Option<OpId>, u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Confirmed {
    pub(super) until: Time,
    pub(super) ttl: Duration,
    /// The turn in which the client was told. Time would not do: a client whose process was stopped then goes on at the same
    /// moment of its clock.
    pub(super) turn: u32,
}

/// What is known of a node and an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeView {
    /// When it granted it over the present connection, and its counter.
    pub(super) granted: Option<(Time, u64)>,
    pub(super) accepted: Option<u64>,
    /// How far its last yes over the present connection reaches, and the TTL of that.
    pub(super) reach: Option<(Time, Duration)>,
    /// The extension, by its reach and TTL, that it had no lock for.
    pub(super) lacks: Option<(Time, Duration)>,
    pub(super) is_heal_due: bool,
    /// It said no to the last extension.
    pub(super) denies: bool,
    /// The shortest extension that was under way when its connection ended.
    pub(super) doubt: Option<Duration>,
    /// Until when it may hold it.
    pub(super) may_hold: Option<Time>,
    pub(super) release: Release,
    pub(super) was_freed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Release {
    #[default]
    No,
    /// Asked for over the present connection.
    Asked,
    Answered,
}

impl Attempt {
    /// How many nodes are behind a lock that is valid so long.
    pub(super) fn behind(&self, until: Time) -> usize {
        let is_behind = |view: &&NodeView| {
            view.reach.is_some_and(|(reach, ttl)| {
                reach >= until && view.doubt.is_none_or(|doubt| doubt >= ttl)
            })
        };
        self.views.iter().filter(is_behind).count()
    }

    /// How many nodes hold this fencing token.
    pub(super) fn credited(&self, fencing: u64) -> usize {
        let is_credited = |view: &&NodeView| match view.granted {
            Some((_, counter)) if counter < fencing => view.accepted == Some(fencing),
            Some((_, counter)) => counter == fencing,
            None => false,
        };
        self.views.iter().filter(is_credited).count()
    }

    /// How many nodes told a counter.
    pub(super) fn counting(&self) -> usize {
        let counts = |view: &&NodeView| view.granted.is_some_and(|(_, counter)| counter > 0);
        self.views.iter().filter(counts).count()
    }
}

impl Confirmed {
    /// Whether an extension with this reach and TTL was one of its round, or of a later one.
    pub(super) fn has(self, reach: Time, ttl: Duration) -> bool {
        reach >= self.until && ttl == self.ttl
    }
}
