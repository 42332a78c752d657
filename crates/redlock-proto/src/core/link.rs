//! One node's connection as bytes in order: what was asked, what has to be answered next.
//!
//! ```text
//!  Idle --first use--> Connecting --connected--> Greeting --identified--> Ready <--heard again-- Suspect
//!                        ^    |                     |                      |  --silent too long--> |
//!                        |    +---------failed------+---------broken-------+-----------------------+
//!                        +--backoff-- Down <--------+
//! ```
//!
//! Replies come in the order of the requests, so the oldest request without reply is the one that a reply
//! answers, whoever still waits for it.
//!
//! Invariant: a reply is never taken for an answer to another request: when order is in doubt the connection is
//! closed, and requests on a new connection are a new incarnation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use locknode_resp::{ReplyDecoder, ReplyLimits};

use crate::cause::Cause;
use crate::core::answers::{Heard, shorten};
use crate::core::dialect::{self, Dialect, ScriptForm};
use crate::core::greeting::{GreetingStep, Login, ServerInfo};
use crate::core::ledger::{Ledger, Ticket};
use crate::core::op_id::OpId;
use crate::core::question::{Ask, Question};
use crate::policy::scale;
use crate::quorum::NodeId;
use crate::time::Time;

/// One node as the client sees it.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) node: NodeId,
    pub(crate) phase: Phase,
    /// How many connections were opened so far.
    pub(crate) incarnation: u32,
    pub(crate) dialect: Dialect,
    pub(crate) server: Option<Arc<ServerInfo>>,
    /// What is asked as soon as the node is ready.
    pub(crate) waiting: Vec<Question>,
    /// What the node must release when it is back.
    pub(crate) ledger: Ledger,
    /// Bytes for the node that the driver has not written yet.
    pub(crate) out: Vec<u8>,
    /// Requests without reply, oldest first.
    pub(crate) unanswered: VecDeque<Unanswered>,
    /// Since when the oldest of them is the next to be answered.
    progress: Time,
    /// Since when the present connection takes requests.
    ready_at: Time,
    input: Vec<u8>,
    decoder: ReplyDecoder,
    /// Whether the decoder has seen the beginning of a reply: then only it can tell where that ends.
    is_midway: bool,
    /// Connections in a row that came to nothing.
    failures: u32,
    /// Why the last one was over, and when.
    last_cause: Option<Cause>,
    failed_at: Time,
    /// Whether the node said that it does not know the script.
    is_release_unknown: bool,
    is_extend_unknown: bool,
}

/// Where a connection is in its life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Never used.
    Idle,
    /// The driver is opening a connection.
    Connecting { until: Time },
    /// Connected, and asked who it is.
    Greeting { until: Time },
    /// Takes requests.
    Ready,
    /// Connected but silent: takes no new requests, and is given up at `until`.
    Suspect { until: Time },
    /// Not reachable; tried again at `retry_at`.
    Down { retry_at: Time },
}

/// A request without reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unanswered {
    Question(Question),
    Greeting(GreetingStep),
    /// A release that the node missed, and how its script was named.
    Ticket(Box<Ticket>, ScriptForm),
}

/// What came in on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Incoming {
    /// An operation's question was answered.
    Answer(Question, Heard),
    /// The node knows no release script: this ticket has to be sent in full.
    TicketNeedsText(Box<Ticket>),
    /// The greeting is over and the node takes requests.
    Identified(Arc<ServerInfo>),
    /// The connection makes no sense or the node does not let us in.
    Broken(Cause),
}

impl Link {
    pub(crate) fn new(node: NodeId) -> Self {
        Self {
            node,
            phase: Phase::Idle,
            incarnation: 0,
            dialect: Dialect::Script,
            server: None,
            waiting: Vec::new(),
            ledger: Ledger::default(),
            out: Vec::new(),
            unanswered: VecDeque::new(),
            progress: Time::ZERO,
            ready_at: Time::ZERO,
            input: Vec::new(),
            decoder: ReplyDecoder::new(REPLY_LIMITS),
            is_midway: false,
            failures: 0,
            last_cause: None,
            failed_at: Time::ZERO,
            is_release_unknown: false,
            is_extend_unknown: false,
        }
    }

    /// Whether requests can be sent now.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Whether it is worth waiting for the connection that is being made: nothing shows yet that the node is down.
    pub(crate) fn is_hopeful(&self) -> bool {
        let is_connecting = matches!(
            self.phase,
            Phase::Connecting { .. } | Phase::Greeting { .. }
        );
        is_connecting && self.failures == 0
    }

    /// Why the node takes no requests.
    pub(crate) fn cause(&self) -> Cause {
        match &self.phase {
            Phase::Suspect { .. } => Cause::Unresponsive,
            Phase::Idle | Phase::Ready => Cause::Disconnected,
            Phase::Connecting { .. } | Phase::Greeting { .. } | Phase::Down { .. } => {
                self.last_cause.clone().unwrap_or(Cause::TimedOut)
            }
        }
    }

    /// The driver shall connect.
    pub(crate) fn connect(&mut self, now: Time, timeout: Duration) {
        self.phase = Phase::Connecting {
            until: now + timeout,
        };
    }

    /// The driver connected: a new incarnation begins with a greeting.
    pub(crate) fn greet(&mut self, now: Time, timeout: Duration, login: &Login) {
        debug_assert!(self.unanswered.is_empty() && self.out.is_empty());
        self.incarnation = self.incarnation.wrapping_add(1);
        self.phase = Phase::Greeting {
            until: now + timeout,
        };
        self.dialect = Dialect::Script;
        self.progress = now;
        for step in GreetingStep::write_all(&mut self.out, login) {
            self.unanswered.push_back(Unanswered::Greeting(step));
        }
    }

    /// How many requests it has to answer, those included that wait for the connection.
    pub(crate) fn load(&self) -> usize {
        self.unanswered.len() + self.waiting.len()
    }

    /// Whether an operation has a question here that was not asked yet, or not answered.
    pub(crate) fn concerns(&self, op: OpId) -> bool {
        let asked = self.unanswered.iter().filter_map(|request| match request {
            Unanswered::Question(question) => Some(question),
            _ => None,
        });
        self.waiting
            .iter()
            .chain(asked)
            .any(|question| question.op == op)
    }

    /// Remembers that a request was appended to `out`.
    pub(crate) fn asked(&mut self, now: Time, request: Unanswered) {
        if self.unanswered.is_empty() {
            self.progress = now;
        }
        self.unanswered.push_back(request);
    }

    /// Sends the node a release that it missed.
    pub(crate) fn send_ticket(&mut self, now: Time, ticket: Box<Ticket>, form: ScriptForm) {
        let (key, token) = (&ticket.key, ticket.token.as_ref());
        dialect::release(&mut self.out, self.dialect, form, key, token);
        self.asked(now, Unanswered::Ticket(ticket, form));
    }

    /// Takes bytes from the node and appends what they say to `heard`. Stops at the first thing that breaks the
    /// connection.
    pub(crate) fn receive(&mut self, now: Time, bytes: &[u8], heard: &mut Vec<Incoming>) {
        // What is left of a connection that is over says nothing.
        if !matches!(
            self.phase,
            Phase::Greeting { .. } | Phase::Ready | Phase::Suspect { .. }
        ) {
            return;
        }
        if self.input.is_empty() {
            let consumed = self.read(now, bytes, heard);
            self.input
                .extend_from_slice(bytes.get(consumed..).unwrap_or_default());
        } else {
            let mut input = std::mem::take(&mut self.input);
            input.extend_from_slice(bytes);
            let consumed = self.read(now, &input, heard);
            input.drain(..consumed);
            self.input = input;
        }
    }

    fn read(&mut self, now: Time, input: &[u8], all: &mut Vec<Incoming>) -> usize {
        let mut consumed = 0;
        loop {
            let rest = input.get(consumed..).unwrap_or_default();
            if rest.is_empty() {
                return consumed;
            }
            let short = Heard::short(rest).filter(|_| !self.is_midway);
            let decoded = match short {
                Some(short) => Ok(Some(short)),
                None => self
                    .decoder
                    .decode(rest)
                    .map(|decoded| decoded.map(|(reply, len)| (Heard::of(reply), len))),
            };
            self.is_midway = matches!(decoded, Ok(None));
            let (heard, len) = match decoded {
                Ok(Some(decoded)) => decoded,
                Ok(None) => return consumed,
                Err(error) => {
                    let what = shorten(&format!("no Redis protocol ({:?})", error.kind()));
                    all.push(Incoming::Broken(Cause::Protocol(what)));
                    return input.len();
                }
            };
            consumed += len;
            if matches!(&heard, Heard::Other(locknode_resp::Reply::Push(_))) {
                continue;
            }
            let Some(incoming) = self.attribute(now, heard) else {
                continue;
            };
            let is_broken = matches!(incoming, Incoming::Broken(_));
            all.push(incoming);
            if is_broken {
                return input.len();
            }
        }
    }

    /// Finds out what a reply answers.
    fn attribute(&mut self, now: Time, heard: Heard) -> Option<Incoming> {
        let Some(request) = self.unanswered.pop_front() else {
            let what = shorten(&format!("a reply to nothing: {heard:?}"));
            return Some(Incoming::Broken(Cause::Protocol(what)));
        };
        self.progress = now;
        if matches!(self.phase, Phase::Suspect { .. }) {
            self.phase = Phase::Ready;
        }
        match request {
            Unanswered::Question(question) => Some(Incoming::Answer(question, heard)),
            Unanswered::Ticket(ticket, ScriptForm::Sha) if heard.is_noscript() => {
                Some(Incoming::TicketNeedsText(ticket))
            }
            Unanswered::Ticket(..) => None,
            Unanswered::Greeting(step) => match step.hear(heard, &mut self.dialect) {
                Err(cause) => Some(Incoming::Broken(cause)),
                Ok(None) => None,
                Ok(Some(server)) => {
                    let server = Arc::new(server);
                    self.server = Some(Arc::clone(&server));
                    Some(Incoming::Identified(server))
                }
            },
        }
    }

    /// The greeting went well.
    pub(crate) fn ready(&mut self, now: Time) {
        self.ready_at = now;
        self.phase = Phase::Ready;
    }

    /// The connection broke or could not be opened. What was not answered never will be.
    pub(crate) fn fail(&mut self, now: Time, cause: Cause, random: u64) -> VecDeque<Unanswered> {
        // One that ends as soon as it begins is no success.
        let was_good = self.is_ready() && now >= self.ready_at + STEADY;
        self.failures = if was_good {
            0
        } else {
            self.failures.saturating_add(1)
        };
        // A node that was well a moment ago is tried again at once: servers close idle connections.
        let wait = if was_good {
            Duration::ZERO
        } else {
            backoff(self.failures, random)
        };
        self.failed_at = now;
        (self.is_release_unknown, self.is_extend_unknown) = (false, false);
        self.last_cause = Some(cause);
        self.phase = Phase::Down {
            retry_at: now + wait,
        };
        self.out.clear();
        self.input.clear();
        self.decoder = ReplyDecoder::new(REPLY_LIMITS);
        self.is_midway = false;
        std::mem::take(&mut self.unanswered)
    }

    /// A lock is wanted: a node that is down is tried again no later than [`RECONNECT_WANTED`] after its last failure.
    pub(crate) fn hasten(&mut self, now: Time) {
        if let Phase::Down { retry_at } = &mut self.phase {
            let wanted = (self.failed_at + RECONNECT_WANTED).max(now);
            *retry_at = (*retry_at).min(wanted);
        }
    }

    /// How the script of a question is named to this node. One that it did not know is sent once in full.
    pub(crate) fn script_form(&mut self, ask: Ask) -> ScriptForm {
        let is_unknown = match ask {
            Ask::Release => std::mem::take(&mut self.is_release_unknown),
            Ask::Extend { .. } | Ask::Shrink { .. } => std::mem::take(&mut self.is_extend_unknown),
            _ => false,
        };
        if is_unknown {
            ScriptForm::Text
        } else {
            ScriptForm::Sha
        }
    }

    /// The node did not know the script of this question.
    pub(crate) fn forgot_script(&mut self, ask: Ask) {
        match ask {
            Ask::Release => self.is_release_unknown = true,
            _ => self.is_extend_unknown = true,
        }
    }

    /// An operation that began at `since` ran out of time waiting for this node: if nothing has come since, the
    /// node is not asked any more until it is heard again.
    pub(crate) fn suspect(&mut self, now: Time, since: Time, patience: Duration) {
        if self.is_ready() && !self.unanswered.is_empty() && self.progress <= since {
            self.phase = Phase::Suspect {
                until: now + patience,
            };
        }
    }

    /// Whether the node is down and is to be tried again.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Down { retry_at } if now >= retry_at)
    }

    /// Why the connection is to be given up, once its time has passed. One that is silent for too long becomes suspect.
    pub(crate) fn on_time(&mut self, now: Time, patience: Duration) -> Option<Cause> {
        match self.phase {
            Phase::Connecting { until } if now >= until => {
                Some(Cause::Unreachable("no connection in time".into()))
            }
            Phase::Greeting { until } if now >= until => {
                let why = "connected, but no reply to the greeting";
                Some(Cause::Unreachable(why.into()))
            }
            Phase::Suspect { until } if now >= until => Some(Cause::Unresponsive),
            Phase::Ready if !self.unanswered.is_empty() && now >= self.progress + STALL => {
                self.phase = Phase::Suspect {
                    until: now + patience,
                };
                None
            }
            _ => None,
        }
    }

    /// When [`Self::is_due`] or [`Self::on_time`] has something to say.
    pub(crate) fn next_deadline(&self) -> Time {
        match self.phase {
            Phase::Idle => Time::NEVER,
            Phase::Ready if self.unanswered.is_empty() => Time::NEVER,
            Phase::Ready => self.progress + STALL,
            Phase::Connecting { until } | Phase::Greeting { until } | Phase::Suspect { until } => {
                until
            }
            Phase::Down { retry_at } => retry_at,
        }
    }
}

/// The wait before another connection: doubled with each failure, random within its upper half.
fn backoff(failures: u32, random: u64) -> Duration {
    let nanos = crate::time::nanos(RECONNECT_MIN) << failures.saturating_sub(1).min(10);
    let nanos = nanos.min(crate::time::nanos(RECONNECT_MAX));
    Duration::from_nanos(nanos / 2 + scale(random, nanos / 2))
}

/// Silence after which a connection with unanswered requests is not used for new ones. Much longer than a node
/// takes for anything, much shorter than a person's patience.
const STALL: Duration = Duration::from_millis(500);

/// How long a connection must have taken requests to count as a success when it ends.
const STEADY: Duration = Duration::from_secs(1);

/// First wait before connecting again: a restart of a process takes about this long.
const RECONNECT_MIN: Duration = Duration::from_millis(50);

/// The wait while a lock is wanted that cannot be acquired without the node.
const RECONNECT_WANTED: Duration = Duration::from_millis(100);

/// Longest wait: a node that is back is noticed within this time, and one attempt every few seconds costs
/// nothing.
const RECONNECT_MAX: Duration = Duration::from_secs(3);

/// The largest reply of interest is `INFO server`, about a kilobyte; of those with more than one array only the top of
/// `COMMAND INFO` matters: which entries there are, and that they are not empty.
const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    depth_max: 8,
    depth_kept: 2,
    elements_max: 4096,
    bytes_max: 1 << 20,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node that owes seven releases is heard to say in these pieces.
    fn heard_in(pieces: &[&[u8]]) -> (Vec<Incoming>, bool) {
        let mut link = Link::new(NodeId::new(0).unwrap());
        link.ready(Time::ZERO);
        let ticket = Box::new(Ticket {
            key: Box::default(),
            token: crate::token::Token::new("t").unwrap(),
            until: Time::NEVER,
        });
        for _ in 0..7 {
            link.asked(
                Time::ZERO,
                Unanswered::Ticket(ticket.clone(), ScriptForm::Sha),
            );
        }
        let mut heard = Vec::new();
        for piece in pieces {
            link.receive(Time::ZERO, piece, &mut heard);
        }
        (heard, link.unanswered.is_empty())
    }

    #[test]
    fn replies_are_the_same_however_their_bytes_are_cut() {
        let text = b"+OK\r\n$0\r\n\r\n_\r\n:1\r\n$-1\r\n:12\r\n-NOSCRIPT x\r\n";
        for cut in 1..text.len() {
            let (head, tail) = text.split_at(cut);
            let chunks: Vec<&[u8]> = text.chunks(cut).collect();
            for pieces in [&[head, tail][..], &chunks] {
                let (heard, is_all) = heard_in(pieces);
                assert!(is_all, "cut at {cut}");
                assert!(
                    matches!(heard[..], [Incoming::TicketNeedsText(_)]),
                    "{heard:?}, cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn a_node_that_is_wanted_is_tried_again_soon_and_not_at_once() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut link = Link::new(NodeId::new(0).unwrap());
        for failure in 0..9 {
            link.connect(at(failure), STEADY);
            drop(link.fail(at(failure), Cause::Disconnected, u64::MAX));
        }
        assert!(link.next_deadline() > at(2_000), "it has failed often");
        link.hasten(at(50));
        assert_eq!(
            link.next_deadline(),
            at(108),
            "100 ms after the last failure"
        );
        link.hasten(at(5_000));
        assert_eq!(link.next_deadline(), at(108), "never later than before");
    }

    #[test]
    fn a_script_that_a_node_forgot_is_sent_once_in_full() {
        let ttl = Duration::from_secs(1);
        let mut link = Link::new(NodeId::new(0).unwrap());
        let asks = [Ask::Release, Ask::Extend { ttl }];
        for forgotten in asks {
            link.forgot_script(forgotten);
            for ask in asks {
                let expected = if ask == forgotten {
                    ScriptForm::Text
                } else {
                    ScriptForm::Sha
                };
                assert_eq!(link.script_form(ask), expected, "{ask:?}");
                assert_eq!(link.script_form(ask), ScriptForm::Sha, "{ask:?} again");
            }
        }
    }

    #[test]
    fn reconnection_backs_off_to_a_bound() {
        for (failures, min, max) in [
            (1, 25, 50),
            (2, 50, 100),
            (7, 1500, 3000),
            (u32::MAX, 1500, 3000),
        ] {
            assert_eq!(backoff(failures, 0), Duration::from_millis(min));
            assert_eq!(backoff(failures, u64::MAX), Duration::from_millis(max));
        }
    }
}
