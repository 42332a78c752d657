//! The real round of an attempt. What it was told is in the state of the model; the round itself is made anew from that,
//! once for each history, and goes on with what is heard now.

use std::time::Duration;

use redlock_proto::round::{AcquireRound, AcquireVerdict, Answer, RoundId, Vote};
use redlock_proto::{Drift, FencingToken, Time};

use crate::ballot::{INCARNATION, NODES, id, quorum};
use crate::fencing::Bug;
use crate::fencing::state::{Ask, Cut, Phase, Stage};
use crate::memo::Memo;

/// What became of an attempt by a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) phase: Phase,
    pub(crate) asks: [Ask; NODES],
}

#[derive(Debug)]
pub(crate) struct Rounds {
    bug: Option<Bug>,
    known: Memo<(Phase, [Ask; NODES], usize), Heard>,
}

impl Rounds {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self {
            bug,
            known: Memo::new(),
        }
    }

    /// The reply that is on its way from `node` arrives, or the end of its connection.
    pub(crate) fn heard(&self, phase: Phase, asks: [Ask; NODES], node: usize) -> Heard {
        self.known.value((phase, asks, node), |_| {
            let mut round = replayed(phase, &asks);
            let mut asks = asks;
            take(&mut round, phase, &mut asks[node], node);
            let phase = self.judge(&mut round, &mut asks);
            Heard { phase, asks }
        })
    }

    /// How many histories were given to a real round.
    pub(crate) fn runs(&self) -> usize {
        self.known.len()
    }

    /// What the client does with an attempt whose votes changed: it asks the round, and the nodes that the round names.
    pub(crate) fn judge(&self, round: &mut AcquireRound, asks: &mut [Ask; NODES]) -> Phase {
        loop {
            match round.verdict(NOW) {
                AcquireVerdict::Diverged if self.bug == Some(Bug::NoWriteBack) => {
                    let token = highest(round);
                    let is_second = false;
                    return Phase::Won { token, is_second };
                }
                AcquireVerdict::Diverged => round.write_back(NOW, TIMEOUT),
                AcquireVerdict::Pending { .. } => {
                    for node in round.lagging().iter() {
                        round.write_back_asked(node);
                        asks[node.index()].stage = Stage::Asked;
                    }
                    let fixed = fixed(round).map(|token| Phase::Fixed { token });
                    return fixed.unwrap_or(Phase::Asking);
                }
                AcquireVerdict::Won { fencing, .. } => {
                    let token = small(fencing.expect("all nodes count"));
                    let is_second = round.fixed().is_some();
                    return Phase::Won { token, is_second };
                }
                AcquireVerdict::Lost(_) => {
                    let token = fixed(round);
                    return Phase::Lost { token };
                }
            }
        }
    }
}

/// What arrived, as the client tells it to the round.
pub(crate) fn take(round: &mut AcquireRound, phase: Phase, ask: &mut Ask, node: usize) {
    if ask.cut != Cut::Never {
        // `replayed` has told it already: it comes after all that the node said.
        return;
    }
    let counter = FencingToken::new(u64::from(ask.counter));
    let (answer, after) = match ask.stage {
        Stage::Granted => (Answer::Yes, Stage::Counted),
        Stage::Refused => (Answer::No, Stage::Against),
        Stage::Accepted => (Answer::Yes, Stage::Credited),
        Stage::Rejected => (Answer::No, Stage::Revoked),
        other => panic!("{other:?} is no reply under way"),
    };
    let counts = if matches!(ask.stage, Stage::Granted | Stage::Refused) {
        ask.is_late = phase.token().is_some();
        round.on_vote(vote(node), answer, counter)
    } else {
        round.on_write_back(vote(node), answer)
    };
    assert!(counts, "one reply to one question");
    ask.stage = after;
}

/// A round that was told what the attempt has heard.
pub(crate) fn replayed(phase: Phase, asks: &[Ask; NODES]) -> AcquireRound {
    let drift = Drift::default();
    let mut round = AcquireRound::new(ROUND, quorum(), NOW, TIMEOUT, drift, TIMEOUT);
    for node in 0..NODES {
        round.ballot.asked(id(node), INCARNATION);
    }
    tell_votes(&mut round, asks, false);
    tell_cuts(&mut round, asks, Cut::Before);
    let Some(token) = phase.token() else {
        return round;
    };
    round.write_back(NOW, TIMEOUT);
    // The same votes fix the same token.
    assert_eq!(fixed(&round), Some(token));
    tell_votes(&mut round, asks, true);
    for (node, ask) in asks.iter().enumerate() {
        let consent = match ask.stage {
            Stage::Asked | Stage::Accepted | Stage::Rejected => None,
            Stage::Credited => Some(Answer::Yes),
            Stage::Revoked => Some(Answer::No),
            _ => continue,
        };
        assert!(round.lagging().contains(id(node)), "it was asked before");
        round.write_back_asked(id(node));
        if let Some(answer) = consent {
            assert!(round.on_write_back(vote(node), answer), "it counted before");
        }
    }
    tell_cuts(&mut round, asks, Cut::After);
    round
}

fn tell_votes(round: &mut AcquireRound, asks: &[Ask; NODES], is_late: bool) {
    let asks = asks.iter().enumerate();
    for (node, ask) in asks.filter(|(_, ask)| ask.is_late == is_late) {
        let counter = FencingToken::new(u64::from(ask.counter));
        let answer = match ask.stage {
            Stage::Nothing | Stage::Sent | Stage::Granted | Stage::Refused => continue,
            Stage::Against => Answer::No,
            _ => Answer::Yes,
        };
        let counts = round.on_vote(vote(node), answer, counter);
        assert!(counts, "it counted before");
    }
}

fn tell_cuts(round: &mut AcquireRound, asks: &[Ask; NODES], when: Cut) {
    for (node, _) in asks.iter().enumerate().filter(|(_, ask)| ask.cut == when) {
        cut(round, node);
    }
}

/// The end of a connection, as the client tells it to the round.
pub(crate) fn cut(round: &mut AcquireRound, node: usize) {
    round.ballot.on_disconnected(id(node), INCARNATION);
}

fn highest(round: &AcquireRound) -> u8 {
    let told = round.ballot.yes();
    let highest = told.iter().filter_map(|node| round.counter(node)).max();
    small(highest.expect("nodes told different counters"))
}

fn fixed(round: &AcquireRound) -> Option<u8> {
    round.fixed().map(small)
}

fn small(token: FencingToken) -> u8 {
    u8::try_from(token.get()).expect("a small number")
}

fn vote(node: usize) -> Vote {
    crate::ballot::vote(ROUND, node)
}

const ROUND: RoundId = RoundId {
    attempt: 1,
    round: 0,
};

/// No time goes by.
const NOW: Time = Time::ZERO;
const TIMEOUT: Duration = Duration::from_secs(1);
