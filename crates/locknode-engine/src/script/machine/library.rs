//! What `sandbox.lua` gets from Rust.

use std::rc::Rc;

use locknode_resp::Protocol;
use mlua::{FromLuaMulti, Function, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value};

use super::convert::{self, Raised, is_out_of_memory, text_of};
use super::pattern::{self, Capture, PatternError};
use super::watch::{Stopped, Watch};
use super::{bits, json, msgpack, pack};
use crate::version::REDIS_VERSION;

/// Builds the table `host`.
pub(super) fn host(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("caught", watched(lua, watch, caught)?)?;
    host.set("expand", lua.create_function(expand)?)?;
    host.set("failed", watched(lua, watch, failed)?)?;
    host.set("find", watched(lua, watch, find)?)?;
    host.set("libraries", libraries(lua, watch)?)?;
    host.set("place", lua.create_function(place)?)?;
    host.set("set_protocol", watched(lua, watch, set_protocol)?)?;
    host.set("version", REDIS_VERSION)?;
    host.set("version_number", version_number(REDIS_VERSION))?;
    host.set("random", watched(lua, watch, |_, it, ()| Ok(it.random()))?)?;
    host.set("seed", watched(lua, watch, seed)?)?;
    host.set("sha1hex", watched(lua, watch, sha1hex)?)?;
    host.set(
        "spend",
        watched(lua, watch, |_, it, steps| Ok(it.spend(steps)?))?,
    )?;
    Ok(host)
}

/// The libraries that Redis adds to Lua's.
fn libraries(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Table> {
    let cjson = lua.create_table()?;
    cjson.set("encode", watched(lua, watch, json::encode)?)?;
    cjson.set("decode", watched(lua, watch, json::decode)?)?;
    cjson.set("null", Value::NULL)?;
    let cmsgpack = lua.create_table()?;
    cmsgpack.set("pack", watched(lua, watch, msgpack::pack)?)?;
    cmsgpack.set("unpack", watched(lua, watch, msgpack::unpack)?)?;
    let structs = lua.create_table()?;
    structs.set("pack", lua.create_function(pack::pack)?)?;
    structs.set("unpack", lua.create_function(pack::unpack)?)?;
    structs.set("size", lua.create_function(pack::size)?)?;
    let libraries = lua.create_table()?;
    libraries.set("bit", bits::library(lua)?)?;
    libraries.set("cjson", cjson)?;
    libraries.set("cmsgpack", cmsgpack)?;
    libraries.set("struct", structs)?;
    Ok(libraries)
}

/// A function that uses the watch.
fn watched<A: FromLuaMulti + 'static, R: IntoLuaMulti + 'static>(
    lua: &Lua,
    watch: &Rc<Watch>,
    run: fn(&Lua, &Watch, A) -> mlua::Result<R>,
) -> mlua::Result<Function> {
    let watch = Rc::clone(watch);
    lua.create_function(move |lua, arguments| run(lua, &watch, arguments))
}

/// Notes where a script failed.
fn failed(lua: &Lua, watch: &Watch, error: Value) -> mlua::Result<Value> {
    watch.set_line(script_line(lua));
    Ok(error)
}

/// Moves the place of an error from `sandbox.lua` to the script.
fn place(lua: &Lua, text: LuaString) -> mlua::Result<LuaString> {
    lua.create_string(convert::place(&text.as_bytes(), script_line(lua)))
}

fn set_protocol(_: &Lua, watch: &Watch, version: u8) -> mlua::Result<()> {
    watch.set_protocol(if version == 3 {
        Protocol::Resp3
    } else {
        Protocol::Resp2
    });
    Ok(())
}

/// Returns 0x080400 for 8.4.0.
fn version_number(version: &str) -> u32 {
    let parts = version.split('.').map(|part| part.parse::<u32>());
    parts.fold(0, |number, part| number << 8 | part.unwrap_or(0))
}

fn seed(_: &Lua, watch: &Watch, seed: f64) -> mlua::Result<()> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as C cuts it"
    )]
    watch.seed(seed as i64 as u32);
    Ok(())
}

/// Turns what Rust raised into what a script may catch, or raises it again.
fn caught(lua: &Lua, watch: &Watch, value: Value) -> mlua::Result<Value> {
    match value {
        Value::Error(error) => {
            if let Some(raised) = error.downcast_ref::<Raised>() {
                return raised.table(lua);
            }
            if error.downcast_ref::<Stopped>().is_some() {
                return Err(*error);
            }
            if is_out_of_memory(&error) {
                return Err(watch.out_of_memory().into());
            }
            Ok(Value::String(lua.create_string(text_of(&error))?))
        }
        Value::LightUserData(_) => Ok(value),
        _ => Err(watch.out_of_memory().into()),
    }
}

/// The line of the script that is running.
fn script_line(lua: &Lua) -> u32 {
    let mut level = 0;
    while let Some(line) = lua.inspect_stack(level, |frame| {
        let is_script = frame.source().source.as_deref() == Some(SCRIPT_NAME);
        frame.current_line().filter(|_| is_script)
    }) {
        if let Some(line) = line {
            return u32::try_from(line).unwrap_or(1);
        }
        level += 1;
    }
    1
}

/// `find(text, pattern, init, is_plain, has_anchor)`: start, end and captures, or nil. Without
/// `is_plain`, it depends on the pattern.
fn find(
    lua: &Lua,
    watch: &Watch,
    (text, pattern, init, is_plain, has_anchor): (LuaString, LuaString, f64, Option<bool>, bool),
) -> mlua::Result<MultiValue> {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let is_plain = is_plain.unwrap_or_else(|| {
        let mut bytes = pattern.iter().take_while(|byte| **byte != 0);
        !bytes.any(|byte| SPECIALS.contains(byte))
    });
    #[expect(clippy::cast_possible_truncation, reason = "as Lua cuts it")]
    let init = match init as i64 {
        init @ 1.. => usize::try_from(init - 1).unwrap_or(usize::MAX),
        0 => 0,
        back => {
            let back = usize::try_from(back.unsigned_abs()).unwrap_or(usize::MAX);
            text.len().saturating_sub(back)
        }
    };
    let init = init.min(text.len());
    let rest = text.get(init..).unwrap_or_default();
    let mut found = MultiValue::new();
    if is_plain {
        let place = memchr::memmem::find(rest, &pattern);
        watch.spend(rest.len() / STEP_BYTES)?;
        match place.map(|place| init + place) {
            Some(start) => {
                found.push_back(position(start));
                found.push_back(position((start + pattern.len()).wrapping_sub(1)));
            }
            None => found.push_back(Value::Nil),
        }
        return Ok(found);
    }
    let mut spend = |steps| watch.spend(steps);
    let matched = pattern::find(&text, &pattern, init, has_anchor, &mut spend);
    let matched = matched.map_err(|error| match error {
        PatternError::Malformed(what) => mlua::Error::runtime(what),
        PatternError::Stopped(stopped) => stopped.into(),
    })?;
    let Some(matched) = matched else {
        return Ok(MultiValue::from_vec(vec![Value::Nil]));
    };
    found.push_back(position(matched.start));
    found.push_back(position(matched.end.wrapping_sub(1)));
    for capture in matched.captures {
        found.push_back(match capture {
            Capture::Text { start, end } => {
                let text = text.get(start..end).unwrap_or_default();
                Value::String(lua.create_string(text)?)
            }
            Capture::Position(place) | Capture::Open { start: place } => position(place),
        });
    }
    Ok(found)
}

/// A position counted from 1; one before the first is 0.
fn position(place: usize) -> Value {
    Value::Integer(i64::try_from(place.wrapping_add(1)).unwrap_or(0))
}

/// `expand(template, whole, captures...)`: a replacement of `gsub` with its `%1`.
fn expand(lua: &Lua, arguments: MultiValue) -> mlua::Result<LuaString> {
    let mut texts = Vec::new();
    for argument in arguments {
        let text = lua.coerce_string(argument)?;
        texts.push(text.ok_or_else(|| mlua::Error::runtime("invalid capture index"))?);
    }
    let template = texts.first().map(LuaString::as_bytes);
    let mut bytes = template.iter().flat_map(|text| text.iter().copied());
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        match (byte, if byte == b'%' { bytes.next() } else { None }) {
            (b'%', Some(digit @ b'0'..=b'9')) => {
                // Without captures, the whole match is the first.
                let number = usize::from(digit - b'0');
                let number = if texts.len() == 2 {
                    number.saturating_sub(1)
                } else {
                    number
                };
                let capture = texts.get(number + 1);
                let capture =
                    capture.ok_or_else(|| mlua::Error::runtime("invalid capture index"))?;
                out.extend_from_slice(&capture.as_bytes());
            }
            (b'%', other) => out.extend(other),
            (byte, _) => out.push(byte),
        }
    }
    lua.create_string(out)
}

fn sha1hex(lua: &Lua, watch: &Watch, arguments: MultiValue) -> mlua::Result<String> {
    let (Some(argument), 1) = (arguments.front(), arguments.len()) else {
        return Err(Raised::refusal("ERR wrong number of arguments"));
    };
    // Redis hashes anything that is no text as nothing.
    let text = lua.coerce_string(argument.clone())?;
    let text = text.as_ref().map(LuaString::as_bytes);
    let mut sha = sha1_smol::Sha1::new();
    for part in text.as_deref().unwrap_or_default().chunks(SHA1_PART_BYTES) {
        watch.spend(part.len() / SHA1_STEP_BYTES)?;
        sha.update(part);
    }
    Ok(sha.digest().to_string())
}

/// How Redis names scripts in errors.
pub(super) const SCRIPT_NAME: &str = "@user_script";

/// A pattern without any of these is a plain text to `string.find`.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// The bytes that are searched, and hashed, in the time of an instruction.
const STEP_BYTES: usize = 64;
const SHA1_STEP_BYTES: usize = 4;

/// The bytes that are hashed between two looks at the limits.
const SHA1_PART_BYTES: usize = 4 * 1024;
