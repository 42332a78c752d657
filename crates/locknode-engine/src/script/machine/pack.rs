//! Redis's library `struct`: Lua values to and from C structs.

use mlua::{Error, Lua, LuaString, MultiValue, Value, Variadic};

/// A format and how far it was read.
struct Format<'a> {
    rest: &'a [u8],
    is_little: bool,
    align_max: usize,
}

/// What a letter of a format stands for.
enum Item {
    Integer {
        len: usize,
        is_signed: bool,
    },
    Float,
    Double,
    /// A string of a length; 0 for one whose length is the number before it, or all of it.
    Bytes(usize),
    /// A string that ends with a zero.
    Text,
    Padding,
}

impl Format<'_> {
    fn next(&mut self) -> mlua::Result<Option<Item>> {
        while let Some((letter, rest)) = self.rest.split_first() {
            self.rest = rest;
            let integer = |len, is_signed| Item::Integer { len, is_signed };
            let item = match letter {
                b'<' => {
                    self.is_little = true;
                    continue;
                }
                b'>' => {
                    self.is_little = false;
                    continue;
                }
                b'!' => {
                    let align = self.number(8, "alignment")?;
                    if !align.is_power_of_two() {
                        let text = format!("alignment {align} is not a power of 2");
                        return Err(Error::runtime(text));
                    }
                    self.align_max = align;
                    continue;
                }
                b' ' => continue,
                b'b' | b'B' => integer(1, *letter == b'b'),
                b'h' | b'H' => integer(2, *letter == b'h'),
                b'l' | b'L' | b'T' => integer(8, *letter == b'l'),
                b'i' | b'I' => {
                    let len = self.number(4, "integral size")?;
                    if len > INTEGER_LEN_MAX {
                        let text = format!(
                            "integral size {len} is larger than limit of {INTEGER_LEN_MAX}"
                        );
                        return Err(Error::runtime(text));
                    }
                    integer(len, *letter == b'i')
                }
                b'f' => Item::Float,
                b'd' => Item::Double,
                b'c' => Item::Bytes(self.number(1, "size")?),
                b's' => Item::Text,
                b'x' => Item::Padding,
                letter => {
                    let letter = char::from(*letter);
                    return Err(Error::runtime(format!(
                        "bad argument #1 to 'pack' (invalid format option '{letter}')"
                    )));
                }
            };
            return Ok(Some(item));
        }
        Ok(None)
    }

    fn number(&mut self, default: usize, what: &str) -> mlua::Result<usize> {
        let count = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        if digits.is_empty() {
            return Ok(default);
        }
        let number = str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        let number = number.filter(|number| *number <= SIZE_MAX);
        number.ok_or_else(|| Error::runtime(format!("{what} overflow")))
    }

    /// The bytes before an item at a place, so that it is aligned.
    fn padding(&self, item: &Item, at: usize) -> usize {
        let len = match item {
            Item::Integer { len, .. } => *len,
            Item::Float => 4,
            Item::Double => 8,
            Item::Bytes(_) | Item::Text | Item::Padding => 1,
        };
        let align = len.min(self.align_max);
        if align > 1 {
            at.next_multiple_of(align) - at
        } else {
            0
        }
    }
}

fn format(text: &[u8]) -> Format<'_> {
    Format {
        rest: text,
        is_little: true,
        align_max: 1,
    }
}

/// `struct.pack(format, ...)`.
pub(super) fn pack(
    lua: &Lua,
    (text, values): (LuaString, Variadic<Value>),
) -> mlua::Result<LuaString> {
    let text = text.as_bytes();
    let mut format = format(&text);
    let mut out = Vec::new();
    let mut count = 1;
    while let Some(item) = format.next()? {
        out.resize(out.len() + format.padding(&item, out.len()), 0);
        if matches!(item, Item::Padding) {
            out.push(0);
            continue;
        }
        count += 1;
        let value = values.get(count - 2).cloned().unwrap_or(Value::Nil);
        let wrong = |what: &str| {
            let kind = value.type_name();
            Error::runtime(format!(
                "bad argument #{count} to 'pack' ({what} expected, got {kind})"
            ))
        };
        if let Item::Bytes(_) | Item::Text = item {
            let bytes = lua
                .coerce_string(value.clone())?
                .ok_or_else(|| wrong("string"))?;
            let bytes = bytes.as_bytes();
            let Item::Bytes(len) = item else {
                out.extend_from_slice(&bytes);
                out.push(0);
                continue;
            };
            let len = if len == 0 { bytes.len() } else { len };
            let count = count + 1;
            let part = bytes.get(..len).ok_or_else(|| {
                Error::runtime(format!(
                    "bad argument #{count} to 'pack' (string too short)"
                ))
            })?;
            out.extend_from_slice(part);
            continue;
        }
        let number = lua
            .coerce_number(value.clone())?
            .ok_or_else(|| wrong("number"))?;
        #[expect(clippy::cast_possible_truncation, reason = "as C cuts it")]
        let mut bytes = match item {
            Item::Float => (number as f32).to_le_bytes().to_vec(),
            Item::Double => number.to_le_bytes().to_vec(),
            Item::Integer { len, .. } => {
                let sign = if number < 0.0 { 0xff } else { 0 };
                let mut bytes = integer(number).to_le_bytes().to_vec();
                bytes.resize(len, sign);
                bytes
            }
            Item::Bytes(_) | Item::Text | Item::Padding => Vec::new(),
        };
        if !format.is_little {
            bytes.reverse();
        }
        out.extend(bytes);
    }
    lua.create_string(out)
}

/// `struct.unpack(format, text, start)`: the values, and where the text goes on.
pub(super) fn unpack(
    lua: &Lua,
    (text, data, start): (LuaString, LuaString, Option<usize>),
) -> mlua::Result<MultiValue> {
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let mut format = format(&text);
    let Some(mut at) = start.unwrap_or(1).checked_sub(1) else {
        let text = "bad argument #3 to 'unpack' (offset must be 1 or greater)";
        return Err(Error::runtime(text));
    };
    let mut values = MultiValue::new();
    let short = || Error::runtime("bad argument #2 to 'unpack' (data string too short)");
    while let Some(item) = format.next()? {
        at += format.padding(&item, at);
        let rest = data.get(at..).ok_or_else(short)?;
        let len = match &item {
            Item::Integer { len, .. } => *len,
            Item::Float => 4,
            Item::Double => 8,
            Item::Padding => 1,
            Item::Text => rest
                .iter()
                .position(|byte| *byte == 0)
                .ok_or_else(|| Error::runtime("unfinished string in data"))?,
            Item::Bytes(0) => {
                let length = values.pop_back().and_then(|value| value.as_number());
                let length =
                    length.map(|length| usize::try_from(integer(length)).unwrap_or(usize::MAX));
                length.ok_or_else(|| Error::runtime("format 'c0' needs a previous size"))?
            }
            Item::Bytes(len) => *len,
        };
        let bytes = rest.get(..len).ok_or_else(short)?;
        at += len;
        let ordered = || {
            let mut ordered = bytes.to_vec();
            if !format.is_little {
                ordered.reverse();
            }
            ordered
        };
        values.push_back(match item {
            Item::Padding => continue,
            Item::Text => {
                at += 1;
                Value::String(lua.create_string(bytes)?)
            }
            Item::Bytes(_) => Value::String(lua.create_string(bytes)?),
            Item::Float => {
                let bits = ordered().try_into().map(f32::from_le_bytes).unwrap_or(0.0);
                Value::Number(f64::from(bits))
            }
            Item::Double => {
                Value::Number(ordered().try_into().map(f64::from_le_bytes).unwrap_or(0.0))
            }
            Item::Integer { is_signed, .. } => Value::Number(read(&ordered(), is_signed)),
        });
    }
    values.push_back(Value::Integer(i64::try_from(at + 1).unwrap_or(0)));
    Ok(values)
}

/// `struct.size(format)`.
pub(super) fn size(_: &Lua, text: LuaString) -> mlua::Result<usize> {
    let text = text.as_bytes();
    let mut format = format(&text);
    let mut at = 0;
    while let Some(item) = format.next()? {
        at += format.padding(&item, at);
        at += match item {
            Item::Integer { len, .. } => len,
            Item::Float => 4,
            Item::Double => 8,
            Item::Padding => 1,
            Item::Text => {
                return Err(Error::runtime(
                    "bad argument #1 to 'size' (option 's' has no fixed size)",
                ));
            }
            Item::Bytes(0) => {
                return Err(Error::runtime(
                    "bad argument #1 to 'size' (option 'c0' has no fixed size)",
                ));
            }
            Item::Bytes(len) => len,
        };
    }
    Ok(at)
}

/// Reads an integer, the lowest byte first; of a longer one, the lowest eight.
#[expect(clippy::cast_precision_loss, reason = "numbers of Lua are doubles")]
fn read(bytes: &[u8], is_signed: bool) -> f64 {
    let low = bytes.iter().take(8).rev();
    let number = low.fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let shift = 64 - 8 * bytes.len().clamp(1, 8);
    if is_signed {
        ((number << shift).cast_signed() >> shift) as f64
    } else {
        number as f64
    }
}

/// Cuts a number as C does on x86, where one that is too large becomes 0, and NaN the least integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as C cuts it"
)]
fn integer(number: f64) -> u64 {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    if number < 0.0 {
        (number as i64).cast_unsigned()
    } else if number.is_nan() {
        i64::MIN.cast_unsigned()
    } else if number < TWO_TO_64 {
        number as u64
    } else {
        0
    }
}

/// The longest integer, as in Redis, and the largest size in a format: no string of a script is
/// longer.
const INTEGER_LEN_MAX: usize = 32;
const SIZE_MAX: usize = 64 * 1024 * 1024;
