//! What a lab shows while it runs: its nodes, and with a history also the faults and the clients of a scenario. On a terminal
//! that is redrawn in place; elsewhere a line is written for each fault and each change.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use locknode::Node;
use locknode_testkit::cluster::{Cluster, Recorder};
use locknode_testkit::history::{Entry, Event};
use locknode_testkit::{Fault, SimTime, Who};
use tokio::time::{MissedTickBehavior, interval};

use super::layout::{self, Row, State, clock, moment};
use super::line::{Canvas, Line};
use super::screen::Screen;
use super::tally::Tally;
use crate::failure::Failure;
use crate::figures::per_second;
use crate::output;

/// Shows the nodes of a lab. Clones are the same dashboard.
#[derive(Clone, Debug)]
pub(super) struct Dashboard {
    shown: Arc<Mutex<Shown>>,
}

#[derive(Debug)]
struct Shown {
    nodes: Vec<Watched>,
    /// What is recorded, where faults are possible.
    record: Option<Record>,
    /// Lines that were not written yet.
    unwritten: Vec<String>,
}

/// A node and what was last seen of it.
#[derive(Debug)]
struct Watched {
    addr: SocketAddr,
    source: Source,
    commands_seen: u64,
    seen_at: Instant,
    commands_per_second: u64,
}

/// How to look at a node.
#[derive(Debug)]
enum Source {
    /// It runs until this is set.
    Steady(Node, Arc<AtomicBool>),
    /// It is the node of this number, which may crash and restart.
    Member(Cluster, u8),
}

/// A history as far as it was read.
#[derive(Debug)]
struct Record {
    recorder: Arc<Recorder>,
    place: usize,
    tally: Tally,
    /// The latest faults, the last one last.
    news: VecDeque<String>,
    is_blind: bool,
    /// The title of the scenario that is played, and how long that takes.
    run: Option<(String, Duration)>,
}

impl Dashboard {
    /// Of nodes to which nothing happens: their addresses, and what is set once one of them has ended.
    pub(super) fn of_nodes(nodes: Vec<(SocketAddr, Node, Arc<AtomicBool>)>) -> Self {
        let nodes = nodes.into_iter();
        let steady = |(addr, node, ended)| Watched::new(addr, Source::Steady(node, ended));
        Self::new(nodes.map(steady).collect(), None)
    }

    /// Of a cluster with faults, and of the clients of the scenario with this title that it plays for this time.
    pub(super) fn of_cluster(
        cluster: &Cluster,
        recorder: &Arc<Recorder>,
        run: Option<(String, Duration)>,
    ) -> Self {
        let nodes = (0..).zip(cluster.addresses());
        let member = |(node, addr)| Watched::new(addr, Source::Member(cluster.clone(), node));
        let record = Record {
            recorder: Arc::clone(recorder),
            place: 0,
            tally: Tally::new(cluster.nodes(), cluster.clients()),
            news: VecDeque::new(),
            is_blind: false,
            run,
        };
        Self::new(nodes.map(member).collect(), Some(record))
    }

    fn new(nodes: Vec<Watched>, record: Option<Record>) -> Self {
        let shown = Shown {
            nodes,
            record,
            unwritten: Vec::new(),
        };
        Self {
            shown: Arc::new(Mutex::new(shown)),
        }
    }

    /// Shows the nodes until it is dropped, and then leaves the terminal as it was.
    ///
    /// # Errors
    ///
    /// When standard output fails.
    pub(super) async fn show(&self) -> Result<(), Failure> {
        let mut screen = Screen::new();
        let mut ticks = interval(REDRAW);
        // After a suspended process goes on there is one picture to draw, not all that were missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut reports_at): (Vec<Row>, _) = (Vec::new(), Instant::now());
        loop {
            ticks.tick().await;
            let mut shown = self.shown();
            let rows = shown.look();
            let mut lines = std::mem::take(&mut shown.unwritten);
            if screen.is_terminal {
                let canvas = screen.canvas();
                screen.draw(shown.lines(&rows, canvas), canvas)?;
                continue;
            }
            let is_run = shown.record.as_ref().is_some_and(|it| it.run.is_some());
            drop(shown);
            if !is_run && Instant::now() >= reports_at {
                reports_at = Instant::now() + REPORT;
                // At first there is nothing to compare with.
                let pairs = before.iter().zip(&rows).enumerate();
                let changed = pairs.filter(|(_, (before, row))| before != row);
                lines.extend(changed.map(|(node, (_, row))| row.log_line(node)));
                before = rows;
            }
            if !lines.is_empty() {
                output::write(&(lines.join("\n") + "\n"))?;
            }
        }
    }

    /// The nodes under these addresses as a table, and the latest faults.
    pub(super) fn status(&self, addresses: &[SocketAddr]) -> Vec<String> {
        let mut shown = self.shown();
        let mut rows = shown.look();
        for (row, addr) in rows.iter_mut().zip(addresses) {
            row.addr = *addr;
        }
        let mut lines = shown.table(&rows, Canvas::ENDLESS.width);
        let news = shown.record.iter().flat_map(|it| &it.news);
        lines.extend(news.map(|line| Line::plain(line.clone())));
        lines.iter().map(|line| line.fit(Canvas::ENDLESS)).collect()
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// Reads on in the history, and looks at the nodes.
    fn look(&mut self) -> Vec<Row> {
        if let Some(record) = &mut self.record {
            let addr = |node: u8| self.nodes.get(usize::from(node)).map(|node| node.addr);
            record.read_on(addr, &mut self.unwritten);
        }
        let rows = self.nodes.iter_mut().map(Watched::look);
        let mut rows: Vec<Row> = rows.collect();
        if let Some(record) = &self.record {
            let (tally, now) = (&record.tally, record.recorder.now());
            for (row, seen) in rows.iter_mut().zip(&tally.nodes) {
                row.add(seen, tally.clients.len(), now);
            }
        }
        rows
    }

    fn lines(&self, rows: &[Row], canvas: Canvas) -> Vec<String> {
        let mut lines = Vec::new();
        let mut below = Vec::new();
        let record = self.record.as_ref();
        let run = record.and_then(|record| Some((record, record.run.as_ref()?)));
        if let Some((record, (title, run_for))) = run {
            let (tally, now) = (&record.tally, record.recorder.now());
            let (elapsed, run_for) = (now.since(SimTime::ZERO), run_for.as_secs_f64());
            let elapsed = format!("{:.1}s of {run_for}s", elapsed.as_secs_f64());
            lines.push(Line::bold(match blindness(&record.recorder) {
                None => format!("{title}   {elapsed}"),
                Some(blindness) => format!("{elapsed}   {blindness}"),
            }));
            lines.extend([layout::holder(tally, now), Line::default()]);
            lines.extend(self.table(rows, canvas.width));
            lines.push(Line::default());
            lines.extend(layout::clients(tally, now));
            below = layout::totals(tally);
        } else {
            lines.extend(self.table(rows, canvas.width));
        }
        let news = record.into_iter().flat_map(|record| &record.news);
        let room = canvas.height.saturating_sub(lines.len() + below.len() + 3);
        let hidden = news.clone().count().saturating_sub(room);
        for part in [
            news.skip(hidden)
                .map(|line| Line::plain(line.clone()))
                .collect(),
            below,
        ] {
            if !part.is_empty() {
                lines.push(Line::default());
                lines.extend::<Vec<Line>>(part);
            }
        }
        lines.truncate(canvas.height.saturating_sub(1).max(1));
        lines.iter().map(|line| line.fit(canvas)).collect()
    }

    fn table(&self, rows: &[Row], width: usize) -> Vec<Line> {
        let is_run = self.record.as_ref().is_some_and(|it| it.run.is_some());
        layout::table(rows, self.record.is_some(), is_run, width)
    }
}

impl Record {
    /// Takes what has happened since the last look; lines about it go to `unwritten`.
    fn read_on(&mut self, addr: impl Fn(u8) -> Option<SocketAddr>, unwritten: &mut Vec<String>) {
        let (entries, place) = self.recorder.since(self.place);
        self.place = place;
        for entry in &entries {
            let had_overlap = self.tally.first_overlap.is_some();
            self.tally.take(entry);
            if let Some(line) = self.news_of(entry, &addr) {
                if self.news.len() >= NEWS_MAX {
                    self.news.pop_front();
                }
                self.news.push_back(line.clone());
                unwritten.push(line);
            }
            if self.run.is_some() && !had_overlap {
                let overlap = self.tally.overlap();
                unwritten.extend(overlap.map(|line| format!("{}  {line}", clock(entry.at))));
            }
        }
        if let Some(blindness) = blindness(&self.recorder).filter(|_| !self.is_blind) {
            self.is_blind = true;
            unwritten.push(format!("{}  {blindness}", clock(self.recorder.now())));
        }
    }

    /// A line about an event, if people want to know of it.
    fn news_of(&self, entry: &Entry, addr: impl Fn(u8) -> Option<SocketAddr>) -> Option<String> {
        let (nodes, clients) = (self.tally.nodes.len(), self.tally.clients.len());
        let count = |len: usize| u8::try_from(len).unwrap_or(u8::MAX);
        let (sentence, who) = match &entry.event {
            Event::Fault(text) => {
                let fault = Fault::parse(text).ok()?;
                (fault.sentence(count(nodes), count(clients)), fault.who())
            }
            Event::StaysDown { node, why } => (why.to_string(), Some(Who::Node(*node))),
            _ => return None,
        };
        // People know a node by its port; the ports of a scenario's nodes are of no interest.
        let port = match who {
            Some(Who::Node(node)) if self.run.is_none() => addr(node),
            _ => None,
        };
        let port = port.map_or_else(String::new, |addr| format!(" (port {})", addr.port()));
        Some(format!("{}  {sentence}{port}", clock(entry.at)))
    }
}

impl Watched {
    fn new(addr: SocketAddr, source: Source) -> Self {
        Self {
            addr,
            source,
            commands_seen: 0,
            seen_at: Instant::now(),
            commands_per_second: 0,
        }
    }

    fn look(&mut self) -> Row {
        let (node, state) = match &self.source {
            Source::Steady(node, ended) => {
                let has_ended = ended.load(Ordering::Relaxed);
                let state = if has_ended {
                    State::Stopped
                } else {
                    State::Serving
                };
                (Some(node.clone()), state)
            }
            Source::Member(cluster, number) => {
                let node = cluster.node(*number);
                let state = match node.as_ref().map(Node::quarantine_left) {
                    None => State::Down,
                    Some(Some(left)) => State::Quarantine(left),
                    Some(None) => State::Serving,
                };
                (node, state)
            }
        };
        let stats = node.map(|node| node.stats()).unwrap_or_default();
        let elapsed = self.seen_at.elapsed();
        if elapsed >= RATE_OVER {
            let since = stats.commands.saturating_sub(self.commands_seen);
            let per_second = per_second(since, elapsed);
            self.commands_per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
            self.commands_seen = stats.commands;
            self.seen_at = Instant::now();
        }
        Row {
            addr: self.addr,
            state,
            keys: stats.keys,
            commands_per_second: self.commands_per_second,
            connections: stats.clients,
            grant: String::new(),
            links: String::new(),
        }
    }
}

/// The warning that not everything is recorded any more.
fn blindness(recorder: &Recorder) -> Option<String> {
    let since = moment(recorder.left_out().since?);
    Some(format!(
        "too many events: from {since} on not all are shown and judged"
    ))
}

/// Five times a second: a crash that lasts a moment is seen, and numbers can still be read.
const REDRAW: Duration = Duration::from_millis(200);

/// A rate over less would jump.
const RATE_OVER: Duration = Duration::from_millis(500);

/// Lines in a log are kept for ever: few of them.
const REPORT: Duration = Duration::from_secs(5);

/// As many as a large terminal has room for.
const NEWS_MAX: usize = 12;
