//! What the clients of one node were told, by their own clock, and whether it may be true.
//!
//! A client believes in its lock from when it read the answer until its TTL has passed since before the first byte of
//! the request was sent, less 1 % and 2 ms. Two beliefs in the same key never overlap, and whoever is served while a
//! belief lasts is told nothing else. The other way round: whom a client is told to hold a key, must be able to.
//!
//! A client that reads who holds a key believes that, too: a lock that was shown once is not lost before its end,
//! whether or not its holder has an answer.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::tally::Tally;

/// A lock that a client holds, or has to get rid of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) key: String,
    pub(crate) token: String,
    /// The number of the grant, where it was told.
    pub(crate) grant: Option<u64>,
    pub(crate) is_eternal: bool,
}

/// What an answer was about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Before the first byte of the request was sent.
    pub(crate) sent: Instant,
    /// After the answer was read.
    pub(crate) heard: Instant,
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Ledger<'t> {
    tally: &'t Tally,
    start: Instant,
    keys: BTreeMap<String, Key>,
    /// The number of the run, ...
    run: u64,
    /// ... and how many runs were killed before it.
    crashes: u64,
    /// No fence counter of this run is below.
    fence_base: u64,
    /// The latest events.
    events: VecDeque<String>,
    violation: Option<String>,
    quarantine: Quarantine,
}

/// What is expected and known of the wait of this run.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    /// Nobody may be told LOADING.
    is_forbidden: bool,
    /// The most that may be told, in milliseconds.
    bound_ms: u64,
    /// Below this the wait was shortened by what is on disk.
    full_ms: u64,
    /// Somebody was told LOADING though nobody may be.
    is_undue: bool,
    /// When it ends, as clients were told.
    ends: Option<Instant>,
    /// Somebody was served, so that nobody is told LOADING any more.
    is_over: bool,
}

#[derive(Debug, Default)]
struct Key {
    holders: Vec<Holder>,
    /// No fence counter is below this.
    fence: u64,
    /// How many runs had been killed when the key was granted last.
    granted_in: Option<u64>,
}

/// A token that holds a key, held it or tries to.
#[derive(Debug)]
struct Holder {
    token: String,
    /// When the holder is sure to hold it; `None` is for ever.
    beliefs: Vec<(Instant, Option<Instant>)>,
    /// Requests without an answer that may make it a holder.
    in_flight: u32,
    may_be_eternal: bool,
    /// With a TTL it has certainly ended by then.
    ends: Option<Instant>,
    /// When it was last told what `ends` and `may_be_eternal` say.
    settled: Option<Instant>,
    /// Told to be released then, when so many runs had been killed.
    released: Option<(Instant, u64)>,
    /// Its end when the acquisition is executed as soon as it is sent; `None` is never.
    first_end: Option<Instant>,
    /// A release or an extension was sent since: a reader does not know which end it was shown.
    is_changing: bool,
    /// Of the last grant.
    granted_in: (u64, u64),
}

impl Quarantine {
    pub(crate) fn new(is_forbidden: bool, bound_ms: u64, full_ms: u64) -> Self {
        Self {
            is_forbidden,
            bound_ms,
            full_ms,
            ..Self::default()
        }
    }
}

impl<'t> Ledger<'t> {
    pub(crate) fn new(tally: &'t Tally) -> Self {
        Self {
            tally,
            start: Instant::now(),
            keys: BTreeMap::new(),
            run: 0,
            crashes: 0,
            fence_base: 0,
            events: VecDeque::new(),
            violation: None,
            quarantine: Quarantine::default(),
        }
    }

    /// A run begins, with fence counters above `fence_base` and, when they are kept, above what they were.
    pub(crate) fn begin_run(
        &mut self,
        quarantine: Quarantine,
        fence_base: u64,
        keeps_fences: bool,
    ) {
        self.run += 1;
        self.quarantine = quarantine;
        self.fence_base = fence_base;
        for key in self.keys.values_mut().filter(|_| !keeps_fences) {
            key.fence = 0;
        }
    }

    /// A run was killed.
    pub(crate) fn crashed(&mut self) {
        let now = Instant::now();
        for holder in self.keys.values().flat_map(|key| &key.holders) {
            if holder.is_believed(now, now) {
                self.tally.add("held at a kill");
            }
        }
        self.crashes += 1;
    }

    /// What went wrong first, with the events before it.
    pub(crate) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// Notes something for whoever has to understand a violation.
    pub(crate) fn note(&mut self, event: &str) {
        let at = self.start.elapsed().as_secs_f64() * 1000.0;
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events
            .push_back(format!("{at:10.3} ms  run {} {event}", self.run));
    }

    /// Something is not as promised.
    pub(crate) fn violate(&mut self, what: &str) {
        self.note(&format!("VIOLATION: {what}"));
        if self.violation.is_none() {
            let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
            self.violation = Some(format!("{what}\nthe last events:\n{}", events.join("\n")));
        }
    }

    /// An acquisition is about to be sent.
    pub(crate) fn acquires(&mut self, lock: &Held, sent: Instant, ttl: Option<Duration>) {
        let granted_in = (self.run, self.crashes);
        let entry = self.keys.entry(lock.key.clone()).or_default();
        entry.holders.retain(|holder| !holder.is_history(sent));
        entry.holders.push(Holder {
            token: lock.token.clone(),
            beliefs: Vec::new(),
            in_flight: 1,
            may_be_eternal: ttl.is_none(),
            ends: None,
            settled: None,
            released: None,
            first_end: ttl.map(|ttl| validity(sent, ttl)),
            is_changing: false,
            granted_in,
        });
    }

    /// Nobody knows what became of an acquisition.
    pub(crate) fn acquire_unknown(&mut self, lock: &Held, ttl: Option<Duration>) {
        let now = Instant::now();
        if let Some(holder) = self.holder(lock) {
            holder.in_flight -= 1;
            holder.ends = ttl.map(|ttl| latest_end(now, ttl));
        }
    }

    /// An acquisition was refused, or never looked at.
    pub(crate) fn refused(&mut self, lock: &Held, asked: Asked, is_held: bool) {
        let Held { key, token, .. } = lock;
        let (crashes, run, tally) = (self.crashes, self.run, self.tally);
        let entry = self.keys.entry(key.clone()).or_default();
        entry.holders.retain(|holder| holder.token != *token);
        if !is_held {
            return;
        }
        let holders = entry.holders.iter();
        let possible = holders.filter(|holder| holder.is_possible(asked.sent, crashes));
        let mut possible = possible.peekable();
        if possible.peek().is_none() {
            self.violate(&format!(
                "{key} is refused to {token} and can be held by nobody"
            ));
            return;
        }
        if let Some(holder) = possible.find(|holder| holder.is_believed(asked.sent, asked.heard)) {
            holder.tell(tally, run, crashes);
        }
    }

    /// An acquisition was granted.
    pub(crate) fn granted(&mut self, lock: &Held, asked: Asked, ttl: Option<Duration>) {
        let (crashes, tally) = (self.crashes, self.tally);
        tally.add("grants");
        let entry = self.keys.entry(lock.key.clone()).or_default();
        let last = entry.granted_in.replace(crashes);
        if last.is_some_and(|last| last < crashes) {
            tally.add("regained after a kill");
        }
        if let Some(holder) = self.holder(lock) {
            holder.in_flight -= 1;
            holder.ends = ttl.map(|ttl| latest_end(asked.heard, ttl));
        }
        self.believe(lock, asked, ttl);
    }

    /// An extension is about to be sent: until the answer the client relies on the shorter of both.
    pub(crate) fn extends(&mut self, lock: &Held, sent: Instant, ttl: Duration) {
        let until = validity(sent, ttl);
        if let Some(holder) = self.holder(lock) {
            holder.in_flight += 1;
            holder.is_changing = true;
            for belief in &mut holder.beliefs {
                belief.1 = Some(belief.1.map_or(until, |old| old.min(until)));
            }
        }
    }

    /// What became of an extension; `None` when nobody knows.
    pub(crate) fn extended(
        &mut self,
        lock: &Held,
        asked: Asked,
        ttl: Duration,
        is_held: Option<bool>,
    ) {
        let Held { key, token, .. } = lock;
        let crashes = self.crashes;
        let Some(holder) = self.holder(lock) else {
            return;
        };
        holder.in_flight -= 1;
        let end = latest_end(asked.heard, ttl);
        match is_held {
            None => holder.ends = Some(holder.ends.map_or(end, |old| old.max(end))),
            Some(false) if holder.is_believed(asked.sent, asked.heard) => {
                self.violate(&format!("{key} is lost to {token}, which extends it"));
            }
            Some(false) => holder.is_gone(asked.heard),
            Some(true) if !holder.is_possible(asked.sent, crashes) => {
                self.violate(&format!(
                    "{key} is extended for {token}, which cannot hold it"
                ));
            }
            Some(true) => {
                holder.may_be_eternal = false;
                holder.ends = Some(end);
                holder.settled = Some(asked.heard);
                self.believe(lock, asked, Some(ttl));
            }
        }
    }

    /// A release is about to be sent: from now on the client relies on nothing. Returns whether it was sure to hold a
    /// lock without a TTL.
    pub(crate) fn releases(&mut self, lock: &Held, sent: Instant) -> bool {
        let Some(holder) = self.holder(lock) else {
            return false;
        };
        // Longer than any TTL here.
        let is_eternal = holder.is_believed(sent, sent + HOUR);
        holder.is_changing = true;
        for belief in &mut holder.beliefs {
            belief.1 = Some(belief.1.map_or(sent, |old| old.min(sent)));
        }
        is_eternal
    }

    /// A release was answered. `was_eternal` is what [`Self::releases`] returned.
    pub(crate) fn released(&mut self, lock: &Held, asked: Asked, was_eternal: bool, is_held: bool) {
        let Held { key, token, .. } = lock;
        let (crashes, tally) = (self.crashes, self.tally);
        let Some(holder) = self.holder(lock) else {
            return;
        };
        if is_held && !holder.is_possible(asked.sent, crashes) {
            self.violate(&format!(
                "{key} is released by {token}, which cannot hold it"
            ));
        } else if !is_held && was_eternal {
            self.violate(&format!("{key} is lost to {token}, which releases it"));
        } else if is_held {
            holder.released = Some((asked.heard, crashes));
            if was_eternal {
                tally.add("eternal released");
            }
        } else {
            holder.is_gone(asked.heard);
        }
    }

    /// Somebody was told who holds a key, and for how long still when `left` is given.
    pub(crate) fn read(&mut self, key: &str, token: Option<&str>, left: Option<i64>, asked: Asked) {
        let (crashes, run, tally) = (self.crashes, self.run, self.tally);
        let holders = self.keys.get(key).map_or(&[][..], |key| &key.holders);
        let mut all = holders.iter();
        let believer = all.find(|it| it.is_believed(asked.sent, asked.heard));
        let found = holders.iter().find(|it| Some(it.token.as_str()) == token);
        let problem = match (token, found, believer) {
            (told, _, Some(believer)) if told != Some(&believer.token) => {
                let told = told.unwrap_or("nobody");
                Some(format!(
                    "{key} is told to be of {told} and is of {}",
                    believer.token
                ))
            }
            (Some(token), None, _) => {
                Some(format!("{key} is told to be of {token}, which is over"))
            }
            (Some(token), Some(found), _) if !found.is_possible(asked.sent, crashes) => Some(
                format!("{key} is told to be of {token}, which cannot hold it"),
            ),
            (Some(token), Some(found), _) => found
                .is_left(left, asked)
                .map(|why| format!("{key} of {token} is told to have {left:?} ms left, {why}")),
            (None, ..) => None,
        };
        if let Some(believer) = believer.filter(|_| problem.is_none()) {
            believer.tell(tally, run, crashes);
        }
        let shown = found.filter(|found| !found.is_changing && found.beliefs.is_empty());
        let shown = shown.map(|found| (found.token.clone(), found.first_end));
        if let Some(problem) = problem {
            self.violate(&problem);
        } else if let Some((token, until)) = shown {
            tally.add("shown first");
            self.believe_until(key, &token, asked.heard, until);
        }
    }

    /// Somebody was told not to hold a key.
    pub(crate) fn denied(&mut self, lock: &Held, asked: Asked) {
        let Held { key, token, .. } = lock;
        let holder = self.holder(lock);
        if holder.is_some_and(|holder| holder.is_believed(asked.sent, asked.heard)) {
            self.violate(&format!("{key} is told not to be of {token}"));
        }
    }

    /// The fence counter of a key that an answer told; `floor` is what was known when the request was sent.
    pub(crate) fn fence(&mut self, key: &str, fence: u64, floor: u64, is_grant: bool) {
        self.tally.add("fences");
        if fence < floor + u64::from(is_grant) {
            self.violate(&format!(
                "the fence counter of {key} is {fence} after {floor}"
            ));
        }
        let entry = self.keys.entry(key.to_owned()).or_default();
        entry.fence = entry.fence.max(fence);
    }

    /// The fence counter was raised, as a grant that does not tell it does.
    pub(crate) fn fence_raised(&mut self, key: &str, floor: u64) {
        let entry = self.keys.entry(key.to_owned()).or_default();
        entry.fence = entry.fence.max(floor + 1);
    }

    /// No fence counter of an answer to what is sent now may be below this.
    pub(crate) fn fence_floor(&self, key: &str) -> u64 {
        let fence = self.keys.get(key).map_or(0, |key| key.fence);
        fence.max(self.fence_base)
    }

    /// Whether the lock has ended for sure.
    pub(crate) fn is_over(&mut self, lock: &Held) -> bool {
        let (now, crashes) = (Instant::now(), self.crashes);
        let holder = self.holder(lock);
        holder.is_none_or(|holder| !holder.is_possible(now, crashes))
    }

    /// Somebody was served.
    pub(crate) fn served(&mut self) {
        self.quarantine.is_over = true;
    }

    /// Whether anybody was served in this run.
    pub(crate) fn is_served(&self) -> bool {
        self.quarantine.is_over
    }

    /// Whether anybody was told LOADING in this run though no wait was due.
    pub(crate) fn has_undue_wait(&self) -> bool {
        self.quarantine.is_undue
    }

    /// Whether anybody was told LOADING in this run.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantine.ends.is_some()
    }

    /// Somebody was told LOADING and how long still. `was_served`: somebody had been served before it was asked.
    pub(crate) fn loading(&mut self, left_ms: u64, asked: Asked, was_served: bool) {
        let expected = &mut self.quarantine;
        let (bound_ms, is_forbidden) = (expected.bound_ms, expected.is_forbidden);
        let is_late = (expected.ends).is_some_and(|ends| asked.sent > ends + TOLERANCE);
        if expected.ends.is_none() {
            self.tally.add("quarantines");
            if left_ms < expected.full_ms {
                self.tally.add("quarantines shortened");
            }
        }
        let ends = asked.heard + Duration::from_millis(left_ms);
        expected.ends = Some(expected.ends.map_or(ends, |old| old.min(ends)));
        expected.is_undue |= is_forbidden;
        if was_served {
            self.violate("LOADING after a client was served");
        } else if left_ms == 0 || left_ms > bound_ms {
            self.violate(&format!(
                "LOADING for {left_ms} ms, the most is {bound_ms} ms"
            ));
        } else if is_late {
            self.violate("LOADING after its end");
        }
    }

    /// The holder is sure of its lock from now on until its validity has passed.
    fn believe(&mut self, lock: &Held, asked: Asked, ttl: Option<Duration>) {
        let until = ttl.map(|ttl| validity(asked.sent, ttl));
        self.believe_until(&lock.key, &lock.token, asked.heard, until);
    }

    /// Everybody is sure that the token holds the key from then on until then; `None` is for ever.
    fn believe_until(&mut self, key: &str, token: &str, from: Instant, until: Option<Instant>) {
        let granted_in = (self.run, self.crashes);
        let entry = self.keys.entry(key.to_owned()).or_default();
        let mut others = entry.holders.iter().filter(|holder| holder.token != token);
        let other = others.find(|holder| holder.overlaps(from, until));
        let problem = other
            .map(|other| format!("{key} is granted to {token} while {} holds it", other.token));
        if let Some(holder) = entry.holders.iter_mut().find(|it| it.token == token) {
            holder.granted_in = granted_in;
            holder.beliefs.push((from, until));
        }
        if let Some(problem) = problem {
            self.violate(&problem);
        }
    }

    fn holder(&mut self, lock: &Held) -> Option<&mut Holder> {
        let holders = &mut self.keys.get_mut(&lock.key)?.holders;
        holders.iter_mut().find(|holder| holder.token == lock.token)
    }
}

impl Holder {
    /// Whether it is sure to hold the key all the time from `from` to `to`.
    fn is_believed(&self, from: Instant, to: Instant) -> bool {
        let mut beliefs = self.beliefs.iter();
        beliefs.any(|(since, until)| *since <= from && until.is_none_or(|until| until > to))
    }

    /// Whether it is sure to hold the key at any time from `from` until `until`.
    fn overlaps(&self, from: Instant, until: Option<Instant>) -> bool {
        let mut beliefs = self.beliefs.iter();
        beliefs.any(|(since, end)| {
            end.is_none_or(|end| end > from && end > *since)
                && until.is_none_or(|until| until > from && *since < until)
        })
    }

    /// Whether it may hold the key at that time, or later.
    fn is_possible(&self, at: Instant, crashes: u64) -> bool {
        match self.released {
            Some((when, in_crashes)) if in_crashes == crashes => when > at,
            // With a TTL it may come back after a crash, and then ends.
            Some(_) => self.ends.is_some_and(|ends| ends > at),
            None => {
                self.in_flight > 0 || self.may_be_eternal || self.ends.is_some_and(|ends| ends > at)
            }
        }
    }

    /// Whether nothing can come of it any more.
    fn is_history(&self, now: Instant) -> bool {
        let is_alive = self.in_flight > 0
            || (self.may_be_eternal && self.released.is_none())
            || self.ends.is_some_and(|ends| ends + HISTORY > now);
        let mut beliefs = self.beliefs.iter();
        !is_alive && !beliefs.any(|(_, until)| until.is_none_or(|until| until + HISTORY > now))
    }

    /// A served answer says that it does not hold the key.
    fn is_gone(&mut self, at: Instant) {
        if !self.may_be_eternal || self.ends.is_some() {
            let ends = at + TOLERANCE;
            self.ends = Some(self.ends.map_or(ends, |old| old.min(ends)));
        }
        self.may_be_eternal = false;
        self.settled = Some(at);
    }

    /// What is wrong with the time that it is told to have left.
    fn is_left(&self, left: Option<i64>, asked: Asked) -> Option<String> {
        let left = left?;
        // What was answered meanwhile came before or after.
        let is_settled = self.in_flight == 0 && self.settled.is_none_or(|when| when <= asked.sent);
        let Ok(left) = u64::try_from(left).map(Duration::from_millis) else {
            return (is_settled && !self.may_be_eternal).then(|| "and has a TTL".to_owned());
        };
        let ends = self.ends.filter(|_| is_settled && !self.may_be_eternal);
        if let Some(ends) = ends.filter(|ends| asked.sent + left > *ends) {
            return Some(format!(
                "which is too long by {:?}",
                asked.sent + left - ends
            ));
        }
        let latest = asked.heard + left + MILLISECOND;
        let beliefs = self.beliefs.iter();
        let sure = beliefs.filter(|(since, _)| *since <= asked.sent);
        let until = sure.filter_map(|(_, until)| *until).max()?;
        // Whoever is no longer sure in between may have been shortened.
        (until > asked.heard && latest < until)
            .then(|| format!("which is too short by {:?}", until - latest))
    }

    /// Counts an answer that rests on this lock, which is held.
    fn tell(&self, tally: &Tally, run: u64, crashes: u64) {
        let (granted_run, granted_crashes) = self.granted_in;
        if granted_crashes < crashes {
            tally.add("held after a kill");
            if self.ends.is_none() {
                tally.add("eternal after a kill");
            }
        } else if granted_run < run {
            tally.add("held after a stop");
        }
    }
}

/// Until when a client relies on a grant.
fn validity(sent: Instant, ttl: Duration) -> Instant {
    (sent + ttl - ttl / 100)
        .checked_sub(Duration::from_millis(2))
        .unwrap_or(sent)
}

/// When a lock has ended on every node that is not out of its mind.
fn latest_end(granted: Instant, ttl: Duration) -> Instant {
    granted + ttl + ttl / 100 + TOLERANCE
}

/// By how much a busy machine may delay what has no bound. Only promises about what comes at last have it: a node that
/// is not run for a while may let a lock end late, never early.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Answers come with whole milliseconds.
const MILLISECOND: Duration = Duration::from_millis(1);

/// Beliefs and tokens that ended so long ago matter to nobody.
const HISTORY: Duration = Duration::from_secs(5);

const HOUR: Duration = Duration::from_secs(3600);

/// Enough to understand what led to a violation.
const EVENTS_MAX: usize = 120;
