//! What took no time, as signs in the lanes: how calls and extensions ended, what clients wrote, what nodes refused.

use std::collections::BTreeMap;

use crate::fault::Who;
use crate::history::index::Index;
use crate::history::{Event, History, LockNo};
use crate::span::SimTime;
use crate::timeline::markup::key_name;

/// Something that took no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// In whose lane it stands.
    pub(crate) who: Who,
    pub(crate) lock: Option<LockNo>,
    pub(crate) at: SimTime,
    pub(crate) sign: Sign,
    pub(crate) text: String,
    /// When a write that arrived here began.
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
    // By lock, when it was last looked at.
    let mut checked: BTreeMap<LockNo, SimTime> = BTreeMap::new();
    let mut moments = Vec::new();
    for entry in &history.entries {
        let at = entry.at;
        let mut since = None;
        let (who, lock, sign, what) = match entry.event {
            Event::Failed { client, lock, why } => {
                let key = index.call(lock).map(|call| key_name(history, call.key));
                let what = format!("gave up on {}: {why}", key.unwrap_or_default());
                (Who::Client(client), Some(lock), Sign::Failed, what)
            }
            Event::Validity {
                client,
                lock,
                valid_until,
                is_extension: true,
            } => {
                let what = format!("extended its lock; valid until {valid_until}");
                (Who::Client(client), Some(lock), Sign::Extended, what)
            }
            Event::NotExtended { client, lock, why } => {
                let what = format!("could not extend its lock: {why}");
                (Who::Client(client), Some(lock), Sign::NotExtended, what)
            }
            Event::Lost { client, lock, why } => {
                let what = format!("lost its lock: {why}");
                (Who::Client(client), Some(lock), Sign::Lost, what)
            }
            Event::Checked { lock, .. } => {
                checked.insert(lock, at);
                continue;
            }
            Event::Wrote {
                client,
                lock,
                key,
                fencing,
                is_accepted,
            } => {
                since = checked.get(&lock).copied();
                let token = fencing_token(fencing);
                let (sign, result) = if is_accepted {
                    (Sign::Written, "taken")
                } else {
                    (Sign::WriteRejected, "rejected")
                };
                let key = key_name(history, key);
                let what = format!("wrote under {key} with {token}: {result}");
                (Who::Client(client), Some(lock), sign, what)
            }
            Event::Refused { node, client, why } => {
                let what = format!("refused client {client}: {why}");
                (Who::Node(node), None, Sign::Refused, what)
            }
            _ => continue,
        };
        moments.push(Moment {
            who,
            lock,
            at,
            sign,
            text: format!("at {at} {who} {what}"),
            since,
        });
    }
    moments
}

/// A fencing token, in words.
pub(crate) fn fencing_token(token: Option<u64>) -> String {
    token.map_or_else(
        || "no fencing token".to_owned(),
        |token| format!("fencing token {token}"),
    )
}
