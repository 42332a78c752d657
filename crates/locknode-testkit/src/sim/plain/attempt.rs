//! Acquiring: one attempt after the other until a majority grants the lock.

use std::time::Duration;

use redlock_proto::{Entropy as _, Time};

use crate::bug::Bug;
use crate::random::Random;
use crate::sim::notice::ClientNotice;
use crate::sim::plain::lock::{Lock, State};
use crate::sim::plain::request::What;
use crate::sim::plain::{Form, PlainClient};

impl PlainClient {
    /// The next attempt.
    pub(super) fn attempt(&mut self, now: Time, lock: &mut Lock) {
        let is_first = lock.tries == 0;
        lock.tries = lock.tries.saturating_add(1);
        if is_first || self.bug != Some(Bug::TokenReused) {
            lock.token = match self.bug {
                Some(Bug::SharedToken) => SHARED_TOKEN.to_owned(),
                _ => fresh_token(&mut self.random),
            };
        }
        lock.round.begin(now, self.bug == Some(Bug::VotesKept));
        lock.state = State::Acquiring;
        self.ask(now, lock, What::Acquire, self.nodes());
    }

    /// What the answers so far amount to.
    pub(super) fn judge_attempt(&mut self, now: Time, lock: &mut Lock) {
        let needed = self.needed();
        let round = &lock.round;
        let granted = match lock.state {
            State::WritingBack { fence } => round.acks_at(fence),
            _ => round.acks.len(),
        };
        if granted < needed {
            if granted + round.outstanding.len() < needed {
                let why = if round.refused.len() + needed > self.links.len() {
                    "busy"
                } else {
                    "no quorum"
                };
                self.fail(now, lock, why);
            }
            return;
        }
        let valid_until = self.validity(now, round.started, lock.ttl);
        if now >= valid_until && self.bug != Some(Bug::ValidityUnchecked) {
            return self.fail(now, lock, "expired");
        }
        let fence = match lock.state {
            State::WritingBack { fence } => fence,
            _ => round.highest_fence(),
        };
        if round.acks_at(fence) < needed && self.bug != Some(Bug::MaxOnly) {
            // The nodes that granted with a lower counter are asked to accept the fencing token.
            lock.state = State::WritingBack { fence };
            let lagging = lock.round.take_lagging(fence);
            return self.ask(now, lock, What::Fence(fence), lagging);
        }
        lock.state = State::Held {
            is_extending: false,
        };
        lock.valid_until = valid_until;
        self.notices.push_back(ClientNotice::Acquired {
            lock: lock.handle,
            token: lock.token.clone().into_bytes(),
            fencing: (self.form == Form::Token).then_some(fence),
            valid_until,
        });
    }

    /// The attempt failed: what was granted is released, on every node, since any may have granted it.
    fn fail(&mut self, now: Time, lock: &mut Lock, why: &'static str) {
        if self.bug == Some(Bug::TokenReused) && lock.tries < lock.terms.tries {
            // Who uses the token again wants to find what it was granted.
            return self.pause(now, lock);
        }
        lock.state = State::Undoing { why };
        lock.round.begin_release();
        self.ask(now, lock, What::Release, self.nodes());
    }

    /// Every node has released the failed attempt, or had its time.
    pub(super) fn undone(&mut self, now: Time, lock: &mut Lock, why: &'static str) {
        if lock.tries < lock.terms.tries {
            return self.pause(now, lock);
        }
        lock.state = State::Over;
        let lock = lock.handle;
        self.notices.push_back(ClientNotice::Failed { lock, why });
    }

    /// Waits for a random time, so that clients that split the votes do not do so again.
    fn pause(&mut self, now: Time, lock: &mut Lock) {
        let doublings = lock.tries.saturating_sub(1).min(PAUSE_DOUBLINGS);
        let pause = self.random.between(PAUSE_MIN_US, PAUSE_MAX_US << doublings);
        lock.state = State::Pausing {
            until: now + Duration::from_micros(pause),
        };
    }
}

/// 20 hexadecimal digits: 80 random bits are unique among all attempts of any number of runs, and still readable in a
/// timeline.
fn fresh_token(random: &mut Random) -> String {
    let mut bytes = [0; 10];
    random.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The token of those who take it for a formality.
const SHARED_TOKEN: &str = "the-same-for-all----";

/// The pause before another attempt, at least ...
const PAUSE_MIN_US: u64 = 5_000;
/// ... and at most before the second attempt: several round trips, so that of two clients that split the votes one is
/// done before the other comes again. It doubles ...
const PAUSE_MAX_US: u64 = 40_000;
/// ... so often, up to 320 ms.
const PAUSE_DOUBLINGS: u32 = 3;
