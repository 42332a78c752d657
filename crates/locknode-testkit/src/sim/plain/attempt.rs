//! Acquiring: one attempt after the other until a majority grants the lock.

use std::time::Duration;

use redlock_proto::{Entropy as _, Time};

use crate::bug::Bug;
use crate::random::Random;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::PlainClient;
use crate::sim::plain::lock::State;
use crate::sim::plain::request::{TOKEN_LEN, What};

impl PlainClient {
    /// The next attempt.
    pub(super) fn attempt(&mut self, now: Time, handle: Handle) {
        let nodes = self.links.len();
        let Some(lock) = self.locks.get_mut(&handle) else {
            return;
        };
        let is_first = lock.tries == 0;
        lock.tries = lock.tries.saturating_add(1);
        if is_first || self.bug != Some(Bug::TokenReused) {
            lock.token = match self.bug {
                Some(Bug::SharedToken) => SHARED_TOKEN,
                _ => fresh_token(&mut self.random),
            };
        }
        lock.round
            .begin(now, nodes, self.bug == Some(Bug::VotesKept));
        lock.state = State::Acquiring;
        self.ask_all(now, handle, What::Acquire);
    }

    /// What the answers so far amount to.
    pub(super) fn judge_attempt(&mut self, now: Time, handle: Handle) {
        let needed = self.needed();
        let Some(lock) = self.locks.get(&handle) else {
            return;
        };
        let round = &lock.round;
        let granted = match lock.state {
            State::WritingBack { fence } => round.acks_at(fence),
            _ => round.acks(),
        };
        if granted < needed {
            if granted + round.outstanding() < needed {
                let why = if round.refused() + needed > self.links.len() {
                    "busy"
                } else {
                    "no quorum"
                };
                self.fail(now, handle, why);
            }
            return;
        }
        let valid_until = self.validity(now, round.started(), lock.ttl);
        if now >= valid_until && self.bug != Some(Bug::ValidityUnchecked) {
            return self.fail(now, handle, "expired");
        }
        let fence = match lock.state {
            State::WritingBack { fence } => fence,
            _ => round.highest_fence(),
        };
        if round.acks_at(fence) < needed && self.bug != Some(Bug::MaxOnly) {
            return self.write_back(now, handle, fence);
        }
        self.acquired(handle, fence, valid_until);
    }

    /// Asks the nodes that granted with a lower counter to accept the fencing token.
    fn write_back(&mut self, now: Time, handle: Handle, fence: u64) {
        let Some(lock) = self.locks.get_mut(&handle) else {
            return;
        };
        lock.state = State::WritingBack { fence };
        let lagging = lock.round.reopen_lagging(fence);
        self.ask(now, handle, What::Fence(fence), lagging);
    }

    fn acquired(&mut self, handle: Handle, fence: u64, valid_until: Time) {
        let Some(lock) = self.locks.get_mut(&handle) else {
            return;
        };
        lock.state = State::Held {
            is_extending: false,
        };
        lock.valid_until = valid_until;
        self.notices.push_back(ClientNotice::Acquired {
            lock: handle,
            token: lock.token.to_vec(),
            fencing: Some(fence),
            valid_until,
        });
    }

    /// The attempt failed: what was granted is released, on every node, since any may have granted it.
    fn fail(&mut self, now: Time, handle: Handle, why: &'static str) {
        let nodes = self.links.len();
        let Some(lock) = self.locks.get_mut(&handle) else {
            return;
        };
        if self.bug == Some(Bug::TokenReused) && lock.tries < lock.terms.tries {
            // Who uses the token again wants to find what it was granted.
            return self.pause(now, handle);
        }
        lock.state = State::Undoing { why };
        lock.round.begin_release(nodes);
        self.ask_all(now, handle, What::Release);
    }

    /// Every node has released the failed attempt, or had its time.
    pub(super) fn undone(&mut self, now: Time, handle: Handle, why: &'static str) {
        let Some(lock) = self.locks.get(&handle) else {
            return;
        };
        if lock.tries < lock.terms.tries {
            return self.pause(now, handle);
        }
        self.locks.remove(&handle);
        self.notices
            .push_back(ClientNotice::Failed { lock: handle, why });
    }

    /// Waits for a random time, so that clients that split the votes do not do so again.
    fn pause(&mut self, now: Time, handle: Handle) {
        let Some(lock) = self.locks.get_mut(&handle) else {
            return;
        };
        let doublings = lock.tries.saturating_sub(1).min(PAUSE_DOUBLINGS);
        let pause = self.random.between(PAUSE_MIN_US, PAUSE_MAX_US << doublings);
        lock.state = State::Pausing {
            until: now + Duration::from_micros(pause),
        };
    }
}

fn fresh_token(random: &mut Random) -> [u8; TOKEN_LEN] {
    let mut bytes = [0; TOKEN_LEN / 2];
    random.fill(&mut bytes);
    let mut token = [0; TOKEN_LEN];
    for (pair, byte) in token.chunks_exact_mut(2).zip(bytes) {
        if let [high, low] = pair {
            (*high, *low) = (hex_digit(byte >> 4), hex_digit(byte & 15));
        }
    }
    token
}

const fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' - 10 + nibble,
    }
}

/// The token of those who take it for a formality.
const SHARED_TOKEN: [u8; TOKEN_LEN] = *b"the-same-for-all----";

/// The pause before another attempt, at least ...
const PAUSE_MIN_US: u64 = 5_000;
/// ... and at most before the second attempt: several round trips, so that of two clients that split the votes one is
/// done before the other comes again. It doubles ...
const PAUSE_MAX_US: u64 = 40_000;
/// ... so often, up to 320 ms.
const PAUSE_DOUBLINGS: u32 = 3;
