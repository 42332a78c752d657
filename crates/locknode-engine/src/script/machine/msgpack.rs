//! Redis's library `cmsgpack`: MessagePack with the habits of lua-cmsgpack.

use mlua::{Error, Lua, LuaString, MultiValue, Table, Value, Variadic};

use super::watch::Watch;

/// `cmsgpack.pack(...)`: all arguments, one after another.
pub(super) fn pack(lua: &Lua, watch: &Watch, values: Variadic<Value>) -> mlua::Result<LuaString> {
    if values.is_empty() {
        let text = "bad argument #0 to 'pack' (MessagePack pack needs input.)";
        return Err(Error::runtime(text));
    }
    let mut out = Vec::new();
    for value in values.iter() {
        write(&mut out, watch, value, 0)?;
    }
    lua.create_string(out)
}

/// `cmsgpack.unpack(text)`: every value of the text.
pub(super) fn unpack(lua: &Lua, watch: &Watch, text: LuaString) -> mlua::Result<MultiValue> {
    let text = text.as_bytes();
    watch.spend(text.len() / BYTES_PER_STEP)?;
    let mut values = MultiValue::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        values.push_back(read(lua, &mut rest, 0)?);
    }
    Ok(values)
}

fn write(out: &mut Vec<u8>, watch: &Watch, value: &Value, depth: usize) -> mlua::Result<()> {
    watch.spend(1)?;
    match value {
        Value::Boolean(is_true) => out.push(if *is_true { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => write_integer(out, *number),
        Value::Number(number) => write_double(out, *number),
        Value::String(text) => {
            let text = text.as_bytes();
            write_length(out, text.len(), (0xa0, 31), &[0xd9, 0xda, 0xdb]);
            out.extend_from_slice(&text);
        }
        Value::Table(table) if depth < DEPTH_MAX => write_table(out, watch, table, depth + 1)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn write_table(out: &mut Vec<u8>, watch: &Watch, table: &Table, depth: usize) -> mlua::Result<()> {
    let (mut is_array, mut max, mut count) = (true, 0, 0);
    for pair in table.pairs::<Value, Value>() {
        count += 1;
        match pair? {
            (Value::Integer(index @ 1..), _) => max = index.max(max),
            _ => is_array = false,
        }
    }
    let length = usize::try_from(count).unwrap_or(0);
    if is_array && max == count {
        write_length(out, length, (0x90, 15), &[0xdc, 0xdd]);
        for index in 1..=max {
            write(out, watch, &table.raw_get(index)?, depth)?;
        }
        return Ok(());
    }
    write_length(out, length, (0x80, 15), &[0xde, 0xdf]);
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        write(out, watch, &key, depth)?;
        write(out, watch, &value, depth)?;
    }
    Ok(())
}

/// Writes a length in its shortest form: within the mark itself, or after one of `marks`, of which
/// the last takes four bytes.
fn write_length(out: &mut Vec<u8>, length: usize, short: (u8, u8), marks: &[u8]) {
    let marks: [u8; 3] = match *marks {
        [one, two, four] => [one, two, four],
        [two, four] => [0, two, four],
        _ => return,
    };
    let bytes = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    match bytes {
        [0, 0, 0, low] if low <= short.1 => out.push(short.0 | low),
        [0, 0, 0, low] if marks[0] != 0 => out.extend([marks[0], low]),
        [0, 0, high, low] => out.extend([marks[1], high, low]),
        all => {
            out.push(marks[2]);
            out.extend(all);
        }
    }
}

fn write_integer(out: &mut Vec<u8>, number: i64) {
    let bytes = number.to_be_bytes();
    let (mark, len) = match number {
        -0x20..=0x7f => return out.extend(bytes.last()),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..-0x20 => (0xd0, 1),
        -0x8000..-0x80 => (0xd1, 2),
        -0x8000_0000..-0x8000 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(mark);
    out.extend(bytes.iter().skip(8 - len));
}

fn write_double(out: &mut Vec<u8>, number: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be the same")]
    let short = number as f32;
    if number == 0.0 {
        out.push(0);
    } else if f64::from(short).total_cmp(&number).is_eq() && !number.is_nan() {
        out.push(0xca);
        out.extend(short.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend(number.to_be_bytes());
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> mlua::Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count).ok_or_else(missing)?;
    *rest = after;
    Ok(taken)
}

/// Reads an integer of some bytes.
fn unsigned(rest: &mut &[u8], count: usize) -> mlua::Result<u64> {
    let bytes = take(rest, count)?;
    Ok(bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn length(rest: &mut &[u8], count: usize) -> mlua::Result<usize> {
    usize::try_from(unsigned(rest, count)?).map_err(|_| missing())
}

fn read(lua: &Lua, rest: &mut &[u8], depth: usize) -> mlua::Result<Value> {
    let mark = take(rest, 1)?.first().copied().unwrap_or(0xc0);
    let short = |bits: u8| usize::from(mark & bits);
    #[expect(clippy::cast_precision_loss, reason = "numbers of Lua are doubles")]
    let number = |number: u64| Value::Number(number as f64);
    let signed = |number: u64, bytes: u32| {
        let shift = 64 - 8 * bytes;
        Value::Integer((number << shift).cast_signed() >> shift)
    };
    Ok(match mark {
        0..=0x7f => Value::Integer(i64::from(mark)),
        0xe0.. => Value::Integer(i64::from(mark.cast_signed())),
        0xc0 => Value::Nil,
        0xc2 | 0xc3 => Value::Boolean(mark == 0xc3),
        0xca => {
            let bits = u32::try_from(unsigned(rest, 4)?).unwrap_or(0);
            Value::Number(f64::from(f32::from_bits(bits)))
        }
        0xcb => Value::Number(f64::from_bits(unsigned(rest, 8)?)),
        0xcc..=0xcf => number(unsigned(rest, 1 << (mark & 3))?),
        0xd0..=0xd3 => signed(unsigned(rest, 1 << (mark & 3))?, 1 << (mark & 3)),
        0xa0..=0xbf => string(lua, rest, short(31))?,
        0xc4..=0xc6 => {
            let count = length(rest, 1 << (mark - 0xc4))?;
            string(lua, rest, count)?
        }
        0xd9..=0xdb => {
            let count = length(rest, 1 << (mark - 0xd9))?;
            string(lua, rest, count)?
        }
        0x90..=0x9f => array(lua, rest, short(15), depth)?,
        0xdc | 0xdd => {
            let count = length(rest, if mark == 0xdc { 2 } else { 4 })?;
            array(lua, rest, count, depth)?
        }
        0x80..=0x8f => map(lua, rest, short(15), depth)?,
        0xde | 0xdf => {
            let count = length(rest, if mark == 0xde { 2 } else { 4 })?;
            map(lua, rest, count, depth)?
        }
        _ => return Err(Error::runtime("Bad data format in input.")),
    })
}

fn string(lua: &Lua, rest: &mut &[u8], count: usize) -> mlua::Result<Value> {
    Ok(Value::String(lua.create_string(take(rest, count)?)?))
}

fn array(lua: &Lua, rest: &mut &[u8], count: usize, depth: usize) -> mlua::Result<Value> {
    let (table, depth) = (lua.create_table()?, deeper(depth)?);
    for index in 1..=count {
        table.raw_set(index, read(lua, rest, depth)?)?;
    }
    Ok(Value::Table(table))
}

fn map(lua: &Lua, rest: &mut &[u8], count: usize, depth: usize) -> mlua::Result<Value> {
    let (table, depth) = (lua.create_table()?, deeper(depth)?);
    for _ in 0..count {
        let key = read(lua, rest, depth)?;
        table.raw_set(key, read(lua, rest, depth)?)?;
    }
    Ok(Value::Table(table))
}

fn deeper(depth: usize) -> mlua::Result<usize> {
    let is_fine = depth < READ_DEPTH_MAX;
    is_fine.then_some(depth + 1).ok_or_else(missing)
}

fn missing() -> Error {
    Error::runtime("Missing bytes in input.")
}

/// Tables nested deeper than this are written as nil, as lua-cmsgpack writes them.
const DEPTH_MAX: usize = 16;

/// The deepest input: enough for whatever was written, and little enough for the stack.
const READ_DEPTH_MAX: usize = 100;

/// The bytes that are read in the time of an instruction.
const BYTES_PER_STEP: usize = 4;
