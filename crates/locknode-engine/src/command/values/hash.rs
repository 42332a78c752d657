//! Hashes: the locks of Redisson, with a count for each holder, and those of huey.

use locknode_resp::{Encoder, parse_integer};

use super::super::context::Context;
use super::super::refusal;
use super::super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::{added_bytes, len, read, remove, reply_len};
use crate::values::{Element, Field, Hash};

fn hset(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(([_, key], parts)) = args.split_first_chunk() else {
        return refusal::wrong_arity(reply, "hset");
    };
    let (pairs, []) = parts.as_chunks() else {
        return refusal::wrong_arity(reply, "hset");
    };
    let entry = context.entry(key);
    entry.grow::<Hash>(added_bytes(parts.iter().copied()), reply, |hash, reply| {
        let before = hash.len();
        for [field, value] in pairs {
            hash.put(Field::new(field, value));
        }
        reply_len(reply, hash.len() - before);
        true
    });
}

fn hsetnx(
    context: &mut Context<'_, '_>,
    [_, key, field, value]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let entry = context.entry(key);
    match entry.read::<Hash>() {
        Ok(Some(hash)) if hash.get(field).is_some() => return reply.integer(0),
        Ok(_) => {}
        Err(wrong) => return wrong.refuse(reply),
    }
    entry.grow::<Hash>(
        added_bytes([*field, *value].into_iter()),
        reply,
        |hash, reply| {
            hash.put(Field::new(field, value));
            reply.integer(1);
            true
        },
    );
}

/// Adds to the integer of a field. At the memory limit this is served for a field that is there: it
/// may be one release of a reentrant lock.
fn hincrby(
    context: &mut Context<'_, '_>,
    [_, key, field, by]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let Some(by) = parse_integer(by) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let is_out_of_memory = context.services.is_out_of_memory(context.space);
    let entry = context.entry(key);
    let old = match entry.read::<Hash>() {
        Ok(hash) => hash.and_then(|hash| hash.get(field)),
        Err(wrong) => return wrong.refuse(reply),
    };
    let (old, adds) = match old {
        Some(old) => (parse_integer(old.value()), 0),
        None if is_out_of_memory => return reply.error(refusal::OOM),
        None => (Some(0), added_bytes([*field, &[0; 20]].into_iter())),
    };
    let Some(old) = old else {
        return reply.error("ERR hash value is not an integer");
    };
    let Some(new) = old.checked_add(by) else {
        return reply.error("ERR increment or decrement would overflow");
    };
    entry.grow::<Hash>(adds, reply, |hash, reply| {
        let mut digits = itoa::Buffer::new();
        hash.put(Field::new(field, digits.format(new).as_bytes()));
        reply.integer(new);
        true
    });
}

fn hget(context: &mut Context<'_, '_>, [_, key, field]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    read(context, key, reply, |hash: Option<&Hash>, reply| match hash
        .and_then(|hash| hash.get(field))
    {
        Some(field) => reply.bulk(field.value()),
        None => reply.null(),
    });
}

fn hexists(context: &mut Context<'_, '_>, [_, key, field]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    read(context, key, reply, |hash: Option<&Hash>, reply| {
        let is_there = hash.is_some_and(|hash| hash.get(field).is_some());
        reply.integer(i64::from(is_there));
    });
}

fn hgetall(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    read(context, key, reply, |hash: Option<&Hash>, reply| {
        reply.map(hash.map_or(0, Hash::len));
        for field in hash.into_iter().flat_map(Hash::iter) {
            reply.bulk(field.key());
            reply.bulk(field.value());
        }
    });
}

fn hkeys(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    read(context, key, reply, |hash: Option<&Hash>, reply| {
        reply.array(hash.map_or(0, Hash::len));
        let fields = hash.into_iter().flat_map(Hash::iter);
        fields.for_each(|field| reply.bulk(field.key()));
    });
}

const READ: Spec = Spec::of(
    exact!(hget),
    Flags::READONLY.and(Flags::FAST),
    Keys::One,
    "hash",
);

const WRITE: Spec = Spec::of(
    Call::any(-4, hset),
    Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    Keys::One,
    "hash",
);

/// The commands of this family, each with a library that sends it.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Sets fields of a hash (Redisson's read-write lock, dv/redis-semaphore).
    "hset" "key field value [field value ...]" since "2.0.0", ..WRITE;

    /// Sets a field of a hash if it is missing (huey's lock_task).
    "hsetnx" "key field value" since "2.0.0", call: exact!(hsetnx), ..WRITE;

    /// Adds a number to the integer of a field: how Redisson acquires and releases a lock.
    "hincrby" "key field increment" since "2.0.0",
        call: exact!(hincrby), flags: Flags::WRITE.and(Flags::FAST), ..WRITE;

    /// Returns the value of a field (Redisson).
    "hget" "key field" since "2.0.0", ..READ;

    /// Checks whether a hash has a field (Redisson).
    "hexists" "key field" since "2.0.0", call: exact!(hexists), ..READ;

    /// Counts the fields of a hash (Redisson's read-write lock).
    "hlen" "key" since "2.0.0", call: exact!(len::<Hash>), ..READ;

    /// Returns all fields of a hash with their values (huey, dv/redis-semaphore).
    "hgetall" "key" since "2.0.0",
        call: exact!(hgetall), flags: Flags::READONLY, ..READ;

    /// Returns all fields of a hash (Redisson's read-write lock).
    "hkeys" "key" since "2.0.0",
        call: exact!(hkeys), flags: Flags::READONLY, ..READ;

    /// Removes fields of a hash: how huey and Redisson's read-write lock release.
    "hdel" "key field [field ...]" since "2.0.0",
        call: least!(remove, |hash: &mut Hash, field: &[u8]| hash.remove(field).is_some()), flags: Flags::WRITE.and(Flags::FAST), ..WRITE;
};
