//! Runs the Lua scripts of lock libraries: what they do natively, and the rest in Lua.
//!
//! ```text
//!  SHA1 --known--> behaviour ----------------------------+--> native: written in Rust
//!  text --lexer, parser--> tree --symbolic--> shape -----+
//!    +---------------------------------------- no shape -----> machine: Lua 5.1 (feature `compat`)
//! ```
//!
//! This module knows no keyspace: commands go through a [`Caller`].

mod answer;
mod ast;
mod behaviours;
mod decode;
mod error;
mod known;
mod lexer;
#[cfg_attr(not(feature = "compat"), path = "no_machine.rs")]
mod machine;
mod native;
mod parser;
#[cfg(feature = "compat")]
mod redisson;
mod shape;
mod shebang;
mod steps;
mod symbolic;

pub(crate) use answer::{Answer, Unit, Write};
pub(crate) use error::{CompileError, ScriptError};
pub(crate) use known::all_known;
pub(crate) use machine::Machine;
#[cfg(feature = "compat")]
pub(crate) use machine::{Event, Running, Signal};
pub(crate) use shape::Shape;
pub(crate) use shebang::Flags;

use locknode_resp::Protocol;

use behaviours::Known;
use machine::Chunk;
use native::Behaviour;

/// A compiled script: immutable, and usable from any thread.
#[derive(Debug)]
pub(crate) struct Program {
    /// Those of the script's `#!` line.
    pub(crate) flags: Flags,
    how: How,
}

/// Starts a thread; returns `false` when no more can be started.
pub type StartThread = fn(Box<dyn FnOnce() + Send>) -> bool;

/// How a script runs.
#[derive(Debug)]
enum How {
    Native(Behaviour),
    Lua(Chunk),
}

impl Program {
    /// Compiles a script.
    ///
    /// # Errors
    /// Returns a syntax error or a bad `#!` line with Redis's text.
    pub(crate) fn compile(source: &[u8], machine: &Machine) -> Result<Self, CompileError> {
        let (flags, body) = shebang::split(source)?;
        let how = match shape::recognise(body) {
            Some(shape) => How::Native(Behaviour::Shape(shape)),
            None => How::Lua(machine.compile(body)?),
        };
        Ok(Self { flags, how })
    }

    /// Returns the program of a known script.
    pub(crate) fn known(known: &Known) -> Self {
        Self {
            flags: Flags::default(),
            how: How::Native(known.behaviour),
        }
    }

    /// Returns whether it runs without Lua, in microseconds.
    pub(crate) const fn is_native(&self) -> bool {
        matches!(self.how, How::Native(_))
    }

    /// Returns the operation on the table that the script is, if it is one.
    #[inline]
    #[must_use]
    pub(crate) fn shape(&self) -> Option<&Shape> {
        match &self.how {
            How::Native(Behaviour::Shape(shape)) if !self.flags.no_writes => Some(shape),
            _ => None,
        }
    }

    /// Runs the script.
    ///
    /// # Errors
    /// The script raised an error or was stopped; see [`ScriptError`].
    pub(crate) fn run(
        &self,
        machine: &Machine,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        match &self.how {
            How::Native(behaviour) => behaviour.run(keys, args, caller),
            How::Lua(chunk) => machine.run(chunk, keys, args, caller),
        }
    }

    /// Starts the script on a thread of its own, if it runs in Lua and there is one.
    #[cfg(feature = "compat")]
    pub(crate) fn start(
        &self,
        machine: &Machine,
        keys: &[&[u8]],
        args: &[&[u8]],
        time_max: Option<std::time::Duration>,
        wake: Box<dyn Fn() + Send>,
    ) -> Option<Running> {
        match &self.how {
            How::Native(_) => None,
            How::Lua(chunk) => machine.start(chunk, keys, args, time_max, wake),
        }
    }
}

/// The value that a script returned, by Redis's rules for Lua values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// The null reply: nil, false, and anything without a reply of its own.
    Nil,
    /// true and false after `redis.setresp(3)`.
    Boolean(bool),
    /// A number truncated to an integer, or true as 1.
    Integer(i64),
    /// A table with `double`.
    Double(f64),
    /// A table with `big_number`, on one line.
    BigNumber(Vec<u8>),
    /// A table with `verbatim_string`: its format and its text.
    Verbatim([u8; 3], Vec<u8>),
    /// A string.
    Bulk(Vec<u8>),
    /// A table with `ok`, on one line.
    Status(Vec<u8>),
    /// A table with `err`, on one line, without the leading `-`.
    Error(Vec<u8>),
    /// A table with `map`.
    Map(Vec<(Self, Self)>),
    /// A table with `set`.
    Set(Vec<Self>),
    /// Any other table, up to its first nil.
    Array(Vec<Self>),
}

/// Runs the commands of a script.
pub(crate) trait Caller {
    /// Runs one command and appends its reply to `reply`, in a protocol.
    ///
    /// `args` begins with the command's name in any case. Redis words some errors differently
    /// inside scripts, such as that of an unknown command.
    fn call(&mut self, args: &[&[u8]], protocol: Protocol, reply: &mut Vec<u8>);

    /// Called when the script ends, with the instructions that it took, roughly, so that long
    /// scripts yield to other connections.
    fn note_steps(&mut self, steps: usize) {
        let _ = steps;
    }
}

#[cfg(test)]
#[cfg(feature = "compat")]
mod tests;
