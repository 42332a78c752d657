//! Redis's conversions between Lua values, commands and replies.

use std::fmt;

use locknode_resp::{Protocol, double_text};
use mlua::{Either, IntoLua, Lua, LuaString, MultiValue, Table, Value as LuaValue};
use smallvec::SmallVec;

use super::watch::{Stopped, Watch};
use super::words::{Word, Words};
use crate::script::decode;
use crate::script::error::{ScriptError, error_line, one_line, until_zero};
use crate::script::native::NOT_A_WORD;
use crate::script::{Caller, Value};

/// An error that a script may catch: the text of an error reply.
#[derive(Debug)]
pub(super) struct Raised {
    text: Vec<u8>,
    /// Whether a command has replied with it.
    is_reply: bool,
}

impl Raised {
    fn reply(text: Vec<u8>) -> mlua::Error {
        let is_reply = true;
        mlua::Error::external(Self { text, is_reply })
    }

    pub(super) fn refusal(text: &str) -> mlua::Error {
        let (text, is_reply) = (text.into(), false);
        mlua::Error::external(Self { text, is_reply })
    }

    /// The table that a script catches.
    pub(super) fn table(&self, lua: &Lua) -> mlua::Result<LuaValue> {
        let table = single(lua, "err", &self.text)?;
        if self.is_reply {
            table.raw_set("ignore_error_stats_update", true)?;
        }
        Ok(LuaValue::Table(table))
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.text))
    }
}

impl std::error::Error for Raised {}

/// An argument of a command.
enum Argument {
    Text(Word),
    Number(String),
}

/// `redis.call`: runs a command.
pub(super) fn call(
    lua: &Lua,
    words: &MultiValue,
    known: &mut Words,
    watch: &Watch,
    caller: &mut dyn Caller,
    reply: &mut Vec<u8>,
) -> mlua::Result<LuaValue> {
    if words.is_empty() {
        return Err(Raised::refusal(NO_WORDS));
    }
    let mut arguments = SmallVec::<[Argument; 8]>::new();
    for word in words {
        arguments.push(match word {
            LuaValue::String(text) => Argument::Text(known.find(text)),
            LuaValue::Integer(number) => Argument::Number(number.to_string()),
            LuaValue::Number(number) => Argument::Number(argument(*number)),
            _ => {
                return Err(Raised::refusal(NOT_A_WORD));
            }
        });
    }
    let (mut slices, mut sent) = (SmallVec::<[&[u8]; 8]>::new(), 0);
    for argument in &arguments {
        let slice = match argument {
            Argument::Text(text) => text,
            Argument::Number(number) => number.as_bytes(),
        };
        sent += slice.len();
        slices.push(slice);
    }
    if sent > SENT_MAX {
        return Err(Raised::refusal(TOO_LONG));
    }
    watch.spend(CALL_STEPS + slices.len() * ARGUMENT_STEPS)?;
    reply.clear();
    let protocol = watch.protocol();
    caller.call(&slices, protocol, reply);
    watch.spend((sent + reply.len()) / STEP_BYTES)?;
    match decode::value(reply) {
        Value::Error(text) => Err(Raised::reply(text)),
        Value::Integer(number) => Ok(LuaValue::Integer(number)),
        value => {
            // Within a limit, each step of the conversion is a protected call. A reply is bounded anyway,
            // and the next allocation of the script finds the limit again.
            let limit = lua.set_memory_limit(0);
            let value = to_lua(lua, &value, protocol);
            lua.set_memory_limit(limit?)?;
            value
        }
    }
}

/// A number as Redis passes it to a command.
fn argument(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let sign = if number.is_nan() && number.is_sign_negative() {
        "-"
    } else {
        ""
    };
    sign.to_owned() + &double_text(number)
}

/// KEYS or ARGV.
pub(super) fn list(lua: &Lua, texts: &[&[u8]]) -> mlua::Result<Table> {
    lua.create_sequence_from(texts.iter().map(|text| string(text)))
}

/// A string on its way to Lua: what is UTF-8 needs no handle there.
fn string(text: &[u8]) -> impl IntoLua {
    match str::from_utf8(text) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(LuaString::wrap(text)),
    }
}

fn to_lua(lua: &Lua, value: &Value, protocol: Protocol) -> mlua::Result<LuaValue> {
    let list = |items: &[Value]| {
        let list = lua.create_table_with_capacity(items.len(), 0)?;
        for (index, item) in items.iter().enumerate() {
            list.raw_set(index + 1, to_lua(lua, item, protocol)?)?;
        }
        Ok::<_, mlua::Error>(list)
    };
    let wrap = |field: &str, value: LuaValue| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(field, value)?;
        Ok::<_, mlua::Error>(LuaValue::Table(table))
    };
    Ok(match value {
        Value::Nil if protocol == Protocol::Resp3 => LuaValue::Nil,
        Value::Nil => LuaValue::Boolean(false),
        Value::Boolean(is_true) => LuaValue::Boolean(*is_true),
        Value::Integer(number) => LuaValue::Integer(*number),
        Value::Double(number) => wrap("double", LuaValue::Number(*number))?,
        Value::BigNumber(text) => LuaValue::Table(single(lua, "big_number", text)?),
        Value::Verbatim(format, text) => {
            let table = single(lua, "string", text)?;
            table.raw_set("format", lua.create_string(format)?)?;
            wrap("verbatim_string", LuaValue::Table(table))?
        }
        Value::Bulk(text) => LuaValue::String(lua.create_string(text)?),
        Value::Status(text) => LuaValue::Table(single(lua, "ok", text)?),
        Value::Error(text) => LuaValue::Table(single(lua, "err", text)?),
        Value::Map(pairs) => {
            let table = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                table.raw_set(to_lua(lua, key, protocol)?, to_lua(lua, value, protocol)?)?;
            }
            wrap("map", LuaValue::Table(table))?
        }
        Value::Set(items) => {
            let table = lua.create_table_with_capacity(0, items.len())?;
            for item in items {
                table.raw_set(to_lua(lua, item, protocol)?, true)?;
            }
            wrap("set", LuaValue::Table(table))?
        }
        Value::Array(items) => LuaValue::Table(list(items)?),
    })
}

fn single(lua: &Lua, field: &str, text: &[u8]) -> mlua::Result<Table> {
    lua.create_table_from([(field, string(text))])
}

/// What a script returned, on its way to a reply.
struct Reply {
    line: u32,
    protocol: Protocol,
    left: usize,
}

/// Converts what a script returned.
///
/// # Errors
/// The reply would be too large or too deep.
pub(super) fn reply(value: &LuaValue, watch: &Watch) -> Result<Value, ScriptError> {
    let mut reply = Reply {
        line: watch.line(),
        protocol: watch.protocol(),
        left: REPLY_BYTES_MAX,
    };
    reply.of(value, REPLY_DEPTH_MAX)
}

impl Reply {
    fn of(&mut self, value: &LuaValue, depth: usize) -> Result<Value, ScriptError> {
        let cost = match value {
            LuaValue::String(text) => text.as_bytes().len() + ELEMENT_BYTES,
            _ => ELEMENT_BYTES,
        };
        let too_large = || ScriptError::stopped(self.line, "its reply is too large");
        self.left = self.left.checked_sub(cost).ok_or_else(too_large)?;
        Ok(match value {
            LuaValue::Boolean(is_true) if self.protocol == Protocol::Resp3 => {
                Value::Boolean(*is_true)
            }
            LuaValue::Boolean(true) => Value::Integer(1),
            LuaValue::Integer(number) => Value::Integer(*number),
            LuaValue::Number(number) => integer_of(*number),
            LuaValue::String(text) => Value::Bulk(text.as_bytes().to_vec()),
            LuaValue::Table(table) => {
                let error = || ScriptError::new(b"ERR reached lua stack limit".to_vec(), self.line);
                self.table(table, depth.checked_sub(1).ok_or_else(error)?)?
            }
            _ => Value::Nil,
        })
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Value, ScriptError> {
        if let Some(text) = field(table, "err") {
            return Ok(Value::Error(error_line(&text)));
        }
        if let Some(text) = field(table, "ok") {
            return Ok(Value::Status(one_line(until_zero(&text))));
        }
        match table.raw_get("double") {
            Ok(LuaValue::Number(number)) => return Ok(Value::Double(number)),
            #[expect(clippy::cast_precision_loss, reason = "Lua had it as a double")]
            Ok(LuaValue::Integer(number)) => return Ok(Value::Double(number as f64)),
            _ => {}
        }
        if let Ok(LuaValue::Table(map)) = table.raw_get("map") {
            let mut pairs = Vec::new();
            for pair in map.pairs() {
                let (key, value) = pair.unwrap_or((LuaValue::Nil, LuaValue::Nil));
                pairs.push((self.of(&key, depth)?, self.of(&value, depth)?));
            }
            return Ok(Value::Map(pairs));
        }
        if let Ok(LuaValue::Table(set)) = table.raw_get("set") {
            let mut items = Vec::new();
            for pair in set.pairs::<_, LuaValue>() {
                let (item, _) = pair.unwrap_or((LuaValue::Nil, LuaValue::Nil));
                items.push(self.of(&item, depth)?);
            }
            return Ok(Value::Set(items));
        }
        if let Some(text) = field(table, "big_number") {
            return Ok(Value::BigNumber(one_line(&text)));
        }
        if let Ok(LuaValue::Table(verbatim)) = table.raw_get("verbatim_string")
            && let (Some(format), Some(text)) =
                (field(&verbatim, "format"), field(&verbatim, "string"))
            && let Some(format) = format.first_chunk()
        {
            return Ok(Value::Verbatim(*format, text));
        }
        let mut items = Vec::new();
        for index in 1.. {
            match table.raw_get(index) {
                Ok(LuaValue::Nil) | Err(_) => break,
                Ok(item) => items.push(self.of(&item, depth)?),
            }
        }
        Ok(Value::Array(items))
    }
}

fn field(table: &Table, name: &str) -> Option<Vec<u8>> {
    match table.raw_get(name) {
        Ok(LuaValue::String(text)) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// Truncates a number; out-of-range values become the least integer, as on x86.
pub(in crate::script) fn integer_of(number: f64) -> Value {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if (-TWO_TO_63..TWO_TO_63).contains(&number) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "in range; the cut is what is wanted"
        )]
        return Value::Integer(number as i64);
    }
    Value::Integer(i64::MIN)
}

/// The text of an error of a library function.
pub(super) fn text_of(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => text_of(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::BadArgument { pos, cause, .. } => match &**cause {
            mlua::Error::FromLuaConversionError { from, to, .. } => {
                let to = if to.contains("tring") {
                    "string"
                } else {
                    "number"
                };
                format!("bad argument #{pos} to '?' ({to} expected, got {from})")
            }
            other => text_of(other),
        },
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
            if let Some(raised) = error.downcast_ref::<Raised>() {
                return ScriptError::new(raised.text.clone(), line);
            }
            if let Some(stopped) = error.downcast_ref::<Stopped>() {
                return stopped.end(line);
            }
            if is_out_of_memory(error) {
                return watch.out_of_memory().end(line);
            }
            return ScriptError::lua(line, text_of(error).as_bytes());
        }
        LuaValue::String(text) if *text == OUT_OF_MEMORY => {
            return watch.out_of_memory().end(line);
        }
        LuaValue::String(text) => place(&text.as_bytes(), line),
        LuaValue::Table(table) => {
            let text = match table.raw_get("err") {
                Ok(LuaValue::String(text)) => text.as_bytes().to_vec(),
                Ok(LuaValue::Integer(number)) => number.to_string().into_bytes(),
                _ => UNKNOWN.into(),
            };
            return ScriptError::new(text, line);
        }
        LuaValue::Nil => b"nil".into(),
        LuaValue::Boolean(is_true) => is_true.to_string().into_bytes(),
        other => other.type_name().into(),
    };
    ScriptError::new([b"ERR ".as_slice(), &text].concat(), line)
}

/// An error's text with the place in the script instead of that in `sandbox.lua`.
pub(super) fn place(text: &[u8], line: u32) -> Vec<u8> {
    let inside = text.strip_prefix(b"sandbox:");
    match inside.and_then(|text| text.splitn(2, |byte| *byte == b':').nth(1)) {
        Some(what) => [format!("user_script:{line}:").as_bytes(), what].concat(),
        None => text.to_vec(),
    }
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

/// The most bytes of a command's arguments, as many as a script may change: a suspended script's are
/// copied, and many of them may be one string in Lua.
const SENT_MAX: usize = 16 << 20;

const TOO_LONG: &str =
    "UNSUPPORTED a command with more than 16 MiB of arguments in a script: send it in parts";

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
