//! The real rounds of a client. What a round was told is in the state of the model, in ticks; the round itself is made anew
//! from that, once for each history, and asked.

use std::time::Duration;

use redlock_proto::round::{
    AcquireRound, AcquireVerdict, Answer, ExtendRound, ExtendVerdict, ReleaseRound, ReleaseVerdict,
    RoundId, Vote,
};
use redlock_proto::{Drift, NodeSet, Time};

use crate::ballot::{INCARNATION, NODES, id, quorum, vote};
use crate::exclusion::rules::{Bug, Rules};
use crate::memo::Memo;
use crate::node::TICK;

/// What a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pending,
    /// With validity for so many ticks.
    Won {
        left: u8,
    },
    /// Also: not extended.
    Lost,
    /// The lock is not held any more.
    Ended,
}

/// What a reply did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Whether it is a vote.
    pub(crate) counts: bool,
    pub(crate) verdict: Verdict,
    /// The nodes that a majority would have hold the lock again.
    pub(crate) heals: NodeSet,
}

/// A reply, by node and by what it says, and whether it answers the present round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reply {
    pub(crate) node: usize,
    pub(crate) answer: Answer,
    pub(crate) is_present: bool,
}

/// Who said what.
pub(crate) type Votes = [Option<Answer>; NODES];

/// What a round was told: how long ago it began, who said what, and what comes now, if not time alone.
type History = (u8, Votes, Option<Reply>);

#[derive(Debug)]
pub(crate) struct Rounds {
    rules: Rules,
    acquire: Memo<History, Heard>,
    extend: Memo<History, Heard>,
    release: Memo<Votes, bool>,
}

impl Rounds {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            acquire: Memo::new(),
            extend: Memo::new(),
            release: Memo::new(),
        }
    }

    /// A reply to an acquire arrives, or time has passed.
    pub(crate) fn acquire(&self, age: u8, votes: Votes, reply: Option<Reply>) -> Heard {
        self.acquire.value((age, votes, reply), |_| {
            let began = match self.rules.bug {
                Some(Bug::ValidityFromReply) if reply.is_some() => age,
                _ => 0,
            };
            let mut round = self.acquire_round(votes, began);
            let counts = match reply {
                Some(reply) => round.on_vote(self.vote(&reply), reply.answer, None),
                None => !round.on_time(at(age)).is_empty(),
            };
            let verdict = acquire_verdict(&round, age);
            Heard {
                counts,
                verdict,
                heals: NodeSet::default(),
            }
        })
    }

    /// A reply to an extension arrives, or time has passed.
    pub(crate) fn extend(&self, age: u8, votes: Votes, reply: Option<Reply>) -> Heard {
        self.extend.value((age, votes, reply), |_| {
            let mut round = self.extend_round(votes);
            let counts = match reply {
                Some(reply) => round.ballot.on_vote(self.vote(&reply), reply.answer),
                None => !round.ballot.on_time(at(age)).is_empty(),
            };
            let verdict = extend_verdict(&round, age);
            let heals = match verdict {
                Verdict::Won { .. } => round.ballot.no(),
                _ => NodeSet::default(),
            };
            Heard {
                counts,
                verdict,
                heals,
            }
        })
    }

    /// Whether these answers tell that a majority deleted the lock.
    pub(crate) fn is_released(&self, answers: Votes) -> bool {
        self.release.value(answers, |_| {
            let mut round = ReleaseRound::new(PRESENT, quorum(), at(0), TICK);
            for node in 0..NODES {
                round.ballot.asked(id(node), INCARNATION);
            }
            for reply in replies(answers) {
                assert!(
                    round.ballot.on_vote(self.vote(&reply), reply.answer),
                    "the first answer"
                );
            }
            let is_confirmed = round.ballot.yes().len() >= quorum().needed();
            let is_decided = round.verdict() == ReleaseVerdict::Decided;
            assert!(is_decided || !is_confirmed, "a majority decides");
            is_confirmed
        })
    }

    /// How many histories were given to a real round.
    pub(crate) fn runs(&self) -> usize {
        self.acquire.len() + self.extend.len() + self.release.len()
    }

    fn acquire_round(&self, votes: Votes, began: u8) -> AcquireRound {
        let (ttl, drift) = (self.ttl(), self.drift());
        // As long as there can be validity, a node has time to answer.
        let mut round = AcquireRound::new(PRESENT, quorum(), at(began), ttl, drift, ttl);
        for node in 0..NODES {
            round.asked_plainly(id(node), INCARNATION);
        }
        for reply in replies(votes) {
            let counts = round.on_vote(self.vote(&reply), reply.answer, None);
            assert!(counts, "it counted before");
        }
        round
    }

    fn extend_round(&self, votes: Votes) -> ExtendRound {
        let (ttl, drift) = (self.ttl(), self.drift());
        let mut round = ExtendRound::new(PRESENT, quorum(), at(0), ttl, drift, ttl);
        for node in 0..NODES {
            round.ballot.asked(id(node), INCARNATION);
        }
        for reply in replies(votes) {
            let counts = round.ballot.on_vote(self.vote(&reply), reply.answer);
            assert!(counts, "it counted before");
        }
        round
    }

    fn vote(&self, reply: &Reply) -> Vote {
        let is_kept = self.rules.bug == Some(Bug::VotesKept);
        let round = if reply.is_present || is_kept {
            PRESENT
        } else {
            EARLIER
        };
        vote(round, reply.node)
    }

    fn ttl(&self) -> Duration {
        TICK * u32::from(self.rules.ttl)
    }

    fn drift(&self) -> Drift {
        Drift::new(0, TICK * u32::from(self.rules.drift))
    }
}

fn acquire_verdict(round: &AcquireRound, age: u8) -> Verdict {
    match round.verdict(at(age)) {
        AcquireVerdict::Pending { .. } => Verdict::Pending,
        AcquireVerdict::Won {
            valid_until,
            fencing: None,
        } => Verdict::Won {
            left: ticks(valid_until.since(at(age))),
        },
        AcquireVerdict::Lost(_) => Verdict::Lost,
        other => panic!("nobody told a counter: {other:?}"),
    }
}

fn extend_verdict(round: &ExtendRound, age: u8) -> Verdict {
    match round.verdict(at(age)) {
        ExtendVerdict::Pending { .. } => Verdict::Pending,
        ExtendVerdict::Extended { valid_until } => Verdict::Won {
            left: ticks(valid_until.since(at(age))),
        },
        ExtendVerdict::Failed => Verdict::Lost,
        ExtendVerdict::NotHeld => Verdict::Ended,
    }
}

/// The replies that the round heard before.
fn replies(votes: Votes) -> impl Iterator<Item = Reply> {
    votes.into_iter().enumerate().filter_map(|(node, vote)| {
        vote.map(|answer| Reply {
            node,
            answer,
            is_present: true,
        })
    })
}

/// A moment so many ticks after the round began.
fn at(age: u8) -> Time {
    Time::ZERO + TICK * (START + u32::from(age))
}

/// Whole ticks: what a client believes of a part of a tick, it believes in all of it.
fn ticks(span: Duration) -> u8 {
    let ticks = span.as_nanos().div_ceil(TICK.as_nanos());
    u8::try_from(ticks).expect("a few ticks")
}

const START: u32 = 1000;
const PRESENT: RoundId = RoundId {
    attempt: 2,
    round: 1,
};
const EARLIER: RoundId = RoundId {
    attempt: 1,
    round: 1,
};
