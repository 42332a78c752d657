//! Progress after the faults: nobody waits when nothing is in the way.
//!
//! From [`Setup::liveness_from`](crate::Setup::liveness_from) on all faults are healed, by a [`Fault::Calm`]; the next fault
//! ends what is demanded, unless it only puts right what is right already. What is left of the faults then has to end by
//! itself, which takes [`Bounds::settle`] at the longest: quarantines, and locks whose holders died or whose release was lost
//! (L3). After that:
//!
//! * *Stuck*: whoever tries for a lock knows within [`Bounds::call`] whether it was acquired.
//! * *Alone* (L1, L2): he has it, when nobody else tried for the key or held it, may still hold it on the nodes (a holder that
//!   died or let it go without a word leaves it for `settle`, a release or a failed attempt for [`Bounds::quiet`]), and a majority of
//!   the nodes served and refused nothing all the while. Not demanded where messages are so slow that a client that connects
//!   anew does not get through in one try ([`Bounds::is_quick`]).
//! * *Starved* (L5): of [`Bounds::contended`] tries for a key that failed in a row one should have succeeded, when nobody held
//!   it and nodes kept to no lock of somebody who had held it or died. Votes can be split, but not for ever.
//! * *Quarantine* (L4): a node that starts serves within [`Bounds::quarantine`], or goes down again; this from the calm on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::check::evidence::{Evidence, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::fault::{Fault, Who};
use crate::history::index::{Call, Outcome};
use crate::history::{Event, KeyNo};
use crate::scenario::{Action, ClientAction, Scenario, Trigger};
use crate::sim::{GIVEN_UP, timeout};
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
    /// How often a call is tried that a client begins at that moment; one that is not in here is tried once.
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
        let mut within = Duration::ZERO;
        let mut least_ttl = Duration::MAX;
        let mut by_call = BTreeMap::new();
        for step in &scenario.steps {
            match &step.what {
                Action::Fault(Fault::MaxTtl(_, max_ttl)) => wait = wait.max(*max_ttl),
                &Action::Client(client, ClientAction::Lock(ref act)) => {
                    ttl = ttl.max(act.ttl);
                    ttl = ttl.max(act.extend_to.unwrap_or_default());
                    ttl = ttl.max(act.at_least.unwrap_or_default());
                    least_ttl = least_ttl.min(act.ttl);
                    tries = tries.max(act.tries);
                    within = within.max(act.within.unwrap_or_default());
                    if let Trigger::At(at) = step.when {
                        let of_call = by_call.entry((at, client)).or_insert(act.tries);
                        *of_call = act.tries.min(*of_call);
                    }
                }
                Action::Client(_, ClientAction::Extend { ttl: longer, .. }) => {
                    ttl = ttl.max(*longer)
                }
                _ => {}
            }
        }
        let hop = setup.delay.1.saturating_add(setup.sync.1);
        let round = TRY.saturating_add(hop.saturating_mul(HOPS));
        Some(Self {
            from,
            settle: lasting(ttl.max(wait)),
            quarantine: lasting(wait),
            call: (round.saturating_mul(tries).saturating_add(SLACK)).saturating_add(within),
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
    let taken = judge.taken();
    let mut keys: BTreeMap<KeyNo, Vec<&Call>> = BTreeMap::new();
    for call in &facts.index.calls {
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
    /// When each node refused something.
    refusals: Vec<Vec<SimTime>>,
    /// When all faults are healed and everybody goes on, and when what they left has ended.
    calm: SimTime,
    settled: SimTime,
    /// Until when progress is demanded.
    until: SimTime,
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
        let stops = facts.index.standstills.iter().map(|stop| stop.until);
        let calm = stops.fold(bounds.from, SimTime::max);
        let mut until = history.end;
        for entry in &history.entries {
            match &entry.event {
                Event::Refused { node, .. } => {
                    if let Some(refusals) = refusals.get_mut(usize::from(*node)) {
                        refusals.push(entry.at);
                    }
                }
                Event::Fault(text) if entry.at > bounds.from && !is_repair(text) => {
                    until = until.min(entry.at);
                }
                _ => {}
            }
        }
        Self {
            facts,
            bounds,
            refusals,
            calm,
            settled: calm + bounds.settle,
            until,
        }
    }

    /// Until when a call may be in the way of others.
    fn blocks(&self, call: &Call) -> SimTime {
        match (call.released, call.outcome) {
            (Some((at, confirmed)), _) if usize::from(confirmed) >= self.facts.quorum() => {
                at + self.bounds.quiet
            }
            (_, Outcome::Failed(_)) => call.decided + self.bounds.quiet,
            (_, Outcome::Died) => call.decided + self.bounds.settle,
            (_, Outcome::Open | Outcome::Acquired) => {
                let window = self.facts.index.window(call.lock);
                window.map_or(SimTime::NEVER, |it| it.until + self.bounds.settle)
            }
        }
    }

    /// L4.
    fn quarantines(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for absence in &self.facts.index.absences {
            let (from, until) = (absence.from, absence.until);
            let due = from.max(self.calm) + self.bounds.quarantine;
            if let Who::Node(node) = absence.who
                && absence.is_quarantined
                && due < until.min(self.until)
            {
                let text = format!(
                    "node {node} is in quarantine since {from}, which should end within {}",
                    Span(self.bounds.quarantine)
                );
                found.push(Violation {
                    nodes: vec![node],
                    ..Violation::new(ViolationKind::Liveness, from, until, text)
                });
            }
        }
        found
    }

    fn stuck(&self, call: &Call) -> Option<Violation> {
        let due = call.called.max(self.settled) + self.bounds.call;
        (due < call.decided.min(self.until)).then(|| {
            let text = format!(
                "client {} does not know within {} whether it has lock {}, called for at {}",
                call.client,
                Span(self.bounds.call),
                call.lock,
                call.called
            );
            let until = call.decided.min(self.facts.history.end);
            violation(call, call.called, until, text)
        })
    }

    /// L1, L2, L3: a call that failed with nobody else near.
    fn alone(&self, calls: &[&Call], found: &mut Vec<Violation>) {
        let mut blocked = SimTime::ZERO;
        for (place, call) in calls.iter().enumerate() {
            let (before, next) = (blocked, calls.get(place + 1));
            blocked = blocked.max(self.blocks(call));
            if !has_failed(call) {
                continue;
            }
            let ended = call.decided;
            let is_judged = call.called >= self.settled && ended < self.until;
            let is_alone = before <= call.called && next.is_none_or(|next| next.called > ended);
            if is_judged && is_alone && self.is_healthy(call.called, ended) {
                let text = format!(
                    "client {} failed to lock `{}` (lock {}) although nobody else wanted it and a majority served",
                    call.client,
                    self.facts.history.key(call.key),
                    call.lock
                );
                found.push(violation(call, call.called, ended, text));
            }
        }
    }

    /// When each key was held, and until when nodes kept to that; and to what they had granted to somebody who died.
    fn taken(&self) -> BTreeMap<KeyNo, Vec<Taken>> {
        let index = &self.facts.index;
        let mut keys: BTreeMap<KeyNo, Vec<Taken>> = BTreeMap::new();
        let last = |attempt| {
            let ends = index.holdings(attempt).iter().map(|held| held.until);
            ends.max().unwrap_or_default()
        };
        for window in &index.windows {
            keys.entry(window.key).or_default().push(Taken {
                from: window.from,
                until: window.until.max(last(window.attempt)),
            });
        }
        for of_attempt in index.holdings.chunk_by(|a, b| a.attempt == b.attempt) {
            let first = of_attempt.iter().min_by_key(|held| held.from);
            let until = of_attempt.iter().map(|held| held.until).max();
            let (Some(first), Some(until)) = (first, until) else {
                continue;
            };
            let died = first
                .client
                .and_then(|client| self.death(client, first.from));
            if let Some(from) = died.filter(|from| *from < until) {
                keys.entry(first.key)
                    .or_default()
                    .push(Taken { from, until });
            }
        }
        for taken in keys.values_mut() {
            taken.sort_by_key(|taken| taken.from);
        }
        keys
    }

    /// When a client died next.
    fn death(&self, client: u8, since: SimTime) -> Option<SimTime> {
        let absences = &self.facts.index.absences;
        let who = Who::Client(client);
        let next = absences.partition_point(|it| (it.who, it.from) < (who, since));
        let next = absences.get(next).filter(|it| it.who == who);
        next.map(|absence| absence.from)
    }

    /// L5: tries that failed in a row although nothing was in their way but each other.
    fn starved(&self, calls: &[&Call], taken: &[Taken]) -> Option<Violation> {
        let is_judged = |call: &&&Call| has_failed(call) && call.decided < self.until;
        let mut failed: Vec<&&Call> = calls.iter().filter(is_judged).collect();
        failed.sort_by_key(|call| call.decided);
        let (mut taken, mut since) = (taken.iter().peekable(), self.settled);
        let (mut row, mut tries) = (Vec::new(), 0_u32);
        for call in failed {
            let ended = call.decided;
            while let Some(taken) = taken.next_if(|taken| taken.from <= ended) {
                since = since.max(taken.until);
                (row, tries) = (Vec::new(), 0);
            }
            if call.called < since {
                continue;
            }
            row.push(*call);
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
                return Some(violation(first, first.called, ended, text));
            }
            // What is to come is looked at by itself.
            (row, tries) = (Vec::new(), 0);
        }
        None
    }

    /// Whether a majority of the nodes took part in locks and refused nothing.
    fn is_healthy(&self, from: SimTime, until: SimTime) -> bool {
        let is_well = |(node, refusals): &(u8, &Vec<SimTime>)| {
            let refused = refusals.partition_point(|at| *at < from);
            self.facts.index.absences(*node, from, until).is_empty()
                && refusals.get(refused).is_none_or(|at| *at > until)
        };
        let nodes = (0_u8..).zip(&self.refusals);
        nodes.filter(is_well).count() >= self.facts.quorum()
    }
}

fn violation(call: &Call, from: SimTime, until: SimTime, text: String) -> Violation {
    Violation {
        clients: vec![call.client],
        key: Some(call.key),
        ..Violation::new(ViolationKind::Liveness, from, until, text)
    }
}

/// Whether its client said so, before its caller gave up.
fn has_failed(call: &Call) -> bool {
    matches!(call.outcome, Outcome::Failed(why) if why != GIVEN_UP)
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
/// jitter that is at least as likely as not; eight rounds in a row without it are no coincidence.
const ROUNDS: u32 = 8;
