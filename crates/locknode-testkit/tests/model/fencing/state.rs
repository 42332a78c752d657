//! The state of the whole model, and which states are the same.

use stateright::Representative;

use crate::ballot::NODES;
use crate::fencing::{Bug, Rules};
use crate::node::{NOBODY, Node};
use crate::symmetry::least;

/// Everything that differs from one moment to another. What belongs to one node is in its lane, so that the nodes
/// can change places.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct State<const ATTEMPTS: usize> {
    pub(crate) lanes: [Lane<ATTEMPTS>; NODES],
    pub(crate) attempts: [Attempt; ATTEMPTS],
    /// Crashes left.
    pub(crate) crashes: u8,
    /// Connections that may still break.
    pub(crate) cuts: u8,
}

/// A node, and what is between it and each attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lane<const ATTEMPTS: usize> {
    pub(crate) node: Node,
    /// How often the node started; counted only where that matters.
    pub(crate) starts: u8,
    pub(crate) asks: [Ask; ATTEMPTS],
}

/// How far one attempt is with one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ask {
    pub(crate) stage: Stage,
    /// What the node told.
    pub(crate) counter: u8,
    /// The node's answer came when the token was fixed.
    pub(crate) is_late: bool,
    /// Whether the connection broke, and when.
    pub(crate) cut: Cut,
}

/// The end of a connection. What was sent through it may still arrive at the node; no reply comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cut {
    #[default]
    Never,
    /// Before the token was fixed.
    Before,
    /// When the token was fixed.
    After,
}

/// The stages of asking one node. There is one message at most under way between an attempt and a node, or waiting
/// to be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Nothing was asked, or it does not matter any more.
    #[default]
    Nothing,
    /// `LOCK.ACQUIRE` is on its way.
    Sent,
    /// The grant is on its way back.
    Granted,
    /// The grant has arrived.
    Counted,
    /// `LOCK.FENCE` is on its way.
    Asked,
    /// The consent is on its way back.
    Accepted,
    /// The consent has arrived.
    Credited,
    /// The refusal of the lock is on its way back.
    Refused,
    /// The refusal of the lock has arrived.
    Against,
    /// The refusal of the token is on its way back.
    Rejected,
    /// The refusal of the token has arrived.
    Revoked,
}

/// One attempt, as far as the nodes are not concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) phase: Phase,
    /// The highest token of those that had succeeded when it began.
    pub(crate) floor: u8,
}

/// What an attempt is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It has not begun.
    Fresh,
    /// The nodes were asked for the lock.
    Asking,
    /// Nodes are asked to accept this token.
    Fixed { token: u8 },
    /// It has succeeded, in one round trip or in two.
    Won { token: u8, is_second: bool },
    /// It has failed; nodes may have been asked to accept the token.
    Lost { token: Option<u8> },
}

impl Ask {
    /// Whether there is a message that can arrive.
    pub(crate) fn is_under_way(&self) -> bool {
        match self.stage {
            Stage::Sent | Stage::Asked => true,
            Stage::Granted | Stage::Accepted | Stage::Refused | Stage::Rejected => {
                self.cut == Cut::Never
            }
            Stage::Nothing | Stage::Counted | Stage::Credited | Stage::Against | Stage::Revoked => {
                false
            }
        }
    }
}

impl Cut {
    /// A connection that breaks in this phase of an attempt that is not over.
    pub(crate) fn at(phase: Phase) -> Self {
        match phase.token() {
            Some(_) => Self::After,
            None => Self::Before,
        }
    }
}

impl Phase {
    /// The token, once it is fixed.
    pub(crate) fn token(self) -> Option<u8> {
        match self {
            Self::Fresh | Self::Asking => None,
            Self::Fixed { token } | Self::Won { token, .. } => Some(token),
            Self::Lost { token } => token,
        }
    }

    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Won { .. } | Self::Lost { .. })
    }

    fn won(self) -> Option<u8> {
        match self {
            Self::Won { token, .. } => Some(token),
            _ => None,
        }
    }
}

impl<const ATTEMPTS: usize> State<ATTEMPTS> {
    pub(crate) fn new(rules: &Rules) -> Self {
        let lane = |counter: u8| Lane {
            node: Node::restarted(0, counter),
            starts: 0,
            asks: [Ask::default(); ATTEMPTS],
        };
        Self {
            lanes: rules.counters.map(lane),
            attempts: [Attempt {
                phase: Phase::Fresh,
                floor: 0,
            }; ATTEMPTS],
            crashes: rules.crashes,
            cuts: rules.cuts,
        }
    }

    /// The attempt begins; it has to come after all that have succeeded.
    pub(crate) fn begin(&mut self, attempt: usize) {
        let floor = self.highest();
        self.attempts[attempt] = Attempt {
            phase: Phase::Asking,
            floor,
        };
        for lane in &mut self.lanes {
            lane.asks[attempt].stage = Stage::Sent;
        }
    }

    /// The highest token of those that have succeeded.
    pub(crate) fn highest(&self) -> u8 {
        self.attempts
            .iter()
            .filter_map(|attempt| attempt.phase.won())
            .max()
            .unwrap_or(0)
    }

    /// Whether no two successes have the same token, and each has a higher one than those before it began.
    pub(crate) fn is_in_order(&self) -> bool {
        self.attempts.iter().enumerate().all(|(i, attempt)| {
            let Some(token) = attempt.phase.won() else {
                return true;
            };
            let mut others = self.attempts.iter().take(i);
            token > attempt.floor && others.all(|other| other.phase.won() != Some(token))
        })
    }

    /// Whether an attempt has succeeded, in two round trips or in one.
    pub(crate) fn has_won(&self, is_second: bool) -> bool {
        let is_so = |phase| matches!(phase, Phase::Won { is_second: is, .. } if is == is_second);
        self.attempts.iter().any(|attempt| is_so(attempt.phase))
    }

    /// Drops what can no longer make a difference, so that states which differ by that alone are one.
    pub(crate) fn forget(&mut self, rules: &Rules, value: impl Fn(usize) -> u8) {
        for (i, attempt) in self.attempts.iter_mut().enumerate() {
            if attempt
                .phase
                .won()
                .is_some_and(|token| token > attempt.floor)
            {
                attempt.floor = 0;
            }
            for lane in &mut self.lanes {
                lane.forget_ask(i, attempt.phase, rules, value(i));
            }
        }
        for lane in &mut self.lanes {
            lane.forget_holder(&value);
        }
    }

    /// The same with the attempts, and then the nodes, in another order.
    fn renamed(&self, order: &[usize]) -> Self {
        let mut other = self.clone();
        for (to, from) in order.iter().enumerate().take(ATTEMPTS) {
            other.attempts[to] = self.attempts[*from];
            for (lane, was) in other.lanes.iter_mut().zip(&self.lanes) {
                lane.asks[to] = was.asks[*from];
                if was.node.holder == name(*from) {
                    lane.node.holder = name(to);
                }
            }
        }
        other.lanes.sort_unstable();
        other
    }
}

impl<const ATTEMPTS: usize> Lane<ATTEMPTS> {
    /// An attempt that is over hears nothing more; its requests may still arrive.
    fn forget_ask(&mut self, attempt: usize, phase: Phase, rules: &Rules, value: u8) {
        let ask = &mut self.asks[attempt];
        if phase.is_over() && !matches!(ask.stage, Stage::Sent | Stage::Asked) {
            *ask = Ask::default();
        }
        // Its grant is gone and will not come back: no node accepts the token.
        let is_kept = self.node.holder == value && self.node.grant == ask.counter;
        let is_checked = !matches!(
            rules.bug,
            Some(Bug::UnconditionalWriteBack | Bug::OwnerByValue)
        );
        if ask.stage == Stage::Asked && phase.is_over() && is_checked && !is_kept {
            *ask = Ask::default();
        }
    }

    /// The lock ends where nothing depends on it any more: it may end at any moment, and a node whose key is free does
    /// all that it does otherwise, and grants.
    fn forget_holder(&mut self, value: impl Fn(usize) -> u8) {
        let holder = self.node.holder;
        let depends = |(attempt, ask): (usize, &Ask)| {
            value(attempt) == holder
                && matches!(ask.stage, Stage::Granted | Stage::Counted | Stage::Asked)
        };
        if holder != NOBODY && !self.asks.iter().enumerate().any(depends) {
            self.node = Node::restarted(0, self.node.counter);
        }
    }
}

impl<const ATTEMPTS: usize> Representative for State<ATTEMPTS> {
    fn representative(&self) -> Self {
        least(ATTEMPTS, |order| self.renamed(order))
    }
}

/// The value of an attempt that has one of its own.
fn name(attempt: usize) -> u8 {
    NOBODY + 1 + u8::try_from(attempt).expect("a few attempts")
}
