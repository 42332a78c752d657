//! Who held what, as far as the messages between clients and nodes show it. Pure: requests, replies and their moments in, the
//! times in which a token had a majority out.
//!
//! A client that nobody asked believes that it holds a lock from the moment in which a majority of the nodes has told it so. It
//! believes until the TTL that it asked for is over, counted from its request and less what clocks may drift, or until it asks
//! any node to release. That a node crashes, forgets or is cut off does not end a belief: those are the moments in which
//! two hold one lock.
//!
//! All is reckoned so that no overlap is told where there may have been none: a reply that was lost was told to nobody, drift
//! is taken off, and what may be a release is one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::net::LinkId;
use super::wish::Wish;
use crate::span::SimTime;

/// What was on the wire.
#[derive(Debug)]
pub(crate) struct Wire {
    nodes: usize,
    tracks: BTreeMap<(Vec<u8>, Vec<u8>), Track>,
    held: Vec<Held>,
    counts: WireCounts,
}

/// A time in which a token had a majority of the nodes.
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

/// A node has told a client what it has done. Comes out when the reply leaves the node, and goes in when it arrives.
#[derive(Debug)]
pub(crate) struct Told {
    link: LinkId,
    words: Vec<Vec<u8>>,
    sent: SimTime,
}

/// A token's way with a key.
#[derive(Debug)]
struct Track {
    client: u8,
    /// By node, until when its client may rely on it.
    ends: Vec<Option<SimTime>>,
    /// Its place among those that had a majority, while it has one.
    place: Option<usize>,
    /// The latest release: when it was asked for, of which node, and what it ended.
    let_go: Option<LetGo>,
}

#[derive(Debug)]
struct LetGo {
    sent: SimTime,
    node: u8,
    ends: Vec<Option<SimTime>>,
    place: Option<usize>,
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

    pub(crate) fn counts(&self) -> WireCounts {
        self.counts
    }

    /// The times in which tokens had a majority, in the order in which they began.
    pub(crate) fn held(&self) -> &[Held] {
        &self.held
    }

    /// A client has sent a request.
    pub(crate) fn sent(&mut self, now: SimTime, link: LinkId, words: &[Vec<u8>]) {
        let wish = Wish::of(words);
        self.counts.requests += u64::from(wish != Wish::Nothing);
        let Wish::LetGo { keys, token } = wish else {
            return;
        };
        for key in keys {
            self.each(key, token, link, |track, held| {
                let Some(place) = track.place.take() else {
                    return;
                };
                if let Some(held) = held.get_mut(place) {
                    held.released = Some(now);
                }
                track.let_go = Some(LetGo {
                    sent: now,
                    node: link.node,
                    ends: track.ends.iter_mut().map(Option::take).collect(),
                    place: Some(place),
                });
            });
        }
    }

    /// A reply has left a node: what it tells the client, if it tells of a lock.
    pub(crate) fn answered(
        &mut self,
        link: LinkId,
        words: Vec<Vec<u8>>,
        sent: SimTime,
        reply: &[u8],
    ) -> Option<Told> {
        let wish = Wish::of(&words);
        match &wish {
            Wish::LetGo { keys, token } if wish.is_refuted(reply) => {
                for key in keys {
                    self.each(key, *token, link, |track, held| {
                        track.goes_on(link, sent, held)
                    });
                }
                return None;
            }
            Wish::Unread => {
                self.counts.unread += u64::from(wish.is_done(reply));
                return None;
            }
            Wish::Take { .. } | Wish::Keep { .. } if wish.is_done(reply) => {}
            _ => return None,
        }
        Some(Told { link, words, sent })
    }

    /// A reply has reached its client.
    pub(crate) fn told(&mut self, now: SimTime, told: &Told) {
        let (link, sent) = (told.link, told.sent);
        match Wish::of(&told.words) {
            Wish::Take {
                keys,
                token,
                ttl,
                adds,
            } => {
                for key in keys {
                    self.counts.grants += 1;
                    let of_node = |before: Option<SimTime>| match (ttl, adds, before) {
                        (None, ..) => SimTime::NEVER,
                        (Some(ttl), true, Some(before)) => before + less_drift(ttl),
                        (Some(ttl), ..) => sent + less_drift(ttl),
                    };
                    self.holds(now, link, (key, token), sent, of_node);
                }
            }
            Wish::Keep { key, ttl } => {
                let tokens: Vec<Vec<u8>> = self
                    .of_key(key)
                    .filter(|(_, track)| track.client == link.client && track.has(link.node))
                    .map(|((_, token), _)| token.clone())
                    .collect();
                for token in tokens {
                    self.holds(now, link, (key, &token), sent, |_| sent + less_drift(ttl));
                }
            }
            _ => {}
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
            let_go: None,
        });
        // It was asked for before the client gave it up.
        if track
            .let_go
            .as_ref()
            .is_some_and(|let_go| let_go.sent >= sent)
        {
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
                    // Of very many the last one tells how long it is held.
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

    /// Does something with each token that a request is about.
    fn each(
        &mut self,
        key: &[u8],
        token: Option<&[u8]>,
        link: LinkId,
        mut act: impl FnMut(&mut Track, &mut [Held]),
    ) {
        match token {
            Some(token) => {
                if let Some(track) = self.tracks.get_mut(&(key.to_vec(), token.to_vec())) {
                    act(track, &mut self.held);
                }
            }
            None => {
                let range = (key.to_vec(), Vec::new())..;
                for ((of, _), track) in self.tracks.range_mut(range) {
                    if of != key {
                        break;
                    }
                    if track.client == link.client {
                        act(track, &mut self.held);
                    }
                }
            }
        }
    }

    fn of_key<'w>(
        &'w self,
        key: &'w [u8],
    ) -> impl Iterator<Item = (&'w (Vec<u8>, Vec<u8>), &'w Track)> {
        let range = (key.to_vec(), Vec::new())..;
        self.tracks
            .range(range)
            .take_while(move |((of, _), _)| of == key)
    }
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

    /// Until when a majority of the nodes has told that it has the key.
    fn majority_until(&self) -> SimTime {
        let mut ends: Vec<SimTime> = self.ends.iter().copied().flatten().collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        let quorum = self.ends.len() / 2;
        ends.get(quorum).copied().unwrap_or(SimTime::ZERO)
    }

    /// What was taken for a release was none.
    fn goes_on(&mut self, link: LinkId, sent: SimTime, held: &mut [Held]) {
        let is_it = |let_go: &mut LetGo| let_go.sent == sent && let_go.node == link.node;
        let Some(let_go) = self.let_go.take_if(is_it) else {
            return;
        };
        if let Some(held) = let_go.place.and_then(|place| held.get_mut(place)) {
            held.released = None;
        }
        (self.ends, self.place) = (let_go.ends, let_go.place);
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
