//! Why a node waits at its start.

/// Why a node waits at its start, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartReason {
    /// The operator stated that no node in its place has ever granted a lock `[G4]`.
    FirstStart,
    /// The clean marker was found `[G10]`.
    CleanStop,
    /// It crashed in the same boot of the machine: the horizon counts `[G6]`.
    Crash,
    /// It crashed in another boot or on another machine: the TTL in use counts `[G5]`.
    Reboot,
    /// The machine appears to be in the same boot, but its clocks have gone back `[G7]`.
    ClockMismatch,
    /// The directory holds no state. The node waits until every lock with a TTL up to `max-ttl` has
    /// expired; locks with a longer TTL or none are lost with the disk `[G3]`.
    Empty,
    /// One slot of the state is damaged `[S3]`.
    DamagedState,
    /// The last batch of the log was dropped, because it is torn or damaged `[L5]`.
    DroppedBatch,
    /// There is no data directory, so nothing is known of earlier runs. The node waits until every
    /// lock with a TTL up to `max-ttl` has expired `[G3]`.
    NoDirectory,
    /// The restart guard is off `[G15]`.
    GuardOff,
    /// It crashed, and every lock that it granted is on the log `[L1]`.
    Logged,
}
