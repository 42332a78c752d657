//! The links between clients and nodes, and what is wrong with them right now.
//!
//! ```text
//!  faults --> Net --> verdict when a message enters a link: lost, skipped, or due at a moment
//!                 \-> condition while it waits there: cut, held back, or the node stands still
//! ```
//!
//! Connections ask; they are woken when anything changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::command_tap::CommandTap;
use super::recorder::Recorder;
use crate::fault::link_state::{LinkState, take_one};
use crate::fault::{Fault, Links};
use crate::random::Random;
use crate::span::nanos;

/// All links of a cluster.
#[derive(Debug)]
pub(crate) struct Net {
    state: Mutex<State>,
    /// Says when anything changes.
    pub(crate) changed: watch::Sender<()>,
    clients: u8,
    nodes: u8,
    /// Who answers what is not for the nodes.
    pub(crate) tap: Option<CommandTap>,
    /// Who writes down what happens.
    pub(crate) recorder: Option<Arc<Recorder>>,
}

/// The link between one client and one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId {
    pub(crate) client: u8,
    pub(crate) node: u8,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Requests,
    Replies,
}

/// What becomes of a message that enters a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is lost, and its connection with it.
    Lost,
    /// It alone is missing.
    Skipped,
    /// It arrives at this moment, if nothing holds it up.
    Due {
        at: Instant,
        /// And again, through another connection.
        is_doubled: bool,
    },
}

/// What a connection has to heed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// Whether what is on its way has to wait.
    pub(crate) is_stalled: bool,
    /// Until when the node stands still.
    pub(crate) still_until: Option<Instant>,
    /// How often the link's connections were broken.
    pub(crate) resets: u64,
    pub(crate) is_closed: bool,
}

#[derive(Debug)]
struct State {
    /// Row by row: the links of client 0, of client 1, and so on.
    links: Vec<Link>,
    still_until: Vec<Option<Instant>>,
    connections: Vec<usize>,
    delay: (Duration, Duration),
    random: Random,
    is_closed: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    pub(crate) state: LinkState,
    /// How many of the next replies are missing.
    skips: u8,
    resets: u64,
    /// Connections whose clients have left, and whose data may still be on its way.
    orphans: usize,
}

impl Net {
    pub(crate) fn new(clients: u8, nodes: u8, delay: (Duration, Duration), random: Random) -> Self {
        let state = State {
            links: vec![Link::default(); usize::from(clients) * usize::from(nodes)],
            still_until: vec![None; usize::from(nodes)],
            connections: vec![0; usize::from(nodes)],
            delay,
            random,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
            clients,
            nodes,
            tap: None,
            recorder: None,
        }
    }

    /// Whether any of these links exists.
    pub(crate) fn has_any(&self, links: Links) -> bool {
        (0..self.clients).any(|client| links.clients.has(client))
            && (0..self.nodes).any(|node| links.nodes.has(node))
    }

    pub(crate) fn verdict(&self, link: LinkId, direction: Direction, now: Instant) -> Verdict {
        let drawn = {
            let mut state = self.state();
            let (low, high) = state.delay;
            if high > low {
                Duration::from_nanos(state.random.between(nanos(low), nanos(high)))
            } else {
                low
            }
        };
        let is_request = direction == Direction::Requests;
        let verdict = self.on_link(link, |link| {
            if take_one(&mut link.state.lane(is_request).losses) {
                return Verdict::Lost;
            }
            if !is_request && take_one(&mut link.skips) {
                return Verdict::Skipped;
            }
            let late = link.state.lane(is_request).take_late();
            let delay = drawn.saturating_add(link.state.delay).saturating_add(late);
            Verdict::Due {
                at: after(now, delay),
                is_doubled: is_request && take_one(&mut link.state.doubles),
            }
        });
        verdict.unwrap_or(Verdict::Lost)
    }

    pub(crate) fn condition(&self, link: LinkId, direction: Direction) -> Condition {
        let mut state = self.state();
        let is_closed = state.is_closed;
        let still_until = state.still_until.get(usize::from(link.node)).copied();
        let mut link = self.link(&mut state, link).cloned().unwrap_or_default();
        let lane = link.state.lane(direction == Direction::Requests);
        Condition {
            is_stalled: lane.is_closed(),
            still_until: still_until.flatten(),
            resets: link.resets,
            is_closed,
        }
    }

    /// How long it takes to open a connection; `None` while that is not possible.
    pub(crate) fn opening(&self, link: LinkId) -> Option<Duration> {
        let mut state = self.state();
        let low = state.delay.0;
        let link = self.link(&mut state, link)?;
        let takes = low.saturating_add(link.state.delay).saturating_mul(2);
        (!link.state.is_cut()).then_some(takes)
    }

    /// Counts a connection in; false when the node has too many.
    pub(crate) fn enter(&self, node: u8) -> bool {
        let mut state = self.state();
        let count = state.connections.get_mut(usize::from(node));
        let count = count.filter(|count| **count < CONNECTIONS_MAX);
        count.map(|count| *count += 1).is_some()
    }

    /// The client of a connection has left: it counts among the link's orphans from now on, and not among the node's
    /// connections. False when the link has too many; then it counts as before.
    pub(crate) fn orphan(&self, id: LinkId) -> bool {
        let mut state = self.state();
        match self.link(&mut state, id) {
            Some(link) if link.orphans < ORPHANS_MAX => link.orphans += 1,
            _ => return false,
        }
        state.uncount(id.node);
        true
    }

    /// Counts a connection out, from where it was counted.
    pub(crate) fn leave(&self, id: LinkId, is_orphan: bool) {
        let mut state = self.state();
        if !is_orphan {
            state.uncount(id.node);
        } else if let Some(link) = self.link(&mut state, id) {
            link.orphans = link.orphans.saturating_sub(1);
        }
    }

    /// Connections to the node right now, without orphans.
    pub(crate) fn connections(&self, node: u8) -> usize {
        let state = self.state();
        let count = state.connections.get(usize::from(node)).copied();
        count.unwrap_or_default()
    }

    /// What a fault does to each of these links.
    pub(crate) fn strike(&self, links: Links, fault: Fault) {
        self.each(links, |link| match fault {
            Fault::Reset(_) => link.resets += 1,
            fault => fault.strike(&mut link.state),
        });
    }

    /// The next `count` replies are missing.
    pub(crate) fn skip_replies(&self, links: Links, count: u8) {
        self.each(links, |link| link.skips = count);
    }

    /// The node's process stands still.
    pub(crate) fn still(&self, node: u8, span: Duration) {
        let until = after(Instant::now(), span);
        if let Some(still) = self.state().still_until.get_mut(usize::from(node)) {
            *still = (*still).max(Some(until));
        }
        self.changed.send_replace(());
    }

    /// Nothing is wrong any more.
    pub(crate) fn calm(&self) {
        self.each(Links::ALL, |link| {
            *link = Link {
                resets: link.resets,
                orphans: link.orphans,
                ..Link::default()
            }
        });
    }

    /// Ends all connections, for good.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.send_replace(());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn each(&self, links: Links, change: impl Fn(&mut Link)) {
        let mut state = self.state();
        for client in 0..self.clients {
            for node in (0..self.nodes).filter(|node| links.has(client, *node)) {
                if let Some(link) = self.link(&mut state, LinkId { client, node }) {
                    change(link);
                }
            }
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Asks or changes a link, if it exists.
    pub(crate) fn on_link<T>(&self, id: LinkId, change: impl FnOnce(&mut Link) -> T) -> Option<T> {
        self.link(&mut self.state(), id).map(change)
    }

    fn link<'s>(&self, state: &'s mut State, id: LinkId) -> Option<&'s mut Link> {
        let row = usize::from(id.client) * usize::from(self.nodes);
        state.links.get_mut(row + usize::from(id.node))
    }

    /// What is behind the lock is whole after every statement.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn uncount(&mut self, node: u8) {
        if let Some(count) = self.connections.get_mut(usize::from(node)) {
            *count = count.saturating_sub(1);
        }
    }
}

/// The moment that is this span later; for spans without end, one that does not come.
pub(crate) fn after(now: Instant, span: Duration) -> Instant {
    now.checked_add(span.min(NEVER)).unwrap_or(now)
}

/// A century. Times of a few of them can be added.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Each takes one descriptor on loopback, of the 1024 that a process has by default, and at most some megabytes when all
/// that it has sent is held back.
pub(crate) const CONNECTIONS_MAX: usize = 512;

/// Of a link. Behind a cut clients give up and connect again for as long as it lasts, and each of their connections may hold
/// some megabytes: their number has a limit of its own, as Linux has one for sockets that no process has any more
/// (`tcp_max_orphans`), and what is beyond it is given up at once. As many as some clients leave in a minute.
pub(crate) const ORPHANS_MAX: usize = 64;
