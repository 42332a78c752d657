//! Every order of events, for three nodes and two attempts: are fencing tokens an order?
//!
//! The clients are real rounds; around them is the least of a world. Any request or reply may be the next to arrive, or
//! never arrive; any node may end a lock at any moment or restart without it. What a node keeps is its counter. There
//! is no clock, so nothing here depends on one.

use std::collections::HashSet;

use super::{START, TIMEOUT, TTL, id};
use crate::drift::Drift;
use crate::fencing_token::FencingToken;
use crate::quorum::Quorum;
use crate::round::{AcquireRound, AcquireVerdict, Answer, RoundId, Vote};

/// What is left out of the protocol, to see that the search finds out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    /// The client takes the maximum and writes nothing back.
    MaximumOnly,
    /// The client writes back and does not wait for the answers.
    Impatient,
    /// The node raises its counter whoever holds the key.
    Unconditional,
    /// The counter begins anew when the node restarts.
    Forgetful,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    None,
    Asked,
    Answered(bool, u8),
    Over,
}

#[derive(Clone)]
struct Node {
    /// The attempt that holds the key, and what the counter was when it was granted.
    owner: Option<(u8, u8)>,
    counter: u8,
}

#[derive(Clone)]
struct Attempt {
    round: AcquireRound,
    is_started: bool,
    /// Those that had succeeded before it began.
    after: [bool; ATTEMPTS],
    acquires: [Message; NODES],
    fences: [Message; NODES],
    /// The token with which it succeeded, or that it did not.
    outcome: Option<Option<u8>>,
}

#[derive(Clone)]
struct Model {
    flaw: Flaw,
    nodes: [Node; NODES],
    attempts: [Attempt; ATTEMPTS],
    restarts: u8,
}

/// How far a search came.
#[derive(Default, Debug)]
struct Found {
    states: usize,
    successes: usize,
    written_back: usize,
    both: usize,
    violation: Option<String>,
}

impl Model {
    fn new(flaw: Flaw, counters: [u8; NODES], restarts: u8) -> Self {
        let attempt = |attempt| Attempt {
            round: AcquireRound::new(
                RoundId { attempt, round: 0 },
                Quorum::of(NODES).unwrap(),
                START,
                TTL,
                Drift::default(),
                TIMEOUT,
            ),
            is_started: false,
            after: [false; ATTEMPTS],
            acquires: [Message::None; NODES],
            fences: [Message::None; NODES],
            outcome: None,
        };
        Self {
            flaw,
            nodes: counters.map(|counter| Node {
                owner: None,
                counter,
            }),
            attempts: [attempt(0), attempt(1)],
            restarts,
        }
    }

    /// All that can happen next and can matter. When all attempts are decided nothing does; what a node goes through by
    /// itself is seen by the next request only, so it happens when there is one.
    fn next(&self, found: &mut Found) -> Vec<Self> {
        let mut all = Vec::new();
        if self
            .attempts
            .iter()
            .all(|attempt| attempt.outcome.is_some())
        {
            return all;
        }
        let mut push = |change: &mut dyn FnMut(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            all.push(next);
        };
        for a in 0..ATTEMPTS {
            let attempt = &self.attempts[a];
            if !attempt.is_started {
                // They differ in nothing but their order.
                push(&mut |next| next.start(a));
                break;
            }
            for n in 0..NODES {
                match attempt.acquires[n] {
                    Message::Asked => push(&mut |next| next.grant(a, n)),
                    Message::Answered(..) => push(&mut |next| next.hear_grant(a, n, found)),
                    _ => {}
                }
                match attempt.fences[n] {
                    Message::Asked => push(&mut |next| next.fence(a, n)),
                    Message::Answered(..) => push(&mut |next| next.hear_fence(a, n, found)),
                    _ => {}
                }
            }
        }
        for n in 0..NODES {
            let is_asked = |attempt: &Attempt| {
                attempt.acquires[n] == Message::Asked || attempt.fences[n] == Message::Asked
            };
            if !self.attempts.iter().any(is_asked) {
                continue;
            }
            if self.nodes[n].owner.is_some() {
                push(&mut |next| next.nodes[n].owner = None);
            }
            if self.restarts > 0 {
                push(&mut |next| next.restart(n));
            }
        }
        all
    }

    fn start(&mut self, a: usize) {
        for n in 0..NODES {
            self.attempts[a].round.ballot.asked(id(n), 1);
            self.attempts[a].acquires[n] = Message::Asked;
        }
        let had = |attempt: &Attempt| matches!(attempt.outcome, Some(Some(_)));
        self.attempts[a].after = std::array::from_fn(|other| had(&self.attempts[other]));
        self.attempts[a].is_started = true;
    }

    fn restart(&mut self, n: usize) {
        self.restarts -= 1;
        self.nodes[n].owner = None;
        self.nodes[n].counter = match self.flaw {
            Flaw::Forgetful => 0,
            _ => self.nodes[n].counter + 1,
        };
    }

    fn grant(&mut self, a: usize, n: usize) {
        let node = &mut self.nodes[n];
        let is_free = node.owner.is_none();
        if is_free {
            node.counter += 1;
            node.owner = Some((u8::try_from(a).unwrap(), node.counter));
        }
        let answer = Message::Answered(is_free, node.counter);
        self.attempts[a].acquires[n] = self.unless_over(a, answer);
    }

    fn fence(&mut self, a: usize, n: usize) {
        let round = &self.attempts[a].round;
        let number = |token: Option<FencingToken>| u8::try_from(token.unwrap().get()).unwrap();
        let (grant, fence) = (number(round.counter(id(n))), number(round.fixed()));
        let node = &mut self.nodes[n];
        let is_held = node.owner == Some((u8::try_from(a).unwrap(), grant));
        if is_held || self.flaw == Flaw::Unconditional {
            node.counter = node.counter.max(fence);
        }
        let is_accepted = is_held || self.flaw == Flaw::Unconditional;
        self.attempts[a].fences[n] = self.unless_over(a, Message::Answered(is_accepted, 0));
    }

    /// Nobody waits for the answers of an attempt that is decided.
    fn unless_over(&self, a: usize, message: Message) -> Message {
        match self.attempts[a].outcome {
            Some(_) => Message::Over,
            None => message,
        }
    }

    fn hear_grant(&mut self, a: usize, n: usize, found: &mut Found) {
        let attempt = &mut self.attempts[a];
        if let Message::Answered(is_granted, counter) = attempt.acquires[n] {
            let counter = FencingToken::new(u64::from(counter));
            let vote = attempt.vote(n);
            attempt.round.on_vote(vote, answer(is_granted), counter);
        }
        attempt.acquires[n] = Message::Over;
        self.judge(a, found);
    }

    fn hear_fence(&mut self, a: usize, n: usize, found: &mut Found) {
        let attempt = &mut self.attempts[a];
        if let Message::Answered(is_accepted, _) = attempt.fences[n] {
            let vote = attempt.vote(n);
            attempt.round.on_write_back(vote, answer(is_accepted));
        }
        attempt.fences[n] = Message::Over;
        self.judge(a, found);
    }

    fn judge(&mut self, a: usize, found: &mut Found) {
        let flaw = self.flaw;
        let attempt = &mut self.attempts[a];
        let mut verdict = attempt.round.verdict(START);
        if verdict == AcquireVerdict::Diverged {
            attempt.round.write_back(START, TIMEOUT);
            verdict = attempt.round.verdict(START);
            found.written_back += 1;
        }
        for node in attempt.round.lagging().iter() {
            attempt.round.write_back_asked(node);
            attempt.fences[node.index()] = Message::Asked;
        }
        let fixed = attempt.round.fixed();
        match verdict {
            AcquireVerdict::Won { fencing, .. } => self.succeed(a, fencing.unwrap(), found),
            AcquireVerdict::Lost(_) => self.decide(a, None),
            _ if matches!(flaw, Flaw::MaximumOnly | Flaw::Impatient) && fixed.is_some() => {
                if flaw == Flaw::MaximumOnly {
                    self.attempts[a].fences = [Message::None; NODES];
                }
                self.succeed(a, fixed.unwrap(), found);
            }
            _ => {}
        }
    }

    fn succeed(&mut self, a: usize, token: FencingToken, found: &mut Found) {
        let token = u8::try_from(token.get()).unwrap();
        found.successes += 1;
        for b in (0..ATTEMPTS).filter(|b| *b != a) {
            let Some(Some(other)) = self.attempts[b].outcome else {
                continue;
            };
            found.both += 1;
            let is_fine = if self.attempts[a].after[b] {
                other < token
            } else {
                other != token
            };
            if !is_fine {
                found.violation = Some(format!("{other}, then {token}: {:?}", self.key()));
            }
        }
        self.decide(a, Some(token));
    }

    fn decide(&mut self, a: usize, outcome: Option<u8>) {
        let attempt = &mut self.attempts[a];
        attempt.outcome = Some(outcome);
        for message in attempt.acquires.iter_mut().chain(&mut attempt.fences) {
            if let Message::Answered(..) = message {
                *message = Message::Over;
            }
        }
    }

    /// All that matters of a state, in few bytes. Nodes differ in nothing but what they went through, so their order
    /// does not matter.
    fn key(&self) -> [u8; 64] {
        let mut nodes: [[u8; 15]; NODES] = std::array::from_fn(|n| self.node_key(n));
        nodes.sort_unstable();
        let mut key = [0; 64];
        let (head, tail) = key.split_at_mut(45);
        head.copy_from_slice(nodes.as_flattened());
        let token =
            |token: Option<FencingToken>| token.map_or(0, |token| token.get().to_le_bytes()[0]);
        for (bytes, attempt) in tail.chunks_exact_mut(4).zip(&self.attempts) {
            bytes[0] = u8::from(attempt.is_started);
            bytes[1] = token(attempt.round.fixed());
            bytes[2] = match attempt.outcome {
                None => 0,
                Some(None) => 255,
                Some(Some(token)) => token,
            };
            bytes[3] = u8::from(attempt.after[0]) + 2 * u8::from(attempt.after[1]);
        }
        key[63] = self.restarts;
        key
    }

    fn node_key(&self, n: usize) -> [u8; 15] {
        let mut key = [0; 15];
        let node = &self.nodes[n];
        let (owner, grant) = node
            .owner
            .map_or((0, 0), |(owner, grant)| (owner + 1, grant));
        key[..3].copy_from_slice(&[owner, grant, node.counter]);
        for (bytes, attempt) in key[3..].chunks_exact_mut(6).zip(&self.attempts) {
            let message = |message| match message {
                Message::None => (0, 0),
                Message::Asked => (1, 0),
                Message::Answered(yes, counter) => (2 + u8::from(yes), counter),
                Message::Over => (4, 0),
            };
            let (acquire, told) = message(attempt.acquires[n]);
            let (fence, _) = message(attempt.fences[n]);
            let (granted, refused) = (attempt.round.ballot.yes(), attempt.round.ballot.no());
            let vote = u8::from(granted.contains(id(n))) + 2 * u8::from(refused.contains(id(n)));
            // What is over matters no more; requests that are under way quote the counter.
            let counter = if attempt.outcome.is_some() && fence != 1 {
                0
            } else {
                attempt
                    .round
                    .counter(id(n))
                    .map_or(0, |n| n.get().to_le_bytes()[0])
            };
            let vote = if attempt.outcome.is_some() { 0 } else { vote };
            bytes.copy_from_slice(&[acquire, told, fence, vote, counter, 0]);
        }
        key
    }
}

impl Attempt {
    fn vote(&self, n: usize) -> Vote {
        Vote {
            round: self.round.ballot.id,
            node: id(n),
            incarnation: 1,
        }
    }
}

fn answer(is_yes: bool) -> Answer {
    if is_yes { Answer::Yes } else { Answer::No }
}

/// Visits every state once.
fn search(flaw: Flaw, counters: [u8; NODES], restarts: u8) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    let first = Model::new(flaw, counters, restarts);
    seen.insert(first.key());
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        for next in state.next(&mut found) {
            if found.violation.is_some() {
                found.states = seen.len();
                return found;
            }
            if seen.insert(next.key()) {
                open.push(next);
            }
        }
    }
    found.states = seen.len();
    found
}

/// `[F7]`
#[test]
fn in_no_order_of_events_two_tokens_are_the_same_or_out_of_order() {
    for (counters, restarts) in STARTS {
        let found = search(Flaw::None, counters, restarts);
        eprintln!("{counters:?}, {restarts} restarts: {found:?}");
        assert_eq!(found.violation, None, "from {counters:?}");
        assert!(
            found.successes > 0 && found.both > 0 && found.written_back > 0,
            "{found:?}"
        );
    }
}

/// `[F7]` A search that finds nothing is worth something if it finds what is there.
#[test]
fn each_part_of_the_protocol_is_missed_when_it_is_left_out() {
    for (flaw, counters, restarts) in [
        (Flaw::MaximumOnly, [3, 0, 0], 0),
        (Flaw::Impatient, [3, 0, 0], 0),
        (Flaw::Unconditional, [0, 0, 0], 0),
        (Flaw::Forgetful, [1, 0, 0], 1),
    ] {
        let found = search(flaw, counters, restarts);
        eprintln!("{flaw:?}: {found:?}");
        assert!(found.violation.is_some(), "{flaw:?}: {found:?}");
    }
}

/// Counters to begin with, and how often a node restarts. From 2, 1, 0 with a restart there are 582,413 states, and none
/// is wrong; that takes too long for every day.
const STARTS: [([u8; NODES], u8); 4] = [
    ([0, 0, 0], 0),
    ([3, 0, 0], 0),
    ([2, 1, 0], 0),
    ([0, 0, 0], 1),
];
const NODES: usize = 3;
const ATTEMPTS: usize = 2;
