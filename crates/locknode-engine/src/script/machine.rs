//! Runs scripts that are not native in Lua 5.1, in a sandbox with bounds.
//!
//! ```text
//!  text --compile--> Chunk       run: KEYS, ARGV --> sandbox.lua --> script --> redis.call --> Caller
//!                                                      |  every 100 instructions
//!                                                      +--> Watch: time, or instructions
//! ```
//!
//! One machine serves a node, one script at a time, because a script runs alone anyway. It starts
//! with the first script. Lua's garbage collector never runs within a script, so that what a script
//! allocates is bounded together with what it uses.
//!
//! A script that takes long is undone and begins again in a Lua and on a thread of its own, where it
//! holds up nobody: see [`Running`].

mod bits;
mod convert;
mod json;
mod json_reader;
mod library;
mod msgpack;
mod pack;
mod pattern;
mod running;
mod watch;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, Lua, LuaOptions, MultiValue, RegistryKey, StdLib, Table, VmState,
};
use parking_lot::Mutex;

use crate::script::error::{CompileError, ScriptError};
use crate::script::{Caller, StartThread, Value};

use library::SCRIPT_NAME;
use watch::{Bounds, Random, Watch};

pub(crate) use running::{Event, Running};
pub(crate) use watch::Signal;

/// Lua for the scripts of one node.
#[derive(Debug)]
pub(crate) struct Machine {
    stopwatch: Option<fn() -> Duration>,
    start_thread: Option<StartThread>,
    random: Arc<Random>,
    /// `None` when Lua could not be started.
    sandbox: OnceLock<Option<Mutex<Sandbox>>>,
}

/// A compiled script.
#[derive(Debug)]
pub(super) struct Chunk {
    /// `None` if compiling it would take long: it is compiled where it runs. A key, because handles
    /// have places on a stack of Lua's, which has eight thousand.
    function: Option<RegistryKey>,
    source: Arc<[u8]>,
}

#[derive(Debug)]
struct Sandbox {
    lua: Lua,
    environment: Table,
    run: Function,
    watch: Arc<Watch>,
    /// The memory in use when garbage was last collected.
    settled_bytes: usize,
}

impl Machine {
    /// Creates a machine. Scripts are bounded by time if there is a clock, otherwise by the number
    /// of their instructions; with a clock and threads, those that take long go on elsewhere.
    pub(crate) fn new(
        stopwatch: Option<fn() -> Duration>,
        start_thread: Option<StartThread>,
    ) -> Self {
        Self {
            stopwatch,
            start_thread,
            random: Arc::default(),
            sandbox: OnceLock::new(),
        }
    }

    fn sandbox(&self) -> Option<&Mutex<Sandbox>> {
        let start = || {
            let can_go_on = self.stopwatch.is_some() && self.start_thread.is_some();
            let bounds = Bounds::first(self.stopwatch, can_go_on, Arc::clone(&self.random));
            Sandbox::new(bounds).ok().map(Mutex::new)
        };
        self.sandbox.get_or_init(start).as_ref()
    }

    /// Returns the clock, if scripts are bounded by time.
    pub(crate) const fn stopwatch(&self) -> Option<fn() -> Duration> {
        self.stopwatch
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// Returns Lua's error with Redis's text.
    pub(super) fn compile(&self, source: &[u8]) -> Result<Chunk, CompileError> {
        let can_go_on = self.stopwatch.is_some() && self.start_thread.is_some();
        let bytes_max = if can_go_on {
            SOURCE_BYTES_MAX
        } else {
            SHORT_SOURCE_BYTES_MAX
        };
        if source.len() > bytes_max {
            let what = format!("a script of more than {bytes_max} bytes");
            return Err(CompileError::unsupported(&what));
        }
        if source.len() > SHORT_SOURCE_BYTES_MAX {
            return Ok(Chunk {
                function: None,
                source: source.into(),
            });
        }
        let Some(sandbox) = self.sandbox() else {
            return Err(CompileError::unsupported(NO_LUA));
        };
        sandbox.lock().compile(source)
    }

    /// Runs a script.
    ///
    /// # Errors
    /// The script raised an error or was stopped; see [`ScriptError`].
    pub(super) fn run(
        &self,
        chunk: &Chunk,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        let Some(function) = &chunk.function else {
            return Err(ScriptError::slow());
        };
        match self.sandbox() {
            Some(sandbox) => sandbox.lock().run(function, keys, args, caller),
            None => Err(ScriptError::stopped(1, NO_LUA)),
        }
    }

    /// Starts a script on a thread of its own; `None` when no thread can be started.
    pub(super) fn start(
        &self,
        chunk: &Chunk,
        keys: &[&[u8]],
        args: &[&[u8]],
        time_max: Option<Duration>,
        wake: Box<dyn Fn() + Send>,
    ) -> Option<Running> {
        let script = running::Script::new(&chunk.source, keys, args);
        let signal = Arc::default();
        let bounds = Bounds::suspended(
            self.stopwatch,
            time_max,
            Arc::clone(&signal),
            Arc::clone(&self.random),
        );
        Running::start(self.start_thread?, script, bounds, signal, wake)
    }
}

impl Sandbox {
    fn new(bounds: Bounds) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(libraries, options)?;
        let watch = Arc::new(Watch::new(bounds));
        let host = library::host(&lua, &watch)?;
        let sandbox = lua.load(SANDBOX).set_name("=sandbox");
        let (environment, run) = sandbox.call::<(Table, Function)>(host)?;
        if watch.bounds().signal.is_none() {
            lua.gc_stop();
        }
        let settled_bytes = lua.used_memory();
        let sandbox = Self {
            lua,
            environment,
            run,
            watch,
            settled_bytes,
        };
        set_hook(&sandbox.lua, &sandbox.watch, WINDOW)?;
        Ok(sandbox)
    }

    fn compile(&mut self, source: &[u8]) -> Result<Chunk, CompileError> {
        self.limit_memory();
        let chunk = self.lua.load(source).set_name(SCRIPT_NAME);
        let chunk = chunk.set_mode(ChunkMode::Text);
        let function = chunk
            .set_environment(self.environment.clone())
            .into_function()
            .and_then(|function| self.lua.create_registry_value(function));
        self.tidy_up();
        match function {
            Ok(function) => Ok(Chunk {
                function: Some(function),
                source: source.into(),
            }),
            Err(mlua::Error::SyntaxError { message, .. }) => Err(CompileError::syntax(&message)),
            Err(error) => Err(CompileError::syntax(&error.to_string())),
        }
    }

    fn run(
        &mut self,
        script: &RegistryKey,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        let (lua, watch) = (&self.lua, &self.watch);
        watch.start(lua.used_memory());
        let mut reply = Vec::new();
        let result = lua.scope(|scope| {
            let call = scope.create_function_mut(|lua, words: MultiValue| {
                convert::call(lua, &words, watch, caller, &mut reply)
            })?;
            let keys = convert::list(lua, keys)?;
            let argv = convert::list(lua, args)?;
            let script = lua.registry_value::<Function>(script)?;
            self.limit_memory();
            self.run
                .call::<(bool, mlua::Value)>((script, call, keys, argv))
        });
        let result = match result {
            Ok((true, value)) => convert::reply(&value, watch),
            Ok((false, error)) => Err(convert::failure(&error, watch)),
            Err(error) => Err(convert::failure(
                &mlua::Value::Error(Box::new(error)),
                watch,
            )),
        };
        let allocated = lua.used_memory().saturating_sub(watch.base_bytes());
        caller.note_steps(watch.instructions() + allocated / STEP_BYTES);
        if watch.is_narrow() {
            // Nothing but memory is short here, and the limit is lifted.
            let _ = set_hook(lua, watch, WINDOW);
        }
        self.tidy_up();
        result
    }

    /// Limits what a script may allocate beyond what is there.
    fn limit_memory(&self) {
        let limit = self.lua.used_memory() + self.watch.bounds().memory_max;
        // Only a machine inside another program has no limit to set.
        let _ = self.lua.set_memory_limit(limit);
    }

    /// Lifts the limit and collects garbage once there is enough of it.
    fn tidy_up(&mut self) {
        let _ = self.lua.set_memory_limit(0);
        let used = self.lua.used_memory();
        if used > self.settled_bytes + self.settled_bytes / 2 + GARBAGE_BYTES_MAX {
            self.lua.expire_registry_values();
            // A finaliser could fail, and scripts have none.
            let _ = self.lua.gc_collect();
            if self.watch.bounds().signal.is_none() {
                self.lua.gc_stop();
            }
            self.settled_bytes = self.lua.used_memory();
        }
    }
}

fn set_hook(lua: &Lua, watch: &Arc<Watch>, window: u32) -> mlua::Result<()> {
    let watch = Arc::clone(watch);
    let triggers = HookTriggers::new().every_nth_instruction(window);
    lua.set_global_hook(triggers, move |lua, _| {
        let allocated = lua.used_memory().saturating_sub(watch.base_bytes());
        if allocated > NARROW_BYTES && watch.narrow() {
            set_hook(lua, &watch, WINDOW_NARROW)?;
        }
        watch.spend(usize::try_from(window).unwrap_or(usize::MAX))?;
        Ok(VmState::Continue)
    })
}

const SANDBOX: &str = include_str!("machine/sandbox.lua");

const NO_LUA: &str = "Lua cannot start, probably for lack of memory";

/// The longest script. Lock scripts are below 2 KiB.
const SOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A longer one takes milliseconds to compile.
const SHORT_SOURCE_BYTES_MAX: usize = 64 * 1024;

/// Instructions between two looks at the limits: a microsecond or two, as long as strings and tables
/// are short. Most lock scripts end before.
const WINDOW: u32 = 300;

/// The same once a script has allocated [`NARROW_BYTES`]: comparing or converting a string then
/// takes up to a millisecond.
const WINDOW_NARROW: u32 = 10;
const NARROW_BYTES: usize = 64 * 1024;

/// Garbage that waits to be collected: that of some thousand runs of a lock script.
const GARBAGE_BYTES_MAX: usize = 1024 * 1024;

/// The bytes that a script allocates in the time of an instruction, roughly.
const STEP_BYTES: usize = 64;
