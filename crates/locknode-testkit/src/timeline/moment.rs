//! What took no time: what clients were told and wrote, and what nodes refused, as signs in the lanes.

use std::collections::BTreeMap;

use crate::history::index::Index;
use crate::history::{Entry, Event, History, LockNo};
use crate::span::SimTime;
use crate::timeline::markup::key_name;

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

/// All moments of a history, in order.
pub(crate) fn moments(history: &History, index: &Index) -> Vec<Moment> {
    let mut reader = Reader {
        history,
        index,
        moments: Vec::new(),
        checked: BTreeMap::new(),
    };
    for entry in &history.entries {
        reader.take_moment(entry);
        reader.take_other(entry);
    }
    reader.moments
}

struct Reader<'h> {
    history: &'h History,
    index: &'h Index,
    moments: Vec<Moment>,
    /// By lock, when it was last looked at.
    checked: BTreeMap<LockNo, SimTime>,
}

impl Reader<'_> {
    /// What is a sign in the lane of a client.
    fn take_moment(&mut self, entry: &Entry) {
        let at = entry.at;
        let (client, lock, sign, text) = match &entry.event {
            Event::Failed { client, lock, why } => {
                let key = self
                    .index
                    .call(*lock)
                    .map(|call| key_name(self.history, call.key));
                let key = key.unwrap_or_default();
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
    fn take_other(&mut self, entry: &Entry) {
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
                let key = key_name(self.history, *key);
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
}
