//! The oracle of a node: whether its disk would give back what the node has replied.
//!
//! ```text
//!   a reply leaves: Claim ---> pledges ----+
//!   work for the log: table -> logged -----+--> held against a Start: a real one, or the one that would follow
//!                                          |    if the machine lost its power, or the process died, at this moment
//!                                          v
//!                                       Breach
//! ```
//!
//! A lock that a reply reported as held has to come back with the time that it had left, or the wait has to cover that time;
//! counters begin no lower than the highest in a reply; and what comes back is what the log held last, not what was released.
//! To open a second store for every reply would be slow, so an outcome is kept until it no longer covers what replies report;
//! now and then the disk is looked at anew although it would.

use std::collections::{BTreeMap, BTreeSet};

use locknode_engine::Deadline;
use locknode_engine::durable::{MachineTime, Record, StartReason};

use crate::history::{AttemptNo, KeyNo};
use crate::sim::hash_lock::holder;
use crate::sim::link::Claim;
use crate::sim::recorder::Recorder;

/// What one node is bound by.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pledges: BTreeMap<KeyNo, Pledge>,
    /// How often each key has changed hands: a reply that comes late may tell of what has been released, and granted again.
    holdings: BTreeMap<KeyNo, u32>,
    /// When the last lock of each key ends by the machine's clocks, as it was granted or extended last. The node itself holds it a
    /// little longer where its clocks disagree, and only to this it is bound; also when a crash takes back a release.
    ends: BTreeMap<KeyNo, (AttemptNo, MachineTime)>,
    /// The highest counter in a reply.
    counter: u64,
    /// Locks that replies reported as gone for good.
    gone: BTreeSet<(KeyNo, AttemptNo)>,
    /// What the log may give back: first what it held after the last piece of work that was done, then what it would hold
    /// after each that was tried since.
    logged: Vec<Vec<StoredLock>>,
    /// Once the files were damaged: the locks that were granted or extended since. Of all others a start may have dropped the
    /// newest record, and an older one holds, which was there for longer.
    since_rot: Option<BTreeSet<(KeyNo, AttemptNo)>>,
    seen: Option<(u64, Outcome)>,
    /// Up to where a start in the same boot would wait.
    pub(crate) horizon: MachineTime,
    replies: u32,
    looks: u32,
}

/// A lock that a reply has reported as held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pledge {
    pub(crate) attempt: AttemptNo,
    /// When it ends by the machine's clocks: when both have passed this.
    pub(crate) until: MachineTime,
    /// How much of it was left when the node went down.
    left: u64,
    /// It is on the log.
    is_logged: bool,
    /// So much was left when a start began that it need not come back.
    is_excused: bool,
}

/// What a node begins with.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) reason: StartReason,
    /// From the start on.
    pub(crate) wait_ns: u64,
    pub(crate) fence_base: u64,
    pub(crate) locks: Vec<StoredLock>,
}

/// A lock on a disk.
#[derive(Clone, Debug)]
pub(crate) struct StoredLock {
    pub(crate) db: u8,
    pub(crate) key: Vec<u8>,
    pub(crate) token: Vec<u8>,
    /// The time that is left after a start; on the log, after one that knows nothing of the time that has passed: what was left
    /// when it was written.
    pub(crate) left: u64,
    /// In the node's time.
    pub(crate) deadline: u64,
    /// Of one that came back, if it is a client's.
    pub(crate) known: Option<(KeyNo, AttemptNo)>,
}

/// A promise that was not kept, or would not be.
#[derive(Clone, Debug)]
pub(crate) enum Breach {
    /// About a lock or a counter.
    Lock {
        key: KeyNo,
        attempt: AttemptNo,
        why: String,
    },
    /// The node refuses its own files.
    Refusal(String),
}

/// What the clocks of a machine are to those of a node's last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Since {
    /// The same.
    #[default]
    Same,
    /// The same, put back.
    Back,
    /// Others.
    Other,
}

/// What a start need not bring back, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pardon {
    /// All is to come back, or to be waited for.
    #[default]
    Nothing,
    /// Locks with a TTL above the longest: the log may have been damaged.
    LostLog,
    /// Those, and counters: the disk is lost, or there is none.
    LostDisk,
    /// Nothing is promised.
    All,
}

impl Breach {
    /// One that is not about a lock.
    pub(crate) fn of_node(why: impl Into<String>) -> Self {
        Self::Lock {
            key: KeyNo::MAX,
            attempt: AttemptNo::MAX,
            why: why.into(),
        }
    }
}

impl Oracle {
    /// A key changes hands: earlier replies about it bind no more.
    pub(crate) fn changes_hands(&mut self, key: KeyNo) {
        self.pledges.remove(&key);
        *self.holdings.entry(key).or_default() += 1;
    }

    /// A lock is granted or extended.
    pub(crate) fn moves(&mut self, key: KeyNo, attempt: AttemptNo, until: MachineTime) {
        self.ends.insert(key, (attempt, until));
        self.gone.remove(&(key, attempt));
        // A shorter extension binds to less from here on, whatever a later one says: the log may have got no further.
        if let Some(pledge) = self.pledges.get_mut(&key) {
            pledge.until = earlier(pledge.until, until);
        }
        if let Some(since) = &mut self.since_rot {
            since.insert((key, attempt));
        }
    }

    /// The files are not as the node left them.
    pub(crate) fn rots(&mut self) {
        self.since_rot = Some(BTreeSet::new());
    }

    /// When a lock ends of which the node says that it ends at `until`.
    pub(crate) fn ends(&self, key: KeyNo, attempt: AttemptNo, until: MachineTime) -> MachineTime {
        let ends = self.ends.get(&key).filter(|(it, _)| *it == attempt);
        ends.map_or(until, |(_, ends)| earlier(until, *ends))
    }

    /// The number of a key's holding.
    pub(crate) fn holding(&self, key: KeyNo) -> u32 {
        self.holdings.get(&key).copied().unwrap_or(0)
    }

    /// A reply leaves that reports this.
    pub(crate) fn tell(&mut self, cover: &Claim) {
        self.counter = self.counter.max(cover.counter);
        if cover.holding != self.holding(cover.key) {
            return;
        }
        if cover.is_gone {
            self.gone.insert((cover.key, cover.attempt));
            return;
        }
        let pledge = Pledge {
            attempt: cover.attempt,
            until: cover.until,
            left: 0,
            is_logged: cover.is_logged,
            is_excused: false,
        };
        self.pledges.insert(cover.key, pledge);
    }

    /// Whether the disk has to be looked at for a reply: it has changed since it was looked at, and what was seen then does
    /// not cover the reply, or it is time to look again.
    pub(crate) fn looks(&mut self, left: u64, cover: &Claim) -> bool {
        self.replies = self.replies.wrapping_add(1);
        if cover.is_gone || self.replies.is_multiple_of(LOOK_EVERY) {
            return true;
        }
        // What is told binds until it ends: a look that is left out is made up for by the next.
        let is_due = self.looks < LOOKS_FIRST || self.replies.is_multiple_of(LOOK_SOME);
        is_due
            && self.seen.as_ref().is_none_or(|(_, outcome)| {
                outcome.fence_base < self.counter || !outcome.covers(cover.key, cover.attempt, left)
            })
    }

    /// Whether a start in the same boot is known to wait for a lock that ends then.
    pub(crate) fn is_within(&self, until: MachineTime) -> bool {
        earlier(until, self.horizon) == until
    }

    /// The disk was looked at.
    pub(crate) fn see(&mut self, generation: u64, outcome: Outcome) {
        self.looks = self.looks.wrapping_add(1);
        self.seen = Some((generation, outcome));
    }

    /// What was seen of the disk as it is.
    pub(crate) fn seen(&self, generation: u64) -> Option<&Outcome> {
        let (seen, outcome) = self.seen.as_ref()?;
        (*seen == generation).then_some(outcome)
    }

    /// Keeps what the node's table still has: what was released, taken over or shortened since binds no more. `table` holds
    /// encoded locks, `now` is the node's time. In a quarantine the table has only what the log gave back.
    pub(crate) fn settle(
        &mut self,
        table: &[u8],
        is_quarantined: bool,
        now: u64,
        clocks: MachineTime,
        recorder: &Recorder,
    ) {
        let held: BTreeMap<KeyNo, (AttemptNo, u64)> = locks(table)
            .filter_map(|(db, key, token, deadline)| {
                let (key, attempt) = recorder.known(db, key, token)?;
                Some((key, (attempt, deadline)))
            })
            .collect();
        self.pledges.retain(|key, pledge| {
            let Some((attempt, deadline)) = held.get(key) else {
                pledge.left = left_of(pledge.until, clocks);
                return is_quarantined && pledge.left > 0;
            };
            let left = deadline.saturating_sub(now);
            pledge.until = earlier(pledge.until, until(clocks, left));
            pledge.left = left_of(pledge.until, clocks);
            *attempt == pledge.attempt && pledge.left > 0
        });
    }

    /// The log is about to hold what is in `table`, as of `now` in the node's time.
    pub(crate) fn log(&mut self, table: &[u8], now: u64) {
        let stored = |(db, key, token, deadline): (u8, &[u8], &[u8], u64)| {
            let mut lock = StoredLock {
                db,
                key: key.to_vec(),
                token: token.to_vec(),
                left: u64::MAX,
                deadline,
                known: None,
            };
            if deadline != u64::MAX {
                let mut before = self.logged.iter().flatten();
                let same = before.find(|it| it.deadline == deadline && it.is_same(&lock));
                lock.left = same.map_or(deadline.saturating_sub(now), |it| it.left);
            }
            lock
        };
        let mut next: Vec<StoredLock> = locks(table).map(stored).collect();
        // What has ended by itself is on the log still, and a start that knows nothing of the time that passed gives it back.
        let newest = self.logged.last().into_iter().flatten();
        let ended = newest.filter(|it| {
            it.deadline <= now && locks(table).all(|(db, key, ..)| db != it.db || key != it.key)
        });
        next.extend(ended.cloned());
        if self.logged.is_empty() {
            self.logged.push(Vec::new());
        }
        // What is tried again and again on a full disk is the same, and a little more.
        self.logged.truncate(TRIES_MAX);
        self.logged.push(next);
    }

    /// The log holds what it was about to.
    pub(crate) fn logged(&mut self) {
        let newest = self.logged.pop();
        self.logged.clear();
        self.logged.extend(newest);
    }

    /// Compares what a start gives back with what was replied and with what the log has held. `is_synced_only`: nothing of what
    /// was not synced was kept.
    pub(crate) fn judge(
        &self,
        outcome: &Outcome,
        is_synced_only: bool,
        tolerance: u64,
        when: &str,
    ) -> Vec<Breach> {
        let mut breaches = self.judge_told(outcome, u64::MAX, tolerance, when);
        let logged = if is_synced_only {
            self.logged.get(..1).unwrap_or_default()
        } else {
            &self.logged[..]
        };
        let stored = outcome.locks.iter();
        breaches.extend(stored.filter_map(|back| self.judge_back(back, logged, tolerance, when)));
        breaches
    }

    /// Compares what a start gives back with what was replied, except for locks on the log with more than `longest` left.
    pub(crate) fn judge_told(
        &self,
        outcome: &Outcome,
        longest: u64,
        tolerance: u64,
        when: &str,
    ) -> Vec<Breach> {
        let mut breaches = Vec::new();
        for (key, pledge) in &self.pledges {
            let is_excused = pledge.is_logged && pledge.left > longest;
            if pledge.left > tolerance
                && !is_excused
                && !outcome.covers(*key, pledge.attempt, pledge.left - tolerance)
            {
                breaches.push(pledge.breach(*key, outcome, when));
            }
        }
        if outcome.fence_base < self.counter {
            let (counter, base) = (self.counter, outcome.fence_base);
            breaches.push(Breach::of_node(format!(
                "has told counter {counter}, and {when} its counters would begin at {base}"
            )));
        }
        breaches
    }

    /// Compares a lock that a start gives back with what the log has held.
    fn judge_back(
        &self,
        back: &StoredLock,
        logged: &[Vec<StoredLock>],
        tolerance: u64,
        when: &str,
    ) -> Option<Breach> {
        let (key, attempt) = back.known.unwrap_or((KeyNo::MAX, AttemptNo::MAX));
        let (left, is_gone) = (back.left, self.gone.contains(&(key, attempt)));
        if is_gone && self.since_rot.is_none() {
            let why = format!(
                "has told that the lock of attempt {attempt} is gone, and {when} holds it for {left} ns"
            );
            return Some(Breach::Lock { key, attempt, why });
        }
        let most = most_left(logged, back);
        let is_older = |since: &BTreeSet<_>| back.known.is_some_and(|it| !since.contains(&it));
        if most.is_some_and(|most| left <= most.saturating_add(tolerance))
            || self.since_rot.as_ref().is_some_and(is_older)
        {
            return None;
        }
        let had = match most {
            Some(most) => format!("was written with {most} ns left"),
            None => "its log does not hold".to_owned(),
        };
        let why = format!("{when} holds the lock of attempt {attempt} for {left} ns, which {had}");
        Some(Breach::Lock { key, attempt, why })
    }

    /// The node starts again: what it replied before binds as far as it goes. `since` says what the machine's clocks are.
    pub(crate) fn begin(&mut self, clocks: MachineTime, since: Since) {
        for pledge in self.pledges.values_mut() {
            match since {
                Since::Same => pledge.left = left_of(pledge.until, clocks),
                Since::Back => {
                    pledge.left = pledge.left.min(left_of(pledge.until, clocks));
                    pledge.until = until(clocks, pledge.left);
                }
                Since::Other => pledge.until = until(clocks, pledge.left),
            }
        }
        if since == Since::Other {
            self.ends.clear();
        }
        self.pledges.retain(|_, pledge| pledge.left > 0);
        (self.seen, self.horizon) = (None, MachineTime::default());
    }

    /// The log of the run that begins holds what came back.
    pub(crate) fn adopt(&mut self, outcome: &Outcome, clocks: MachineTime, since: Since) {
        for back in &outcome.locks {
            if let Some((key, attempt)) = back.known {
                let is_holder = self.ends.get(&key).is_some_and(|(it, _)| *it == attempt);
                // It had ended, and comes back because its age is not known. It binds nobody.
                let ends = if since == Since::Back && !is_holder {
                    clocks
                } else {
                    self.ends(key, attempt, until(clocks, back.left))
                };
                self.ends.insert(key, (attempt, ends));
            }
        }
        let before = std::mem::take(&mut self.logged);
        let mut next = outcome.locks.clone();
        for lock in &mut next {
            lock.left = most_left(&before, lock).unwrap_or(lock.left);
        }
        // What has ended meanwhile is on the log still.
        for mut ended in before.into_iter().flatten() {
            match next.iter_mut().find(|it| it.is_same(&ended)) {
                Some(same) => same.left = same.left.max(ended.left),
                None => {
                    ended.deadline = 0;
                    next.push(ended);
                }
            }
        }
        self.logged.push(next);
    }

    /// A start begins that need not bring back what is longer than its wait; where only the log may be damaged, what is on it.
    /// Of one that was cut short the next one carries on the wait, and of the lock less is left by then.
    pub(crate) fn excuse(&mut self, longest_ns: u64, pardon: Pardon) {
        let is_log_alone = pardon == Pardon::LostLog;
        for pledge in self.pledges.values_mut() {
            pledge.is_excused |= pledge.left > longest_ns && (pledge.is_logged || !is_log_alone);
        }
    }

    /// Takes back what is not promised to survive such an end; the locks among it, which are excused.
    pub(crate) fn pardon(&mut self, pardon: Pardon, outcome: &Outcome) -> Vec<(KeyNo, AttemptNo)> {
        match pardon {
            Pardon::Nothing => return Vec::new(),
            Pardon::All => {
                *self = Self::default();
                return Vec::new();
            }
            Pardon::LostLog => {}
            Pardon::LostDisk => (self.counter, self.since_rot) = (0, None),
        }
        let mut lost = Vec::new();
        self.pledges.retain(|key, pledge| {
            let is_excused = std::mem::take(&mut pledge.is_excused);
            let is_lost = is_excused && !outcome.covers(*key, pledge.attempt, pledge.left);
            if is_lost {
                lost.push((*key, pledge.attempt));
            }
            !is_lost
        });
        lost
    }
}

impl Pledge {
    fn breach(&self, key: KeyNo, outcome: &Outcome, when: &str) -> Breach {
        let (attempt, left, wait) = (self.attempt, self.left, outcome.wait_ns);
        let back = match outcome.left(key, attempt) {
            Some(left) => format!("it would hold it for {left} ns"),
            None => "it would have forgotten it".to_owned(),
        };
        Breach::Lock {
            key,
            attempt,
            why: format!(
                "has told of the lock of attempt {attempt}, of which {left} ns are left, and {when} {back} and wait for {wait} ns"
            ),
        }
    }
}

impl StoredLock {
    /// Whether both are of one attempt.
    fn is_same(&self, other: &Self) -> bool {
        self.db == other.db && self.key == other.key && self.token == other.token
    }
}

impl Outcome {
    /// Whether a lock of which `left` nanoseconds are left is safe after this start.
    fn covers(&self, key: KeyNo, attempt: AttemptNo, left: u64) -> bool {
        self.wait_ns >= left || self.left(key, attempt).is_some_and(|it| it >= left)
    }

    fn left(&self, key: KeyNo, attempt: AttemptNo) -> Option<u64> {
        let is_it = |back: &&StoredLock| back.known == Some((key, attempt));
        self.locks.iter().find(is_it).map(|back| back.left)
    }
}

/// The longest time left with which the log holds a lock, or has held it.
fn most_left(logged: &[Vec<StoredLock>], lock: &StoredLock) -> Option<u64> {
    let same = logged.iter().flatten().filter(|it| it.is_same(lock));
    same.map(|it| it.left).max()
}

/// How long it takes until both clocks have passed `until`.
pub(crate) fn left_of(until: MachineTime, now: MachineTime) -> u64 {
    let boottime = until.boottime_ns.saturating_sub(now.boottime_ns);
    boottime.max(until.raw_ns.saturating_sub(now.raw_ns))
}

/// When a lock is over by the machine's clocks that has so much left.
pub(crate) const fn until(now: MachineTime, left: u64) -> MachineTime {
    MachineTime {
        boottime_ns: now.boottime_ns.saturating_add(left),
        raw_ns: now.raw_ns.saturating_add(left),
    }
}

/// The end that comes first, by each clock.
fn earlier(a: MachineTime, b: MachineTime) -> MachineTime {
    MachineTime {
        boottime_ns: a.boottime_ns.min(b.boottime_ns),
        raw_ns: a.raw_ns.min(b.raw_ns),
    }
}

/// A deadline as nanoseconds.
pub(crate) fn nanos_of(deadline: Deadline) -> u64 {
    deadline
        .as_time()
        .map_or(u64::MAX, locknode_engine::Time::as_nanos)
}

/// Database, key, token and deadline of encoded locks.
fn locks(mut records: &[u8]) -> impl Iterator<Item = (u8, &[u8], &[u8], u64)> {
    std::iter::from_fn(move || {
        let (Record::Put(lock), rest) = Record::decode(records)? else {
            return None;
        };
        records = rest;
        let (token, _) = holder(&lock);
        Some((lock.db, lock.key, token, nanos_of(lock.deadline)))
    })
}

/// At every 128th reply the disk is looked at although what was seen of it covers the reply.
const LOOK_EVERY: u32 = 128;

/// Where every lock is on the log, nothing that was seen before covers a new one: then the first two looks are taken at once,
/// and one in 32 after that.
const LOOKS_FIRST: u32 = 2;
const LOOK_SOME: u32 = 32;

/// A disk that is full for long is tried once a second.
const TRIES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: Outcome = Outcome {
        reason: StartReason::Empty,
        wait_ns: 0,
        fence_base: u64::MAX,
        locks: Vec::new(),
    };

    /// The machine lost its power when so much of a lock was left.
    fn bound(left: u64) -> Oracle {
        let mut oracle = Oracle::default();
        let pledge = Pledge {
            attempt: 7,
            until: MachineTime::default(),
            left,
            is_logged: true,
            is_excused: false,
        };
        oracle.pledges.insert(0, pledge);
        oracle
    }

    /// A start that is cut short begins its wait: of a lock that was too long for it less is left at the next start, which
    /// waits no longer for it. One that was not too long is to be waited for still.
    #[test]
    fn a_wait_begins_at_a_start_that_is_cut_short() {
        for (left, is_lost) in [(2_100, true), (2_000, false)] {
            let mut oracle = bound(left);
            oracle.begin(MachineTime::default(), Since::Other);
            oracle.excuse(2_000, Pardon::LostDisk);
            oracle.begin(until(MachineTime::default(), 1_500), Since::Same);
            oracle.excuse(2_000, Pardon::LostDisk);
            let lost = oracle.pardon(Pardon::LostDisk, &EMPTY);
            assert_eq!(!lost.is_empty(), is_lost, "{left}");
            assert_eq!(
                oracle.judge(&EMPTY, false, 0, "").is_empty(),
                is_lost,
                "{left}"
            );
        }
    }

    /// What comes back all the same binds like any other, at the next start too.
    #[test]
    fn a_lock_that_came_back_is_not_excused_again() {
        let mut oracle = bound(3_000);
        oracle.begin(MachineTime::default(), Since::Other);
        oracle.excuse(2_000, Pardon::LostDisk);
        let waits = Outcome {
            wait_ns: 3_000,
            ..EMPTY
        };
        assert_eq!(oracle.pardon(Pardon::LostLog, &waits), []);
        oracle.begin(until(MachineTime::default(), 1_500), Since::Same);
        oracle.excuse(2_000, Pardon::LostDisk);
        assert_eq!(oracle.pardon(Pardon::LostLog, &EMPTY), []);
        assert_eq!(oracle.judge(&EMPTY, false, 0, "").len(), 1);
    }
}
