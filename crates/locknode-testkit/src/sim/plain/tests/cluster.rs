//! Plain clients and real engines in one place: bytes arrive at once, unless a test withholds them.

use std::collections::BTreeMap;
use std::time::Duration;

use locknode_engine::{Engine, EngineConfig, Moment, Peer, Session, Time as NodeTime};
use locknode_resp::{Decoder, Limits};
use redlock_proto::{Drift, Time};

use crate::bug::Bug;
use crate::random::Random;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::{PlainClient, PlainTerms};

/// Nodes and clients.
pub(super) struct Cluster {
    now: Duration,
    engines: Vec<Engine>,
    clients: Vec<Side>,
    next_lock: Handle,
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

struct Side {
    client: PlainClient,
    /// By how much its clock is behind.
    behind: Duration,
    ways: Vec<Way>,
    sessions: Vec<Option<Session>>,
    held: Vec<Vec<u8>>,
    /// All requests that reached a node, as words.
    asked: Vec<String>,
    said: Vec<ClientNotice>,
    holds: BTreeMap<Handle, Time>,
}

impl Cluster {
    pub(super) fn new(nodes: u8, clients: u64, bug: Option<Bug>) -> Self {
        let count = usize::from(nodes);
        let sides = (0..clients).map(|seed| Side {
            client: PlainClient::new(nodes, DRIFT, ms(100), Random::new(seed + 1), bug),
            behind: Duration::ZERO,
            ways: vec![Way::Open; count],
            sessions: (0..count).map(|_| None).collect(),
            held: vec![Vec::new(); count],
            asked: Vec::new(),
            said: Vec::new(),
            holds: BTreeMap::new(),
        });
        Self {
            now: ms(10_000),
            engines: (0..nodes).map(|_| engine(ms(10_000))).collect(),
            clients: sides.collect(),
            next_lock: 0,
        }
    }

    /// Begins to acquire, and does what can be done at once.
    pub(super) fn acquire(&mut self, client: usize, terms: PlainTerms) -> Handle {
        let (now, lock) = (self.clock(client), self.next_lock);
        self.next_lock += 1;
        self.clients[client].client.acquire(now, lock, terms);
        self.settle();
        lock
    }

    /// Acquires in one attempt what must be had at once.
    pub(super) fn acquire_now(&mut self, client: usize) -> Handle {
        let lock = self.acquire(client, terms(1));
        assert!(self.holds(client), "{:?}", self.clients[client].said);
        lock
    }

    pub(super) fn extend(&mut self, client: usize, lock: Handle, ttl: Duration) {
        let now = self.clock(client);
        self.clients[client].client.extend(now, lock, ttl);
        self.settle();
    }

    pub(super) fn release(&mut self, client: usize, lock: Handle) {
        let now = self.clock(client);
        let side = &mut self.clients[client];
        side.client.release(now, lock);
        side.holds.remove(&lock);
        self.settle();
    }

    pub(super) fn leave(&mut self, client: usize, lock: Handle) {
        self.clients[client].client.leave(lock);
    }

    pub(super) fn client(&self, client: usize) -> &PlainClient {
        &self.clients[client].client
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
            for client in 0..self.clients.len() {
                let now = self.clock(client);
                let side = &mut self.clients[client];
                side.client.on_time(now);
                assert!(side.client.next_deadline() > now, "nothing is left due");
            }
            self.settle();
            if self.now == end {
                return;
            }
        }
    }

    /// The client's clock falls back.
    pub(super) fn slow_clock(&mut self, client: usize, by: Duration) {
        self.clients[client].behind += by;
    }

    pub(super) fn set_ways<const N: usize>(&mut self, client: usize, ways: [Way; N]) {
        self.clients[client].ways = ways.to_vec();
        for (node, way) in ways.into_iter().enumerate() {
            if way == Way::Refused && self.clients[client].sessions[node].is_some() {
                self.break_connection(client, node);
            }
            let bytes = match way {
                Way::Open => std::mem::take(&mut self.clients[client].held[node]),
                _ => Vec::new(),
            };
            if !bytes.is_empty() {
                self.deliver(client, node, &bytes);
            }
        }
        self.settle();
    }

    /// A node starts again, empty, and serves at once.
    pub(super) fn restart(&mut self, node: usize) {
        self.engines[node] = engine(self.now);
        for client in 0..self.clients.len() {
            self.break_connection(client, node);
        }
        self.settle();
    }

    pub(super) fn deliver(&mut self, client: usize, node: usize, bytes: &[u8]) {
        let now = self.clock(client);
        let number = u8::try_from(node).unwrap();
        self.clients[client].client.received(now, number, bytes);
    }

    /// Somebody else says something to a node.
    pub(super) fn tell(&self, node: usize, words: &str) -> String {
        let moment = self.moment();
        let engine = &self.engines[node];
        let mut session = engine.connect(Peer::default(), moment.time).unwrap();
        let args: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let mut out = Vec::new();
        engine.batch(moment).execute(&mut session, &args, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// On how many nodes the key is.
    pub(super) fn keys(&self) -> usize {
        let nodes = 0..self.engines.len();
        let has_key = |node: &usize| self.tell(*node, "EXISTS key") == ":1\r\n";
        nodes.filter(has_key).count()
    }

    /// Whether the client believes in a lock.
    pub(super) fn holds(&self, client: usize) -> bool {
        let now = self.clock(client);
        let mut ends = self.clients[client].holds.values();
        ends.any(|valid_until| now < *valid_until)
    }

    pub(super) fn do_both_hold(&self) -> bool {
        self.holds(0) && self.holds(1)
    }

    /// What a client said since it was last asked, connections aside.
    pub(super) fn said(&mut self, client: usize) -> Vec<ClientNotice> {
        std::mem::take(&mut self.clients[client].said)
    }

    /// What a client asked since this was last asked, by any node.
    pub(super) fn asked(&mut self, client: usize) -> Vec<String> {
        std::mem::take(&mut self.clients[client].asked)
    }

    pub(super) fn clock(&self, client: usize) -> Time {
        Time::ZERO + (self.now - self.clients[client].behind)
    }

    /// The fencing token and the token of the last lock.
    pub(super) fn fence(&mut self, client: usize) -> (u64, Vec<u8>) {
        let said = self.said(client);
        let acquired = said.into_iter().rev().find_map(|notice| match notice {
            ClientNotice::Acquired { fencing, token, .. } => Some((fencing.unwrap(), token)),
            _ => None,
        });
        acquired.unwrap()
    }

    fn moment(&self) -> Moment {
        Moment {
            time: NodeTime::ZERO.saturating_add(self.now),
            ..Moment::default()
        }
    }

    fn break_connection(&mut self, client: usize, node: usize) {
        let now = self.clock(client);
        let side = &mut self.clients[client];
        if side.sessions[node].take().is_some() {
            side.held[node].clear();
            let number = u8::try_from(node).unwrap();
            side.client.disconnected(now, number);
        }
    }

    /// Everything that can happen at this moment.
    fn settle(&mut self) {
        while (0..self.clients.len()).any(|client| self.turn(client)) {}
    }

    fn turn(&mut self, client: usize) -> bool {
        let mut is_busy = false;
        while let Some(notice) = self.clients[client].client.poll_notice() {
            is_busy = true;
            self.hear(client, notice);
        }
        for node in 0..self.engines.len() {
            let number = u8::try_from(node).unwrap();
            let side = &mut self.clients[client];
            let bytes = std::mem::take(side.client.output(number).unwrap());
            if bytes.is_empty() || side.ways[node] == Way::Silent {
                continue;
            }
            is_busy = true;
            let replies = self.execute(client, node, &bytes);
            match self.clients[client].ways[node] {
                Way::RepliesHeld => self.clients[client].held[node].extend(replies),
                _ => self.deliver(client, node, &replies),
            }
        }
        is_busy
    }

    fn hear(&mut self, client: usize, notice: ClientNotice) {
        let (now, time) = (self.clock(client), self.moment().time);
        let side = &mut self.clients[client];
        match &notice {
            ClientNotice::Connect(number) => {
                let node = usize::from(*number);
                if side.ways[node] == Way::Refused {
                    return side.client.disconnected(now, *number);
                }
                side.sessions[node] = self.engines[node].connect(Peer::default(), time);
                return side.client.connected(now, *number);
            }
            ClientNotice::Disconnect(number) => {
                side.sessions[usize::from(*number)] = None;
                side.held[usize::from(*number)].clear();
                return;
            }
            ClientNotice::Acquired {
                lock, valid_until, ..
            }
            | ClientNotice::Validity { lock, valid_until }
            | ClientNotice::Extended {
                lock,
                result: Ok(valid_until),
            } => {
                side.holds.insert(*lock, *valid_until);
            }
            ClientNotice::Lost { lock, .. } => {
                side.holds.remove(lock);
            }
            _ => {}
        }
        side.said.push(notice);
    }

    fn execute(&mut self, client: usize, node: usize, bytes: &[u8]) -> Vec<u8> {
        let moment = self.moment();
        let side = &mut self.clients[client];
        let session = side.sessions[node].as_mut().unwrap();
        let mut batch = self.engines[node].batch(moment);
        let (mut decoder, mut start, mut out) = (Decoder::new(), 0, Vec::new());
        while let Some(frame) = decoder
            .decode(&bytes[start..], &Limits::default(), true)
            .unwrap()
        {
            let args: Vec<&[u8]> = frame.args().collect();
            batch.execute(session, &args, &mut out);
            let words: Vec<_> = args
                .iter()
                .map(|arg| String::from_utf8_lossy(arg))
                .collect();
            side.asked.push(format!("{node}: {}", words.join(" ")));
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
    let started = Moment {
        time: NodeTime::ZERO.saturating_add(now),
        ..Moment::default()
    };
    Engine::new(EngineConfig::new(7, "run"), started)
}

/// Of a second, twelve milliseconds.
const DRIFT: Drift = Drift::new(10_000, ms(2));
