//! A dashboard as lines. Pure: what it shows comes in, lines come out.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::net::SocketAddr;
use std::time::Duration;

use locknode_testkit::{Members, SimTime};

use super::line::{BOLD, GREEN, Line, RED, RED_BOLD, YELLOW};
use super::tally::{ClientSeen, ClientState, NodeSeen, Tally};
use crate::figures::grouped;

/// What is shown of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) addr: SocketAddr,
    pub(super) state: State,
    pub(super) keys: u64,
    pub(super) commands_per_second: u64,
    pub(super) connections: u64,
    /// To whom it granted a lock.
    pub(super) grant: String,
    /// What is wrong with its links.
    pub(super) links: String,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Serving,
    /// It refuses locks for this time.
    Quarantine(Duration),
    /// It is paused for this time.
    Paused(Duration),
    /// A fault ended it.
    Down,
    /// It was asked to end, and does not come back.
    Stopped,
}

impl Row {
    /// Adds what the history shows of the node.
    pub(super) fn add(&mut self, seen: &NodeSeen, clients: usize, now: SimTime) {
        if self.state != State::Down && seen.still_until > now {
            self.state = State::Paused(seen.still_until.since(now));
        }
        if let Some((client, until)) = seen.grant.filter(|(_, until)| *until > now) {
            self.grant = format!("client {client}, {} left", seconds(until.since(now)));
        }
        let cut_from = seen
            .cut_from
            .iter()
            .filter(|client| usize::from(*client) < clients);
        let cut_from: Members = cut_from.collect();
        let cut = match cut_from.iter().count() {
            0 => None,
            count if count == clients => Some("cut off".to_owned()),
            _ => Some(format!("cut from {cut_from}")),
        };
        let late = seen.late_by > Duration::ZERO;
        let late = late.then(|| format!("{} ms late", seen.late_by.as_millis()));
        self.links = cut.into_iter().chain(late).collect::<Vec<_>>().join(", ");
    }

    /// The node on one line, for logs.
    pub(super) fn log_line(&self, number: usize) -> String {
        format!(
            "node {number} at {} {}: {} keys, {} commands/s, {} connections",
            self.addr, self.state, self.keys, self.commands_per_second, self.connections
        )
    }

    fn color(&self) -> Option<&'static str> {
        match self.state {
            State::Serving => None,
            State::Quarantine(_) => Some(YELLOW),
            State::Paused(_) | State::Down | State::Stopped => Some(RED),
        }
    }
}

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Self::Serving => f.write_str("serving"),
            Self::Quarantine(left) => write!(f, "quarantine {}", seconds(*left)),
            Self::Paused(left) => write!(f, "paused {}", seconds(*left)),
            Self::Down => f.write_str("down"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The table of nodes, no wider than this but for addresses and what follows them; links where faults are possible, grants where
/// a scenario is played.
pub(super) fn table(rows: &[Row], has_links: bool, has_grants: bool, width: usize) -> Vec<Line> {
    // Where much happens, columns keep their places.
    let (state_len, grant_len) = if has_grants { (17, 20) } else { (0, 0) };
    let numbers = (0..rows.len()).map(|number| number.to_string());
    let text =
        |head, least, cell: fn(&Row) -> String| Column::of(head, least, rows.iter().map(cell));
    let mut columns = vec![
        Column::of("node", 0, numbers),
        text("address", 0, |row| row.addr.to_string()),
        text("state", state_len, |row| row.state.to_string()),
    ];
    if has_grants {
        columns.push(text("granted a lock to", grant_len, |row| {
            row.grant.clone()
        }));
    }
    if has_links {
        columns.push(text("links", 0, |row| row.links.clone()));
    }
    let number = |head, number: fn(&Row) -> u64| Column {
        is_number: true,
        ..Column::of(head, 0, rows.iter().map(|row| grouped(number(row).into())))
    };
    columns.push(number("keys", |row| row.keys));
    columns.push(number("commands/s", |row| row.commands_per_second));
    columns.push(number("connections", |row| row.connections));
    let mut room = width;
    columns.retain(|column| {
        // A text is worth being cut; a cut number would be a wrong one.
        let fits = !column.is_number || column.width <= room;
        room = if fits {
            room.saturating_sub(column.width + 2)
        } else {
            0
        };
        fits
    });
    let colors = std::iter::once(Some(BOLD)).chain(rows.iter().map(Row::color));
    let text = |place| columns.iter().map(|column| column.cell(place)).collect();
    let line = |(place, color)| Line::of(text(place), color);
    colors.enumerate().map(line).collect()
}

/// A column of a table.
struct Column {
    /// The head first.
    cells: Vec<String>,
    width: usize,
    is_number: bool,
}

impl Column {
    fn of(head: &str, least: usize, cells: impl Iterator<Item = String>) -> Self {
        let cells: Vec<String> = std::iter::once(head.to_owned()).chain(cells).collect();
        let width = cells.iter().map(String::len).max().unwrap_or(0).max(least);
        Self {
            cells,
            width,
            is_number: false,
        }
    }

    fn cell(&self, place: usize) -> String {
        let (text, width) = (self.cells.get(place).map_or("", String::as_str), self.width);
        if self.is_number {
            format!("{text:>width$}  ")
        } else {
            format!("{text:<width$}  ")
        }
    }
}

/// Who holds the lock now.
pub(super) fn holder(tally: &Tally, now: SimTime) -> Line {
    let clients = tally.clients.iter().enumerate();
    let holders = clients.filter_map(|(number, client)| Some((number, client.belief(now)?)));
    match holders.collect::<Vec<_>>().as_slice() {
        [] => Line::plain("No client holds the lock.".to_owned()),
        [(client, belief)] => {
            let token = belief.fencing;
            let token = token.map_or(String::new(), |token| format!(", fencing token {token}"));
            Line::colored(format!("Client {client} holds the lock{token}."), GREEN)
        }
        several => {
            let numbers: Vec<String> = several
                .iter()
                .map(|(client, _)| client.to_string())
                .collect();
            Line::colored(
                format!("CLIENTS {} HOLD THE LOCK.", numbers.join(" AND ")),
                RED_BOLD,
            )
        }
    }
}

/// The clients, two to a line: a small terminal has room for sixteen.
pub(super) fn clients(tally: &Tally, now: SimTime) -> Vec<Line> {
    let head = "client  state                acquired";
    let mut lines = vec![Line::bold(match tally.clients.len() {
        0 | 1 => head.to_owned(),
        _ => format!("{head:<CELL$}{head}"),
    })];
    let half = tally.clients.len().div_ceil(2);
    for row in 0..half {
        let mut line = Line::default();
        for number in [row, row + half] {
            if let Some(client) = tally.clients.get(number) {
                let (state, color) = client_state(client, now);
                let cell = format!("{number:<6}  {state:<18}  {:>9}", client.acquired);
                line.spans.push((format!("{cell:<CELL$}"), color));
            }
        }
        lines.push(line);
    }
    lines
}

/// What happened so far, and whether two ever held the lock.
pub(super) fn totals(tally: &Tally) -> Vec<Line> {
    let never = || Line::bold("two clients held it at once: never".to_owned());
    let overlap = tally.overlap();
    let overlap = overlap.map_or_else(never, |line| Line::colored(line, RED_BOLD));
    vec![Line::bold(tally.line()), overlap]
}

fn client_state(client: &ClientSeen, now: SimTime) -> (String, Option<&'static str>) {
    let is_paused = client.still_until > now;
    match (client.state, client.belief(now)) {
        (ClientState::Dead, _) => ("dead".to_owned(), None),
        (_, Some(belief)) => {
            let what = if is_paused { "HOLDS, paused" } else { "HOLDS" };
            (
                format!("{what} {}", seconds(belief.until.since(now))),
                Some(GREEN),
            )
        }
        _ if is_paused => (
            format!("paused {}", seconds(client.still_until.since(now))),
            None,
        ),
        (ClientState::Holds(_), _) => ("expired".to_owned(), None),
        (ClientState::Waits, _) => ("waits".to_owned(), None),
        (ClientState::Idle, _) => ("-".to_owned(), None),
    }
}

/// `0.43s`
fn seconds(span: Duration) -> String {
    format!("{:.2}s", span.as_secs_f64())
}

/// `12.304s`
pub(super) fn moment(at: SimTime) -> String {
    format!("{:.3}s", at.since(SimTime::ZERO).as_secs_f64())
}

/// `  12.304s`
pub(super) fn clock(at: SimTime) -> String {
    format!("{:>9}", moment(at))
}

/// The width of a client's column.
const CELL: usize = 40;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use locknode_testkit::history::{Entry, Event};

    use super::super::line::Canvas;
    use super::*;

    fn row(port: u16, state: State, keys: u64) -> Row {
        Row {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            state,
            keys,
            commands_per_second: 1234,
            connections: 7,
            grant: String::new(),
            links: String::new(),
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row(7101, State::Serving, 1_000_000),
            row(7102, State::Stopped, 0),
        ]
    }

    fn fit(lines: &[Line], width: usize, is_colored: bool) -> Vec<String> {
        let canvas = Canvas {
            width,
            height: 24,
            is_colored,
        };
        lines.iter().map(|line| line.fit(canvas)).collect()
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            fit(&table(&rows(), false, false, 80), 80, false),
            [
                "node  address         state         keys  commands/s  connections",
                "0     127.0.0.1:7101  serving  1,000,000       1,234            7",
                "1     127.0.0.1:7102  stopped          0       1,234            7",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_gets_whole_numbers_or_none() {
        for width in 0..80 {
            for line in fit(&table(&rows(), true, true, width), width, false) {
                assert!(line.len() <= width, "{width}: {line}");
            }
        }
        let second = |width| fit(&table(&rows(), false, false, width), width, false)[1].clone();
        assert_eq!(second(45), "0     127.0.0.1:7101  serving  1,000,000");
        assert_eq!(second(38), "0     127.0.0.1:7101  serving");
    }

    #[test]
    fn a_stopped_node_is_red() {
        let lines = fit(&table(&rows(), false, false, 80), 80, true);
        assert!(!lines[1].contains(RED));
        assert!(lines[2].starts_with(RED));
    }

    fn at(ms: u64) -> SimTime {
        Duration::from_millis(ms).into()
    }

    /// Client 1 has the lock from two nodes, of which one is cut from others; the third node was killed.
    fn tally() -> Tally {
        let (lock, key, attempt, fencing) = (0, 0, 0, Some(7));
        let granted = |node| Event::Granted {
            node,
            key,
            attempt,
            client: 1,
            counter: 7,
            ends: at(1001),
        };
        let acquired = Event::Acquired {
            client: 1,
            lock,
            key,
            attempt,
            fencing,
            valid_until: at(990),
        };
        let calls = |client, lock| Event::Calls { client, lock, key };
        let mut tally = Tally::new(3, 3);
        for event in [
            calls(1, lock),
            granted(0),
            granted(1),
            acquired,
            calls(0, 1),
            Event::Fault("cut client 0,2 node 1 both".into()),
            Event::Fault("crash node 2 kill".into()),
        ] {
            tally.take(&Entry { at: at(5), event });
        }
        tally
    }

    #[test]
    fn one_sees_who_holds_what_is_down_and_what_is_wrong() {
        let (tally, now) = (tally(), at(490));
        let states = [State::Serving, State::Serving, State::Down];
        let mut rows = states.map(|state| row(7101, state, 1));
        for (row, seen) in rows.iter_mut().zip(&tally.nodes) {
            row.add(seen, 3, now);
        }
        let mut lines = table(&rows, true, true, 80);
        lines.extend(clients(&tally, now));
        lines.push(holder(&tally, now));
        let lines = fit(&lines, 100, false);
        for line in [
            "0     127.0.0.1:7101  serving            client 1, 0.51s left",
            "1     127.0.0.1:7101  serving            client 1, 0.51s left  cut from 0,2",
            "2     127.0.0.1:7101  down",
            "0       waits                       0   2       -                           0",
            "1       HOLDS 0.50s                 1",
            "Client 1 holds the lock, fencing token 7.",
        ] {
            assert!(
                lines.iter().any(|it| it.starts_with(line)),
                "{line:?} in:\n{lines:#?}"
            );
        }
    }
}
