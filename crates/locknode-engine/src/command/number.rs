//! Tokens that are counters: INCR, INCRBY, DECR and DECRBY, often used as fencing tokens.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::refusal;
use super::spec::{Flags, Keys, Spec, exact, specs};
use crate::time::Deadline;

fn step(context: &mut Context<'_, '_>, by: i64, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    add(context, key, by, reply);
}

fn incrby(context: &mut Context<'_, '_>, [_, key, by]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    match parse_integer(by) {
        Some(by) => add(context, key, by, reply),
        None => reply.error(refusal::NOT_AN_INTEGER),
    }
}

fn decrby(context: &mut Context<'_, '_>, [_, key, by]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    match parse_integer(by).map(i64::checked_neg) {
        Some(Some(by)) => add(context, key, by, reply),
        Some(None) => reply.error("ERR decrement would overflow"),
        None => reply.error(refusal::NOT_AN_INTEGER),
    }
}

/// Adds to the integer that the key holds, or to zero if the key is missing. The deadline stays.
fn add(context: &mut Context<'_, '_>, key: &[u8], by: i64, reply: &mut Encoder<'_>) {
    if refusal::too_long(reply, key, &[]) {
        return;
    }
    let mut entry = context.entry(key);
    let (old, deadline) = match entry.lock() {
        Some(lock) => (parse_integer(lock.value), lock.deadline),
        None => (Some(0), Deadline::NEVER),
    };
    let Some(old) = old else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let Some(new) = old.checked_add(by) else {
        return reply.error("ERR increment or decrement would overflow");
    };
    if let Some(mut permit) = entry.permit(deadline, reply) {
        permit.keeps_deadline = true;
        entry.put(itoa::Buffer::new().format(new).as_bytes(), permit);
        reply.integer(new);
    }
}

const COUNT: Spec = Spec {
    since: "1.0.0",
    ..Spec::of(
        exact!(step, 1),
        Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        Keys::One,
        "string",
    )
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Adds one to the integer of a key.
    "incr" "key", ..COUNT;

    /// Subtracts one from the integer of a key.
    "decr" "key", call: exact!(step, -1), ..COUNT;

    /// Adds a number to the integer of a key.
    "incrby" "key increment", call: exact!(incrby), ..COUNT;

    /// Subtracts a number from the integer of a key.
    "decrby" "key decrement", call: exact!(decrby), ..COUNT;
};
