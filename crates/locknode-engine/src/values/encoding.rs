//! The bytes of a value in a record of the log or of a snapshot.
//!
//! ```text
//!  kind u8, then its parts:  hash    field, value, field, value, ...
//!                            list    element, ...       from left to right
//!                            set     member, ...
//!                            zset    score f64, member, ...
//!  a part:  length u32, bytes
//! ```
//!
//! All numbers are little-endian. The record says where the bytes end.

use super::{Element, End, Field, Hash, Score, Value};

impl Value {
    /// Returns the bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes());
        match self {
            Self::Hash(hash) => {
                out.push(HASH);
                for field in hash.iter() {
                    put(&mut out, field.key());
                    put(&mut out, field.value());
                }
            }
            Self::List(list) => {
                out.push(LIST);
                list.range(0..list.len())
                    .for_each(|element| put(&mut out, element));
            }
            Self::Set(set) => {
                out.push(SET);
                set.iter().for_each(|member| put(&mut out, member));
            }
            Self::SortedSet(set) => {
                out.push(SORTED_SET);
                for (member, score) in set.iter() {
                    out.extend_from_slice(&score.get().to_le_bytes());
                    put(&mut out, member);
                }
            }
        }
        out
    }
}

/// Reads a value; `None` if the bytes do not hold one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Value> {
    let (&kind, mut rest) = bytes.split_first()?;
    let mut value = match kind {
        HASH => Value::Hash(Hash::default()),
        LIST => Value::List(Box::default()),
        SET => Value::Set(Box::default()),
        SORTED_SET => Value::SortedSet(Box::default()),
        _ => return None,
    };
    while !rest.is_empty() {
        match &mut value {
            Value::Hash(hash) => {
                let name = part(&mut rest)?;
                hash.put(Field::new(name, part(&mut rest)?));
            }
            Value::List(list) => list.push(End::Right, part(&mut rest)?),
            Value::Set(set) => {
                set.put(part(&mut rest)?.into());
            }
            Value::SortedSet(set) => {
                let (score, after) = rest.split_first_chunk()?;
                rest = after;
                set.insert(part(&mut rest)?, Score::new(f64::from_le_bytes(*score))?);
            }
        }
    }
    (!value.is_empty()).then_some(value)
}

fn put(out: &mut Vec<u8>, part: &[u8]) {
    // A value is at most `BYTES_MAX` bytes.
    let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(part);
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, after) = rest.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (part, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(part)
}

const HASH: u8 = 1;
const LIST: u8 = 2;
const SET: u8 = 3;
const SORTED_SET: u8 = 4;
