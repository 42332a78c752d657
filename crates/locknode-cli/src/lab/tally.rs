//! What has happened so far, in numbers, and whether two clients ever held the lock at once. Pure.

use locknode_testkit::history::{Entry, Event, KeyNo, LockNo};
use locknode_testkit::{Fault, SimTime};

/// Numbers of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) acquired: u64,
    pub(super) failed: u64,
    pub(super) lost: u64,
    pub(super) refused_writes: u64,
    kinds: Vec<(&'static str, u64)>,
    /// What each client believes now.
    beliefs: Vec<Option<Belief>>,
    /// The first time that two held it.
    pub(super) first_overlap: Option<(SimTime, u8, u8)>,
    pub(super) overlaps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Belief {
    lock: LockNo,
    key: KeyNo,
    until: SimTime,
}

impl Tally {
    pub(super) fn new(clients: u8) -> Self {
        Self {
            beliefs: vec![None; usize::from(clients)],
            ..Self::default()
        }
    }

    pub(super) fn take(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Fault(text) => {
                if let Ok(fault) = Fault::parse(text) {
                    self.count(&fault);
                }
            }
            Event::Acquired {
                client,
                lock,
                key,
                valid_until,
                ..
            } => {
                self.acquired += 1;
                let belief = Belief {
                    lock: *lock,
                    key: *key,
                    until: *valid_until,
                };
                self.believes(entry.at, *client, belief);
            }
            Event::Validity {
                client,
                lock,
                valid_until,
                ..
            } => {
                let belief = self
                    .beliefs
                    .get_mut(usize::from(*client))
                    .and_then(Option::as_mut);
                if let Some(belief) = belief.filter(|belief| belief.lock == *lock) {
                    belief.until = *valid_until;
                }
            }
            Event::Failed { .. } => self.failed += 1,
            Event::Lost { client, .. } => {
                self.lost += 1;
                self.stops(*client);
            }
            Event::Releases { client, .. } | Event::ClientDown { client } => self.stops(*client),
            Event::Wrote {
                is_accepted: false, ..
            } => self.refused_writes += 1,
            _ => {}
        }
    }

    /// What happened, in two lines; whether a line is bad news.
    pub(super) fn lines(&self) -> [(String, bool); 2] {
        let mut first = format!("acquired {}", counted(self.acquired, "time"));
        if self.lost > 0 {
            first.push_str(&format!(", lost {}", counted(self.lost, "time")));
        }
        first.push_str(&format!(
            "; {}",
            self.faults().unwrap_or("no faults yet".to_owned())
        ));
        let second = match self.first_overlap {
            None => ("two clients held it at once: never".to_owned(), false),
            Some((at, one, other)) => (
                format!(
                    "TWO CLIENTS HELD IT AT ONCE, {}; first at {:.3}s: clients {one} and {other}",
                    counted(self.overlaps, "time"),
                    at.since(SimTime::ZERO).as_secs_f64()
                ),
                true,
            ),
        };
        [(first, false), second]
    }

    /// The faults so far, `12 crashes, 9 partitions`; none when there were none.
    pub(super) fn faults(&self) -> Option<String> {
        let told = KINDS.iter().filter_map(|(kinds, name)| {
            let of = |kind: &&str| {
                let found = self.kinds.iter().find(|(known, _)| known == kind);
                found.map_or(0, |(_, count)| *count)
            };
            let count: u64 = kinds.iter().map(of).sum();
            (count > 0).then(|| match (count, name.strip_suffix("sh")) {
                (2.., Some(_)) => format!("{count} {name}es"),
                _ => counted(count, name),
            })
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    fn count(&mut self, fault: &Fault) {
        let (kind, by) = match fault {
            // What is taken back is no fault.
            Fault::Delay(_, span) if span.is_zero() => return,
            Fault::Rate(_, 0) => return,
            Fault::Drop(_, _, count) => (fault.kind(), u64::from(*count)),
            _ => (fault.kind(), 1),
        };
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += by,
            None => self.kinds.push((kind, by)),
        }
    }

    fn believes(&mut self, at: SimTime, client: u8, belief: Belief) {
        let other = (0u8..).zip(&self.beliefs).find(|(other, it)| {
            *other != client && it.is_some_and(|it| it.key == belief.key && it.until > at)
        });
        if let Some((other, _)) = other {
            self.overlaps += 1;
            self.first_overlap.get_or_insert((at, other, client));
        }
        if let Some(slot) = self.beliefs.get_mut(usize::from(client)) {
            *slot = Some(belief);
        }
    }

    fn stops(&mut self, client: u8) {
        if let Some(slot) = self.beliefs.get_mut(usize::from(client)) {
            *slot = None;
        }
    }
}

/// The kinds of faults under the names that people know, in the order of their weight.
const KINDS: [(&[&str], &str); 9] = [
    (
        &[
            "kill",
            "power-loss",
            "power-loss-all",
            "torn-write",
            "disk-lost",
            "rollback",
            "moved",
            "clean-stop",
        ],
        "crash",
    ),
    (&["partition", "one-way-partition"], "partition"),
    (&["drop-replies"], "lost reply"),
    (&["drop-requests"], "lost request"),
    (&["delay", "late", "hold"], "delay"),
    (
        &["node-pause", "client-pause", "node-suspend", "node-freeze"],
        "pause",
    ),
    (&["client-crash"], "dead client"),
    (&["reset"], "connection reset"),
    (
        &["clock-rate", "clock-slew", "clock-noise", "wall-jump"],
        "wrong clock",
    ),
];

/// `1 reply`, `2 replies`.
pub(super) fn counted(count: impl Into<u64>, what: &str) -> String {
    let count = count.into();
    match (count, what.strip_suffix("ly")) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}lies"),
        (_, None) => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn faults_are_counted_under_their_usual_names() {
        let mut tally = Tally::new(2);
        assert_eq!(tally.faults(), None);
        for text in [
            "crash node 1 kill",
            "crash node 2 clean-stop",
            "restart node 1",
            "drop client all node 1 replies 3",
            "delay client 0 node 1 3ms",
            "delay client 0 node 1 0s",
            "cut client 0 node 1 requests",
            "heal client 0 node 1",
        ] {
            let event = Event::Fault(text.into());
            tally.take(&Entry {
                at: SimTime::ZERO,
                event,
            });
        }
        let want = "2 crashes, 1 partition, 3 lost replies, 1 delay";
        assert_eq!(tally.faults().as_deref(), Some(want));
    }

    #[test]
    fn two_beliefs_at_once_are_seen_when_the_second_begins() {
        let at = |ms| SimTime::from(Duration::from_millis(ms));
        let acquired = |client, lock, until| Event::Acquired {
            client,
            lock,
            key: 0,
            attempt: lock,
            fencing: None,
            valid_until: at(until),
        };
        let mut tally = Tally::new(2);
        let mut take = |ms, event| {
            tally.take(&Entry { at: at(ms), event });
            tally.first_overlap
        };
        assert_eq!(take(1, acquired(0, 0, 100)), None);
        assert_eq!(take(100, acquired(1, 1, 200)), None);
        assert_eq!(
            take(
                110,
                Event::Releases {
                    client: 1,
                    lock: 1,
                    is_left: false
                }
            ),
            None
        );
        assert_eq!(take(120, acquired(0, 2, 220)), None);
        assert_eq!(take(130, acquired(1, 3, 230)), Some((at(130), 0, 1)));
        assert!(tally.lines()[1].1);
    }
}
