//! What a connection may take, and when it lets others go first.

use std::time::Duration;

/// A batch ends when its replies exceed this; the peer gets them before more is executed. The
/// replies to one read of acquires stay below it.
pub(super) const OUTPUT_HIGH_WATER: usize = 256 << 10;

/// Batches of up to this many commands are answered only after every other ready connection has
/// been read. Waking a peer for each of many single replies costs more than the requests
/// themselves: measured, this saves a twentieth of the CPU time per command at pipeline 1. A longer
/// batch is worth a wake-up of its own.
pub(super) const SHORT_BATCH_MAX: u64 = 2;

/// The same in a large table, where the way to a peer and back costs the processor what it has at
/// hand of the table: at pipeline 16 this saves a twentieth, and in a small table nothing.
pub(super) const SHORT_BATCH_LARGE: u64 = 32;

/// A buffer's first room. An input buffer that grew beyond it for a large request is freed when it
/// is mostly empty.
pub(super) const KEPT_MAX: usize = 4 << 10;

/// Arguments kept without allocation: enough to release a dozen keys in one command.
pub(super) const ARGS_INLINE: usize = 16;

/// Input kept while a command waits; beyond it the node also no longer sees that the peer is gone.
pub(super) const BLOCKED_INPUT_MAX: usize = 64 << 10;

/// Input taken from a closing connection: more than a socket's buffer usually holds.
pub(super) const LATE_INPUT_MAX: usize = 256 << 10;

/// A peer that sent something this recently may be sending more right now.
pub(super) const BUSY: Duration = Duration::from_secs(1);

/// What a peer sent before it saw the end arrives within a round trip; this is a long one.
pub(super) const QUIET: Duration = Duration::from_millis(50);

/// Timers have a resolution of a millisecond; waiting one longer saves a second check.
pub(super) const TIMER_SLACK: Duration = Duration::from_millis(1);
