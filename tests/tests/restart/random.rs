//! Scripts of requests, time, trouble and crashes, by chance and then as short as possible, against [`Clients`].
//!
//! `LOCKNODE_TEST_CASES` sets how many (1,000).

use std::time::Duration;

use locknode_engine::durable::Durability;
use locknode_tests::{NodeSettings, StoredNode};
use proptest::prelude::*;

use crate::clients::{Clients, Request};
use crate::{NANO, settings};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Send(Request),
    /// The node does it, and the reply is lost on its way.
    SendInVain(Request),
    Pass(u32),
    /// Boottime and raw run so many millionths too fast; a node's clocks may, by up to 1 %.
    Skew(i64, i64),
    Suspend(u32),
    SetWall(u64),
    HoldDisk,
    LetDiskGo,
    FillDisk,
    FailSync(u64),
    /// The process ends, time passes, the next one starts, with other settings perhaps.
    Fall {
        how: Fall,
        down_ms: u32,
        max_ttl_ms: u32,
        durability: Durability,
        /// The wait is waited for.
        waits: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Fall {
    Kill,
    PowerLoss(u64),
    Reboot,
    CleanStop,
    OtherMachine,
    /// The process ends after so many operations on the disk.
    Stop(u64),
}

fn ttl_ms() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => 1_u32..5_000,
        3 => 5_000_u32..61_000,
        1 => Just(60_000_u32),
        2 => 61_000_u32..7_200_000,
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let key = || 0_u8..3;
    let some_ttl = || prop_oneof![4 => ttl_ms().prop_map(Some), 1 => Just(None)];
    let own = || prop_oneof![5 => Just(true), 1 => Just(false)];
    prop_oneof![
        8 => (key(), some_ttl(), any::<u8>())
            .prop_map(|(key, ttl_ms, way)| Request::Acquire { key, ttl_ms, way }),
        2 => (key(), some_ttl(), any::<bool>())
            .prop_map(|(key, ttl_ms, only_held)| Request::Overwrite { key, ttl_ms, only_held }),
        4 => (key(), ttl_ms(), any::<u8>(), own())
            .prop_map(|(key, ttl_ms, way, is_own)| Request::Extend { key, ttl_ms, way, is_own }),
        1 => (key(), some_ttl()).prop_map(|(key, ttl_ms)| Request::Move { key, ttl_ms }),
        4 => (key(), any::<u8>(), own())
            .prop_map(|(key, way, is_own)| Request::Release { key, way, is_own }),
        1 => Just(Request::Flush),
        3 => (key(), prop_oneof![1_u32..9, 1_000_000_u32..3_000_000], own())
            .prop_map(|(key, above, is_right)| Request::Fence { key, above, is_right }),
        3 => key().prop_map(|key| Request::Look { key }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let pass = || prop_oneof![4 => 0_u32..3_000, 1 => 3_000_u32..70_000];
    let ppm = || prop_oneof![1 => Just(0_i64), 2 => -10_000_i64..=10_000];
    let how = prop_oneof![
        3 => Just(Fall::Kill),
        3 => any::<u64>().prop_map(Fall::PowerLoss),
        2 => Just(Fall::Reboot),
        2 => Just(Fall::CleanStop),
        1 => Just(Fall::OtherMachine),
        2 => (0_u64..6).prop_map(Fall::Stop),
    ];
    let max_ttl = prop_oneof![3 => Just(60_000_u32), 1 => Just(10_000_u32), 1 => Just(90_000_u32)];
    let durability = prop_oneof![4 => Just(Durability::Long), 1 => Just(Durability::Always)];
    prop_oneof![
        30 => request().prop_map(Step::Send),
        2 => request().prop_map(Step::SendInVain),
        12 => pass().prop_map(Step::Pass),
        1 => (ppm(), ppm()).prop_map(|(boottime, raw)| Step::Skew(boottime, raw)),
        1 => pass().prop_map(Step::Suspend),
        1 => (0_u64..4_000_000_000_000).prop_map(Step::SetWall),
        2 => Just(Step::HoldDisk),
        3 => Just(Step::LetDiskGo),
        1 => Just(Step::FillDisk),
        1 => (0_u64..5).prop_map(Step::FailSync),
        6 => (how, pass(), max_ttl, durability, any::<bool>()).prop_map(
            |(how, down_ms, max_ttl_ms, durability, waits)| Step::Fall {
                how, down_ms, max_ttl_ms, durability, waits,
            },
        ),
    ]
}

/// A node, its clients, and what the longest wait may be.
struct World {
    node: StoredNode,
    clients: Clients,
    longest_max_ttl: Duration,
}

impl World {
    fn run(steps: &[Step]) -> Result<(), String> {
        let settings = settings();
        let mut world = Self {
            longest_max_ttl: settings.max_ttl,
            node: StoredNode::first_start(settings).map_err(|error| error.to_string())?,
            clients: Clients::default(),
        };
        for step in steps {
            world.step(step)?;
            world.clients.receive(&mut world.node)?;
            world.clients.check_durable(&world.node)?;
        }
        let end = Step::Fall {
            how: Fall::PowerLoss(steps.len() as u64),
            down_ms: 0,
            max_ttl_ms: 60_000,
            durability: Durability::Long,
            waits: true,
        };
        world.step(&end)?;
        world.clients.look(&mut world.node)?;
        world.clients.receive(&mut world.node)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Send(request) => self.clients.send(&mut self.node, request, false)?,
            Step::SendInVain(request) => self.clients.send(&mut self.node, request, true)?,
            Step::Pass(ms) => self.pass(Duration::from_millis(ms.into())),
            Step::Skew(boottime, raw) => {
                self.node.clock().skew_boottime(boottime);
                self.node.clock().skew_raw(raw);
            }
            Step::Suspend(ms) => {
                let by = Duration::from_millis(ms.into());
                self.node.clock().suspend(by);
                self.clients.now += by;
            }
            Step::SetWall(unix_ms) => self.node.clock().set_wall_unix_millis(unix_ms),
            Step::HoldDisk => self.node.hold_disk(),
            Step::LetDiskGo => self.node.release_disk(),
            Step::FillDisk => {
                let bytes = self.node.disk().bytes();
                self.node.disk().limit(Some(bytes));
            }
            Step::FailSync(after) => self.node.disk().fail_sync(after),
            Step::Fall {
                how,
                down_ms,
                max_ttl_ms,
                durability,
                waits,
            } => {
                self.fall(how)?;
                self.pass(Duration::from_millis(down_ms.into()));
                let max_ttl = Duration::from_millis(max_ttl_ms.into());
                *self.node.settings_mut() = NodeSettings {
                    max_ttl,
                    durability,
                    ..settings()
                };
                self.longest_max_ttl = self.longest_max_ttl.max(max_ttl);
                self.start(waits)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, by: Duration) {
        self.clients.now += by;
        self.node.advance(by);
    }

    fn fall(&mut self, how: Fall) -> Result<(), String> {
        match how {
            Fall::Kill => self.node.kill(),
            Fall::PowerLoss(seed) => self.node.power_loss(seed),
            Fall::Reboot => self.node.reboot(),
            Fall::CleanStop => {
                // A disk that refuses is a crash.
                let _ = self.node.clean_stop();
                self.node.disk().kill();
            }
            Fall::OtherMachine => self.node.move_to_other_machine(),
            Fall::Stop(after) => {
                self.node.disk().stop(after);
                for key in 0..2 {
                    let ttl_ms = if key == 0 { None } else { Some(30_000) };
                    let request = Request::Acquire {
                        key,
                        ttl_ms,
                        way: key,
                    };
                    self.clients.send(&mut self.node, request, false)?;
                }
                self.node.release_disk();
                self.clients.receive(&mut self.node)?;
                self.node.power_loss(after);
            }
        }
        self.clients.receive(&mut self.node)
    }

    /// Every start succeeds, and its wait is bounded. [G3] [G9]
    fn start(&mut self, waits: bool) -> Result<(), String> {
        self.node.start().map_err(|error| error.to_string())?;
        self.clients.node_started();
        let left = self.node.quarantine_left().unwrap_or_default();
        let bound = self.longest_max_ttl + self.longest_max_ttl / 100 + Duration::from_millis(2);
        if left > bound + NANO {
            return Err(format!("a wait of {left:?}"));
        }
        if waits {
            // A clock that is slow by 1 % takes longer.
            for _ in 0..3 {
                let left = self.node.quarantine_left().unwrap_or_default();
                self.pass(left + left / 64);
            }
            if let Some(left) = self.node.quarantine_left() {
                return Err(format!("the wait does not end: {left:?}"));
            }
        }
        Ok(())
    }
}

fn cases() -> u32 {
    let set = std::env::var("LOCKNODE_TEST_CASES").ok();
    set.and_then(|it| it.parse().ok()).unwrap_or(1000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    /// What clients were told holds, whatever happens to the node. [G1] [G2] [G5] [G6] [G9] [G10] [G11] [G13] [G14] [L1]
    /// [L2] [L3] [L5] [F1] [F2] [F5]
    #[test]
    fn what_clients_were_told_holds(steps in prop::collection::vec(step(), 1..80)) {
        if let Err(violation) = World::run(&steps) {
            return Err(TestCaseError::fail(violation));
        }
    }
}
