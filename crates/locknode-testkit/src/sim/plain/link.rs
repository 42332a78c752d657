//! One node's connection: what was asked and in which order the replies have to come.
//!
//! ```text
//!  Idle --first request--> Connecting --connected--> Up
//!                            ^    |                  |
//!                            |    +-----> Down <-----+  broken, a reply late
//!                            +---delay-----+
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use locknode_resp::{Reply, ReplyDecoder, ReplyLimits};
use redlock_proto::Time;

use crate::sim::notice::ClientNotice;
use crate::sim::plain::request::{Asked, What};

/// One node's connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    node: u8,
    phase: Phase,
    connect_timeout: Duration,
    /// What is to be written to the node.
    pub(super) out: Vec<u8>,
    /// What the next replies are for, oldest first.
    unanswered: VecDeque<Asked>,
    /// What is sent when there is a connection.
    waiting: Vec<(Asked, Vec<u8>)>,
    /// What gets no reply any more.
    pub(super) failed: Vec<Asked>,
    /// Counts what ends the watching of keys: transactions, and connections.
    pub(super) watch: u32,
    /// The beginning of a reply.
    input: Vec<u8>,
    decoder: ReplyDecoder,
    /// Connections in a row that brought no reply.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Connecting { until: Time },
    Up,
    Down { retry_at: Time },
}

impl Link {
    pub(super) fn new(node: u8, connect_timeout: Duration) -> Self {
        Self {
            node,
            phase: Phase::Idle,
            connect_timeout,
            out: Vec::new(),
            unanswered: VecDeque::new(),
            waiting: Vec::new(),
            failed: Vec::new(),
            watch: 0,
            input: Vec::new(),
            decoder: ReplyDecoder::new(LIMITS),
            failures: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// Sends a request, now or when there is a connection.
    pub(super) fn ask(
        &mut self,
        now: Time,
        asked: Asked,
        request: Vec<u8>,
        notices: &mut VecDeque<ClientNotice>,
    ) {
        if matches!(asked.what, What::Commit | What::Unwatch) {
            self.watch += 1;
        }
        if self.is_up() {
            return self.send(asked, &request);
        }
        self.waiting.push((asked, request));
        if self.phase == Phase::Idle {
            self.connect(now, notices);
        }
    }

    /// The connection is open: what has not waited too long is sent.
    pub(super) fn connected(&mut self, now: Time) {
        if !matches!(self.phase, Phase::Connecting { .. }) {
            return;
        }
        self.phase = Phase::Up;
        for (asked, bytes) in std::mem::take(&mut self.waiting) {
            if asked.deadline <= now {
                self.waiting.push((asked, bytes));
            } else {
                self.send(asked, &bytes);
            }
        }
    }

    fn send(&mut self, asked: Asked, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        for _ in 1..asked.what.replies() {
            let what = What::Queued;
            self.unanswered.push_back(Asked { what, ..asked });
        }
        self.unanswered.push_back(asked);
    }

    /// The connection is gone, and with it what was asked through it.
    pub(super) fn broke(&mut self, now: Time) {
        if !matches!(self.phase, Phase::Connecting { .. } | Phase::Up) {
            return;
        }
        self.watch += 1;
        self.failed.extend(self.unanswered.drain(..));
        self.out.clear();
        self.input.clear();
        self.decoder = ReplyDecoder::new(LIMITS);
        let delay = RECONNECT_MIN * (1 << self.failures.min(RECONNECT_DOUBLINGS));
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Down {
            retry_at: now + delay,
        };
    }

    /// Closes the connection: in which order its replies come is not to be relied upon.
    pub(super) fn give_up(&mut self, now: Time, notices: &mut VecDeque<ClientNotice>) {
        notices.push_back(ClientNotice::Disconnect(self.node));
        self.broke(now);
    }

    /// Takes replies apart, each with what it is for; false if the bytes are none.
    pub(super) fn receive(&mut self, bytes: &[u8], replies: &mut Vec<(Asked, Reply)>) -> bool {
        if !self.is_up() {
            return true;
        }
        self.input.extend_from_slice(bytes);
        let mut start = 0;
        let makes_sense = loop {
            match self.decoder.decode(&self.input[start..]) {
                Ok(Some((reply, len))) => {
                    start += len;
                    self.failures = 0;
                    // What nobody asked for is nobody's.
                    if let Some(asked) = self.unanswered.pop_front() {
                        replies.push((asked, reply));
                    }
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        self.input.drain(..start);
        makes_sense
    }

    /// Time passed: who has not answered has failed. After a reply that is late the next one is not the reply to the
    /// next request, so the connection is closed.
    pub(super) fn on_time(
        &mut self,
        now: Time,
        keeps_connection: bool,
        notices: &mut VecDeque<ClientNotice>,
    ) {
        let late = |asked: &Asked| asked.deadline <= now;
        let waiting = self.waiting.extract_if(.., |(asked, _)| late(asked));
        self.failed.extend(waiting.map(|(asked, _)| asked));
        if self.unanswered.iter().any(late) {
            if keeps_connection {
                self.failed
                    .extend(self.unanswered.iter().copied().filter(late));
                self.unanswered.retain(|asked| !late(asked));
            } else {
                self.give_up(now, notices);
            }
        }
        match self.phase {
            Phase::Connecting { until } if until <= now => self.give_up(now, notices),
            Phase::Down { retry_at } if retry_at <= now => self.connect(now, notices),
            _ => {}
        }
    }

    pub(super) fn next_deadline(&self) -> Time {
        let own = match self.phase {
            Phase::Connecting { until } => until,
            Phase::Down { retry_at } => retry_at,
            Phase::Idle | Phase::Up => Time::NEVER,
        };
        let waiting = self.waiting.iter().map(|(asked, _)| asked.deadline);
        let unanswered = self.unanswered.iter().map(|asked| asked.deadline);
        waiting.chain(unanswered).fold(own, Time::min)
    }

    fn connect(&mut self, now: Time, notices: &mut VecDeque<ClientNotice>) {
        self.phase = Phase::Connecting {
            until: now + self.connect_timeout,
        };
        notices.push_back(ClientNotice::Connect(self.node));
    }
}

/// The pause before a connection is opened again: shorter than most times of a node, so that a request has a chance ...
const RECONNECT_MIN: Duration = Duration::from_millis(20);
/// ... and up to 640 ms, so that a node that is away for long costs little.
const RECONNECT_DOUBLINGS: u32 = 5;

/// No reply to what is asked here has more than four elements in an array; an error quotes what was sent.
const LIMITS: ReplyLimits = ReplyLimits {
    depth_max: 2,
    depth_kept: 2,
    elements_max: 16,
    bytes_max: 64 << 10,
};
