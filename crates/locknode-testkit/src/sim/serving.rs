//! The nodes' part of a world: requests in, replies out, disks, starts and ends.

use std::time::Duration;

use crate::bug::Bug;
use crate::fault::{Crash, Phase};
use crate::history::Event as Told;
use crate::scenario::Hook;
use crate::sim::batch::{Gone, Request, Requests};
use crate::sim::link::{Cover, NodeEnd, Withheld};
use crate::sim::node::{Fate, NoStart, SimNode};
use crate::sim::oracle::{Breach, Outcome};
use crate::sim::world::{Event, World};
use crate::span::{SimTime, nanos};

impl World {
    /// Bytes have arrived at a node.
    pub(crate) fn serve(&mut self, conn: u32, bytes: Vec<u8>) {
        let Some(it) = self.conn(conn) else { return };
        let (client, node) = (it.client, it.node);
        if it.end.is_none() {
            return;
        }
        self.look_at_disk(node);
        self.hook(Hook::Asked(node));
        let Some(mut end) = self.conn_mut(conn).and_then(|it| it.end.take()) else {
            return;
        };
        let mut input = std::mem::take(&mut end.unread);
        if input.is_empty() {
            input = bytes
        } else {
            input.extend_from_slice(&bytes)
        }
        self.serve_input(conn, client, node, end, input);
    }

    /// Executes what can be executed and gives the node its end back.
    fn serve_input(
        &mut self,
        conn: u32,
        client: u8,
        node: u8,
        mut end: Box<NodeEnd>,
        input: Vec<u8>,
    ) {
        let incarnation = self.incarnation(node);
        let most = match self.link_mut(client, node) {
            Some(link) if link.state.refusals.is_some() => 1,
            _ => self.nodes.get(usize::from(node)).map_or(1, SimNode::most),
        };
        let mut done = 0;
        while end.withheld.is_empty() && !self.is_stopped(node) {
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
            if self.refuses(conn, client, node, &requests) {
                done += consumed;
                continue;
            }
            if end.is_closing && self.is_stopping(node) {
                self.recorder.counters.bump("served-while-stopping");
            }
            done += consumed;
            let members = (client, node);
            let state = (&mut end.session, &mut end.manner);
            let executed = self.execute(conn, members, state, &requests);
            if self.incarnation(node) != incarnation || !self.is_up(node) {
                // The process ended meanwhile, and this end of the connection with it.
                self.after_lost_end(conn, node);
                return;
            }
            match executed {
                Ok(withheld) => end.withheld.extend(withheld),
                Err(Gone) => return,
            }
        }
        end.unread = input.get(done..).unwrap_or_default().to_vec();
        self.buffers.recycle(input);
        end.is_closing |= self.is_stopping(node);
        let is_done = end.withheld.is_empty() && !self.is_stopped(node);
        let is_silent = end.withheld.iter().any(|it| it.bytes.is_empty());
        match end.is_closing && is_done {
            true if self.conn(conn).is_some_and(|it| it.is_open) => self.hang_up(conn),
            true => self.drop_end(conn),
            false => {
                if let Some(it) = self.conn_mut(conn) {
                    it.end = Some(end);
                }
            }
        }
        if !is_silent || self.scenario.setup.bug != Some(Bug::SilentNotSynced) {
            self.start_disk(node);
        }
    }

    /// The end of a connection that was being served when its process ended: the client is told as others are.
    fn after_lost_end(&mut self, conn: u32, node: u8) {
        let is_silent = self
            .nodes
            .get(usize::from(node))
            .is_none_or(|at| at.is_silent);
        if !is_silent && self.conn(conn).is_some_and(|it| it.is_open) {
            self.hang_up(conn);
        }
    }

    /// A reply leaves; what it tells of has to be durable.
    pub(crate) fn leaves(&mut self, node: u8, client: u8, is_late: bool, cover: &Cover) {
        let attempt = cover.attempt;
        let told = match cover.shown {
            _ if cover.is_gone => None,
            Some(ends) => Some(Told::Shown {
                node,
                client,
                key: cover.key,
                attempt,
                ends,
            }),
            None => Some(Told::Answered {
                node,
                client,
                attempt,
                is_late,
            }),
        };
        match told {
            Some(told) => self.recorder.push(self.now, told),
            None => self.recorder.counters.bump("told-to-be-gone"),
        }
        if cover.shown.is_some() && is_late {
            self.recorder.counters.bump("read-waits-for-disk");
        }
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let breaches = at.told(self.now, cover, &self.recorder);
        self.report(node, breaches);
    }

    /// A node has broken its word, or would.
    fn report(&mut self, node: u8, breaches: Vec<Breach>) {
        for breach in breaches {
            let told = match breach {
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
            };
            self.recorder.push(self.now, told);
        }
    }

    /// Whether a node's disk does what it has to.
    fn look_at_disk(&mut self, node: u8) {
        let stopped_until = self.node_stopped.get(usize::from(node));
        let runs = stopped_until.is_none_or(|until| *until < self.now);
        let at = self.nodes.get(usize::from(node)).filter(|_| runs);
        let breaches = at.map_or_else(Vec::new, |at| at.neglects(self.now));
        self.report(node, breaches);
    }

    /// A reply will never leave.
    pub(crate) fn never_leaves(&mut self, node: u8, client: u8, cover: &Cover) {
        if cover.shown.is_some() || cover.is_gone {
            return;
        }
        let attempt = cover.attempt;
        let told = Told::Unanswered {
            node,
            client,
            attempt,
        };
        self.recorder.push(self.now, told);
    }

    /// Gives a node's disk something to do, if there is anything and it is idle.
    pub(crate) fn start_disk(&mut self, node: u8) {
        let (now, sync) = (self.now, self.scenario.setup.sync);
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        if at.disk_rests_until > now || !at.begin_work(now) {
            return;
        }
        let (is_lowering, is_stalled) = (at.is_lowering(), at.is_stalled);
        if is_lowering {
            let incarnation = at.incarnation;
            self.recorder.counters.bump("ttl-in-use-lowered");
            self.hook(Hook::Lowers(node));
            if self.incarnation(node) != incarnation || !self.is_up(node) {
                return;
            }
        }
        let Some(at) = self
            .nodes
            .get_mut(usize::from(node))
            .filter(|_| !is_stalled)
        else {
            return;
        };
        let usual = Duration::from_nanos(at.random.between(nanos(sync.0), nanos(sync.1)));
        let takes = at.slow.unwrap_or(usual);
        let incarnation = at.incarnation;
        self.push(now + takes, Event::DiskDone { node, incarnation });
    }

    /// A stalled disk goes on with what it was asked to do.
    pub(crate) fn resume_disk(&mut self, node: u8) {
        let incarnation = self.incarnation(node);
        self.push(self.now, Event::DiskDone { node, incarnation });
    }

    pub(crate) fn disk_done(&mut self, node: u8, incarnation: u32) {
        if self.incarnation(node) != incarnation {
            return;
        }
        let now = self.now;
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
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
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        match done {
            _ if at.is_closing() => return self.go_on_stopping(node, done),
            Some(false) => {
                self.recorder.counters.bump("disk-refused");
                at.disk_rests_until = now + TRY_DISK_AGAIN;
                self.push(now + TRY_DISK_AGAIN, Event::DiskDone { node, incarnation });
            }
            Some(true) | None => self.start_disk(node),
        }
        self.release_withheld(node);
    }

    /// Lets replies go that may leave now, or never will, and executes what waited behind them.
    pub(crate) fn release_withheld(&mut self, node: u8) {
        for conn in self.live(node) {
            let waits = |world: &Self| {
                // What is let go may bring the fault that stops the process.
                if world.is_stopped(node) {
                    return None;
                }
                let it = world.conn(conn)?;
                let end = it.end.as_ref()?;
                let first = end.withheld.front()?;
                let at = world.nodes.get(usize::from(node))?;
                Some((it.client, at.fate(&first.need, first.is_logged)))
            };
            while let Some((client, fate)) = waits(self) {
                match fate {
                    Fate::Wait => break,
                    Fate::Lost => {
                        self.recorder.counters.bump("reply-lost-to-disk");
                        self.hang_up(conn);
                    }
                    Fate::Leave => self.release_one(conn, client, node),
                }
            }
        }
    }

    /// A node that stood still executes what it has read.
    pub(crate) fn serve_unread(&mut self, node: u8) {
        for conn in self.live(node) {
            let Some(it) = self.conn_mut(conn) else {
                continue;
            };
            if let Some(mut end) = it.end.take_if(|end| end.is_ready()) {
                let (client, input) = (it.client, std::mem::take(&mut end.unread));
                self.serve_input(conn, client, node, end, input);
            }
        }
    }

    /// The connections that a node has an end of.
    pub(crate) fn live(&self, node: u8) -> Vec<u32> {
        self.live
            .get(usize::from(node))
            .cloned()
            .unwrap_or_default()
    }

    fn release_one(&mut self, conn: u32, client: u8, node: u8) {
        let Some(end) = self.conn_mut(conn).and_then(|it| it.end.as_mut()) else {
            return;
        };
        let Some(Withheld { bytes, covers, .. }) = end.withheld.pop_front() else {
            return;
        };
        let is_ready = end.is_ready();
        for cover in &covers {
            self.leaves(node, client, true, cover);
        }
        self.send_reply(conn, bytes);
        if is_ready && let Some(mut end) = self.conn_mut(conn).and_then(|it| it.end.take()) {
            let input = std::mem::take(&mut end.unread);
            self.serve_input(conn, client, node, end, input);
        }
    }

    /// A node's process starts.
    pub(crate) fn start_node(&mut self, node: u8, is_first: bool) {
        let now = self.now;
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        if at.run.is_some() {
            if at.stage().is_some() {
                at.starts_again = at.starts_again.or(Some(false));
            }
            return;
        }
        if is_first {
            let breaches = at.look_at_remains(now, Crash::Kill, &self.recorder);
            self.report(node, breaches);
        }
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let outcome = match at.start(now, is_first, &self.recorder) {
            Ok(outcome) => outcome,
            Err(why) => return self.does_not_start(node, why),
        };
        let reason = at
            .run
            .as_ref()
            .map_or("down", |run| reason_word(run.reason));
        let is_quarantined = at.quarantine_left(now).is_some();
        self.recorder.push(
            now,
            Told::Started {
                node,
                is_quarantined,
                reason,
            },
        );
        for lock in &outcome.locks {
            let key = self.key_no(lock.db, &lock.key);
            let attempt = self.recorder.attempt(key, &lock.token);
            let Some(at) = self.nodes.get(usize::from(node)) else {
                return;
            };
            let ends_true = at.clocks.when(now, lock.deadline);
            if let Some(held) = self.mirror(node, key) {
                *held = Some(attempt);
            }
            self.recorder.counters.bump("lock-restored");
            self.recorder.push(
                now,
                Told::Restored {
                    node,
                    key,
                    attempt,
                    ends: ends_true,
                },
            );
        }
        if !is_first {
            self.recorder.counters.bump(reason);
        }
        self.judge_start(node, &outcome);
        self.hook(Hook::Started(node));
        let incarnation = self.incarnation(node);
        self.look_whether_serving(node, incarnation);
        self.start_disk(node);
    }

    /// What a start brings back, held against what the node had told.
    fn judge_start(&mut self, node: u8, outcome: &Outcome) {
        let now = self.now;
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let (mut breaches, forgotten) = at.judge_start(now, outcome);
        breaches.extend(at.judge_beginning(outcome.fence_base));
        for (key, attempt) in forgotten {
            self.recorder.counters.bump("lock-lost-with-disk");
            let told = Told::Forgotten { node, key, attempt };
            self.recorder.push(now, told);
        }
        self.report(node, breaches);
    }

    /// A node's process does not start, or ends while it does.
    fn does_not_start(&mut self, node: u8, why: NoStart) {
        let now = self.now;
        match why {
            NoStart::CutShort(how) => {
                self.recorder.counters.bump(Phase::Open.cut_short());
                if let Some(at) = self.nodes.get_mut(usize::from(node)) {
                    at.lose(now, how);
                    let breaches = at.look_at_remains(now, how, &self.recorder);
                    self.report(node, breaches);
                }
                self.recorder.push(now, Told::Down { node, how });
                self.hook(Hook::Down(node));
            }
            NoStart::Refused { why, is_damage } => {
                self.recorder.counters.bump("start-refused");
                let why: Box<str> = why.into();
                if is_damage {
                    let why = why.clone();
                    self.recorder.push(now, Told::RefusesItself { node, why });
                }
                self.recorder.push(now, Told::StaysDown { node, why });
            }
        }
    }

    /// Notes that a node serves, or looks again when its quarantine should be over.
    pub(crate) fn look_whether_serving(&mut self, node: u8, incarnation: u32) {
        let now = self.now;
        if self.incarnation(node) != incarnation || !self.is_up(node) {
            return;
        }
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        match at.serves_at(now) {
            Some(when) if when == SimTime::NEVER => {
                self.push(now + LOOK_AGAIN, Event::Serving { node, incarnation });
            }
            Some(when) => {
                let when = when.max(now + Duration::from_nanos(1));
                self.push(when, Event::Serving { node, incarnation });
            }
            None => self.serves(node),
        }
    }

    /// A node grants: its clock may have become faster than it was when its quarantine was looked at last.
    pub(crate) fn look_again_whether_serving(&mut self, node: u8) {
        let now = self.now;
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let is_known = at.run.as_ref().is_none_or(|run| run.is_serving);
        if !is_known && at.quarantine_left(now).is_none() {
            self.serves(node);
        }
    }

    /// Whether a node's process stands still.
    pub(crate) fn is_stopped(&self, node: u8) -> bool {
        let until = self.node_stopped.get(usize::from(node));
        until.is_some_and(|until| *until > self.now)
    }

    /// A node serves from now on.
    fn serves(&mut self, node: u8) {
        let run = self
            .nodes
            .get_mut(usize::from(node))
            .and_then(|at| at.run.as_mut());
        if run.is_some_and(|run| !std::mem::replace(&mut run.is_serving, true)) {
            self.recorder.push(self.now, Told::Serving { node });
            self.hook(Hook::Serving(node));
        }
    }

    /// A command reaches a node's replica.
    pub(crate) fn replicate(&mut self, node: u8, args: &[Vec<u8>]) {
        let now = self.now;
        if let Some(at) = self.nodes.get_mut(usize::from(node)) {
            at.replicate(now, args);
        }
    }

    /// A node is lost; its replica takes its place, if it has one.
    pub(crate) fn promote(&mut self, node: u8) {
        if let Some(at) = self.nodes.get_mut(usize::from(node)) {
            at.starts_again = None;
        }
        self.node_down(node, Crash::Kill);
        let now = self.now;
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        if at.promote(now) {
            self.recorder.counters.bump("replica-promoted");
            let (is_quarantined, reason) = (false, "promoted-replica");
            self.recorder.push(
                now,
                Told::Started {
                    node,
                    is_quarantined,
                    reason,
                },
            );
            self.hook(Hook::Started(node));
            self.serves(node);
        }
    }

    /// A node's process ends.
    pub(crate) fn node_down(&mut self, node: u8, how: Crash) {
        let running = self.nodes.get(usize::from(node));
        let Some(at) = running.filter(|at| at.run.is_some()) else {
            return;
        };
        let (incarnation, is_stopping) = (at.incarnation, at.stage().is_some());
        self.look_at_disk(node);
        if how == Crash::CleanStop {
            return self.stop_node(node, incarnation);
        }
        if is_stopping {
            self.recorder.counters.bump("stop-cut-short");
        }
        self.node_gone(node, how);
    }

    /// A node's process has ended, with its disk and its machine as that leaves them.
    pub(crate) fn node_gone(&mut self, node: u8, how: Crash) {
        let now = self.now;
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let (how, cut_short) = at.crash(now, how, &self.recorder);
        if let Some(phase) = cut_short {
            self.recorder.counters.bump(phase.cut_short());
        }
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let is_told = matches!(
            how,
            Crash::Kill | Crash::CleanStop | Crash::DiskLost | Crash::Contained | Crash::ClocksBack
        );
        at.is_silent = !is_told;
        let breaches = at.look_at_remains(now, how, &self.recorder);
        self.report(node, breaches);
        if let Some(mirror) = self.mirrors.get_mut(usize::from(node)) {
            mirror.clear();
        }
        self.recorder.push(now, Told::Down { node, how });
        self.drop_ends(node, is_told);
        self.hook(Hook::Down(node));
        self.start_if_awaited(node);
    }

    pub(crate) fn incarnation(&self, node: u8) -> u32 {
        self.nodes
            .get(usize::from(node))
            .map_or(0, |node| node.incarnation)
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
