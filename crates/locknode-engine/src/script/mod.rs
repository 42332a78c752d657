//! Runs the Lua scripts of lock libraries natively, without a Lua machine.
//!
//! ```text
//!  text --lexer--> tokens --parser--> tree --+--> canonical text
//!                                            +--> shape: the engine has it as one operation
//!                                            +--> evaluator: a budgeted walk over the tree
//! ```
//!
//! The subset is what string locks need, and for that subset the semantics are those of Lua 5.1 inside
//! Redis. What is outside is refused when the script is compiled, with an error that names it; a
//! [`ScriptFallback`] can then take over. The room knows no keyspace: commands go through a [`Caller`].

mod ast;
mod budget;
mod builtin;
#[cfg(test)]
mod canonical;
mod command;
mod error;
mod evaluator;
mod expression;
mod iteration;
mod known;
mod lexer;
mod library;
mod number;
mod operator;
mod parser;
mod reply;
mod scope;
mod shape;
mod shapes;
mod shebang;
mod trial;
mod value;

use std::fmt::Debug;

pub(crate) use budget::STEPS_MAX;
pub use error::ScriptError;
pub(crate) use error::{CompileError, CompileErrorKind};
pub(crate) use known::all_known;
pub(crate) use shape::{Answer, Shape, Unit};
pub(crate) use shebang::Flags;

use ast::Chunk;

/// A compiled script: immutable, and usable from any thread.
#[derive(Debug)]
pub(crate) struct Program {
    chunk: Chunk,
    flags: Flags,
    shape: Option<Shape>,
}

impl Program {
    /// Compiles a script.
    ///
    /// # Errors
    /// [`CompileErrorKind::Syntax`] or [`CompileErrorKind::Shebang`] with the text that Redis gives;
    /// [`CompileErrorKind::Unsupported`] names the construct that is not native and its line.
    pub(crate) fn compile(source: &[u8]) -> Result<Self, CompileError> {
        let (flags, body) = shebang::split(source)?;
        let chunk = parser::parse(body, 1)?;
        let shape = if flags.no_writes {
            None
        } else {
            shape::recognise(&chunk)
        };
        Ok(Self {
            chunk,
            flags,
            shape,
        })
    }

    /// The operation that the script is, if the engine can run it without the evaluator.
    #[must_use]
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// A text that is the same for scripts which differ only in how they are written. Running a script
    /// does not need it, since shapes are recognised by behaviour; tests show with it that two scripts
    /// which read the same also have the same shape.
    #[cfg(test)]
    pub(crate) fn canonical(&self) -> Vec<u8> {
        canonical::write(&self.chunk)
    }

    /// What the script's `#!` line says.
    #[must_use]
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// Runs the script.
    ///
    /// # Errors
    /// The script raised an error or was stopped; see [`ScriptError`].
    pub(crate) fn run(
        &self,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        evaluator::run(&self.chunk, keys, args, self.flags.no_writes, caller)
    }

    /// Runs the script with write commands refused, as EVAL_RO and EVALSHA_RO do.
    ///
    /// # Errors
    /// As [`Program::run`], and for an attempt to write.
    pub(crate) fn run_read_only(
        &self,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        evaluator::run(&self.chunk, keys, args, true, caller)
    }
}

/// What a script returned, by Redis' rules for Lua values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The null reply: nil, false, and what has no reply of its own.
    Nil,
    /// A number cut to an integer, or true as 1.
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
pub trait Caller {
    /// Runs one command and appends its RESP2 reply to `reply`.
    ///
    /// `args` begins with the command's name in any case; the script room has checked that the command
    /// is one that native scripts may use. An error reply keeps its text, with one exception: Redis
    /// words the check of a command's arity differently inside scripts, as
    /// `-ERR Wrong number of args calling Redis command from script`.
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>);

    /// How many bytes of values the last command went through that are not in its reply; a script pays for them.
    fn looked_through(&mut self) -> usize {
        0
    }

    /// To be called when the script ends, with the steps that it took: what takes long lets other connections go first.
    fn note_steps(&mut self, steps: usize) {
        let _ = steps;
    }
}

/// Compiles what is outside the native subset: the seam for a complete Lua.
pub trait ScriptFallback: Send + Sync + Debug {
    /// Compiles a script.
    ///
    /// # Errors
    /// The text of the error reply, with its code and without the leading `-`.
    fn compile(&self, source: &[u8]) -> Result<Box<dyn FallbackProgram>, String>;
}

/// A script compiled by a [`ScriptFallback`].
pub trait FallbackProgram: Send + Sync + Debug {
    /// Runs the script.
    ///
    /// # Errors
    /// The script raised an error or was stopped; see [`ScriptError`].
    fn run(
        &self,
        keys: &[&[u8]],
        args: &[&[u8]],
        caller: &mut dyn Caller,
    ) -> Result<Value, ScriptError>;
}

#[cfg(test)]
mod tests;
