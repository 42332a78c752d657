//! A node of the model: what it holds in five bytes, and the real engine for what it does with a request.

use std::time::Duration;

use locknode_engine::durable::{Durable, LockRecord, StartReason};
use locknode_engine::{
    Deadline, Engine, EngineConfig, GuardConfig, GuardMode, Moment, Peer, Time, WallTime,
};
use locknode_resp::{Reply, ReplyDecoder, ReplyLimits};

use crate::memo::Memo;

/// What a node knows of the only key (its keys have nothing to do with each other, counters that two share aside), relative to the present tick: an engine loaded with this behaves from here on as
/// the node does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node {
    /// Who holds the key; [`NOBODY`] if nobody does.
    pub(crate) holder: u8,
    /// Ticks up to the deadline. At zero it has come: what may happen in a tick after the deadline does.
    pub(crate) left: u8,
    /// The key's fence counter at the grant.
    pub(crate) grant: u8,
    /// The key's fence counter.
    pub(crate) counter: u8,
    /// Ticks up to the end of the restart quarantine.
    pub(crate) quarantine: u8,
}

/// What a client asks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    /// Nothing: shows the node as its engine sees it.
    Look,
    /// `SET key token NX PX ttl`
    Acquire { token: u8 },
    /// `SET key token IFEQ token PX ttl`
    Extend { token: u8 },
    /// `DELEX key IFEQ token`
    Release { token: u8 },
    /// `LOCK.ACQUIRE key token ttl`
    AcquireFenced { token: u8 },
    /// `LOCK.FENCE key token grant fence`
    Fence { token: u8, grant: u8, fence: u8 },
    /// `PEXPIRE key ttl`, for a client that does not compare.
    Prolong,
    /// `DEL key`, for a client that does not compare.
    Delete,
}

/// What the reply amounts to, as the client's `core` reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Yes,
    No,
    /// Yes, and the key's fence counter.
    Granted(u8),
    /// No, and the key's fence counter.
    Refused(u8),
    /// The error that a node in its restart quarantine replies.
    Quarantined,
}

/// The engine of every node.
#[derive(Debug)]
pub(crate) struct Engines {
    ttl: u8,
    known: Memo<(Node, Request), (Answer, Node)>,
}

impl Node {
    /// The node one tick later. Whether the lock has ended by then is the engine's business: [`Engines::look`].
    pub(crate) fn later(self) -> Self {
        Self {
            left: self.left.saturating_sub(1),
            quarantine: self.quarantine.saturating_sub(1),
            ..self
        }
    }

    /// The node after a crash, serving again after `quarantine` ticks and counting from `fence_base`.
    pub(crate) fn restarted(quarantine: u8, fence_base: u8) -> Self {
        Self {
            quarantine,
            counter: fence_base,
            ..Self::default()
        }
    }

    /// The node in a world where nobody reads counters.
    pub(crate) fn uncounted(self) -> Self {
        Self {
            grant: 0,
            counter: 0,
            ..self
        }
    }
}

impl Engines {
    /// Engines for locks of `ttl` ticks.
    pub(crate) fn new(ttl: u8) -> Self {
        Self {
            ttl,
            known: Memo::new(),
        }
    }

    /// What the node replies, and what it knows then.
    pub(crate) fn ask(&self, node: Node, request: Request) -> (Answer, Node) {
        self.known.value((node, request), |(node, request)| {
            let trial = Trial::new(*node, self.ttl, now());
            let answer = trial.answer(*request, now());
            (answer, trial.read_back(node.quarantine, now()))
        })
    }

    /// The node as its engine sees it.
    pub(crate) fn look(&self, node: Node) -> Node {
        self.ask(node, Request::Look).1
    }

    /// How often a real engine was run.
    pub(crate) fn runs(&self) -> usize {
        self.known.len()
    }
}

/// A real engine that holds what a [`Node`] says.
struct Trial {
    engine: Engine,
    ttl: u8,
}

impl Trial {
    fn new(node: Node, ttl: u8, now: Moment) -> Self {
        let config = EngineConfig {
            guard: GuardConfig {
                mode: GuardMode::Memory,
                max_ttl: TICK * u32::from(ttl),
                quarantine_end: just_before(after(now, node.quarantine)),
                reason: StartReason::NoDirectory,
                incarnation: 0,
                fence_base: u64::from(node.counter),
                durable: Durable::default(),
            },
            ..EngineConfig::new(1, "model")
        };
        let engine = Engine::new(config, now);
        assert!(
            node.holder == NOBODY || node.quarantine == 0,
            "a crash forgets"
        );
        if node.holder != NOBODY {
            // Of all that can happen in a tick, a deadline may be the first.
            let early = just_before(now);
            let lock = LockRecord {
                db: 0,
                key: b"k",
                token: &token(node.holder),
                grant: u64::from(node.grant),
                deadline: Deadline::after_millis(early, i64::from(node.left) * TICK_MS),
                is_logged: false,
                is_collection: false,
                label: None,
            };
            engine.restore(&lock, now.time);
        }
        Self { engine, ttl }
    }

    fn answer(&self, request: Request, now: Moment) -> Answer {
        let Some(words) = request.words(self.ttl) else {
            return Answer::Yes;
        };
        match self.execute(&words, now) {
            Reply::Simple(text) if text == b"OK" => Answer::Yes,
            Reply::Integer(1) => Answer::Yes,
            Reply::Null | Reply::Integer(0) => Answer::No,
            Reply::Array(parts) => match parts[..] {
                [Reply::Integer(1), Reply::Integer(counter), _] => Answer::Granted(small(counter)),
                [Reply::Integer(0), Reply::Integer(counter), _] => Answer::Refused(small(counter)),
                _ => panic!("{request:?} has the reply {parts:?}"),
            },
            Reply::Error(text) if text.starts_with(b"LOADING ") => Answer::Quarantined,
            other => panic!("{request:?} has the reply {other:?}"),
        }
    }

    /// What the node knows now, by its own replies, if it was in quarantine for so many ticks.
    fn read_back(&self, quarantine: u8, now: Moment) -> Node {
        match self.held(now) {
            Some(held) => held,
            None => Node::restarted(quarantine, self.counter_of_free_key(after(now, quarantine))),
        }
    }

    /// What the node tells of the lock, if there is one and it tells.
    fn held(&self, now: Moment) -> Option<Node> {
        match self.execute("LOCK.GET k", now) {
            Reply::Array(parts) => match &parts[..] {
                [
                    Reply::Bulk(holder),
                    Reply::Integer(left_ms),
                    Reply::Integer(grant),
                    Reply::Integer(counter),
                ] => Some(Node {
                    holder: holder_of(holder),
                    left: small((left_ms + TICK_MS - 1).div_euclid(TICK_MS)),
                    grant: small(*grant),
                    counter: small(*counter),
                    quarantine: 0,
                }),
                _ => panic!("LOCK.GET has the reply {parts:?}"),
            },
            Reply::Null => None,
            Reply::Error(text) if text.starts_with(b"LOADING ") => None,
            other => panic!("LOCK.GET has the reply {other:?}"),
        }
    }

    /// A node tells the counter of a free key only with its next grant; this engine is thrown away.
    fn counter_of_free_key(&self, now: Moment) -> u8 {
        match self.execute("LOCK.ACQUIRE k probe 1", now) {
            Reply::Array(parts) => match parts[..] {
                [Reply::Integer(1), Reply::Integer(counter), _] => small(counter - 1),
                _ => panic!("the key is not free: {parts:?}"),
            },
            other => panic!("LOCK.ACQUIRE has the reply {other:?}"),
        }
    }

    fn execute(&self, words: &str, now: Moment) -> Reply {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let session = self.engine.connect(Peer::default(), now.time);
        let mut session = session.expect("room");
        let mut out = Vec::new();
        let mut batch = self.engine.batch(now);
        batch.execute(&mut session, &words, &mut out);
        let decoded = ReplyDecoder::new(ReplyLimits::default()).decode(&out);
        let (reply, len) = decoded.expect("a reply").expect("a whole one");
        assert_eq!(len, out.len(), "one request has one reply");
        reply
    }
}

impl Request {
    /// As the client's `core` writes it; `None` for one that asks nothing.
    fn words(self, ttl: u8) -> Option<String> {
        let ttl = i64::from(ttl) * TICK_MS;
        Some(match self {
            Self::Look => return None,
            Self::Acquire { token } => format!("SET k token-{token} NX PX {ttl}"),
            Self::Extend { token } => format!("SET k token-{token} IFEQ token-{token} PX {ttl}"),
            Self::Release { token } => format!("DELEX k IFEQ token-{token}"),
            Self::AcquireFenced { token } => format!("LOCK.ACQUIRE k token-{token} {ttl}"),
            Self::Fence {
                token,
                grant,
                fence,
            } => format!("LOCK.FENCE k token-{token} {grant} {fence}"),
            Self::Prolong => format!("PEXPIRE k {ttl}"),
            Self::Delete => "DEL k".to_owned(),
        })
    }
}

/// The moment this many ticks later.
fn after(now: Moment, ticks: u8) -> Moment {
    Moment {
        time: now.time.saturating_add(TICK * u32::from(ticks)),
        ..now
    }
}

/// One nanosecond earlier.
fn just_before(now: Moment) -> Time {
    Time::from_nanos(now.time.as_nanos() - 1)
}

/// The present tick in the engine's time.
fn now() -> Moment {
    Moment {
        time: Time::from_millis(1_000_000),
        wall: WallTime::default(),
    }
}

fn token(holder: u8) -> Vec<u8> {
    format!("token-{holder}").into_bytes()
}

fn holder_of(token: &[u8]) -> u8 {
    let number = token.strip_prefix(b"token-").expect("a token of the model");
    let number = std::str::from_utf8(number).expect("digits");
    number.parse().expect("a small number")
}

fn small(number: i64) -> u8 {
    u8::try_from(number).expect("a small number")
}

/// Not a holder.
pub(crate) const NOBODY: u8 = 0;

/// One tick of the model in the time of engine and client.
pub(crate) const TICK: Duration = Duration::from_millis(1000);
const TICK_MS: i64 = 1000;

#[cfg(test)]
mod tests;
