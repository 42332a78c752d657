//! A build without Lua, which runs the scripts that it has natively and refuses all others.

use std::time::Duration;

use crate::script::error::{CompileError, ScriptError};
use crate::script::{Caller, StartThread, Value};

/// No Lua.
#[derive(Debug)]
pub(crate) struct Machine;

/// A compiled script, which this build never has.
#[derive(Debug)]
pub(super) enum Chunk {}

impl Machine {
    pub(crate) const fn new(_: Option<fn() -> Duration>, _: Option<StartThread>) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the machine with Lua needs itself")]
    pub(super) fn compile(&self, _: &[u8]) -> Result<Chunk, CompileError> {
        let what = "this script, because it was built without Lua (feature `compat`) and runs \
                    the release and extend scripts of lock libraries only";
        Err(CompileError::unsupported(what))
    }

    #[expect(clippy::unused_self, reason = "the machine with Lua needs itself")]
    pub(super) fn run(
        &self,
        chunk: &Chunk,
        _: &[&[u8]],
        _: &[&[u8]],
        _: &mut dyn Caller,
    ) -> Result<Value, ScriptError> {
        match *chunk {}
    }
}
