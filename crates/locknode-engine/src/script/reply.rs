//! Redis's conversions between replies and Lua values, in both directions.
//!
//! A RESP2 reply becomes a Lua value when a script calls a command, and the value that the script
//! returns becomes a reply. Replies come from the node itself, but are parsed with care all the
//! same.

use locknode_resp::parse_integer;

use crate::script::Value;
use crate::script::error::one_line;
use crate::script::number;
use crate::script::value::{Datum, Table, TableId, Text};

/// Why a value cannot become a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unencodable {
    Large,
    Deep,
}

/// Parses one reply and returns it with the bytes after it. `add` stores a table.
pub(super) fn decode<'b, 'r>(
    bytes: &'b [u8],
    depth: usize,
    add: &mut dyn FnMut(Table<'r>) -> TableId,
) -> Option<(Datum<'r>, &'b [u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let kind = bytes.first()?;
    let line = bytes.get(1..end)?;
    let rest = bytes.get(end + 2..)?;
    match kind {
        b'+' => Some((Datum::Table(add(single(b"ok", line))), rest)),
        b'-' => Some((Datum::Table(add(error_table(line))), rest)),
        b':' => Some((
            Datum::Number(number::from_integer(parse_integer(line)?)),
            rest,
        )),
        b'$' | b'*' if line.starts_with(b"-") => Some((Datum::Boolean(false), rest)),
        b'$' => {
            let length = usize::try_from(parse_integer(line)?).ok()?;
            let body = rest.get(..length)?;
            Some((
                Datum::owned(body),
                rest.get(length..)?.strip_prefix(b"\r\n")?,
            ))
        }
        b'*' if depth > 0 => {
            let mut rest = rest;
            let mut list = Vec::new();
            for _ in 0..parse_integer(line)? {
                let (element, after) = decode(rest, depth - 1, add)?;
                list.push(element);
                rest = after;
            }
            Some((Datum::Table(add(Table::from_list(list))), rest))
        }
        _ => None,
    }
}

/// The table of an error reply, as `redis.pcall` returns it.
pub(super) fn error_table<'r>(message: &[u8]) -> Table<'r> {
    let mut table = single(b"err", message);
    let mark = crate::script::value::Key::Text(Text::Borrowed(b"ignore_error_stats_update"));
    table.set_field(mark, Datum::Boolean(true));
    table
}

/// The table of a status or error created by a script.
pub(super) fn single<'r>(name: &'static [u8], text: &[u8]) -> Table<'r> {
    let mut table = Table::default();
    let key = crate::script::value::Key::Text(Text::Borrowed(name));
    table.set_field(key, Datum::owned(text));
    table
}

/// Converts a script's return value to a reply. `budget` is how many bytes the reply may still
/// take.
///
/// # Errors
/// The reply would be too large or too deep.
pub(super) fn encode(
    datum: &Datum<'_>,
    tables: &[Table<'_>],
    depth: usize,
    budget: &mut usize,
) -> Result<Value, Unencodable> {
    let cost = match datum {
        Datum::Text(text) => text.bytes().len() + ELEMENT_BYTES,
        _ => ELEMENT_BYTES,
    };
    *budget = budget.checked_sub(cost).ok_or(Unencodable::Large)?;
    Ok(match datum {
        Datum::Nil | Datum::Boolean(false) | Datum::Builtin(_) => Value::Nil,
        Datum::Boolean(true) => Value::Integer(1),
        Datum::Number(value) => Value::Integer(number::integer(*value)),
        Datum::Text(text) => Value::Bulk(text.bytes().to_vec()),
        Datum::Table(id) => {
            let Some(table) = tables.get(id.0) else {
                return Ok(Value::Nil);
            };
            if let Some(text) = table.named_text(b"err") {
                return Ok(Value::Error(one_line(text.bytes())));
            }
            if let Some(text) = table.named_text(b"ok") {
                return Ok(Value::Status(one_line(text.bytes())));
            }
            let depth = depth.checked_sub(1).ok_or(Unencodable::Deep)?;
            let mut list = Vec::new();
            for index in 1.. {
                match table.element(index) {
                    Datum::Nil => break,
                    element => list.push(encode(&element, tables, depth, budget)?),
                }
            }
            Value::Array(list)
        }
    })
}

/// How deep a reply may nest. Lock scripts return flat lists; the limit keeps a table that contains
/// itself from overflowing the stack.
pub(super) const REPLY_DEPTH_MAX: usize = 64;

/// The minimum cost of one element of a reply.
const ELEMENT_BYTES: usize = size_of::<Value>();

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(bytes: &[u8]) -> Option<Value> {
        let mut tables = Vec::new();
        let (datum, rest) = decode(bytes, 4, &mut |table| {
            tables.push(table);
            TableId(tables.len() - 1)
        })?;
        assert_eq!(rest, b"");
        encode(&datum, &tables, 4, &mut 10_000).ok()
    }

    #[test]
    fn replies_pass_through_a_script_unchanged() {
        let rows: [(&[u8], Value); 8] = [
            (b"+OK\r\n", Value::Status(b"OK".to_vec())),
            (b"-ERR no\r\n", Value::Error(b"ERR no".to_vec())),
            (b":-2\r\n", Value::Integer(-2)),
            (b"$3\r\na\r\n\r\n", Value::Bulk(b"a\r\n".to_vec())),
            (b"$-1\r\n", Value::Nil),
            (b"*-1\r\n", Value::Nil),
            (b"*0\r\n", Value::Array(vec![])),
            (
                b"*3\r\n$1\r\na\r\n$-1\r\n:1\r\n",
                Value::Array(vec![
                    Value::Bulk(b"a".to_vec()),
                    Value::Nil,
                    Value::Integer(1),
                ]),
            ),
        ];
        for (bytes, want) in rows {
            assert_eq!(round_trip(bytes), Some(want));
        }
    }

    #[test]
    fn a_broken_reply_is_refused() {
        let rows: [&[u8]; 6] = [
            b"",
            b"+OK",
            b"$5\r\na\r\n",
            b"*2\r\n:1\r\n",
            b"!x\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ];
        for bytes in rows {
            assert_eq!(round_trip(bytes), None);
        }
    }
}
