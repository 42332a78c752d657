//! A world: nodes, clients and what lies between them, in one thread, driven from event to event.
//!
//! ```text
//!   Scenario --> World::new --> run_until / run ----> Report: history, violations, counters, hash
//!                   ^                |
//!                   +--- inject, act +   (a test that decides as it goes)
//! ```
//!
//! All that a world does is decided by its scenario: there is no thread, no socket, no clock and no randomness but the
//! streams of the scenario's seed.

mod hooks;

use std::sync::Arc;
use std::time::Duration;

use crate::fault::{Fault, Who};
use crate::history::{Event as Told, History};
use crate::random::Random;
use crate::scenario::{ClientAction, Dialect, Hook, Scenario};
use crate::sim::buffers::Buffers;
use crate::sim::by_number::ByNumber;
use crate::sim::client::SimClient;
use crate::sim::event::{Event, NodeEvent};
use crate::sim::link::{Conn, Link};
use crate::sim::node::SimNode;
use crate::sim::queue::{Place, Queue, ScheduledEvent};
use crate::sim::recorder::{Counters, Recorder, Recording};
use crate::span::SimTime;

/// One simulated run; see the module text.
///
/// ```
/// use std::time::Duration;
/// use locknode_testkit::{Crash, Fault, Hook, LockAction, Scenario, Setup, World};
///
/// let second = Duration::from_secs(1);
/// let scenario = Scenario::new(Setup::seeded(7))
///     .act(second, 0, LockAction::new("invoice", 3 * second).hold(second).into())
///     .on(Hook::Granted(2), Fault::Crash(2, Crash::Kill));
/// let mut world = World::new(&scenario);
/// world.run();
/// let windows = world.history().windows();
/// assert_eq!(windows.len(), 1, "four nodes are enough");
/// ```
#[derive(Debug)]
pub struct World {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) now: SimTime,
    pub(crate) queue: Queue,
    pub(crate) seq: u64,
    /// The place of the event that happens now.
    pub(crate) present: Place,
    pub(crate) nodes: ByNumber<SimNode>,
    pub(crate) clients: ByNumber<SimClient>,
    pub(crate) conns: ByNumber<Conn>,
    /// By node, the connections that it has an end of.
    pub(crate) live: ByNumber<Vec<u32>>,
    /// By client, and for each by node.
    pub(crate) links: ByNumber<ByNumber<Link>>,
    /// When the process of each node goes on, and of each client.
    pub(crate) node_stopped: ByNumber<SimTime>,
    pub(crate) client_stopped: ByNumber<SimTime>,
    /// Whose attempt each node holds under each key, as its replies said.
    pub(crate) mirrors: ByNumber<Vec<Option<u32>>>,
    /// The highest fencing token that the resource behind each key has seen.
    pub(crate) resource: Vec<u64>,
    pub(crate) recorder: Recorder,
    pub(crate) next_lock: u32,
    waiting: Vec<Waiting>,
    /// Hooks of something that happens in one go and has not ended.
    pub(crate) held_hooks: Option<Vec<Hook>>,
    /// Events of the present moment so far.
    events_now: u32,
    /// It did not get on, and goes on no more.
    is_stuck: bool,
    /// Room for messages to come.
    pub(crate) buffers: Buffers,
    /// Room for replies, and where each of them ends.
    pub(crate) out: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

/// A step that waits for a hook.
#[derive(Debug)]
struct Waiting {
    hook: Hook,
    left: u16,
    after: Duration,
    step: usize,
}

impl World {
    /// A world in which nothing has happened yet. Nodes start at once, at their first start.
    pub fn new(scenario: &Scenario) -> Self {
        Self::recording(scenario, Recording::Events)
    }

    /// The same, with more in its history.
    pub fn recording(scenario: &Scenario, recording: Recording) -> Self {
        let setup = &scenario.setup;
        let (nodes, clients) = (
            setup.nodes.clamp(1, MEMBERS_MAX),
            setup.clients.clamp(1, MEMBERS_MAX),
        );
        let link = |number: u16| Link::new(Random::stream(setup.seed, "link", number.into()));
        let links_of = |client: u8| {
            let numbers =
                (0..nodes).map(|node| u16::from(client) * u16::from(nodes) + u16::from(node));
            numbers.map(link).collect()
        };
        let mut world = Self {
            now: SimTime::ZERO,
            queue: Queue::default(),
            seq: 0,
            present: Place::default(),
            nodes: (0..nodes).map(|node| SimNode::new(setup, node)).collect(),
            clients: (0..clients)
                .map(|client| SimClient::new(setup, client))
                .collect(),
            conns: ByNumber::new(),
            live: (0..nodes).map(|_| Vec::new()).collect(),
            links: (0..clients).map(links_of).collect(),
            node_stopped: (0..nodes).map(|_| SimTime::ZERO).collect(),
            client_stopped: (0..clients).map(|_| SimTime::ZERO).collect(),
            mirrors: (0..nodes).map(|_| Vec::new()).collect(),
            resource: Vec::new(),
            recorder: Recorder::new(nodes, clients, recording),
            next_lock: 0,
            waiting: Vec::new(),
            held_hooks: None,
            events_now: 0,
            is_stuck: false,
            buffers: Buffers::default(),
            out: Vec::new(),
            ends: Vec::new(),
            scenario: Arc::new(scenario.clone()),
        };
        world.recorder.counters.bump(match setup.dialect {
            Dialect::Lock => "dialect-lock",
            Dialect::DelEx => "dialect-delex",
            Dialect::DelIfEq => "dialect-delifeq",
            Dialect::Script => "dialect-script",
            Dialect::Mixed => "dialect-mixed",
        });
        for node in 0..nodes {
            world.start_node(node, true);
        }
        for client in 0..clients {
            world
                .recorder
                .push(SimTime::ZERO, Told::ClientStarted { client });
        }
        for (number, step) in scenario.steps.iter().enumerate() {
            world.plan(number, &step.when);
        }
        world
    }

    /// Runs to the end of the scenario.
    pub fn run(&mut self) {
        let end = SimTime::from(self.scenario.setup.run_for);
        self.run_until(end);
    }

    /// Runs up to a moment, everything that is due then included.
    pub fn run_until(&mut self, end: SimTime) {
        while self.step_within(end) {}
        self.now = self.now.max(end);
        self.recorder.history.end = self.now;
    }

    /// Runs until something has happened; whether it has, before the scenario's end.
    pub fn run_until_seen(&mut self, mut is_it: impl FnMut(&Told) -> bool) -> bool {
        let end = SimTime::from(self.scenario.setup.run_for);
        let mut seen = self.recorder.history.entries.len();
        while self.step_within(end) {
            let mut fresh = self.recorder.history.entries.iter().skip(seen);
            if fresh.any(|entry| is_it(&entry.event)) {
                return true;
            }
            seen = self.recorder.history.entries.len();
        }
        false
    }

    /// Lets the next event happen if it is due by then; whether there was one, and the world gets on.
    fn step_within(&mut self, end: SimTime) -> bool {
        let next = self.queue.next_at();
        next.is_some_and(|at| at <= end.as_nanos()) && !self.is_stuck && self.step()
    }

    /// Lets the next event happen; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(due) = self.queue.pop() else {
            return false;
        };
        let now = SimTime::from_nanos(due.at);
        self.events_now = if now == self.now {
            self.events_now + 1
        } else {
            0
        };
        self.now = now;
        self.recorder.history.end = self.now;
        self.come(due);
        if self.events_now > EVENTS_NOW_MAX || self.recorder.events > EVENTS_MAX {
            self.never_ends();
        }
        true
    }

    /// Something goes on and on, and the world does not get on: it ends here.
    pub(crate) fn never_ends(&mut self) {
        if !std::mem::replace(&mut self.is_stuck, true) {
            self.recorder.push(self.now, Told::Stuck);
        }
    }

    /// An event has come: it happens, unless the process that it is for stands still. Then it waits, and keeps its place
    /// before all that was sent later.
    pub(crate) fn come(&mut self, mut due: ScheduledEvent) {
        let goes_on = self.stopped_until(&due.event);
        if goes_on > self.now {
            due.at = goes_on.as_nanos();
            self.queue.push(due);
            return;
        }
        self.present = due.place;
        self.happen(due.event);
    }

    /// Something goes wrong now.
    pub fn inject(&mut self, fault: Fault) {
        self.apply(fault);
    }

    /// A client does something now.
    pub fn act(&mut self, client: u8, act: &ClientAction) {
        self.client_acts(client, act);
    }

    /// The present, in true time.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// What has happened so far.
    pub const fn history(&self) -> &History {
        &self.recorder.history
    }

    /// All that happened, when the world is over.
    pub fn into_history(self) -> History {
        self.recorder.history
    }

    /// What was counted so far.
    pub const fn counters(&self) -> &Counters {
        &self.recorder.counters
    }

    /// A hash of all that has happened, in order: equal for equal scenarios on any machine.
    pub const fn hash(&self) -> u64 {
        self.recorder.hash
    }

    /// How many events there were.
    pub const fn events(&self) -> u64 {
        self.recorder.events
    }

    /// Whether there is such a node or client.
    pub(crate) fn has(&self, who: Who) -> bool {
        match who {
            Who::Node(node) => usize::from(node) < self.nodes.len(),
            Who::Client(client) => usize::from(client) < self.clients.len(),
        }
    }

    /// Whether a node's process runs.
    pub fn is_up(&self, node: u8) -> bool {
        self.nodes
            .get(usize::from(node))
            .is_some_and(SimNode::is_up)
    }

    /// How long a node stays out of every lock still; `None` when it serves or is down.
    pub fn quarantine_left(&mut self, node: u8) -> Option<Duration> {
        let now = self.now;
        self.nodes.get_mut(usize::from(node))?.quarantine_left(now)
    }

    /// Something happened that checkers may want to know.
    pub(crate) fn tell(&mut self, event: Told) {
        self.recorder.push(self.now, event);
    }

    pub(crate) fn push(&mut self, at: SimTime, event: Event) {
        self.push_as(at, at.as_nanos(), event);
    }

    /// An event that comes before all others of its moment.
    pub(crate) fn push_early(&mut self, at: SimTime, event: Event) {
        self.push_as(at, 0, event);
    }

    fn push_as(&mut self, at: SimTime, since: u64, event: Event) {
        self.seq += 1;
        let place = Place {
            since,
            seq: self.seq,
        };
        let at = at.as_nanos();
        self.queue.push(ScheduledEvent { at, place, event });
    }

    /// Something happens to a node's process later, if it is still the same one.
    pub(crate) fn push_for_node(&mut self, at: SimTime, node: u8, what: NodeEvent) {
        let incarnation = self.nodes[node].incarnation;
        let event = Event::Node {
            node,
            incarnation,
            what,
        };
        self.push(at, event);
    }

    /// Until when the process stands still that an event is for, if it does.
    fn stopped_until(&self, event: &Event) -> SimTime {
        match *event {
            Event::Arrives {
                conn, is_request, ..
            }
            | Event::Closed { conn, is_request } => {
                let Conn { client, node, .. } = self.conns[conn];
                if is_request {
                    self.node_stopped[node]
                } else {
                    self.client_stopped[client]
                }
            }
            Event::Opened(conn) | Event::Refused(conn) => {
                self.client_stopped[self.conns[conn].client]
            }
            Event::Timer { client, .. }
            | Event::Act { client, .. }
            | Event::Caller { client, .. }
            | Event::Write { client, .. } => self.client_stopped[client],
            Event::Node { node, .. } => self.node_stopped[node],
            Event::Step(_)
            | Event::Drain { .. }
            | Event::GoesOn { .. }
            | Event::ClientStarts { .. }
            | Event::Replicated { .. } => SimTime::ZERO,
        }
    }

    fn happen(&mut self, event: Event) {
        if let Event::Timer { client, life } = event
            && !self.is_timer(client, life)
        {
            // One that was set anew is not an event.
            return;
        }
        let (tag, number, bytes) = event.mark();
        self.recorder
            .note(self.now.as_nanos(), [tag, number], bytes);
        let Some(event) = self.pass(event) else {
            return;
        };
        match event {
            Event::Step(step) => self.take_step(step),
            Event::Arrives {
                conn,
                is_request: true,
                message,
                bytes,
            } => self.reach_node(conn, message, bytes),
            Event::Arrives {
                conn,
                message,
                bytes,
                ..
            } => self.reach_client(conn, message, bytes),
            Event::Closed {
                conn,
                is_request: true,
            } => self.closed_at_node(conn),
            Event::Closed { conn, .. } | Event::Refused(conn) => self.closed_at_client(conn),
            Event::Opened(conn) => self.opened(conn),
            Event::Drain {
                client,
                node,
                is_requests,
            } => self.drain(client, node, is_requests),
            Event::Timer { client, .. } => self.timer(client),
            Event::Act { client, act } => self.client_acts(client, &act),
            Event::ClientStarts { client } => self.client_starts(client),
            Event::Caller {
                client,
                life,
                lock,
                what,
            } => self.chore(client, life, lock, what),
            Event::Write {
                client,
                life,
                lock,
                key,
                fencing,
            } => self.write_arrives(client, life, lock, key, fencing),
            Event::Node {
                node,
                incarnation,
                what,
            } if self.nodes[node].incarnation == incarnation => match what {
                NodeEvent::DiskDone => self.disk_done(node),
                NodeEvent::AskedToStop => self.stop_node(node),
                NodeEvent::Drained => self.drained(node),
                NodeEvent::Serving => self.look_whether_serving(node),
            },
            Event::Node { .. } => {}
            Event::Replicated { node, args } => self.nodes[node].replicate(self.now, &args),
            Event::GoesOn { who, stop } => self.goes_on(who, stop),
        }
    }

    /// Runs a scenario and keeps a hash for every event, to find where two runs part.
    pub(crate) fn hashed(scenario: &Scenario) -> Self {
        let mut world = Self::new(scenario);
        world.recorder.hashes = Some(Vec::new());
        world
    }

    /// The hash after each event.
    pub(crate) fn take_hashes(&mut self) -> Vec<u64> {
        self.recorder.hashes.take().unwrap_or_default()
    }
}

/// Any number of worlds run in threads of their own.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<World>();
};

/// What happens in one moment at most: a world of a minute has some thousand events.
const EVENTS_NOW_MAX: u32 = 100_000;

/// What happens in a world at most.
const EVENTS_MAX: u64 = 20_000_000;

/// As many as a set of members holds, and as the client takes nodes.
const MEMBERS_MAX: u8 = 16;
