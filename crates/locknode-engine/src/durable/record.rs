//! Records of the log and of snapshots: one change of the lock table each.
//!
//! ```text
//!  0      1     2         5           9        17         25
//!  +------+-----+---------+-----------+--------+----------+-----------+-------------+
//!  | kind | db  | key_len | value_len | grant  | deadline | key bytes | value bytes |
//!  | u8   | u8  | u24     | u32       | u64    | u64      |           |             |
//!  +------+-----+---------+-----------+--------+----------+-----------+-------------+
//! ```
//!
//! All numbers are little-endian. A record states the result of a change, so reading records twice,
//! or on top of a snapshot that already contains some of them, yields the same table. Deadlines are
//! in the time of the node that wrote them; the batch or snapshot around them gives the readings of
//! the machine's clocks `[L2]`.

use crate::durable::frame::{FORMAT_OF_ALL, FORMAT_OF_TOKENS, Fields, OF_LABELS, OF_VALUES};
use crate::time::Deadline;

/// One change of the lock table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The key is held by this lock.
    Put(LockRecord<'a>),
    /// The key is not held.
    Remove {
        /// The database.
        db: u8,
        /// The key.
        key: &'a [u8],
    },
    /// No key of this database, or of any, is held.
    Clear {
        /// The database; `None` for all.
        db: Option<u8>,
    },
}

/// A lock in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRecord<'a> {
    /// The database.
    pub db: u8,
    /// The key.
    pub key: &'a [u8],
    /// The token.
    pub token: &'a [u8],
    /// The fence counter at the grant.
    pub grant: u64,
    /// In the time of the node that wrote the record.
    pub deadline: Deadline,
    /// Whether the lock is on the log and so survives a crash; the snapshot of a clean stop also
    /// holds others.
    pub is_logged: bool,
    /// Whether `token` holds the bytes of a value of another type.
    pub is_collection: bool,
    /// What its holder says of itself, in at most 64 bytes; never of a value of another type.
    pub label: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let label = match self {
            Self::Put(lock) => lock.label.filter(|_| !lock.is_collection),
            _ => None,
        };
        let (kind, db, key, token, grant, deadline) = match *self {
            Self::Put(lock) => {
                let kind = match (lock.is_collection, label, lock.is_logged) {
                    (true, _, true) => PUT_COLLECTION,
                    (true, _, false) => PUT_COLLECTION_UNLOGGED,
                    (false, None, true) => PUT,
                    (false, None, false) => PUT_UNLOGGED,
                    (false, Some(_), true) => PUT_LABELLED,
                    (false, Some(_), false) => PUT_LABELLED_UNLOGGED,
                };
                let deadline = lock.deadline.to_bits();
                (kind, lock.db, lock.key, lock.token, lock.grant, deadline)
            }
            Self::Remove { db, key } => (REMOVE, db, key, NONE, 0, 0),
            Self::Clear { db } => (CLEAR, db.unwrap_or(EVERY_DB), NONE, NONE, 0, 0),
        };
        // The table holds only keys below 2^24 bytes and tokens below 2^32 bytes.
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let [k0, k1, k2, _] = len(key).to_le_bytes();
        let label_len = label.map_or(0, |label| label.len() + 1);
        out.reserve(HEADER_LEN + key.len() + token.len() + label_len);
        out.extend_from_slice(&[kind, db, k0, k1, k2]);
        out.extend_from_slice(&(len(token) + u32::try_from(label_len).unwrap_or(0)).to_le_bytes());
        out.extend_from_slice(&grant.to_le_bytes());
        out.extend_from_slice(&deadline.to_le_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(token);
        if let Some(label) = label {
            out.extend_from_slice(label);
            out.push(u8::try_from(label.len()).unwrap_or(0));
        }
    }

    /// Decodes the first record of `bytes`, and returns it with the bytes after it; `None` if they
    /// do not begin with a whole record.
    pub fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (header, rest) = bytes.split_at_checked(HEADER_LEN)?;
        let mut fields = Fields(header);
        let [kind, db, k0, k1, k2] = fields.array();
        let key_len = usize::try_from(u32::from_le_bytes([k0, k1, k2, 0])).ok()?;
        let value_len = usize::try_from(fields.u32()).ok()?;
        let (grant, deadline) = (fields.u64(), fields.u64());
        let (key, rest) = rest.split_at_checked(key_len)?;
        let (token, rest) = rest.split_at_checked(value_len)?;
        let record = match kind {
            PUT
            | PUT_UNLOGGED
            | PUT_LABELLED
            | PUT_LABELLED_UNLOGGED
            | PUT_COLLECTION
            | PUT_COLLECTION_UNLOGGED => {
                let has_label = matches!(kind, PUT_LABELLED | PUT_LABELLED_UNLOGGED);
                let (token, label) = match has_label {
                    true => split_label(token)?,
                    false => (token, None),
                };
                Self::Put(LockRecord {
                    db,
                    key,
                    token,
                    grant,
                    deadline: Deadline::from_bits(deadline),
                    is_logged: matches!(kind, PUT | PUT_LABELLED | PUT_COLLECTION),
                    is_collection: matches!(kind, PUT_COLLECTION | PUT_COLLECTION_UNLOGGED),
                    label,
                })
            }
            REMOVE if token.is_empty() => Self::Remove { db, key },
            CLEAR if key.is_empty() && token.is_empty() => Self::Clear {
                db: (db != EVERY_DB).then_some(db),
            },
            _ => return None,
        };
        Some((record, rest))
    }
}

/// Splits the value of a labelled lock into token and label; the label's length is the last byte.
fn split_label(value: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (&label_len, value) = value.split_last()?;
    let token_len = value.len().checked_sub(usize::from(label_len))?;
    let (token, label) = value.split_at_checked(token_len)?;
    Some((token, Some(label)))
}

/// Returns the format of a directory that holds these records besides those of `format`.
pub(super) fn format_with(mut format: u32, mut records: &[u8]) -> u32 {
    while format != FORMAT_OF_ALL
        && let Some((record, rest)) = Record::decode(records)
    {
        if let Record::Put(lock) = record {
            let (has_value, has_label) = (lock.is_collection, lock.label.is_some());
            let bits =
                if has_value { OF_VALUES } else { 0 } | if has_label { OF_LABELS } else { 0 };
            format = FORMAT_OF_TOKENS + ((format - FORMAT_OF_TOKENS) | bits);
        }
        records = rest;
    }
    format
}

const HEADER_LEN: usize = 25;

const NONE: &[u8] = &[];

const PUT: u8 = 1;
const PUT_UNLOGGED: u8 = 2;
const REMOVE: u8 = 3;
const CLEAR: u8 = 4;
const PUT_COLLECTION: u8 = 5;
const PUT_COLLECTION_UNLOGGED: u8 = 6;
const PUT_LABELLED: u8 = 7;
const PUT_LABELLED_UNLOGGED: u8 = 8;

/// The database number that means all; there are sixteen.
const EVERY_DB: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn records_read_back_in_order() {
        let lock = LockRecord {
            db: 3,
            key: b"invoice:7",
            token: b"token-a",
            grant: (1 << 53) - 1,
            deadline: Deadline::after_millis(Time::ZERO, 30_000),
            is_logged: true,
            is_collection: false,
            label: None,
        };
        let labelled = LockRecord {
            label: Some(b"host:7:job"),
            ..lock
        };
        let records = [
            Record::Put(lock),
            Record::Put(labelled),
            Record::Put(LockRecord {
                is_logged: false,
                token: b"",
                ..labelled
            }),
            Record::Put(LockRecord {
                is_logged: false,
                deadline: Deadline::NEVER,
                token: b"",
                ..lock
            }),
            Record::Put(LockRecord {
                is_collection: true,
                ..lock
            }),
            Record::Put(LockRecord {
                is_collection: true,
                is_logged: false,
                ..lock
            }),
            Record::Remove {
                db: 15,
                key: b"invoice:8",
            },
            Record::Clear { db: Some(0) },
            Record::Clear { db: None },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.encode(&mut bytes));
        let mut rest = &bytes[..];
        for want in records {
            let (record, after) = Record::decode(rest).unwrap();
            assert_eq!(record, want);
            rest = after;
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn truncated_and_unknown_records_are_refused() {
        let mut bytes = Vec::new();
        Record::Remove { db: 0, key: b"key" }.encode(&mut bytes);
        for len in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..len]), None, "{len}");
        }
        for kind in [0, 9, 255] {
            bytes[0] = kind;
            assert_eq!(Record::decode(&bytes), None);
        }
    }
}
