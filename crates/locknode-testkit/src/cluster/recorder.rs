//! A history of what happens in a cluster, in real time.
//!
//! True time is the runtime's clock. Faults are recorded when they come, what nodes do is seen from their replies, in the moment
//! in which those leave them; what clients believe is [noted](Recorder::note) by the clients' own code, which knows it, or else read off the
//! [wire](Recorder::wire_history).
//!
//! Two clients' beliefs are exactly in order, if each says that it stops to believe before it acts on that. What nodes do comes
//! some microseconds late, and checks of nodes by such a history would find faults where there are none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::command_tap::words;
use super::lock_command::LockCommand;
use super::net::LinkId;
use super::wire::Wire;
use crate::fault::Crash;
use crate::history::{AttemptNo, Entry, Event, History, KeyNo, LeftOut, LockNo, Message};
use crate::lock_effect::LockEffect;
use crate::span::SimTime;

/// Writes down what happens. See [`ClusterBuilder::record`](super::ClusterBuilder::record).
///
/// It keeps two million events, the first ones, and 20,000 messages, the last ones; and of what nodes do it follows a thousand
/// keys and those that were [asked for](Self::key). What is left out is counted, in [`History::left_out`].
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) history: History,
    /// By their bytes: names in the history are for people.
    keys: BTreeMap<Vec<u8>, KeyNo>,
    attempts: BTreeMap<Vec<u8>, AttemptNo>,
    pub(super) locks: LockNo,
    nodes: Vec<NodeSeen>,
    /// The last ones.
    messages: VecDeque<Message>,
    /// How many came before them.
    forgotten: u64,
    pub(super) wire: Wire,
    /// The connections of clients that note what they believe.
    pub(super) own: BTreeSet<String>,
}

/// What was seen of a node.
#[derive(Clone, Debug, Default)]
struct NodeSeen {
    /// Whose attempt has which key.
    holders: BTreeMap<KeyNo, AttemptNo>,
    /// When it serves; `None` once that is recorded, or while it is down.
    serves_at: Option<SimTime>,
}

/// The place of a message among all.
pub(crate) type MessageNo = u64;

impl Recorder {
    /// A history without events, of this many nodes and clients. Its time begins now.
    pub fn new(nodes: u8, clients: u8) -> Self {
        let history = History {
            nodes,
            clients,
            ..History::default()
        };
        Self {
            start: Instant::now(),
            state: Mutex::new(State {
                history,
                keys: BTreeMap::new(),
                attempts: BTreeMap::new(),
                locks: 0,
                nodes: vec![NodeSeen::default(); usize::from(nodes)],
                messages: VecDeque::new(),
                forgotten: 0,
                wire: Wire::new(nodes),
                own: BTreeSet::new(),
            }),
        }
    }

    /// The present, in the time of the history.
    pub fn now(&self) -> SimTime {
        let elapsed = SimTime::from(self.start.elapsed()).as_nanos();
        // Finer is nothing that tasks do, and whole microseconds are shorter to read.
        SimTime::from_nanos(elapsed / 1000 * 1000)
    }

    /// Something happens now. Returns when that is.
    pub fn note(&self, event: Event) -> SimTime {
        self.note_with(|_| event)
    }

    /// Something happens in a moment that is part of it. Between that moment and others' there is an order: a later one is
    /// never given out before.
    pub fn note_with(&self, event: impl FnOnce(SimTime) -> Event) -> SimTime {
        let (mut state, now) = self.at_present();
        state.push(now, event(now));
        now
    }

    /// The number of a key: its own, however many there are, as long as numbers last; from the 65,536th on keys share one.
    pub fn key(&self, name: &[u8]) -> KeyNo {
        self.state().key(name)
    }

    /// The number of an attempt, by what a node knows of it.
    pub fn attempt(&self, token: &[u8]) -> AttemptNo {
        self.state().attempt(token)
    }

    /// A number for a lock that is about to be acquired.
    pub fn next_lock(&self) -> LockNo {
        let mut state = self.state();
        state.locks += 1;
        state.locks - 1
    }

    /// All that has happened until now, with the last messages.
    pub fn history(&self) -> History {
        let (mut state, now) = self.at_present();
        state.history.end = now;
        let mut history = state.history.clone();
        history.messages = state.messages.iter().cloned().collect();
        history.left_out = state.left_out();
        history
    }

    /// How much is missing until now.
    pub fn left_out(&self) -> LeftOut {
        self.state().left_out()
    }

    /// A look at what has happened from a place on, and the place for the next look.
    pub fn since(&self, place: usize) -> (Vec<Entry>, usize) {
        let state = self.state();
        let entries = &state.history.entries;
        let new = entries.get(place..).unwrap_or_default().to_vec();
        (new, entries.len())
    }

    /// A message was sent.
    pub(crate) fn sent(&self, link: LinkId, is_request: bool, bytes: &[u8]) -> MessageNo {
        let (mut state, now) = self.at_present();
        if state.messages.len() >= MESSAGES_MAX {
            state.messages.pop_front();
            state.forgotten += 1;
        }
        state.messages.push_back(Message {
            client: link.client,
            node: link.node,
            is_request,
            sent: now,
            arrived: None,
            text: text(bytes),
        });
        state.forgotten + u64::try_from(state.messages.len()).unwrap_or(u64::MAX) - 1
    }

    /// A message has arrived.
    pub(crate) fn arrived(&self, message: MessageNo) {
        let (mut state, now) = self.at_present();
        let place = message.checked_sub(state.forgotten);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(message) = place.and_then(|place| state.messages.get_mut(place)) {
            message.arrived = Some(now);
        }
    }

    /// A reply has left a node.
    pub(crate) fn answered(&self, link: LinkId, args: &[Vec<u8>], reply: &[u8]) {
        let effect = LockEffect::of(args, reply);
        if effect == LockEffect::Nothing {
            return;
        }
        let (mut state, now) = self.at_present();
        let effect = state.told_apart(link.node, effect, args);
        state.see(now, link, effect);
    }

    /// A node has started, and refuses locks for this time.
    pub(crate) fn started(&self, node: u8, quarantine: Option<Duration>, reason: &'static str) {
        let (mut state, now) = self.at_present();
        let started = Event::Started {
            node,
            is_quarantined: quarantine.is_some(),
            reason,
        };
        state.push(now, started);
        if let Some(seen) = state.nodes.get_mut(usize::from(node)) {
            seen.serves_at = Some(now + quarantine.unwrap_or_default());
        }
        state.note_who_serves(now);
    }

    /// A node is down.
    pub(crate) fn down(&self, node: u8, how: Crash) {
        let (mut state, now) = self.at_present();
        if let Some(seen) = state.nodes.get_mut(usize::from(node)) {
            *seen = NodeSeen::default();
        }
        state.push(now, Event::Down { node, how });
    }

    /// The state, and a moment that is later than all that is in it.
    pub(super) fn at_present(&self) -> (MutexGuard<'_, State>, SimTime) {
        let mut state = self.state();
        let now = self.now();
        state.note_who_serves(now);
        (state, now)
    }

    /// What is behind the lock is whole after every statement.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, at: SimTime, event: Event) {
        if self.history.entries.len() < ENTRIES_MAX {
            self.history.entries.push(Entry { at, event });
        } else {
            self.leave_out(at);
        }
    }

    fn leave_out(&mut self, at: SimTime) {
        let left_out = &mut self.history.left_out;
        left_out.events += 1;
        left_out.since.get_or_insert(at);
    }

    fn left_out(&self) -> LeftOut {
        LeftOut {
            messages: self.forgotten,
            ..self.history.left_out
        }
    }

    /// Whether the client of this connection notes what it believes.
    pub(super) fn is_own(&self, connection: &str) -> bool {
        connection.starts_with(PLAYER) || self.own.contains(connection)
    }

    /// Nodes whose quarantine has ended say nothing by themselves.
    fn note_who_serves(&mut self, now: SimTime) {
        loop {
            let due = (0u8..).zip(&self.nodes).filter_map(|(node, seen)| {
                let at = seen.serves_at.filter(|at| *at <= now)?;
                Some((at, node))
            });
            let Some((at, node)) = due.min() else {
                return;
            };
            self.serves(at, node);
        }
    }

    fn serves(&mut self, at: SimTime, node: u8) {
        if let Some(seen) = self.nodes.get_mut(usize::from(node)) {
            seen.serves_at = None;
        }
        self.push(at, Event::Serving { node });
    }

    /// Scripts that acquire have the words of scripts that extend: who holds the key tells them apart.
    fn told_apart<'a>(
        &self,
        node: u8,
        effect: LockEffect<'a>,
        args: &'a [Vec<u8>],
    ) -> LockEffect<'a> {
        let (LockEffect::Extension { key, ttl }, Some(LockCommand::Hold { token, .. })) =
            (effect, LockCommand::of(args))
        else {
            return effect;
        };
        let Some(token) = token else { return effect };
        let seen = self.nodes.get(usize::from(node)).zip(self.keys.get(key));
        let holder = seen.and_then(|(seen, key)| seen.holders.get(key));
        if holder.is_some() && holder == self.attempts.get(token) {
            return effect;
        }
        LockEffect::Grant {
            key,
            token,
            counter: 0,
            ttl,
        }
    }

    fn see(&mut self, now: SimTime, LinkId { client, node }: LinkId, effect: LockEffect<'_>) {
        let name = match effect {
            LockEffect::Grant { key, .. }
            | LockEffect::Extension { key, .. }
            | LockEffect::Release { key } => key,
            LockEffect::Refusal(why) => {
                return self.push(now, Event::Refused { node, client, why });
            }
            LockEffect::WriteBack { .. } | LockEffect::Nothing => return,
        };
        let Some(key) = self.followed(name) else {
            return self.leave_out(now);
        };
        let event = match effect {
            LockEffect::Grant {
                token,
                counter,
                ttl,
                ..
            } => {
                // Its clock may be fast, and its quarantine be over before ours of it is.
                if self.seen(node).is_some_and(|seen| seen.serves_at.is_some()) {
                    self.serves(now, node);
                }
                let attempt = self.attempt(token);
                if let Some(seen) = self.seen(node) {
                    seen.holders.insert(key, attempt);
                }
                Some(Event::Granted {
                    node,
                    key,
                    attempt,
                    client,
                    counter,
                    ends: now + ttl,
                })
            }
            LockEffect::Extension { ttl, .. } => {
                let holder = self.seen(node).and_then(|seen| seen.holders.get(&key));
                holder.map(|attempt| Event::Extended {
                    node,
                    key,
                    attempt: *attempt,
                    ends: now + ttl,
                })
            }
            _ => {
                let holder = self.seen(node).and_then(|seen| seen.holders.remove(&key));
                holder.map(|attempt| Event::Freed { node, key, attempt })
            }
        };
        if let Some(event) = event {
            self.push(now, event);
        }
    }

    fn seen(&mut self, node: u8) -> Option<&mut NodeSeen> {
        self.nodes.get_mut(usize::from(node))
    }

    /// The number of a key that a node was asked about, if it is one of those that are followed. One number for several keys
    /// would show two holders where there are none.
    fn followed(&mut self, name: &[u8]) -> Option<KeyNo> {
        match self.keys.get(name) {
            Some(key) => Some(*key),
            None if self.keys.len() >= KEYS_MAX => None,
            None => Some(self.key(name)),
        }
    }

    pub(super) fn key(&mut self, name: &[u8]) -> KeyNo {
        if let Some(key) = self.keys.get(name) {
            return *key;
        }
        let names = &mut self.history.keys;
        let Ok(key) = KeyNo::try_from(names.len()) else {
            return KeyNo::MAX;
        };
        names.push(Arc::from(&*String::from_utf8_lossy(name)));
        self.keys.insert(name.to_vec(), key);
        key
    }

    pub(super) fn attempt(&mut self, token: &[u8]) -> AttemptNo {
        if let Some(attempt) = self.attempts.get(token) {
            return *attempt;
        }
        if self.attempts.len() >= ENTRIES_MAX {
            return AttemptNo::MAX;
        }
        let attempt = AttemptNo::try_from(self.attempts.len()).unwrap_or(AttemptNo::MAX);
        self.attempts.insert(token.to_vec(), attempt);
        attempt
    }
}

/// The beginning of a message in one line, for people.
fn text(bytes: &[u8]) -> Box<str> {
    let words = bytes.starts_with(b"*").then(|| words(bytes)).flatten();
    let words = words
        .iter()
        .flatten()
        .map(|word| word.escape_ascii().to_string());
    let mut text = words.collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        text = bytes.escape_ascii().to_string();
    }
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// The name of a connection.
pub(super) fn connection(client: impl Display, node: impl Display) -> String {
    format!("{client} {node}")
}

/// The names of connections begin so if a client plays in memory.
pub(super) const PLAYER: &str = "player";

/// Some hundred megabytes, and hours of eight clients.
const ENTRIES_MAX: usize = 2_000_000;

/// More than a picture can show. Keys of the clients whose beliefs are noted go beyond it.
const KEYS_MAX: usize = 1000;

/// Half a minute of eight clients.
const MESSAGES_MAX: usize = 20_000;

const TEXT_CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId { client: 1, node: 0 };

    fn words(request: &str) -> Vec<Vec<u8>> {
        let words = request.split(' ');
        words.map(|word| word.as_bytes().to_vec()).collect()
    }

    fn at(ms: u64) -> SimTime {
        Duration::from_millis(ms).into()
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_quarantine_is_told_when_the_next_thing_happens() {
        let recorder = Recorder::new(2, 1);
        let quarantine = Some(Duration::from_secs(1));
        recorder.started(0, quarantine, "test");
        recorder.started(1, quarantine, "test");
        tokio::time::advance(Duration::from_millis(400)).await;
        recorder.down(1, Crash::Kill);
        // Its clock is fast: it grants before.
        tokio::time::advance(Duration::from_millis(500)).await;
        recorder.answered(LINK, &words("SET k t NX PX 100"), b"+OK\r\n");
        recorder.started(1, quarantine, "test");
        tokio::time::advance(Duration::from_millis(2000)).await;
        recorder.note(Event::ClientDown { client: 0 });
        let served = |entry: &Entry| match entry.event {
            Event::Serving { node } => Some((entry.at, node)),
            _ => None,
        };
        let history = recorder.history();
        let served: Vec<_> = history.entries.iter().filter_map(served).collect();
        assert_eq!(served, [(at(900), 0), (at(1900), 1)]);
        assert!(history.entries.is_sorted_by_key(|entry| entry.at));
        assert_eq!(history.end, at(2900));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_followed_from_its_grant_to_its_release() {
        let recorder = Recorder::new(1, 2);
        for (request, reply) in [
            ("SET k t NX PX 100", "+OK\r\n"),
            ("PEXPIRE k 300", ":1\r\n"),
            ("DEL k", ":1\r\n"),
            ("DEL k", ":1\r\n"),
            ("PEXPIRE other 300", ":1\r\n"),
            ("SET k u NX PX 100", "-LOADING wait\r\n"),
        ] {
            recorder.answered(LINK, &words(request), reply.as_bytes());
        }
        let (node, key, attempt, client) = (0, 0, recorder.attempt(b"t"), 1);
        let want = [
            Event::Granted {
                node,
                key,
                attempt,
                client,
                counter: 0,
                ends: at(100),
            },
            Event::Extended {
                node,
                key,
                attempt,
                ends: at(300),
            },
            Event::Freed { node, key, attempt },
            Event::Refused {
                node,
                client,
                why: "LOADING",
            },
        ];
        let (entries, place) = recorder.since(0);
        let events: Vec<Event> = entries.into_iter().map(|entry| entry.event).collect();
        assert_eq!((events, place), (want.to_vec(), 4));
        assert_eq!(recorder.since(place), (Vec::new(), 4));
    }

    #[tokio::test(start_paused = true)]
    async fn of_messages_the_last_ones_are_kept() {
        let recorder = Recorder::new(1, 2);
        let first = recorder.sent(LINK, true, b"*1\r\n$4\r\nPING\r\n");
        for _ in 1..MESSAGES_MAX {
            recorder.sent(LINK, false, b"+PONG\r\n");
        }
        recorder.arrived(first);
        let messages = recorder.history().messages;
        assert_eq!(messages.len(), MESSAGES_MAX);
        assert_eq!(&*messages[0].text, "PING");
        assert_eq!(messages[0].arrived, Some(at(0)));
        let last = recorder.sent(LINK, false, b"-ERR no\r\n");
        recorder.arrived(first);
        recorder.arrived(last);
        let messages = recorder.history().messages;
        assert_eq!(messages.len(), MESSAGES_MAX);
        assert_eq!(&*messages[MESSAGES_MAX - 1].text, "-ERR no\\r\\n");
        assert_eq!(messages[MESSAGES_MAX - 1].arrived, Some(at(0)));
        assert_eq!(recorder.history().left_out.messages, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_two_keys_have_one_number() {
        let recorder = Recorder::new(1, 2);
        let grant = |key: usize| {
            let request = format!("SET key-{key} t-{key} NX PX 100");
            recorder.answered(LINK, &words(&request), b"+OK\r\n");
        };
        (0..KEYS_MAX).for_each(grant);
        assert_eq!(recorder.left_out(), LeftOut::default());
        tokio::time::advance(Duration::from_millis(7)).await;
        // Nothing is recorded of a key that is not followed.
        grant(KEYS_MAX);
        for request in ["PEXPIRE key-1000 300", "DEL key-1000"] {
            recorder.answered(LINK, &words(request), b":1\r\n");
        }
        let want = LeftOut {
            events: 3,
            since: Some(at(7)),
            messages: 0,
        };
        let history = recorder.history();
        assert_eq!((history.left_out, recorder.left_out()), (want, want));
        assert_eq!(history.entries.len(), KEYS_MAX);
        // A client's own keys have their numbers all the same, and are followed then.
        let (one, other) = (recorder.key(b"\xff"), recorder.key(b"\xfe"));
        assert_eq!((one, other, recorder.key(b"\xff")), (1000, 1001, 1000));
        assert_eq!(recorder.key(b"key-999"), 999);
        assert_eq!(recorder.key(b"key-1000"), 1002);
        grant(KEYS_MAX);
        let (entries, _) = recorder.since(KEYS_MAX);
        let is_of_it = |entry: &Entry| matches!(entry.event, Event::Granted { key: 1002, .. });
        assert!(
            entries.len() == 1 && entries.iter().all(is_of_it),
            "{entries:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_are_too_many_are_counted() {
        let recorder = Recorder::new(1, 1);
        let client = 0;
        for _ in 0..ENTRIES_MAX {
            recorder.note(Event::ClientDown { client });
        }
        assert_eq!(recorder.left_out(), LeftOut::default());
        for _ in 0..2 {
            tokio::time::advance(Duration::from_millis(5)).await;
            recorder.note(Event::ClientStarted { client });
        }
        let want = LeftOut {
            events: 2,
            since: Some(at(5)),
            messages: 0,
        };
        assert_eq!(recorder.left_out(), want);
    }
}
