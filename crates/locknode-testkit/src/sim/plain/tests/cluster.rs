//! Plain clients and real engines in one place: bytes arrive at once, unless a test withholds them.

use std::collections::BTreeMap;
use std::time::Duration;

use locknode_engine::{Engine, EngineConfig, Moment, Peer, Session, Time as NodeTime};
use locknode_resp::{Decoder, Limits};
use redlock_proto::{Drift, Time};

use crate::bug::Bug;
use crate::random::Random;
use crate::sim::by_number::ByNumber;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::{Form, PlainClient, PlainTerms};

/// Nodes and clients.
pub(super) struct Cluster {
    now: Duration,
    engines: ByNumber<Engine>,
    clients: ByNumber<Side>,
}

/// What lies between one client and one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    #[default]
    Open,
    /// Replies stay on the way until it is open.
    RepliesHeld,
    /// Requests get lost.
    Silent,
    /// Connections are refused.
    Refused,
}

pub(super) struct Side {
    pub(super) client: PlainClient,
    /// By how much its clock is behind.
    pub(super) behind: Duration,
    lines: ByNumber<Line>,
    /// All requests that reached a node, as words.
    asked: Vec<String>,
    said: Vec<String>,
    holds: BTreeMap<Handle, Time>,
    next_lock: Handle,
    /// The fencing token and the token of the last lock.
    pub(super) fence: (u64, String),
}

/// The connection of one client to one node.
#[derive(Default)]
struct Line {
    way: Way,
    session: Option<Session>,
    held: Vec<u8>,
}

impl Cluster {
    pub(super) fn new(nodes: u8, clients: u64, bug: Option<Bug>) -> Self {
        let sides = (0..clients).map(|seed| Side {
            client: PlainClient::new(
                nodes,
                DRIFT,
                ms(100),
                Random::new(seed + 1),
                Form::Token,
                bug,
            ),
            behind: Duration::ZERO,
            lines: (0..nodes).map(|_| Line::default()).collect(),
            asked: Vec::new(),
            said: Vec::new(),
            holds: BTreeMap::new(),
            next_lock: 0,
            fence: (0, String::new()),
        });
        let now = ms(10_000);
        Self {
            now,
            engines: (0..nodes).map(|_| engine(now)).collect(),
            clients: sides.collect(),
        }
    }

    /// Begins to acquire, and does what can be done at once.
    pub(super) fn acquire(&mut self, client: u8, terms: PlainTerms) -> Handle {
        let now = self.clock(client);
        let side = &mut self.clients[client];
        let lock = side.next_lock;
        side.next_lock += 1;
        side.client.acquire(now, lock, terms);
        self.settle();
        lock
    }

    /// Acquires in one attempt what must be had at once, and hears no more of it.
    pub(super) fn acquire_now(&mut self, client: u8) -> Handle {
        let lock = self.acquire(client, terms(1));
        let said = self.said(client);
        assert!(self.holds(client), "{said:?}");
        lock
    }

    pub(super) fn extend(&mut self, client: u8, lock: Handle, ttl: Duration) {
        let now = self.clock(client);
        self.clients[client].client.extend(now, lock, ttl);
        self.settle();
    }

    pub(super) fn release(&mut self, client: u8, lock: Handle) {
        let now = self.clock(client);
        let side = &mut self.clients[client];
        side.client.release(now, lock);
        side.holds.remove(&lock);
        self.settle();
    }

    pub(super) fn side(&mut self, client: u8) -> &mut Side {
        &mut self.clients[client]
    }

    /// Time passes, and what is due is done.
    pub(super) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        loop {
            let dues = self.clients.iter().map(|side| {
                let due = Duration::from_nanos(side.client.next_deadline().as_nanos());
                due.saturating_add(side.behind)
            });
            self.now = dues.min().unwrap_or(end).clamp(self.now, end);
            for side in self.clients.iter_mut() {
                let now = Time::ZERO + (self.now - side.behind);
                side.client.on_time(now);
                assert!(side.client.next_deadline() > now, "nothing is left due");
            }
            self.settle();
            if self.now == end {
                return;
            }
        }
    }

    pub(super) fn set_ways<const N: usize>(&mut self, client: u8, ways: [Way; N]) {
        for (node, way) in (0..).zip(ways) {
            self.clients[client].lines[node].way = way;
            match way {
                Way::Refused => self.break_connection(client, node),
                Way::Open => {
                    let held = std::mem::take(&mut self.clients[client].lines[node].held);
                    self.deliver(client, node, &held);
                }
                _ => {}
            }
        }
        self.settle();
    }

    /// A node starts again, empty, and serves at once.
    pub(super) fn restart(&mut self, node: u8) {
        self.engines[node] = engine(self.now);
        for client in self.numbers() {
            self.break_connection(client, node);
        }
        self.settle();
    }

    pub(super) fn deliver(&mut self, client: u8, node: u8, bytes: &[u8]) {
        let now = self.clock(client);
        if !bytes.is_empty() {
            self.clients[client].client.received(now, node, bytes);
        }
    }

    /// Somebody else says something to a node.
    pub(super) fn tell(&self, node: u8, words: &str) -> String {
        let now = moment(self.now);
        let engine = &self.engines[node];
        let mut session = engine.connect(Peer::default(), now.time).unwrap();
        let args: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let mut out = Vec::new();
        engine.batch(now).execute(&mut session, &args, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Somebody else acquires the key on a node, and releases it: the node's counter is ahead then.
    pub(super) fn raise_counter(&self, node: u8) {
        self.tell(node, "LOCK.ACQUIRE key other 1000");
        self.tell(node, "DEL key");
    }

    /// On how many nodes the key is.
    pub(super) fn keys(&self) -> usize {
        let nodes = (0_u8..).take(self.engines.len());
        let has_key = |node: &u8| self.tell(*node, "EXISTS key") == ":1\r\n";
        nodes.filter(has_key).count()
    }

    /// Whether the client believes in a lock.
    pub(super) fn holds(&self, client: u8) -> bool {
        let now = self.clock(client);
        let mut ends = self.clients[client].holds.values();
        ends.any(|valid_until| now < *valid_until)
    }

    pub(super) fn do_both_hold(&self) -> bool {
        self.holds(0) && self.holds(1)
    }

    /// What a client said since it was last asked, connections aside: the number of a lock and what became of it. Times
    /// are milliseconds of the client's clock, which begins at 10,000.
    pub(super) fn said(&mut self, client: u8) -> Vec<String> {
        std::mem::take(&mut self.clients[client].said)
    }

    /// What a client asked since this was last asked, by any node.
    pub(super) fn asked(&mut self, client: u8) -> Vec<String> {
        std::mem::take(&mut self.clients[client].asked)
    }

    pub(super) fn clock(&self, client: u8) -> Time {
        Time::ZERO + (self.now - self.clients[client].behind)
    }

    fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        (0_u8..).take(self.clients.len())
    }

    fn break_connection(&mut self, client: u8, node: u8) {
        let now = self.clock(client);
        let side = &mut self.clients[client];
        if side.lines[node].session.take().is_some() {
            side.lines[node].held.clear();
            side.client.disconnected(now, node);
        }
    }

    /// Everything that can happen at this moment.
    fn settle(&mut self) {
        while self.numbers().any(|client| self.turn(client)) {}
    }

    fn turn(&mut self, client: u8) -> bool {
        let mut is_busy = false;
        while let Some(notice) = self.clients[client].client.poll_notice() {
            is_busy = true;
            self.hear(client, notice);
        }
        for node in (0..).take(self.engines.len()) {
            let side = &mut self.clients[client];
            let bytes = std::mem::take(side.client.output(node).unwrap());
            if bytes.is_empty() || side.lines[node].way == Way::Silent {
                continue;
            }
            is_busy = true;
            let replies = self.execute(client, node, &bytes);
            let line = &mut self.clients[client].lines[node];
            match line.way {
                Way::RepliesHeld => line.held.extend(replies),
                _ => self.deliver(client, node, &replies),
            }
        }
        is_busy
    }

    fn hear(&mut self, client: u8, notice: ClientNotice) {
        let now = self.clock(client);
        let side = &mut self.clients[client];
        let ms = |time: Time| time.as_nanos() / 1_000_000;
        let (lock, what) = match notice {
            ClientNotice::Connect(node) => {
                let line = &mut side.lines[node];
                if line.way == Way::Refused {
                    return side.client.disconnected(now, node);
                }
                let time = moment(self.now).time;
                line.session = self.engines[node].connect(Peer::default(), time);
                return side.client.connected(now, node);
            }
            ClientNotice::Disconnect(node) => {
                side.lines[node].session = None;
                return side.lines[node].held.clear();
            }
            ClientNotice::Acquired {
                lock,
                token,
                fencing,
                valid_until,
            } => {
                side.holds.insert(lock, valid_until);
                side.fence = (fencing.unwrap(), String::from_utf8(token).unwrap());
                (lock, format!("acquired until {}", ms(valid_until)))
            }
            ClientNotice::Validity { lock, valid_until } => {
                side.holds.insert(lock, valid_until);
                (lock, format!("valid until {}", ms(valid_until)))
            }
            ClientNotice::Extended { lock, result } => match result {
                Ok(valid_until) => {
                    side.holds.insert(lock, valid_until);
                    (lock, format!("extended until {}", ms(valid_until)))
                }
                Err(why) => (lock, format!("not extended: {why}")),
            },
            ClientNotice::Lost { lock, why } => {
                side.holds.remove(&lock);
                (lock, format!("lost: {why}"))
            }
            ClientNotice::Failed { lock, why } => (lock, format!("failed: {why}")),
            ClientNotice::Released { lock, confirmed } => {
                (lock, format!("released by {confirmed}"))
            }
            other => panic!("{other:?}"),
        };
        side.said.push(format!("{} {what}", lock));
    }

    fn execute(&mut self, client: u8, node: u8, bytes: &[u8]) -> Vec<u8> {
        let side = &mut self.clients[client];
        let session = side.lines[node].session.as_mut().unwrap();
        let mut batch = self.engines[node].batch(moment(self.now));
        let (mut decoder, mut start, mut out) = (Decoder::new(), 0, Vec::new());
        let limits = Limits::default();
        while let Some(frame) = decoder.decode(&bytes[start..], &limits, true).unwrap() {
            let args: Vec<&[u8]> = frame.args().collect();
            batch.execute(session, &args, &mut out);
            let words = String::from_utf8(args.join(&b' ')).unwrap();
            side.asked.push(format!("{node}: {words}"));
            start += frame.consumed();
        }
        assert_eq!(start, bytes.len(), "whole requests");
        out
    }
}

pub(super) fn terms(tries: u32) -> PlainTerms {
    PlainTerms {
        key: (*b"key").into(),
        ttl: ms(1_000),
        timeout: ms(50),
        tries,
    }
}

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn engine(now: Duration) -> Engine {
    Engine::new(EngineConfig::new(7, "run"), moment(now))
}

fn moment(now: Duration) -> Moment {
    Moment {
        time: NodeTime::ZERO.saturating_add(now),
        ..Moment::default()
    }
}

/// Of a second, twelve milliseconds.
const DRIFT: Drift = Drift::new(10_000, ms(2));
