//! Locks held as hashes, by scripts or by transactions.
//!
//! ```text
//!  script:       TAKE, KEEP or FREE ---------------------------------------------> done, or not
//!  transaction:  WATCH key --> HGETALL key --> MULTI, two commands, EXEC ---------> done
//!                  ^                |              |
//!                  |                +-- another's -+-> UNWATCH: not done
//!                  +--- the watch ended, or the key was changed ---+
//! ```
//!
//! The watch belongs to the connection, and a client has several locks: after a transaction of another of them, it is gone.

use locknode_resp::encode_command;
use redlock_proto::Time;

use crate::bug::Bug;
use crate::sim::hash_lock::{FREE, KEEP, TAKE};
use crate::sim::plain::PlainClient;
use crate::sim::plain::lock::Lock;
use crate::sim::plain::request::{Answer, Asked, Change, Form, Seen, What};

impl PlainClient {
    /// What is asked first when this is wanted.
    pub(super) fn first_step(&self, what: What) -> What {
        let is_change = matches!(what, What::Acquire | What::Extend | What::Release);
        match what {
            _ if self.form != Form::Transaction || !is_change => what,
            _ if self.bug == Some(Bug::Unwatched) => What::See,
            _ => What::Watch,
        }
    }

    /// Goes on with a transaction; returns what was wanted and the answer to that, once there is one.
    pub(super) fn step(
        &mut self,
        now: Time,
        node: u8,
        lock: &mut Lock,
        what: What,
        answer: Answer,
    ) -> Option<(What, Answer)> {
        let wanted = match lock.change() {
            Change::Take => What::Acquire,
            Change::Free => What::Release,
            _ => What::Extend,
        };
        let watch = self.links[node].watch;
        let is_watched =
            self.bug == Some(Bug::Unwatched) || lock.round.watched.get(&node) == Some(&watch);
        let next = match (what, answer) {
            (What::Watch, Answer::Yes(_)) | (What::See, Answer::Sees(_)) if !is_watched => {
                What::Watch
            }
            (What::Watch, Answer::Yes(_)) => What::See,
            (What::See, Answer::Sees(seen)) => {
                let is_free = seen == Seen::Nothing && wanted == What::Acquire;
                if !is_free && !matches!(seen, Seen::Own(_)) {
                    self.unwatch(now, node, lock);
                    return Some((wanted, Answer::No));
                }
                lock.round.seen.insert(node, seen);
                What::Commit
            }
            // Somebody was faster: it may be another's now, or still one's own.
            (What::Commit, Answer::No) => self.first_step(wanted),
            (What::Watch | What::See | What::Commit, answer) => return Some((wanted, answer)),
            done => return Some(done),
        };
        self.ask(now, lock, next, [node]);
        None
    }

    fn unwatch(&mut self, now: Time, node: u8, lock: &Lock) {
        let asked = Asked {
            lock: lock.handle,
            round: lock.round.number,
            what: What::Unwatch,
            deadline: now + lock.terms.timeout,
        };
        let mut request = Vec::new();
        encode_command(&mut request, &[b"UNWATCH"]);
        self.links[node].ask(now, asked, request, &mut self.notices);
    }
}

impl Lock {
    /// Writes a request about a hash.
    pub(super) fn hash_request(&self, out: &mut Vec<u8>, what: What, node: u8, bug: Option<Bug>) {
        let (key, field) = (&*self.terms.key, self.token.as_bytes());
        let ttl = self.ttl.as_millis().to_string();
        let ttl = ttl.as_bytes();
        let change = match self.change() {
            Change::Leave if bug == Some(Bug::InnerReleaseFrees) => Change::Free,
            change => change,
        };
        let mut write = |words: &[&[u8]]| encode_command(out, words);
        match what {
            What::Watch => write(&[b"WATCH", key]),
            What::See => write(&[b"HGETALL", key]),
            What::Commit => {
                write(&[b"MULTI"]);
                let levels = self.round.seen.get(&node);
                let has_inner = matches!(levels, Some(Seen::Own(2..)));
                let by: &[u8] = match change {
                    Change::Take | Change::Enter => b"1",
                    Change::Leave if has_inner => b"-1",
                    _ => b"0",
                };
                match change {
                    Change::Free => {
                        write(&[b"DEL", key]);
                        write(&[b"PUBLISH", key, b"free"]);
                    }
                    _ => {
                        if by == b"0" {
                            write(&[b"HEXISTS", key, field]);
                        } else {
                            write(&[b"HINCRBY", key, field, by]);
                        }
                        write(&[b"PEXPIRE", key, ttl]);
                    }
                }
                write(&[b"EXEC"]);
            }
            _ => {
                let eval: &[u8] = b"EVAL";
                match change {
                    Change::Take => write(&[eval, TAKE.as_bytes(), b"1", key, field, ttl]),
                    Change::Enter => write(&[eval, KEEP.as_bytes(), b"1", key, field, ttl, b"1"]),
                    Change::Renew => write(&[eval, KEEP.as_bytes(), b"1", key, field, ttl, b"0"]),
                    Change::Leave => write(&[eval, KEEP.as_bytes(), b"1", key, field, ttl, b"-1"]),
                    Change::Free => write(&[eval, FREE.as_bytes(), b"1", key, field]),
                }
            }
        }
    }
}
