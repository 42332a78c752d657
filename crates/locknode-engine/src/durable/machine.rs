//! The machine that a node runs on, and the clocks that go on while the node is down.

use crate::time::Moment;

/// Which machine, and which run of it. Two equal values mean: the clocks of [`MachineTime`] were not reset between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Changes with every boot (`/proc/sys/kernel/random/boot_id`); zeros when the system has none, then nothing is
    /// known of the clocks of an earlier run.
    pub boot_id: [u8; 16],
    /// Differs from machine to machine (`/etc/machine-id`); zeros when the system has none.
    pub machine_id: [u8; 16],
    /// The time namespace, in which a container may see clocks of its own; zero when the system has none. The number of a
    /// namespace that has ended is given to another, so only the initial one is known to be the same again.
    pub time_namespace: u64,
}

/// The two clocks that go on while the node is down, in nanoseconds since the machine's boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MachineTime {
    /// Counts the time that the machine sleeps; slowed and hastened by time synchronisation (`CLOCK_BOOTTIME`).
    pub boottime_ns: u64,
    /// Runs evenly; stands still while the machine sleeps (`CLOCK_MONOTONIC_RAW`).
    pub raw_ns: u64,
}

/// The node's own time and the machine's, read together: the node's first, so that a deadline written down by the
/// machine's clocks is never earlier than the node's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The node's time, and the wall clock for people and for the floor of fencing tokens.
    pub moment: Moment,
    /// The machine's time.
    pub machine: MachineTime,
}

impl Machine {
    /// The number of the time namespace that Linux begins with (`PROC_TIME_INIT_INO`), whose clocks are the machine's.
    pub const INITIAL_TIME_NAMESPACE: u64 = 0xefff_fffa;

    /// Whether clock readings of `earlier` can be compared with readings taken now `[G7]`.
    pub fn is_same_boot(&self, earlier: &Self) -> bool {
        let has_machine_clocks = matches!(self.time_namespace, 0 | Self::INITIAL_TIME_NAMESPACE);
        self.boot_id != [0; 16] && has_machine_clocks && self == earlier
    }
}
