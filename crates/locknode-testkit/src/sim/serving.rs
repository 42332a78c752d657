//! The nodes' part of a world: requests in, replies out, disks, starts and ends.

use std::time::Duration;

use crate::bug::Bug;
use crate::fault::{Crash, Phase};
use crate::history::Event as Told;
use crate::scenario::Hook;
use crate::sim::batch::{Request, Requests};
use crate::sim::event::NodeEvent;
use crate::sim::link::{Claim, Conn, NodeEnd};
use crate::sim::node::{Delivery, NoStart};
use crate::sim::oracle::{Breach, Outcome};
use crate::sim::world::World;
use crate::span::{SimTime, nanos};

impl World {
    /// Bytes have arrived at a node.
    pub(crate) fn serve(&mut self, conn: u32, bytes: Vec<u8>) {
        let it = &self.conns[conn];
        let node = it.node;
        if it.end.is_none() {
            return;
        }
        self.look_at_disk(node);
        self.hook(Hook::Asked(node));
        let Some(mut end) = self.conns[conn].end.take() else {
            return;
        };
        let mut input = std::mem::take(&mut end.unread);
        if input.is_empty() {
            input = bytes
        } else {
            input.extend_from_slice(&bytes)
        }
        self.serve_input(conn, end, input);
    }

    /// Executes what can be executed and gives the node its end back.
    fn serve_input(&mut self, conn: u32, mut end: Box<NodeEnd>, input: Vec<u8>) {
        let Conn { client, node, .. } = self.conns[conn];
        let incarnation = self.nodes[node].incarnation;
        let most = if self.links[client][node].state.refusals.is_some() {
            1
        } else {
            self.nodes[node].most()
        };
        let mut done = 0;
        while end.pending.is_empty() && !self.is_stopped(node) {
            let rest = input.get(done..).unwrap_or_default();
            let mut requests = Requests::new();
            let read = Request::read(&mut end.decoder, rest, most, &mut requests);
            let Some(consumed) = read else {
                self.hang_up(conn);
                return;
            };
            if requests.is_empty() {
                break;
            }
            done += consumed;
            if !end.manner.is_in_transaction() && self.refuses(conn, &requests) {
                continue;
            }
            if end.is_closing && self.is_stopping(node) {
                self.recorder.counters.bump("served-while-stopping");
            }
            let has_end = self.execute(conn, &mut end, &requests);
            let at = &self.nodes[node];
            if at.incarnation != incarnation || !at.is_up() {
                // The process ended meanwhile, and this end of the connection with it: the client learns of it as others do.
                if !at.is_silent && self.conns[conn].is_open {
                    self.hang_up(conn);
                }
                return;
            }
            if !has_end {
                return;
            }
        }
        end.unread = input.get(done..).unwrap_or_default().to_vec();
        self.buffers.recycle(input);
        end.is_closing |= self.is_stopping(node);
        let is_done = end.pending.is_empty() && !self.is_stopped(node);
        let is_silent = end.pending.iter().any(|it| it.bytes.is_empty());
        if !(end.is_closing && is_done) {
            self.conns[conn].end = Some(end);
        } else if self.conns[conn].is_open {
            self.hang_up(conn);
        } else {
            self.drop_end(conn);
        }
        if !is_silent || self.scenario.setup.bug != Some(Bug::SilentNotSynced) {
            self.start_disk(node);
        }
    }

    /// A reply is sent; what it claims has to be durable.
    pub(crate) fn leaves(&mut self, node: u8, client: u8, is_late: bool, claim: &Claim) {
        let attempt = claim.attempt;
        match claim.shown {
            _ if claim.is_gone => self.recorder.counters.bump("told-to-be-gone"),
            Some(ends) => self.tell(Told::Shown {
                node,
                client,
                key: claim.key,
                attempt,
                ends,
            }),
            None => self.tell(Told::Answered {
                node,
                client,
                attempt,
                is_late,
            }),
        }
        if claim.shown.is_some() && is_late {
            self.recorder.counters.bump("read-waits-for-disk");
        }
        let breaches = self.nodes[node].told(self.now, claim, &self.recorder);
        self.report(node, breaches);
    }

    /// Reports that a node has broken its word, or would.
    fn report(&mut self, node: u8, breaches: Vec<Breach>) {
        for breach in breaches {
            self.tell(match breach {
                Breach::Lock { key, attempt, why } => Told::Unkept {
                    node,
                    key,
                    attempt,
                    why: why.into(),
                },
                Breach::Refusal(why) => Told::RefusesItself {
                    node,
                    why: why.into(),
                },
            });
        }
    }

    /// Checks that a node's disk does not rest while there is work.
    fn look_at_disk(&mut self, node: u8) {
        if self.node_stopped[node] < self.now {
            let breaches = self.nodes[node].neglects(self.now);
            self.report(node, breaches);
        }
    }

    /// A reply will never be sent.
    pub(crate) fn never_leaves(&mut self, node: u8, client: u8, claim: &Claim) {
        if claim.shown.is_none() && !claim.is_gone {
            self.tell(Told::Unanswered {
                node,
                client,
                attempt: claim.attempt,
            });
        }
    }

    /// Gives a node's disk something to do, if there is anything and it is idle.
    pub(crate) fn start_disk(&mut self, node: u8) {
        let now = self.now;
        let at = &mut self.nodes[node];
        if at.disk_rests_until > now || !at.begin_work(now) {
            return;
        }
        let is_stalled = at.is_stalled;
        if at.is_lowering() {
            let incarnation = at.incarnation;
            self.recorder.counters.bump("ttl-in-use-lowered");
            self.hook(Hook::Lowers(node));
            let at = &self.nodes[node];
            if at.incarnation != incarnation || !at.is_up() {
                return;
            }
        }
        if !is_stalled {
            let (least, most) = self.scenario.setup.sync;
            let at = &mut self.nodes[node];
            let usual = Duration::from_nanos(at.random.between(nanos(least), nanos(most)));
            let takes = at.slow.unwrap_or(usual);
            self.push_for_node(now + takes, node, NodeEvent::DiskDone);
        }
    }

    /// A node's disk has finished its work.
    pub(crate) fn disk_done(&mut self, node: u8) {
        let now = self.now;
        let at = &mut self.nodes[node];
        if at.is_stalled {
            return;
        }
        let done = at.finish_work(now);
        let breaches = at.look_if_lowered(now, &self.recorder);
        let is_struck = at.is_struck();
        self.report(node, breaches);
        if is_struck {
            return self.node_down(node, Crash::Kill);
        }
        let at = &mut self.nodes[node];
        match done {
            _ if at.is_closing() => return self.go_on_stopping(node, done),
            Some(false) => {
                at.disk_rests_until = now + TRY_DISK_AGAIN;
                self.recorder.counters.bump("disk-refused");
                self.push_for_node(now + TRY_DISK_AGAIN, node, NodeEvent::DiskDone);
            }
            Some(true) | None => self.start_disk(node),
        }
        self.release_pending(node);
    }

    /// Sends the replies that may be sent now, drops those that never will, and executes what waited behind them.
    pub(crate) fn release_pending(&mut self, node: u8) {
        for conn in self.live[node].clone() {
            // A reply may bring the fault that stops the process.
            while !self.is_stopped(node)
                && let Some(end) = &self.conns[conn].end
                && let Some(first) = end.pending.front()
            {
                match self.nodes[node].delivery(&first.need, first.is_logged) {
                    Delivery::Later => break,
                    Delivery::Never => {
                        self.recorder.counters.bump("reply-lost-to-disk");
                        self.hang_up(conn);
                    }
                    Delivery::Now => self.release_one(conn),
                }
            }
        }
    }

    /// A node that stood still executes what it has read.
    pub(crate) fn serve_unread(&mut self, node: u8) {
        for conn in self.live[node].clone() {
            self.serve_if_ready(conn);
        }
    }

    /// Executes what has been read from a connection, if no reply is in the way of it.
    fn serve_if_ready(&mut self, conn: u32) {
        if let Some(mut end) = self.conns[conn].end.take_if(|end| end.is_ready()) {
            let input = std::mem::take(&mut end.unread);
            self.serve_input(conn, end, input);
        }
    }

    fn release_one(&mut self, conn: u32) {
        let Conn { client, node, .. } = self.conns[conn];
        let pending = self.conns[conn].end.as_mut();
        let Some(first) = pending.and_then(|end| end.pending.pop_front()) else {
            return;
        };
        for claim in &first.claims {
            self.leaves(node, client, true, claim);
        }
        self.send_reply(conn, first.bytes);
        self.serve_if_ready(conn);
    }

    /// A node's process starts.
    pub(crate) fn start_node(&mut self, node: u8, is_first: bool) {
        let now = self.now;
        let at = &mut self.nodes[node];
        if at.is_up() {
            if at.stage().is_some() {
                at.starts_again = at.starts_again.or(Some(false));
            }
            return;
        }
        if is_first {
            let breaches = at.look_at_remains(now, Crash::Kill, &self.recorder);
            self.report(node, breaches);
        }
        let at = &mut self.nodes[node];
        let outcome = match at.start(now, is_first, &self.recorder) {
            Ok(outcome) => outcome,
            Err(why) => return self.does_not_start(node, why),
        };
        let reason = reason_word(outcome.reason);
        let is_quarantined = at.quarantine_left(now).is_some();
        self.tell(Told::Started {
            node,
            is_quarantined,
            reason,
        });
        for lock in &outcome.locks {
            let key = self.key_no(lock.db, &lock.key);
            let attempt = self.recorder.attempt(key, &lock.token);
            if let Some(held) = self.mirror(node, key) {
                *held = Some(attempt);
            }
            self.recorder.counters.bump("lock-restored");
            self.tell(Told::Restored {
                node,
                key,
                attempt,
                ends: self.nodes[node].clocks.when(now, lock.deadline),
            });
        }
        if !is_first {
            self.recorder.counters.bump(reason);
        }
        self.judge_start(node, &outcome);
        self.hook(Hook::Started(node));
        self.look_whether_serving(node);
        self.start_disk(node);
    }

    /// Compares what a start brings back with what the node had claimed.
    fn judge_start(&mut self, node: u8, outcome: &Outcome) {
        let at = &mut self.nodes[node];
        let (mut breaches, forgotten) = at.judge_start(self.now, outcome);
        breaches.extend(at.judge_beginning(outcome.fence_base));
        for (key, attempt) in forgotten {
            self.recorder.counters.bump("lock-lost-with-disk");
            self.tell(Told::Forgotten { node, key, attempt });
        }
        self.report(node, breaches);
    }

    /// A node's process does not start, or ends while it does.
    fn does_not_start(&mut self, node: u8, why: NoStart) {
        match why {
            NoStart::CutShort(how) => {
                self.recorder.counters.bump(Phase::Open.cut_short());
                let at = &mut self.nodes[node];
                at.lose(self.now, how);
                let breaches = at.look_at_remains(self.now, how, &self.recorder);
                self.report(node, breaches);
                self.tell(Told::Down { node, how });
                self.hook(Hook::Down(node));
            }
            NoStart::Refused { why, is_damage } => {
                self.recorder.counters.bump("start-refused");
                let why: Box<str> = why.into();
                if is_damage {
                    let why = why.clone();
                    self.tell(Told::RefusesItself { node, why });
                }
                self.tell(Told::StaysDown { node, why });
            }
        }
    }

    /// Notes that a node serves, or looks again when its quarantine should be over.
    pub(crate) fn look_whether_serving(&mut self, node: u8) {
        if !self.is_up(node) {
            return;
        }
        let now = self.now;
        let again = match self.nodes[node].serves_at(now) {
            Some(SimTime::NEVER) => now + LOOK_AGAIN,
            Some(when) => when.max(now + Duration::from_nanos(1)),
            None => return self.serves(node),
        };
        self.push_for_node(again, node, NodeEvent::Serving);
    }

    /// A node grants: its clock may run faster than when its quarantine was checked last.
    pub(crate) fn look_again_whether_serving(&mut self, node: u8) {
        let at = &mut self.nodes[node];
        let is_known = at.run.as_ref().is_none_or(|run| run.is_serving);
        if !is_known && at.quarantine_left(self.now).is_none() {
            self.serves(node);
        }
    }

    /// Whether a node's process stands still.
    pub(crate) fn is_stopped(&self, node: u8) -> bool {
        self.node_stopped[node] > self.now
    }

    /// A node serves from now on.
    fn serves(&mut self, node: u8) {
        let run = self.nodes[node].run.as_mut();
        if run.is_some_and(|run| !std::mem::replace(&mut run.is_serving, true)) {
            self.tell(Told::Serving { node });
            self.hook(Hook::Serving(node));
        }
    }

    /// A node is lost; its replica takes its place, if it has one.
    pub(crate) fn promote(&mut self, node: u8) {
        self.nodes[node].starts_again = None;
        self.node_down(node, Crash::Kill);
        if self.nodes[node].promote(self.now) {
            self.recorder.counters.bump("replica-promoted");
            self.tell(Told::Started {
                node,
                is_quarantined: false,
                reason: "promoted-replica",
            });
            self.hook(Hook::Started(node));
            self.serves(node);
        }
    }

    /// A node's process ends.
    pub(crate) fn node_down(&mut self, node: u8, how: Crash) {
        if !self.is_up(node) {
            return;
        }
        let is_stopping = self.is_stopping(node);
        self.look_at_disk(node);
        if how == Crash::CleanStop {
            return self.stop_node(node);
        }
        if is_stopping {
            self.recorder.counters.bump("stop-cut-short");
        }
        self.node_gone(node, how);
    }

    /// A node's process has ended, with its disk and its machine as that leaves them.
    pub(crate) fn node_gone(&mut self, node: u8, how: Crash) {
        let now = self.now;
        let at = &mut self.nodes[node];
        let (how, cut_short) = at.crash(now, how, &self.recorder);
        if let Some(phase) = cut_short {
            self.recorder.counters.bump(phase.cut_short());
        }
        let is_told = matches!(
            how,
            Crash::Kill | Crash::CleanStop | Crash::DiskLost | Crash::Contained | Crash::ClocksBack
        );
        at.is_silent = !is_told;
        let breaches = at.look_at_remains(now, how, &self.recorder);
        self.report(node, breaches);
        self.mirrors[node].clear();
        self.tell(Told::Down { node, how });
        self.drop_ends(node, is_told);
        self.hook(Hook::Down(node));
        self.start_if_awaited(node);
    }
}

pub(crate) const fn reason_word(reason: locknode_engine::durable::StartReason) -> &'static str {
    use locknode_engine::durable::StartReason as Reason;
    match reason {
        Reason::FirstStart => "first-start",
        Reason::CleanStop => "start-after-clean-stop",
        Reason::Crash => "start-after-crash",
        Reason::Reboot => "start-after-reboot",
        Reason::ClockMismatch => "start-with-clock-mismatch",
        Reason::Empty => "start-on-empty-disk",
        Reason::DamagedState => "start-with-damaged-state",
        Reason::DroppedBatch => "start-with-dropped-batch",
        Reason::NoDirectory => "start-without-directory",
        Reason::GuardOff => "start-without-guard",
        Reason::Logged => "start-from-log",
        _ => "start-for-another-reason",
    }
}

/// A disk that was full is tried again after this, as the server does.
const TRY_DISK_AGAIN: Duration = Duration::from_secs(1);

/// How often a node is looked at whose clocks stand still.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
