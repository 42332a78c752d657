//! The output and exit code of `locknode status NAME`: what each node holds of a lock, and the verdict.
//! Pure: from replies to text.

use std::fmt::Write as _;
use std::time::Duration;

use redlock_client::{HeldKey, NodeView};

use super::report::table;
use crate::failure::Exit;
use crate::json::Object;
use crate::server_connection::printable;

/// The replies of all nodes about one lock.
#[derive(Debug)]
pub(super) struct KeyReport {
    name: String,
    nodes: Vec<NodeView>,
}

/// The verdict of the replies together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// A majority holds this token, for `remaining`; `None` for ever.
    Held {
        token: String,
        remaining: Option<Duration>,
    },
    /// No token can have a majority, whatever the silent nodes hold.
    Free,
    /// It depends on the nodes that did not reply.
    Unknown,
}

impl KeyReport {
    pub(super) const fn new(name: String, nodes: Vec<NodeView>) -> Self {
        Self { name, nodes }
    }

    /// 0 if it is certain who holds the lock, or that nobody does; otherwise 69.
    pub(super) fn exit(&self) -> Exit {
        match self.verdict() {
            Verdict::Held { .. } | Verdict::Free => Exit::Success,
            Verdict::Unknown => Exit::Unavailable,
        }
    }

    /// A table for people, with a summary of the majority.
    pub(super) fn table(&self) -> String {
        let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
        rows.extend(self.nodes.iter().map(|node| cells(node).to_vec()));
        if self.held().all(|held| held.label.is_none()) {
            rows.iter_mut()
                .for_each(|row| row.truncate(HEADER.len() - 1));
        }
        let mut text = table(&rows, 1..2);
        let (name, majority) = (&self.name, self.majority());
        let _ = match self.verdict() {
            Verdict::Held { token, remaining } => {
                let votes = self.votes(token.as_bytes());
                let left = left(remaining);
                let holder = self
                    .holder(token.as_bytes())
                    .map_or_else(String::new, |holder| format!(" ({holder})"));
                writeln!(
                    text,
                    "\n{name} is held by {token}{holder} on {votes} of {} nodes, a majority is {majority}: {left} left",
                    self.nodes.len()
                )
            }
            Verdict::Free => writeln!(
                text,
                "\n{name} is free: no token is on a majority of {majority} nodes"
            ),
            Verdict::Unknown => writeln!(
                text,
                "\nunknown whether {name} is held: too many nodes do not reply, a majority is {majority}"
            ),
        };
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let object = Object::default()
            .text("name", &self.name)
            .list("nodes", self.nodes.iter().map(object))
            .number("majority", self.majority());
        let object = match self.verdict() {
            Verdict::Held { token, remaining } => {
                let object = object.text("state", "held").text("token", &token);
                with_remaining(object, remaining)
            }
            Verdict::Free => object.text("state", "free"),
            Verdict::Unknown => object.text("state", "unknown"),
        };
        object.finish() + "\n"
    }

    fn verdict(&self) -> Verdict {
        let silent = self.nodes.iter().filter(|node| node.answer.is_err());
        let silent = silent.count();
        let Some(token) = self.leading() else {
            return if silent < self.majority() {
                Verdict::Free
            } else {
                Verdict::Unknown
            };
        };
        let votes = self.votes(token);
        if votes >= self.majority() {
            return Verdict::Held {
                token: printable(token),
                remaining: self.remaining(token),
            };
        }
        if votes + silent < self.majority() {
            Verdict::Free
        } else {
            Verdict::Unknown
        }
    }

    /// The token that most nodes hold.
    fn leading(&self) -> Option<&[u8]> {
        let tokens = self.held().map(|held| held.token.as_ref());
        tokens.max_by_key(|token| self.votes(token))
    }

    fn votes(&self, token: &[u8]) -> usize {
        self.held()
            .filter(|held| held.token.as_ref() == token)
            .count()
    }

    /// What is known of the holder of a token: the node that has known it longest.
    fn holder(&self, token: &[u8]) -> Option<String> {
        let held = self.held().filter(|held| held.token.as_ref() == token);
        let longest = held.max_by_key(|held| (held.label.is_some(), held.held_for));
        longest.and_then(holder)
    }

    /// How long a majority keeps that token without further requests.
    fn remaining(&self, token: &[u8]) -> Option<Duration> {
        let held = self.held().filter(|held| held.token.as_ref() == token);
        let mut left: Vec<Duration> = held
            .map(|held| held.remaining.unwrap_or(Duration::MAX))
            .collect();
        // The majority ends when fewer nodes than needed hold the token.
        left.sort_unstable_by(|a, b| b.cmp(a));
        let last = left.get(self.majority() - 1).copied();
        last.filter(|last| *last != Duration::MAX)
    }

    fn held(&self) -> impl Iterator<Item = &HeldKey> {
        let answers = self.nodes.iter().map(|node| node.answer.as_ref());
        answers.filter_map(|answer| answer.ok().and_then(Option::as_ref))
    }

    fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }
}

/// What the holder said of itself, and since when it has held the key.
pub(crate) fn holder(held: &HeldKey) -> Option<String> {
    let label = printable(held.label.as_ref()?.as_bytes());
    Some(match held.held_for {
        Some(time) => format!("{label}, for {:.3} s", time.as_secs_f64()),
        None => format!("{label}, since before the restart"),
    })
}

fn cells(node: &NodeView) -> [String; 4] {
    let address = node.address.clone();
    match &node.answer {
        Ok(Some(held)) => [
            address,
            left(held.remaining),
            printable(held.token.as_ref()),
            holder(held).unwrap_or_default(),
        ],
        Ok(None) => [address, "-".to_owned(), "free".to_owned(), String::new()],
        Err(cause) => [address, "?".to_owned(), cause.to_string(), String::new()],
    }
}

fn object(node: &NodeView) -> Object {
    let object = Object::default().text("address", &node.address);
    match &node.answer {
        Ok(Some(held)) => {
            let object = object.text("state", "held");
            let object = with_remaining(
                object.text("token", &printable(held.token.as_ref())),
                held.remaining,
            );
            let object = match &held.label {
                None => object,
                Some(label) => object.text("label", &printable(label.as_bytes())),
            };
            match held.held_for {
                None => object,
                Some(time) => object.number("held_ms", time.as_millis()),
            }
        }
        Ok(None) => object.text("state", "free"),
        Err(cause) => object
            .text("state", "unknown")
            .text("reason", &cause.to_string()),
    }
}

/// A key without a TTL has no number there.
fn with_remaining(object: Object, remaining: Option<Duration>) -> Object {
    match remaining {
        None => object,
        Some(remaining) => object.number("remaining_ms", remaining.as_millis()),
    }
}

fn left(remaining: Option<Duration>) -> String {
    match remaining {
        None => "for ever".to_owned(),
        Some(remaining) => format!("{:.3} s", remaining.as_secs_f64()),
    }
}

const HEADER: [&str; 4] = ["address", "left", "token", "holder"];

#[cfg(test)]
mod tests {
    use redlock_client::{Cause, Token};

    use super::*;

    fn report(answers: &[Result<Option<(&str, u64)>, Cause>]) -> KeyReport {
        let nodes = answers.iter().enumerate().map(|(index, answer)| {
            let held = |(token, ms)| {
                let remaining = (ms > 0).then(|| Duration::from_millis(ms));
                HeldKey::new(Token::new(token).unwrap(), remaining)
            };
            let answer = answer.clone().map(|key: Option<(&str, u64)>| key.map(held));
            NodeView::new(format!("127.0.0.1:710{index}"), answer)
        });
        KeyReport::new("invoice:7".to_owned(), nodes.collect())
    }

    #[test]
    fn the_verdict_counts_nodes_that_do_not_answer_as_possible_holders() {
        let held = |ms| Verdict::Held {
            token: "a".to_owned(),
            remaining: Some(Duration::from_millis(ms)),
        };
        let (a, b) = (|ms| Ok(Some(("a", ms))), || Ok(Some(("b", 1))));
        let (free, away) = (|| Ok(None), || Err(Cause::TimedOut));
        for (answers, expected) in [
            (vec![a(9), a(8), a(7), a(6), a(5)], held(7)),
            (vec![a(5), b(), a(7), free(), a(6)], held(5)),
            (vec![a(5), a(7), a(6), away(), away()], held(5)),
            (vec![a(1)], held(1)),
            (vec![free(), free(), free()], Verdict::Free),
            (vec![free(), free(), away()], Verdict::Free),
            (vec![a(1), b(), free(), free(), free()], Verdict::Free),
            (vec![a(1), a(1), b(), b(), free()], Verdict::Free),
            (vec![a(1), a(1), free(), free(), away()], Verdict::Unknown),
            (vec![free(), away(), away()], Verdict::Unknown),
            (vec![away()], Verdict::Unknown),
        ] {
            assert_eq!(report(&answers).verdict(), expected, "{answers:?}");
        }
    }

    #[test]
    fn a_majority_without_a_ttl_is_held_for_ever() {
        let a = |ms| Ok(Some(("a", ms)));
        let Verdict::Held { remaining, .. } = report(&[a(0), a(7), a(0)]).verdict() else {
            panic!("it is held");
        };
        assert_eq!(remaining, None);
    }

    #[test]
    fn the_table_shows_every_answer() {
        let report = report(&[
            Ok(Some(("token", 29_100))),
            Ok(Some(("token", 9_000))),
            Ok(None),
        ]);
        assert_eq!(
            report.table(),
            "address             left  token\n\
             127.0.0.1:7100  29.100 s  token\n\
             127.0.0.1:7101   9.000 s  token\n\
             127.0.0.1:7102         -  free\n\
             \n\
             invoice:7 is held by token on 2 of 3 nodes, a majority is 2: 9.000 s left\n"
        );
        assert_eq!(report.exit(), Exit::Success);
    }

    #[test]
    fn a_holder_that_said_who_it_is_is_shown_and_can_harm_no_terminal() {
        let mut report = report(&[Ok(Some(("token", 9_000))), Ok(None)]);
        let Ok(Some(held)) = &mut report.nodes[0].answer else {
            panic!("it is held");
        };
        held.label = Some("host:7:job\u{1b}[31m\nfree".to_owned());
        held.held_for = Some(Duration::from_millis(1_500));
        let table = report.table();
        assert!(
            table.contains("token  host:7:job?[31m?free, for 1.500 s\n"),
            "{table}"
        );
        let json = report.json();
        let shown = "\"label\":\"host:7:job?[31m?free\",\"held_ms\":1500";
        assert!(json.contains(shown), "{json}");
    }

    #[test]
    fn json_has_everything() {
        let report = report(&[Ok(Some(("a", 100))), Ok(None), Err(Cause::TimedOut)]);
        let json = report.json();
        for part in [
            "{\"name\":\"invoice:7\",\"nodes\":[",
            "{\"address\":\"127.0.0.1:7100\",\"state\":\"held\",\"token\":\"a\",\"remaining_ms\":100}",
            "{\"address\":\"127.0.0.1:7101\",\"state\":\"free\"}",
            "{\"address\":\"127.0.0.1:7102\",\"state\":\"unknown\",\"reason\":",
            "\"majority\":2,\"state\":\"unknown\"}\n",
        ] {
            assert!(json.contains(part), "{part} in {json}");
        }
        assert_eq!(report.exit(), Exit::Unavailable);
    }
}
