//! Progress after the faults: nobody waits when nothing is in the way.
//!
//! From [`Setup::liveness_from`](crate::Setup::liveness_from) on all faults are healed, by a [`Fault::Calm`]; the next fault
//! ends what is demanded. What is left of the faults then has to end by itself, which takes [`Bounds::settle`] at the
//! longest: quarantines, and locks whose holders died or whose release was lost (L3). After that:
//!
//! * *Stuck*: whoever tries for a lock knows within [`Bounds::call`] whether he has it.
//! * *Alone* (L1, L2): he has it, when nobody else tried for the key or held it, may still hold it on the nodes (a holder that
//!   died or let it go without a word leaves it for `settle`, a release or a failed attempt for [`Bounds::quiet`]), and a majority of
//!   the nodes served and refused nothing all the while. Not demanded where messages are so slow that a client that connects
//!   anew does not get through in one try ([`Bounds::is_quick`]).
//! * *Starved* (L5): of [`Bounds::contended`] tries for a key that failed in a row one should have succeeded, when nobody held
//!   it. Votes can be split, but not for ever.
//! * *Quarantine* (L4): a node that starts serves within [`Bounds::quarantine`], or goes down again; this from the calm on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::check::absence::Absences;
use crate::check::evidence::{Evidence, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::fault::Fault;
use crate::history::{Event, KeyNo, LockNo};
use crate::scenario::{Act, Deed, Scenario};
use crate::sim::timeout;
use crate::span::{SimTime, Span};

/// How long what may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From when on all faults are healed.
    pub from: SimTime,
    /// How long what they left behind may last.
    pub settle: Duration,
    /// How long a node may be in quarantine.
    pub quarantine: Duration,
    /// How long a call may take, with all its tries.
    pub call: Duration,
    /// How long after a release or a failed call nodes may still hold its lock.
    pub quiet: Duration,
    /// How many calls for a key may fail in a row because they split the votes.
    pub contended: usize,
    /// Whether a client that is not connected yet gets through in one try: a connection, a greeting and a request are
    /// three round trips, and nodes are given a tenth of the TTL for them.
    pub is_quick: bool,
}

impl Bounds {
    /// The bounds of a scenario that demands progress.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let setup = &scenario.setup;
        let from = setup.liveness_from?;
        let (mut ttl, mut wait, mut tries) = (Duration::ZERO, setup.max_ttl, 1);
        let mut least_ttl = Duration::MAX;
        for step in &scenario.steps {
            match &step.what {
                Deed::Fault(Fault::MaxTtl(_, max_ttl)) => wait = wait.max(*max_ttl),
                Deed::Act(_, Act::Lock(act)) => {
                    ttl = ttl.max(act.ttl);
                    least_ttl = least_ttl.min(act.ttl);
                    tries = tries.max(act.tries);
                }
                Deed::Act(_, Act::Extend { ttl: longer, .. }) => ttl = ttl.max(*longer),
                _ => {}
            }
        }
        let hop = setup.delay.1.saturating_add(setup.sync.1);
        let round = TRY.saturating_add(hop.saturating_mul(HOPS));
        Some(Self {
            from,
            settle: lasting(ttl.max(wait)),
            quarantine: lasting(wait),
            call: round.saturating_mul(tries).saturating_add(SLACK),
            quiet: SLACK.saturating_add(hop.saturating_mul(HOPS)),
            contended: CONTENDED,
            is_quick: timeout(least_ttl) >= hop.saturating_mul(CONNECTING_HOPS),
        })
    }
}

/// There and back three times.
const CONNECTING_HOPS: u32 = 6;

/// How long a node may keep to a TTL: the drift, the slack with which it is written down (a sixteenth, a second at least), and
/// what a start takes.
fn lasting(ttl: Duration) -> Duration {
    ttl.saturating_add(ttl / 100)
        .saturating_add(ttl / 8)
        .saturating_add(2 * SLACK)
}

/// What took too long.
pub(crate) fn liveness(facts: &Facts<'_>, bounds: &Bounds) -> Vec<Violation> {
    let judge = Judge::of(facts, bounds);
    let mut found = judge.quarantines();
    let calls = judge.calls();
    let mut keys: BTreeMap<KeyNo, Vec<&Call>> = BTreeMap::new();
    for call in calls.values() {
        found.extend(judge.stuck(call));
        keys.entry(call.key).or_default().push(call);
    }
    for calls in keys.values_mut() {
        calls.sort_by_key(|call| call.called);
        if bounds.is_quick {
            judge.alone(calls, &mut found);
        }
        found.extend(judge.starved(calls));
    }
    found.truncate(FINDINGS_MAX);
    if found.is_empty() {
        return Vec::new();
    }
    let evidence = Evidence::of(facts, &BTreeSet::new());
    for violation in &mut found {
        violation.text += &evidence.meanwhile(bounds.from, violation.until);
    }
    found
}

struct Judge<'h> {
    facts: &'h Facts<'h>,
    bounds: &'h Bounds,
    absences: Absences,
    /// When each node refused something.
    refusals: Vec<Vec<SimTime>>,
    /// When all faults are healed and everybody goes on, and when what they left has ended.
    calm: SimTime,
    settled: SimTime,
    /// Until when progress is demanded.
    until: SimTime,
}

/// A call for a lock, and what became of it.
struct Call {
    lock: LockNo,
    client: u8,
    key: KeyNo,
    called: SimTime,
    /// When the client knew, and whether it failed.
    ended: Option<SimTime>,
    is_failed: bool,
    /// Until when it may be in the way of others.
    blocks: SimTime,
}

impl<'h> Judge<'h> {
    fn of(facts: &'h Facts<'h>, bounds: &'h Bounds) -> Self {
        let history = facts.history;
        let mut refusals = vec![Vec::new(); usize::from(history.nodes)];
        let (mut calm, mut until) = (bounds.from, history.end);
        for entry in &history.entries {
            match &entry.event {
                Event::Refused { node, .. } => {
                    if let Some(refusals) = refusals.get_mut(usize::from(*node)) {
                        refusals.push(entry.at);
                    }
                }
                Event::Stopped { until, .. } => calm = calm.max(*until),
                Event::Fault(text) if entry.at > bounds.from && !text.starts_with("calm") => {
                    until = until.min(entry.at);
                }
                _ => {}
            }
        }
        Self {
            facts,
            bounds,
            absences: Absences::of(history),
            refusals,
            calm,
            settled: calm + bounds.settle,
            until,
        }
    }

    fn calls(&self) -> BTreeMap<LockNo, Call> {
        let mut calls: BTreeMap<LockNo, Call> = BTreeMap::new();
        for entry in &self.facts.history.entries {
            let at = entry.at;
            match entry.event {
                Event::Calls { client, lock, key } => {
                    let blocks = SimTime::NEVER;
                    calls.insert(
                        lock,
                        Call {
                            lock,
                            client,
                            key,
                            called: at,
                            ended: None,
                            is_failed: false,
                            blocks,
                        },
                    );
                }
                Event::Acquired { lock, .. }
                | Event::Failed { lock, .. }
                | Event::Lost { lock, .. }
                | Event::Releases { lock, .. }
                | Event::Released { lock, .. } => {
                    let Some(call) = calls.get_mut(&lock) else {
                        continue;
                    };
                    call.ended.get_or_insert(at);
                    match entry.event {
                        Event::Failed { .. } => {
                            call.is_failed = true;
                            call.blocks = at + self.bounds.quiet;
                        }
                        Event::Released { confirmed, .. }
                            if usize::from(confirmed) >= self.facts.quorum() =>
                        {
                            call.blocks = at + self.bounds.quiet;
                        }
                        _ => {}
                    }
                }
                Event::ClientDown { client } => {
                    let open = calls.values_mut().filter(|call| call.client == client);
                    for call in open.filter(|call| call.ended.is_none()) {
                        call.ended = Some(at);
                        call.blocks = at + self.bounds.settle;
                    }
                }
                _ => {}
            }
        }
        for call in calls
            .values_mut()
            .filter(|call| call.blocks == SimTime::NEVER)
        {
            if let Some(window) = self.facts.window(call.lock) {
                call.blocks = window.until + self.bounds.settle;
            }
        }
        calls
    }

    /// L4.
    fn quarantines(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut since: BTreeMap<u8, SimTime> = BTreeMap::new();
        let mut late = |node, started: SimTime, until: SimTime| {
            let due = started.max(self.calm) + self.bounds.quarantine;
            if due < until && due < self.until {
                found.push(Violation {
                    kind: ViolationKind::Liveness,
                    from: started,
                    until,
                    clients: Vec::new(),
                    nodes: vec![node],
                    key: None,
                    text: format!(
                        "node {node} is in quarantine since {started}, which should end within {}",
                        Span(self.bounds.quarantine)
                    ),
                });
            }
        };
        for entry in &self.facts.history.entries {
            match entry.event {
                Event::Started {
                    node,
                    is_quarantined: true,
                    ..
                } => {
                    since.insert(node, entry.at);
                }
                Event::Serving { node } | Event::Down { node, .. } => {
                    if let Some(started) = since.remove(&node) {
                        late(node, started, entry.at);
                    }
                }
                _ => {}
            }
        }
        for (node, started) in since {
            late(node, started, self.facts.history.end);
        }
        found
    }

    fn stuck(&self, call: &Call) -> Option<Violation> {
        let due = call.called.max(self.settled) + self.bounds.call;
        let ended = call.ended.unwrap_or(SimTime::NEVER);
        (due < ended && due < self.until).then(|| {
            let text = format!(
                "client {} does not know within {} whether it has lock {}, called for at {}",
                call.client,
                Span(self.bounds.call),
                call.lock,
                call.called
            );
            self.violation(call, call.called, ended.min(self.facts.history.end), text)
        })
    }

    /// L1, L2, L3: a call that failed with nobody else near.
    fn alone(&self, calls: &[&Call], found: &mut Vec<Violation>) {
        let mut blocked = SimTime::ZERO;
        for (place, call) in calls.iter().enumerate() {
            let (before, next) = (blocked, calls.get(place + 1));
            blocked = blocked.max(call.blocks);
            let Some(ended) = call.ended.filter(|_| call.is_failed) else {
                continue;
            };
            let is_judged = call.called >= self.settled && ended < self.until;
            let is_alone = before <= call.called && next.is_none_or(|next| next.called > ended);
            if is_judged && is_alone && self.is_healthy(call.called, ended) {
                let text = format!(
                    "client {} failed to lock `{}` (lock {}) although nobody else wanted it and a majority served",
                    call.client,
                    self.facts.history.key(call.key),
                    call.lock
                );
                found.push(self.violation(call, call.called, ended, text));
            }
        }
    }

    /// L5: calls that all failed although nobody held the key.
    fn starved(&self, calls: &[&Call]) -> Option<Violation> {
        let failed: Vec<&&Call> = calls
            .iter()
            .filter(|call| call.is_failed && call.called >= self.settled)
            .filter(|call| call.ended.is_some_and(|ended| ended < self.until))
            .collect();
        let (first, last) = (failed.first()?, failed.last()?);
        let ended = last.ended?;
        let mut windows = self.facts.windows.iter();
        let is_held = windows.any(|window| window.key == first.key && window.until > self.settled);
        let is_starved = failed.len() > self.bounds.contended && !is_held;
        (is_starved && self.is_healthy(first.called, ended)).then(|| {
            let text = format!(
                "{} calls for `{}` failed within {} and none succeeded, although a majority served",
                failed.len(),
                self.facts.history.key(first.key),
                span(first.called, ended)
            );
            self.violation(first, first.called, ended, text)
        })
    }

    /// Whether a majority of the nodes took part in locks and refused nothing.
    fn is_healthy(&self, from: SimTime, until: SimTime) -> bool {
        let is_well = |node: &usize| {
            let refusals = self
                .refusals
                .get(*node)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let refused = refusals.partition_point(|at| *at < from);
            self.absences.within(*node, from, until).is_empty()
                && refusals.get(refused).is_none_or(|at| *at > until)
        };
        (0..self.refusals.len()).filter(is_well).count() >= self.facts.quorum()
    }

    fn violation(&self, call: &Call, from: SimTime, until: SimTime, text: String) -> Violation {
        Violation {
            kind: ViolationKind::Liveness,
            from,
            until,
            clients: vec![call.client],
            nodes: Vec::new(),
            key: Some(call.key),
            text,
        }
    }
}

/// A try: a round for the lock and one for its fencing token, each at most the longest node timeout (250 ms), and the longest
/// wait before the next one (500 ms), with as much again for a client that opens its connections first.
const TRY: Duration = Duration::from_secs(2);

/// Messages of a try that follow on each other, at most: two rounds, the release, and a connection with its greeting.
const HOPS: u32 = 10;

/// What a start of a process and a new connection take, generously.
const SLACK: Duration = Duration::from_secs(1);

/// With full jitter a round in which everybody splits the votes is rare after the first; so many in a row are no chance.
const CONTENDED: usize = 64;
