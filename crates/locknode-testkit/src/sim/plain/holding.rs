//! Holding: extending, noticing the end, releasing.

use std::time::Duration;

use redlock_proto::Time;

use crate::bug::Bug;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::PlainClient;
use crate::sim::plain::lock::{State, whole_millis};
use crate::sim::plain::request::What;

impl PlainClient {
    /// Asks all nodes to extend, if there is something to extend.
    pub(super) fn begin_extension(&mut self, now: Time, handle: Handle, ttl: Duration) {
        self.expire(now, handle);
        let why_not = match self.locks.get(&handle).map(|lock| lock.state) {
            Some(State::Held {
                is_extending: false,
            }) => None,
            Some(State::Held { .. }) => Some("busy"),
            Some(State::Lost) => Some("lost"),
            _ => Some("not held"),
        };
        if let Some(why) = why_not {
            return self.notices.push_back(ClientNotice::Extended {
                lock: handle,
                result: Err(why),
            });
        }
        let (nodes, ttl) = (self.links.len(), whole_millis(ttl));
        let valid_until = self.validity(now, now, ttl);
        let Some(lock) = self.locks.get_mut(&handle) else {
            return;
        };
        lock.state = State::Held { is_extending: true };
        lock.ttl = ttl;
        lock.round
            .begin(now, nodes, self.bug == Some(Bug::VotesKept));
        // A node that hears of a shorter TTL ends the lock by that, whether others do or not.
        if valid_until < lock.valid_until {
            lock.valid_until = valid_until;
            self.notices.push_back(ClientNotice::Validity {
                lock: handle,
                valid_until,
            });
        }
        self.ask_all(now, handle, What::Extend);
    }

    /// What the answers so far amount to.
    pub(super) fn judge_extension(&mut self, now: Time, handle: Handle) {
        self.expire(now, handle);
        let (needed, nodes) = (self.needed(), self.links.len());
        let Some(lock) = self.locks.get(&handle) else {
            return;
        };
        if lock.state != (State::Held { is_extending: true }) {
            return;
        }
        let round = &lock.round;
        let is_gone = round.refused() + needed > nodes;
        let result = if round.acks() >= needed {
            let valid_until = self.validity(now, round.started(), lock.ttl);
            if now < valid_until {
                Ok(valid_until)
            } else {
                Err("expired")
            }
        } else if is_gone {
            Err("not held")
        } else if round.acks() + round.outstanding() < needed {
            Err("no quorum")
        } else {
            return;
        };
        self.extended(handle, result);
        if is_gone && result.is_err() {
            self.lose(handle, "not held");
        }
    }

    /// Sees whether the validity of a lock has ended.
    pub(super) fn expire(&mut self, now: Time, handle: Handle) {
        let Some(lock) = self.locks.get(&handle) else {
            return;
        };
        let State::Held { is_extending } = lock.state else {
            return;
        };
        if self.deadline(lock) > now {
            return;
        }
        if is_extending {
            self.extended(handle, Err("expired"));
        }
        self.lose(handle, "expired");
    }

    /// Asks all nodes to release, whatever was going on.
    pub(super) fn begin_release(&mut self, now: Time, handle: Handle) {
        let nodes = self.links.len();
        let Some(lock) = self.locks.get_mut(&handle) else {
            self.notices.push_back(ClientNotice::Released {
                lock: handle,
                confirmed: 0,
            });
            return;
        };
        if lock.state == State::Releasing {
            return;
        }
        lock.state = State::Releasing;
        lock.round.begin_release(nodes);
        self.ask_all(now, handle, What::Release);
    }

    /// Every node has released the lock, or had its time.
    pub(super) fn released(&mut self, handle: Handle) {
        if let Some(lock) = self.locks.get(&handle) {
            let confirmed = u8::try_from(lock.round.released()).unwrap_or(u8::MAX);
            self.locks.remove(&handle);
            self.notices.push_back(ClientNotice::Released {
                lock: handle,
                confirmed,
            });
        }
    }

    /// The extension is decided.
    fn extended(&mut self, handle: Handle, result: Result<Time, &'static str>) {
        if let Some(lock) = self.locks.get_mut(&handle) {
            lock.state = State::Held {
                is_extending: false,
            };
            if let Ok(valid_until) = result {
                lock.valid_until = valid_until;
            }
        }
        self.notices.push_back(ClientNotice::Extended {
            lock: handle,
            result,
        });
    }

    fn lose(&mut self, handle: Handle, why: &'static str) {
        if let Some(lock) = self.locks.get_mut(&handle) {
            lock.state = State::Lost;
        }
        self.notices
            .push_back(ClientNotice::Lost { lock: handle, why });
    }
}
