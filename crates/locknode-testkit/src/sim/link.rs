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
use crate::sim::backlog::Backlog;
use crate::sim::event::Event;
use crate::sim::recorder::NO_MESSAGE;
use crate::sim::reference::Manner;
use crate::sim::world::World;
use crate::span::{SimTime, nanos};

/// What happens to what one client and one node send each other.
#[derive(Debug)]
pub(crate) struct Link {
    random: Random,
    /// What is wrong with it.
    pub(crate) state: LinkState,
    requests: Backlog,
    replies: Backlog,
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
    /// The node's end, while it is open.
    pub(crate) end: Option<Box<NodeEnd>>,
    requests: Lane,
    replies: Lane,
    /// Nobody reads the replies.
    is_shadow: bool,
    /// It is not that of the client's locks, nor does it double that one.
    pub(crate) is_aside: bool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Lane {
    /// What is sent is lost from here on.
    is_broken: bool,
    /// When the last bytes arrive.
    arrives_at: SimTime,
}

/// A node's end of a connection.
#[derive(Debug)]
pub(crate) struct NodeEnd {
    pub(crate) session: Session,
    pub(crate) manner: Manner,
    pub(crate) decoder: Decoder,
    pub(crate) unread: Vec<u8>,
    /// Replies that wait for the disk; nothing is executed meanwhile, as in the server.
    pub(crate) pending: VecDeque<PendingReplies>,
    /// The client has closed, and what it had sent before is still to be executed.
    pub(crate) is_closing: bool,
}

/// Replies that wait for the disk.
#[derive(Debug)]
pub(crate) struct PendingReplies {
    pub(crate) need: Need,
    pub(crate) is_logged: bool,
    pub(crate) bytes: Vec<u8>,
    pub(crate) claims: Claims,
}

/// What replies claim: mostly of one lock.
pub(crate) type Claims = SmallVec<[Claim; 2]>;

/// What a reply claims of a lock, that it is held or gone, and of a counter: this has to be durable when the reply is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    pub(crate) key: KeyNo,
    pub(crate) attempt: AttemptNo,
    /// The number of this holding of the key on the node.
    pub(crate) holding: u32,
    /// 0 when the reply says none.
    pub(crate) counter: u64,
    /// When the lock expires by the machine's clocks: when both have passed this.
    pub(crate) until: MachineTime,
    /// It is on the log; otherwise it rides on the restart guard.
    pub(crate) is_logged: bool,
    /// Of a lock that the reply merely shows: when it expires in true time.
    pub(crate) shown: Option<SimTime>,
    /// The lock is gone, and no crash may bring it back: it had no end, or all were released.
    pub(crate) is_gone: bool,
}

impl Link {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random,
            state: LinkState::default(),
            requests: Backlog::default(),
            replies: Backlog::default(),
            conn: None,
            shadows: [None; 1 + LINES],
        }
    }

    /// What is wrong with one direction, and what waits before it.
    pub(crate) const fn lane(&mut self, is_requests: bool) -> (&mut LaneState, &mut Backlog) {
        let backlog = if is_requests {
            &mut self.requests
        } else {
            &mut self.replies
        };
        (self.state.lane(is_requests), backlog)
    }

    pub(crate) fn travel(&mut self, range: (Duration, Duration)) -> Duration {
        let nanos = self.random.between(nanos(range.0), nanos(range.1));
        Duration::from_nanos(nanos) + self.state.delay
    }
}

impl Conn {
    const fn lane(&mut self, is_requests: bool) -> &mut Lane {
        if is_requests {
            &mut self.requests
        } else {
            &mut self.replies
        }
    }
}

impl World {
    /// A client wants a connection.
    pub(crate) fn open(&mut self, client: u8, node: u8) {
        let conn = self.new_conn(client, node, false);
        let delay = self.scenario.setup.delay;
        let link = &mut self.links[client][node];
        link.conn = Some(conn);
        if link.state.is_cut() {
            // Nobody answers, until the client gives up.
            return;
        }
        let there_and_back = link.travel(delay) + link.travel(delay);
        let event = if self.is_up(node) {
            Event::Opened(conn)
        } else {
            Event::Refused(conn)
        };
        self.push(self.now + there_and_back, event);
    }

    /// A client gives its connection up; what is under way still arrives.
    pub(crate) fn give_up(&mut self, client: u8, node: u8) {
        if let Some(conn) = self.links[client][node].conn.take() {
            let travel = self.travel(conn);
            self.conns[conn].is_open = false;
            self.send_end(conn, true, travel);
        }
    }

    /// The connection is open now, if its node still is there.
    pub(crate) fn opened(&mut self, conn: u32) {
        let Conn {
            client,
            node,
            is_open,
            ..
        } = self.conns[conn];
        if !is_open {
            return;
        }
        if let Some(session) = self.nodes[node].connect(self.now) {
            self.new_end(conn, session);
            self.tell_client(client, |player, now| player.connected(now, node));
        } else {
            if self.is_stopping(node) {
                self.recorder.counters.bump("refused-by-stop");
            }
            self.closed_at_client(conn);
        }
    }

    /// A client sees the end of its connection.
    pub(crate) fn closed_at_client(&mut self, conn: u32) {
        let it = &mut self.conns[conn];
        if std::mem::take(&mut it.is_open) {
            let (client, node) = (it.client, it.node);
            self.links[client][node].conn = None;
            self.tell_client(client, |player, now| player.disconnected(now, node));
        }
    }

    /// A node sees the end of a connection, after all that was sent before it. What waits there behind a reply that the disk
    /// holds back is executed before the node looks for more, as in the server.
    pub(crate) fn closed_at_node(&mut self, conn: u32) {
        match &mut self.conns[conn].end {
            Some(end) if !end.pending.is_empty() => end.is_closing = true,
            _ => self.drop_end(conn),
        }
    }

    /// A node has an end of a connection.
    fn new_end(&mut self, conn: u32, session: Session) {
        let it = &mut self.conns[conn];
        it.end = Some(Box::new(NodeEnd::new(session)));
        self.live[it.node].push(conn);
    }

    /// A node has no end of a connection any more; replies that wait there are never sent.
    pub(crate) fn drop_end(&mut self, conn: u32) {
        let it = &mut self.conns[conn];
        let (client, node, end) = (it.client, it.node, it.end.take());
        self.live[node].retain(|other| *other != conn);
        let pending = end.into_iter().flat_map(|end| end.pending);
        for claim in pending.flat_map(|pending| pending.claims) {
            self.never_leaves(node, client, &claim);
        }
        self.look_whether_drained(node);
    }

    /// A node closes a connection, or its process is gone and the machine says so.
    pub(crate) fn hang_up(&mut self, conn: u32) {
        let travel = self.travel(conn);
        self.drop_end(conn);
        self.send_end(conn, false, travel);
    }

    /// How long the next message of a connection travels.
    fn travel(&mut self, conn: u32) -> Duration {
        let Conn { client, node, .. } = self.conns[conn];
        self.links[client][node].travel(self.scenario.setup.delay)
    }

    /// The end of a connection follows what was sent before it.
    fn send_end(&mut self, conn: u32, is_request: bool, travel: Duration) {
        let lane = self.conns[conn].lane(is_request);
        let at = lane.arrives_at.max(self.now + travel);
        lane.arrives_at = at;
        self.push(at, Event::Closed { conn, is_request });
    }

    /// A client writes to a node.
    pub(crate) fn send_request(&mut self, client: u8, node: u8, bytes: Vec<u8>) {
        let link = &mut self.links[client][node];
        let Some(conn) = link.conn else { return };
        if take_one(&mut link.state.doubles) {
            self.recorder.counters.bump("duplicated-request");
            self.send_shadow(client, node, 0, bytes.clone());
        }
        self.write(conn, true, bytes);
    }

    /// A node writes to a client.
    pub(crate) fn send_reply(&mut self, conn: u32, bytes: Vec<u8>) {
        if !self.conns[conn].is_shadow {
            self.write(conn, false, bytes);
        }
    }

    /// One end of a connection writes; what it writes may get lost, and with it all that follows.
    fn write(&mut self, conn: u32, is_request: bool, bytes: Vec<u8>) {
        let it = &mut self.conns[conn];
        let (client, node) = (it.client, it.node);
        let sent = self.now;
        let message = self.recorder.message(|| Message {
            client,
            node,
            is_request,
            sent,
            arrived: None,
            text: words(&bytes),
        });
        let (state, _) = self.links[client][node].lane(is_request);
        let lane = it.lane(is_request);
        if take_one(&mut state.losses) {
            lane.is_broken = true;
            self.recorder.counters.bump(if is_request {
                "lost-request"
            } else {
                "lost-reply"
            });
        } else if !lane.is_broken {
            self.send(conn, is_request, message, bytes);
        }
    }

    /// Bytes arrive at a node.
    pub(crate) fn reach_node(&mut self, conn: u32, message: u32, bytes: Vec<u8>) {
        self.recorder.arrived(message, self.now);
        let it = &self.conns[conn];
        match it.end {
            Some(_) => self.serve(conn, bytes),
            // The node has started anew meanwhile; its machine says so.
            None if it.is_open && self.is_up(it.node) => self.hang_up(conn),
            None => {}
        }
    }

    /// Bytes arrive at a client.
    pub(crate) fn reach_client(&mut self, conn: u32, message: u32, bytes: Vec<u8>) {
        let Conn {
            client,
            node,
            is_open,
            ..
        } = self.conns[conn];
        if is_open {
            self.recorder.arrived(message, self.now);
            self.tell_client(client, |player, now| player.received(now, node, &bytes));
            self.buffers.recycle(bytes);
        }
    }

    /// The connection between the two breaks; both ends notice.
    pub(crate) fn reset(&mut self, client: u8, node: u8) {
        if let Some(conn) = self.links[client][node].conn {
            let it = &mut self.conns[conn];
            it.requests.is_broken = true;
            it.replies.is_broken = true;
            self.hang_up(conn);
        }
    }

    /// The node's process is gone, and with it its ends of all connections.
    pub(crate) fn drop_ends(&mut self, node: u8, is_told: bool) {
        for conn in std::mem::take(&mut self.live[node]) {
            let it = &mut self.conns[conn];
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
            requests: Lane::default(),
            replies: Lane::default(),
            is_shadow,
            is_aside: false,
        })
    }

    /// Puts bytes under way, now and then in two pieces.
    fn send(&mut self, conn: u32, is_request: bool, message: u32, mut bytes: Vec<u8>) {
        let (now, delay) = (self.now, self.scenario.setup.delay);
        let it = &mut self.conns[conn];
        let link = &mut self.links[it.client][it.node];
        let lane = it.lane(is_request);
        let travel = link.travel(delay) + link.state.lane(is_request).take_late();
        let at = (now + travel).max(lane.arrives_at);
        lane.arrives_at = at;
        let mut rest = None;
        if bytes.len() > 1 && link.random.chance(CUT_PERCENT) {
            rest = Some(bytes.split_off(1 + link.random.index(bytes.len() - 1)));
            lane.arrives_at = at + link.travel(delay);
        }
        let later = lane.arrives_at;
        let arrives = |message, bytes| Event::Arrives {
            conn,
            is_request,
            message,
            bytes,
        };
        self.push(at, arrives(message, bytes));
        if let Some(rest) = rest {
            self.recorder.counters.bump("message-in-two-pieces");
            self.push(later, arrives(NO_MESSAGE, rest));
        }
    }
}

impl NodeEnd {
    /// Whether no reply is in the way of what has been read, or of the end of the connection.
    pub(crate) fn is_ready(&self) -> bool {
        self.pending.is_empty() && (self.is_closing || !self.unread.is_empty())
    }

    fn new(session: Session) -> Self {
        Self {
            session,
            manner: Manner::default(),
            decoder: Decoder::new(),
            unread: Vec::new(),
            pending: VecDeque::new(),
            is_closing: false,
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
