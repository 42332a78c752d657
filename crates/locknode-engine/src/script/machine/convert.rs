//! Redis's conversions between Lua values, commands and replies.

use std::fmt;

use mlua::{BorrowedBytes, Lua, MultiValue, Table, Value as LuaValue};
use smallvec::SmallVec;

use super::watch::{Stopped, Watch};
use crate::script::decode;
use crate::script::error::{ScriptError, one_line};
use crate::script::native::NOT_A_WORD;
use crate::script::{Caller, Value};

/// An error that a script may catch: the text of an error reply.
#[derive(Debug)]
pub(super) struct Raised(Vec<u8>);

impl Raised {
    pub(super) fn reply(text: impl Into<Vec<u8>>) -> mlua::Error {
        mlua::Error::external(Self(text.into()))
    }

    /// The table that a script catches.
    pub(super) fn table(&self, lua: &Lua) -> mlua::Result<LuaValue> {
        single(lua, "err", &self.0)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl std::error::Error for Raised {}

/// A word of a command.
enum Word {
    Text(BorrowedBytes),
    Number(String),
}

/// `redis.call`: runs a command.
pub(super) fn call(
    lua: &Lua,
    words: &MultiValue,
    watch: &Watch,
    caller: &mut dyn Caller,
    reply: &mut Vec<u8>,
) -> mlua::Result<LuaValue> {
    if words.is_empty() {
        return Err(Raised::reply(NO_WORDS));
    }
    let mut texts = SmallVec::<[Word; 8]>::new();
    for word in words {
        texts.push(match word {
            LuaValue::String(text) => Word::Text(text.as_bytes()),
            LuaValue::Integer(number) => Word::Number(number.to_string()),
            LuaValue::Number(number) => Word::Number(argument(*number)),
            _ => {
                return Err(Raised::reply(NOT_A_WORD));
            }
        });
    }
    let slices: SmallVec<[&[u8]; 8]> = texts.iter().map(Word::bytes).collect();
    let sent: usize = slices.iter().map(|slice| slice.len()).sum();
    watch.spend(CALL_STEPS + slices.len() * ARGUMENT_STEPS)?;
    reply.clear();
    caller.call(&slices, reply);
    watch.spend((sent + reply.len()) / STEP_BYTES)?;
    match decode::value(reply) {
        Value::Error(text) => Err(Raised::reply(text)),
        value => to_lua(lua, &value),
    }
}

impl Word {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.as_bytes(),
        }
    }
}

/// A number that is not whole, as Redis passes it to a command: no command takes one, and the text
/// is at most shown.
fn argument(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    number.to_string()
}

/// KEYS or ARGV.
pub(super) fn list(lua: &Lua, texts: &[&[u8]]) -> mlua::Result<Table> {
    let list = lua.create_table_with_capacity(texts.len(), 0)?;
    for text in texts {
        list.raw_push(lua.create_string(text)?)?;
    }
    Ok(list)
}

fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Nil => LuaValue::Boolean(false),
        Value::Integer(number) => LuaValue::Integer(*number),
        Value::Bulk(text) => LuaValue::String(lua.create_string(text)?),
        Value::Status(text) => single(lua, "ok", text)?,
        Value::Error(text) => single(lua, "err", text)?,
        Value::Array(items) => {
            let list = lua.create_table_with_capacity(items.len(), 0)?;
            for item in items {
                list.raw_push(to_lua(lua, item)?)?;
            }
            LuaValue::Table(list)
        }
    })
}

fn single(lua: &Lua, field: &str, text: &[u8]) -> mlua::Result<LuaValue> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(field, lua.create_string(text)?)?;
    Ok(LuaValue::Table(table))
}

/// Converts what a script returned.
///
/// # Errors
/// The reply would be too large or too deep.
pub(super) fn reply(value: &LuaValue, line: u32) -> Result<Value, ScriptError> {
    let mut left = REPLY_BYTES_MAX;
    from_lua(value, line, REPLY_DEPTH_MAX, &mut left)
}

fn from_lua(
    value: &LuaValue,
    line: u32,
    depth: usize,
    left: &mut usize,
) -> Result<Value, ScriptError> {
    let cost = match value {
        LuaValue::String(text) => text.as_bytes().len() + ELEMENT_BYTES,
        _ => ELEMENT_BYTES,
    };
    let too_large = || ScriptError::stopped(line, "its reply is too large");
    *left = left.checked_sub(cost).ok_or_else(too_large)?;
    Ok(match value {
        LuaValue::Boolean(true) => Value::Integer(1),
        LuaValue::Integer(number) => Value::Integer(*number),
        LuaValue::Number(number) => Value::Integer(integer(*number)),
        LuaValue::String(text) => Value::Bulk(text.as_bytes().to_vec()),
        LuaValue::Table(table) => {
            if let Some(text) = field(table, "err") {
                return Ok(Value::Error(one_line(&text)));
            }
            if let Some(text) = field(table, "ok") {
                return Ok(Value::Status(one_line(&text)));
            }
            let too_deep = || ScriptError::new(b"ERR reached lua stack limit".to_vec(), line);
            let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
            let mut items = Vec::new();
            for index in 1.. {
                match table.raw_get(index) {
                    Ok(LuaValue::Nil) | Err(_) => break,
                    Ok(item) => items.push(from_lua(&item, line, depth, left)?),
                }
            }
            Value::Array(items)
        }
        _ => Value::Nil,
    })
}

fn field(table: &Table, name: &str) -> Option<Vec<u8>> {
    match table.raw_get(name) {
        Ok(LuaValue::String(text)) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// Truncates a number; out-of-range values become the least integer, as on x86.
fn integer(number: f64) -> i64 {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if (-TWO_TO_63..TWO_TO_63).contains(&number) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "in range; the cut is what is wanted"
        )]
        return number as i64;
    }
    i64::MIN
}

/// The text of an error of a library function.
pub(super) fn text_of(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => text_of(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns whether Lua refused an allocation of Rust.
pub(super) fn is_out_of_memory(error: &mlua::Error) -> bool {
    match error {
        mlua::Error::CallbackError { cause, .. } => is_out_of_memory(cause),
        other => matches!(other, mlua::Error::MemoryError(_)),
    }
}

/// Converts what a script raised.
pub(super) fn failure(error: &LuaValue, watch: &Watch) -> ScriptError {
    let line = watch.line();
    let text = match error {
        LuaValue::Error(error) => {
            if let Some(Raised(text)) = error.downcast_ref() {
                return ScriptError::new(text.clone(), line);
            }
            if let Some(stopped) = error.downcast_ref::<Stopped>() {
                return stopped.end(line);
            }
            if is_out_of_memory(error) {
                return watch.out_of_memory().end(line);
            }
            return ScriptError::lua(line, &text_of(error));
        }
        LuaValue::String(text) if *text == OUT_OF_MEMORY => {
            return watch.out_of_memory().end(line);
        }
        LuaValue::String(text) => text.as_bytes().to_vec(),
        LuaValue::Table(table) => {
            let text = field(table, "err");
            return ScriptError::new(text.unwrap_or_else(|| UNKNOWN.into()), line);
        }
        other => other.type_name().into(),
    };
    ScriptError::new([b"ERR ".as_slice(), &text].concat(), line)
}

impl Stopped {
    fn end(self, line: u32) -> ScriptError {
        match self {
            Self::Slow => ScriptError::slow(),
            Self::Killed => ScriptError::killed(line),
            _ => ScriptError::stopped(line, &self.to_string()),
        }
    }
}

const NO_WORDS: &str = "ERR Please specify at least one argument for this redis lib call";

/// Lua's text when an allocation is refused.
const OUT_OF_MEMORY: &str = "not enough memory";

const UNKNOWN: &str = "ERR unknown error";

/// How deep a reply may nest. Lock scripts return flat lists; the limit keeps a table that contains
/// itself from overflowing the stack.
const REPLY_DEPTH_MAX: usize = 64;

/// The largest reply, and the least cost of one element, in the bytes and in the time that it
/// takes.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
const ELEMENT_BYTES: usize = 64;

/// Instructions' worth of a command, of each of its arguments, which may be a key, and the bytes
/// that are copied in the time of one.
const CALL_STEPS: usize = 40;
const ARGUMENT_STEPS: usize = 20;
const STEP_BYTES: usize = 64;
