//! Histories written by hand, for tests of checkers: a line per event, times in milliseconds.

use std::time::Duration;

use crate::fault::{Crash, Who};
use crate::history::{Entry, Event, History};
use crate::span::SimTime;

/// A history under way: five nodes, four clients, two keys, a minute.
#[derive(Clone, Debug)]
pub(crate) struct Story(pub(crate) History);

pub(crate) fn ms(ms: u64) -> SimTime {
    Duration::from_millis(ms).into()
}

impl Story {
    pub(crate) fn new() -> Self {
        Self(History {
            nodes: 5,
            clients: 4,
            end: ms(60_000),
            keys: vec!["a".into(), "b".into()],
            ..History::default()
        })
    }

    pub(crate) fn at(mut self, at: u64, event: Event) -> Self {
        self.0.entries.push(Entry { at: ms(at), event });
        self
    }

    /// Brings the events into the order of time; those of one moment stay as they were told.
    pub(crate) fn sorted(mut self) -> Self {
        self.0.entries.sort_by_key(|entry| entry.at);
        self
    }

    pub(crate) fn calls(self, at: u64, client: u8, lock: u32) -> Self {
        let key = 0;
        self.at(at, Event::Calls { client, lock, key })
    }

    /// The attempt has the number of the lock.
    pub(crate) fn acquired(
        self,
        at: u64,
        client: u8,
        lock: u32,
        until: u64,
        fencing: Option<u64>,
    ) -> Self {
        let event = Event::Acquired {
            client,
            lock,
            key: 0,
            attempt: lock,
            fencing,
            valid_until: ms(until),
        };
        self.at(at, event)
    }

    /// A lock that is called for a millisecond before it is held.
    pub(crate) fn held(self, client: u8, lock: u32, from: u64, until: u64) -> Self {
        self.calls(from.saturating_sub(1), client, lock)
            .acquired(from, client, lock, until, None)
    }

    pub(crate) fn extended(self, at: u64, client: u8, lock: u32, until: u64) -> Self {
        let event = Event::Validity {
            client,
            lock,
            valid_until: ms(until),
            is_extension: true,
        };
        self.at(at, event)
    }

    pub(crate) fn releases(self, at: u64, client: u8, lock: u32) -> Self {
        let is_left = false;
        self.at(
            at,
            Event::Releases {
                client,
                lock,
                is_left,
            },
        )
    }

    pub(crate) fn lost(self, at: u64, client: u8, lock: u32) -> Self {
        let why = "expired";
        self.at(at, Event::Lost { client, lock, why })
    }

    pub(crate) fn released(self, at: u64, client: u8, lock: u32, confirmed: u8) -> Self {
        self.at(
            at,
            Event::Released {
                client,
                lock,
                confirmed,
            },
        )
    }

    pub(crate) fn fails(self, at: u64, client: u8, lock: u32) -> Self {
        let why = "busy";
        self.at(at, Event::Failed { client, lock, why })
    }

    pub(crate) fn wrote(self, at: u64, lock: u32, fencing: Option<u64>, is_accepted: bool) -> Self {
        let event = Event::Wrote {
            client: 0,
            lock,
            key: 0,
            fencing,
            is_accepted,
        };
        self.at(at, event)
    }

    pub(crate) fn granted(self, at: u64, node: u8, attempt: u32, ends: u64) -> Self {
        self.counted(at, node, attempt, ends, 0)
    }

    pub(crate) fn counted(self, at: u64, node: u8, attempt: u32, ends: u64, counter: u64) -> Self {
        let event = Event::Granted {
            node,
            key: 0,
            attempt,
            client: 0,
            counter,
            ends: ms(ends),
        };
        self.at(at, event)
    }

    /// Granted by these nodes at once.
    pub(crate) fn votes(self, at: u64, nodes: &[u8], attempt: u32, ends: u64) -> Self {
        nodes
            .iter()
            .fold(self, |story, node| story.granted(at, *node, attempt, ends))
    }

    pub(crate) fn prolonged(self, at: u64, node: u8, attempt: u32, ends: u64) -> Self {
        let event = Event::Extended {
            node,
            key: 0,
            attempt,
            ends: ms(ends),
        };
        self.at(at, event)
    }

    pub(crate) fn restored(self, at: u64, node: u8, attempt: u32, ends: u64) -> Self {
        let event = Event::Restored {
            node,
            key: 0,
            attempt,
            ends: ms(ends),
        };
        self.at(at, event)
    }

    pub(crate) fn freed(self, at: u64, node: u8, attempt: u32) -> Self {
        let key = 0;
        self.at(at, Event::Freed { node, key, attempt })
    }

    pub(crate) fn told(self, at: u64, node: u8, attempt: u32) -> Self {
        let event = Event::Answered {
            node,
            client: 0,
            attempt,
            is_late: false,
        };
        self.at(at, event)
    }

    pub(crate) fn untold(self, at: u64, node: u8, attempt: u32) -> Self {
        let event = Event::Unanswered {
            node,
            client: 0,
            attempt,
        };
        self.at(at, event)
    }

    pub(crate) fn down(self, at: u64, node: u8, how: Crash) -> Self {
        self.at(at, Event::Down { node, how })
    }

    pub(crate) fn starts(self, at: u64, node: u8, is_quarantined: bool) -> Self {
        self.starts_as(at, node, is_quarantined, "start-after-crash")
    }

    pub(crate) fn starts_as(
        self,
        at: u64,
        node: u8,
        is_quarantined: bool,
        reason: &'static str,
    ) -> Self {
        let event = Event::Started {
            node,
            is_quarantined,
            reason,
        };
        self.at(at, event)
    }

    pub(crate) fn serves(self, at: u64, node: u8) -> Self {
        self.at(at, Event::Serving { node })
    }

    pub(crate) fn fault(self, at: u64, text: &str) -> Self {
        self.at(at, Event::Fault(text.into()))
    }

    pub(crate) fn stopped(self, at: u64, who: Who, until: u64) -> Self {
        let event = Event::Stopped {
            who,
            how: "pause",
            until: ms(until),
        };
        self.at(at, event)
    }
}
