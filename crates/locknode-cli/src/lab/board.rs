//! How nodes and clients are right now, from the history so far, as lines for a terminal. Pure.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use locknode_testkit::history::{Entry, Event};
use locknode_testkit::{Fault, Links, Members, SimTime, Who};

use super::line::{BOLD, Canvas, GREEN, Line, RED, RED_BOLD, YELLOW};
use super::tally::Tally;

/// What is shown.
#[derive(Debug)]
pub(super) struct Board {
    nodes: Vec<NodeLine>,
    clients: Vec<ClientLine>,
    /// The latest faults, the last one last.
    news: VecDeque<String>,
    pub(super) tally: Tally,
}

#[derive(Clone, Debug, Default)]
struct NodeLine {
    is_up: bool,
    is_serving: bool,
    still_until: SimTime,
    /// To whom it granted the lock last, and until when.
    holder: Option<(u8, SimTime)>,
    cut_from: Members,
    late_by: Duration,
}

#[derive(Clone, Debug, Default)]
struct ClientLine {
    state: ClientState,
    still_until: SimTime,
    acquired: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ClientState {
    #[default]
    Idle,
    Waits,
    Holds {
        until: SimTime,
        fencing: Option<u64>,
    },
    Dead,
}

impl Board {
    pub(super) fn new(nodes: u8, clients: u8) -> Self {
        Self {
            nodes: vec![NodeLine::default(); usize::from(nodes)],
            clients: vec![ClientLine::default(); usize::from(clients)],
            news: VecDeque::new(),
            tally: Tally::new(clients),
        }
    }

    /// Notes what has happened next; a line about it, if it is news.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<String> {
        self.tally.take(entry);
        let at = entry.at;
        match &entry.event {
            Event::Fault(text) => {
                let fault = Fault::parse(text).ok()?;
                self.links(&fault);
                let (nodes, clients) = (len(&self.nodes), len(&self.clients));
                let line = format!("{}  {}", clock(at), fault.sentence(nodes, clients));
                if self.news.len() >= NEWS_MAX {
                    self.news.pop_front();
                }
                self.news.push_back(line.clone());
                return Some(line);
            }
            Event::Started { node, .. } => self.node(*node, |it| it.is_up = true),
            Event::Serving { node } => self.node(*node, |it| it.is_serving = true),
            Event::Down { node, .. } => self.node(*node, |it| {
                (it.is_up, it.is_serving, it.holder) = (false, false, None);
            }),
            Event::Stopped { who, until, .. } => match who {
                Who::Node(node) => self.node(*node, |it| it.still_until = *until),
                Who::Client(client) => self.client(*client, |it| it.still_until = *until),
            },
            Event::Granted {
                node, client, ends, ..
            } => {
                self.node(*node, |it| it.holder = Some((*client, *ends)));
            }
            Event::Extended { node, ends, .. } => self.node(*node, |it| {
                if let Some((_, until)) = &mut it.holder {
                    *until = *ends;
                }
            }),
            Event::Freed { node, .. } => self.node(*node, |it| it.holder = None),
            Event::Calls { client, .. } => self.becomes(*client, ClientState::Waits),
            Event::Acquired {
                client,
                fencing,
                valid_until,
                ..
            } => {
                self.client(*client, |it| it.acquired += 1);
                let (until, fencing) = (*valid_until, *fencing);
                self.becomes(*client, ClientState::Holds { until, fencing });
            }
            Event::Validity {
                client,
                valid_until,
                ..
            } => self.client(*client, |it| {
                if let ClientState::Holds { until, .. } = &mut it.state {
                    *until = *valid_until;
                }
            }),
            Event::Failed { client, .. }
            | Event::Lost { client, .. }
            | Event::Releases { client, .. }
            | Event::ClientStarted { client } => self.becomes(*client, ClientState::Idle),
            Event::ClientDown { client } => self.becomes(*client, ClientState::Dead),
            _ => {}
        }
        None
    }

    /// The lines, none wider than there is room, and no more than there is room for. `left` is what is left of each node's
    /// quarantine.
    pub(super) fn lines(
        &self,
        title: &str,
        now: SimTime,
        left: &[Option<Duration>],
        canvas: Canvas,
    ) -> Vec<String> {
        let mut lines = vec![
            Line::bold(title.to_owned()),
            self.holder_line(now),
            Line::default(),
        ];
        lines.push(Line::bold(
            "node  state              granted the lock to    its links".to_owned(),
        ));
        for (number, node) in self.nodes.iter().enumerate() {
            lines.push(self.node_line(number, node, now, left.get(number).copied().flatten()));
        }
        lines.push(Line::default());
        lines.extend(self.client_lines(now));
        lines.push(Line::default());
        let below = self.tally.lines();
        let used = lines.len() + below.len() + 1;
        let room = canvas.height.saturating_sub(used + 1).min(NEWS_MAX);
        let hidden = self.news.len().saturating_sub(room);
        lines.extend(
            self.news
                .iter()
                .skip(hidden)
                .map(|line| Line::plain(line.clone())),
        );
        lines.push(Line::default());
        lines.extend(
            below
                .into_iter()
                .map(|(line, is_bad)| Line::colored(line, if is_bad { RED_BOLD } else { BOLD })),
        );
        lines.truncate(canvas.height.saturating_sub(1).max(1));
        lines.iter().map(|line| line.fit(canvas)).collect()
    }

    fn node_line(
        &self,
        number: usize,
        node: &NodeLine,
        now: SimTime,
        left: Option<Duration>,
    ) -> Line {
        let (state, color) = match node {
            it if !it.is_up => ("down".to_owned(), Some(RED)),
            it if it.still_until > now => (
                format!("stands still {}", seconds(it.still_until.since(now))),
                Some(RED),
            ),
            it if !it.is_serving || left.is_some() => (
                format!("quarantine {}", seconds(left.unwrap_or_default())),
                Some(YELLOW),
            ),
            _ => ("serving".to_owned(), None),
        };
        let holder = match node.holder.filter(|(_, until)| *until > now) {
            Some((client, until)) => {
                format!("client {client}, {} left", seconds(until.since(now)))
            }
            None => "-".to_owned(),
        };
        let mut links = String::new();
        let all = (0..len(&self.clients)).all(|client| node.cut_from.has(client));
        let cut: Vec<String> = node
            .cut_from
            .iter()
            .map(|client| client.to_string())
            .collect();
        let _ = match (all, cut.is_empty()) {
            (true, _) => write!(links, "cut off"),
            (_, false) => write!(links, "cut from {}", cut.join(",")),
            _ => Ok(()),
        };
        if node.late_by > Duration::ZERO {
            let comma = if links.is_empty() { "" } else { ", " };
            let _ = write!(links, "{comma}{} ms late", node.late_by.as_millis());
        }
        let text = format!("{number:<4}  {state:<17}  {holder:<21}  {links}");
        Line {
            spans: vec![(text, color)],
        }
    }

    /// Two clients to a line: a small terminal has room for sixteen.
    fn client_lines(&self, now: SimTime) -> Vec<Line> {
        let head = "client  state                acquired";
        let mut lines = vec![Line::bold(match self.clients.len() {
            0 | 1 => head.to_owned(),
            _ => format!("{head:<CELL$}{head}"),
        })];
        let half = self.clients.len().div_ceil(2);
        for row in 0..half {
            let mut line = Line::default();
            for number in [row, row + half] {
                if let Some(client) = self.clients.get(number) {
                    let (state, holds) = client_state(client, now);
                    let cell = format!("{number:<6}  {state:<18}  {:>9}", client.acquired);
                    let color = if holds { Some(GREEN) } else { None };
                    line.spans.push((format!("{cell:<CELL$}"), color));
                }
            }
            lines.push(line);
        }
        lines
    }

    /// Who has the lock now.
    fn holder_line(&self, now: SimTime) -> Line {
        let holds = |(number, client): (usize, &ClientLine)| match client.state {
            ClientState::Holds { until, fencing } if until > now => Some((number, fencing)),
            _ => None,
        };
        let holders: Vec<_> = self.clients.iter().enumerate().filter_map(holds).collect();
        match holders.as_slice() {
            [] => Line::plain("Nobody holds the lock.".to_owned()),
            [(client, fencing)] => {
                let token =
                    fencing.map_or(String::new(), |token| format!(", fencing token {token}"));
                let text = format!("Client {client} holds the lock{token}.");
                Line::colored(text, GREEN)
            }
            several => {
                let numbers: Vec<String> = several
                    .iter()
                    .map(|(client, _)| client.to_string())
                    .collect();
                let text = format!("CLIENTS {} HOLD THE LOCK.", numbers.join(" AND "));
                Line::colored(text, RED_BOLD)
            }
        }
    }

    /// Notes what is wrong with links.
    fn links(&mut self, fault: &Fault) {
        let mut each = |links: &Links, change: &dyn Fn(&mut NodeLine)| {
            for (number, node) in (0u8..).zip(&mut self.nodes) {
                if links.nodes.has(number) {
                    change(node);
                }
            }
        };
        match fault {
            Fault::Cut(links, _) => each(links, &|node| {
                node.cut_from = node.cut_from.iter().chain(links.clients.iter()).collect();
            }),
            Fault::Heal(links) => each(links, &|node| {
                let kept = node
                    .cut_from
                    .iter()
                    .filter(|client| !links.clients.has(*client));
                node.cut_from = kept.collect();
            }),
            Fault::Delay(links, span) => each(links, &|node| node.late_by = *span),
            Fault::Calm => each(&Links::ALL, &|node| {
                (node.cut_from, node.late_by) = (Members::NONE, Duration::ZERO);
            }),
            _ => {}
        }
    }

    fn becomes(&mut self, client: u8, state: ClientState) {
        self.client(client, |it| it.state = state);
    }

    fn node(&mut self, node: u8, change: impl FnOnce(&mut NodeLine)) {
        if let Some(node) = self.nodes.get_mut(usize::from(node)) {
            change(node);
        }
    }

    fn client(&mut self, client: u8, change: impl FnOnce(&mut ClientLine)) {
        if let Some(client) = self.clients.get_mut(usize::from(client)) {
            change(client);
        }
    }
}

fn client_state(client: &ClientLine, now: SimTime) -> (String, bool) {
    let still = client.still_until > now;
    match client.state {
        ClientState::Dead => ("dead".to_owned(), false),
        ClientState::Holds { until, .. } if until > now => {
            let left = seconds(until.since(now));
            let what = if still { "HOLDS, asleep" } else { "HOLDS" };
            (format!("{what} {left}"), true)
        }
        _ if still => (
            format!("asleep {}", seconds(client.still_until.since(now))),
            false,
        ),
        ClientState::Holds { .. } => ("too late".to_owned(), false),
        ClientState::Waits => ("waits".to_owned(), false),
        ClientState::Idle => ("-".to_owned(), false),
    }
}

/// `0.43s`
fn seconds(span: Duration) -> String {
    format!("{:.2}s", span.as_secs_f64())
}

/// ` 12.304s`
pub(super) fn clock(at: SimTime) -> String {
    format!("{:>8.3}s", at.since(SimTime::ZERO).as_secs_f64())
}

fn len<T>(items: &[T]) -> u8 {
    u8::try_from(items.len()).unwrap_or(u8::MAX)
}

/// As many as a large terminal has room for.
const NEWS_MAX: usize = 12;

/// The width of a client's column.
const CELL: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ms: u64, event: Event) -> Entry {
        Entry {
            at: Duration::from_millis(at_ms).into(),
            event,
        }
    }

    fn at(ms: u64) -> SimTime {
        Duration::from_millis(ms).into()
    }

    fn story() -> Board {
        let mut board = Board::new(3, 3);
        for node in 0..3 {
            board.take(&entry(
                0,
                Event::Started {
                    node,
                    is_quarantined: false,
                    reason: "",
                },
            ));
            board.take(&entry(0, Event::Serving { node }));
        }
        let (lock, key, attempt, fencing) = (0, 0, 0, Some(7));
        for node in 0..2 {
            board.take(&entry(
                1,
                Event::Granted {
                    node,
                    key,
                    attempt,
                    client: 1,
                    counter: 7,
                    ends: at(1001),
                },
            ));
        }
        board.take(&entry(
            1,
            Event::Calls {
                client: 1,
                lock,
                key,
            },
        ));
        board.take(&entry(
            2,
            Event::Acquired {
                client: 1,
                lock,
                key,
                attempt,
                fencing,
                valid_until: at(990),
            },
        ));
        board.take(&entry(
            3,
            Event::Calls {
                client: 0,
                lock: 1,
                key,
            },
        ));
        board.take(&entry(4, Event::Fault("cut client 0,2 node 1 both".into())));
        board.take(&entry(5, Event::Fault("crash node 2 kill".into())));
        board.take(&entry(
            5,
            Event::Down {
                node: 2,
                how: locknode_testkit::Crash::Kill,
            },
        ));
        board
    }

    #[test]
    fn one_sees_who_holds_what_is_down_and_what_went_wrong() {
        let canvas = Canvas {
            width: 100,
            height: 30,
            is_colored: false,
        };
        let lines = story().lines("title", at(490), &[None; 3], canvas);
        let text = lines.join("\n");
        for line in [
            "0     serving            client 1, 0.51s left",
            "1     serving            client 1, 0.51s left   cut from 0,2",
            "2     down               -",
            "0       waits                       0   2       -                           0",
            "1       HOLDS 0.50s                 1",
            "   0.005s  node 2 is killed",
        ] {
            assert!(lines.iter().any(|it| it == line), "{line:?} in:\n{text}");
        }
    }

    #[test]
    fn a_small_terminal_gets_what_fits() {
        for (width, height) in [(0, 1), (1, 1), (20, 5), (80, 12), (80, 24)] {
            let canvas = Canvas {
                width,
                height,
                is_colored: false,
            };
            let lines = story().lines("title", at(490), &[None; 3], canvas);
            assert!(
                lines.len() < height.max(2),
                "{width} {height}: {}",
                lines.len()
            );
            assert!(lines.iter().all(|line| line.chars().count() <= width));
        }
    }
}
