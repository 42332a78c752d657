//! Redis's library `bit`: operations on 32 bits.

use mlua::{Lua, Table, Variadic};

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
        let run = move |_: &Lua, number: f64| Ok(number_of(run(bits_of(number))));
        bit.set(name, lua.create_function(run)?)?;
    }
    let any: [(&str, Binary); 3] = [
        ("band", |a, b| a & b),
        ("bor", |a, b| a | b),
        ("bxor", |a, b| a ^ b),
    ];
    for (name, run) in any {
        let run = move |_: &Lua, (first, others): (f64, Variadic<f64>)| {
            let others = others.iter().map(|number| bits_of(*number));
            Ok(number_of(others.fold(bits_of(first), run)))
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
        let run = move |_: &Lua, (number, by): (f64, f64)| {
            Ok(number_of(run(bits_of(number), bits_of(by) & 31)))
        };
        bit.set(name, lua.create_function(run)?)?;
    }
    bit.set("tohex", lua.create_function(to_hex)?)?;
    Ok(bit)
}

/// `tohex(number, digits)`: fewer than 0 digits means upper case.
fn to_hex(_: &Lua, (number, digits): (f64, Option<f64>)) -> mlua::Result<String> {
    let digits = digits.map_or(8, |digits| bits_of(digits).cast_signed());
    let count = usize::try_from(digits.unsigned_abs().min(8)).unwrap_or(8);
    let hex = if digits < 0 {
        format!("{:08X}", bits_of(number))
    } else {
        format!("{:08x}", bits_of(number))
    };
    Ok(hex.split_at(8 - count).1.to_owned())
}

/// The low 32 bits of a number, rounded to the nearest integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the remainder is in range"
)]
fn bits_of(number: f64) -> u32 {
    number.round_ties_even().rem_euclid(4_294_967_296.0) as u32
}

fn number_of(bits: u32) -> i32 {
    bits.cast_signed()
}
