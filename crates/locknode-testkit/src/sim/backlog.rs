//! What waits before a link that lets nothing pass, and how it is let go: in its order, and overtaken by nothing.

use crate::fault::{Links, Way};
use crate::sim::event::Event;
use crate::sim::link::{Conn, Link};
use crate::sim::queue::ScheduledEvent;
use crate::sim::world::World;

/// What has come to one direction of a link while nothing passed.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: Vec<ScheduledEvent>,
    /// It has been let go and is on its way again; what comes meanwhile follows it.
    is_draining: bool,
}

impl Link {
    /// Nothing that comes now may pass in one direction.
    const fn is_blocked(&mut self, is_requests: bool) -> bool {
        let (state, backlog) = self.lane(is_requests);
        state.is_closed() || backlog.is_draining
    }
}

impl World {
    /// The event, unless it comes through a link that lets nothing pass: then it waits there, and comes in its turn.
    pub(crate) fn pass(&mut self, event: Event) -> Option<Event> {
        let (Event::Arrives {
            conn, is_request, ..
        }
        | Event::Closed { conn, is_request }) = event
        else {
            return Some(event);
        };
        let Conn { client, node, .. } = self.conns[conn];
        let link = &mut self.links[client][node];
        if !link.is_blocked(is_request) {
            return Some(event);
        }
        let due = ScheduledEvent {
            at: self.now.as_nanos(),
            place: self.present,
            event,
        };
        link.lane(is_request).1.waiting.push(due);
        None
    }

    /// Lets go what arrived while nothing passed: it is on its way again, and nothing overtakes it.
    pub(crate) fn release_backlog(&mut self, links: Links, way: Way) {
        let ways = [(true, way.has_requests()), (false, way.has_replies())];
        for (client, node) in self.pairs(links) {
            for (is_requests, _) in ways.into_iter().filter(|(_, is_meant)| *is_meant) {
                let link = &mut self.links[client][node];
                if link.is_blocked(is_requests) || link.lane(is_requests).1.waiting.is_empty() {
                    continue;
                }
                link.lane(is_requests).1.is_draining = true;
                let travel = link.travel(self.scenario.setup.delay);
                let drain = Event::Drain {
                    client,
                    node,
                    is_requests,
                };
                self.push(self.now + travel, drain);
            }
        }
    }

    /// What was let go arrives, with all that came behind it.
    pub(crate) fn drain(&mut self, client: u8, node: u8, is_requests: bool) {
        let (state, backlog) = self.links[client][node].lane(is_requests);
        backlog.is_draining = false;
        if state.is_closed() {
            return;
        }
        for due in std::mem::take(&mut backlog.waiting) {
            self.come(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::fault::{Crash, Fault, Links, Way};
    use crate::history::Event as Told;
    use crate::scenario::{LockAction, Scenario, Setup};
    use crate::sim::recorder::Recording;
    use crate::sim::world::World;
    use crate::span::SimTime;

    fn at(ms: u64) -> SimTime {
        SimTime::from(Duration::from_millis(ms))
    }

    /// A world with one client, which is connected to its one node and reads no more replies.
    fn connected(seed: u64) -> World {
        let lock = LockAction::new("k", Duration::from_secs(8)).tries(8);
        let setup = Setup {
            nodes: 1,
            clients: 1,
            delay: (Duration::from_millis(1), Duration::from_millis(50)),
            run_for: Duration::from_secs(9),
            ..Setup::seeded(seed)
        };
        let scenario = Scenario::new(setup).act(Duration::ZERO, 0, lock.into());
        let mut world = World::recording(&scenario, Recording::Messages);
        let is_had = world.run_until_seen(|event| matches!(event, Told::Acquired { .. }));
        assert!(is_had, "seed {seed}");
        world.inject(Fault::Drop(Links::ALL, Way::Replies, 1));
        world.run_until(at(1_000));
        world
    }

    #[test]
    fn what_is_let_go_keeps_its_order() {
        for seed in 0..50 {
            let mut world = connected(seed);
            let before = world.history().messages.len();
            world.inject(Fault::Hold(Links::ALL, Way::Requests));
            for step in 0..30 {
                world.run_until(at(1_000 + 5 * step));
                world.send_request(0, 0, b"*1\r\n$4\r\nPING\r\n".to_vec());
                match step {
                    10 | 20 => world.inject(Fault::Release(Links::ALL, Way::Requests)),
                    12 => world.inject(Fault::Cut(Links::ALL, Way::Requests)),
                    18 => world.inject(Fault::Heal(Links::ALL)),
                    _ => {}
                }
            }
            world.run_until(at(2_000));
            let sent = world.history().messages.iter().skip(before);
            let arrived: Vec<_> = sent
                .filter(|message| &*message.text == "PING")
                .map(|message| message.arrived)
                .collect();
            assert_eq!(arrived.len(), 30);
            assert!(arrived.iter().all(Option::is_some), "{seed}: {arrived:?}");
            assert!(arrived.is_sorted(), "{seed}: {arrived:?}");
        }
    }

    /// A client behind a cut link learns of its node's end when the link is whole again.
    #[test]
    fn the_end_of_a_connection_does_not_pass_a_cut() {
        let mut world = connected(3);
        let is_open = |world: &World| world.conns[0_u8].is_open;
        world.inject(Fault::Cut(Links::ALL, Way::Replies));
        world.inject(Fault::Crash(0, Crash::Kill));
        world.run_until(at(3_000));
        assert!(is_open(&world));
        world.inject(Fault::Heal(Links::ALL));
        world.run_until(at(4_000));
        assert!(!is_open(&world));
    }
}
