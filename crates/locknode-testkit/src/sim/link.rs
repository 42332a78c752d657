//! What lies between a client and a node: delays, cuts, losses, and connections as two ordered streams of bytes.

mod aside;

use std::collections::VecDeque;
use std::time::Duration;

use locknode_engine::durable::MachineTime;
use locknode_engine::{Need, Session};
use locknode_resp::Decoder;
use smallvec::SmallVec;

use crate::fault::link_state::{LaneState, LinkState, take_one};
use crate::history::{AttemptNo, KeyNo, Message};
use crate::random::Random;
use crate::sim::parking::Parking;
use crate::sim::recorder::NO_MESSAGE;
use crate::sim::reference::Manner;
use crate::sim::world::{Event, World};
use crate::span::{SimTime, nanos};

/// What happens to what one client and one node send each other.
#[derive(Debug)]
pub(crate) struct Link {
    random: Random,
    /// What is wrong with it.
    pub(crate) state: LinkState,
    requests: Parking,
    replies: Parking,
    /// The connection of the client, one through which requests arrive a second time, and those of the client's other
    /// threads.
    pub(crate) conn: Option<u32>,
    shadows: [Option<u32>; 1 + LINES],
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) client: u8,
    pub(crate) node: u8,
    /// The client has not given it up.
    pub(crate) is_open: bool,
    /// The node's end, while that is open.
    pub(crate) end: Option<Box<NodeEnd>>,
    /// What the client sends is lost from here on; what the node sends is.
    loses_requests: bool,
    loses_replies: bool,
    /// Nobody reads the replies.
    is_shadow: bool,
    /// It is not that of the client's locks, nor does it double that one.
    pub(crate) is_aside: bool,
    /// When the last bytes of each direction arrive.
    node_at: SimTime,
    client_at: SimTime,
}

/// A node's end of a connection.
#[derive(Debug)]
pub(crate) struct NodeEnd {
    pub(crate) session: Session,
    pub(crate) manner: Manner,
    pub(crate) decoder: Decoder,
    pub(crate) unread: Vec<u8>,
    /// Replies that wait for the disk; nothing is executed meanwhile, as in the server.
    pub(crate) withheld: VecDeque<Withheld>,
    /// The client has closed, and what it had sent before is still to be executed.
    pub(crate) is_closing: bool,
}

/// Replies that have not left.
#[derive(Debug)]
pub(crate) struct Withheld {
    pub(crate) need: Need,
    pub(crate) is_logged: bool,
    pub(crate) bytes: Vec<u8>,
    pub(crate) covers: Covers,
}

/// What replies tell of: mostly of one lock.
pub(crate) type Covers = SmallVec<[Cover; 2]>;

/// A lock that a reply tells of as held, and a counter: what has to be durable when it leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cover {
    pub(crate) key: KeyNo,
    pub(crate) attempt: AttemptNo,
    /// Which time of the key's being held, on the node.
    pub(crate) holding: u32,
    /// 0 when the reply tells none.
    pub(crate) counter: u64,
    /// When the lock ends by the machine's clocks: when both have passed this.
    pub(crate) until: MachineTime,
    /// It is on the log; otherwise it rides on the restart guard.
    pub(crate) is_logged: bool,
    /// Of a lock that the reply merely tells of: when it ends in true time.
    pub(crate) shown: Option<SimTime>,
    /// The reply tells that the lock is gone, and no crash may bring it back: it had no end, or all were let go.
    pub(crate) is_gone: bool,
}

impl Link {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random,
            state: LinkState::default(),
            requests: Parking::default(),
            replies: Parking::default(),
            conn: None,
            shadows: [None; 1 + LINES],
        }
    }

    /// What is wrong with one direction, and what waits before it.
    pub(crate) const fn lane(&mut self, is_requests: bool) -> (&mut LaneState, &mut Parking) {
        let parking = if is_requests {
            &mut self.requests
        } else {
            &mut self.replies
        };
        (self.state.lane(is_requests), parking)
    }

    pub(crate) fn travel(&mut self, range: (Duration, Duration)) -> Duration {
        let nanos = self.random.between(nanos(range.0), nanos(range.1));
        Duration::from_nanos(nanos) + self.state.delay
    }
}

impl World {
    pub(crate) fn conn(&self, conn: u32) -> Option<&Conn> {
        self.conns.get(usize::try_from(conn).ok()?)
    }

    pub(crate) fn conn_mut(&mut self, conn: u32) -> Option<&mut Conn> {
        self.conns.get_mut(usize::try_from(conn).ok()?)
    }

    pub(crate) fn link_mut(&mut self, client: u8, node: u8) -> Option<&mut Link> {
        let place = usize::from(client) * self.nodes.len() + usize::from(node);
        self.links.get_mut(place)
    }

    /// A client wants a connection.
    pub(crate) fn open(&mut self, client: u8, node: u8) {
        let conn = self.new_conn(client, node, false);
        let delay = self.scenario.setup.delay;
        let is_machine_on = self
            .nodes
            .get(usize::from(node))
            .is_some_and(|node| node.run.is_some());
        let now = self.now;
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        link.conn = Some(conn);
        if link.state.is_cut() {
            // Nobody answers; the client's patience ends some time.
            return;
        }
        let there_and_back = link.travel(delay) + link.travel(delay);
        if is_machine_on {
            self.push(now + there_and_back, Event::Opened { conn })
        } else {
            self.push(now + there_and_back, Event::Refused { conn })
        }
    }

    /// A client gives its connection up; what is under way still arrives.
    pub(crate) fn give_up(&mut self, client: u8, node: u8) {
        let (now, delay) = (self.now, self.scenario.setup.delay);
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        let Some(conn) = link.conn.take() else { return };
        let travel = link.travel(delay);
        if let Some(it) = self.conn_mut(conn) {
            it.is_open = false;
            let at = it.node_at.max(now + travel);
            it.node_at = at;
            self.push(at, Event::ClosedAtNode { conn });
        }
    }

    /// The connection is open now, if its node still is there.
    pub(crate) fn opened(&mut self, conn: u32) {
        let Some(&Conn {
            client,
            node,
            is_open: true,
            ..
        }) = self.conn(conn)
        else {
            return;
        };
        let now = self.now;
        let session = self
            .nodes
            .get_mut(usize::from(node))
            .and_then(|node| node.connect(now));
        match session {
            Some(session) => {
                self.new_end(conn, node, session);
                self.tell_client(client, |player, now| player.connected(now, node));
            }
            None => {
                if self.is_stopping(node) {
                    self.recorder.counters.bump("refused-by-stop");
                }
                self.closed_at_client(conn);
            }
        }
    }

    /// A client sees the end of its connection.
    pub(crate) fn closed_at_client(&mut self, conn: u32) {
        let Some(it) = self.conn_mut(conn) else {
            return;
        };
        if !it.is_open {
            return;
        }
        it.is_open = false;
        let (client, node) = (it.client, it.node);
        if let Some(link) = self.link_mut(client, node) {
            link.conn = None;
        }
        self.tell_client(client, |player, now| player.disconnected(now, node));
    }

    /// The end of a connection comes to a client, unless nothing passes.
    pub(crate) fn end_reaches_client(&mut self, conn: u32) {
        if !self.is_parked(conn, false, || Event::ClosedAtClient { conn }) {
            self.closed_at_client(conn)
        }
    }

    /// A node sees the end of a connection, after all that was sent before it, unless nothing passes. What waits there behind
    /// a reply that the disk holds back is executed before the node looks for more, as in the server.
    pub(crate) fn closed_at_node(&mut self, conn: u32) {
        if self.is_parked(conn, true, || Event::ClosedAtNode { conn }) {
            return;
        }
        let end = self.conn_mut(conn).and_then(|it| it.end.as_mut());
        match end {
            Some(end) if !end.withheld.is_empty() => end.is_closing = true,
            _ => self.drop_end(conn),
        }
    }

    /// A node has an end of a connection.
    fn new_end(&mut self, conn: u32, node: u8, session: Session) {
        if let Some(it) = self.conn_mut(conn) {
            it.end = Some(Box::new(NodeEnd::new(session)));
        }
        if let Some(live) = self.live.get_mut(usize::from(node)) {
            live.push(conn);
        }
    }

    /// A node has no end of a connection any more; replies that wait there never leave.
    pub(crate) fn drop_end(&mut self, conn: u32) {
        let Some(it) = self.conn_mut(conn) else {
            return;
        };
        let (client, node, end) = (it.client, it.node, it.end.take());
        if let Some(live) = self.live.get_mut(usize::from(node)) {
            live.retain(|other| *other != conn);
        }
        let withheld = end.into_iter().flat_map(|end| end.withheld);
        for cover in withheld.flat_map(|withheld| withheld.covers) {
            self.never_leaves(node, client, &cover);
        }
        self.look_whether_drained(node);
    }

    /// A node closes a connection, or its process is gone and the machine says so.
    pub(crate) fn hang_up(&mut self, conn: u32) {
        let (now, delay) = (self.now, self.scenario.setup.delay);
        let Some(&Conn { client, node, .. }) = self.conn(conn) else {
            return;
        };
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        let travel = link.travel(delay);
        self.drop_end(conn);
        if let Some(it) = self.conn_mut(conn) {
            let at = it.client_at.max(now + travel);
            it.client_at = at;
            self.push(at, Event::ClosedAtClient { conn });
        }
    }

    /// A client writes to a node.
    pub(crate) fn send_request(&mut self, client: u8, node: u8, bytes: Vec<u8>) {
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        let Some(conn) = link.conn else { return };
        let is_doubled = take_one(&mut link.state.doubles);
        let is_dropped = take_one(&mut link.state.requests.losses);
        let message = self.record(client, node, true, &bytes);
        if is_doubled {
            self.recorder.counters.bump("duplicated-request");
            self.send_shadow(client, node, 0, bytes.clone());
        }
        let Some(it) = self.conn_mut(conn) else {
            return;
        };
        if is_dropped {
            it.loses_requests = true;
            self.recorder.counters.bump("lost-request");
        } else if !it.loses_requests {
            self.send(conn, true, message, bytes);
        }
    }

    /// A node writes to a client.
    pub(crate) fn send_reply(&mut self, conn: u32, bytes: Vec<u8>) {
        let Some(&Conn {
            client,
            node,
            is_shadow,
            ..
        }) = self.conn(conn)
        else {
            return;
        };
        if is_shadow {
            return;
        }
        let message = self.record(client, node, false, &bytes);
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        let is_dropped = take_one(&mut link.state.replies.losses);
        let Some(it) = self.conn_mut(conn) else {
            return;
        };
        if is_dropped {
            it.loses_replies = true;
            self.recorder.counters.bump("lost-reply");
        } else if !it.loses_replies {
            self.send(conn, false, message, bytes);
        }
    }

    /// Bytes arrive at a node, unless nothing passes.
    pub(crate) fn reach_node(&mut self, conn: u32, message: u32, bytes: Vec<u8>) {
        let mut bytes = Some(bytes);
        let event = || Event::ToNode {
            conn,
            message,
            bytes: bytes.take().unwrap_or_default(),
        };
        if self.is_parked(conn, true, event) {
            return;
        }
        self.recorder.arrived(message, self.now);
        let Some(it) = self.conn(conn) else { return };
        match it.end {
            Some(_) => self.serve(conn, bytes.unwrap_or_default()),
            // The node has started anew meanwhile; its machine says so.
            None if it.is_open && self.is_up(it.node) => self.hang_up(conn),
            None => {}
        }
    }

    /// Bytes arrive at a client, unless nothing passes.
    pub(crate) fn reach_client(&mut self, conn: u32, message: u32, bytes: Vec<u8>) {
        let mut bytes = Some(bytes);
        let event = || Event::ToClient {
            conn,
            message,
            bytes: bytes.take().unwrap_or_default(),
        };
        if self.is_parked(conn, false, event) {
            return;
        }
        let Some(&Conn {
            client,
            node,
            is_open: true,
            ..
        }) = self.conn(conn)
        else {
            return;
        };
        self.recorder.arrived(message, self.now);
        let bytes = bytes.unwrap_or_default();
        self.tell_client(client, |player, now| player.received(now, node, &bytes));
        self.buffers.recycle(bytes);
    }

    /// The connection between the two breaks; both ends notice.
    pub(crate) fn reset(&mut self, client: u8, node: u8) {
        let Some(conn) = self.link_mut(client, node).and_then(|link| link.conn) else {
            return;
        };
        if let Some(it) = self.conn_mut(conn) {
            it.loses_requests = true;
            it.loses_replies = true;
        }
        self.hang_up(conn);
    }

    /// The node's process is gone, and with it its ends of all connections.
    pub(crate) fn drop_ends(&mut self, node: u8, is_told: bool) {
        let live = self.live.get_mut(usize::from(node)).map(std::mem::take);
        for conn in live.unwrap_or_default() {
            let Some(it) = self.conn_mut(conn) else {
                continue;
            };
            if it.end.take().is_some() && is_told && it.is_open {
                self.hang_up(conn);
            }
        }
    }

    fn new_conn(&mut self, client: u8, node: u8, is_shadow: bool) -> u32 {
        self.conns.push(Conn {
            client,
            node,
            is_open: !is_shadow,
            end: None,
            loses_requests: false,
            loses_replies: false,
            is_shadow,
            is_aside: false,
            node_at: SimTime::ZERO,
            client_at: SimTime::ZERO,
        });
        u32::try_from(self.conns.len() - 1).unwrap_or(u32::MAX)
    }

    /// Puts bytes under way, now and then in two pieces.
    fn send(&mut self, conn: u32, is_request: bool, message: u32, mut bytes: Vec<u8>) {
        let (now, delay) = (self.now, self.scenario.setup.delay);
        let Some(&Conn {
            client,
            node,
            node_at,
            client_at,
            ..
        }) = self.conn(conn)
        else {
            return;
        };
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        let travel = link.travel(delay) + link.state.lane(is_request).take_late();
        let mut at = (now + travel).max(if is_request { node_at } else { client_at });
        let mut second = None;
        if bytes.len() > 1 && link.random.chance(CUT_PERCENT) {
            let rest = bytes.split_off(1 + link.random.index(bytes.len() - 1));
            second = Some((at + link.travel(delay), rest));
        }
        self.push(at, arrival(conn, is_request, message, bytes));
        if let Some((later, rest)) = second {
            self.recorder.counters.bump("message-in-two-pieces");
            at = later;
            self.push(at, arrival(conn, is_request, NO_MESSAGE, rest));
        }
        if let Some(it) = self.conn_mut(conn) {
            if is_request {
                it.node_at = at
            } else {
                it.client_at = at
            }
        }
    }

    fn record(&mut self, client: u8, node: u8, is_request: bool, bytes: &[u8]) -> u32 {
        let sent = self.now;
        self.recorder.message(|| Message {
            client,
            node,
            is_request,
            sent,
            arrived: None,
            text: words(bytes),
        })
    }
}

impl NodeEnd {
    /// Whether no reply is in the way of what has been read, or of the end of the connection.
    pub(crate) fn is_ready(&self) -> bool {
        self.withheld.is_empty() && (self.is_closing || !self.unread.is_empty())
    }

    fn new(session: Session) -> Self {
        Self {
            session,
            manner: Manner::default(),
            decoder: Decoder::new(),
            unread: Vec::new(),
            withheld: VecDeque::new(),
            is_closing: false,
        }
    }
}

const fn arrival(conn: u32, is_request: bool, message: u32, bytes: Vec<u8>) -> Event {
    if is_request {
        Event::ToNode {
            conn,
            message,
            bytes,
        }
    } else {
        Event::ToClient {
            conn,
            message,
            bytes,
        }
    }
}

/// The words of a message for people: without lengths, with long ones cut.
fn words(bytes: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(bytes);
    let mut words = String::new();
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        if line.starts_with(['*', '$']) && line.len() > 1 && line != "$-1" {
            continue;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        match line.char_indices().nth(WORD_MAX) {
            Some((end, _)) => {
                words.push_str(line.get(..end).unwrap_or_default());
                words.push_str("..");
            }
            None => words.push_str(line),
        }
        if words.len() > TEXT_MAX {
            words.push_str(" ...");
            break;
        }
    }
    words.into()
}

/// How many connections a client has to a node besides that of its locks.
const LINES: usize = 2;

/// One message in twenty arrives in two pieces.
const CUT_PERCENT: u64 = 5;

/// Of a word so much is shown, enough of a token to tell it from others.
const WORD_MAX: usize = 12;

const TEXT_MAX: usize = 160;
