//! One lock from the first attempt to the last reply of its release.

use std::sync::Arc;
use std::time::Duration;

use locknode_resp::encode_command;

use crate::cause::Cause;
use crate::core::acquiring::{Acquiring, Waiting};
use crate::core::answers::Heard;
use crate::core::contending::Confirming;
use crate::core::dialect::{self, Dialect, ScriptForm};
use crate::core::held::Held;
use crate::core::ledger::Ticket;
use crate::core::link::Link;
use crate::core::looking::Looking;
use crate::core::op_id::OpId;
use crate::core::question::{Ask, Question};
use crate::core::queue::Queued;
use crate::core::releasing::Releasing;
use crate::fencing_token::FencingToken;
use crate::policy::{RenewPolicy, RetryPolicy};
use crate::quorum::{NodeId, NodeSet};
use crate::round::{Answer, Ballot, ExtendRound, RoundId, WRITABLE_MAX};
use crate::time::Time;
use crate::token::Token;

/// What is wanted of a lock, all checked.
#[derive(Clone, Debug)]
pub struct LockTerms {
    /// The key as the nodes see it, prefix included.
    pub key: Box<[u8]>,
    /// How long the nodes keep the lock without extension, in whole milliseconds.
    pub ttl: Duration,
    /// How long a node has for a reply.
    pub timeout: Duration,
    /// When to try again.
    pub retry: RetryPolicy,
    /// When to extend on the holder's behalf.
    pub renew: Option<RenewPolicy>,
    /// How long the key stays even if it is released sooner.
    pub hold_at_least: Duration,
    /// What nodes are told of the holder, for people; at most 64 bytes of printable ASCII.
    pub label: Option<Arc<str>>,
}

impl LockTerms {
    /// Terms of something that only looks, or releases a token from elsewhere.
    pub fn looking(key: Box<[u8]>, timeout: Duration) -> Self {
        Self {
            key,
            ttl: Duration::ZERO,
            timeout,
            retry: RetryPolicy::tries(1),
            renew: None,
            hold_at_least: Duration::ZERO,
            label: None,
        }
    }
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: OpId,
    pub(crate) terms: Arc<LockTerms>,
    pub(crate) token: Token,
    pub(crate) state: State,
    pub(crate) round: RoundId,
    /// The lock's fencing token, when it is held and has one.
    pub(crate) fencing: Option<FencingToken>,
    /// Where nodes are to count from in the present attempt: their counters differed at the last.
    pub(crate) floor: Option<FencingToken>,
    /// The nodes that may hold the token.
    pub(crate) may_hold: NodeSet,
    /// When they have let it go on their own at the latest.
    pub(crate) may_hold_until: Time,
    /// When the lock was asked for.
    pub(crate) acquired: Time,
    /// Until when the nodes of the last attempt or extension have time to answer.
    pub(crate) asked_until: Time,
    /// What went wrong on which node in the present round.
    pub(crate) causes: Vec<(NodeId, Cause)>,
    /// Why the last renewal failed, if it did.
    pub(crate) unrenewed: Vec<(NodeId, Cause)>,
    /// Nodes that owed the answer to an extension when their connection broke, and the shortest TTL of such a one. It may
    /// still reach them, after a later and longer one, and cut that short.
    pub(crate) doubtful: NodeSet,
    pub(crate) doubtful_ttl: Duration,
    /// When the operation wants to be looked at.
    pub(crate) alarm: Time,
}

/// Where an operation is in its life.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// An attempt that has to wait until the nodes have answered more of what they were asked.
    Queued(Queued),
    Acquiring(Acquiring),
    /// A majority refused the last attempt, which is released: who holds the key?
    Confirming(Box<Confirming>),
    /// Between two attempts.
    Waiting(Waiting),
    /// Taking over a lock whose token came from elsewhere.
    Adopting(ExtendRound),
    Held(Held),
    /// Left to its TTL. Nodes that were not asked yet, or have not answered, have their time for that.
    Leaving {
        until: Time,
    },
    /// No longer held, not released yet.
    Over,
    Releasing(Releasing),
    Looking(Looking),
    /// The operation has ended: its place is free as soon as what is being done with it is done.
    Ended,
}

impl State {
    /// The votes that are being counted.
    pub(crate) fn ballot_mut(&mut self) -> Option<&mut Ballot> {
        match self {
            Self::Acquiring(acquiring) => Some(&mut acquiring.round.ballot),
            Self::Adopting(round) => Some(&mut round.ballot),
            Self::Held(held) => {
                let extension = held.extension.as_mut()?;
                Some(&mut extension.round.ballot)
            }
            Self::Releasing(releasing) => Some(&mut releasing.round.ballot),
            _ => None,
        }
    }
}

impl Operation {
    pub(crate) fn new(terms: Arc<LockTerms>, token: Token) -> Self {
        Self {
            // The table of operations gives it another.
            id: OpId {
                slot: u32::MAX,
                generation: 0,
            },
            terms,
            token,
            state: State::Over,
            round: RoundId {
                attempt: 0,
                round: 0,
            },
            fencing: None,
            floor: None,
            may_hold: NodeSet::default(),
            may_hold_until: Time::ZERO,
            acquired: Time::ZERO,
            asked_until: Time::ZERO,
            causes: Vec::new(),
            unrenewed: Vec::new(),
            doubtful: NodeSet::default(),
            doubtful_ttl: Duration::MAX,
            alarm: Time::NEVER,
        }
    }

    /// Remembers a node's part in a failure; the first cause counts.
    pub(crate) fn blame(&mut self, node: NodeId, cause: Cause) {
        if !self.causes.iter().any(|(other, _)| *other == node) {
            self.causes.push((node, cause));
        }
    }

    /// The same for an answer that was not a yes: `no` is the cause of a no.
    pub(crate) fn blame_answer(
        &mut self,
        node: NodeId,
        answer: Answer,
        no: Cause,
        ask: Ask,
        heard: &Heard,
    ) {
        match answer {
            Answer::Yes => {}
            Answer::No => self.blame(node, no),
            Answer::Failed => self.blame(node, heard.cause(ask.name())),
        }
    }

    /// What went wrong, in node order.
    pub(crate) fn take_causes(&mut self) -> Vec<(NodeId, Cause)> {
        let mut causes = std::mem::take(&mut self.causes);
        causes.sort_by_key(|(node, _)| *node);
        causes
    }

    /// Begins another round of the same attempt.
    pub(crate) fn next_round(&mut self) -> RoundId {
        self.causes.clear();
        self.round.round = self.round.round.wrapping_add(1);
        self.round
    }

    /// Begins another attempt with a token of its own.
    pub(crate) fn next_attempt(&mut self, token: Token) -> RoundId {
        self.causes.clear();
        self.token = token;
        self.may_hold = NodeSet::default();
        self.may_hold_until = Time::ZERO;
        self.round = RoundId {
            attempt: self.round.attempt.wrapping_add(1),
            round: 0,
        };
        self.round
    }

    /// Where a node that is asked now is to count from. One that comes late, or lost the key, gets to the number that the
    /// others are at: its next grant is even with theirs.
    fn floor(&self) -> Option<FencingToken> {
        let Some(fencing) = self.fencing else {
            return self.floor;
        };
        FencingToken::new(fencing.get() - 1).filter(|floor| *floor <= WRITABLE_MAX)
    }

    /// Whether the answer to this question is still of interest.
    pub(crate) fn wants(&self, question: &Question) -> bool {
        if question.round != self.round {
            return false;
        }
        match (&self.state, question.ask) {
            // A lock that a majority granted while this node was being connected is wanted here as well: one node
            // that restarts must not cost it the majority.
            (State::Acquiring(_) | State::Held(_) | State::Leaving { .. }, Ask::Acquire)
            | (State::Leaving { .. } | State::Adopting(_), Ask::Extend { .. })
            | (State::Confirming(_), Ask::Holder)
            | (State::Looking(_), Ask::Describe | Ask::Remaining | Ask::Force | Ask::Ping)
            | (State::Releasing(_), Ask::Release | Ask::Shrink { .. }) => true,
            // Decided or not: it is the last one that the holder asked for.
            (State::Held(held), Ask::Extend { .. }) => {
                let is_confirmed = |(round, _)| round == self.round;
                held.extension.is_some() || held.confirmed.is_some_and(is_confirmed)
            }
            _ => false,
        }
    }

    /// Appends a question in the node's dialect.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, ask: Ask, dialect: Dialect, form: ScriptForm) {
        let (key, token) = (&self.terms.key[..], self.token.as_ref());
        let label = self.terms.label.as_deref();
        match ask {
            Ask::Acquire => {
                dialect::acquire(
                    out,
                    dialect,
                    key,
                    token,
                    self.terms.ttl,
                    self.floor(),
                    label,
                );
            }
            Ask::Heal { ttl } => {
                dialect::acquire(out, dialect, key, token, ttl, self.floor(), label);
            }
            Ask::Extend { ttl } | Ask::Shrink { ttl } => {
                dialect::extend(out, dialect, form, key, token, ttl);
            }
            Ask::Release => dialect::release(out, dialect, form, key, token),
            Ask::Remaining => encode_command(out, &[b"PTTL", key]),
            Ask::Holder => encode_command(out, &[b"GET", key]),
            Ask::Describe => dialect::describe(out, dialect, key),
            Ask::Force => dialect::force(out, dialect, key),
            Ask::Ping => encode_command(out, &[b"PING"]),
            // Each node is asked in words of its own: see `ask_lagging`.
            Ask::Fence => {}
        }
    }

    /// The question is on its way.
    pub(crate) fn asked(&mut self, now: Time, link: &Link, ask: Ask, slack: Duration) {
        let (node, incarnation) = (link.node, link.incarnation);
        let granted_for = match ask {
            Ask::Acquire => Some(self.terms.ttl),
            Ask::Heal { ttl } | Ask::Extend { ttl } => Some(ttl),
            _ => None,
        };
        if let Some(ttl) = granted_for {
            self.may_hold.insert(node);
            // A slow clock of the node keeps the key longer, and so does a request that waits in a buffer.
            let until = now + ttl + ttl / 8 + slack;
            self.may_hold_until = self.may_hold_until.max(until);
        }
        self.awaits(node);
        match &mut self.state {
            State::Acquiring(acquiring) if ask == Ask::Acquire && !link.dialect.has_fences() => {
                acquiring.round.asked_plainly(node, incarnation);
            }
            state if ask.is_voted_on() => {
                if let Some(ballot) = state.ballot_mut() {
                    ballot.asked(node, incarnation);
                }
            }
            _ => {}
        }
    }

    /// The node was asked, or will be when it is ready.
    pub(crate) fn awaits(&mut self, node: NodeId) {
        if let State::Releasing(releasing) = &mut self.state {
            releasing.awaited.insert(node);
        }
    }

    /// The node cannot be asked, or will not answer what it was asked.
    pub(crate) fn unreachable(&mut self, link: &mut Link, cause: Cause) {
        let node = link.node;
        match &mut self.state {
            State::Releasing(releasing) => {
                let is_open = releasing.leaves(node);
                if is_open && self.may_hold.contains(node) {
                    link.ledger.push(Ticket {
                        key: self.terms.key.clone(),
                        token: self.token,
                        until: self.may_hold_until,
                    });
                }
            }
            State::Looking(looking) => looking.failed(node, &cause),
            State::Confirming(confirming) => confirming.failed(node),
            _ => {}
        }
        let ballot = self.state.ballot_mut();
        if ballot.is_some_and(|ballot| ballot.on_unreachable(node)) {
            self.blame(node, cause);
        }
    }

    /// The node's connection is gone, and its vote with it: whether it had one, or owed one, or cannot be asked.
    pub(crate) fn disconnected(&mut self, link: &mut Link, incarnation: u32, cause: &Cause) {
        let ballot = self.state.ballot_mut();
        if ballot.is_some_and(|ballot| ballot.on_disconnected(link.node, incarnation)) {
            self.blame(link.node, cause.clone());
        }
        self.unreachable(link, cause.clone());
    }

    /// An extension was not answered when its connection broke. Whether its round is decided by now, or was long ago, makes
    /// no difference: the node may hear of it at any time.
    pub(crate) fn doubt(&mut self, node: NodeId, ttl: Duration) {
        self.doubtful.insert(node);
        self.doubtful_ttl = self.doubtful_ttl.min(ttl);
    }
}
