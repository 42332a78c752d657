//! How long a script may run.
//!
//! A node bounds a script by the clock: then it does not matter which instruction, library function
//! or command takes long. A simulation has no clock that runs within a command, and counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use locknode_resp::Protocol;

/// The limits of the running script; shared with Lua's hook. One thread uses it at a time.
#[derive(Debug)]
pub(super) struct Watch {
    bounds: Bounds,
    end_ns: AtomicU64,
    instructions: AtomicUsize,
    base_bytes: AtomicUsize,
    line: AtomicU32,
    is_narrow: AtomicBool,
    /// Whether the script has chosen RESP3 for its conversions.
    has_resp3: AtomicBool,
}

/// What a script may take, what happens then, and what it shares with the node's other scripts.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Without it, instructions are counted.
    pub(super) stopwatch: Option<fn() -> Duration>,
    /// `None` for no limit.
    pub(super) time_max: Option<Duration>,
    pub(super) memory_max: usize,
    /// Whether a script that takes more goes on elsewhere instead of being stopped.
    pub(super) is_first: bool,
    /// Ends the script on request; `None` where nobody can ask.
    pub(super) signal: Option<Arc<Signal>>,
    pub(super) random: Arc<Random>,
}

/// The generator behind `math.random`. As in Redis, a script draws where the last one stopped; a
/// node's first numbers are always the same, so that a simulation repeats.
#[derive(Debug)]
pub(super) struct Random(AtomicU64);

/// What a running script and those who wait for it tell each other.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_stopped: AtomicBool,
    has_event: AtomicBool,
}

impl Signal {
    /// Ends the script.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Notes whether the script waits for somebody.
    pub(super) fn set_event(&self, has_event: bool) {
        self.has_event.store(has_event, Ordering::Release);
    }

    /// Returns whether the script waits for a reply, or has ended.
    pub(crate) fn has_event(&self) -> bool {
        self.has_event.load(Ordering::Acquire)
    }
}

/// A limit that ends a script; no script can catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It takes long, and goes on elsewhere.
    Slow,
    Time(Duration),
    Instructions,
    Memory(usize),
    /// A client has asked for it.
    Killed,
}

impl Bounds {
    /// Those of a script that holds up everybody: it gives way early, where it can.
    pub(super) const fn first(
        stopwatch: Option<fn() -> Duration>,
        can_go_on: bool,
        random: Arc<Random>,
    ) -> Self {
        Self {
            random,
            stopwatch,
            time_max: Some(FIRST_TIME_MAX),
            memory_max: FIRST_MEMORY_BYTES_MAX,
            is_first: can_go_on,
            signal: None,
        }
    }

    /// Those of a script that holds up nobody.
    pub(super) const fn suspended(
        stopwatch: Option<fn() -> Duration>,
        time_max: Option<Duration>,
        signal: Arc<Signal>,
        random: Arc<Random>,
    ) -> Self {
        Self {
            random,
            stopwatch,
            time_max,
            memory_max: MEMORY_BYTES_MAX,
            is_first: false,
            signal: Some(signal),
        }
    }
}

impl Random {
    /// Sets the seed, as `srand48` does.
    pub(super) fn seed(&self, seed: u32) {
        self.0.store(state_of(seed), Ordering::Relaxed);
    }

    /// Draws a number from 0 to 1, as Redis draws it: `lrand48`.
    pub(super) fn draw(&self) -> f64 {
        let state = self.0.load(Ordering::Relaxed);
        let state = state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & ((1 << 48) - 1);
        self.0.store(state, Ordering::Relaxed);
        let drawn = u32::try_from(state >> 17).unwrap_or(0) % i32::MAX.unsigned_abs();
        f64::from(drawn) / f64::from(i32::MAX)
    }
}

impl Default for Random {
    fn default() -> Self {
        Self(AtomicU64::new(state_of(0)))
    }
}

fn state_of(seed: u32) -> u64 {
    u64::from(seed) << 16 | 0x330e
}

impl Watch {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            end_ns: AtomicU64::new(0),
            instructions: AtomicUsize::new(0),
            base_bytes: AtomicUsize::new(0),
            line: AtomicU32::new(0),
            is_narrow: AtomicBool::new(false),
            has_resp3: AtomicBool::new(false),
        }
    }

    /// Returns what the script may take.
    pub(super) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// What a script that has allocated too much ends with.
    pub(super) const fn out_of_memory(&self) -> Stopped {
        if self.bounds.is_first {
            Stopped::Slow
        } else {
            Stopped::Memory(self.bounds.memory_max)
        }
    }

    /// Begins a run, with the memory in use.
    pub(super) fn start(&self, used_bytes: usize) {
        let end = match (self.bounds.stopwatch, self.bounds.time_max) {
            (Some(now), Some(max)) => nanos(now() + max),
            _ => u64::MAX,
        };
        self.end_ns.store(end, Ordering::Relaxed);
        self.instructions.store(0, Ordering::Relaxed);
        self.base_bytes.store(used_bytes, Ordering::Relaxed);
        self.line.store(1, Ordering::Relaxed);
        self.is_narrow.store(false, Ordering::Relaxed);
        self.set_protocol(Protocol::Resp2);
    }

    /// Counts work, and stops the script when a limit is reached.
    pub(super) fn spend(&self, instructions: usize) -> Result<(), Stopped> {
        let count = self.instructions() + instructions;
        self.instructions.store(count, Ordering::Relaxed);
        if self
            .bounds
            .signal
            .as_ref()
            .is_some_and(|signal| signal.is_stopped())
        {
            return Err(Stopped::Killed);
        }
        let Some(now) = self.bounds.stopwatch else {
            return if count > INSTRUCTIONS_MAX {
                Err(Stopped::Instructions)
            } else {
                Ok(())
            };
        };
        let may_take_long = self.is_narrow() || count > INSTRUCTIONS_MIN;
        if may_take_long && nanos(now()) >= self.end_ns.load(Ordering::Relaxed) {
            let max = self.bounds.time_max.unwrap_or_default();
            let is_first = self.bounds.is_first;
            return Err(if is_first {
                Stopped::Slow
            } else {
                Stopped::Time(max)
            });
        }
        Ok(())
    }

    pub(super) fn instructions(&self) -> usize {
        self.instructions.load(Ordering::Relaxed)
    }

    pub(super) fn base_bytes(&self) -> usize {
        self.base_bytes.load(Ordering::Relaxed)
    }

    /// Notes that the window is the narrow one; returns whether it was not before.
    pub(super) fn narrow(&self) -> bool {
        !self.is_narrow.swap(true, Ordering::Relaxed)
    }

    pub(super) fn is_narrow(&self) -> bool {
        self.is_narrow.load(Ordering::Relaxed)
    }

    /// Sets the protocol of the replies that a script sees: `redis.setresp`.
    pub(super) fn set_protocol(&self, protocol: Protocol) {
        let has_resp3 = protocol == Protocol::Resp3;
        self.has_resp3.store(has_resp3, Ordering::Relaxed);
    }

    pub(super) fn protocol(&self) -> Protocol {
        if self.has_resp3.load(Ordering::Relaxed) {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        }
    }

    /// The line of the script that raised the last error.
    pub(super) fn line(&self) -> u32 {
        self.line.load(Ordering::Relaxed)
    }

    pub(super) fn set_line(&self, line: u32) {
        self.line.store(line, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow => out.write_str("it takes long"),
            Self::Time(max) => write!(out, "it took longer than {} ms", max.as_millis()),
            Self::Instructions => write!(out, "it took more than {INSTRUCTIONS_MAX} instructions"),
            Self::Memory(max) => write!(out, "it used more than {max} bytes"),
            Self::Killed => out.write_str("Script killed by user with SCRIPT KILL..."),
        }
    }
}

impl std::error::Error for Stopped {}

impl From<Stopped> for mlua::Error {
    fn from(stopped: Stopped) -> Self {
        Self::external(stopped)
    }
}

/// How long a script may run while no other client is served. With what it takes to undo its changes
/// and to collect its garbage, that is to be less than 20 ms on a busy machine. A lock script takes
/// microseconds.
const FIRST_TIME_MAX: Duration = Duration::from_millis(5);

/// The clock does not stop a script with fewer instructions: it was not slow, its thread had to wait
/// for a processor. This many take milliseconds at most, unless strings are long, and then the
/// window is narrow.
const INSTRUCTIONS_MIN: usize = 10_000;

/// How much memory such a script may allocate in total, including what it no longer needs: enough for
/// tens of thousands of commands, and little enough to be filled and freed in milliseconds.
const FIRST_MEMORY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much memory a script may have that holds up nobody. There are few of them at a time.
const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The limit without a clock: what a processor does in about the same time.
const INSTRUCTIONS_MAX: usize = 2_000_000;
