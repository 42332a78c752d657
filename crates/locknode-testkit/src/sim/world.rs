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

use crate::fault::{Crash, Fault, Who};
use crate::history::{Event as Told, History};
use crate::random::Random;
use crate::scenario::{ClientAction, Dialect, Hook, Scenario};
use crate::sim::buffers::Buffers;
use crate::sim::client::SimClient;
use crate::sim::link::{Conn, Link};
use crate::sim::node::SimNode;
use crate::sim::queue::{Place, Queue, ScheduledEvent};
use crate::sim::recorder::{Counters, Recorder, Recording};
use crate::span::{SimTime, nanos};

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
    present: Place,
    pub(crate) nodes: Vec<SimNode>,
    pub(crate) clients: Vec<SimClient>,
    pub(crate) conns: Vec<Conn>,
    /// By node, the connections that it has an end of.
    pub(crate) live: Vec<Vec<u32>>,
    pub(crate) links: Vec<Link>,
    /// When the process of each node goes on, and of each client.
    pub(crate) node_stopped: Vec<SimTime>,
    pub(crate) client_stopped: Vec<SimTime>,
    /// Whose attempt each node holds under each key, as its replies said.
    pub(crate) mirrors: Vec<Vec<Option<u32>>>,
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

/// What happens in a world.
#[derive(Debug)]
pub(crate) enum Event {
    /// A step of the scenario.
    Step(usize),
    /// Bytes arrive at a node.
    ToNode {
        conn: u32,
        message: u32,
        bytes: Vec<u8>,
    },
    /// Bytes arrive at a client.
    ToClient {
        conn: u32,
        message: u32,
        bytes: Vec<u8>,
    },
    /// A client's connection is open, or refused.
    Opened {
        conn: u32,
    },
    Refused {
        conn: u32,
    },
    /// A client sees the end of a connection; a node does.
    ClosedAtClient {
        conn: u32,
    },
    ClosedAtNode {
        conn: u32,
    },
    /// What waited before a closed link arrives, in its order.
    Drain {
        client: u8,
        node: u8,
        is_requests: bool,
    },
    /// A client's timer.
    Timer {
        client: u8,
        life: u32,
    },
    /// A client's process starts again.
    ClientStarts {
        client: u8,
    },
    /// What a caller was to do while its process stood still.
    ClientAction {
        client: u8,
        act: Box<ClientAction>,
    },
    /// Something that a caller does under a lock.
    Caller {
        client: u8,
        life: u32,
        lock: u32,
        what: Chore,
    },
    /// A caller's write comes to the resource: it was sent when the lock was held, and nobody looks again.
    Write {
        client: u8,
        life: u32,
        lock: u32,
        key: u16,
        fencing: Option<u64>,
    },
    /// A node's disk is done with what it was doing.
    DiskDone {
        node: u8,
        incarnation: u32,
    },
    /// A node that stood still is asked to end in order.
    AskedToStop {
        node: u8,
        incarnation: u32,
    },
    /// A node that ends in order waits for its clients no longer.
    Drained {
        node: u8,
        incarnation: u32,
    },
    /// A node's quarantine may be over.
    Serving {
        node: u8,
        incarnation: u32,
    },
    /// A command reaches a node's replica.
    Replicated {
        node: u8,
        args: Vec<Vec<u8>>,
    },
    /// A process or machine goes on.
    GoesOn {
        who: Who,
        stop: Stop,
    },
}

/// What a caller does under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    End,
    Extend,
    Write,
}

/// How somebody stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Pause,
    Suspend,
    Freeze,
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
        let links = usize::from(nodes) * usize::from(clients);
        let link = |number: usize| Link::new(Random::stream(setup.seed, "link", number as u64));
        let mut world = Self {
            now: SimTime::ZERO,
            queue: Queue::default(),
            seq: 0,
            present: Place::default(),
            nodes: (0..nodes).map(|node| SimNode::new(setup, node)).collect(),
            clients: (0..clients)
                .map(|client| SimClient::new(setup, client))
                .collect(),
            conns: Vec::new(),
            live: vec![Vec::new(); nodes.into()],
            links: (0..links).map(link).collect(),
            node_stopped: vec![SimTime::ZERO; nodes.into()],
            client_stopped: vec![SimTime::ZERO; clients.into()],
            mirrors: vec![Vec::new(); nodes.into()],
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
        for step in 0..scenario.steps.len() {
            world.plan(step);
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
        while let Some(at) = self.queue.next_at() {
            if at > end.as_nanos() || self.is_stuck {
                break;
            }
            self.step();
        }
        self.now = self.now.max(end);
        self.recorder.history.end = self.now;
    }

    /// Runs until something has happened; whether it has, before the scenario's end.
    pub fn run_until_seen(&mut self, mut is_it: impl FnMut(&Told) -> bool) -> bool {
        let end = self.scenario.setup.run_for;
        let mut seen = self.recorder.history.entries.len();
        while let Some(at) = self.queue.next_at() {
            if at > nanos(end) || self.is_stuck {
                break;
            }
            self.step();
            let fresh = self
                .recorder
                .history
                .entries
                .get(seen..)
                .unwrap_or_default();
            if fresh.iter().any(|entry| is_it(&entry.event)) {
                return true;
            }
            seen = self.recorder.history.entries.len();
        }
        false
    }

    /// Lets the next event happen; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(due) = self.queue.pop() else {
            return false;
        };
        let now = SimTime::from_nanos(due.at);
        self.events_now = match now == self.now {
            true => self.events_now + 1,
            false => 0,
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
        if let Some(goes_on) = self.stopped_until(&due.event)
            && goes_on > self.now
        {
            due.at = goes_on.as_nanos();
            self.queue.push(due);
            return;
        }
        self.present = due.place;
        self.happen(due.event);
    }

    /// The event that happens now, to come later in its place.
    pub(crate) const fn postponed(&self, event: Event) -> ScheduledEvent {
        ScheduledEvent {
            at: self.now.as_nanos(),
            place: self.present,
            event,
        }
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

    /// Until when the process stands still that an event is for.
    fn stopped_until(&self, event: &Event) -> Option<SimTime> {
        let of_client = |client: u8| self.client_stopped.get(usize::from(client)).copied();
        let of_node = |node: u8| self.node_stopped.get(usize::from(node)).copied();
        let conn = |conn: u32| self.conn(conn);
        match event {
            Event::ToNode { conn: it, .. } | Event::ClosedAtNode { conn: it } => {
                of_node(conn(*it)?.node)
            }
            Event::ToClient { conn: it, .. }
            | Event::Opened { conn: it }
            | Event::Refused { conn: it }
            | Event::ClosedAtClient { conn: it } => of_client(conn(*it)?.client),
            Event::Timer { client, .. }
            | Event::ClientAction { client, .. }
            | Event::Caller { client, .. }
            | Event::Write { client, .. } => of_client(*client),
            Event::DiskDone { node, .. }
            | Event::AskedToStop { node, .. }
            | Event::Drained { node, .. }
            | Event::Serving { node, .. } => of_node(*node),
            Event::Step(_)
            | Event::Drain { .. }
            | Event::GoesOn { .. }
            | Event::ClientStarts { .. }
            | Event::Replicated { .. } => None,
        }
    }

    fn happen(&mut self, event: Event) {
        let at = self.now.as_nanos();
        let note = |recorder: &mut Recorder, tag: u64, what: u64, bytes: &[u8]| {
            recorder.note(at, [tag, what], bytes);
        };
        let recorder = &mut self.recorder;
        match event {
            Event::Step(step) => {
                note(recorder, 1, step as u64, &[]);
                self.take_step(step);
            }
            Event::ToNode {
                conn,
                message,
                bytes,
            } => {
                note(recorder, 2, conn.into(), &bytes);
                self.reach_node(conn, message, bytes);
            }
            Event::ToClient {
                conn,
                message,
                bytes,
            } => {
                note(recorder, 3, conn.into(), &bytes);
                self.reach_client(conn, message, bytes);
            }
            Event::Opened { conn } => {
                note(recorder, 4, conn.into(), &[]);
                self.opened(conn);
            }
            Event::Refused { conn } => {
                note(recorder, 5, conn.into(), &[]);
                self.closed_at_client(conn);
            }
            Event::ClosedAtClient { conn } => {
                note(recorder, 6, conn.into(), &[]);
                self.end_reaches_client(conn);
            }
            Event::Drain {
                client,
                node,
                is_requests,
            } => {
                note(recorder, 17, node.into(), &[client]);
                self.drain(client, node, is_requests);
            }
            Event::ClosedAtNode { conn } => {
                note(recorder, 7, conn.into(), &[]);
                self.closed_at_node(conn);
            }
            Event::Timer { client, life } => {
                // One that was set anew is not an event.
                if self.is_timer(client, life) {
                    note(&mut self.recorder, 8, client.into(), &[]);
                    self.timer(client);
                }
            }
            Event::ClientAction { client, act } => {
                note(recorder, 16, client.into(), &[]);
                self.client_acts(client, &act);
            }
            Event::ClientStarts { client } => {
                note(recorder, 9, client.into(), &[]);
                self.client_starts(client);
            }
            Event::Caller {
                client,
                life,
                lock,
                what,
            } => {
                note(recorder, 10, lock.into(), &[what as u8]);
                self.chore(client, life, lock, what);
            }
            Event::Write {
                client,
                life,
                lock,
                key,
                fencing,
            } => {
                note(recorder, 15, lock.into(), &[]);
                self.write_arrives(client, life, lock, key, fencing);
            }
            Event::DiskDone { node, incarnation } => {
                note(recorder, 11, node.into(), &[]);
                self.disk_done(node, incarnation);
            }
            Event::AskedToStop { node, incarnation } => {
                note(recorder, 18, node.into(), &[]);
                self.stop_node(node, incarnation);
            }
            Event::Drained { node, incarnation } => {
                note(recorder, 19, node.into(), &[]);
                self.drained(node, incarnation);
            }
            Event::Serving { node, incarnation } => {
                note(recorder, 12, node.into(), &[]);
                self.look_whether_serving(node, incarnation);
            }
            Event::Replicated { node, args } => {
                note(recorder, 14, node.into(), &[]);
                self.replicate(node, &args);
            }
            Event::GoesOn { who, stop } => {
                note(recorder, 13, 0, &[]);
                self.goes_on(who, stop);
            }
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

    pub(crate) fn crash_node(&mut self, node: u8, how: Crash) {
        self.node_down(node, how);
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
