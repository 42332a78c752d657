//! An orderly stop, which takes its time as that of the server does.
//!
//! ```text
//!   SIGTERM --> Draining: no new connections; what was received is answered, and each connection closed then
//!                  |   the last one is closed, DRAIN is over, or the signal comes again: what is left is cut off
//!                  v
//!               Closing: nothing is granted; what the guard still wants is written, then the last snapshot and the mark
//!                  |   all is written, or the disk refuses
//!                  v
//!               down, and started again if somebody waits for it
//! ```
//!
//! Whatever else ends the process meanwhile does so at once: a kill, a power loss.

use std::time::Duration;

use crate::fault::Crash;
use crate::scenario::Hook;
use crate::sim::event::NodeEvent;
use crate::sim::node::Stage;
use crate::sim::world::World;

impl World {
    /// A node's process is asked to end in order. A process that stands still is asked again when it goes on.
    pub(crate) fn stop_node(&mut self, node: u8) {
        if self.is_stopped(node) {
            return self.push_for_node(self.now, node, NodeEvent::AskedToStop);
        }
        let at = &mut self.nodes[node];
        if !at.is_up() {
            return;
        }
        match at.ask_to_stop() {
            None => {
                let incarnation = at.incarnation;
                self.push_for_node(self.now + DRAIN, node, NodeEvent::Drained);
                self.hook(Hook::Stops(node));
                if self.nodes[node].incarnation != incarnation {
                    return;
                }
                for conn in self.live[node].clone() {
                    match &mut self.conns[conn].end {
                        Some(end) if !end.pending.is_empty() => end.is_closing = true,
                        Some(_) => self.hang_up(conn),
                        // It is being served, and is closed after that.
                        None => {}
                    }
                }
                self.look_whether_drained(node);
            }
            Some(Stage::Draining) => {
                self.recorder.counters.bump("stop-hurried");
                self.drained(node);
            }
            Some(Stage::Closing { .. }) => {}
        }
    }

    /// A node that stops has waited for its connections for long enough.
    pub(crate) fn drained(&mut self, node: u8) {
        if self.nodes[node].stage() != Some(Stage::Draining) {
            return;
        }
        let mut conns = self.live[node].clone();
        conns.retain(|conn| self.conns[*conn].end.is_some());
        for conn in conns {
            self.recorder.counters.bump("stop-cuts-off");
            self.hang_up(conn);
        }
    }

    /// Whether a node's process has been asked to end in order.
    pub(crate) fn is_stopping(&self, node: u8) -> bool {
        self.nodes[node].stage().is_some()
    }

    /// A connection of a node has ended; if the node stops, it may have been the last one.
    pub(crate) fn look_whether_drained(&mut self, node: u8) {
        let at = &mut self.nodes[node];
        if !self.live[node].is_empty() || at.stage() != Some(Stage::Draining) {
            return;
        }
        if at.close() {
            self.start_disk(node)
        } else {
            self.node_gone(node, Crash::CleanStop)
        }
    }

    /// The disk of a node that writes what is left has finished some work.
    pub(crate) fn go_on_stopping(&mut self, node: u8, done: Option<bool>) {
        if !self.nodes[node].has_stopped(done) {
            return self.start_disk(node);
        }
        if done == Some(false) {
            self.recorder.counters.bump("stop-without-mark");
        }
        self.node_gone(node, Crash::CleanStop);
    }

    /// A node is down: it starts if somebody has waited for that.
    pub(crate) fn start_if_awaited(&mut self, node: u8) {
        if let Some(is_seen_to) = self.nodes[node].starts_again.take() {
            self.recorder.counters.bump("start-awaited");
            self.start_node(node, false);
            if is_seen_to {
                self.replace_disk(node);
            }
        }
    }
}

/// How long a node that stops waits for its clients, as the server does.
const DRAIN: Duration = Duration::from_secs(5);
