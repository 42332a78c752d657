//! The client of a world: the shipped core, or the kit's plain client, behind one set of calls.

use std::time::Duration;

use redlock_proto::{
    Cause, Core, CoreConfig, Drift, Entropy, ErrorKind, LockTerms, Login, NodeId, Notice, OpId,
    RenewPolicy, RetryPolicy, Time, Token,
};

use crate::random::Random;
use crate::scenario::{LockAction, Setup};
use crate::sim::conduct::{Conduct, Finding, Terms};
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::{PlainClient, PlainTerms};

/// A client without its clock, its sockets and its caller.
#[derive(Clone, Debug)]
pub(crate) enum Player {
    Shipped(Box<Shipped>),
    Plain(Box<PlainClient>),
}

/// The shipped core, with the handles of its operations and, for every second client, a model of what it may say.
#[derive(Clone, Debug)]
pub(crate) struct Shipped {
    core: Core<Dice>,
    conduct: Option<Conduct>,
    handles: Vec<(OpId, Handle)>,
    /// Which key each open look asks about.
    looks: Vec<(OpId, Vec<u8>)>,
    next: u64,
}

/// The randomness of a client. One that tries for ever within one moment would never give it back.
#[derive(Clone, Debug)]
struct Dice {
    random: Random,
    left: u32,
}

impl Entropy for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        assert!(self.left > 0, "a client tries without end");
        self.left -= 1;
        self.random.fill(bytes);
    }
}

impl Player {
    /// A client that has just started.
    pub(crate) fn new(setup: &Setup, number: u8, random: Random) -> Self {
        let drift = Drift::new(setup.drift_ppm, setup.drift_constant);
        let config = CoreConfig {
            logins: vec![Login::default(); usize::from(setup.nodes)],
            drift,
            connect_timeout: CONNECT_TIMEOUT,
        };
        let plain_bug = setup.bug.filter(|bug| bug.is_clients());
        let dice = Dice {
            random: random.clone(),
            left: DRAWS_MAX,
        };
        match Core::new(config, dice) {
            Some(core) if !setup.is_plain() => Self::Shipped(Box::new(Shipped {
                core,
                conduct: setup
                    .watches(number)
                    .then(|| Conduct::new(setup.nodes, drift)),
                handles: Vec::new(),
                looks: Vec::new(),
                next: 0,
            })),
            _ => Self::Plain(Box::new(PlainClient::new(
                setup.nodes,
                drift,
                CONNECT_TIMEOUT,
                random,
                plain_bug,
            ))),
        }
    }

    pub(crate) fn acquire(&mut self, now: Time, act: &LockAction) -> Handle {
        let timeout = timeout(act.ttl);
        match self {
            Self::Shipped(it) => {
                let op = it.core.acquire(now, terms(act));
                if let Some(conduct) = it.conduct_at(now) {
                    conduct.calls(op, act.key.as_bytes(), wanted(act));
                }
                it.handle_of(op)
            }
            Self::Plain(it) => it.acquire(
                now,
                PlainTerms {
                    key: act.key.as_bytes().into(),
                    ttl: act.ttl,
                    timeout,
                    tries: act.tries,
                },
            ),
        }
    }

    /// Takes over a lock that somebody else acquired; the plain client does not know how.
    pub(crate) fn adopt(&mut self, now: Time, act: &LockAction, token: &[u8]) -> Option<Handle> {
        let Self::Shipped(it) = self else { return None };
        let op = it.core.adopt(now, terms(act), Token::new(token).ok()?);
        if let Some(conduct) = it.conduct_at(now) {
            conduct.takes_over(op, act.key.as_bytes(), token, wanted(act));
        }
        Some(it.handle_of(op))
    }

    /// Releases a lock that another client left; the plain client does not know how.
    pub(crate) fn release_token(&mut self, now: Time, act: &LockAction, token: &[u8]) {
        if let (Self::Shipped(it), Ok(known)) = (self, Token::new(token)) {
            let key = act.key.as_bytes();
            let terms = LockTerms::looking(key.into(), timeout(act.ttl));
            let op = it.core.release_token(now, terms, known);
            if let Some(conduct) = it.conduct_at(now) {
                conduct.releases(op, key, token);
            }
            it.handle_of(op);
        }
    }

    /// Asks every node who holds a key; the plain client does not know how.
    pub(crate) fn look(&mut self, now: Time, key: &str) {
        if let Self::Shipped(it) = self {
            let op = it.core.look(now, Some(key.as_bytes().into()), LOOK_TIMEOUT);
            it.looks.push((op, key.as_bytes().to_vec()));
            if let Some(conduct) = it.conduct_at(now) {
                conduct.looks(op, key.as_bytes(), now + LOOK_TIMEOUT);
            }
        }
    }

    pub(crate) fn extend(&mut self, now: Time, lock: Handle, ttl: Duration) {
        match self {
            Self::Shipped(it) => {
                if let Some(op) = it.op(lock) {
                    it.conduct_at(now);
                    it.core.extend(now, op, ttl);
                }
            }
            Self::Plain(it) => it.extend(now, lock, ttl),
        }
    }

    /// Ends a lock; with `kept_until` its key may have to stay taken for a while, and does up to then at least.
    pub(crate) fn release(&mut self, now: Time, lock: Handle, kept_until: Option<Time>) {
        match self {
            Self::Shipped(it) => {
                if let Some(op) = it.op(lock) {
                    let is_kept = kept_until.is_some();
                    let until = kept_until.unwrap_or(Time::ZERO);
                    if let Some(conduct) = it.conduct_at(now) {
                        conduct.ends(op, is_kept, until);
                    }
                    it.core.release(now, op);
                }
            }
            Self::Plain(it) => it.release(now, lock),
        }
    }

    /// The caller has no more interest in a lock that it wants, holds, has lost or releases; for `kept_until` see
    /// [`release`](Self::release).
    pub(crate) fn let_go(&mut self, now: Time, lock: Handle, kept_until: Option<Time>) {
        match self {
            Self::Shipped(it) => {
                if let Some(op) = it.op(lock) {
                    let until = kept_until.unwrap_or(Time::ZERO);
                    if let Some(conduct) = it.conduct_at(now) {
                        conduct.ends(op, kept_until.is_some(), until);
                    }
                    it.core.drop_interest(now, op);
                    it.forget(lock);
                }
            }
            Self::Plain(it) => it.release(now, lock),
        }
    }

    /// The lock is left to its TTL.
    pub(crate) fn leave(&mut self, lock: Handle) {
        match self {
            Self::Shipped(it) => {
                if let Some(op) = it.op(lock) {
                    if let Some(conduct) = &mut it.conduct {
                        conduct.ends(op, true, Time::NEVER);
                    }
                    it.core.leak(op);
                    it.forget(lock);
                }
            }
            Self::Plain(it) => it.leave(lock),
        }
    }

    pub(crate) fn connected(&mut self, now: Time, node: u8) {
        match self {
            Self::Shipped(it) => {
                if let Some(node) = NodeId::new(node.into()) {
                    if let Some(conduct) = it.conduct_at(now) {
                        conduct.opens(node.index());
                    }
                    it.core.connected(now, node);
                }
            }
            Self::Plain(it) => it.connected(now, node),
        }
    }

    pub(crate) fn disconnected(&mut self, now: Time, node: u8) {
        match self {
            Self::Shipped(it) => {
                if let Some(node) = NodeId::new(node.into()) {
                    if let Some(conduct) = it.conduct_at(now) {
                        conduct.closes(node.index());
                    }
                    it.core.disconnected(now, node, Cause::Disconnected);
                }
            }
            Self::Plain(it) => it.disconnected(now, node),
        }
    }

    pub(crate) fn received(&mut self, now: Time, node: u8, bytes: &[u8]) {
        match self {
            Self::Shipped(it) => {
                if let Some(node) = NodeId::new(node.into()) {
                    if let Some(conduct) = it.conduct_at(now) {
                        conduct.hears(node.index(), bytes);
                    }
                    it.core.received(now, node, bytes);
                }
            }
            Self::Plain(it) => it.received(now, node, bytes),
        }
    }

    pub(crate) fn on_time(&mut self, now: Time) {
        match self {
            Self::Shipped(it) => {
                it.conduct_at(now);
                it.core.on_time(now);
            }
            Self::Plain(it) => it.on_time(now),
        }
    }

    pub(crate) fn next_deadline(&self) -> Time {
        match self {
            Self::Shipped(it) => it.core.next_deadline(),
            Self::Plain(it) => it.next_deadline(),
        }
    }

    /// Moves the bytes to be written to a node into `bytes`; whether there are any.
    pub(crate) fn take_output(&mut self, node: u8, bytes: &mut Vec<u8>) -> bool {
        let out = match self {
            Self::Shipped(it) => NodeId::new(node.into()).and_then(|node| {
                let out = it.core.output(node).filter(|out| !out.is_empty())?;
                if let Some(conduct) = &mut it.conduct {
                    conduct.sends(node.index(), out);
                }
                Some(out)
            }),
            Self::Plain(it) => it.output(node).filter(|out| !out.is_empty()),
        };
        let Some(out) = out else { return false };
        bytes.append(out);
        true
    }

    /// All is said and written: what was not as it has to be. Of the plain client nothing is known.
    pub(crate) fn settle(&mut self, now: Time) -> Vec<Finding> {
        match self {
            Self::Shipped(it) => {
                let Some(conduct) = &mut it.conduct else {
                    return Vec::new();
                };
                conduct.sees_operations(it.core.operations());
                conduct.settle(it.core.next_deadline() > now);
                std::mem::take(&mut conduct.findings)
            }
            Self::Plain(_) => Vec::new(),
        }
    }

    pub(crate) fn poll_notice(&mut self) -> Option<ClientNotice> {
        match self {
            Self::Shipped(it) => it.poll_notice(),
            Self::Plain(it) => it.poll_notice(),
        }
    }
}

impl Shipped {
    fn op(&self, lock: Handle) -> Option<OpId> {
        self.handles
            .iter()
            .find(|(_, handle)| *handle == lock)
            .map(|(op, _)| *op)
    }

    fn handle_of(&mut self, op: OpId) -> Handle {
        let handle = Handle(self.next);
        self.next += 1;
        self.handles.push((op, handle));
        handle
    }

    fn handle(&self, op: OpId) -> Option<Handle> {
        let found = self.handles.iter().find(|(known, _)| *known == op);
        found.map(|(_, handle)| *handle)
    }

    /// Whose call or lock a notice ends or begins: somebody waits for it.
    fn awaited(&mut self, op: OpId) -> Option<Handle> {
        let handle = self.handle(op);
        if let (None, Some(conduct)) = (handle, &mut self.conduct) {
            conduct.find(&[], "reports to nobody");
        }
        handle
    }

    fn forget(&mut self, lock: Handle) {
        self.handles.retain(|(_, handle)| *handle != lock);
    }

    /// The model of a client that has one, which is called now.
    fn conduct_at(&mut self, now: Time) -> Option<&mut Conduct> {
        let conduct = self.conduct.as_mut()?;
        conduct.begins(now);
        Some(conduct)
    }

    fn poll_notice(&mut self) -> Option<ClientNotice> {
        loop {
            let notice = self.core.poll_notice()?;
            self.note(&notice);
            if let Some(told) = self.translate(notice) {
                return Some(told);
            }
        }
    }

    /// The model hears what the core says.
    fn note(&mut self, notice: &Notice) {
        let Some(conduct) = &mut self.conduct else {
            return;
        };
        match *notice {
            Notice::Disconnect(node) => conduct.closes(node.index()),
            Notice::Acquired {
                op,
                token,
                fencing,
                valid_until,
                ..
            } => {
                let fencing = fencing.map(redlock_proto::FencingToken::get);
                conduct.acquired(op, token.as_ref(), fencing, valid_until);
            }
            Notice::NotAcquired { op, .. } => conduct.failed(op),
            Notice::Validity {
                op,
                valid_until,
                is_renewal: false,
            } => conduct.shortened(op, valid_until),
            Notice::Validity {
                op,
                valid_until: until,
                ..
            }
            | Notice::Extended {
                op,
                result: Ok(until),
                ..
            } => conduct.extended(op, until),
            Notice::Lost { op, kind, .. } => conduct.lost(op, kind == ErrorKind::Lost),
            Notice::Released { op, confirmed, .. } => {
                conduct.released(op, confirmed.iter().map(NodeId::index));
            }
            _ => {}
        }
    }

    fn translate(&mut self, notice: Notice) -> Option<ClientNotice> {
        let number = |node: NodeId| u8::try_from(node.index()).unwrap_or(u8::MAX);
        Some(match notice {
            Notice::Connect(node) => ClientNotice::Connect(number(node)),
            Notice::Disconnect(node) => ClientNotice::Disconnect(number(node)),
            Notice::Acquired {
                op,
                token,
                fencing,
                valid_until,
                ..
            } => ClientNotice::Acquired {
                lock: self.awaited(op)?,
                token: token.as_ref().to_vec(),
                fencing: fencing.map(redlock_proto::FencingToken::get),
                valid_until,
            },
            Notice::NotAcquired { op, kind, .. } => {
                let lock = self.awaited(op)?;
                self.forget(lock);
                ClientNotice::Failed {
                    lock,
                    why: word(kind),
                }
            }
            // A renewal is an extension that the core asked for itself.
            Notice::Validity {
                op,
                valid_until,
                is_renewal: true,
            } => ClientNotice::Extended {
                lock: self.handle(op)?,
                result: Ok(valid_until),
            },
            Notice::Validity {
                op, valid_until, ..
            } => ClientNotice::Validity {
                lock: self.handle(op)?,
                valid_until,
            },
            Notice::RenewalFailed { op, .. } => ClientNotice::Extended {
                lock: self.handle(op)?,
                result: Err("renewal-failed"),
            },
            Notice::Extended { op, result, .. } => ClientNotice::Extended {
                lock: self.handle(op)?,
                result: result.map_err(word),
            },
            Notice::Lost { op, kind, .. } => ClientNotice::Lost {
                lock: self.awaited(op)?,
                why: word(kind),
            },
            Notice::Released {
                op,
                confirmed,
                is_kept,
                ..
            } => {
                let lock = self.awaited(op)?;
                self.forget(lock);
                let confirmed = u8::try_from(confirmed.len()).unwrap_or(u8::MAX);
                match is_kept {
                    true => ClientNotice::Kept { lock, confirmed },
                    false => ClientNotice::Released { lock, confirmed },
                }
            }
            Notice::Looked { op, looks } => {
                let place = self.looks.iter().position(|(known, _)| *known == op)?;
                let (_, key) = self.looks.swap_remove(place);
                if let Some(conduct) = &mut self.conduct {
                    conduct.looked(op);
                }
                let tokens = looks.into_iter().filter_map(|look| look.token).collect();
                ClientNotice::Looked { key, tokens }
            }
            _ => return None,
        })
    }
}

/// How long a client gives a node for a reply: the shipped client's default.
pub(crate) fn timeout(ttl: Duration) -> Duration {
    (ttl / 10).clamp(Duration::from_millis(5), Duration::from_millis(250))
}

/// What the core is told of a lock.
fn terms(act: &LockAction) -> LockTerms {
    LockTerms {
        key: act.key.as_bytes().into(),
        ttl: act.ttl,
        timeout: timeout(act.ttl),
        retry: match act.within {
            Some(within) => RetryPolicy::wait_for(within),
            None => RetryPolicy::tries(act.tries),
        },
        renew: renewal(act),
        hold_at_least: act.at_least.unwrap_or_default(),
    }
}

/// What the model is told of a lock.
fn wanted(act: &LockAction) -> Terms {
    Terms {
        within: act.within,
        renews: act.renew_every.filter(|_| act.renew_for.is_none()),
    }
}

/// How the core is to renew a lock on its own.
fn renewal(act: &LockAction) -> Option<RenewPolicy> {
    let policy = match act.renew_for {
        Some(bound) => RenewPolicy::until(bound),
        None => RenewPolicy::times(u32::MAX),
    };
    Some(policy.every(act.renew_every?))
}

/// An error in a word.
pub(crate) const fn word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Busy => "busy",
        ErrorKind::Contended => "contended",
        ErrorKind::NoQuorum => "no-quorum",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Expired => "expired",
        ErrorKind::Lost => "lost",
        ErrorKind::Cancelled => "cancelled",
        _ => "other",
    }
}

/// What nodes have to say who holds a key.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);

/// The shipped client's default.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Many times what a client needs in the longest world.
const DRAWS_MAX: u32 = 1_000_000;
