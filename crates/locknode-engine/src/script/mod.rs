//! Runs the Lua scripts of lock libraries natively, without a Lua machine.
//!
//! ```text
//!  text --lexer--> tokens --parser--> tree --+--> shape: the engine has it as one operation
//!                                            +--> evaluator: a budgeted walk over the tree
//! ```
//!
//! The native subset is what string locks need, with the semantics of Lua 5.1 inside Redis. A
//! script outside it is refused when it is compiled, with an error that names the construct.
//!
//! This module knows no keyspace: commands go through a [`Caller`].

mod answer;
mod ast;
mod behaviours;
mod budget;
mod builtin;
mod command;
mod decode;
mod error;
mod evaluator;
mod expression;
mod iteration;
mod known;
mod lexer;
mod native;
mod number;
mod operator;
mod parser;
mod reply;
mod scope;
mod shape;
mod shebang;
mod stdlib;
mod steps;
mod symbolic;
mod value;

pub(crate) use answer::{Answer, Unit};
pub(crate) use budget::STEPS_MAX;
pub(crate) use error::{CompileError, ScriptError};
pub(crate) use known::all_known;
pub(crate) use shape::Shape;
pub(crate) use shebang::Flags;

use ast::Chunk;
use behaviours::Known;
use native::Behaviour;

/// A compiled script: immutable, and usable from any thread.
#[derive(Debug)]
pub(crate) struct Program {
    flags: Flags,
    how: How,
}

/// How a script runs.
#[derive(Debug)]
enum How {
    Native(Behaviour),
    Evaluated(Chunk),
}

impl Program {
    /// Compiles a script.
    ///
    /// # Errors
    /// Returns a syntax error or a bad `#!` line with Redis's text, and an unsupported construct
    /// with its name and line.
    pub(crate) fn compile(source: &[u8]) -> Result<Self, CompileError> {
        let (flags, body) = shebang::split(source)?;
        let chunk = parser::parse(body, 1)?;
        let shape = shape::recognise(&chunk).filter(|_| !flags.no_writes);
        let how = match shape {
            Some(shape) => How::Native(Behaviour::Shape(shape)),
            None => How::Evaluated(chunk),
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

    /// Returns the operation on the table that the script is, if it is one.
    #[inline]
    #[must_use]
    pub(crate) fn shape(&self) -> Option<Shape> {
        match self.how {
            How::Native(Behaviour::Shape(shape)) => Some(shape),
            _ => None,
        }
    }

    /// Returns the flags of the script's `#!` line.
    #[must_use]
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// Runs the script; write commands are refused if it is run by EVAL_RO or EVALSHA_RO.
    ///
    /// # Errors
    /// The script raised an error or was stopped; see [`ScriptError`].
    pub(crate) fn run(
        &self,
        keys: &[&[u8]],
        args: &[&[u8]],
        is_read_only: bool,
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        let is_read_only = is_read_only || self.flags.no_writes;
        match &self.how {
            How::Native(behaviour) => behaviour.run(keys, args, caller),
            How::Evaluated(chunk) => evaluator::run(chunk, keys, args, is_read_only, caller),
        }
    }
}

/// The value that a script returned, by Redis's rules for Lua values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// The null reply: nil, false, and anything without a reply of its own.
    Nil,
    /// A number truncated to an integer, or true as 1.
    Integer(i64),
    /// A string.
    Bulk(Vec<u8>),
    /// A table with `ok`, on one line.
    Status(Vec<u8>),
    /// A table with `err`, on one line, without the leading `-`.
    Error(Vec<u8>),
    /// Any other table, up to its first nil.
    Array(Vec<Self>),
}

/// Runs the commands of a script.
pub(crate) trait Caller {
    /// Runs one command and appends its RESP2 reply to `reply`.
    ///
    /// `args` begins with the command's name in any case; it has already been checked to be a
    /// command that native scripts may use. An error reply keeps its text, with one exception:
    /// inside scripts Redis words a wrong arity as `-ERR Wrong number of args calling Redis command
    /// from script`.
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>);

    /// Returns how many bytes of values the last command scanned that are not in its reply; the
    /// script pays for them.
    fn scanned_bytes(&mut self) -> usize {
        0
    }

    /// Called when the script ends, with the steps it took, so that a long script yields to other
    /// connections.
    fn note_steps(&mut self, steps: usize) {
        let _ = steps;
    }
}

#[cfg(test)]
mod tests;
