//! The machine that a node runs on, and the clocks that keep running while the node is down.

use crate::time::Moment;

/// The identity of a machine and its boot. If two values are equal, the clocks of [`MachineTime`]
/// were not reset in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Changes with every boot (`/proc/sys/kernel/random/boot_id`). Zeros when the system has none;
    /// then nothing is known of the clocks of an earlier run.
    pub boot_id: [u8; 16],
    /// Differs between machines (`/etc/machine-id`); zeros when the system has none.
    pub machine_id: [u8; 16],
    /// The time namespace, in which a container may see clocks of its own; zero when the system has
    /// none. Linux reuses the number of a namespace that no longer exists, so only the initial one
    /// can be recognised.
    pub time_namespace: u64,
}

/// The two clocks that keep running while the node is down, in nanoseconds since the machine's
/// boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MachineTime {
    /// Counts the time that the machine sleeps; time synchronisation speeds it up and slows it down
    /// (`CLOCK_BOOTTIME`).
    pub boottime_ns: u64,
    /// Runs at an even rate; stops while the machine sleeps (`CLOCK_MONOTONIC_RAW`).
    pub raw_ns: u64,
}

/// The node's own time and the machine's, read together. The node's comes first, so that a deadline
/// stored by the machine's clocks is never earlier than the node's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The node's time, and the wall clock for people and for the floor of fencing tokens.
    pub moment: Moment,
    /// The machine's time.
    pub machine: MachineTime,
}

impl Machine {
    /// The number of Linux's initial time namespace (`PROC_TIME_INIT_INO`), whose clocks are the
    /// machine's.
    pub const INITIAL_TIME_NAMESPACE: u64 = 0xefff_fffa;

    /// Returns whether clock readings of `earlier` can be compared with readings taken now `[G7]`.
    pub fn is_same_boot(&self, earlier: &Self) -> bool {
        let has_machine_clocks = matches!(self.time_namespace, 0 | Self::INITIAL_TIME_NAMESPACE);
        self.boot_id != [0; 16] && has_machine_clocks && self == earlier
    }
}
