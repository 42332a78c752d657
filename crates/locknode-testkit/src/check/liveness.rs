//! Progress after the faults: nobody waits when nothing is in the way.
//!
//! From [`Setup::liveness_from`](crate::Setup::liveness_from) on all faults are healed, by a [`Fault::Calm`]; the next fault
//! ends what is demanded, unless it only puts right what is right already. What is left of the faults then has to end by
//! itself, which takes [`Bounds::settle`] at the longest: quarantines, and locks whose holders died or whose release was lost
//! (L3). After that:
//!
//! * *Stuck*: whoever tries for a lock knows within [`Bounds::call`] whether he has it.
//! * *Alone* (L1, L2): he has it, when nobody else tried for the key or held it, may still hold it on the nodes (a holder that
//!   died or let it go without a word leaves it for `settle`, a release or a failed attempt for [`Bounds::quiet`]), and a majority of
//!   the nodes served and refused nothing all the while. Not demanded where messages are so slow that a client that connects
//!   anew does not get through in one try ([`Bounds::is_quick`]).
//! * *Starved* (L5): of [`Bounds::contended`] tries for a key that failed in a row one should have succeeded, when nobody held
//!   it and nodes kept to no lock of somebody who had held it or died. Votes can be split, but not for ever.
//! * *Quarantine* (L4): a node that starts serves within [`Bounds::quarantine`], or goes down again; this from the calm on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::check::absence::Absences;
use crate::check::evidence::{Evidence, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::fault::Fault;
use crate::history::{AttemptNo, Event, KeyNo, LockNo};
use crate::scenario::{Act, Deed, Scenario, Trigger};
use crate::sim::timeout;
use crate::span::{SimTime, Span};

/// How long what may take.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// How many tries for a key may fail in a row because they split the votes: `ROUNDS` for each client. Waits between
    /// tries are drawn from a range that doubles up to half a second, many times what a try takes, so that among all clients
    /// somebody soon has the nodes for himself.
    pub contended: u32,
    /// How often a call is tried that a client begins at that moment; one that is not told of here is tried once.
    pub tries: BTreeMap<(SimTime, u8), u32>,
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
        let mut by_call = BTreeMap::new();
        for step in &scenario.steps {
            match &step.what {
                Deed::Fault(Fault::MaxTtl(_, max_ttl)) => wait = wait.max(*max_ttl),
                &Deed::Act(client, Act::Lock(ref act)) => {
                    ttl = ttl.max(act.ttl);
                    ttl = ttl.max(act.extend_to.unwrap_or_default());
                    ttl = ttl.max(act.at_least.unwrap_or_default());
                    least_ttl = least_ttl.min(act.ttl);
                    tries = tries.max(act.tries);
                    if let Trigger::At(at) = step.when {
                        let of_call = by_call.entry((at, client)).or_insert(act.tries);
                        *of_call = act.tries.min(*of_call);
                    }
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
            contended: ROUNDS.saturating_mul(setup.clients.into()),
            tries: by_call,
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
    let taken = judge.taken();
    let mut keys: BTreeMap<KeyNo, Vec<&Call>> = BTreeMap::new();
    for call in calls.values() {
        found.extend(judge.stuck(call));
        keys.entry(call.key).or_default().push(call);
    }
    for (key, calls) in &mut keys {
        calls.sort_by_key(|call| call.called);
        if bounds.is_quick {
            judge.alone(calls, &mut found);
        }
        let taken = taken.get(key).map(Vec::as_slice).unwrap_or_default();
        found.extend(judge.starved(calls, taken));
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

/// A time in which tries for a key fail because of one who got it.
struct Taken {
    from: SimTime,
    until: SimTime,
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
                Event::Fault(text) if entry.at > bounds.from && !is_repair(text) => {
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
        // By client: what has not ended.
        let mut open: BTreeMap<u8, BTreeSet<LockNo>> = BTreeMap::new();
        for entry in &self.facts.history.entries {
            let at = entry.at;
            match entry.event {
                Event::Calls { client, lock, key } => {
                    let blocks = SimTime::NEVER;
                    open.entry(client).or_default().insert(lock);
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
                    if let Some(open) = open.get_mut(&call.client) {
                        open.remove(&lock);
                    }
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
                    for lock in open.remove(&client).unwrap_or_default() {
                        if let Some(call) = calls.get_mut(&lock) {
                            call.ended = Some(at);
                            call.blocks = at + self.bounds.settle;
                        }
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

    /// When each key was held, and until when nodes kept to that; and to what they had granted to somebody who died.
    fn taken(&self) -> BTreeMap<KeyNo, Vec<Taken>> {
        let mut votes: BTreeMap<(AttemptNo, u8), SimTime> = BTreeMap::new();
        // By client: what was granted to it since it started, and when it died with what.
        let mut granted: BTreeMap<u8, Vec<(KeyNo, AttemptNo)>> = BTreeMap::new();
        let mut orphans = Vec::new();
        for entry in &self.facts.history.entries {
            match entry.event {
                Event::Granted {
                    node,
                    key,
                    attempt,
                    client,
                    ends,
                    ..
                } => {
                    votes.insert((attempt, node), ends);
                    granted.entry(client).or_default().push((key, attempt));
                }
                Event::Restored {
                    node,
                    attempt,
                    ends,
                    ..
                }
                | Event::Extended {
                    node,
                    attempt,
                    ends,
                    ..
                } => {
                    votes.insert((attempt, node), ends);
                }
                Event::Freed { node, attempt, .. } => {
                    votes.insert((attempt, node), entry.at);
                }
                Event::ClientDown { client } => {
                    let left = granted.remove(&client).unwrap_or_default();
                    orphans.extend(left.into_iter().map(|it| (entry.at, it)));
                }
                _ => {}
            }
        }
        let last = |attempt| {
            let votes = votes.range((attempt, u8::MIN)..=(attempt, u8::MAX));
            votes.map(|(_, ends)| *ends).max().unwrap_or_default()
        };
        let mut keys: BTreeMap<KeyNo, Vec<Taken>> = BTreeMap::new();
        for window in &self.facts.windows {
            keys.entry(window.key).or_default().push(Taken {
                from: window.from,
                until: window.until.max(last(window.attempt)),
            });
        }
        for (from, (key, attempt)) in orphans {
            let until = last(attempt);
            if until > from {
                keys.entry(key).or_default().push(Taken { from, until });
            }
        }
        for taken in keys.values_mut() {
            taken.sort_by_key(|taken| taken.from);
        }
        keys
    }

    /// L5: tries that failed in a row although nothing was in their way but each other.
    fn starved(&self, calls: &[&Call], taken: &[Taken]) -> Option<Violation> {
        let mut failed: Vec<(SimTime, &Call)> = calls
            .iter()
            .filter(|call| call.is_failed)
            .filter_map(|call| Some((call.ended?, *call)))
            .filter(|(ended, _)| *ended < self.until)
            .collect();
        failed.sort_by_key(|(ended, _)| *ended);
        let (mut taken, mut since) = (taken.iter().peekable(), self.settled);
        let (mut row, mut tries) = (Vec::new(), 0_u32);
        for (ended, call) in failed {
            while let Some(taken) = taken.next_if(|taken| taken.from <= ended) {
                since = since.max(taken.until);
                (row, tries) = (Vec::new(), 0);
            }
            if call.called < since {
                continue;
            }
            row.push(call);
            let of_call = self.bounds.tries.get(&(call.called, call.client));
            tries = tries.saturating_add(of_call.copied().unwrap_or(1).max(1));
            if tries <= self.bounds.contended {
                continue;
            }
            let first = row.iter().copied().min_by_key(|call| call.called)?;
            if self.is_healthy(first.called, ended) {
                let text = format!(
                    "{tries} tries for `{}` in {} calls failed in a row within {}, although a majority served",
                    self.facts.history.key(first.key),
                    row.len(),
                    span(first.called, ended)
                );
                return Some(self.violation(first, first.called, ended, text));
            }
            // What is to come is looked at by itself.
            (row, tries) = (Vec::new(), 0);
        }
        None
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

/// Whether a fault can only put right what others have done, and does nothing where all is right.
fn is_repair(text: &str) -> bool {
    let is_start = |word: &&str| text.starts_with(*word);
    let is_disk = text.starts_with("disk ") && (text.ends_with(" room") || text.ends_with(" go"));
    is_disk
        || ["calm", "restart ", "heal ", "release "]
            .iter()
            .any(is_start)
}

/// A try: a round for the lock and one for its fencing token, each at most the longest node timeout (250 ms), and the longest
/// wait before the next one (500 ms), with as much again for a client that opens its connections first.
const TRY: Duration = Duration::from_secs(2);

/// Messages of a try that follow on each other, at most: two rounds, the release, and a connection with its greeting.
const HOPS: u32 = 10;

/// What a start of a process and a new connection take, generously.
const SLACK: Duration = Duration::from_secs(1);

/// A round is a try of each client. The two that are nearest to each other have to be apart by what a try takes, and with full
/// jitter that is at least as likely as not; so many rounds in a row without it are no chance.
const ROUNDS: u32 = 8;
