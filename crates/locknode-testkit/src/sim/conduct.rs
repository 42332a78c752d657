//! What a client may say and has to do, by what it has asked and heard: a model beside the shipped core.
//!
//! It reads the bytes that a client sends and receives, with the client's own clock, and knows nothing of rounds and votes:
//!
//! * *Support*. Who holds a lock until `t`, or for longer now, has a yes from a majority of the nodes. Each came through a
//!   connection that has not ended, to a request of this token whose TTL, counted from when it was sent and less the drift,
//!   reaches to `t`; and the node is not one to which a shorter extension may still be on its way.
//! * *Credit* `[F7]`. Who has a fencing token has it from a majority: each told it with its grant, or told less and accepted it.
//! * *Use*. Who has a majority for himself does not throw it away, unless nodes would not accept the fencing token; and is not
//!   told that the lock is lost as long as it lives and a majority may hold it.
//! * *One token each*. An attempt has a token that was not there before, and asks for nothing more under it once it is over.
//! * *Nothing left*. What nodes may hold and no caller has is released: at once where a node is connected, and when it is
//!   connected again, until the TTL is over or the node has answered.
//! * *Terms*. A client pauses between two attempts, and starts none after its caller's time limit. It renews what it was asked
//!   to renew, and releases no lock before the time up to which it was asked to keep it.
//! * *Healing*. A node that says that it lost a lock while a majority extended it is asked to hold it again.
//! * *Looks*. Who asks what nodes hold has an answer in time. What is over for all callers is soon forgotten by the client.
//!
//! What cannot be known from outside is not judged: a client that has not heard from a node for long does not ask it anything.

mod aside;
mod tale;
mod terms;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use redlock_proto::{Drift, OpId, Time};

use aside::Look;
use tale::{Asked, Confirmed, Line, Part, Release, Stand, Tale};
pub(crate) use terms::Terms;
use wire::{Ask, Said, Written};

/// The model of one run of a client's process.
#[derive(Clone, Debug)]
pub(crate) struct Conduct {
    drift: Drift,
    /// What was not as it has to be.
    pub(crate) findings: Vec<Finding>,
    lines: Vec<Line>,
    /// Of attempts of which nodes may still hold something, oldest first.
    tales: Vec<Tale>,
    next: u32,
    /// The first attempt that began after several calls for one key.
    known_from: u32,
    /// The tokens of the others, and whether they were left: a node that is slow to answer is told of those once more.
    spent: BTreeMap<Vec<u8>, bool>,
    /// Who tries for a lock, or takes one over.
    calls: Vec<Call>,
    looks: Vec<Look>,
    /// When the client had more operations than are known here, last, and for how long.
    excess: Option<(Time, Duration)>,
    written: Written,
    now: Time,
    /// Counts what the client was told so far.
    turn: u32,
    /// Calls or attempts have come or gone.
    has_news: bool,
    /// The turn in which a call failed last.
    failed_in: u32,
    /// What is wrong with an attempt that has just begun, if that was no request that had waited for its node.
    untimely: Option<Finding>,
}

/// Something that was not as it has to be, and the key that it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) key: Vec<u8>,
    pub(crate) text: String,
}

#[derive(Clone, Debug)]
struct Call {
    op: OpId,
    key: Vec<u8>,
    takes_over: bool,
    terms: Terms,
    since: Time,
    turn: u32,
}

impl Conduct {
    pub(crate) fn new(nodes: u8, drift: Drift) -> Self {
        Self {
            drift,
            findings: Vec::new(),
            lines: vec![Line::default(); usize::from(nodes)],
            tales: Vec::new(),
            next: 0,
            known_from: 0,
            spent: BTreeMap::new(),
            calls: Vec::new(),
            looks: Vec::new(),
            excess: None,
            written: Written::default(),
            now: Time::ZERO,
            turn: 0,
            has_news: false,
            failed_in: u32::MAX,
            untimely: None,
        }
    }

    /// The client is about to be told something.
    pub(crate) const fn begins(&mut self, now: Time) {
        self.now = now;
    }

    /// A caller wants a lock.
    pub(crate) fn calls(&mut self, op: OpId, key: &[u8], terms: Terms) {
        self.calls.push(Call {
            op,
            key: key.to_vec(),
            takes_over: false,
            terms,
            since: self.now,
            turn: self.turn,
        });
    }

    /// A caller takes over a lock that was left to it.
    pub(crate) fn takes_over(&mut self, op: OpId, key: &[u8], token: &[u8], terms: Terms) {
        self.calls(op, key, terms);
        if let Some(call) = self.calls.last_mut() {
            call.takes_over = true;
        }
        if self.tale(token).is_none() {
            let place = self.begin(key, token, Part::Left, Duration::ZERO);
            if let Some(tale) = self.tales.get_mut(place) {
                tale.kept_until = Time::NEVER;
            }
        }
    }

    /// The caller gives its call up, or its lock ends, by its will or because it was told so; `is_left` when its key may stay taken, and does until
    /// `kept_until` at least.
    pub(crate) fn ends(&mut self, op: OpId, is_left: bool, kept_until: Time) {
        let turn = self.turn;
        let Some(tale) = self.held(op) else {
            return self.gives_up(op);
        };
        tale.kept_until = kept_until;
        tale.part = match is_left {
            true => Part::Left,
            false => Part::Over(Some(op), turn),
        };
    }

    pub(crate) fn opens(&mut self, node: usize) {
        self.closes(node);
        if let Some(line) = self.lines.get_mut(node) {
            line.is_open = true;
        }
    }

    /// A connection is over, and with it what was said through it.
    pub(crate) fn closes(&mut self, node: usize) {
        let Some(line) = self.lines.get_mut(node).filter(|line| line.is_open) else {
            return;
        };
        let line = std::mem::take(line);
        for tale in &mut self.tales {
            let Some(stand) = tale.stands.get_mut(node) else {
                continue;
            };
            (stand.granted, stand.accepted, stand.reach) = (None, None, None);
            (stand.lacks, stand.is_heal_due) = (None, false);
            if stand.release == Release::Asked {
                stand.release = Release::No;
            }
            for asked in line.asked.iter().filter(|it| it.tale == tale.number) {
                if let Ask::Extend { ttl } = asked.ask {
                    let least = stand.doubt.map_or(ttl, |doubt| doubt.min(ttl));
                    stand.doubt = Some(least);
                }
            }
        }
    }

    /// Bytes came from a node.
    pub(crate) fn hears(&mut self, node: usize, bytes: &[u8]) {
        let Some(line) = self.lines.get_mut(node).filter(|line| line.is_open) else {
            return;
        };
        let mut input = std::mem::take(&mut line.input);
        let whole = match input.is_empty() {
            true => bytes,
            false => {
                input.extend_from_slice(bytes);
                &input
            }
        };
        let mut at = 0;
        while let Some((said, len)) = whole.get(at..).and_then(wire::reply) {
            at += len;
            let Some(line) = self.lines.get_mut(node) else {
                return;
            };
            line.has_heard = true;
            if let Some(asked) = line.asked.pop_front().filter(|it| it.ask != Ask::Other) {
                self.answered(node, asked, said);
            }
        }
        let rest = whole.get(at..).unwrap_or_default().to_vec();
        if let Some(line) = self.lines.get_mut(node) {
            line.input = rest;
        }
    }

    fn answered(&mut self, node: usize, asked: Asked, said: Said) {
        let (now, drift) = (self.now, self.drift);
        let mut newest_first = self.tales.iter_mut().rev();
        let tale = newest_first.find(|it| it.number == asked.tale);
        let Some(tale) = tale else { return };
        let (part, confirmed) = (tale.part, tale.confirmed);
        let Some(stand) = tale.stands.get_mut(node) else {
            return;
        };
        match (asked.ask, said) {
            (Ask::Acquire { ttl }, Said::Yes(counter)) => {
                stand.granted = Some((now, counter.unwrap_or(0)));
                stand.reach = Some((drift.valid_until(asked.at, ttl), ttl));
            }
            (Ask::Acquire { .. }, Said::No | Said::Error) => stand.may_hold = None,
            (Ask::Extend { ttl }, Said::Yes(_)) => {
                stand.reach = Some((drift.valid_until(asked.at, ttl), ttl));
                stand.may_hold = stand.may_hold.max(Some(asked.at + ttl));
            }
            (Ask::Extend { ttl }, Said::No) => {
                let reach = drift.valid_until(asked.at, ttl);
                (stand.reach, stand.denies) = (None, true);
                stand.lacks = Some((reach, ttl));
                let is_of = |it: Confirmed| it.has(reach, ttl) && asked.turn < it.turn;
                if matches!(part, Part::Held(_)) {
                    stand.is_heal_due |= confirmed.is_some_and(is_of);
                    tale.is_heal_due |= stand.is_heal_due;
                }
            }
            (Ask::Fence { fence }, Said::Yes(_)) => stand.accepted = Some(fence),
            (Ask::Fence { .. }, _) => (stand.granted, stand.reach) = (None, None),
            (Ask::Release, Said::UnknownScript) => stand.release = Release::No,
            (Ask::Release, said) => {
                stand.release = Release::Answered;
                stand.was_freed |= matches!(said, Said::Yes(_));
            }
            _ => {}
        }
    }

    /// The client writes to a node.
    pub(crate) fn sends(&mut self, node: usize, bytes: &[u8]) {
        let mut written = std::mem::take(&mut self.written);
        written.read(bytes);
        for request in written.requests() {
            let tale = self.asks(node, &request);
            let asked = Asked {
                tale: tale.unwrap_or(u32::MAX),
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
        let place = match (ask, self.tale(request.token)) {
            (Ask::Other, _) => return None,
            (_, Some(place)) => place,
            (Ask::Acquire { ttl }, None) => {
                if self.spent.contains_key(request.token) {
                    self.find(
                        request.key,
                        "asks for a lock under a token that it had before",
                    );
                }
                self.untimely = self
                    .untimely
                    .take()
                    .or_else(|| self.is_untimely(request.key));
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
        let tale = self.tales.get_mut(place)?;
        let was_released = tale.stands.get(node)?.release != Release::No;
        let wrong = match (tale.part, ask) {
            _ if tale.key != request.key => Some("uses one token for two keys"),
            // What was asked for before is written after it was let go, when all is written at once.
            (
                Part::Over(_, since),
                Ask::Acquire { .. } | Ask::Extend { .. } | Ask::Fence { .. },
            ) => {
                let is_late = since != turn || was_released;
                is_late.then_some("asks for more under a token that it has let go")
            }
            (Part::Held(_), Ask::Release) => Some("releases a lock that its caller holds"),
            (Part::Left, Ask::Release) if now < tale.kept_until => {
                Some("releases a lock that is to be kept for longer")
            }
            (Part::Open, Ask::Release) => {
                tale.part = Part::Over(None, turn);
                is_thrown_away.then_some("lets a lock go that a majority has granted in time")
            }
            _ => None,
        };
        let (stand, number) = (tale.stands.get_mut(node)?, tale.number);
        match ask {
            Ask::Acquire { ttl } => {
                stand.may_hold = stand.may_hold.max(Some(now + ttl));
                (stand.lacks, stand.is_heal_due) = (None, false);
            }
            Ask::Extend { ttl } => {
                (stand.lacks, stand.denies) = (None, false);
                tale.last_ttl = ttl;
                (tale.unrenewed_since, tale.overdue_since) = (None, None);
            }
            Ask::Fence { .. } => tale.is_written_back = true,
            Ask::Release => stand.release = Release::Asked,
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
        let Some(tale) = self.tales.get(place) else {
            return false;
        };
        let due = tale.since + super::timeout(tale.ttl);
        let is_grant = |(node, stand): &(usize, &Stand)| {
            stand.granted.is_some_and(|(at, _)| at < due) && self.is_quick(*node)
        };
        tale.part == Part::Open
            && !tale.is_written_back
            && self.now < self.drift.valid_until(tale.since, tale.ttl)
            && (tale.counting() == 0 || tale.counting() >= self.quorum())
            && tale.stands.iter().enumerate().filter(is_grant).count() >= self.quorum()
    }

    /// The client says that it holds a lock.
    pub(crate) fn acquired(&mut self, op: OpId, token: &[u8], fencing: Option<u64>, until: Time) {
        let call = self.calls.iter().position(|call| call.op == op);
        let Some(call) = call.map(|place| self.calls.remove(place)) else {
            return;
        };
        self.has_news = true;
        let (turn, quorum) = (self.turn, self.quorum());
        let tale = self.tales.iter_mut().find(|it| it.token == token);
        let Some(tale) = tale else {
            return self.find(
                &call.key,
                "holds a lock under a token that it never asked for",
            );
        };
        tale.part = Part::Held(op);
        (tale.valid_until, tale.renews) = (until, call.terms.renews);
        if call.takes_over {
            let ttl = tale.last_ttl;
            tale.confirmed = Some(Confirmed { until, ttl, turn });
        }
        let (behind, counting) = (tale.behind(until), tale.counting());
        let credited = fencing.map(|fencing| tale.credited(fencing));
        if behind < quorum {
            self.find(
                &call.key,
                &format!("holds a lock with {behind} nodes behind it"),
            );
        }
        match credited {
            Some(credited) if credited < quorum => {
                let text = format!("has a fencing token that {credited} nodes hold");
                self.find(&call.key, &text);
            }
            None if !call.takes_over && counting >= quorum => {
                self.find(&call.key, "has no fencing token although a majority counts");
            }
            _ => {}
        }
    }

    /// The client says that its lock lives longer.
    pub(crate) fn extended(&mut self, op: OpId, until: Time) {
        let (turn, quorum) = (self.turn, self.quorum());
        let Some(tale) = self.held(op) else { return };
        let ttl = tale.last_ttl;
        let confirmed = Confirmed { until, ttl, turn };
        (tale.confirmed, tale.valid_until) = (Some(confirmed), until);
        let (behind, key) = (tale.behind(until), tale.key.clone());
        for stand in &mut tale.stands {
            stand.is_heal_due |= stand.lacks.is_some_and(|(it, ttl)| confirmed.has(it, ttl));
            tale.is_heal_due |= stand.is_heal_due;
        }
        if behind < quorum {
            self.find(
                &key,
                &format!("has extended a lock with {behind} nodes behind it"),
            );
        }
    }

    /// The client says that its lock is valid until another moment.
    pub(crate) fn shortened(&mut self, op: OpId, until: Time) {
        if let Some(tale) = self.held(op) {
            tale.valid_until = until;
        }
    }

    /// The client says that its lock is lost; `is_denied` when it says that nodes told so.
    pub(crate) fn lost(&mut self, op: OpId, is_denied: bool) {
        let (now, quorum) = (self.now, self.quorum());
        let Some(tale) = self.held(op) else { return };
        let denied = tale.stands.iter().filter(|stand| stand.denies).count();
        let is_right = match is_denied {
            true => tale.stands.len() - denied < quorum,
            false => now + WARNING_MAX >= tale.valid_until,
        };
        if !is_right {
            let key = tale.key.clone();
            self.find(&key, "says that a lock is lost that is not");
        }
    }

    /// The client did not get a lock.
    pub(crate) fn failed(&mut self, op: OpId) {
        (self.has_news, self.failed_in) = (true, self.turn);
        self.calls.retain(|call| call.op != op);
    }

    /// All that the client had to say and to write is said and written; with `is_idle` it has done all that was due.
    pub(crate) fn settle(&mut self, is_idle: bool) {
        self.findings
            .extend(self.untimely.take().filter(|_| is_idle));
        if is_idle && !self.looks.is_empty() {
            self.see_looks();
        }
        if std::mem::take(&mut self.has_news) {
            self.abandon();
        }
        let mut tales = std::mem::take(&mut self.tales);
        tales.retain_mut(|tale| {
            let is_kept = match tale.part {
                Part::Open => true,
                Part::Held(_) => {
                    if std::mem::take(&mut tale.is_heal_due) {
                        self.heal(tale);
                    }
                    if is_idle {
                        self.see_renewal(tale);
                    }
                    true
                }
                Part::Left => self.may_be_held(tale),
                Part::Over(..) => self.is_awaited(tale),
            };
            if !is_kept {
                let was_left = tale.part == Part::Left;
                self.spent.insert(std::mem::take(&mut tale.token), was_left);
            }
            is_kept
        });
        self.tales = tales;
        self.turn = self.turn.wrapping_add(1);
    }

    /// What a node lost is to be asked for in the turn in which that was heard.
    fn heal(&mut self, tale: &mut Tale) {
        for (node, stand) in tale.stands.iter_mut().enumerate() {
            if std::mem::take(&mut stand.is_heal_due) && self.is_quick(node) {
                self.find(&tale.key, &format!("does not heal its lock on node {node}"));
            }
        }
    }

    fn may_be_held(&self, tale: &Tale) -> bool {
        let is_taken = |call: &Call| call.takes_over && call.key == tale.key;
        let may_hold = |stand: &Stand| stand.may_hold.is_some_and(|until| until > self.now);
        tale.stands.iter().any(may_hold) || self.calls.iter().any(is_taken)
    }

    /// Whether a node is still to be told to let go what nobody has.
    fn is_awaited(&mut self, tale: &mut Tale) -> bool {
        let mut is_awaited = false;
        for (node, stand) in tale.stands.iter_mut().enumerate() {
            is_awaited |= match (stand.release, stand.may_hold) {
                (Release::Asked, _) => true,
                (Release::No, Some(until)) if until > self.now => {
                    if self.is_quick(node) {
                        let text =
                            format!("does not release what it has no use for on node {node}");
                        self.find(&tale.key, &text);
                        stand.may_hold = None;
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
        for tale in self.tales.iter_mut().rev() {
            if tale.part != Part::Open {
                continue;
            }
            let of_key = |call: &&Call| call.key == tale.key && !call.takes_over;
            match self.calls.iter().filter(of_key).count() {
                0 => tale.part = over,
                1 if newer.contains(&tale.key) => tale.part = over,
                1 if tale.number >= self.known_from => newer.push(tale.key.clone()),
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
        self.tales.push(Tale {
            number: self.next,
            key: key.to_vec(),
            token: token.to_vec(),
            part,
            since: self.now,
            ttl,
            last_ttl: ttl,
            is_written_back: false,
            is_heal_due: false,
            confirmed: None,
            valid_until: Time::ZERO,
            renews: None,
            unrenewed_since: None,
            overdue_since: None,
            kept_until: Time::ZERO,
            stands: vec![Stand::default(); self.lines.len()],
        });
        self.next += 1;
        self.tales.len() - 1
    }

    fn tale(&self, token: &[u8]) -> Option<usize> {
        self.tales.iter().rposition(|tale| tale.token == token)
    }

    fn held(&mut self, op: OpId) -> Option<&mut Tale> {
        let part = Part::Held(op);
        self.tales.iter_mut().find(|tale| tale.part == part)
    }

    fn quorum(&self) -> usize {
        self.lines.len() / 2 + 1
    }

    pub(super) fn find(&mut self, key: &[u8], text: &str) {
        self.findings.push(Finding {
            key: key.to_vec(),
            text: text.to_owned(),
        });
    }
}

/// A holder is told of the end of its lock so long before it at most.
const WARNING_MAX: Duration = Duration::from_millis(100);
