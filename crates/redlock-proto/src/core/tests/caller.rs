//! One program that uses the client: its locks, and what it was promised of each.

use std::time::Duration;

use crate::core::OpId;
use crate::core::tests::random::Random;
use crate::core::{Core, LockTerms};
use crate::policy::{CONTENDED_MAX, RenewPolicy, RetryPolicy};
use crate::time::Time;
use crate::token::Token;

/// A client and the program around it.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) core: Core<Random>,
    /// What its clock is ahead of true time.
    pub(super) offset: u64,
    pub(super) things: Vec<Thing>,
    /// The connection to each node.
    pub(super) conns: Vec<Option<usize>>,
    /// When it is going to look at the time, in true time.
    pub(super) wakes_at: u64,
    /// It does not run until then.
    pub(super) paused_until: u64,
    /// For how long it did not run, in all.
    pub(super) paused: u64,
    pub(super) is_dead: bool,
}

/// Something that a caller waits for or holds.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) op: OpId,
    pub(super) terms: LockTerms,
    pub(super) stage: Stage,
    pub(super) is_adopted: bool,
    /// What a release is a release of.
    pub(super) token: Option<Token>,
    /// When it was asked for, on the caller's clock.
    pub(super) since: Time,
    /// When an answer is due, in true time, pauses of the caller not counted.
    pub(super) due: u64,
    pub(super) paused_before: u64,
    /// The extension that was asked for last: when, how long, and until when there is an answer.
    pub(super) extension: Option<(Time, Duration, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Acquiring,
    Held,
    /// The caller was told to stop and has not let go yet.
    Lost,
    Releasing,
    Looking,
}

impl Caller {
    pub(super) fn local(&self, now: u64) -> Time {
        Time::from_nanos(now + self.offset)
    }

    pub(super) fn find(&mut self, op: OpId) -> Option<&mut Thing> {
        self.things.iter_mut().find(|thing| thing.op == op)
    }

    pub(super) fn take(&mut self, op: OpId) -> Option<Thing> {
        let i = self.things.iter().position(|thing| thing.op == op)?;
        Some(self.things.remove(i))
    }
}

/// Terms by chance, and the longest time to the answer.
pub(super) fn terms(random: &mut Random, keys: u64, ttls: &[u64]) -> (LockTerms, Duration) {
    let ms = Duration::from_millis;
    let ttl = ms(random.pick(ttls));
    let timeout = ms(random.pick(&[5, 30, 100, 250])).min(ttl / 2);
    let backoff_max = ms(random.pick(&[20, 200]));
    let (retry, bound) = match random.chance(60) {
        true => {
            let tries = u32::try_from(random.between(1, 4)).unwrap();
            // A node has its time twice where counters differ, and once more to say whose key it has.
            (
                RetryPolicy::tries(tries),
                (timeout * 3 + backoff_max.max(timeout * 6)) * (tries + CONTENDED_MAX),
            )
        }
        false => {
            let wait = ms(random.pick(&[1, 15, 100, 1_000]));
            (RetryPolicy::wait_for(wait), wait)
        }
    };
    let renew = match random.below(6) {
        0 => Some(RenewPolicy::times(3)),
        1 => Some(RenewPolicy::times(100).every(ttl / 5)),
        2 => Some(RenewPolicy::until(
            ttl * 2 + Duration::from_nanos(random.below(1_000_000_000)),
        )),
        _ => None,
    };
    let terms = LockTerms {
        key: format!("key-{}", random.below(keys)).into_bytes().into(),
        ttl,
        timeout,
        retry: retry.backoff(ms(1), backoff_max),
        renew,
        hold_at_least: match random.chance(5) {
            true => ttl / 2,
            false => Duration::ZERO,
        },
    };
    (terms, bound)
}
