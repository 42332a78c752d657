//! Makes one fencing token of the counters that nodes report.
//!
//! A node counts the grants of a key. Its counter never goes back, and the node reports it with the grant. Counters of
//! different nodes differ: a node was away, or a loser got it alone. So their maximum alone is no order:
//!
//! ```text
//!  counters A 3, B 0, C 0.   G1 is granted by A (4) and B (1): maximum 4.   G2 by C (1) and B (2): maximum 2.
//! ```
//!
//! What is missing is that G2 hears of G1's 4, and for that a majority must hold it. `[F7]` Token and credit:
//!
//! * The token `t` is the maximum of what a set `W` of granting nodes reported, and `W` is a majority.
//! * Each node of `W` is *credited*: it reported `t` itself, or it was asked to raise its counter to `t` and did so. It
//!   does that only while the key is still held by this attempt's token and by the very grant that it reported, which
//!   the request quotes.
//!
//! The order follows. Two successes share a node of `W1` and `W2`. On it each has an interval from its grant to its
//! credit in which the key is held by that attempt alone, so one interval comes first, say 1's. At its credit the
//! counter is at least `t1`, it never goes back, and the later grant raises it: this node reported more than `t1` to
//! attempt 2, and `t2` is a maximum that includes it. If 1 succeeded before 2 began, 1's interval is first on every node they
//! share. No clock is in this argument, and no bound of any delay: it holds when locks end at any moment.
//!
//! Three things follow for changes of this file:
//!
//! * `t` must be at least what every *credited* node reported with its grant. It is fixed when the first request for a credit
//!   goes out. A grant that comes later with more than `t` is therefore a vote for the lock and never credited, although
//!   its counter is above `t`; one with exactly `t` is credited, one with less is asked as well.
//! * `t` need not be the maximum of nodes that are not credited. When a majority reported the same number, that
//!   number is the token, whatever another node reported: it is as if that node's reply had come too late. This is the
//!   steady state, in which there is no second round trip `[F8]`.
//! * A credit ends with the grant: a node whose connection broke before the round is decided is not counted.
//!
//! A counter near the end of its range cannot be written to other nodes `[F6]`. As long as a majority counts below
//! that, a node that reports more is left aside: one node that counts wrongly stops nobody.

use crate::fencing_token::FencingToken;
use crate::quorum::{NODES_MAX, NodeId, NodeSet, Quorum};
use crate::time::Time;

/// What the nodes of one attempt counted, and the token that follows from it.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Fencing {
    /// What each node reported with its grant, or accepted since.
    counters: [Option<FencingToken>; NODES_MAX],
    /// The nodes that reported a counter with a grant.
    told: NodeSet,
    /// The highest that any node reported, including nodes that refused.
    highest: Option<FencingToken>,
    /// Whether any two nodes reported different numbers.
    is_uneven: bool,
    /// Nodes that were asked with a command that reports no counter.
    plain: NodeSet,
    write_back: Option<WriteBack>,
}

/// The second round trip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct WriteBack {
    token: FencingToken,
    started: Time,
    deadline: Time,
    /// Nodes that were asked for a credit.
    asked: NodeSet,
}

/// What the counters amount to, given a majority of grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FenceVerdict {
    /// A majority holds the token.
    Credited(FencingToken),
    /// Too few of the nodes can have one.
    Unfenced,
    /// The counters differ, and a majority can be brought to the same.
    Diverged,
    /// Nodes that have not answered can still matter.
    Pending,
    /// The token can no longer be credited by a majority.
    Failed,
}

impl Fencing {
    /// The node was asked with a command that reports no counter.
    pub(crate) fn asked_plainly(&mut self, node: NodeId) {
        self.plain.insert(node);
    }

    /// The node reported its counter with a grant or a refusal.
    pub(crate) fn told(&mut self, node: NodeId, counter: FencingToken, is_granted: bool) {
        self.is_uneven |= self.highest.is_some_and(|highest| highest != counter);
        self.highest = self.highest.max(Some(counter));
        if is_granted && let Some(slot) = self.counters.get_mut(node.index()) {
            *slot = Some(counter);
            self.told.insert(node);
        }
    }

    /// What the node reported with its grant, or accepted since.
    pub(crate) fn counter(&self, node: NodeId) -> Option<FencingToken> {
        self.counters.get(node.index()).copied().flatten()
    }

    /// The highest counter, if nodes reported different ones.
    pub(crate) fn uneven(&self) -> Option<FencingToken> {
        self.highest.filter(|_| self.is_uneven)
    }

    /// What it has come to, with these grants and with these nodes yet to answer.
    pub(crate) fn verdict(
        &self,
        quorum: Quorum,
        granted: NodeSet,
        pending: NodeSet,
    ) -> FenceVerdict {
        let needed = quorum.needed();
        let pending = pending.without(self.plain).len();
        if let Some(write_back) = &self.write_back {
            let credited = self.count(granted, |counter| counter == write_back.token);
            let open = self.behind(granted).len();
            return if credited >= needed {
                FenceVerdict::Credited(write_back.token)
            } else if credited + open + pending >= needed {
                FenceVerdict::Pending
            } else {
                FenceVerdict::Failed
            };
        }
        let fenced = granted.len() - granted.without(self.told).len();
        if fenced < needed {
            return if fenced + pending >= needed {
                FenceVerdict::Pending
            } else {
                FenceVerdict::Unfenced
            };
        }
        // [F8] The steady state: all nodes reported the same number.
        if let (false, Some(token)) = (self.is_uneven, self.highest) {
            return FenceVerdict::Credited(token);
        }
        let is_told_by_majority = |token: &FencingToken| {
            let told = self.count(granted, |counter| counter == *token);
            told >= needed
        };
        let mut told = granted.iter().filter_map(|node| self.counter(node));
        match told.find(is_told_by_majority) {
            Some(token) => FenceVerdict::Credited(token),
            None => FenceVerdict::Diverged,
        }
    }

    /// Fixes the token, unless that is done: from now on nodes are asked to accept it, each for `timeout` at most.
    pub(crate) fn fix(
        &mut self,
        quorum: Quorum,
        granted: NodeSet,
        now: Time,
        timeout: std::time::Duration,
    ) {
        let usable = self.count(granted, |counter| counter <= WRITABLE_MAX);
        let is_usable =
            |counter: &FencingToken| usable < quorum.needed() || *counter <= WRITABLE_MAX;
        let told = granted.iter().filter_map(|node| self.counter(node));
        let highest = told.filter(is_usable).max();
        if let (None, Some(token)) = (self.write_back, highest) {
            self.write_back = Some(WriteBack {
                token,
                started: now,
                deadline: now + timeout,
                asked: NodeSet::NONE,
            });
        }
    }

    /// The token, once it is fixed.
    pub(crate) fn fixed(&self) -> Option<FencingToken> {
        self.write_back.map(|write_back| write_back.token)
    }

    /// The nodes that are to be asked for a credit and were not yet.
    pub(crate) fn lagging(&self, granted: NodeSet) -> NodeSet {
        let asked = self.write_back.map_or(NodeSet::NONE, |it| it.asked);
        self.behind(granted).without(asked)
    }

    /// The node was asked for a credit.
    pub(crate) fn asked(&mut self, node: NodeId) {
        if let Some(write_back) = &mut self.write_back {
            write_back.asked.insert(node);
        }
    }

    /// The nodes of these that were asked for a credit and have not answered.
    pub(crate) fn open(&self, granted: NodeSet) -> NodeSet {
        self.behind(granted).without(self.lagging(granted))
    }

    /// The nodes of these whose counter is lower than the token.
    fn behind(&self, granted: NodeSet) -> NodeSet {
        let Some(write_back) = &self.write_back else {
            return NodeSet::NONE;
        };
        let is_lower = |counter: FencingToken| counter < write_back.token;
        let is_behind = |node: &NodeId| self.counter(*node).is_some_and(is_lower);
        granted.iter().filter(is_behind).collect()
    }

    /// The node accepted the token.
    pub(crate) fn accepted(&mut self, node: NodeId) {
        if let (Some(write_back), Some(slot)) =
            (self.write_back, self.counters.get_mut(node.index()))
        {
            *slot = Some(write_back.token);
        }
    }

    /// When nodes were asked for a credit, and until when they have time.
    pub(crate) fn span(&self) -> Option<(Time, Time)> {
        self.write_back
            .map(|write_back| (write_back.started, write_back.deadline))
    }

    fn count(&self, granted: NodeSet, is: impl Fn(FencingToken) -> bool) -> usize {
        let told = granted.iter().filter_map(|node| self.counter(node));
        told.filter(|counter| is(*counter)).count()
    }
}

/// The highest number that is sent to another node, as a token to accept or as a hint: a node refuses higher ones,
/// so that it has room for 2^40 grants of its own.
pub(crate) const WRITABLE_MAX: FencingToken = match FencingToken::new((1 << 53) - (1 << 40)) {
    Some(max) => max,
    None => FencingToken::MAX,
};
