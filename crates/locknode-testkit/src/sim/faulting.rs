//! What faults do in a world.

use std::time::Duration;

use crate::fault::link_state::LinkState;
use crate::fault::{Crash, DiskFault, Fault, Links, Way, Who};
use crate::history::Event as Told;
use crate::sim::clocks::{ClockView, Clocks};
use crate::sim::event::{Event, NodeEvent, Stop};
use crate::sim::world::World;
use crate::span::{SimTime, nanos};

impl World {
    /// A fault strikes now, or is put right.
    pub(crate) fn apply(&mut self, fault: Fault) {
        self.recorder.counters.bump(fault.kind());
        self.tell(Told::Fault(fault.to_string().into()));
        if !fault.who().is_none_or(|who| self.has(who)) {
            return;
        }
        match fault {
            Fault::Crash(node, how) => self.node_down(node, how),
            Fault::CrashIn(node, phase, after, how) => self.nodes[node].doom(phase, after, how),
            Fault::Restart(node) => self.start_node(node, false),
            Fault::Promote(node) => self.promote(node),
            Fault::CrashClient(client) => self.client_down(client),
            Fault::Pause(who, span) => self.stop(who, Stop::Pause, span),
            Fault::Suspend(who, span) => self.stop(who, Stop::Suspend, span),
            Fault::Freeze(who, span) => self.stop(who, Stop::Freeze, span),
            Fault::Reset(links) => {
                for (client, node) in self.pairs(links) {
                    self.reset(client, node);
                }
            }
            Fault::Rate(who, ppm) => self.clocks(who, |clocks, now| clocks.set_rate(now, ppm)),
            Fault::Slew(who, ppm) => self.clocks(who, |clocks, now| clocks.set_slew(now, ppm)),
            Fault::Noise(who, span) => self.clocks(who, |clocks, _| clocks.set_noise(nanos(span))),
            Fault::WallJump(who, ms) => self.clocks(who, |clocks, now| clocks.jump_wall(now, ms)),
            Fault::Disk(node, fault) => self.disk(node, fault),
            Fault::MaxTtl(node, span) => self.nodes[node].next_max_ttl = span,
            Fault::Calm => self.calm(),
            fault => self.strike(fault),
        }
    }

    /// A fault strikes links.
    fn strike(&mut self, fault: Fault) {
        let links = fault.links().unwrap_or(Links::ALL);
        for (client, node) in self.pairs(links) {
            fault.strike(&mut self.links[client][node].state);
        }
        match fault {
            Fault::Heal(_) => self.release_backlog(links, Way::Both),
            Fault::Release(_, way) => self.release_backlog(links, way),
            _ => {}
        }
    }

    /// A process or machine that stood still goes on.
    pub(crate) fn goes_on(&mut self, who: Who, stop: Stop) {
        self.clocks(who, |clocks, now| match stop {
            Stop::Pause => {}
            Stop::Suspend => clocks.wake(now),
            Stop::Freeze => clocks.thaw(now),
        });
        if let Who::Node(node) = who {
            self.release_pending(node);
            self.serve_unread(node);
        }
    }

    fn stop(&mut self, who: Who, stop: Stop, span: Duration) {
        let until = self.now + span;
        let stopped = match who {
            Who::Node(node) => &mut self.node_stopped[node],
            Who::Client(client) => &mut self.client_stopped[client],
        };
        *stopped = until.max(*stopped);
        let how = match stop {
            Stop::Pause => "pause",
            Stop::Suspend => "suspend",
            Stop::Freeze => "freeze",
        };
        self.tell(Told::Stopped { who, how, until });
        self.clocks(who, |clocks, now| match stop {
            Stop::Pause => {}
            Stop::Suspend => clocks.suspend(now),
            Stop::Freeze => clocks.freeze(now),
        });
        // What waited for it comes after it.
        self.push_early(until, Event::GoesOn { who, stop });
    }

    fn clocks(&mut self, who: Who, change: impl FnOnce(&mut Clocks, SimTime)) {
        let now = self.now;
        // Up to now they went as they did.
        let (before, after) = match who {
            Who::Node(node) => {
                let at = &mut self.nodes[node];
                at.clocks.read(now, &mut at.random);
                at.clocks.changed(now, change)
            }
            Who::Client(client) => {
                let at = &mut self.clients[client];
                at.clocks.read(now, &mut at.random);
                at.clocks.changed(now, change)
            }
        };
        if before != after {
            let ClockView { shows, per_million } = after;
            self.tell(Told::Clock {
                who,
                shows,
                per_million,
            });
        }
        match who {
            Who::Client(client) => self.pace_changed(client),
            // Its quarantine may end sooner now.
            Who::Node(node) => self.look_whether_serving(node),
        }
    }

    fn disk(&mut self, node: u8, fault: DiskFault) {
        self.nodes[node].break_disk(fault);
        if matches!(fault, DiskFault::Go | DiskFault::Room) {
            // A stalled disk goes on with what it was asked to do.
            self.push_for_node(self.now, node, NodeEvent::DiskDone);
        }
    }

    fn calm(&mut self) {
        let (nodes, clients) = self.members();
        let put_right = |clocks: &mut Clocks, now| {
            clocks.set_rate(now, 0);
            clocks.set_noise(0);
        };
        for node in 0..nodes {
            self.disk(node, DiskFault::Room);
            self.disk(node, DiskFault::Go);
            self.clocks(Who::Node(node), put_right);
        }
        for client in 0..clients {
            self.clocks(Who::Client(client), put_right);
        }
        for (client, node) in self.pairs(Links::ALL) {
            self.links[client][node].state = LinkState::default();
        }
        self.release_backlog(Links::ALL, Way::Both);
        for node in 0..nodes {
            if self.nodes[node].has_failed() {
                // Its operator starts it again.
                self.node_down(node, Crash::Kill);
            }
            self.start_node(node, false);
            self.replace_disk(node);
            if let Some(starts_again) = &mut self.nodes[node].starts_again {
                *starts_again = true;
            }
        }
    }

    /// A node that does not start on files that were damaged gets an empty disk.
    pub(crate) fn replace_disk(&mut self, node: u8) {
        if self.nodes[node].replaces_disk() {
            self.recorder.counters.bump("disk-replaced");
            let how = Crash::DiskLost;
            self.tell(Told::Down { node, how });
            self.start_node(node, false);
        }
    }

    /// The links of a world that are meant.
    pub(crate) fn pairs(&self, links: Links) -> Vec<(u8, u8)> {
        let (nodes, clients) = self.members();
        let all = (0..clients).flat_map(|client| (0..nodes).map(move |node| (client, node)));
        all.filter(|(client, node)| links.has(*client, *node))
            .collect()
    }

    fn members(&self) -> (u8, u8) {
        let count = |len: usize| u8::try_from(len).unwrap_or(u8::MAX);
        (count(self.nodes.len()), count(self.clients.len()))
    }
}
