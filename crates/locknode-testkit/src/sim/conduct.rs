//! What a client may report and has to do, judged by what it has sent and received: a model beside the shipped core.
//!
//! It reads the bytes that a client sends and receives, with the client's own clock, and knows nothing of rounds and votes:
//!
//! * *Support*. When a client reports a lock as valid until `t`, a majority of the nodes has said yes. Each yes came over a
//!   connection that is still open, in reply to a request for this token whose TTL, counted from when it was sent and less
//!   the drift, reaches `t`; and no shorter extension may still be on its way to the node.
//! * *Credit* `[F7]`. A majority of the nodes holds its fencing token: each sent it with its grant, or sent a lower one and
//!   accepted this one.
//! * *Use*. A client does not throw away a lock that a majority granted in time, unless nodes would not accept the fencing
//!   token; and it does not report a lock as lost while the lock is valid and a majority may hold it.
//! * *One token each*. An attempt has a new token, and the client asks for nothing more under it once the attempt has ended.
//! * *Nothing left*. What nodes may hold and no caller has is released: at once where a node is connected, and after the next
//!   connection elsewhere, until the TTL has passed or the node has replied.
//! * *Terms*. A client pauses between two attempts, and starts none after its caller's time limit. It renews what it was asked
//!   to renew, and releases no lock before the time up to which it was asked to keep it.
//! * *Healing*. When a node replies that it lost a lock that a majority extended, the client asks it to hold the lock again.
//! * *Looks*. A caller that asks what nodes hold gets its answer in time. A client soon forgets operations that are over.
//!
//! What cannot be known from outside is not judged: a client that has not heard from a node for long does not ask it anything.

mod aside;
mod attempt;
mod terms;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use redlock_proto::{Drift, OpId, Time};
use smallvec::SmallVec;

use aside::Look;
use attempt::{Asked, Attempt, Confirmed, Line, NodeView, Part, Release};
use wire::{Ask, Said, Written};

use crate::scenario::LockAction;

/// The model of one run of a client's process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conduct {
    drift: Drift,
    /// What was wrong.
    pub(crate) findings: Vec<Finding>,
    lines: Vec<Line>,
    /// The attempts of which nodes may still hold something, oldest first.
    attempts: Vec<Attempt>,
    next: u32,
    /// The first attempt that began after several calls for one key.
    known_from: u32,
    /// The tokens of the others, and whether their locks were left: a node that is slow to reply is asked to extend those once
    /// more.
    spent: BTreeMap<Vec<u8>, bool>,
    /// The calls that try for a lock, or take one over.
    calls: Vec<Call>,
    looks: Vec<Look>,
    /// When the client had more operations than are known here, last, and for how long.
    excess: Option<(Time, Duration)>,
    written: Written,
    now: Time,
    /// Counts the turns of the client so far.
    turn: u32,
    /// Calls or attempts have come or gone.
    has_news: bool,
    /// The turn in which a call failed last.
    failed_in: Option<u32>,
    /// What is wrong with an attempt that has just begun, if that was no request that had waited for its node.
    untimely: Option<Finding>,
}

/// Something that was wrong, and the key that it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) key: Vec<u8>,
    pub(crate) text: String,
}

impl Finding {
    fn new(key: &[u8], text: impl Into<String>) -> Self {
        Self {
            key: key.to_vec(),
            text: text.into(),
        }
    }
}

#[derive(Clone, Debug)]
struct Call {
    op: OpId,
    key: Vec<u8>,
    takes_over: bool,
    /// How long it tries at most, if time bounds it.
    within: Option<Duration>,
    /// How often the lock is to be renewed as long as it is held.
    renews: Option<Duration>,
    since: Time,
    turn: u32,
}

impl Conduct {
    pub(crate) fn new(nodes: u8, drift: Drift) -> Self {
        Self {
            drift,
            lines: vec![Line::default(); usize::from(nodes)],
            ..Self::default()
        }
    }

    /// Something is about to reach the client.
    pub(crate) const fn begins(&mut self, now: Time) {
        self.now = now;
    }

    /// A caller wants a lock.
    pub(crate) fn calls(&mut self, op: OpId, act: &LockAction) {
        self.calls.push(Call {
            op,
            key: act.key.as_bytes().to_vec(),
            takes_over: false,
            within: act.within,
            renews: act.renew_every.filter(|_| act.renew_for.is_none()),
            since: self.now,
            turn: self.turn,
        });
    }

    /// A caller takes over a lock that was left to it.
    pub(crate) fn takes_over(&mut self, op: OpId, act: &LockAction, token: &[u8]) {
        self.calls(op, act);
        if let Some(call) = self.calls.last_mut() {
            call.takes_over = true;
        }
        if self.attempt(token).is_none() {
            let (key, left) = (act.key.as_bytes(), Part::Left(Time::NEVER));
            self.begin(key, token, left, Duration::ZERO);
        }
    }

    /// The caller gives its call up, or ends its lock, or was told that it is lost. With `kept_until` the key may stay taken,
    /// and does at least until then.
    pub(crate) fn ends(&mut self, op: OpId, kept_until: Option<Time>) {
        let over = Part::Over(Some(op), self.turn);
        if let Some(attempt) = self.held(op) {
            attempt.part = kept_until.map_or(over, Part::Left);
        } else if self.calls.iter().any(|call| call.op == op) {
            self.failed(op);
        }
    }

    pub(crate) fn opens(&mut self, node: usize) {
        self.closes(node);
        if let Some(line) = self.lines.get_mut(node) {
            line.is_open = true;
        }
    }

    /// A connection has ended, and with it what was sent over it.
    pub(crate) fn closes(&mut self, node: usize) {
        let Some(line) = self.lines.get_mut(node).filter(|line| line.is_open) else {
            return;
        };
        let line = std::mem::take(line);
        for attempt in &mut self.attempts {
            let Some(view) = attempt.views.get_mut(node) else {
                continue;
            };
            (view.granted, view.accepted, view.reach) = (None, None, None);
            (view.lacks, view.is_heal_due) = (None, false);
            if view.release == Release::Asked {
                view.release = Release::No;
            }
            for asked in line.asked.iter().filter(|it| it.attempt == attempt.number) {
                if let Ask::Extend { ttl } = asked.ask {
                    let least = view.doubt.map_or(ttl, |doubt| doubt.min(ttl));
                    view.doubt = Some(least);
                }
            }
        }
    }

    /// Bytes came from a node.
    pub(crate) fn hears(&mut self, node: usize, bytes: &[u8]) {
        let Some(line) = self.lines.get_mut(node).filter(|line| line.is_open) else {
            return;
        };
        line.input.extend_from_slice(bytes);
        let (mut at, mut answers) = (0, SmallVec::<[(Asked, Said); 4]>::new());
        while let Some((said, len)) = line.input.get(at..).and_then(wire::reply) {
            at += len;
            line.has_heard = true;
            let asked = line.asked.pop_front().filter(|it| it.ask != Ask::Other);
            answers.extend(asked.map(|asked| (asked, said)));
        }
        line.input.drain(..at);
        for (asked, said) in answers {
            self.answered(node, asked, said);
        }
    }

    fn answered(&mut self, node: usize, asked: Asked, said: Said) {
        let (now, drift) = (self.now, self.drift);
        let mut newest_first = self.attempts.iter_mut().rev();
        let attempt = newest_first.find(|it| it.number == asked.attempt);
        let Some(attempt) = attempt else { return };
        let (part, confirmed) = (attempt.part, attempt.confirmed);
        let Some(view) = attempt.views.get_mut(node) else {
            return;
        };
        match (asked.ask, said) {
            (Ask::Acquire { ttl }, Said::Yes(counter)) => {
                view.granted = Some((now, counter.unwrap_or(0)));
                view.reach = Some((drift.valid_until(asked.at, ttl), ttl));
            }
            (Ask::Acquire { .. }, Said::No | Said::Error) => view.may_hold = None,
            (Ask::Extend { ttl }, Said::Yes(_)) => {
                view.reach = Some((drift.valid_until(asked.at, ttl), ttl));
                view.may_hold = view.may_hold.max(Some(asked.at + ttl));
            }
            (Ask::Extend { ttl }, Said::No) => {
                let reach = drift.valid_until(asked.at, ttl);
                (view.reach, view.denies) = (None, true);
                view.lacks = Some((reach, ttl));
                let is_of = |it: Confirmed| it.has(reach, ttl) && asked.turn < it.turn;
                if matches!(part, Part::Held(_)) {
                    view.is_heal_due |= confirmed.is_some_and(is_of);
                }
            }
            (Ask::Fence { fence }, Said::Yes(_)) => view.accepted = Some(fence),
            (Ask::Fence { .. }, _) => (view.granted, view.reach) = (None, None),
            (Ask::Release, Said::UnknownScript) => view.release = Release::No,
            (Ask::Release, said) => {
                view.release = Release::Answered;
                view.was_freed |= matches!(said, Said::Yes(_));
            }
            _ => {}
        }
    }

    /// The client writes to a node.
    pub(crate) fn sends(&mut self, node: usize, bytes: &[u8]) {
        let mut written = std::mem::take(&mut self.written);
        written.read(bytes);
        for request in written.requests() {
            let attempt = self.asks(node, &request);
            let asked = Asked {
                attempt: attempt.unwrap_or(u32::MAX),
                ask: request.ask,
                at: self.now,
                turn: self.turn,
            };
            if let Some(line) = self.lines.get_mut(node) {
                line.asked.push_back(asked);
            }
        }
        self.written = written;
    }

    /// Looks at a request; the number of the attempt that it is about.
    fn asks(&mut self, node: usize, request: &wire::Request<'_>) -> Option<u32> {
        let (now, turn, ask) = (self.now, self.turn, request.ask);
        let place = match (ask, self.attempt(request.token)) {
            (Ask::Other, _) => return None,
            (_, Some(place)) => place,
            (Ask::Acquire { ttl }, None) => {
                if self.spent.contains_key(request.token) {
                    let text = "asks for a lock under a token that it had before";
                    self.find(request.key, text);
                }
                let untimely = self.untimely.take();
                self.untimely = untimely.or_else(|| self.is_untimely(request.key));
                self.begin(request.key, request.token, Part::Open, ttl)
            }
            (Ask::Extend { .. } | Ask::Fence { .. }, None) => {
                if self.spent.get(request.token) != Some(&true) {
                    self.find(request.key, "speaks of a lock that it never asked for");
                }
                return None;
            }
            (Ask::Release, None) => return None,
        };
        let is_thrown_away = ask == Ask::Release && self.is_thrown_away(place);
        let attempt = self.attempts.get_mut(place)?;
        let was_released = attempt.views.get(node)?.release != Release::No;
        let wrong = match (attempt.part, ask) {
            _ if attempt.key != request.key => Some("uses one token for two keys"),
            // What was asked for before is written after it was let go, when all is written at once.
            (
                Part::Over(_, since),
                Ask::Acquire { .. } | Ask::Extend { .. } | Ask::Fence { .. },
            ) => {
                let is_late = since != turn || was_released;
                is_late.then_some("asks for more under a token that it has let go")
            }
            (Part::Held(_), Ask::Release) => Some("releases a lock that its caller holds"),
            (Part::Left(kept_until), Ask::Release) if now < kept_until => {
                Some("releases a lock that is to be kept for longer")
            }
            (Part::Open, Ask::Release) => {
                attempt.part = Part::Over(None, turn);
                is_thrown_away.then_some("lets a lock go that a majority has granted in time")
            }
            _ => None,
        };
        let (view, number) = (attempt.views.get_mut(node)?, attempt.number);
        match ask {
            Ask::Acquire { ttl } => {
                view.may_hold = view.may_hold.max(Some(now + ttl));
                (view.lacks, view.is_heal_due) = (None, false);
            }
            Ask::Extend { ttl } => {
                (view.lacks, view.denies) = (None, false);
                attempt.last_ttl = ttl;
                (attempt.unrenewed_since, attempt.overdue_since) = (None, None);
            }
            Ask::Fence { .. } => attempt.is_written_back = true,
            Ask::Release => view.release = Release::Asked,
            Ask::Other => {}
        }
        if let Some(wrong) = wrong {
            self.find(request.key, wrong);
        }
        Some(number)
    }

    /// Whether a majority granted the attempt in time, its validity is not over, and no node was asked to count otherwise.
    /// A node that is silent for long is not asked. While some of the nodes count it waits to see whether a majority does.
    fn is_thrown_away(&self, place: usize) -> bool {
        let Some(attempt) = self.attempts.get(place) else {
            return false;
        };
        let due = attempt.since + super::timeout(attempt.ttl);
        let is_grant = |(node, view): &(usize, &NodeView)| {
            view.granted.is_some_and(|(at, _)| at < due) && self.is_quick(*node)
        };
        attempt.part == Part::Open
            && !attempt.is_written_back
            && self.now < self.drift.valid_until(attempt.since, attempt.ttl)
            && (attempt.counting() == 0 || attempt.counting() >= self.quorum())
            && attempt.views.iter().enumerate().filter(is_grant).count() >= self.quorum()
    }

    /// The client reports that it holds a lock.
    pub(crate) fn acquired(&mut self, op: OpId, token: &[u8], fencing: Option<u64>, until: Time) {
        let call = self.calls.iter().position(|call| call.op == op);
        let Some(call) = call.map(|place| self.calls.remove(place)) else {
            return;
        };
        self.has_news = true;
        let (turn, quorum) = (self.turn, self.quorum());
        let attempt = self.attempts.iter_mut().find(|it| it.token == token);
        let Some(attempt) = attempt else {
            let text = "holds a lock under a token that it never asked for";
            return self.find(&call.key, text);
        };
        attempt.part = Part::Held(op);
        (attempt.valid_until, attempt.renews) = (until, call.renews);
        if call.takes_over {
            let ttl = attempt.last_ttl;
            attempt.confirmed = Some(Confirmed { until, ttl, turn });
        }
        let (behind, counting) = (attempt.behind(until), attempt.counting());
        let credited = fencing.map(|fencing| attempt.credited(fencing));
        if behind < quorum {
            let text = format!("holds a lock with {behind} nodes behind it");
            self.find(&call.key, text);
        }
        match credited {
            Some(credited) if credited < quorum => {
                let text = format!("has a fencing token that {credited} nodes hold");
                self.find(&call.key, text);
            }
            None if !call.takes_over && counting >= quorum => {
                self.find(&call.key, "has no fencing token although a majority counts");
            }
            _ => {}
        }
    }

    /// The client reports that its lock is extended.
    pub(crate) fn extended(&mut self, op: OpId, until: Time) {
        let (turn, quorum) = (self.turn, self.quorum());
        let Some(attempt) = self.held(op) else { return };
        let ttl = attempt.last_ttl;
        let confirmed = Confirmed { until, ttl, turn };
        (attempt.confirmed, attempt.valid_until) = (Some(confirmed), until);
        let (behind, key) = (attempt.behind(until), attempt.key.clone());
        for view in &mut attempt.views {
            view.is_heal_due |= view.lacks.is_some_and(|(it, ttl)| confirmed.has(it, ttl));
        }
        if behind < quorum {
            let text = format!("has extended a lock with {behind} nodes behind it");
            self.find(&key, text);
        }
    }

    /// The client reports that its lock is valid until another moment.
    pub(crate) fn shortened(&mut self, op: OpId, until: Time) {
        if let Some(attempt) = self.held(op) {
            attempt.valid_until = until;
        }
    }

    /// The client reports that its lock is lost; `is_denied` when it reports that nodes said so.
    pub(crate) fn lost(&mut self, op: OpId, is_denied: bool) {
        let (now, quorum) = (self.now, self.quorum());
        let Some(attempt) = self.held(op) else { return };
        let denied = attempt.views.iter().filter(|view| view.denies).count();
        let is_right = if is_denied {
            attempt.views.len() - denied < quorum
        } else {
            now + WARNING_MAX >= attempt.valid_until
        };
        if !is_right {
            let key = attempt.key.clone();
            self.find(&key, "says that a lock is lost that is not");
        }
    }

    /// The client did not get a lock.
    pub(crate) fn failed(&mut self, op: OpId) {
        (self.has_news, self.failed_in) = (true, Some(self.turn));
        self.calls.retain(|call| call.op != op);
    }

    /// The client has reported and written everything; with `is_idle` it has done all that was due.
    pub(crate) fn settle(&mut self, is_idle: bool) {
        self.findings
            .extend(self.untimely.take().filter(|_| is_idle));
        if is_idle && !self.looks.is_empty() {
            self.see_looks();
        }
        if std::mem::take(&mut self.has_news) {
            self.abandon();
        }
        let mut attempts = std::mem::take(&mut self.attempts);
        attempts.retain_mut(|attempt| {
            let is_kept = match attempt.part {
                Part::Open => true,
                Part::Held(_) => {
                    self.heal(attempt);
                    if is_idle {
                        self.see_renewal(attempt);
                    }
                    true
                }
                Part::Left(_) => self.may_be_held(attempt),
                Part::Over(..) => self.is_awaited(attempt),
            };
            if !is_kept {
                let was_left = matches!(attempt.part, Part::Left(_));
                self.spent
                    .insert(std::mem::take(&mut attempt.token), was_left);
            }
            is_kept
        });
        self.attempts = attempts;
        self.turn = self.turn.wrapping_add(1);
    }

    /// The client asks a node again for what it lost, in the turn in which it learned of the loss.
    fn heal(&mut self, attempt: &mut Attempt) {
        for (node, view) in attempt.views.iter_mut().enumerate() {
            if std::mem::take(&mut view.is_heal_due) && self.is_quick(node) {
                self.find(
                    &attempt.key,
                    format!("does not heal its lock on node {node}"),
                );
            }
        }
    }

    fn may_be_held(&self, attempt: &Attempt) -> bool {
        let is_taken = |call: &Call| call.takes_over && call.key == attempt.key;
        let may_hold = |view: &NodeView| view.may_hold.is_some_and(|until| until > self.now);
        attempt.views.iter().any(may_hold) || self.calls.iter().any(is_taken)
    }

    /// Whether a node still has to be asked to release what nobody has.
    fn is_awaited(&mut self, attempt: &mut Attempt) -> bool {
        let mut is_awaited = false;
        for (node, view) in attempt.views.iter_mut().enumerate() {
            is_awaited |= match (view.release, view.may_hold) {
                (Release::Asked, _) => true,
                (Release::No, Some(until)) if until > self.now => {
                    if self.is_quick(node) {
                        let text =
                            format!("does not release what it has no use for on node {node}");
                        self.find(&attempt.key, text);
                        view.may_hold = None;
                    }
                    true
                }
                _ => false,
            };
        }
        is_awaited
    }

    /// Of the attempts for a key only the last one of each call goes on. Which one is whose is not known when there are, or
    /// were, several calls.
    fn abandon(&mut self) {
        let over = Part::Over(None, self.turn);
        let mut newer: Vec<Vec<u8>> = Vec::new();
        for attempt in self.attempts.iter_mut().rev() {
            if attempt.part != Part::Open {
                continue;
            }
            let of_key = |call: &&Call| call.key == attempt.key && !call.takes_over;
            match self.calls.iter().filter(of_key).count() {
                0 => attempt.part = over,
                1 if newer.contains(&attempt.key) => attempt.part = over,
                1 if attempt.number >= self.known_from => newer.push(attempt.key.clone()),
                1 => {}
                _ => self.known_from = self.next,
            }
        }
    }

    /// Whether a node takes requests for all that can be known: nothing that it was asked before waits for a reply.
    fn is_quick(&self, node: usize) -> bool {
        let turn = self.turn;
        self.lines.get(node).is_some_and(|line| {
            line.is_open && line.has_heard && line.asked.iter().all(|asked| asked.turn == turn)
        })
    }

    fn begin(&mut self, key: &[u8], token: &[u8], part: Part, ttl: Duration) -> usize {
        self.has_news = true;
        self.attempts.push(Attempt {
            number: self.next,
            key: key.to_vec(),
            token: token.to_vec(),
            part,
            since: self.now,
            ttl,
            last_ttl: ttl,
            views: vec![NodeView::default(); self.lines.len()],
            ..Attempt::default()
        });
        self.next += 1;
        self.attempts.len() - 1
    }

    fn attempt(&self, token: &[u8]) -> Option<usize> {
        self.attempts
            .iter()
            .rposition(|attempt| attempt.token == token)
    }

    fn held(&mut self, op: OpId) -> Option<&mut Attempt> {
        let part = Part::Held(op);
        self.attempts
            .iter_mut()
            .find(|attempt| attempt.part == part)
    }

    fn quorum(&self) -> usize {
        self.lines.len() / 2 + 1
    }

    pub(super) fn find(&mut self, key: &[u8], text: impl Into<String>) {
        self.findings.push(Finding::new(key, text));
    }
}

/// A client reports the end of a lock at most this long before it.
const WARNING_MAX: Duration = Duration::from_millis(100);
