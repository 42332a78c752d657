//! The reply of a script, from the value that it returned.

use locknode_resp::{Encoder, Protocol};

use crate::script::Value;

/// Writes a value as a reply.
pub(super) fn write_value(value: &Value, reply: &mut Encoder<'_>) {
    match value {
        Value::Nil => reply.null(),
        Value::Boolean(is_true) => reply.boolean(*is_true),
        Value::Integer(n) => reply.integer(*n),
        Value::Double(number) => reply.double(*number),
        Value::BigNumber(text) if reply.protocol() == Protocol::Resp3 => {
            reply.raw(&[b"(".as_slice(), text, b"\r\n"].concat());
        }
        Value::Verbatim(format, text) => reply.verbatim(*format, text),
        Value::Bulk(bytes) | Value::BigNumber(bytes) => reply.bulk(bytes),
        Value::Status(text) => [b"+", text.as_slice(), b"\r\n"]
            .iter()
            .for_each(|part| reply.raw(part)),
        Value::Error(text) => reply.error_bytes(text),
        Value::Map(pairs) => {
            reply.map(pairs.len());
            for (key, value) in pairs {
                write_value(key, reply);
                write_value(value, reply);
            }
        }
        Value::Set(items) => {
            reply.set(items.len());
            items.iter().for_each(|item| write_value(item, reply));
        }
        Value::Array(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| write_value(item, reply));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_its_bytes() {
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, Protocol::Resp2);
        write_value(&Value::Status(b"a\xff".to_vec()), &mut reply);
        assert_eq!(out, b"+a\xff\r\n");
    }
}
