//! The client of a world: the shipped core, or the kit's plain client, behind one set of calls.

use std::time::Duration;

use redlock_proto::{
    Cause, Core, CoreConfig, Drift, Entropy, ErrorKind, FencingToken, LockTerms, Login, NodeId,
    Notice, OpId, RenewPolicy, RetryPolicy, Time, Token,
};

use crate::history::LockNo;
use crate::random::Random;
use crate::scenario::{ClientKind, Ending, LockAction, Setup};
use crate::sim::conduct::{Conduct, Finding};
use crate::sim::notice::ClientNotice;
use crate::sim::plain::{Form, PlainClient, PlainTerms};

/// A client without its clock, its sockets and its caller.
#[derive(Clone, Debug)]
pub(crate) enum Player {
    Shipped(Box<Shipped>),
    Plain(Box<PlainClient>),
}

/// The shipped core, with the locks of its operations and, for every second client, a model that checks it.
#[derive(Clone, Debug)]
pub(crate) struct Shipped {
    core: Core<Dice>,
    conduct: Option<Conduct>,
    locks: Vec<(OpId, LockNo)>,
    /// Which key each open look asks about.
    looks: Vec<(OpId, Vec<u8>)>,
}

/// The randomness of a client, with a limit: a core that draws without end within one moment would never return.
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
                locks: Vec::new(),
                looks: Vec::new(),
            })),
            _ => Self::Plain(Box::new(PlainClient::new(
                setup.nodes,
                drift,
                CONNECT_TIMEOUT,
                random,
                form(setup, number),
                plain_bug,
            ))),
        }
    }

    pub(crate) fn acquire(&mut self, now: Time, lock: LockNo, act: &LockAction) {
        match self {
            Self::Shipped(it) => {
                let op = it.core.acquire(now, terms(act));
                it.watch(now, |conduct| conduct.calls(op, act));
                it.locks.push((op, lock));
            }
            Self::Plain(it) => {
                let terms = PlainTerms {
                    key: act.key.as_bytes().into(),
                    ttl: act.ttl,
                    timeout: timeout(act.ttl),
                    tries: act.tries,
                };
                it.acquire(now, lock, terms);
            }
        }
    }

    /// Takes over a lock that another client acquired; returns whether it does, which the plain client cannot.
    pub(crate) fn adopt(
        &mut self,
        now: Time,
        lock: LockNo,
        act: &LockAction,
        token: &[u8],
    ) -> bool {
        let (Self::Shipped(it), Ok(known)) = (self, Token::new(token)) else {
            return false;
        };
        let op = it.core.adopt(now, terms(act), known);
        it.watch(now, |conduct| conduct.takes_over(op, act, token));
        it.locks.push((op, lock));
        true
    }

    /// Releases a lock that another client left, which the plain client cannot.
    pub(crate) fn release_token(
        &mut self,
        now: Time,
        lock: LockNo,
        act: &LockAction,
        token: &[u8],
    ) {
        if let (Self::Shipped(it), Ok(known)) = (self, Token::new(token)) {
            let key = act.key.as_bytes();
            let terms = LockTerms::looking(key.into(), timeout(act.ttl));
            let op = it.core.release_token(now, terms, known);
            it.watch(now, |conduct| conduct.releases(op, key, token));
            it.locks.push((op, lock));
        }
    }

    /// Asks every node who holds a key, which the plain client cannot.
    pub(crate) fn look(&mut self, now: Time, key: &str) {
        if let Self::Shipped(it) = self {
            let key = key.as_bytes();
            let op = it.core.look(now, Some(key.into()), LOOK_TIMEOUT);
            it.looks.push((op, key.to_vec()));
            it.watch(now, |conduct| conduct.looks(op, key, now + LOOK_TIMEOUT));
        }
    }

    pub(crate) fn extend(&mut self, now: Time, lock: LockNo, ttl: Duration) {
        match self {
            Self::Shipped(it) => {
                if let Some(op) = it.op(lock) {
                    it.see(|conduct| conduct.begins(now));
                    it.core.extend(now, op, ttl);
                }
            }
            Self::Plain(it) => it.extend(now, lock, ttl),
        }
    }

    /// The caller ends a lock that it wants, holds, has lost or releases. With `kept_until` the key may stay taken for a
    /// while, and does at least until then.
    pub(crate) fn end(
        &mut self,
        now: Time,
        lock: LockNo,
        ending: Ending,
        kept_until: Option<Time>,
    ) {
        let is_left = ending.leaves();
        match self {
            Self::Shipped(it) => {
                let Some(op) = it.op(lock) else { return };
                let kept_until = if is_left {
                    Some(Time::NEVER)
                } else {
                    kept_until
                };
                it.watch(now, |conduct| conduct.ends(op, kept_until));
                match ending {
                    Ending::Release => return it.core.release(now, op),
                    Ending::Drop => it.core.drop_interest(now, op),
                    _ => it.core.leak(op),
                }
                it.forget(op);
            }
            Self::Plain(it) if is_left => it.leave(lock),
            Self::Plain(it) => it.release(now, lock),
        }
    }

    pub(crate) fn connected(&mut self, now: Time, node: u8) {
        match self {
            Self::Shipped(it) => {
                if let Some(node) = NodeId::new(node.into()) {
                    it.watch(now, |conduct| conduct.opens(node.index()));
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
                    it.watch(now, |conduct| conduct.closes(node.index()));
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
                    it.watch(now, |conduct| conduct.hears(node.index(), bytes));
                    it.core.received(now, node, bytes);
                }
            }
            Self::Plain(it) => it.received(now, node, bytes),
        }
    }

    pub(crate) fn on_time(&mut self, now: Time) {
        match self {
            Self::Shipped(it) => {
                it.see(|conduct| conduct.begins(now));
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

    /// Moves the bytes to be written to a node into `bytes`; returns whether there are any.
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

    /// Everything is reported and written: returns what was wrong. Nobody watches the plain client.
    pub(crate) fn settle(&mut self, now: Time) -> Vec<Finding> {
        let Self::Shipped(it) = self else {
            return Vec::new();
        };
        let Some(conduct) = &mut it.conduct else {
            return Vec::new();
        };
        conduct.sees_operations(it.core.operations());
        conduct.settle(it.core.next_deadline() > now);
        std::mem::take(&mut conduct.findings)
    }

    pub(crate) fn poll_notice(&mut self) -> Option<ClientNotice> {
        match self {
            Self::Shipped(it) => it.poll_notice(),
            Self::Plain(it) => it.poll_notice(),
        }
    }
}

impl Shipped {
    fn op(&self, lock: LockNo) -> Option<OpId> {
        let found = self.locks.iter().find(|(_, known)| *known == lock);
        found.map(|(op, _)| *op)
    }

    fn lock(&self, op: OpId) -> Option<LockNo> {
        let found = self.locks.iter().find(|(known, _)| *known == op);
        found.map(|(_, lock)| *lock)
    }

    /// The lock that a report begins or ends: a caller waits for it.
    fn awaited(&mut self, op: OpId) -> Option<LockNo> {
        let lock = self.lock(op);
        if lock.is_none() {
            self.see(|conduct| conduct.find(&[], "reports to nobody"));
        }
        lock
    }

    fn forget(&mut self, op: OpId) {
        self.locks.retain(|(known, _)| *known != op);
    }

    /// Shows the model, if there is one, what the core is about to be given.
    fn watch(&mut self, now: Time, see: impl FnOnce(&mut Conduct)) {
        self.see(|conduct| {
            conduct.begins(now);
            see(conduct);
        });
    }

    /// Shows the model, if there is one, what the core reports.
    fn see(&mut self, see: impl FnOnce(&mut Conduct)) {
        if let Some(conduct) = &mut self.conduct {
            see(conduct);
        }
    }

    fn poll_notice(&mut self) -> Option<ClientNotice> {
        loop {
            let notice = self.core.poll_notice()?;
            if let Some(report) = self.report(notice) {
                return Some(report);
            }
        }
    }

    /// What the core reports, for the model and for the world.
    fn report(&mut self, notice: Notice) -> Option<ClientNotice> {
        let number = |node: NodeId| u8::try_from(node.index()).unwrap_or(u8::MAX);
        Some(match notice {
            Notice::Connect(node) => ClientNotice::Connect(number(node)),
            Notice::Disconnect(node) => {
                self.see(|conduct| conduct.closes(node.index()));
                ClientNotice::Disconnect(number(node))
            }
            Notice::Acquired {
                op,
                token,
                fencing,
                valid_until,
                ..
            } => {
                let (token, fencing) = (token.as_ref(), fencing.map(FencingToken::get));
                self.see(|conduct| conduct.acquired(op, token, fencing, valid_until));
                ClientNotice::Acquired {
                    lock: self.awaited(op)?,
                    token: token.to_vec(),
                    fencing,
                    valid_until,
                }
            }
            Notice::NotAcquired { op, kind, .. } => {
                self.see(|conduct| conduct.failed(op));
                let lock = self.awaited(op)?;
                self.forget(op);
                let why = word(kind);
                ClientNotice::Failed { lock, why }
            }
            // A renewal is an extension that the core asked for itself.
            Notice::Validity {
                op,
                valid_until,
                is_renewal: true,
            } => self.extended(op, Ok(valid_until))?,
            Notice::Validity {
                op, valid_until, ..
            } => {
                self.see(|conduct| conduct.shortened(op, valid_until));
                let lock = self.lock(op)?;
                ClientNotice::Validity { lock, valid_until }
            }
            Notice::RenewalFailed { op, .. } => self.extended(op, Err("renewal-failed"))?,
            Notice::Extended { op, result, .. } => self.extended(op, result.map_err(word))?,
            Notice::Lost { op, kind, .. } => {
                self.see(|conduct| conduct.lost(op, kind == ErrorKind::Lost));
                let (lock, why) = (self.awaited(op)?, word(kind));
                ClientNotice::Lost { lock, why }
            }
            Notice::Released {
                op,
                confirmed,
                is_kept,
                ..
            } => {
                self.see(|conduct| conduct.released(op, confirmed.iter().map(NodeId::index)));
                let lock = self.awaited(op)?;
                self.forget(op);
                let confirmed = u8::try_from(confirmed.len()).unwrap_or(u8::MAX);
                if is_kept {
                    ClientNotice::Kept { lock, confirmed }
                } else {
                    ClientNotice::Released { lock, confirmed }
                }
            }
            Notice::Looked { op, looks } => {
                let place = self.looks.iter().position(|(known, _)| *known == op)?;
                let (_, key) = self.looks.swap_remove(place);
                self.see(|conduct| conduct.looked(op));
                let tokens = looks.into_iter().filter_map(|look| look.token).collect();
                ClientNotice::Looked { key, tokens }
            }
            _ => return None,
        })
    }

    fn extended(&mut self, op: OpId, result: Result<Time, &'static str>) -> Option<ClientNotice> {
        if let Ok(until) = result {
            self.see(|conduct| conduct.extended(op, until));
        }
        let lock = self.lock(op)?;
        Some(ClientNotice::Extended { lock, result })
    }
}

/// How long a client gives a node for a reply: the shipped client's default.
pub(crate) fn timeout(ttl: Duration) -> Duration {
    (ttl / 10).clamp(Duration::from_millis(5), Duration::from_millis(250))
}

/// The terms of a lock.
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
        // Locks with and without labels meet in most worlds.
        label: act.within.map(|_| "sim".into()),
    }
}

/// How a plain client keeps its locks on nodes.
fn form(setup: &Setup, number: u8) -> Form {
    match setup.client {
        ClientKind::Shipped | ClientKind::Plain => Form::Token,
        ClientKind::Hash if Random::stream(setup.seed, "form", number.into()).chance(50) => {
            Form::Script
        }
        ClientKind::Hash => Form::Transaction,
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

/// The word for an error.
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

/// How long nodes have to reply to a look.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);

/// The shipped client's default.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Many times what a client needs in the longest world.
const DRAWS_MAX: u32 = 1_000_000;
