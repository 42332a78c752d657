//! What a history shows so far: how nodes and clients are, what happened in numbers, and whether two clients ever held the lock
//! at once. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use locknode_testkit::history::{Entry, Event, KeyNo, LockNo};
use locknode_testkit::{Fault, Links, Members, SimTime, Way, Who};

use crate::figures::counted;

/// How a run stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) nodes: Vec<NodeSeen>,
    pub(super) clients: Vec<ClientSeen>,
    pub(super) acquired: u64,
    pub(super) lost: u64,
    pub(super) refused_writes: u64,
    kinds: BTreeMap<&'static str, u64>,
    /// The first time that two held it.
    pub(super) first_overlap: Option<(SimTime, u8, u8)>,
    overlaps: u64,
}

/// A node, but for what it shows itself.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeSeen {
    pub(super) still_until: SimTime,
    /// To whom it granted a lock last, and until when.
    pub(super) grant: Option<(u8, SimTime)>,
    pub(super) cut_from: Members,
    pub(super) late_by: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ClientSeen {
    pub(super) state: ClientState,
    pub(super) still_until: SimTime,
    pub(super) acquired: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientState {
    #[default]
    Idle,
    Waits,
    Holds(Belief),
    Dead,
}

/// What a client that holds a lock believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Belief {
    lock: LockNo,
    key: KeyNo,
    pub(super) until: SimTime,
    pub(super) fencing: Option<u64>,
}

impl Tally {
    pub(super) fn new(nodes: u8, clients: u8) -> Self {
        Self {
            nodes: vec![NodeSeen::default(); usize::from(nodes)],
            clients: vec![ClientSeen::default(); usize::from(clients)],
            ..Self::default()
        }
    }

    /// Takes what happened next.
    pub(super) fn take(&mut self, entry: &Entry) {
        match entry.event {
            Event::Fault(ref text) => {
                if let Ok(fault) = Fault::parse(text) {
                    self.count(&fault);
                    self.links(&fault);
                }
            }
            Event::Down { node, .. } | Event::Freed { node, .. } => {
                self.node(node, |it| it.grant = None);
            }
            Event::Stopped { who, until, .. } => match who {
                Who::Node(node) => self.node(node, |it| it.still_until = until),
                Who::Client(client) => self.client(client, |it| it.still_until = until),
            },
            Event::Granted {
                node, client, ends, ..
            } => self.node(node, |it| it.grant = Some((client, ends))),
            Event::Extended { node, ends, .. } => self.node(node, |it| {
                it.grant = it.grant.map(|(client, _)| (client, ends));
            }),
            Event::Calls { client, .. } => self.client(client, |it| {
                if it.belief(entry.at).is_none() {
                    it.state = ClientState::Waits;
                }
            }),
            Event::Acquired {
                client,
                lock,
                key,
                fencing,
                valid_until,
                ..
            } => {
                let until = valid_until;
                let belief = Belief {
                    lock,
                    key,
                    until,
                    fencing,
                };
                self.acquires(entry.at, client, belief);
            }
            Event::Validity {
                client,
                lock,
                valid_until,
                ..
            } => self.client(client, |it| {
                if let Some(belief) = it.holds(lock) {
                    belief.until = valid_until;
                }
            }),
            Event::Failed { client, .. } => self.client(client, |it| {
                if it.state == ClientState::Waits {
                    it.state = ClientState::Idle;
                }
            }),
            Event::Lost { client, lock, .. } => {
                self.lost += 1;
                self.client(client, |it| it.stops(lock));
            }
            Event::Releases { client, lock, .. } => self.client(client, |it| it.stops(lock)),
            Event::ClientDown { client } => self.client(client, |it| it.state = ClientState::Dead),
            Event::ClientStarted { client } => {
                self.client(client, |it| it.state = ClientState::Idle);
            }
            Event::Wrote {
                is_accepted: false, ..
            } => self.refused_writes += 1,
            _ => {}
        }
    }

    /// What happened, in a line.
    pub(super) fn line(&self) -> String {
        let mut line = format!("acquired {}", counted(self.acquired, "time"));
        if self.lost > 0 {
            line.push_str(&format!(", lost {}", counted(self.lost, "time")));
        }
        let faults = self.faults().unwrap_or("no faults yet".to_owned());
        format!("{line}; {faults}")
    }

    /// That two clients held the lock at once, if they did.
    pub(super) fn overlap(&self) -> Option<String> {
        let (at, one, other) = self.first_overlap?;
        Some(format!(
            "TWO CLIENTS HELD IT AT ONCE, {}; first at {:.3}s: clients {one} and {other}",
            counted(self.overlaps, "time"),
            at.since(SimTime::ZERO).as_secs_f64()
        ))
    }

    /// The faults so far, `12 crashes, 9 partitions`, if there were any.
    pub(super) fn faults(&self) -> Option<String> {
        let faults = KINDS.iter().filter_map(|kind| {
            let count = self.kinds.get(kind).filter(|count| **count > 0)?;
            Some(counted(*count, kind))
        });
        let faults: Vec<String> = faults.collect();
        (!faults.is_empty()).then(|| faults.join(", "))
    }

    fn count(&mut self, fault: &Fault) {
        let (kind, by) = match *fault {
            // What is taken back is no fault.
            Fault::Delay(_, Duration::ZERO) | Fault::Rate(_, 0) => return,
            Fault::Crash(..) => ("crash", 1),
            Fault::Cut(..) => ("partition", 1),
            Fault::Drop(_, Way::Requests, count) => ("lost request", count),
            Fault::Drop(_, _, count) => ("lost reply", count),
            Fault::Refuse(_, _, count) => ("refused request", count),
            Fault::Delay(..) | Fault::Late(..) | Fault::Hold(..) => ("delay", 1),
            Fault::Pause(..) | Fault::Suspend(..) | Fault::Freeze(..) => ("pause", 1),
            Fault::CrashClient(_) => ("dead client", 1),
            Fault::Reset(_) => ("connection reset", 1),
            Fault::Rate(..) | Fault::Slew(..) | Fault::Noise(..) => ("wrong clock", 1),
            Fault::WallJump(..) => ("wrong clock", 1),
            _ => return,
        };
        *self.kinds.entry(kind).or_default() += u64::from(by);
    }

    /// Notes what is wrong with links.
    fn links(&mut self, fault: &Fault) {
        let links = match fault {
            Fault::Calm => Links::ALL,
            fault => fault.links().unwrap_or(Links::between([], [])),
        };
        for node in links.nodes.iter() {
            self.node(node, |it| match fault {
                Fault::Cut(links, _) => {
                    it.cut_from = it.cut_from.iter().chain(links.clients.iter()).collect();
                }
                Fault::Heal(links) => {
                    let kept = it.cut_from.iter().filter(|it| !links.clients.has(*it));
                    it.cut_from = kept.collect();
                }
                Fault::Delay(_, span) => it.late_by = *span,
                Fault::Calm => (it.cut_from, it.late_by) = (Members::NONE, Duration::ZERO),
                _ => {}
            });
        }
    }

    fn acquires(&mut self, at: SimTime, client: u8, belief: Belief) {
        self.acquired += 1;
        let other = (0u8..).zip(&self.clients).find(|(other, it)| {
            *other != client && it.belief(at).is_some_and(|it| it.key == belief.key)
        });
        if let Some((other, _)) = other {
            self.overlaps += 1;
            self.first_overlap.get_or_insert((at, other, client));
        }
        self.client(client, |it| {
            it.acquired += 1;
            it.state = ClientState::Holds(belief);
        });
    }

    fn node(&mut self, node: u8, change: impl FnOnce(&mut NodeSeen)) {
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            change(node);
        }
    }

    fn client(&mut self, client: u8, change: impl FnOnce(&mut ClientSeen)) {
        if let Some(client) = self.clients.get_mut(usize::from(client)) {
            change(client);
        }
    }
}

impl ClientSeen {
    /// What it believes now.
    pub(super) fn belief(&self, now: SimTime) -> Option<Belief> {
        match self.state {
            ClientState::Holds(belief) if belief.until > now => Some(belief),
            _ => None,
        }
    }

    fn stops(&mut self, lock: LockNo) {
        if self.holds(lock).is_some() {
            self.state = ClientState::Idle;
        }
    }

    fn holds(&mut self, lock: LockNo) -> Option<&mut Belief> {
        match &mut self.state {
            ClientState::Holds(belief) if belief.lock == lock => Some(belief),
            _ => None,
        }
    }
}

/// The kinds of faults that are counted, by the names that people know, in the order of their weight.
const KINDS: [&str; 10] = [
    "crash",
    "partition",
    "lost reply",
    "lost request",
    "refused request",
    "delay",
    "pause",
    "dead client",
    "connection reset",
    "wrong clock",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn faults_are_counted_under_their_usual_names() {
        let mut tally = Tally::new(3, 2);
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
            "refuse client all node 1 oom 2",
        ] {
            let event = Event::Fault(text.into());
            tally.take(&Entry {
                at: SimTime::ZERO,
                event,
            });
        }
        let want = "2 crashes, 1 partition, 3 lost replies, 2 refused requests, 1 delay";
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
        let mut tally = Tally::new(3, 2);
        let mut take = |ms, event| {
            tally.take(&Entry { at: at(ms), event });
            tally.first_overlap
        };
        assert_eq!(take(1, acquired(0, 0, 100)), None);
        assert_eq!(take(100, acquired(1, 1, 200)), None);
        let releases = Event::Releases {
            client: 1,
            lock: 1,
            is_left: false,
        };
        assert_eq!(take(110, releases), None);
        assert_eq!(take(120, acquired(0, 2, 220)), None);
        assert_eq!(take(130, acquired(1, 3, 230)), Some((at(130), 0, 1)));
        assert!(tally.overlap().is_some());
    }
}
