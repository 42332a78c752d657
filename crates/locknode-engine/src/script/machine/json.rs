//! Redis's library `cjson`: JSON with the habits and the errors of lua-cjson.

use mlua::{Error, Lua, LuaString, MultiValue, Table, Value};

use super::json_reader::{DEPTH_MAX, Reader};
use super::watch::Watch;

/// `cjson.encode(value)`.
pub(super) fn encode(lua: &Lua, watch: &Watch, arguments: MultiValue) -> mlua::Result<LuaString> {
    let mut writer = Writer {
        lua,
        watch,
        out: Vec::new(),
    };
    writer.value(only(&arguments, "encode")?, 0)?;
    lua.create_string(writer.out)
}

/// `cjson.decode(text)`.
pub(super) fn decode(lua: &Lua, watch: &Watch, arguments: MultiValue) -> mlua::Result<Value> {
    let argument = only(&arguments, "decode")?;
    let Some(text) = lua.coerce_string(argument.clone())? else {
        let kind = argument.type_name();
        let text = format!("bad argument #1 to 'decode' (string expected, got {kind})");
        return Err(Error::runtime(text));
    };
    let text = text.as_bytes();
    watch.spend(text.len() / BYTES_PER_STEP)?;
    Reader::new(lua, &text).document()
}

fn only<'a>(arguments: &'a MultiValue, name: &str) -> mlua::Result<&'a Value> {
    let argument = arguments.front().filter(|_| arguments.len() == 1);
    argument
        .ok_or_else(|| Error::runtime(format!("bad argument #1 to '{name}' (expected 1 argument)")))
}

struct Writer<'a> {
    lua: &'a Lua,
    watch: &'a Watch,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        self.watch.spend(1)?;
        match value {
            Value::Nil | Value::LightUserData(_) => self.out.extend(b"null"),
            Value::Boolean(is_true) => self.out.extend(is_true.to_string().bytes()),
            Value::Integer(_) => self.number(value)?,
            Value::Number(number) if number.is_finite() => self.number(value)?,
            Value::Number(_) => return Err(refused("number", "must not be NaN or Inf")),
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Table(table) => self.table(table, depth + 1)?,
            other => return Err(refused(other.type_name(), "type not supported")),
        }
        Ok(())
    }

    /// Lua's own form of numbers has the precision of lua-cjson's.
    fn number(&mut self, number: &Value) -> mlua::Result<()> {
        if let Some(text) = self.lua.coerce_string(number.clone())? {
            self.out.extend_from_slice(&text.as_bytes());
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' | b'\\' | b'/' => self.out.extend([b'\\', *byte]),
                8 => self.out.extend(b"\\b"),
                12 => self.out.extend(b"\\f"),
                b'\n' => self.out.extend(b"\\n"),
                b'\r' => self.out.extend(b"\\r"),
                b'\t' => self.out.extend(b"\\t"),
                0..32 | 127 => self.out.extend(format!("\\u{byte:04x}").bytes()),
                _ => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if depth > DEPTH_MAX {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(Error::runtime(text));
        }
        match array_length(table)? {
            Some(length) => {
                self.out.push(b'[');
                for index in 1..=length {
                    if index > 1 {
                        self.out.push(b',');
                    }
                    self.value(&table.raw_get(index)?, depth)?;
                }
                self.out.push(b']');
            }
            None => {
                self.out.push(b'{');
                let mut is_first = true;
                for pair in table.pairs::<Value, Value>() {
                    let (key, value) = pair?;
                    if !std::mem::take(&mut is_first) {
                        self.out.push(b',');
                    }
                    match &key {
                        Value::String(text) => self.text(&text.as_bytes()),
                        Value::Integer(_) | Value::Number(_) => {
                            self.out.push(b'"');
                            self.number(&key)?;
                            self.out.push(b'"');
                        }
                        other => {
                            let what = "table key must be a number or string";
                            return Err(refused(other.type_name(), what));
                        }
                    }
                    self.out.push(b':');
                    self.value(&value, depth)?;
                }
                self.out.push(b'}');
            }
        }
        Ok(())
    }
}

/// Returns the length of a table that is an array; `None` for an object, such as an empty table.
fn array_length(table: &Table) -> mlua::Result<Option<i64>> {
    let (mut max, mut count) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        let (Value::Integer(index @ 1..), _) = pair? else {
            return Ok(None);
        };
        (max, count) = (index.max(max), count + 1);
    }
    if max > count * SPARSE_RATIO && max > SPARSE_MIN {
        return Err(refused("table", "excessively sparse array"));
    }
    Ok((max > 0).then_some(max))
}

fn refused(kind: &str, why: &str) -> Error {
    Error::runtime(format!("Cannot serialise {kind}: {why}"))
}

const SPARSE_RATIO: i64 = 2;
const SPARSE_MIN: i64 = 10;

/// The bytes that are read in the time of an instruction.
const BYTES_PER_STEP: usize = 4;
