//! Reads the reply of a command that a script called.

use locknode_resp::parse_integer;

use crate::script::Value;

/// Returns the reply as a value. Replies come from the node itself; a damaged one would be null.
pub(super) fn value(reply: &[u8]) -> Value {
    one(reply, DEPTH_MAX).map_or(Value::Nil, |(value, _)| value)
}

/// Reads one reply, and returns it with the bytes after it.
fn one(bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    let rest = bytes.get(end..)?.strip_prefix(b"\r\n")?;
    let kind = bytes.first()?;
    let line = bytes.get(1..end)?;
    let many = |groups: usize| {
        let depth = depth.checked_sub(1)?;
        let count = usize::try_from(parse_integer(line)?)
            .ok()?
            .checked_mul(groups)?;
        let (mut items, mut rest) = (Vec::new(), rest);
        for _ in 0..count {
            let (item, after) = one(rest, depth)?;
            items.push(item);
            rest = after;
        }
        Some((items, rest))
    };
    let value = match kind {
        b'+' => Value::Status(line.to_vec()),
        b'-' => Value::Error(line.to_vec()),
        b':' => Value::Integer(parse_integer(line)?),
        b'$' | b'*' if line.starts_with(b"-") => Value::Nil,
        b'_' => Value::Nil,
        b'#' => Value::Boolean(line == b"t"),
        b',' => Value::Double(str::from_utf8(line).ok()?.parse().ok()?),
        b'(' => Value::BigNumber(line.to_vec()),
        b'$' | b'=' => {
            let length = usize::try_from(parse_integer(line)?).ok()?;
            let rest_of_it = rest.get(length..)?.strip_prefix(b"\r\n")?;
            let text = rest.get(..length)?;
            let value = match (kind, text.split_first_chunk::<3>()) {
                (b'=', Some((format, [b':', text @ ..]))) => {
                    Value::Verbatim(*format, text.to_vec())
                }
                _ => Value::Bulk(text.to_vec()),
            };
            return Some((value, rest_of_it));
        }
        b'*' | b'>' => {
            let (items, rest) = many(1)?;
            return Some((Value::Array(items), rest));
        }
        b'~' => {
            let (items, rest) = many(1)?;
            return Some((Value::Set(items), rest));
        }
        b'%' => {
            let (items, rest) = many(2)?;
            let mut items = items.into_iter();
            let pairs = std::iter::from_fn(|| items.next().zip(items.next()));
            return Some((Value::Map(pairs.collect()), rest));
        }
        _ => return None,
    };
    Some((value, rest))
}

/// The deepest reply of a command, with room: COMMAND describes the keys of subcommands.
const DEPTH_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_whole() {
        let text = |text: &str| Value::Bulk(text.into());
        let rows: [(&[u8], Value); 15] = [
            (b"_\r\n", Value::Nil),
            (b"#f\r\n", Value::Boolean(false)),
            (b",1.5\r\n", Value::Double(1.5)),
            (b"(12\r\n", Value::BigNumber(b"12".to_vec())),
            (
                b"=6\r\ntxt:hi\r\n",
                Value::Verbatim(*b"txt", b"hi".to_vec()),
            ),
            (b"~1\r\n$1\r\na\r\n", Value::Set(vec![text("a")])),
            (
                b"%1\r\n$1\r\na\r\n:1\r\n",
                Value::Map(vec![(text("a"), Value::Integer(1))]),
            ),
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
            assert_eq!(value(bytes), want);
        }
    }

    #[test]
    fn a_damaged_reply_is_null() {
        let too_deep = [b"*1\r\n".repeat(DEPTH_MAX + 1), b":1\r\n".to_vec()].concat();
        let rows: [&[u8]; 6] = [
            b"",
            b"+OK",
            b"$5\r\na\r\n",
            b"*2\r\n:1\r\n",
            b"!x\r\n",
            &too_deep,
        ];
        for bytes in rows {
            assert_eq!(value(bytes), Value::Nil);
        }
    }
}
