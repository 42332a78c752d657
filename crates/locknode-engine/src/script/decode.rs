//! Reads the RESP2 reply of a command that a script called.

use locknode_resp::parse_integer;

use crate::script::Value;

/// Returns the reply as a value. Replies come from the node itself; a damaged one would be null.
pub(super) fn value(reply: &[u8]) -> Value {
    one(reply, DEPTH_MAX).map_or(Value::Nil, |(value, _)| value)
}

/// Reads one reply, and returns it with the bytes after it.
fn one(bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let kind = bytes.first()?;
    let line = bytes.get(1..end)?;
    let rest = bytes.get(end + 2..)?;
    let value = match kind {
        b'+' => Value::Status(line.to_vec()),
        b'-' => Value::Error(line.to_vec()),
        b':' => Value::Integer(parse_integer(line)?),
        b'$' | b'*' if line.starts_with(b"-") => Value::Nil,
        b'$' => {
            let length = usize::try_from(parse_integer(line)?).ok()?;
            let rest_of_it = rest.get(length..)?.strip_prefix(b"\r\n")?;
            return Some((Value::Bulk(rest.get(..length)?.to_vec()), rest_of_it));
        }
        b'*' => {
            let depth = depth.checked_sub(1)?;
            let mut rest = rest;
            let mut items = Vec::new();
            for _ in 0..parse_integer(line)? {
                let (item, after) = one(rest, depth)?;
                items.push(item);
                rest = after;
            }
            return Some((Value::Array(items), rest));
        }
        _ => return None,
    };
    Some((value, rest))
}

/// The deepest reply of a command: lists in a list, with room.
const DEPTH_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_whole() {
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
            assert_eq!(value(bytes), want);
        }
    }

    #[test]
    fn a_damaged_reply_is_null() {
        let rows: [&[u8]; 6] = [
            b"",
            b"+OK",
            b"$5\r\na\r\n",
            b"*2\r\n:1\r\n",
            b"!x\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ];
        for bytes in rows {
            assert_eq!(value(bytes), Value::Nil);
        }
    }
}
