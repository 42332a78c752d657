//! Who held what, as far as the messages between clients and nodes show it. Pure: requests, replies and their moments in, the
//! times in which a token held a majority of the nodes out.
//!
//! A client that notes nothing is taken to believe that it holds a lock from the moment at which the grants of a majority of the
//! nodes have reached it. It believes so until the TTL of its request has passed, counted from the request and less what clocks
//! may drift, or until it asks any node to release. A node that crashes, forgets or is cut off does not end a belief: those are
//! the moments in which two clients hold one lock.
//!
//! Where there may have been no overlap, none is reported: a lost reply has reached no client, drift is subtracted, and what may
//! be a release is one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lock_command::LockCommand;
use super::net::LinkId;
use crate::span::SimTime;

/// What was on the wire.
#[derive(Debug)]
pub(crate) struct Wire {
    nodes: usize,
    tracks: BTreeMap<(Vec<u8>, Vec<u8>), Track>,
    /// The times in which tokens held a majority, in the order in which they began.
    pub(crate) held: Vec<Held>,
    pub(crate) counts: WireCounts,
}

/// A time in which a token held a majority of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) client: u8,
    pub(crate) key: Vec<u8>,
    pub(crate) token: Vec<u8>,
    pub(crate) from: SimTime,
    /// When the belief ends by itself, as it was at first.
    pub(crate) valid_until: SimTime,
    /// When it became another.
    pub(crate) changes: Vec<Change>,
    /// When the client asked for its release.
    pub(crate) released: Option<SimTime>,
}

/// Another end of a belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: SimTime,
    pub(crate) valid_until: SimTime,
    /// Whether the client asked for more time; otherwise one more node has granted what it asked for at first.
    pub(crate) is_extension: bool,
}

/// How much was seen on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Requests that were about locks.
    pub requests: u64,
    /// Grants that reached their clients, each by one node.
    pub grants: u64,
    /// Scripts and transactions whose effect could not be read.
    pub unread: u64,
    /// Grants that were not followed, because there were too many.
    pub left_out: u64,
}

/// A reply from which a client learns that it holds a lock. Comes out when the reply leaves the node, and goes in when it
/// arrives.
#[derive(Debug)]
pub(crate) struct LockReply {
    link: LinkId,
    words: Vec<Vec<u8>>,
    sent: SimTime,
}

/// What a token holds of a key.
#[derive(Debug)]
struct Track {
    client: u8,
    /// By node, until when its client may rely on it.
    ends: Vec<Option<SimTime>>,
    /// Its place among those that held a majority, while it holds one.
    place: Option<usize>,
    released: Option<Release>,
}

/// The latest release of a token: when it was asked for, of which node, and what it ended.
#[derive(Debug)]
struct Release {
    sent: SimTime,
    node: u8,
    ends: Vec<Option<SimTime>>,
    place: usize,
}

impl Wire {
    pub(crate) fn new(nodes: u8) -> Self {
        Self {
            nodes: nodes.into(),
            tracks: BTreeMap::new(),
            held: Vec::new(),
            counts: WireCounts::default(),
        }
    }

    /// A client has sent a request.
    pub(crate) fn sent(&mut self, now: SimTime, link: LinkId, words: &[Vec<u8>]) {
        let command = LockCommand::of(words);
        self.counts.requests += u64::from(command.is_some());
        let Some(LockCommand::Release { keys, token }) = command else {
            return;
        };
        for key in keys {
            for (_, track) in tracks(&mut self.tracks, key, token, link.client) {
                let Some(place) = track.place.take() else {
                    continue;
                };
                if let Some(held) = self.held.get_mut(place) {
                    held.released = Some(now);
                }
                track.released = Some(Release {
                    sent: now,
                    node: link.node,
                    ends: track.ends.iter_mut().map(Option::take).collect(),
                    place,
                });
            }
        }
    }

    /// A reply has left a node. Returns it if its client learns from it that it holds a lock.
    pub(crate) fn answered(
        &mut self,
        link: LinkId,
        words: Vec<Vec<u8>>,
        sent: SimTime,
        reply: &[u8],
    ) -> Option<LockReply> {
        let command = LockCommand::of(&words)?;
        match &command {
            LockCommand::Release { keys, token } if command.is_refuted(reply) => {
                for key in keys {
                    for (_, track) in tracks(&mut self.tracks, key, *token, link.client) {
                        track.goes_on(link, sent, &mut self.held);
                    }
                }
            }
            LockCommand::Unread => self.counts.unread += u64::from(command.is_done(reply)),
            LockCommand::Hold { .. } if command.is_done(reply) => {
                return Some(LockReply { link, words, sent });
            }
            _ => {}
        }
        None
    }

    /// A reply has reached its client.
    pub(crate) fn arrived(&mut self, now: SimTime, reply: &LockReply) {
        let (link, sent) = (reply.link, reply.sent);
        let Some(LockCommand::Hold {
            keys,
            token,
            ttl,
            adds,
        }) = LockCommand::of(&reply.words)
        else {
            return;
        };
        for key in keys {
            let tokens: Vec<Vec<u8>> = match token {
                Some(token) => vec![token.to_vec()],
                None => tracks(&mut self.tracks, key, None, link.client)
                    .filter(|(_, track)| track.has(link.node))
                    .map(|(token, _)| token.clone())
                    .collect(),
            };
            self.counts.grants += u64::from(token.is_some());
            for token in tokens {
                let end = |before: Option<SimTime>| match (ttl, adds, before) {
                    (None, ..) => SimTime::NEVER,
                    (Some(ttl), true, Some(before)) => before + less_drift(ttl),
                    (Some(ttl), ..) => sent + less_drift(ttl),
                };
                self.holds(now, link, (key, &token), sent, end);
            }
        }
    }

    fn holds(
        &mut self,
        now: SimTime,
        link: LinkId,
        (key, token): (&[u8], &[u8]),
        sent: SimTime,
        end: impl FnOnce(Option<SimTime>) -> SimTime,
    ) {
        let name = (key.to_vec(), token.to_vec());
        if !self.tracks.contains_key(&name) && !self.make_room(now) {
            self.counts.left_out += 1;
            return;
        }
        let track = self.tracks.entry(name).or_insert_with(|| Track {
            client: link.client,
            ends: vec![None; self.nodes],
            place: None,
            released: None,
        });
        // It was asked for before the client gave it up.
        if track.released.as_ref().is_some_and(|it| it.sent >= sent) {
            return;
        }
        let mut is_extension = false;
        if let Some(slot) = track.ends.get_mut(usize::from(link.node)) {
            is_extension = slot.is_some();
            *slot = Some(end(*slot));
        }
        let until = track.majority_until();
        let open = track.place.and_then(|place| self.held.get_mut(place));
        match open {
            Some(held) if held.until() > now => {
                let is_another = held.until() != until;
                if is_another {
                    // Of very many the last one counts.
                    held.changes.truncate(CHANGES_MAX - 1);
                    held.changes.push(Change {
                        at: now,
                        valid_until: until,
                        is_extension,
                    });
                }
            }
            _ if until > now => {
                track.place = Some(self.held.len());
                self.held.push(Held {
                    client: link.client,
                    key: key.to_vec(),
                    token: token.to_vec(),
                    from: now,
                    valid_until: until,
                    changes: Vec::new(),
                    released: None,
                });
            }
            _ => {}
        }
    }

    /// Whether one more can be followed.
    fn make_room(&mut self, now: SimTime) -> bool {
        if self.held.len() >= HELD_MAX {
            return false;
        }
        if self.tracks.len() >= TRACKS_MAX {
            self.tracks
                .retain(|_, track| track.ends.iter().flatten().any(|end| *end > now));
        }
        self.tracks.len() < TRACKS_MAX
    }
}

/// The tokens that a request about a key is about: the one that it names, or else all of its client.
fn tracks<'w>(
    tracks: &'w mut BTreeMap<(Vec<u8>, Vec<u8>), Track>,
    key: &'w [u8],
    token: Option<&'w [u8]>,
    client: u8,
) -> impl Iterator<Item = (&'w Vec<u8>, &'w mut Track)> {
    let first = (key.to_vec(), token.unwrap_or_default().to_vec());
    tracks
        .range_mut(first..)
        .take_while(move |((of, it), _)| of == key && token.is_none_or(|token| it == token))
        .filter(move |(_, track)| token.is_some() || track.client == client)
        .map(|((_, token), track)| (token, track))
}

impl Held {
    /// When the belief ends.
    fn until(&self) -> SimTime {
        let last = self.changes.last();
        let by_itself = last.map_or(self.valid_until, |change| change.valid_until);
        self.released.map_or(by_itself, |at| at.min(by_itself))
    }
}

impl Track {
    fn has(&self, node: u8) -> bool {
        matches!(self.ends.get(usize::from(node)), Some(Some(_)))
    }

    /// Until when a majority of the nodes holds the key for it, as far as its client knows.
    fn majority_until(&self) -> SimTime {
        let mut ends: Vec<SimTime> = self.ends.iter().copied().flatten().collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        let quorum = self.ends.len() / 2;
        ends.get(quorum).copied().unwrap_or(SimTime::ZERO)
    }

    /// What looked like a release was something else.
    fn goes_on(&mut self, link: LinkId, sent: SimTime, held: &mut [Held]) {
        let is_it = |it: &mut Release| it.sent == sent && it.node == link.node;
        let Some(release) = self.released.take_if(is_it) else {
            return;
        };
        if let Some(held) = held.get_mut(release.place) {
            held.released = None;
        }
        (self.ends, self.place) = (release.ends, Some(release.place));
    }
}

/// What a client relies on at least: the usual allowance is a hundredth and two milliseconds.
fn less_drift(ttl: Duration) -> Duration {
    ttl.saturating_sub(ttl / 100 + Duration::from_millis(2))
}

/// Tokens that are followed at a time, each some hundred bytes.
const TRACKS_MAX: usize = 200_000;

/// Extensions of one lock: hours of them.
const CHANGES_MAX: usize = 10_000;

/// Times that are remembered, each some hundred bytes.
const HELD_MAX: usize = 500_000;

#[cfg(test)]
mod tests;
