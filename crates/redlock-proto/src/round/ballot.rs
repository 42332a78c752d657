//! Who was asked and who answered what.

use std::time::Duration;

use crate::quorum::{NODES_MAX, NodeId, NodeSet, Quorum};
use crate::time::Time;

/// Which round of which attempt. An attempt has one token; its acquire, its extensions and its release are
/// rounds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoundId {
    /// The attempt, counted within one operation.
    pub attempt: u32,
    /// The round, counted within the attempt.
    pub round: u32,
}

/// Whose answer to what: the key under which a vote is counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Vote {
    /// The round that the node was asked in.
    pub round: RoundId,
    /// The node.
    pub node: NodeId,
    /// Which of its connections the answer came through, counted from the client's start.
    pub incarnation: u32,
}

/// What a node's reply amounts to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// Granted, extended or deleted.
    Yes,
    /// Held by another, or not held.
    No,
    /// No answer to the question: an error, no connection, no reply in time.
    Failed,
}

/// The votes of one round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ballot {
    /// Which round it is.
    pub(crate) id: RoundId,
    pub(super) quorum: Quorum,
    /// When the round began.
    pub(crate) started: Time,
    pub(super) deadline: Time,
    /// Which connection each node was asked through; only those in `asked` count.
    incarnations: [u32; NODES_MAX],
    asked: NodeSet,
    yes: NodeSet,
    no: NodeSet,
    pub(super) failed: NodeSet,
    /// Whether a yes outlives the connection that brought it.
    is_yes_final: bool,
}

impl Ballot {
    /// A round that begins at `started`, before the first byte is sent, and gives each node `timeout` to answer.
    pub(super) fn new(id: RoundId, quorum: Quorum, started: Time, timeout: Duration) -> Self {
        Self {
            id,
            quorum,
            started,
            deadline: started + timeout,
            incarnations: [0; NODES_MAX],
            asked: NodeSet::default(),
            yes: NodeSet::default(),
            no: NodeSet::default(),
            failed: NodeSet::default(),
            is_yes_final: false,
        }
    }

    /// The same for a question to which a yes stays one whatever becomes of the node.
    pub(super) fn with_final_yes(self) -> Self {
        Self {
            is_yes_final: true,
            ..self
        }
    }

    /// The node was asked through this connection.
    pub fn asked(&mut self, node: NodeId, incarnation: u32) {
        debug_assert!(!self.asked.contains(node), "a node is asked once per round");
        if let Some(slot) = self.incarnations.get_mut(node.index()) {
            *slot = incarnation;
            self.asked.insert(node);
        }
    }

    /// A node's reply; false if it does not count: it is not one of this round, or the node already has a vote.
    pub fn on_vote(&mut self, vote: Vote, answer: Answer) -> bool {
        self.concerns(vote) && self.settle(vote.node, answer)
    }

    /// The node could not be asked; false if it already has a vote.
    pub fn on_unreachable(&mut self, node: NodeId) -> bool {
        self.settle(node, Answer::Failed)
    }

    /// The connection that the node was asked through is gone: without a reply there will be none, and a yes from
    /// a node that may have restarted since is no longer worth anything, unless it is final. True if that took a vote
    /// or a reply away.
    pub fn on_disconnected(&mut self, node: NodeId, incarnation: u32) -> bool {
        let is_final = self.is_yes_final && self.yes.contains(node);
        if !self.is_of(node, incarnation) || is_final || self.no.contains(node) {
            return false;
        }
        self.yes.remove(node);
        self.failed.insert(node)
    }

    /// Takes a yes back: the node answered otherwise since, or not at all. False if there is none.
    pub(super) fn revoke(&mut self, node: NodeId, answer: Answer) -> bool {
        debug_assert!(answer != Answer::Yes, "a yes stays by itself");
        self.yes.remove(node) && self.settle(node, answer)
    }

    /// Whether the vote belongs to this round, its node and the connection that was asked.
    pub(super) fn concerns(&self, vote: Vote) -> bool {
        vote.round == self.id && self.is_of(vote.node, vote.incarnation)
    }

    /// Time passed; the nodes that have just failed for it.
    pub fn on_time(&mut self, now: Time) -> NodeSet {
        if now < self.deadline {
            return NodeSet::NONE;
        }
        let late = self.unsettled();
        for node in late.iter() {
            self.settle(node, Answer::Failed);
        }
        late
    }

    fn settle(&mut self, node: NodeId, answer: Answer) -> bool {
        if self.is_settled(node) || node.index() >= self.quorum.nodes() {
            return false;
        }
        match answer {
            Answer::Yes => self.yes.insert(node),
            Answer::No => self.no.insert(node),
            Answer::Failed => self.failed.insert(node),
        }
    }

    fn is_of(&self, node: NodeId, incarnation: u32) -> bool {
        self.asked.contains(node)
            && self.incarnations.get(node.index()).copied() == Some(incarnation)
    }

    fn is_settled(&self, node: NodeId) -> bool {
        self.yes.contains(node) || self.no.contains(node) || self.failed.contains(node)
    }

    /// The nodes that granted, extended or deleted the key.
    pub fn yes(&self) -> NodeSet {
        self.yes
    }

    /// The nodes on which another holds the key, or nobody does: not what was asked for.
    pub fn no(&self) -> NodeSet {
        self.no
    }

    /// How many nodes have no vote yet.
    pub(super) fn pending(&self) -> usize {
        let settled = self.yes.len() + self.no.len() + self.failed.len();
        debug_assert!(settled <= self.quorum.nodes(), "a node has one vote");
        self.quorum.nodes().saturating_sub(settled)
    }

    /// The nodes that have no vote yet.
    pub(crate) fn unsettled(&self) -> NodeSet {
        let all = self.quorum.all().without(self.yes);
        all.without(self.no).without(self.failed)
    }
}
