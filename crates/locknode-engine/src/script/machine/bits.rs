//! Redis's library `bit`: operations on 32 bits.

use mlua::{Error, Lua, MultiValue, Table, Value};

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

/// Builds the library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let bit = lua.create_table()?;
    let one: [(&str, Unary); 3] = [
        ("tobit", |bits| bits),
        ("bnot", |bits| !bits),
        ("bswap", u32::swap_bytes),
    ];
    for (name, run) in one {
        let run = move |lua: &Lua, all: MultiValue| {
            let number = bits_of(argument(lua, &all, 1, name)?);
            Ok(number_of(run(number)))
        };
        bit.set(name, lua.create_function(run)?)?;
    }
    let any: [(&str, Binary); 3] = [
        ("band", |a, b| a & b),
        ("bor", |a, b| a | b),
        ("bxor", |a, b| a ^ b),
    ];
    for (name, run) in any {
        let run = move |lua: &Lua, all: MultiValue| {
            let mut number = bits_of(argument(lua, &all, 1, name)?);
            for place in 2..=all.len() {
                number = run(number, bits_of(argument(lua, &all, place, name)?));
            }
            Ok(number_of(number))
        };
        bit.set(name, lua.create_function(run)?)?;
    }
    let shifts: [(&str, Binary); 5] = [
        ("lshift", |bits, by| bits << by),
        ("rshift", |bits, by| bits >> by),
        ("arshift", |bits, by| {
            (bits.cast_signed() >> by).cast_unsigned()
        }),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    for (name, run) in shifts {
        let run = move |lua: &Lua, all: MultiValue| {
            let number = bits_of(argument(lua, &all, 1, name)?);
            let by = bits_of(argument(lua, &all, 2, name)?) & 31;
            Ok(number_of(run(number, by)))
        };
        bit.set(name, lua.create_function(run)?)?;
    }
    bit.set("tohex", lua.create_function(to_hex)?)?;
    Ok(bit)
}

/// `tohex(number, digits)`: fewer than 0 digits means upper case.
fn to_hex(lua: &Lua, all: MultiValue) -> mlua::Result<String> {
    let number = bits_of(argument(lua, &all, 1, "tohex")?);
    let digits = match all.get(1) {
        None | Some(Value::Nil) => 8,
        Some(_) => bits_of(argument(lua, &all, 2, "tohex")?).cast_signed(),
    };
    let count = usize::try_from(digits.unsigned_abs().min(8)).unwrap_or(8);
    let hex = if digits < 0 {
        format!("{number:08X}")
    } else {
        format!("{number:08x}")
    };
    Ok(hex.split_at(8 - count).1.to_owned())
}

/// The argument at a place, counted from 1.
fn argument(lua: &Lua, all: &MultiValue, place: usize, name: &str) -> mlua::Result<f64> {
    let value = all.get(place - 1);
    let number = value.map(|value| lua.coerce_number(value.clone()));
    number.transpose()?.flatten().ok_or_else(|| {
        let kind = value.map_or("no value", Value::type_name);
        let text = format!("bad argument #{place} to '{name}' (number expected, got {kind})");
        Error::runtime(text)
    })
}

/// The low 32 bits of a number, rounded to the nearest integer: the sum has no room for a fraction. Beyond 2^51 they
/// are those of the number as a double, as in Redis.
#[expect(clippy::cast_possible_truncation, reason = "they are what is wanted")]
fn bits_of(number: f64) -> u32 {
    const TWO_TO_52_AND_51: f64 = 6_755_399_441_055_744.0;
    (number + TWO_TO_52_AND_51).to_bits() as u32
}

fn number_of(bits: u32) -> i32 {
    bits.cast_signed()
}
