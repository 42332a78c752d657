//! The table of nodes as text. Pure: what it shows comes in, lines come out.

use std::fmt::{Display, Formatter, Result as FmtResult, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

/// What is shown of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) addr: SocketAddr,
    pub(super) state: State,
    pub(super) keys: u64,
    pub(super) commands_per_second: u64,
    pub(super) connections: u64,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Serving,
    /// It stays out of every lock for so long.
    Quarantine(Duration),
    /// A fault ended it.
    Down,
    /// It was asked to end, and does not come back.
    Stopped,
}

/// The lines of the table, none wider than `width`. On a narrow terminal the columns on the right are left out.
pub(super) fn lines(rows: &[Row], width: usize, is_colored: bool) -> Vec<String> {
    let header = [
        "node",
        "address",
        "state",
        "keys",
        "commands/s",
        "connections",
    ]
    .map(str::to_owned);
    let mut cells = vec![header];
    for (number, row) in rows.iter().enumerate() {
        cells.push([
            number.to_string(),
            row.addr.to_string(),
            row.state.to_string(),
            grouped(row.keys),
            grouped(row.commands_per_second),
            grouped(row.connections),
        ]);
    }
    let widths = column_widths(&cells, width);
    let mut lines = Vec::with_capacity(cells.len());
    for (index, row) in cells.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let is_text = column < NUMBERS_FROM;
            let _ = match is_text {
                true => write!(line, "{cell:<width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
        }
        let mut line: String = line.trim_end().chars().take(width).collect();
        if is_colored {
            line = match (
                index,
                index.checked_sub(1).and_then(|index| rows.get(index)),
            ) {
                (0, _) => format!("{BOLD}{line}{PLAIN}"),
                (_, Some(row)) if row.state != State::Serving => format!("{RED}{line}{PLAIN}"),
                _ => line,
            };
        }
        lines.push(line);
    }
    lines
}

/// One node on one line, without what changes from moment to moment.
pub(super) fn status(row: &Row) -> String {
    format!(
        "{}: {}, {} keys, {} connections",
        row.addr, row.state, row.keys, row.connections
    )
}

/// One node on one line, for logs.
pub(super) fn plain(number: usize, row: &Row) -> String {
    format!(
        "node {number} at {} {}: {} keys, {} commands/s, {} connections",
        row.addr, row.state, row.keys, row.commands_per_second, row.connections
    )
}

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Self::Serving => f.write_str("serving"),
            // Rounded up: 0s would be over.
            Self::Quarantine(left) => write!(f, "quarantine {}s", left.as_millis().div_ceil(1000)),
            Self::Down => f.write_str("down"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The widths of the columns that fit.
fn column_widths(cells: &[[String; COLUMNS]], width: usize) -> Vec<usize> {
    let mut left = width;
    let mut widths = Vec::new();
    for column in 0..COLUMNS {
        let widest = cells.iter().map(|row| row[column].len()).max().unwrap_or(0);
        // The address is worth being cut; a cut number would be a wrong one.
        if widest > left && column >= NUMBERS_FROM {
            break;
        }
        widths.push(widest);
        left = left.saturating_sub(widest + 2);
    }
    widths
}

/// A number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const COLUMNS: usize = 6;

/// The first column that is right-aligned.
const NUMBERS_FROM: usize = 3;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn rows() -> Vec<Row> {
        let row = |port, state, keys| Row {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            state,
            keys,
            commands_per_second: 1234,
            connections: 7,
        };
        vec![
            row(7101, State::Serving, 1_000_000),
            row(7102, State::Stopped, 0),
        ]
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            lines(&rows(), 80, false),
            [
                "node  address         state         keys  commands/s  connections",
                "0     127.0.0.1:7101  serving  1,000,000       1,234            7",
                "1     127.0.0.1:7102  stopped          0       1,234            7",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_gets_whole_columns_or_none() {
        for width in 0..80 {
            for line in lines(&rows(), width, false) {
                assert!(line.len() <= width, "{width}: {line}");
            }
            for line in lines(&rows(), width, true) {
                let shown = line.replace(BOLD, "").replace(RED, "").replace(PLAIN, "");
                assert!(shown.len() <= width, "{width}: {line}");
            }
        }
        assert_eq!(
            lines(&rows(), 45, false)[1],
            "0     127.0.0.1:7101  serving  1,000,000"
        );
        assert_eq!(
            lines(&rows(), 38, false)[1],
            "0     127.0.0.1:7101  serving"
        );
    }

    #[test]
    fn a_stopped_node_is_red() {
        let lines = lines(&rows(), 80, true);
        assert!(!lines[1].contains(RED));
        assert!(lines[2].starts_with(RED));
        assert!(lines[2].ends_with(PLAIN));
    }
}
