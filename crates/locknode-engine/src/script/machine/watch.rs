//! How long a script may run.
//!
//! A node bounds a script by the clock: then it does not matter which instruction, library function
//! or command takes long. A simulation has no clock that runs within a command, and counts.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use locknode_resp::Protocol;

/// The limits of the running script; shared with Lua's hook.
#[derive(Debug)]
pub(super) struct Watch {
    /// Ends the script on request; `None` where nobody can ask.
    signal: Option<Arc<Signal>>,
    bounds: Cell<Bounds>,
    /// `None` for no limit.
    end: Cell<Option<Duration>>,
    instructions: Cell<usize>,
    base_bytes: Cell<usize>,
    line: Cell<u32>,
    is_narrow: Cell<bool>,
    /// That of the replies which the script sees.
    protocol: Cell<Protocol>,
    random: RefCell<Arc<Random>>,
}

/// The generator behind `math.random`. As in Redis, a script draws where the last one stopped; a
/// node's first numbers are always the same, so that a simulation repeats.
#[derive(Debug)]
pub(super) struct Random(AtomicU64);

/// What a script may take, and what happens then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Without it, instructions are counted.
    pub(super) stopwatch: Option<fn() -> Duration>,
    /// `None` for no limit.
    pub(super) time_max: Option<Duration>,
    pub(super) memory_max: usize,
    /// Whether a script that takes more goes on elsewhere instead of being stopped.
    pub(super) is_first: bool,
}

/// What a running script and those who wait for it tell each other.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_stopped: AtomicBool,
    has_event: AtomicBool,
    /// The memory of its Lua.
    bytes: AtomicUsize,
}

impl Signal {
    /// Ends the script.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Returns the memory that the script uses, as of its last look at the limits.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
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
    pub(super) const fn first(stopwatch: Option<fn() -> Duration>, can_go_on: bool) -> Self {
        Self {
            stopwatch,
            time_max: Some(FIRST_TIME_MAX),
            memory_max: FIRST_MEMORY_BYTES_MAX,
            is_first: can_go_on,
        }
    }

    /// Those of a script that holds up nobody.
    pub(super) const fn suspended(
        stopwatch: Option<fn() -> Duration>,
        time_max: Option<Duration>,
    ) -> Self {
        Self {
            stopwatch,
            time_max,
            memory_max: MEMORY_BYTES_MAX,
            is_first: false,
        }
    }
}

impl Random {
    /// Sets the seed, as `srand48` does.
    fn seed(&self, seed: u32) {
        self.0.store(state_of(seed), Ordering::Relaxed);
    }

    /// Draws a number from 0 to 1, as Redis draws it: `lrand48`.
    fn draw(&self) -> f64 {
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
    pub(super) fn new(signal: Option<Arc<Signal>>) -> Self {
        Self {
            signal,
            bounds: Cell::new(Bounds::first(None, false)),
            end: Cell::default(),
            instructions: Cell::default(),
            base_bytes: Cell::default(),
            line: Cell::default(),
            is_narrow: Cell::default(),
            protocol: Cell::new(Protocol::Resp2),
            random: RefCell::default(),
        }
    }

    /// Returns what the script may take.
    pub(super) const fn bounds(&self) -> Bounds {
        self.bounds.get()
    }

    /// Notes the memory in use; returns how much of it is the script's.
    pub(super) fn note_memory(&self, used_bytes: usize) -> usize {
        if let Some(signal) = &self.signal {
            signal.bytes.store(used_bytes, Ordering::Relaxed);
        }
        used_bytes.saturating_sub(self.base_bytes())
    }

    /// Sets it, and the generator that the node's scripts share, before a run.
    pub(super) fn set_bounds(&self, bounds: Bounds, random: &Arc<Random>) {
        self.bounds.set(bounds);
        let mut place = self.random.borrow_mut();
        if !Arc::ptr_eq(&place, random) {
            *place = Arc::clone(random);
        }
    }

    /// Returns whether the script goes on while others are served.
    pub(super) const fn is_suspended(&self) -> bool {
        self.signal.is_some()
    }

    /// What a script that has allocated too much ends with.
    pub(super) const fn out_of_memory(&self) -> Stopped {
        let bounds = self.bounds();
        if bounds.is_first {
            Stopped::Slow
        } else {
            Stopped::Memory(bounds.memory_max)
        }
    }

    /// Begins a run, with the memory in use.
    pub(super) fn start(&self, used_bytes: usize) {
        let bounds = self.bounds();
        let times = bounds.stopwatch.zip(bounds.time_max);
        self.end.set(times.map(|(now, max)| now() + max));
        self.instructions.set(0);
        self.base_bytes.set(used_bytes);
        self.line.set(1);
        self.is_narrow.set(false);
        self.set_protocol(Protocol::Resp2);
    }

    /// Counts work, and stops the script when a limit is reached.
    pub(super) fn spend(&self, instructions: usize) -> Result<(), Stopped> {
        let count = self.instructions() + instructions;
        self.instructions.set(count);
        if let Some(signal) = &self.signal
            && signal.is_stopped()
        {
            return Err(Stopped::Killed);
        }
        let bounds = self.bounds();
        let Some(now) = bounds.stopwatch else {
            return if count > INSTRUCTIONS_MAX {
                Err(Stopped::Instructions)
            } else {
                Ok(())
            };
        };
        let may_take_long = self.is_narrow() || count > INSTRUCTIONS_MIN;
        if may_take_long && self.end.get().is_some_and(|end| now() >= end) {
            let max = bounds.time_max.unwrap_or_default();
            return Err(if bounds.is_first {
                Stopped::Slow
            } else {
                Stopped::Time(max)
            });
        }
        Ok(())
    }

    pub(super) const fn instructions(&self) -> usize {
        self.instructions.get()
    }

    pub(super) const fn base_bytes(&self) -> usize {
        self.base_bytes.get()
    }

    /// Notes that the window is the narrow one; returns whether it was not before.
    pub(super) fn narrow(&self) -> bool {
        !self.is_narrow.replace(true)
    }

    pub(super) const fn is_narrow(&self) -> bool {
        self.is_narrow.get()
    }

    /// Sets the protocol of the replies that a script sees: `redis.setresp`.
    pub(super) fn set_protocol(&self, protocol: Protocol) {
        self.protocol.set(protocol);
    }

    pub(super) const fn protocol(&self) -> Protocol {
        self.protocol.get()
    }

    /// The line of the script that raised the last error.
    pub(super) const fn line(&self) -> u32 {
        self.line.get()
    }

    pub(super) fn set_line(&self, line: u32) {
        self.line.set(line);
    }

    /// Sets the seed of [`Watch::random`].
    pub(super) fn seed(&self, seed: u32) {
        self.random.borrow().seed(seed);
    }

    /// Draws a number from 0 to 1.
    pub(super) fn random(&self) -> f64 {
        self.random.borrow().draw()
    }
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
