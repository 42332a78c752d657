//! How long a script may run.
//!
//! A node stops a script by the clock: then it does not matter which instruction, library function
//! or command takes long. A simulation has no clock that runs within a command, and counts.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The limits of the running script; shared with Lua's hook. One thread uses it at a time.
#[derive(Debug)]
pub(super) struct Watch {
    stopwatch: Option<fn() -> Duration>,
    end_ns: AtomicU64,
    instructions: AtomicUsize,
    base_bytes: AtomicUsize,
    line: AtomicU32,
    is_narrow: AtomicBool,
    random: AtomicU64,
}

/// A limit that ends a script; no script can catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    Time,
    Instructions,
    Memory,
}

impl Watch {
    pub(super) fn new(stopwatch: Option<fn() -> Duration>) -> Self {
        Self {
            stopwatch,
            end_ns: AtomicU64::new(0),
            instructions: AtomicUsize::new(0),
            base_bytes: AtomicUsize::new(0),
            line: AtomicU32::new(0),
            is_narrow: AtomicBool::new(false),
            random: AtomicU64::new(0),
        }
    }

    /// Begins a run, with the memory in use.
    pub(super) fn start(&self, used_bytes: usize) {
        let end = self
            .stopwatch
            .map_or(Duration::ZERO, |now| now() + TIME_MAX);
        self.end_ns.store(nanos(end), Ordering::Relaxed);
        self.instructions.store(0, Ordering::Relaxed);
        self.base_bytes.store(used_bytes, Ordering::Relaxed);
        self.line.store(1, Ordering::Relaxed);
        self.is_narrow.store(false, Ordering::Relaxed);
        self.seed(0);
    }

    /// Counts work, and stops the script when a limit is reached.
    pub(super) fn spend(&self, instructions: usize) -> Result<(), Stopped> {
        let count = self.instructions() + instructions;
        self.instructions.store(count, Ordering::Relaxed);
        let Some(now) = self.stopwatch else {
            return if count > INSTRUCTIONS_MAX {
                Err(Stopped::Instructions)
            } else {
                Ok(())
            };
        };
        let may_take_long = self.is_narrow() || count > INSTRUCTIONS_MIN;
        if may_take_long && nanos(now()) >= self.end_ns.load(Ordering::Relaxed) {
            return Err(Stopped::Time);
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

    /// The line of the script that raised the last error.
    pub(super) fn line(&self) -> u32 {
        self.line.load(Ordering::Relaxed)
    }

    pub(super) fn set_line(&self, line: u32) {
        self.line.store(line, Ordering::Relaxed);
    }

    /// Sets the seed of [`Watch::random`], as `srand48` does.
    pub(super) fn seed(&self, seed: u32) {
        let state = u64::from(seed) << 16 | 0x330e;
        self.random.store(state, Ordering::Relaxed);
    }

    /// Draws a number from 0 to 1, as Redis draws it: `lrand48`.
    pub(super) fn random(&self) -> f64 {
        let state = self.random.load(Ordering::Relaxed);
        let state = state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & ((1 << 48) - 1);
        self.random.store(state, Ordering::Relaxed);
        let drawn = u32::try_from(state >> 17).unwrap_or(0) % i32::MAX.unsigned_abs();
        f64::from(drawn) / f64::from(i32::MAX)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => write!(out, "it took longer than {} ms", TIME_MAX.as_millis()),
            Self::Instructions => write!(out, "it took more than {INSTRUCTIONS_MAX} instructions"),
            Self::Memory => write!(out, "it used more than {MEMORY_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for Stopped {}

impl From<Stopped> for mlua::Error {
    fn from(stopped: Stopped) -> Self {
        Self::external(stopped)
    }
}

/// How long a script may run. No other client is served meanwhile, nor while its changes are undone
/// and its garbage is collected, and all of that is to take less than 50 ms on a busy machine. A lock
/// script takes microseconds.
const TIME_MAX: Duration = Duration::from_millis(5);

/// The clock does not stop a script with fewer instructions: it was not slow, its thread had to wait
/// for a processor. This many take milliseconds at most, unless strings are long, and then the
/// window is narrow.
const INSTRUCTIONS_MIN: usize = 10_000;

/// How much memory a script may allocate in total, including what it no longer needs: enough for
/// tens of thousands of commands, and little enough to be filled and freed in milliseconds.
pub(super) const MEMORY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The limit without a clock: what a processor does in about the same time.
const INSTRUCTIONS_MAX: usize = 2_000_000;
