//! What goes wrong in a world, and is put right.

use std::time::Duration;

use crate::fault::link_state::LinkState;
use crate::fault::{DiskFault, Fault, Links, Way, Who};
use crate::history::Event as Told;
use crate::sim::clocks::{ClockView, Clocks};
use crate::sim::link::Link;
use crate::sim::world::{Event, Stop, World};
use crate::span::{SimTime, nanos};

impl World {
    /// Something goes wrong now, or is put right.
    pub(crate) fn apply(&mut self, fault: Fault) {
        self.recorder.counters.bump(fault.kind());
        self.recorder
            .push(self.now, Told::Fault(fault.to_string().into()));
        match fault {
            Fault::Crash(node, how) => self.crash_node(node, how),
            Fault::CrashIn(node, phase, after, how) => {
                if let Some(it) = self.nodes.get_mut(usize::from(node)) {
                    it.doom(phase, after, how);
                }
            }
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
            Fault::MaxTtl(node, span) => {
                if let Some(it) = self.nodes.get_mut(usize::from(node)) {
                    it.set_max_ttl(span);
                }
            }
            Fault::Calm => self.calm(),
            fault => self.strike(fault),
        }
    }

    /// Something befalls links.
    fn strike(&mut self, fault: Fault) {
        let links = fault.links().unwrap_or(Links::ALL);
        self.each_link(links, |link| fault.strike(&mut link.state));
        match fault {
            Fault::Heal(_) => self.unpark_all(links, Way::Both),
            Fault::Release(_, way) => self.unpark_all(links, way),
            _ => {}
        }
    }

    /// Somebody goes on who stood still.
    pub(crate) fn goes_on(&mut self, who: Who, stop: Stop) {
        self.clocks(who, |clocks, now| match stop {
            Stop::Pause => {}
            Stop::Suspend => clocks.wake(now),
            Stop::Freeze => clocks.thaw(now),
        });
        if let Who::Node(node) = who {
            self.release_withheld(node);
            self.serve_unread(node);
        }
    }

    fn stop(&mut self, who: Who, how: Stop, span: Duration) {
        let until = self.now + span;
        let stopped = match who {
            Who::Node(node) => self.node_stopped.get_mut(usize::from(node)),
            Who::Client(client) => self.client_stopped.get_mut(usize::from(client)),
        };
        let Some(stopped) = stopped else { return };
        *stopped = until.max(*stopped);
        let word = match how {
            Stop::Pause => "pause",
            Stop::Suspend => "suspend",
            Stop::Freeze => "freeze",
        };
        self.recorder.push(
            self.now,
            Told::Stopped {
                who,
                how: word,
                until,
            },
        );
        self.clocks(who, |clocks, now| match how {
            Stop::Pause => {}
            Stop::Suspend => clocks.suspend(now),
            Stop::Freeze => clocks.freeze(now),
        });
        // What waited for it comes after it.
        self.push_early(until, Event::GoesOn { who, stop: how });
    }

    fn clocks(&mut self, who: Who, change: impl FnOnce(&mut Clocks, SimTime)) {
        let now = self.now;
        let views = match who {
            Who::Node(node) => self.nodes.get_mut(usize::from(node)).map(|it| {
                // Up to now it went as it did.
                it.clocks.read(now, &mut it.random);
                it.clocks.changed(now, change)
            }),
            Who::Client(client) => self.clients.get_mut(usize::from(client)).map(|it| {
                it.time(now);
                it.clocks.changed(now, change)
            }),
        };
        let Some((before, after)) = views else { return };
        if before != after {
            let ClockView { shows, per_million } = after;
            self.recorder.push(
                now,
                Told::Clock {
                    who,
                    shows,
                    per_million,
                },
            );
        }
        match who {
            Who::Client(client) => self.pace_changed(client),
            // Its quarantine may end sooner now.
            Who::Node(node) => self.look_whether_serving(node, self.incarnation(node)),
        }
    }

    fn disk(&mut self, node: u8, fault: DiskFault) {
        let Some(it) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        it.break_disk(fault);
        if matches!(fault, DiskFault::Go | DiskFault::Room) {
            self.resume_disk(node);
        }
    }

    fn calm(&mut self) {
        let (nodes, clients) = self.members();
        for node in 0..nodes {
            self.disk(node, DiskFault::Room);
            self.disk(node, DiskFault::Go);
            self.clocks(Who::Node(node), |clocks, now| {
                clocks.set_rate(now, 0);
                clocks.set_noise(0);
            });
        }
        for client in 0..clients {
            self.clocks(Who::Client(client), |clocks, now| {
                clocks.set_rate(now, 0);
                clocks.set_noise(0);
            });
        }
        self.each_link(Links::ALL, |link| link.state = LinkState::default());
        self.unpark_all(Links::ALL, Way::Both);
        for node in 0..nodes {
            if self
                .nodes
                .get(usize::from(node))
                .is_some_and(crate::sim::node::SimNode::has_failed)
            {
                // Its operator starts it again.
                self.crash_node(node, crate::fault::Crash::Kill);
            }
            self.start_node(node, false);
            self.replace_disk(node);
            let at = self.nodes.get_mut(usize::from(node));
            if let Some(starts_again) = at.and_then(|at| at.starts_again.as_mut()) {
                *starts_again = true;
            }
        }
    }

    /// A node that does not start on files that were damaged gets an empty disk.
    pub(crate) fn replace_disk(&mut self, node: u8) {
        let at = self.nodes.get_mut(usize::from(node));
        if at.is_some_and(crate::sim::node::SimNode::replaces_disk) {
            self.recorder.counters.bump("disk-replaced");
            let how = crate::fault::Crash::DiskLost;
            self.recorder.push(self.now, Told::Down { node, how });
            self.start_node(node, false);
        }
    }

    fn each_link(&mut self, links: Links, mut change: impl FnMut(&mut Link)) {
        for (client, node) in self.pairs(links) {
            if let Some(link) = self.link_mut(client, node) {
                change(link);
            }
        }
    }

    fn unpark_all(&mut self, links: Links, way: Way) {
        for (client, node) in self.pairs(links) {
            self.unpark(client, node, way);
        }
    }

    fn pairs(&self, links: Links) -> Vec<(u8, u8)> {
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
