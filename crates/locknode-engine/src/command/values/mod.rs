//! The commands of hashes, lists, sets and sorted sets: those that a lock library sends.

pub(super) mod hash;
pub(super) mod list;
pub(super) mod set;
pub(super) mod sorted_set;

use std::ops::Range;

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use crate::values::{ELEMENT_BYTES, Kind};

/// Reads a value, counted as a hit or a miss in INFO.
fn read<T: Kind>(
    context: &mut Context<'_, '_>,
    key: &[u8],
    reply: &mut Encoder<'_>,
    answer: impl FnOnce(Option<&T>, &mut Encoder<'_>),
) {
    let output_max = context.services.settings.output_max();
    let mark = reply.out_len();
    match context.entry_to_read(key).read::<T>() {
        Ok(value) => answer(value, reply),
        Err(wrong) => return wrong.refuse(reply),
    }
    if reply.out_len() - mark > output_max {
        refusal::reply_too_long(reply, mark);
    }
}

/// Replies with the number of elements.
fn len<T: Kind>(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    read(context, key, reply, |value: Option<&T>, reply| {
        reply_len(reply, value.map_or(0, T::len));
    });
}

/// Removes elements by their keys, and replies with how many there were.
fn remove<T: Kind>(
    context: &mut Context<'_, '_>,
    remove_one: fn(&mut T, &[u8]) -> bool,
    [_, key, first]: &[&[u8]; 3],
    others: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let entry = context.entry(key);
    entry.shrink(reply, |value: Option<&mut T>, reply| {
        let mut removed = 0;
        if let Some(value) = value {
            for element in std::iter::once(first).chain(others) {
                removed += usize::from(remove_one(value, element));
            }
        }
        reply_len(reply, removed);
        removed > 0
    });
}

/// Returns what these parts add to a value at most.
fn added_bytes<'a>(parts: impl Iterator<Item = &'a [u8]>) -> usize {
    parts.map(|part| part.len() + ELEMENT_BYTES).sum()
}

/// Returns the positions from `start` to `stop`, both included, of `len`; a negative one counts from
/// the end.
fn positions(len: usize, start: i64, stop: i64) -> Range<usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let absolute = |position: i64| {
        if position < 0 {
            (len.saturating_add(position)).max(-1)
        } else {
            position
        }
    };
    let (start, end) = (absolute(start).max(0), (absolute(stop)).min(len - 1) + 1);
    let place = |position: i64| usize::try_from(position).unwrap_or(0);
    if start < end {
        place(start)..place(end)
    } else {
        0..0
    }
}

/// Replies with a number of elements.
fn reply_len(reply: &mut Encoder<'_>, len: usize) {
    reply.integer(i64::try_from(len).unwrap_or(i64::MAX));
}
