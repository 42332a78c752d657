//! A history as lines of JSON, for programs in any language: other checkers, statistics, pictures of one's own.

use std::fmt::Display;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::History;
use crate::span::SimTime;

impl History {
    /// The history as lines of JSON, an object each, without the ends of lines.
    ///
    /// The first line has `locknode_history`, the version of the format, which is 1; `nodes` and `clients`, how many there
    /// were; `keys`, their names; `end`; and `left_out_events` and `left_out_messages`, how many are missing because there
    /// were too many: a checker that finds nothing has seen all only where these are 0. Then come the events in order: `at`,
    /// `event` with the event's name in `snake_case`, and the fields that [`Event`](super::Event) has. At the end come the messages, if
    /// they were recorded, with `event` `"message"` and the fields of [`Message`](super::Message).
    ///
    /// Times are whole nanoseconds of true time since the start of the world; what never comes is `null`. A key is its place
    /// in `keys`. Counters and fencing tokens are below 2^63: read them as integers, not as floating point numbers. Who
    /// stands still or has a clock is `"node 2"` or `"client 0"`. New events and new fields may come; a reader skips what it
    /// does not know.
    ///
    /// The belief that a client holds a lock begins with `acquired` and ends with the earliest of `valid_until`, where a
    /// later `validity` of the same lock replaces it, of its `releases` and `lost`, and of the client's `client_down`:
    /// [`windows`](Self::windows) reckons so. For a checker that wants calls and returns, an acquisition is called with
    /// `calls` and returns with `acquired` or `failed`, and its release takes no time at the end of the belief.
    ///
    /// ```
    /// use locknode_testkit::History;
    ///
    /// let history = History { nodes: 5, clients: 2, ..History::default() };
    /// let lines: Vec<String> = history.json_lines().collect();
    /// assert_eq!(
    ///     lines,
    ///     [concat!(
    ///         r#"{"locknode_history":1,"nodes":5,"clients":2,"end":0,"keys":[],"#,
    ///         r#""left_out_events":0,"left_out_messages":0}"#
    ///     )]
    /// );
    /// ```
    pub fn json_lines(&self) -> impl Iterator<Item = String> + '_ {
        let head = Head {
            locknode_history: VERSION,
            nodes: self.nodes,
            clients: self.clients,
            end: self.end,
            keys: self.keys.iter().map(|key| &**key).collect(),
            left_out_events: self.left_out.events,
            left_out_messages: self.left_out.messages,
        };
        let entries = self.entries.iter().map(line);
        let messages = self.messages.iter().map(line);
        std::iter::once(line(&head)).chain(entries).chain(messages)
    }
}

#[derive(Serialize)]
struct Head<'h> {
    locknode_history: u8,
    nodes: u8,
    clients: u8,
    end: SimTime,
    keys: Vec<&'h str>,
    left_out_events: u64,
    left_out_messages: u64,
}

fn line(object: &impl Serialize) -> String {
    let line = serde_json::to_string(object);
    // Numbers, texts, and maps with texts as keys always have a form.
    debug_assert!(line.is_ok(), "{line:?}");
    line.unwrap_or_default()
}

impl Serialize for SimTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::NEVER => serializer.serialize_none(),
            time => serializer.serialize_u64(time.as_nanos()),
        }
    }
}

pub(super) fn fault<S: Serializer>(what: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_struct("Fault", 1)?;
    object.serialize_field("fault", what)?;
    object.end()
}

/// As people read it.
pub(super) fn text<S: Serializer>(it: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(it)
}

/// Of the format.
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Crash, Who};
    use crate::history::{Entry, Event, LeftOut, Message};

    #[test]
    fn a_line_has_what_the_event_has() {
        let at = SimTime::from_nanos;
        let events = [
            Event::Fault("cut client 0 node \"1\"".into()),
            Event::Down {
                node: 3,
                how: Crash::PowerLoss,
            },
            Event::Stopped {
                who: Who::Client(1),
                how: "pause",
                until: SimTime::NEVER,
            },
            Event::Clock {
                who: Who::Node(4),
                shows: at(9),
                per_million: 1_000_100,
            },
            Event::Acquired {
                client: 0,
                lock: 7,
                key: 0,
                attempt: 8,
                fencing: Some(u64::MAX / 2),
                valid_until: at(2_000),
            },
            Event::Wrote {
                client: 0,
                lock: 7,
                key: 0,
                fencing: None,
                is_accepted: true,
            },
        ];
        let entry = |event| Entry { at: at(5), event };
        let history = History {
            nodes: 5,
            clients: 2,
            end: at(3_000),
            keys: vec!["a \"key\"\n".into()],
            entries: events.map(entry).to_vec(),
            messages: vec![Message {
                client: 1,
                node: 2,
                is_request: true,
                sent: at(1),
                arrived: None,
                text: "SET k t".into(),
            }],
            left_out: LeftOut {
                events: 3,
                since: Some(at(6)),
                messages: 4,
            },
        };
        let lines: Vec<String> = history.json_lines().collect();
        assert_eq!(
            lines,
            [
                r#"{"locknode_history":1,"nodes":5,"clients":2,"end":3000,"keys":["a \"key\"\n"],"left_out_events":3,"left_out_messages":4}"#,
                r#"{"at":5,"event":"fault","fault":"cut client 0 node \"1\""}"#,
                r#"{"at":5,"event":"down","node":3,"how":"power-loss"}"#,
                r#"{"at":5,"event":"stopped","who":"client 1","how":"pause","until":null}"#,
                r#"{"at":5,"event":"clock","who":"node 4","shows":9,"per_million":1000100}"#,
                r#"{"at":5,"event":"acquired","client":0,"lock":7,"key":0,"attempt":8,"fencing":9223372036854775807,"valid_until":2000}"#,
                r#"{"at":5,"event":"wrote","client":0,"lock":7,"key":0,"fencing":null,"is_accepted":true}"#,
                r#"{"event":"message","client":1,"node":2,"is_request":true,"sent":1,"arrived":null,"text":"SET k t"}"#,
            ]
        );
    }
}
