//! What clients asked for, believed and wrote, as stretches and moments: the bars and signs of the client lanes.

use std::collections::BTreeMap;

use crate::history::{Entry, Event, History, KeyNo, LockNo, Window};
use crate::span::SimTime;
use crate::timeline::markup::key_name;

/// One lock act of a client, from its call to the end of its belief.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) client: u8,
    pub(crate) lock: LockNo,
    pub(crate) key: KeyNo,
    pub(crate) called: SimTime,
    /// When it was held, had failed, or its client or the world ended.
    pub(crate) decided: SimTime,
    /// Why it was not had.
    pub(crate) failure: Option<&'static str>,
    /// When the client believed that it held the lock.
    pub(crate) window: Option<Window>,
    /// What ended the belief, for people.
    pub(crate) ending: String,
    /// The end of the belief as last told to the client.
    valid_until: SimTime,
}

/// Something that took no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) client: u8,
    /// The node in whose lane it stands, when it is not that of the client.
    pub(crate) node: Option<u8>,
    pub(crate) lock: Option<LockNo>,
    pub(crate) at: SimTime,
    pub(crate) sign: Sign,
    pub(crate) text: String,
    /// When what came to be here began.
    pub(crate) since: Option<SimTime>,
}

/// How a moment is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Extended,
    NotExtended,
    Written,
    WriteRejected,
    Lost,
    Failed,
    Refused,
}

/// A time in which a client's process was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(crate) client: u8,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
}

/// All that clients did.
#[derive(Debug, Default)]
pub(crate) struct Beliefs {
    pub(crate) claims: Vec<Claim>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) absences: Vec<Absence>,
    places: BTreeMap<LockNo, usize>,
    /// By lock, when it was last looked at.
    checked: BTreeMap<LockNo, SimTime>,
    down: BTreeMap<u8, SimTime>,
}

impl Claim {
    /// The end of all of it.
    pub(crate) fn until(&self) -> SimTime {
        let believed = self.window.map_or(SimTime::ZERO, |window| window.until);
        believed.max(self.decided)
    }
}

impl Beliefs {
    pub(crate) fn of(history: &History, windows: &[Window]) -> Self {
        let mut beliefs = Self::default();
        for entry in &history.entries {
            beliefs.take_lock(entry);
            beliefs.take_moment(entry, history);
            beliefs.take_other(entry, history);
        }
        for (client, from) in std::mem::take(&mut beliefs.down) {
            let until = history.end;
            beliefs.absences.push(Absence {
                client,
                from,
                until,
            });
        }
        for claim in &mut beliefs.claims {
            claim.decided = claim.decided.min(history.end);
        }
        for window in windows {
            let place = beliefs.places.get(&window.lock);
            if let Some(claim) = place.and_then(|place| beliefs.claims.get_mut(*place)) {
                claim.window = Some(*window);
                if window.until > history.end {
                    claim.ending = "the run ended before that".to_owned();
                }
            }
        }
        beliefs
    }

    /// What begins and ends bars.
    fn take_lock(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.event {
            Event::Calls { client, lock, key } => self.calls(*client, *lock, *key, at),
            Event::Acquired {
                lock, valid_until, ..
            } => {
                if let Some(claim) = self.claim(*lock) {
                    claim.decided = at;
                    claim.valid_until = *valid_until;
                    claim.ending = "its clock then said that the validity was over".to_owned();
                }
            }
            Event::Failed { lock, why, .. } => {
                if let Some(claim) = self.claim(*lock) {
                    claim.decided = at;
                    claim.failure = Some(why);
                }
            }
            Event::Validity {
                lock, valid_until, ..
            } => {
                if let Some(claim) = self.claim(*lock) {
                    claim.valid_until = *valid_until;
                }
            }
            Event::Releases { lock, is_left, .. } => {
                let ending = match is_left {
                    true => "it then left the lock to its TTL",
                    false => "it then began to release",
                };
                self.ends(*lock, at, ending.to_owned());
            }
            Event::Lost { lock, why, .. } => {
                self.ends(
                    *lock,
                    at,
                    format!("it was then told that the lock is lost ({why})"),
                );
            }
            Event::ClientDown { client } => self.goes_down(*client, at),
            Event::ClientStarted { client } => self.is_back(*client, at),
            _ => {}
        }
    }

    fn calls(&mut self, client: u8, lock: LockNo, key: KeyNo, at: SimTime) {
        self.places.insert(lock, self.claims.len());
        self.claims.push(Claim {
            client,
            lock,
            key,
            called: at,
            decided: SimTime::NEVER,
            failure: None,
            window: None,
            ending: String::new(),
            valid_until: SimTime::NEVER,
        });
    }

    fn goes_down(&mut self, client: u8, at: SimTime) {
        self.down.insert(client, at);
        let mine = self.claims.iter_mut();
        for claim in mine.filter(|claim| claim.client == client) {
            if claim.decided == SimTime::NEVER {
                claim.decided = at;
                claim.failure = Some("its process ended");
            } else if claim.valid_until > at {
                claim.valid_until = at;
                claim.ending = "its process then ended".to_owned();
            }
        }
    }

    fn is_back(&mut self, client: u8, at: SimTime) {
        if let Some(from) = self.down.remove(&client) {
            self.absences.push(Absence {
                client,
                from,
                until: at,
            });
        }
    }

    /// What is a sign in the lane of a client.
    fn take_moment(&mut self, entry: &Entry, history: &History) {
        let at = entry.at;
        let (client, lock, sign, text) = match &entry.event {
            Event::Failed { client, lock, why } => {
                let key = self.claim(*lock).map(|claim| claim.key);
                let key = key.map_or_else(String::new, |key| key_name(history, key));
                let text = format!("at {at} client {client} gave up on {key}: {why}");
                (*client, *lock, Sign::Failed, text)
            }
            Event::Validity {
                client,
                lock,
                valid_until,
                is_extension: true,
            } => {
                let text =
                    format!("at {at} client {client} extended its lock; valid until {valid_until}");
                (*client, *lock, Sign::Extended, text)
            }
            Event::NotExtended { client, lock, why } => {
                let text = format!("at {at} client {client} could not extend its lock: {why}");
                (*client, *lock, Sign::NotExtended, text)
            }
            Event::Lost { client, lock, why } => {
                let text = format!("at {at} client {client} lost its lock: {why}");
                (*client, *lock, Sign::Lost, text)
            }
            _ => return,
        };
        self.moments.push(Moment {
            client,
            node: None,
            lock: Some(lock),
            at,
            sign,
            text,
            since: None,
        });
    }

    /// What came to the resource, and what a node refused.
    fn take_other(&mut self, entry: &Entry, history: &History) {
        let at = entry.at;
        match &entry.event {
            Event::Checked { lock, .. } => {
                self.checked.insert(*lock, at);
            }
            Event::Wrote {
                client,
                lock,
                key,
                fencing,
                is_accepted,
            } => {
                let key = key_name(history, *key);
                let token = fencing.map_or_else(
                    || "no fencing token".to_owned(),
                    |token| format!("fencing token {token}"),
                );
                let (sign, result) = match is_accepted {
                    true => (Sign::Written, "taken"),
                    false => (Sign::WriteRejected, "rejected"),
                };
                self.moments.push(Moment {
                    client: *client,
                    node: None,
                    lock: Some(*lock),
                    at,
                    sign,
                    text: format!(
                        "at {at} client {client} wrote under {key} with {token}: {result}"
                    ),
                    since: self.checked.get(lock).copied(),
                });
            }
            Event::Refused { node, client, why } => self.moments.push(Moment {
                client: *client,
                node: Some(*node),
                lock: None,
                at,
                sign: Sign::Refused,
                text: format!("at {at} node {node} refused client {client}: {why}"),
                since: None,
            }),
            _ => {}
        }
    }

    fn claim(&mut self, lock: LockNo) -> Option<&mut Claim> {
        let place = self.places.get(&lock)?;
        self.claims.get_mut(*place)
    }

    fn ends(&mut self, lock: LockNo, at: SimTime, ending: String) {
        if let Some(claim) = self.claim(lock)
            && at < claim.valid_until
        {
            claim.valid_until = at;
            claim.ending = ending;
        }
    }
}
