//! Watching the nodes: a table that is redrawn in place on a terminal, a line per change elsewhere.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use locknode::Node;
use tokio::time::{MissedTickBehavior, interval};

use super::table::{self, Row};
use crate::failure::Failure;
use crate::output;

/// A node and what was last seen of it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) addr: SocketAddr,
    node: Node,
    ended: Arc<AtomicBool>,
    commands_seen: u64,
    seen_at: Instant,
}

/// Shows nodes until it is dropped, and then leaves the terminal as it was.
#[derive(Debug)]
pub(super) struct View {
    nodes: Vec<Watched>,
    is_terminal: bool,
    is_colored: bool,
    /// Lines of the table on the screen, to go up over.
    lines_shown: usize,
    width_shown: usize,
}

impl Watched {
    pub(super) fn new(addr: SocketAddr, node: Node, ended: Arc<AtomicBool>) -> Self {
        Self {
            addr,
            node,
            ended,
            commands_seen: 0,
            seen_at: Instant::now(),
        }
    }

    fn look(&mut self) -> Row {
        let stats = self.node.stats();
        let now = Instant::now();
        let elapsed_ms = now.duration_since(self.seen_at).as_millis().max(1);
        let commands = u128::from(stats.commands.saturating_sub(self.commands_seen));
        let commands_per_second = u64::try_from(commands * 1000 / elapsed_ms).unwrap_or(u64::MAX);
        self.commands_seen = stats.commands;
        self.seen_at = now;
        Row {
            addr: self.addr,
            is_serving: !self.ended.load(Ordering::Relaxed),
            keys: stats.keys,
            commands_per_second,
            connections: stats.clients,
        }
    }
}

impl View {
    pub(super) fn new(nodes: Vec<Watched>) -> Self {
        let is_terminal = output::is_terminal();
        // https://no-color.org: any value but the empty one.
        let is_colored = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            nodes,
            is_terminal,
            is_colored,
            lines_shown: 0,
            width_shown: 0,
        }
    }

    /// Shows the nodes for ever.
    ///
    /// # Errors
    ///
    /// When standard output fails.
    pub(super) async fn show(mut self) -> Result<(), Failure> {
        let mut ticks = interval(if self.is_terminal { REDRAW } else { REPORT });
        // After a suspended process goes on there is one picture to draw, not all that were missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before: Vec<Row> = Vec::new();
        loop {
            ticks.tick().await;
            let rows: Vec<Row> = self.nodes.iter_mut().map(Watched::look).collect();
            if self.is_terminal {
                self.draw(&rows, rows != before)?;
            } else if !before.is_empty() {
                let changed = rows
                    .iter()
                    .zip(&before)
                    .filter(|(now, before)| now != before);
                let text: String = changed.map(|(now, _)| table::plain(now) + "\n").collect();
                output::write(&text)?;
            }
            before = rows;
        }
    }

    fn draw(&mut self, rows: &[Row], has_changed: bool) -> Result<(), Failure> {
        let width = terminal_width();
        let is_resized = width != self.width_shown;
        if !has_changed && !is_resized {
            return Ok(());
        }
        let mut text = String::new();
        match self.lines_shown {
            0 => text.push_str(HIDE_CURSOR),
            // After a resize nobody knows where the old lines are: the table starts anew below them.
            _ if is_resized => {}
            lines => {
                let _ = write!(text, "\x1b[{lines}A");
            }
        }
        text.push_str(CLEAR_BELOW);
        let lines = table::lines(rows, width, self.is_colored);
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.lines_shown = lines.len();
        self.width_shown = width;
        output::write(&text)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.lines_shown > 0 {
            // If the terminal is gone there is nothing to restore.
            let _ = output::write(SHOW_CURSOR);
        }
    }
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH_DEFAULT } else { columns }
}

/// Twice a second: as often as a person can read numbers.
const REDRAW: Duration = Duration::from_millis(500);

/// Lines in a log are kept for ever: few of them.
const REPORT: Duration = Duration::from_secs(5);

/// The width of a terminal that does not tell.
const WIDTH_DEFAULT: usize = 80;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_BELOW: &str = "\x1b[J";
