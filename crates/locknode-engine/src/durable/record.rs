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

use crate::durable::frame::Fields;
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
}

impl<'a> Record<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, db, key, token, grant, deadline) = match *self {
            Self::Put(lock) => {
                let kind = match (lock.is_collection, lock.is_logged) {
                    (false, true) => PUT,
                    (false, false) => PUT_UNLOGGED,
                    (true, true) => PUT_COLLECTION,
                    (true, false) => PUT_COLLECTION_UNLOGGED,
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
        out.reserve(HEADER_LEN + key.len() + token.len());
        out.extend_from_slice(&[kind, db, k0, k1, k2]);
        out.extend_from_slice(&len(token).to_le_bytes());
        out.extend_from_slice(&grant.to_le_bytes());
        out.extend_from_slice(&deadline.to_le_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(token);
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
            PUT | PUT_UNLOGGED | PUT_COLLECTION | PUT_COLLECTION_UNLOGGED => {
                Self::Put(LockRecord {
                    db,
                    key,
                    token,
                    grant,
                    deadline: Deadline::from_bits(deadline),
                    is_logged: matches!(kind, PUT | PUT_COLLECTION),
                    is_collection: matches!(kind, PUT_COLLECTION | PUT_COLLECTION_UNLOGGED),
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

/// Returns whether any of these records holds a value of another type than a token.
pub(super) fn has_collection(mut records: &[u8]) -> bool {
    while let Some((record, rest)) = Record::decode(records) {
        if matches!(record, Record::Put(lock) if lock.is_collection) {
            return true;
        }
        records = rest;
    }
    false
}

const HEADER_LEN: usize = 25;

const NONE: &[u8] = &[];

const PUT: u8 = 1;
const PUT_UNLOGGED: u8 = 2;
const REMOVE: u8 = 3;
const CLEAR: u8 = 4;
const PUT_COLLECTION: u8 = 5;
const PUT_COLLECTION_UNLOGGED: u8 = 6;

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
        };
        let records = [
            Record::Put(lock),
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
        for kind in [0, 7, 255] {
            bytes[0] = kind;
            assert_eq!(Record::decode(&bytes), None);
        }
    }
}
