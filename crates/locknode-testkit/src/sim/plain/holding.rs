//! Holding: extending, noticing the end, releasing.

use std::time::Duration;

use redlock_proto::Time;

use crate::bug::Bug;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::PlainClient;
use crate::sim::plain::lock::{Lock, State, whole_millis};
use crate::sim::plain::request::What;

impl PlainClient {
    /// Begins to extend a lock. Ends in [`ClientNotice::Extended`], unless the lock is released or left before.
    pub(crate) fn extend(&mut self, now: Time, handle: Handle, ttl: Duration) {
        self.with_lock(handle, |client, lock| client.expire(now, lock));
        let why_not = match self.locks.get(&handle).map(|lock| lock.state) {
            Some(State::Held {
                is_extending: false,
            }) => {
                return self.with_lock(handle, |client, lock| {
                    client.begin_extension(now, lock, whole_millis(ttl));
                });
            }
            Some(State::Held { .. }) => "busy",
            Some(State::Lost) => "lost",
            _ => "not held",
        };
        self.notices.push_back(ClientNotice::Extended {
            lock: handle,
            result: Err(why_not),
        });
    }

    /// Asks all nodes to extend.
    fn begin_extension(&mut self, now: Time, lock: &mut Lock, ttl: Duration) {
        lock.state = State::Held { is_extending: true };
        lock.ttl = ttl;
        lock.count_extension();
        lock.round.begin(now, self.bug == Some(Bug::VotesKept));
        // A node that hears of a shorter TTL ends the lock by that, whether others do or not.
        let valid_until = self.validity(now, now, ttl);
        if valid_until < lock.valid_until {
            lock.valid_until = valid_until;
            let lock = lock.handle;
            self.notices
                .push_back(ClientNotice::Validity { lock, valid_until });
        }
        self.ask(now, lock, What::Extend, self.nodes());
    }

    /// What the answers so far amount to.
    pub(super) fn judge_extension(&mut self, now: Time, lock: &mut Lock) {
        self.expire(now, lock);
        if lock.state != (State::Held { is_extending: true }) {
            return;
        }
        let (needed, round) = (self.needed(), &lock.round);
        let is_gone = round.refused.len() + needed > self.links.len();
        let result = if round.acks.len() >= needed {
            let valid_until = self.validity(now, round.started, lock.ttl);
            if now < valid_until {
                Ok(valid_until)
            } else {
                Err("expired")
            }
        } else if is_gone {
            Err("not held")
        } else if round.acks.len() + round.outstanding.len() < needed {
            Err("no quorum")
        } else {
            return;
        };
        self.extended(lock, result);
        if is_gone && result.is_err() {
            self.lose(lock, "not held");
        }
    }

    /// Sees whether the validity of a lock has ended.
    pub(super) fn expire(&mut self, now: Time, lock: &mut Lock) {
        if let State::Held { is_extending } = lock.state
            && self.deadline(lock) <= now
        {
            if is_extending {
                self.extended(lock, Err("expired"));
            }
            self.lose(lock, "expired");
        }
    }

    /// Begins to release a lock, whatever has become of it. Ends in [`ClientNotice::Released`] when every node has
    /// answered or had its time.
    pub(crate) fn release(&mut self, now: Time, handle: Handle) {
        if !self.locks.contains_key(&handle) {
            return self.notices.push_back(ClientNotice::Released {
                lock: handle,
                confirmed: 0,
            });
        }
        self.with_lock(handle, |client, lock| {
            if lock.state != State::Releasing {
                lock.state = State::Releasing;
                lock.round.begin_release();
                client.ask(now, lock, What::Release, client.nodes());
            }
        });
    }

    /// Every node has released the lock, or had its time.
    pub(super) fn released(&mut self, lock: &mut Lock) {
        lock.state = State::Over;
        self.notices.push_back(ClientNotice::Released {
            lock: lock.handle,
            confirmed: u8::try_from(lock.round.released).unwrap_or(u8::MAX),
        });
    }

    /// The extension is decided.
    fn extended(&mut self, lock: &mut Lock, result: Result<Time, &'static str>) {
        lock.state = State::Held {
            is_extending: false,
        };
        lock.valid_until = result.unwrap_or(lock.valid_until);
        let lock = lock.handle;
        self.notices
            .push_back(ClientNotice::Extended { lock, result });
    }

    fn lose(&mut self, lock: &mut Lock, why: &'static str) {
        lock.state = State::Lost;
        let lock = lock.handle;
        self.notices.push_back(ClientNotice::Lost { lock, why });
    }
}
