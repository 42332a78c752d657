//! Runs scripts that are not native in Lua 5.1, in a sandbox with bounds.
//!
//! ```text
//!  text --compile--> Chunk       run: KEYS, ARGV --> sandbox.lua --> script --> redis.call --> Caller
//!                                                      |  every 100 instructions
//!                                                      +--> Watch: time, or instructions
//! ```
//!
//! Each thread has a Lua, which starts with its first script and serves all nodes: a script runs alone
//! anyway, and leaves nothing behind but garbage and its compiled text. Lua's garbage collector never
//! runs within a script, so that what a script allocates is bounded together with what it uses.
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
mod words;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use foldhash::quality::FixedState;
use hashbrown::HashMap;
use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, Lua, LuaOptions, MultiValue, RegistryKey, StdLib, Table, VmState,
};
use scoped_tls_hkt::scoped_thread_local;

use crate::script::error::{CompileError, ScriptError};
use crate::script::{Caller, StartThread, Value};

use library::SCRIPT_NAME;
use watch::{Bounds, Random, Watch};
use words::Words;

pub(super) use convert::integer_of;
pub(super) use json_reader::number;
pub(crate) use running::{Event, Running};
pub(crate) use watch::Signal;

thread_local! {
    /// The Lua of this thread, without any state of a script or a node.
    static SANDBOX: RefCell<Option<Sandbox>> = const { RefCell::new(None) };
}

/// How the scripts of one node run in Lua.
#[derive(Debug)]
pub(crate) struct Machine {
    stopwatch: Option<fn() -> Duration>,
    start_thread: Option<StartThread>,
    random: Arc<Random>,
}

/// A script without errors of syntax. A short one is compiled.
#[derive(Debug)]
pub(super) struct Chunk {
    source: Arc<[u8]>,
}

#[derive(Debug)]
struct Sandbox {
    lua: Lua,
    environment: Table,
    run: Function,
    watch: Rc<Watch>,
    /// The compiled scripts, by the address of their text, which no other text has meanwhile. Each has
    /// a key, because handles have places on a stack of Lua's, which has eight thousand.
    functions: HashMap<usize, (Weak<[u8]>, RegistryKey), FixedState>,
    calls: Rc<RefCell<Calls>>,
    /// The memory in use when garbage was last collected.
    settled_bytes: usize,
}

/// What `redis.call` keeps from one command to the next.
#[derive(Debug)]
struct Calls {
    words: Words,
    /// A reply of a command, until it is converted.
    reply: Vec<u8>,
}

scoped_thread_local! {
    /// Who runs the commands of the script that this thread runs: `redis.call` is made once for all
    /// scripts, and borrows nothing.
    static mut CALLER: for<'a> &'a mut (dyn Caller + 'a)
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
        }
    }

    /// Uses the Lua of this thread; `None` when it cannot start.
    fn with<T>(&self, run: impl FnOnce(&mut Sandbox) -> T) -> Option<T> {
        let with = |place: &RefCell<Option<Sandbox>>| {
            let mut place = place.try_borrow_mut().ok()?;
            if place.is_none() {
                *place = Sandbox::new(None).ok();
            }
            let sandbox = place.as_mut()?;
            let bounds = Bounds::first(self.stopwatch, self.can_go_on());
            sandbox.watch.set_bounds(bounds, &self.random);
            Some(run(sandbox))
        };
        SANDBOX.try_with(with).ok().flatten()
    }

    /// Returns whether scripts that take long go on elsewhere.
    const fn can_go_on(&self) -> bool {
        self.stopwatch.is_some() && self.start_thread.is_some()
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
        let bytes_max = if self.can_go_on() {
            SOURCE_BYTES_MAX
        } else {
            SHORT_SOURCE_BYTES_MAX
        };
        if source.len() > bytes_max {
            let what = format!("a script of more than {bytes_max} bytes");
            return Err(CompileError::unsupported(&what));
        }
        let source = Arc::from(source);
        if !is_long(&source) {
            let compiled = self.with(|sandbox| sandbox.compile(&source));
            compiled.ok_or_else(|| CompileError::unsupported(NO_LUA))??;
        }
        Ok(Chunk { source })
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
        if is_long(&chunk.source) {
            return Err(ScriptError::slow());
        }
        let result = self.with(|sandbox| sandbox.run(&chunk.source, keys, args, caller));
        result.unwrap_or_else(|| Err(ScriptError::stopped(1, NO_LUA)))
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
        let bounds = Bounds::suspended(self.stopwatch, time_max);
        let random = Arc::clone(&self.random);
        Running::start(self.start_thread?, script, bounds, random, wake)
    }
}

/// Returns whether compiling a script takes milliseconds: it is then compiled where it runs.
const fn is_long(source: &[u8]) -> bool {
    source.len() > SHORT_SOURCE_BYTES_MAX
}

impl Sandbox {
    fn new(signal: Option<Arc<Signal>>) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(libraries, options)?;
        let watch = Rc::new(Watch::new(signal));
        let host = library::host(&lua, &watch)?;
        let calls = Rc::new(RefCell::new(Calls {
            words: Words::new(!watch.is_suspended()),
            reply: Vec::new(),
        }));
        host.set("call", call_function(&lua, &watch, &calls)?)?;
        let sandbox = lua.load(SANDBOX_TEXT).set_name("=sandbox");
        let (environment, run) = sandbox.call::<(Table, Function)>(host)?;
        if !watch.is_suspended() {
            lua.gc_stop();
        }
        let settled_bytes = lua.used_memory();
        let sandbox = Self {
            lua,
            environment,
            run,
            watch,
            functions: HashMap::default(),
            calls,
            settled_bytes,
        };
        set_hook(&sandbox.lua, &sandbox.watch, WINDOW)?;
        Ok(sandbox)
    }

    /// Compiles a script, unless it has been.
    fn compile(&mut self, source: &Arc<[u8]>) -> Result<(), CompileError> {
        let address = source.as_ptr().addr();
        if self.functions.contains_key(&address) {
            return Ok(());
        }
        limit_memory(&self.lua, &self.watch);
        let chunk = self.lua.load(&**source).set_name(SCRIPT_NAME);
        let chunk = chunk.set_mode(ChunkMode::Text);
        let function = chunk
            .set_environment(self.environment.clone())
            .into_function()
            .and_then(|function| self.lua.create_registry_value(function));
        self.tidy_up();
        match function {
            Ok(function) => {
                let compiled = (Arc::downgrade(source), function);
                self.functions.insert(address, compiled);
                Ok(())
            }
            Err(mlua::Error::SyntaxError { message, .. }) => Err(CompileError::syntax(&message)),
            Err(error) => Err(CompileError::syntax(&error.to_string())),
        }
    }

    fn run(
        &mut self,
        source: &Arc<[u8]>,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        self.compile(source).map_err(ScriptError::not_compiled)?;
        let compiled = self.functions.get(&source.as_ptr().addr());
        let (_, script) = compiled.ok_or_else(|| ScriptError::stopped(1, NO_LUA))?;
        let (lua, watch) = (&self.lua, &self.watch);
        self.calls.borrow_mut().words.make_room();
        let used = lua.used_memory();
        watch.start(used);
        watch.note_memory(used);
        let run = || {
            let keys = convert::list(lua, keys)?;
            let argv = convert::list(lua, args)?;
            limit_memory(lua, watch);
            self.run.call::<(bool, mlua::Value)>((script, keys, argv))
        };
        let result = CALLER.set(&mut *caller, run);
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

    /// Lifts the limit and collects garbage once there is enough of it.
    fn tidy_up(&mut self) {
        let _ = self.lua.set_memory_limit(0);
        let used = self.lua.used_memory();
        if used > self.settled_bytes + self.settled_bytes / 2 + GARBAGE_BYTES_MAX {
            // Those that no node knows any more.
            self.functions
                .retain(|_, (source, _)| source.strong_count() > 0);
            self.lua.expire_registry_values();
            self.calls.borrow_mut().words.forget();
            // A finaliser could fail, and scripts have none.
            let _ = self.lua.gc_collect();
            if !self.watch.is_suspended() {
                self.lua.gc_stop();
            }
            self.settled_bytes = self.lua.used_memory();
        }
    }
}

/// `redis.call`.
fn call_function(
    lua: &Lua,
    watch: &Rc<Watch>,
    calls: &Rc<RefCell<Calls>>,
) -> mlua::Result<Function> {
    let (watch, calls) = (Rc::clone(watch), Rc::clone(calls));
    lua.create_function(move |lua, words: MultiValue| {
        let calls = calls.try_borrow_mut();
        let Calls {
            words: known,
            reply,
        } = &mut *calls.map_err(|_| mlua::Error::RecursiveMutCallback)?;
        CALLER.with(|caller| convert::call(lua, &words, known, &watch, caller, reply))
    })
}

/// Limits what a script may allocate beyond what is there.
fn limit_memory(lua: &Lua, watch: &Watch) {
    let limit = lua.used_memory() + watch.bounds().memory_max;
    // Only a machine inside another program has no limit to set.
    let _ = lua.set_memory_limit(limit);
}

fn set_hook(lua: &Lua, watch: &Rc<Watch>, window: u32) -> mlua::Result<()> {
    let watch = Rc::clone(watch);
    let triggers = HookTriggers::new().every_nth_instruction(window);
    lua.set_global_hook(triggers, move |lua, _| {
        let allocated = watch.note_memory(lua.used_memory());
        if allocated > NARROW_BYTES && watch.narrow() {
            set_hook(lua, &watch, WINDOW_NARROW)?;
        }
        watch.spend(usize::try_from(window).unwrap_or(usize::MAX))?;
        Ok(VmState::Continue)
    })
}

const SANDBOX_TEXT: &str = include_str!("machine/sandbox.lua");

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
