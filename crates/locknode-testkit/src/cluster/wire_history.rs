//! A history in which the messages speak for clients that say nothing themselves.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::net::LinkId;
use super::recorder::{Recorder, connection};
use super::wire::{Held, LockReply, WireCounts};
use crate::history::{AttemptNo, Entry, Event, History, KeyNo, LockNo};
use crate::span::SimTime;

/// What happened, with what the messages show of clients that note nothing. See [`Recorder::wire_history`].
#[derive(Clone, Debug, Default)]
pub struct WireHistory {
    /// All of it, in order, with the beliefs of those clients.
    pub history: History,
    /// Who held a lock on a majority of the nodes by what was on the wire, in the order in which that began.
    pub holders: Vec<Holder>,
    /// How much was seen.
    pub counts: WireCounts,
}

/// A token that held a lock on a majority of the nodes, as its client could know from their replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The lock act that stands for it in the history.
    pub lock: LockNo,
    /// The client whose ports it came by.
    pub client: u8,
    /// What is locked.
    pub key: KeyNo,
    /// The beginning of the token, for people.
    pub token: Box<str>,
}

impl Recorder {
    /// What passes a connection between these addresses is not read off the wire: the client [notes](Self::note) what it
    /// believes. Call this before it sends anything.
    pub fn notes_itself(&self, client: SocketAddr, node: SocketAddr) {
        self.state().own.insert(connection(client, node));
    }

    /// All that has happened until now, with what the messages show of clients that note nothing: a client holds a lock from
    /// the moment at which the grants of a majority of the nodes have reached it until it asks for the release, or until the
    /// TTL has passed, less a hundredth and 2 ms for drift. [`check_all`](crate::check_all) judges them like others. Two
    /// programs that use the same ports are the same client, and one that holds a lock twice when both hold it.
    ///
    /// `SET`, `SETNX`, `LOCK.ACQUIRE` and their counterparts are read by their names, scripts by their arguments: keys and a
    /// token to release, a TTL behind the token to acquire or extend. What cannot be read is
    /// [counted](WireCounts::unread).
    pub fn wire_history(&self) -> WireHistory {
        let mut history = self.history();
        let mut state = self.state();
        let noted: BTreeSet<AttemptNo> = history.entries.iter().filter_map(acquired).collect();
        let (mut holders, mut lock) = (Vec::new(), state.locks);
        for held in state.wire.held.clone() {
            let (attempt, key) = (state.attempt(&held.token), state.key(&held.key));
            if noted.contains(&attempt) {
                continue;
            }
            history.entries.extend(believed(&held, lock, key, attempt));
            holders.push(Holder {
                lock,
                client: held.client,
                key,
                token: shown(&held.token),
            });
            lock = lock.saturating_add(1);
        }
        history.keys.clone_from(&state.history.keys);
        // What was there before comes first: a node grants before its client can know.
        history.entries.sort_by_key(|entry| entry.at);
        WireHistory {
            history,
            holders,
            counts: state.wire.counts,
        }
    }

    /// A client has sent a request. Returns when that was.
    pub(crate) fn asks(&self, link: LinkId, connection: &str, words: &[Vec<u8>]) -> SimTime {
        let (mut state, now) = self.at_present();
        if !state.is_own(connection) {
            state.wire.sent(now, link, words);
        }
        now
    }

    /// A reply has left its node. Returns it if its client learns from it that it holds a lock.
    pub(crate) fn lock_reply(
        &self,
        link: LinkId,
        connection: &str,
        words: Vec<Vec<u8>>,
        sent: SimTime,
        reply: &[u8],
    ) -> Option<LockReply> {
        let mut state = self.state();
        if state.is_own(connection) {
            return None;
        }
        state.wire.answered(link, words, sent, reply)
    }

    /// A reply has reached its client.
    pub(crate) fn learns(&self, reply: &LockReply) {
        let (mut state, now) = self.at_present();
        state.wire.arrived(now, reply);
    }

    /// A connection has ended, and another client may have its address next.
    pub(crate) fn left(&self, connection: &str) {
        self.state().own.remove(connection);
    }
}

fn acquired(entry: &Entry) -> Option<AttemptNo> {
    match entry.event {
        Event::Acquired { attempt, .. } => Some(attempt),
        _ => None,
    }
}

/// What a client would have noted.
fn believed(held: &Held, lock: LockNo, key: KeyNo, attempt: AttemptNo) -> Vec<Entry> {
    let client = held.client;
    let acquired = Event::Acquired {
        client,
        lock,
        key,
        attempt,
        fencing: None,
        valid_until: held.valid_until,
    };
    let mut events = vec![
        (held.from, Event::Calls { client, lock, key }),
        (held.from, acquired),
    ];
    events.extend(held.changes.iter().map(|change| {
        let validity = Event::Validity {
            client,
            lock,
            valid_until: change.valid_until,
            is_extension: change.is_extension,
        };
        (change.at, validity)
    }));
    events.extend(held.released.map(|at| {
        let releases = Event::Releases {
            client,
            lock,
            is_left: false,
        };
        (at.max(held.from), releases)
    }));
    let entries = events.into_iter();
    entries.map(|(at, event)| Entry { at, event }).collect()
}

fn shown(token: &[u8]) -> Box<str> {
    let text = token.escape_ascii().to_string();
    match text.char_indices().nth(TOKEN_CHARS_MAX) {
        None => text.into(),
        Some((cut, _)) => format!("{}...", text.get(..cut).unwrap_or_default()).into(),
    }
}

/// Random tokens differ in less, and two of them fit in a line.
const TOKEN_CHARS_MAX: usize = 16;
