//! Watching the nodes: a table that is redrawn in place on a terminal, a line per change elsewhere.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use locknode::Node;
use locknode_testkit::cluster::Cluster;
use tokio::time::{MissedTickBehavior, interval};

use super::screen::Screen;
use super::table::{self, Row, State};
use crate::failure::Failure;
use crate::output;

/// A node and what was last seen of it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) addr: SocketAddr,
    source: Source,
    commands_seen: u64,
    seen_at: Instant,
}

/// How one looks at a node.
#[derive(Debug)]
enum Source {
    /// It runs from the beginning until the end, which is said here.
    Steady(Node, Arc<AtomicBool>),
    /// It is one of these, by number, and comes and goes.
    Member(Cluster, u8),
}

/// What somebody has done to the nodes, in words. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    lines: Arc<Mutex<NewsLines>>,
}

#[derive(Debug, Default)]
struct NewsLines {
    recent: Vec<String>,
    /// How many there were.
    told: usize,
}

/// Shows nodes until it is dropped, and then leaves the terminal as it was.
#[derive(Debug)]
pub(super) struct View {
    nodes: Vec<Watched>,
    news: News,
    screen: Screen,
}

impl Watched {
    pub(super) fn new(addr: SocketAddr, node: Node, ended: Arc<AtomicBool>) -> Self {
        Self::of(addr, Source::Steady(node, ended))
    }

    pub(super) fn member(addr: SocketAddr, cluster: Cluster, number: u8) -> Self {
        Self::of(addr, Source::Member(cluster, number))
    }

    fn of(addr: SocketAddr, source: Source) -> Self {
        Self {
            addr,
            source,
            commands_seen: 0,
            seen_at: Instant::now(),
        }
    }

    pub(super) fn look(&mut self) -> Row {
        let (node, state) = match &self.source {
            Source::Steady(node, ended) => match ended.load(Ordering::Relaxed) {
                true => (Some(node.clone()), State::Stopped),
                false => (Some(node.clone()), State::Serving),
            },
            Source::Member(cluster, number) => {
                let node = cluster.node(*number);
                let left = node.as_ref().and_then(Node::quarantine_left);
                match (node.is_some(), left) {
                    (false, _) => (None, State::Down),
                    (true, Some(left)) => (node, State::Quarantine(left)),
                    (true, None) => (node, State::Serving),
                }
            }
        };
        let stats = node.map(|node| node.stats());
        let (keys, commands, connections) = stats.map_or((0, 0, 0), |stats| {
            (stats.keys, stats.commands, stats.clients)
        });
        let now = Instant::now();
        let elapsed_ms = now.duration_since(self.seen_at).as_millis().max(1);
        let since = u128::from(commands.saturating_sub(self.commands_seen));
        let commands_per_second = u64::try_from(since * 1000 / elapsed_ms).unwrap_or(u64::MAX);
        self.commands_seen = commands;
        self.seen_at = now;
        Row {
            addr: self.addr,
            state,
            keys,
            commands_per_second,
            connections,
        }
    }
}

impl News {
    pub(super) fn tell(&self, line: impl Into<String>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.recent.len() >= NEWS_MAX {
            lines.recent.remove(0);
        }
        lines.recent.push(line.into());
        lines.told += 1;
    }

    pub(super) fn recent(&self) -> Vec<String> {
        self.since(0).0
    }

    /// Those that were told after so many, as far as they are remembered; and how many there were.
    fn since(&self, told: usize) -> (Vec<String>, usize) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let new = lines.told.saturating_sub(told).min(lines.recent.len());
        let from = lines.recent.len() - new;
        let recent = lines.recent.get(from..).unwrap_or_default();
        (recent.to_vec(), lines.told)
    }
}

impl View {
    pub(super) fn new(nodes: Vec<Watched>, news: News) -> Self {
        Self {
            nodes,
            news,
            screen: Screen::new(),
        }
    }

    /// Shows the nodes for ever.
    ///
    /// # Errors
    ///
    /// When standard output fails.
    pub(super) async fn show(mut self) -> Result<(), Failure> {
        let mut ticks = interval(REDRAW);
        // After a suspended process goes on there is one picture to draw, not all that were missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut told): (Vec<Row>, usize) = (Vec::new(), 0);
        let mut reports_at = Instant::now();
        loop {
            ticks.tick().await;
            if self.screen.is_terminal {
                let rows = self.look();
                self.draw(&rows)?;
                continue;
            }
            let (news, now_told) = self.news.since(told);
            told = now_told;
            let mut text: String = news.iter().map(|line| format!("{line}\n")).collect();
            let now = Instant::now();
            if now >= reports_at {
                reports_at = now + REPORT;
                let rows = self.look();
                let changed = rows.iter().enumerate();
                // At first there is nothing to compare with.
                let changed = changed.filter(|(number, row)| {
                    before.get(*number).is_some_and(|before| before != *row)
                });
                text.extend(changed.map(|(number, row)| table::plain(number, row) + "\n"));
                before = rows;
            }
            if !text.is_empty() {
                output::write(&text)?;
            }
        }
    }

    fn look(&mut self) -> Vec<Row> {
        self.nodes.iter_mut().map(Watched::look).collect()
    }

    fn draw(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let canvas = self.screen.canvas();
        let mut lines = table::lines(rows, canvas.width, canvas.is_colored);
        let news = self.news.recent();
        let room = canvas.height.saturating_sub(lines.len() + 2);
        let hidden = news.len().saturating_sub(room);
        if !news.is_empty() && room > 0 {
            lines.push(String::new());
            let cut = |line: &String| line.chars().take(canvas.width).collect();
            lines.extend(news.iter().skip(hidden).map(cut));
        }
        self.screen.draw(lines, canvas)
    }
}

/// Twice a second: as often as a person can read numbers.
const REDRAW: Duration = Duration::from_millis(500);

/// Lines in a log are kept for ever: few of them.
const REPORT: Duration = Duration::from_secs(5);

/// As many as a glance takes in.
const NEWS_MAX: usize = 10;
