//! The bytes of a slot: a header, then key and value; [`super`] draws the layout.

use crate::fence::Grant;
use crate::label::Label;
use crate::time::{Deadline, Time};

pub(super) fn write_header(
    slot: &mut [u8],
    deadline: Deadline,
    grant: Grant,
    db: u8,
    key_len: usize,
    value_len: usize,
) {
    slot[..8].copy_from_slice(&deadline.to_bits().to_le_bytes());
    slot[8..12].copy_from_slice(&header_word(db, key_len).to_le_bytes());
    slot[12..16].copy_from_slice(&len_u32(value_len).to_le_bytes());
    write_grant(slot, grant);
}

pub(super) fn write_grant(slot: &mut [u8], grant: Grant) {
    slot[16..HEADER_LEN].copy_from_slice(&grant.to_bits().to_le_bytes());
}

#[inline]
pub(super) fn grant(slot: &[u8]) -> Grant {
    let bytes = slot
        .get(16..HEADER_LEN)
        .and_then(|bytes| bytes.first_chunk());
    Grant::from_bits(u64::from_le_bytes(bytes.copied().unwrap_or_default()))
}

pub(super) fn header_word(db: u8, key_len: usize) -> u32 {
    (u32::from(db) << 24) | len_u32(key_len)
}

#[inline]
pub(super) fn key_len(slot: &[u8]) -> usize {
    (word(slot, 8) & 0x00ff_ffff) as usize
}

#[inline]
pub(super) fn value_len(slot: &[u8]) -> usize {
    word(slot, 12) as usize
}

#[inline]
pub(super) fn is_live(slot: &[u8]) -> bool {
    slot.len() >= HEADER_LEN && word(slot, 12) != FREE
}

#[inline]
pub(super) fn deadline(slot: &[u8]) -> Deadline {
    Deadline::from_bits(u64::from_le_bytes(
        slot.first_chunk().copied().unwrap_or_default(),
    ))
}

/// Returns the length of what a label adds to a slot.
pub(super) fn label_len(label: &Label<'_>) -> usize {
    LABEL_HEADER_LEN + label.text.len()
}

/// Writes a label behind an entry of `len` bytes.
pub(super) fn write_label(slot: &mut [u8], len: usize, label: &Label<'_>) {
    let since = label.since.map_or(BEFORE, Time::as_nanos);
    let text_at = len + LABEL_HEADER_LEN;
    slot[len] = u8::try_from(label.text.len()).unwrap_or(0);
    slot[len + 1..text_at].copy_from_slice(&since.to_le_bytes());
    slot[text_at..text_at + label.text.len()].copy_from_slice(label.text);
}

/// Reads the label of an entry that has one.
pub(super) fn label(slot: &[u8]) -> Option<Label<'_>> {
    if !grant(slot).is_labelled() {
        return None;
    }
    let behind = slot.get(HEADER_LEN + key_len(slot) + value_len(slot)..)?;
    let (&[text_len, ref since @ ..], text) = behind.split_first_chunk::<LABEL_HEADER_LEN>()?;
    let since = u64::from_le_bytes(*since);
    Some(Label {
        text: text.get(..usize::from(text_len))?,
        since: (since != BEFORE).then(|| Time::from_nanos(since)),
    })
}

/// Reads four bytes of a slot's header in one load.
#[inline]
pub(super) fn word(slot: &[u8], at: usize) -> u32 {
    let bytes = slot.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
    u32::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// Converts a length or number, which the limits below keep under 2^32; saturates otherwise.
pub(super) fn len_u32(len: usize) -> u32 {
    debug_assert!(u32::try_from(len).is_ok());
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The longest key: 2^24 - 1 bytes, what the three length bytes of the header can hold.
pub(crate) const KEY_LEN_MAX: usize = (1 << 24) - 1;

/// The longest value: 2^32 - 2 bytes, one below the mark of a free slot. Far above
/// `proto-max-bulk-len`.
pub(crate) const VALUE_LEN_MAX: usize = (u32::MAX - 1) as usize;

pub(super) const HEADER_LEN: usize = 24;

/// The length of a label's text, and since when the lock is held.
const LABEL_HEADER_LEN: usize = 9;

/// Since before this run of the node.
const BEFORE: u64 = u64::MAX;

pub(super) const FREE: u32 = u32::MAX;
