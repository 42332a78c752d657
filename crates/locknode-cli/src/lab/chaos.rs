//! What a seed makes go wrong, and how its clients work. Pure: a seed and a plan in, faults with their moments out.
//!
//! Faults come in episodes, each with its end: a node that is killed starts again, a cut is healed. Every so often nodes are
//! restarted one right after the other, as when an impatient hand rolls out a new version. For the last part of the time all is
//! well, so that one sees the locks come back.

use std::time::Duration;

use locknode_testkit::{Crash, Ending, Fault, Guarding, Links, LockAct, Members, Random, Way, Who};

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) nodes: u8,
    pub(super) clients: u8,
    pub(super) run_for: Duration,
    pub(super) ttl: Duration,
    pub(super) guard: Guarding,
}

/// Makes the faults of a plan.
struct Maker {
    plan: Plan,
    random: Random,
    faults: Vec<(Duration, Fault)>,
    /// When a node that was killed is up again, for each.
    busy_until: Vec<Duration>,
}

/// What a client does again and again.
#[derive(Debug)]
pub(super) struct Habit {
    random: Random,
    ttl: Duration,
}

impl Plan {
    /// What goes wrong, in order of time.
    pub(super) fn faults(self) -> Vec<(Duration, Fault)> {
        let mut maker = Maker {
            plan: self,
            random: Random::stream(self.seed, "chaos", 0),
            faults: Vec::new(),
            busy_until: vec![Duration::ZERO; usize::from(self.nodes)],
        };
        let calm_at = self.calm_at();
        let mut at = self.begins_at();
        let mut rolls_at = at + maker.span(self.ttl / 2, self.ttl * 2);
        while at.min(rolls_at) < calm_at {
            if rolls_at < at {
                maker.roll(rolls_at);
                rolls_at += maker.span(self.ttl * 2, self.ttl * 9 / 2);
            } else {
                maker.episode(at);
                at += maker.span(self.ttl / 6, self.ttl * 4 / 5);
            }
        }
        let mut faults = maker.faults;
        faults.retain(|(at, _)| *at < calm_at);
        faults.push((calm_at, Fault::Calm));
        faults.sort_by_key(|(at, _)| *at);
        faults
    }

    /// How a client works.
    pub(super) fn habit(&self, client: u8) -> Habit {
        Habit {
            random: Random::stream(self.seed, "habit", client.into()),
            ttl: self.ttl,
        }
    }

    /// First one sees how it is when nothing is wrong.
    fn begins_at(&self) -> Duration {
        (self.run_for / 10).min(self.ttl)
    }

    /// At the end the longest wait of a node has to pass, and some locks have to be had.
    fn calm_at(&self) -> Duration {
        let rest = (self.ttl * 5 / 2).min(self.run_for / 3);
        self.run_for.saturating_sub(rest)
    }
}

impl Maker {
    fn episode(&mut self, at: Duration) {
        match self.random.below(100) {
            0..20 => self.crash(at),
            20..44 => self.cut(at),
            44..62 => self.lose(at),
            62..72 => self.delay(at),
            72..82 => self.pause_node(at),
            82..88 => self.pause_client(at),
            88..93 => {
                let client = self.client();
                self.push(at, Fault::CrashClient(client));
            }
            93..96 => {
                let node = self.node();
                self.push(at, Fault::Reset(Links::between(Members::ALL, node)));
            }
            _ => self.clock(at),
        }
    }

    /// A node is killed and starts again a little later.
    fn crash(&mut self, at: Duration) {
        let (ms, ttl) = (Duration::from_millis(10), self.plan.ttl);
        let node = self.node();
        let down = self.span(ms, ttl * 4 / 5);
        self.restart(at, node, down);
    }

    /// A majority of the nodes, or all, are restarted one after the other, each in a few milliseconds.
    fn roll(&mut self, mut at: Duration) {
        let least = u64::from(self.plan.nodes / 2 + 1);
        let count = self.random.between(least, self.plan.nodes.into());
        let first = self.node();
        for step in 0..count {
            let node = (u64::from(first) + step) % u64::from(self.plan.nodes);
            let down = self.span(self.plan.ttl / 100, self.plan.ttl / 40);
            self.restart(at, u8::try_from(node).unwrap_or(0), down);
            at += down + self.span(self.plan.ttl / 100, self.plan.ttl / 40);
        }
    }

    fn restart(&mut self, at: Duration, node: u8, down: Duration) {
        let Some(busy_until) = self.busy_until.get_mut(usize::from(node)) else {
            return;
        };
        if *busy_until > at {
            return;
        }
        *busy_until = at + down;
        self.push(at, Fault::Crash(node, Crash::Kill));
        self.push(at + down, Fault::Restart(node));
    }

    fn cut(&mut self, at: Duration) {
        let links = self.links();
        let way = match self.random.below(4) {
            0 => Way::Requests,
            1 => Way::Replies,
            _ => Way::Both,
        };
        let lasts = self.span(self.plan.ttl / 5, self.plan.ttl * 3 / 2);
        self.push(at, Fault::Cut(links, way));
        self.push(at + lasts, Fault::Heal(links));
    }

    fn lose(&mut self, at: Duration) {
        let node = self.node();
        let clients = match self.random.chance(40) {
            true => Members::ALL,
            false => self.some(self.plan.clients, self.plan.clients / 2),
        };
        let links = Links::between(clients, node);
        let way = match self.random.chance(70) {
            true => Way::Replies,
            false => Way::Requests,
        };
        let count = u8::try_from(self.random.between(1, 2)).unwrap_or(1);
        self.push(at, Fault::Drop(links, way, count));
    }

    fn delay(&mut self, at: Duration) {
        let links = self.links();
        // A client waits for a node for a tenth of the TTL: most are within that.
        let at_most = self.plan.ttl / if self.random.chance(80) { 25 } else { 6 };
        let by = self.span(self.plan.ttl / 100, at_most);
        let lasts = self.span(self.plan.ttl / 3, self.plan.ttl * 2);
        self.push(at, Fault::Delay(links, by));
        self.push(at + lasts, Fault::Delay(links, Duration::ZERO));
    }

    fn pause_node(&mut self, at: Duration) {
        let node = self.node();
        let span = self.span(self.plan.ttl / 5, self.plan.ttl * 3 / 2);
        self.push(at, Fault::Pause(Who::Node(node), span));
    }

    /// Long enough to sleep through the end of a lock, now and then.
    fn pause_client(&mut self, at: Duration) {
        let client = self.client();
        let span = self.span(self.plan.ttl / 2, self.plan.ttl * 2);
        self.push(at, Fault::Pause(Who::Client(client), span));
    }

    /// Half a percent at most: the client allows for one.
    fn clock(&mut self, at: Duration) {
        let node = self.node();
        let ppm = i32::try_from(self.random.between(1000, 5000)).unwrap_or(1000);
        let ppm = if self.random.chance(50) { ppm } else { -ppm };
        self.push(at, Fault::Rate(Who::Node(node), ppm));
    }

    /// All clients and a minority of the nodes, or some clients and up to one node more.
    fn links(&mut self) -> Links {
        let minority = self.plan.nodes.div_ceil(2) - 1;
        let (clients, nodes_max) = match self.random.below(3) {
            0 => (Members::ALL, minority),
            _ => (
                self.some(self.plan.clients, self.plan.clients - 1),
                minority + 1,
            ),
        };
        Links::between(clients, self.some(self.plan.nodes, nodes_max))
    }

    /// At least one of so many, and at most so many.
    fn some(&mut self, of: u8, at_most: u8) -> Members {
        let count = self.random.between(1, at_most.max(1).into());
        let first = self.random.below(of.into());
        let member = |step| u8::try_from((first + step) % u64::from(of.max(1))).unwrap_or(0);
        (0..count).map(member).collect()
    }

    fn node(&mut self) -> u8 {
        u8::try_from(self.random.below(self.plan.nodes.into())).unwrap_or(0)
    }

    fn client(&mut self) -> u8 {
        u8::try_from(self.random.below(self.plan.clients.into())).unwrap_or(0)
    }

    fn span(&mut self, low: Duration, high: Duration) -> Duration {
        between(&mut self.random, low, high)
    }

    fn push(&mut self, at: Duration, fault: Fault) {
        self.faults.push((at, fault));
    }
}

impl Habit {
    /// How long the client does something else before it wants the lock again.
    pub(super) fn idles(&mut self) -> Duration {
        between(&mut self.random, self.ttl / 100, self.ttl / 8)
    }

    /// How it takes, keeps and ends the lock next.
    pub(super) fn lock(&mut self, key: &str) -> LockAct {
        let ttl = self.ttl;
        let (hold, extend) = match self.random.below(20) {
            0..13 => (between(&mut self.random, ttl / 25, ttl / 5), None),
            13..19 => (between(&mut self.random, ttl / 5, ttl * 4 / 5), None),
            _ => (between(&mut self.random, ttl, ttl * 2), Some(ttl / 3)),
        };
        let mut act = LockAct::new(key, ttl)
            .tries(TRIES)
            .hold(hold)
            .write_every(between(&mut self.random, ttl / 10, ttl / 4));
        act.extend_every = extend;
        act.ending(match self.random.below(20) {
            0 => Ending::Leave,
            _ => Ending::Release,
        })
    }

    /// How long the client is gone when it has died.
    pub(super) fn stays_dead(&mut self) -> Duration {
        between(&mut self.random, self.ttl / 4, self.ttl)
    }

    /// How long a write is on its way.
    pub(super) fn write_takes(&mut self) -> Duration {
        between(&mut self.random, self.ttl / 500, self.ttl / 100)
    }
}

/// Some seconds of them: who does not get it for so long gives up, and begins again.
const TRIES: u32 = 40;

/// Whole milliseconds, one at least.
fn between(random: &mut Random, low: Duration, high: Duration) -> Duration {
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(random.between(ms(low), ms(high)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64) -> Plan {
        Plan {
            seed,
            nodes: 5,
            clients: 8,
            run_for: Duration::from_secs(20),
            ttl: Duration::from_secs(1),
            guard: Guarding::Memory,
        }
    }

    #[test]
    fn a_seed_makes_the_same_faults_every_time_and_another_seed_others() {
        assert_eq!(plan(7).faults(), plan(7).faults());
        assert_ne!(plan(7).faults(), plan(8).faults());
    }

    #[test]
    fn faults_are_in_order_end_in_calm_and_restart_what_they_kill() {
        for seed in 0..50 {
            let faults = plan(seed).faults();
            assert!(faults.is_sorted_by_key(|(at, _)| *at));
            let (at, last) = faults.last().unwrap();
            assert_eq!((at.as_millis(), last), (17_500, &Fault::Calm), "{seed}");
            let mut down = [false; 5];
            for (_, fault) in &faults {
                match fault {
                    Fault::Crash(node, _) => {
                        let down = &mut down[usize::from(*node)];
                        assert!(!*down, "seed {seed}: killed twice");
                        *down = true;
                    }
                    Fault::Restart(node) => down[usize::from(*node)] = false,
                    Fault::Calm => down = [false; 5],
                    _ => {}
                }
            }
            assert_eq!(down, [false; 5]);
        }
    }

    #[test]
    fn seeds_bring_every_kind_of_fault() {
        let kinds: std::collections::BTreeSet<&str> = (0..30)
            .flat_map(|seed| plan(seed).faults())
            .map(|(_, fault)| fault.kind())
            .collect();
        for kind in [
            "kill",
            "restart",
            "partition",
            "one-way-partition",
            "drop-replies",
            "drop-requests",
            "delay",
            "node-pause",
            "client-pause",
            "client-crash",
            "reset",
            "clock-rate",
            "heal",
            "calm",
        ] {
            assert!(kinds.contains(kind), "{kind} in {kinds:?}");
        }
    }

    #[test]
    fn the_shortest_runs_and_the_smallest_clusters_have_a_schedule_too() {
        for (nodes, clients, run_ms, ttl_ms) in
            [(1, 1, 1000, 100), (2, 1, 2000, 5000), (16, 16, 3000, 300)]
        {
            let plan = Plan {
                nodes,
                clients,
                run_for: Duration::from_millis(run_ms),
                ttl: Duration::from_millis(ttl_ms),
                ..plan(3)
            };
            let faults = plan.faults();
            assert!(faults.iter().all(|(at, _)| *at < plan.run_for));
        }
    }
}
