//! What comes in the middle of orderly stops: a disk that takes long or fails, a kill, a power loss, a second signal.

use std::time::Duration;

use crate::fault::{Crash, DiskFault, Fault};
use crate::random::Random;
use crate::scenario::{Action, Hook, Scenario, Trigger};

/// Adds to the orderly stops of a scenario. `random` is a stream of its own.
pub(crate) fn disturb(scenario: &mut Scenario, random: &mut Random) {
    let keeps = scenario.setup.guard.has_directory();
    let stopped = scenario.faults().filter_map(|fault| match fault {
        Fault::Crash(node, Crash::CleanStop) => Some(node),
        _ => None,
    });
    let stopped: Vec<u8> = stopped.collect();
    let mut counts = [0; 16];
    for node in stopped {
        let Some(nth) = counts.get_mut(usize::from(node)) else {
            continue;
        };
        *nth += 1;
        let (hook, nth) = (Hook::Stops(node), *nth);
        let mut on = |after: Duration, fault| {
            scenario.add(Trigger::On { hook, nth, after }, Action::Fault(fault));
        };
        let lasts = random.pick(&[20, 300, 1_000, 8_000]);
        let lasts = Duration::from_millis(random.between(1, lasts));
        let disks = [
            DiskFault::Stall,
            DiskFault::Stall,
            DiskFault::Stall,
            DiskFault::Slow(lasts / 4),
            DiskFault::Slow(lasts / 4),
            DiskFault::Full,
            DiskFault::WriteFull,
            DiskFault::WriteError,
            DiskFault::SyncError,
        ];
        let disk = random.pick(&disks);
        if keeps && random.chance(50) {
            on(Duration::ZERO, Fault::Disk(node, disk));
            if let Some(repair) = Fault::Disk(node, disk).undo() {
                on(lasts, repair);
            }
        }
        let hows = [
            Crash::CleanStop,
            Crash::Kill,
            Crash::PowerLoss,
            Crash::PowerLossAll,
            Crash::TornWrite,
        ];
        let how = random.pick(&hows);
        // At any time of it, or a little later.
        let (is_cut, is_awaited) = (random.chance(40), random.chance(25));
        let mut after = || lasts * u32::try_from(random.between(0, 5)).unwrap_or(0) / 4;
        let (cut, awaited) = (after(), after());
        if is_cut {
            on(cut, Fault::Crash(node, how));
        }
        if is_awaited {
            on(awaited, Fault::Restart(node));
        }
    }
}
