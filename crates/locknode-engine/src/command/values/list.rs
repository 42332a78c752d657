//! Lists: the queue of Redisson's fair lock, and the wake-up of python-redis-lock and walrus.

use locknode_resp::{Encoder, parse_integer};

use super::super::context::Context;
use super::super::refusal;
use super::super::spec::{Flags, Keys, Spec, exact, least, specs};
use super::{added_bytes, positions, read, reply_len};
use crate::values::{End, List};

fn push(
    context: &mut Context<'_, '_>,
    end: End,
    [_, key, first]: &[&[u8]; 3],
    others: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let elements = || std::iter::once(first).chain(others);
    let entry = context.entry(key);
    entry.grow::<List>(added_bytes(elements().copied()), reply, |list, reply| {
        elements().for_each(|element| list.push(end, element));
        reply_len(reply, list.len());
        true
    });
}

fn lpop(
    context: &mut Context<'_, '_>,
    [_, key]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let count = match words {
        [] => None,
        [count] => match parse_integer(count).map(usize::try_from) {
            Some(Ok(count)) => Some(count),
            _ => return reply.error("ERR value is out of range, must be positive"),
        },
        _ => return refusal::wrong_arity(reply, "lpop"),
    };
    context
        .entry(key)
        .shrink(reply, |list: Option<&mut List>, reply| {
            let (Some(list), count) = (list, count) else {
                if count.is_some() {
                    reply.null_array();
                } else {
                    reply.null();
                }
                return false;
            };
            if let Some(count) = count {
                reply.array(count.min(list.len()));
            }
            let mut removed = 0;
            while removed < count.unwrap_or(1)
                && let Some(element) = list.pop(End::Left)
            {
                reply.bulk(&element);
                removed += 1;
            }
            removed > 0
        });
}

fn lrem(
    context: &mut Context<'_, '_>,
    [_, key, count, element]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let Some(count) = parse_integer(count) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let end = if count < 0 { End::Right } else { End::Left };
    let count = match count {
        0 => usize::MAX,
        count => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    context
        .entry(key)
        .shrink(reply, |list: Option<&mut List>, reply| {
            let removed = list.map_or(0, |list| list.remove(element, end, count));
            reply_len(reply, removed);
            removed > 0
        });
}

fn llen(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    read(context, key, reply, |list: Option<&List>, reply| {
        reply_len(reply, list.map_or(0, List::len));
    });
}

fn lindex(context: &mut Context<'_, '_>, [_, key, index]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    let index = parse_integer(index);
    read(context, key, reply, |list: Option<&List>, reply| {
        let Some(list) = list else {
            return reply.null();
        };
        let Some(index) = index else {
            return reply.error(refusal::NOT_AN_INTEGER);
        };
        let len = i64::try_from(list.len()).unwrap_or(i64::MAX);
        let place = if index < 0 { len + index } else { index };
        match usize::try_from(place)
            .ok()
            .and_then(|place| list.get(place))
        {
            Some(element) => reply.bulk(element),
            None => reply.null(),
        }
    });
}

fn lrange(
    context: &mut Context<'_, '_>,
    [_, key, start, stop]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let (Some(start), Some(stop)) = (parse_integer(start), parse_integer(stop)) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    read(context, key, reply, |list: Option<&List>, reply| {
        let Some(list) = list else {
            return reply.array(0);
        };
        let within = positions(list.len(), start, stop);
        reply.array(within.len());
        list.range(within).for_each(|element| reply.bulk(element));
    });
}

const READ: Spec = Spec::of(exact!(llen), Flags::READONLY, Keys::One, "list");

const WRITE: Spec = Spec::of(
    least!(push, End::Left),
    Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    Keys::One,
    "list",
);

/// The commands of this family, each with a library that sends it.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Adds elements at the left of a list (python-redis-lock, walrus).
    "lpush" "key element [element ...]" since "1.0.0", ..WRITE;

    /// Adds elements at the right of a list (Redisson's fair lock, dv/redis-semaphore).
    "rpush" "key element [element ...]" since "1.0.0", call: least!(push, End::Right), ..WRITE;

    /// Removes elements at the left of a list (Redisson's fair lock, dv/redis-semaphore).
    "lpop" "key [count]" since "1.0.0",
        call: least!(lpop), flags: Flags::WRITE.and(Flags::FAST), ..WRITE;

    /// Removes elements of a list by value (Redisson's fair lock).
    "lrem" "key count element" since "1.0.0",
        call: exact!(lrem), flags: Flags::WRITE, ..WRITE;

    /// Counts the elements of a list (dv/redis-semaphore).
    "llen" "key" since "1.0.0", flags: Flags::READONLY.and(Flags::FAST), ..READ;

    /// Returns an element of a list (Redisson's fair lock).
    "lindex" "key index" since "1.0.0", call: exact!(lindex), ..READ;

    /// Returns a range of elements of a list (Redisson's fair lock).
    "lrange" "key start stop" since "1.0.0", call: exact!(lrange), ..READ;
};
