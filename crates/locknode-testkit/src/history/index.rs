//! Who held what when, read once from the events: checkers judge it, the timeline draws it.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::Who;
use crate::history::{AttemptNo, Event, History, KeyNo, LockNo, Window};
use crate::span::SimTime;

/// All that clients did and nodes were and held, as stretches of time. A time does not include its end.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// By their locks.
    pub(crate) calls: Vec<Call>,
    /// In the order in which they began.
    pub(crate) windows: Vec<Window>,
    /// In the order in which they succeeded.
    pub(crate) extensions: Vec<Extension>,
    /// By attempt, in the order in which they ended.
    pub(crate) holdings: Vec<Holding>,
    /// By node or client, in the order in which they began.
    pub(crate) absences: Vec<Absence>,
    /// In the order in which they began.
    pub(crate) standstills: Vec<Standstill>,
}

/// A lock act of a client, from its call to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) client: u8,
    pub(crate) lock: LockNo,
    pub(crate) key: KeyNo,
    pub(crate) called: SimTime,
    pub(crate) outcome: Outcome,
    /// When that was known; never while it is open.
    pub(crate) decided: SimTime,
    /// The place of its window among all, when it was acquired.
    pub(crate) window: Option<usize>,
    /// The end of the validity as last reported to the client.
    pub(crate) valid_until: SimTime,
    /// When the client released it, lost it or died, and the place of that in the history.
    pub(crate) let_go: Option<(SimTime, usize)>,
    /// When the client knew how its release went, and how many nodes had deleted the lock.
    pub(crate) released: Option<(SimTime, u8)>,
    /// Until when it stays taken after its release, as its holder wished.
    pub(crate) kept: Option<SimTime>,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Acquired,
    Failed(&'static str),
    /// The client's process ended before it knew.
    Died,
}

/// An extension of a lock that its client had neither released nor lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension {
    pub(crate) at: SimTime,
    /// The place of its window among all.
    pub(crate) window: usize,
    /// When its window would have ended without it, or had ended.
    pub(crate) ended: SimTime,
    /// The place of the window of the same key that had begun last.
    pub(crate) newest: usize,
}

/// A time in which a node held a key for an attempt, or would have if it had not forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) node: u8,
    pub(crate) key: KeyNo,
    pub(crate) attempt: AttemptNo,
    /// `None` when no grant of the attempt is in the history.
    pub(crate) client: Option<u8>,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
    /// The node had gone down, and does not know of it any more.
    pub(crate) is_forgotten: bool,
    /// It was read from the log at a start.
    pub(crate) is_restored: bool,
    /// Its deadline as last set.
    pub(crate) ends: SimTime,
    /// When it was extended.
    pub(crate) extended: Vec<SimTime>,
    /// What ended it, for people.
    pub(crate) ending: &'static str,
}

/// A time in which a node took part in no lock, being down or in quarantine; or in which a client was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(crate) who: Who,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
    /// It is up, and in quarantine.
    pub(crate) is_quarantined: bool,
    /// The place in the history of what began it; none when the node had not started yet.
    pub(crate) place: Option<usize>,
}

/// A time in which a process or machine stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standstill {
    pub(crate) who: Who,
    pub(crate) how: &'static str,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
}

impl Index {
    pub(crate) fn of(history: &History) -> Self {
        let mut reader = Reader::default();
        for (place, entry) in history.entries.iter().enumerate() {
            reader.take_call(place, entry.at, &entry.event);
            reader.take_condition(place, entry.at, &entry.event);
            reader.take_holding(entry.at, &entry.event);
        }
        reader.finish(history.end)
    }

    pub(crate) fn call(&self, lock: LockNo) -> Option<&Call> {
        self.calls.get(place(&self.calls, lock).ok()?)
    }

    /// The window of a lock, if it was acquired.
    pub(crate) fn window(&self, lock: LockNo) -> Option<&Window> {
        self.windows.get(self.call(lock)?.window?)
    }

    /// Where nodes held an attempt's lock.
    pub(crate) fn holdings(&self, attempt: AttemptNo) -> &[Holding] {
        let first = self.holdings.partition_point(|it| it.attempt < attempt);
        let last = self.holdings.partition_point(|it| it.attempt <= attempt);
        self.holdings.get(first..last).unwrap_or_default()
    }

    /// The absences of a node that have any moment in common with this time.
    pub(crate) fn absences(&self, node: u8, from: SimTime, until: SimTime) -> &[Absence] {
        let who = Who::Node(node);
        let is_before = |it: &Absence| (it.who, it.until) <= (who, from);
        let first = self.absences.partition_point(is_before);
        let is_in = |it: &Absence| (it.who, it.from) < (who, until);
        let last = self.absences.partition_point(is_in);
        self.absences.get(first..last).unwrap_or_default()
    }
}

/// Of windows of one key, in the order in which they begin and lasting at the least until `until`: each that begins within
/// an earlier one, after that of the earlier ones that lasts longest.
pub(crate) fn overlaps<'w>(
    windows: impl IntoIterator<Item = &'w Window>,
    until: impl Fn(&Window) -> SimTime,
) -> Vec<(&'w Window, &'w Window)> {
    let mut longest: Option<&Window> = None;
    let mut overlaps = Vec::new();
    for window in windows.into_iter().filter(|it| it.from < until(it)) {
        overlaps.extend(
            longest
                .filter(|earlier| window.from < until(earlier))
                .map(|earlier| (earlier, window)),
        );
        if longest.is_none_or(|earlier| until(earlier) < until(window)) {
            longest = Some(window);
        }
    }
    overlaps
}

/// The windows of each key that has any, in the order in which they began.
pub(crate) fn by_key<'w>(
    windows: impl IntoIterator<Item = &'w Window>,
) -> BTreeMap<KeyNo, Vec<&'w Window>> {
    let mut keys: BTreeMap<KeyNo, Vec<&Window>> = BTreeMap::new();
    for window in windows {
        keys.entry(window.key).or_default().push(window);
    }
    keys
}

/// A history that is being read, and what has not ended yet.
#[derive(Default)]
struct Reader {
    index: Index,
    /// By client, the locks that it waits for or holds.
    open: BTreeMap<u8, BTreeSet<LockNo>>,
    /// By key, the place of the window that began last.
    newest: BTreeMap<KeyNo, usize>,
    /// Nodes of which something was heard.
    known: BTreeSet<u8>,
    away: BTreeMap<Who, Absence>,
    held: BTreeMap<(u8, KeyNo), Holding>,
    forgotten: BTreeMap<(u8, KeyNo), Holding>,
    clients: BTreeMap<AttemptNo, u8>,
}

impl Reader {
    fn take_call(&mut self, place: usize, at: SimTime, event: &Event) {
        match *event {
            Event::Calls { client, lock, key } => self.calls(at, client, lock, key),
            Event::Acquired {
                client,
                lock,
                key,
                attempt,
                fencing,
                valid_until,
            } => {
                let window = self.index.windows.len();
                let Some(call) = self.call(lock) else { return };
                (call.outcome, call.decided) = (Outcome::Acquired, at);
                (call.window, call.valid_until) = (Some(window), valid_until);
                let called = call.called;
                self.newest.insert(key, window);
                self.open.entry(client).or_default().insert(lock);
                self.index.windows.push(Window {
                    client,
                    lock,
                    key,
                    attempt,
                    fencing,
                    called,
                    from: at,
                    until: valid_until.max(at),
                    extensions: 0,
                });
            }
            Event::Validity {
                lock,
                valid_until,
                is_extension,
                ..
            } => self.validity(at, lock, valid_until, is_extension),
            Event::Failed { client, lock, why } => {
                if let Some(call) = self.call(lock) {
                    (call.outcome, call.decided) = (Outcome::Failed(why), at);
                }
                self.is_over(client, lock);
            }
            Event::Lost { client, lock, .. } | Event::Releases { client, lock, .. } => {
                self.lets_go(place, at, lock);
                self.is_over(client, lock);
            }
            Event::Released {
                lock, confirmed, ..
            } => {
                if let Some(call) = self.call(lock) {
                    call.decided = call.decided.min(at);
                    call.released = Some((at, confirmed));
                }
            }
            Event::Kept { lock, until, .. } => {
                if let Some(call) = self.call(lock) {
                    call.kept = Some(until);
                }
            }
            Event::ClientDown { client } => {
                for lock in self.open.remove(&client).unwrap_or_default() {
                    match self.call(lock) {
                        Some(call) if call.outcome == Outcome::Open => {
                            (call.outcome, call.decided) = (Outcome::Died, at);
                        }
                        _ => self.lets_go(place, at, lock),
                    }
                }
            }
            _ => {}
        }
    }

    fn calls(&mut self, at: SimTime, client: u8, lock: LockNo, key: KeyNo) {
        let call = Call {
            client,
            lock,
            key,
            called: at,
            outcome: Outcome::Open,
            decided: SimTime::NEVER,
            window: None,
            valid_until: SimTime::NEVER,
            let_go: None,
            released: None,
            kept: None,
        };
        match place(&self.index.calls, lock) {
            Ok(place) => self.index.calls.splice(place..=place, [call]),
            Err(place) => self.index.calls.splice(place..place, [call]),
        };
        self.open.entry(client).or_default().insert(lock);
    }

    fn call(&mut self, lock: LockNo) -> Option<&mut Call> {
        let place = place(&self.index.calls, lock).ok()?;
        self.index.calls.get_mut(place)
    }

    /// A lock's window and its place, while it is open.
    fn open_window(&mut self, lock: LockNo) -> Option<(usize, &mut Window)> {
        let place = self.call(lock).filter(|it| it.let_go.is_none())?.window?;
        Some((place, self.index.windows.get_mut(place)?))
    }

    fn validity(&mut self, at: SimTime, lock: LockNo, valid_until: SimTime, is_extension: bool) {
        let Some((place, window)) = self.open_window(lock) else {
            return;
        };
        let (key, ended) = (window.key, window.until);
        // What has ended by the client's own clock does not begin again by a change of its pace.
        if ended > at || is_extension {
            window.until = valid_until.max(at);
        }
        window.extensions += u32::from(is_extension);
        if is_extension {
            self.index.extensions.push(Extension {
                at,
                window: place,
                ended,
                newest: self.newest.get(&key).copied().unwrap_or(place),
            });
        }
        if let Some(call) = self.call(lock) {
            call.valid_until = valid_until;
        }
    }

    fn lets_go(&mut self, place: usize, at: SimTime, lock: LockNo) {
        if let Some((_, window)) = self.open_window(lock) {
            window.until = window.until.min(at);
        }
        if let Some(call) = self.call(lock) {
            call.decided = call.decided.min(at);
            call.let_go.get_or_insert((at, place));
        }
    }

    fn is_over(&mut self, client: u8, lock: LockNo) {
        if let Some(open) = self.open.get_mut(&client) {
            open.remove(&lock);
        }
    }

    fn take_condition(&mut self, place: usize, at: SimTime, event: &Event) {
        match *event {
            Event::Started {
                node,
                is_quarantined,
                ..
            } => {
                // A node of which the first thing to be heard is its start was not there before.
                if self.known.insert(node) {
                    self.goes_away(SimTime::ZERO, Who::Node(node), None, false);
                }
                self.is_back(at, Who::Node(node));
                if is_quarantined {
                    self.goes_away(at, Who::Node(node), Some(place), true);
                }
            }
            Event::Serving { node } => {
                self.known.insert(node);
                self.is_back(at, Who::Node(node));
            }
            Event::Down { node, .. } | Event::StaysDown { node, .. } => {
                self.known.insert(node);
                self.goes_away(at, Who::Node(node), Some(place), false);
            }
            Event::ClientDown { client } => {
                self.goes_away(at, Who::Client(client), Some(place), false);
            }
            Event::ClientStarted { client } => self.is_back(at, Who::Client(client)),
            Event::Stopped { who, how, until } => self.index.standstills.push(Standstill {
                who,
                how,
                from: at,
                until,
            }),
            _ => {}
        }
    }

    fn goes_away(&mut self, at: SimTime, who: Who, place: Option<usize>, is_quarantined: bool) {
        self.is_back(at, who);
        let absence = Absence {
            who,
            from: at,
            until: SimTime::NEVER,
            is_quarantined,
            place,
        };
        self.away.insert(who, absence);
    }

    fn is_back(&mut self, at: SimTime, who: Who) {
        if let Some(mut absence) = self.away.remove(&who) {
            absence.until = at;
            self.index.absences.push(absence);
        }
    }

    fn take_holding(&mut self, at: SimTime, event: &Event) {
        match *event {
            Event::Granted {
                node,
                key,
                attempt,
                client,
                ends,
                ..
            } => {
                self.clients.insert(attempt, client);
                self.holds(at, (node, key), attempt, ends, false);
            }
            Event::Restored {
                node,
                key,
                attempt,
                ends,
            } => {
                if let Some(mut forgotten) = self.forgotten.remove(&(node, key)) {
                    forgotten.ending = "the node read it from its log again";
                    self.ended(forgotten, at);
                }
                self.holds(at, (node, key), attempt, ends, true);
            }
            Event::Extended {
                node,
                key,
                attempt,
                ends,
            } => match self.held.get_mut(&(node, key)) {
                Some(held) if held.attempt == attempt && held.ends > at => {
                    held.ends = ends;
                    held.extended.push(at);
                }
                _ => self.holds(at, (node, key), attempt, ends, false),
            },
            Event::Freed { node, key, attempt } => {
                let held = self.held.get(&(node, key));
                if held.is_some_and(|held| held.attempt == attempt) {
                    self.frees(at, (node, key), "it was released");
                }
            }
            Event::Down { node, .. } => self.forgets(at, node),
            _ => {}
        }
    }

    fn holds(
        &mut self,
        at: SimTime,
        place: (u8, KeyNo),
        attempt: AttemptNo,
        ends: SimTime,
        is_restored: bool,
    ) {
        self.frees(at, place, "the node gave the key to another attempt");
        let holding = Holding {
            node: place.0,
            key: place.1,
            attempt,
            client: self.clients.get(&attempt).copied(),
            from: at,
            until: ends,
            is_forgotten: false,
            is_restored,
            ends,
            extended: Vec::new(),
            ending: "its deadline passed",
        };
        self.held.insert(place, holding);
    }

    /// A node lets a key go, if the lock had not ended by itself before.
    fn frees(&mut self, at: SimTime, place: (u8, KeyNo), ending: &'static str) {
        if let Some(mut held) = self.held.remove(&place) {
            if at < held.ends {
                held.ending = ending;
            }
            self.ended(held, at);
        }
    }

    fn forgets(&mut self, at: SimTime, node: u8) {
        let all = (node, KeyNo::MIN)..=(node, KeyNo::MAX);
        let places: Vec<(u8, KeyNo)> = self.held.range(all).map(|(place, _)| *place).collect();
        for place in places {
            let forgotten = self.held.get(&place).filter(|it| it.ends > at);
            let forgotten = forgotten.map(|held| Holding {
                from: at,
                until: held.ends,
                is_forgotten: true,
                is_restored: false,
                extended: Vec::new(),
                ..*held
            });
            self.frees(at, place, "the node went down");
            let forgotten = forgotten.and_then(|it| self.forgotten.insert(place, it));
            if let Some(earlier) = forgotten {
                self.ended(earlier, SimTime::NEVER);
            }
        }
    }

    fn ended(&mut self, mut holding: Holding, at: SimTime) {
        holding.until = at.min(holding.ends).max(holding.from);
        self.index.holdings.push(holding);
    }

    fn finish(mut self, end: SimTime) -> Index {
        let held = std::mem::take(&mut self.held).into_values();
        let forgotten = std::mem::take(&mut self.forgotten).into_values();
        for mut holding in held.chain(forgotten) {
            if holding.ends > end {
                holding.ending = "the run ended";
            }
            self.ended(holding, end);
        }
        for who in self.away.keys().copied().collect::<Vec<_>>() {
            self.is_back(end, who);
        }
        let mut index = self.index;
        index.holdings.sort_by_key(|held| held.attempt);
        index.absences.sort_by_key(|it| (it.who, it.from));
        index
    }
}

/// Where the call for a lock is among all, or would be.
fn place(calls: &[Call], lock: LockNo) -> Result<usize, usize> {
    calls.binary_search_by_key(&lock, |call| call.lock)
}
