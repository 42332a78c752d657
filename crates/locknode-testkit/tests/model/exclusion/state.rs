//! The state of the whole model, and which states are the same.

use std::fmt;

use redlock_proto::NodeSet;
use redlock_proto::round::Answer;
use stateright::Representative;

use crate::ballot::NODES;
use crate::exclusion::client::{Client, Phase};
use crate::exclusion::rounds::Votes;
use crate::exclusion::rules::Rules;
use crate::node::{NOBODY, Node};
use crate::symmetry::least;

/// Everything that differs from one moment to another. What belongs to one node is in its lane, so that the nodes
/// can change places.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct State<const CLIENTS: usize> {
    pub(crate) lanes: [Lane<CLIENTS>; NODES],
    pub(crate) clients: [Client; CLIENTS],
    /// Crashes left.
    pub(crate) crashes: u8,
    /// Ticks left that one node counts alone.
    pub(crate) fast_ticks: u8,
}

/// A node, and what is under way between it and each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lane<const CLIENTS: usize> {
    pub(crate) node: Node,
    pub(crate) mail: [Mail; CLIENTS],
}

/// The messages under way between a node and a client, which may arrive in any order, late or never, and whether the
/// node's vote is in the present round.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mail(u32);

/// One message of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Request: give me the lock.
    Acquire = 0,
    /// Reply: it is yours.
    Grant = 1,
    /// Request: give me more time.
    Extend = 2,
    /// Reply: you have more time.
    Extended = 3,
    /// Request: take the lock back.
    Release = 4,
    /// Reply: another has it.
    Refused = 5,
    /// Reply: I restarted, and grant and extend nothing for a while.
    Unable = 6,
    /// Reply: you do not have it.
    NotHeld = 7,
}

impl Message {
    /// What a reply amounts to, as the client's `core` reads it; `None` for a request.
    pub(crate) fn answer(self) -> Option<Answer> {
        match self {
            Self::Acquire | Self::Extend | Self::Release => None,
            Self::Grant | Self::Extended => Some(Answer::Yes),
            Self::Refused | Self::NotHeld => Some(Answer::No),
            Self::Unable => Some(Answer::Failed),
        }
    }
}

impl Mail {
    fn bit(attempt: u8, message: Message) -> u32 {
        1 << (attempt * KINDS + message as u8)
    }

    pub(crate) fn insert(&mut self, attempt: u8, message: Message) {
        self.0 |= Self::bit(attempt, message);
    }

    pub(crate) fn remove(&mut self, attempt: u8, message: Message) {
        self.0 &= !Self::bit(attempt, message);
    }

    pub(crate) fn has(self, attempt: u8, message: Message) -> bool {
        self.0 & Self::bit(attempt, message) != 0
    }

    /// The node's answer counts in the present round.
    pub(crate) fn count(&mut self, answer: Answer) {
        let bits = match answer {
            Answer::Yes => 1,
            Answer::No => 2,
            Answer::Failed => 3,
        };
        self.0 |= bits << VOTE;
    }

    /// The node's answer in the present round.
    pub(crate) fn vote(self) -> Option<Answer> {
        match self.0 >> VOTE {
            0 => None,
            1 => Some(Answer::Yes),
            2 => Some(Answer::No),
            _ => Some(Answer::Failed),
        }
    }

    /// A round begins without votes.
    fn forget_vote(&mut self) {
        self.0 &= (1 << VOTE) - 1;
    }

    pub(crate) fn messages(self) -> impl Iterator<Item = (u8, Message)> {
        (0..TRIES_MAX)
            .flat_map(|attempt| MESSAGES.map(move |message| (attempt, message)))
            .filter(move |(attempt, message)| self.has(*attempt, *message))
    }
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        list.entries(self.messages());
        if let Some(answer) = self.vote() {
            list.entry(&answer);
        }
        list.finish()
    }
}

impl<const CLIENTS: usize> State<CLIENTS> {
    pub(crate) fn new(rules: &Rules) -> Self {
        let lane = Lane {
            node: Node::default(),
            mail: [Mail::default(); CLIENTS],
        };
        let client = |i: usize| Client {
            phase: Phase::Idle,
            begun: 0,
            tries: rules.tries[i],
            extends: rules.extends[i],
        };
        Self {
            lanes: [lane; NODES],
            clients: std::array::from_fn(client),
            crashes: rules.crashes,
            fast_ticks: rules.fast_ticks,
        }
    }

    /// The client begins an attempt.
    pub(crate) fn begin(&mut self, client: usize) {
        let this = &mut self.clients[client];
        this.phase = Phase::Acquiring { age: 0 };
        let attempt = this.begun;
        (this.begun, this.tries) = (this.begun + 1, this.tries - 1);
        self.begin_round(client);
        self.send(client, attempt, Message::Acquire);
    }

    /// The holder begins to extend its lock.
    pub(crate) fn extend(&mut self, client: usize) {
        let this = &mut self.clients[client];
        let attempt = this.begun - 1;
        if let Phase::Held { extension, .. } = &mut this.phase {
            *extension = Some(0);
            this.extends -= 1;
        }
        self.begin_round(client);
        // It would answer another round.
        for lane in &mut self.lanes {
            lane.mail[client].remove(attempt, Message::Unable);
        }
        self.send(client, attempt, Message::Extend);
    }

    fn begin_round(&mut self, client: usize) {
        for lane in &mut self.lanes {
            lane.mail[client].forget_vote();
        }
    }

    /// The client ends what it is at.
    pub(crate) fn release(&mut self, client: usize) {
        let this = &mut self.clients[client];
        this.phase = Phase::Idle;
        let attempt = this.begun - 1;
        self.send(client, attempt, Message::Release);
    }

    /// The extended lock is set again where it was lost.
    pub(crate) fn heal(&mut self, client: usize, nodes: NodeSet) {
        let attempt = self.clients[client].begun - 1;
        for node in nodes.iter() {
            self.lanes[node.index()].mail[client].insert(attempt, Message::Acquire);
        }
    }

    fn send(&mut self, client: usize, attempt: u8, message: Message) {
        for lane in &mut self.lanes {
            lane.mail[client].insert(attempt, message);
        }
    }

    /// Which nodes said what in the client's present round.
    pub(crate) fn votes(&self, client: usize) -> Votes {
        self.lanes.map(|lane| lane.mail[client].vote())
    }

    /// How many clients believe that they hold the lock.
    pub(crate) fn holders(&self) -> usize {
        self.clients
            .iter()
            .filter(|client| client.is_holder())
            .count()
    }

    /// Drops what can no longer make a difference, so that states which differ by that alone are one.
    pub(crate) fn forget(&mut self, rules: &Rules) {
        for client in 0..CLIENTS {
            let this = self.clients[client];
            let (is_acquiring, is_extending) = match this.phase {
                Phase::Acquiring { .. } => (true, false),
                Phase::Held { extension, .. } => (false, extension.is_some()),
                Phase::Idle => (false, false),
            };
            for lane in &mut self.lanes {
                if !is_acquiring && !is_extending {
                    lane.mail[client].forget_vote();
                }
                for attempt in 0..this.begun {
                    let is_present = Some(attempt) == this.attempt();
                    let mail = &mut lane.mail[client];
                    let waits =
                        rules.late_replies && (this.tries > 0 || (is_acquiring && !is_present));
                    let is_heard = waits || (is_present && is_acquiring);
                    if !is_heard {
                        mail.remove(attempt, Message::Grant);
                    }
                    if !(is_present && is_acquiring) {
                        mail.remove(attempt, Message::Refused);
                    }
                    if !(is_present && is_extending) {
                        mail.remove(attempt, Message::Extended);
                        mail.remove(attempt, Message::NotHeld);
                    }
                    if !(is_present && (is_acquiring || is_extending)) {
                        mail.remove(attempt, Message::Unable);
                    }
                    lane.forget_attempt(rules, client, attempt, is_present);
                }
            }
        }
    }

    /// The same with the clients, and then the nodes, in another order.
    fn renamed(&self, order: &[usize]) -> Self {
        let mut other = self.clone();
        for (to, from) in order.iter().enumerate().take(CLIENTS) {
            other.clients[to] = self.clients[*from];
            for (lane, was) in other.lanes.iter_mut().zip(&self.lanes) {
                lane.mail[to] = was.mail[*from];
                for attempt in 0..TRIES_MAX {
                    if was.node.holder == token(*from, attempt) {
                        lane.node.holder = token(to, attempt);
                    }
                }
            }
        }
        other.lanes.sort_unstable();
        other
    }
}

impl<const CLIENTS: usize> Representative for State<CLIENTS> {
    fn representative(&self) -> Self {
        least(CLIENTS, |order| self.renamed(order))
    }
}

impl<const CLIENTS: usize> Lane<CLIENTS> {
    fn forget_attempt(&mut self, rules: &Rules, client: usize, attempt: u8, is_present: bool) {
        let token = token(client, attempt);
        let mail = &mut self.mail[client];
        let may_hold = self.node.holder == token || mail.has(attempt, Message::Acquire);
        // A request that names a token which the node does not have and will not have again does nothing.
        if !may_hold && rules.compares() {
            mail.remove(attempt, Message::Extend);
            mail.remove(attempt, Message::Release);
        }
        let is_named =
            is_present || mail.has(attempt, Message::Extend) || mail.has(attempt, Message::Release);
        if self.node.holder == token && !is_named {
            self.node.holder = FORGOTTEN;
        }
    }
}

/// The name of an attempt's token.
pub(crate) fn token(client: usize, attempt: u8) -> u8 {
    let client = u8::try_from(client).expect("a few clients");
    NOBODY + 1 + client * TRIES_MAX + attempt
}

/// Most attempts of one client.
pub(crate) const TRIES_MAX: u8 = 2;

/// A token that no message names any more.
const FORGOTTEN: u8 = 15;

const MESSAGES: [Message; 8] = [
    Message::Acquire,
    Message::Grant,
    Message::Extend,
    Message::Extended,
    Message::Release,
    Message::Refused,
    Message::Unable,
    Message::NotHeld,
];
const KINDS: u8 = 8;

/// Where the vote is, above the messages of two attempts.
const VOTE: u32 = 16;
