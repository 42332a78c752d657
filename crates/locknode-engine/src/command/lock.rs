//! Locks with fencing tokens: LOCK.ACQUIRE, LOCK.EXTEND, LOCK.RELEASE, LOCK.FENCE, LOCK.GET and
//! LOCK.FORCE; see `SPEC.md`.
//!
//! They change a key as `SET key token NX PX ttl` and the scripts of lock libraries do, and both
//! see each other's locks; these commands also return the key's fence counter `[C1]`.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::lifetime::{NO_DEADLINE, deadline_after};
use super::refusal;
use super::spec::{Flags, Keys, Spec, exact, least};
use crate::fence::{FENCE_IMPORT_MAX, Grant};
use crate::label::Label;
use crate::time::Time;

/// Replies with `[1, fence, ttl]`, or with `[0, fence, the holder's time left]`.
fn acquire(
    context: &mut Context<'_, '_>,
    [_, key, token, ttl]: &[&[u8]; 4],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let (floor, label) = match words {
        [] => (0, None),
        _ => match options(words, context.moment.time, reply) {
            Some(options) => options,
            None => return,
        },
    };
    let Some(deadline) = deadline_after(context.moment, ttl, reply, "lock.acquire") else {
        return;
    };
    if refusal::too_long(reply, key, token) {
        return;
    }
    let now = context.moment.time;
    let mut entry = context.entry(key);
    if let Some(held_until) = entry.deadline() {
        entry.refused();
        let fence = entry.counter();
        return outcome(reply, 0, fence, held_until.remaining_millis(now));
    }
    let Some(permit) = entry.permit(deadline, reply) else {
        return;
    };
    let permit = permit.above(floor);
    let fence = match label {
        None => entry.put(token, permit),
        Some(label) => entry.put_labelled(token, &label, permit),
    };
    outcome(reply, 1, fence, deadline.remaining_millis(now));
}

/// Parses `FLOOR fence` and `LABEL text`.
fn options<'a>(
    words: &[&'a [u8]],
    now: Time,
    reply: &mut Encoder<'_>,
) -> Option<(u64, Option<Label<'a>>)> {
    let (mut floor, mut label) = (None, None);
    for pair in words.chunks(2) {
        match pair {
            [word, text] if floor.is_none() && word.eq_ignore_ascii_case(b"floor") => {
                floor = Some(fence(text, reply)?);
            }
            [word, text] if label.is_none() && word.eq_ignore_ascii_case(b"label") => {
                label = Some(Label::new(text, now, reply)?);
            }
            _ => {
                refusal::syntax(reply);
                return None;
            }
        }
    }
    Some((floor.unwrap_or(0), label))
}

fn outcome(reply: &mut Encoder<'_>, granted: i64, fence: u64, remaining_ms: Option<i64>) {
    reply.array(3);
    reply.integer(granted);
    reply.integer(fence.cast_signed());
    reply.integer(remaining_ms.unwrap_or(NO_DEADLINE));
}

fn extend(
    context: &mut Context<'_, '_>,
    [_, key, token, ttl]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let Some(deadline) = deadline_after(context.moment, ttl, reply, "lock.extend") else {
        return;
    };
    let Some(mut entry) = context.entry(key).only_string(reply) else {
        return;
    };
    if entry.value() != Some(token) {
        if entry.is_live() {
            entry.foreign_extension(());
        }
        return reply.integer(0);
    }
    if let Some(permit) = entry.permit(deadline, reply) {
        entry.extend(permit);
        reply.integer(1);
    }
}

fn release(context: &mut Context<'_, '_>, [_, key, token]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    let Some(entry) = context.entry(key).only_string(reply) else {
        return;
    };
    let is_holder = entry.value() == Some(token);
    if is_holder {
        if !entry.may_remove(reply) {
            return;
        }
        entry.remove();
    } else if entry.is_live() {
        entry.foreign_release(());
    }
    reply.integer(i64::from(is_holder));
}

/// The write-back: raises the counter while that very grant is in force `[F5]`.
fn write_back(
    context: &mut Context<'_, '_>,
    [_, key, token, grant, wanted]: &[&[u8]; 5],
    reply: &mut Encoder<'_>,
) {
    let Some(grant) = parse_integer(grant) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let Some(wanted) = fence(wanted, reply) else {
        return;
    };
    let Some(mut entry) = context.entry(key).only_string(reply) else {
        return;
    };
    let is_holder = entry.value() == Some(token)
        && entry.grant().map(Grant::counter) == u64::try_from(grant).ok();
    if is_holder {
        entry.import(wanted);
    }
    reply.integer(i64::from(is_holder));
}

fn get(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let now = context.moment.time;
    let Some(mut entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    let (Some(grant), fence) = (entry.grant(), entry.counter()) else {
        return reply.null();
    };
    let Some(lock) = entry.lock() else {
        return reply.null();
    };
    let label = entry.label();
    reply.array(if label.is_some() { 6 } else { 4 });
    reply.bulk(lock.value);
    reply.integer(lock.deadline.remaining_millis(now).unwrap_or(NO_DEADLINE));
    reply.integer(grant.counter().cast_signed());
    reply.integer(fence.cast_signed());
    if let Some(label) = label {
        reply.bulk(label.text);
        reply.integer(label.held_ms(now));
    }
}

/// Releases a key no matter who holds it, and raises its counter, so that no fencing token from before is
/// as high as what this replies `[C3]`.
fn force(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let now = context.moment.time;
    let services = context.services;
    let by = context.session.client.addr.clone();
    let mut entry = context.entry(key);
    if !entry.may_remove(reply) {
        return;
    }
    let fence = entry.counter();
    if fence < FENCE_IMPORT_MAX {
        entry.import(fence + 1);
    }
    let fence = entry.counter();
    let (Some(deadline), Some(grant)) = (entry.deadline(), entry.grant()) else {
        reply.array(2);
        reply.integer(0);
        return reply.integer(fence.cast_signed());
    };
    let label = entry.label();
    services.host.note(&forced(key, label, now, &by));
    reply.array(if label.is_some() { 7 } else { 5 });
    reply.integer(1);
    reply.integer(fence.cast_signed());
    if entry.is_collection() {
        reply.null();
    } else {
        reply.bulk(entry.value().unwrap_or_default());
    }
    reply.integer(deadline.remaining_millis(now).unwrap_or(NO_DEADLINE));
    reply.integer(grant.counter().cast_signed());
    if let Some(label) = label {
        reply.bulk(label.text);
        reply.integer(label.held_ms(now));
    }
    entry.remove();
}

/// The line for the log.
fn forced(key: &[u8], label: Option<Label<'_>>, now: Time, by: &str) -> String {
    let key = String::from_utf8_lossy(key.get(..KEY_SHOWN_MAX).unwrap_or(key));
    let holder = match label {
        None => "a holder without a label".to_owned(),
        Some(label) => {
            let since = match label.since {
                Some(since) => format!("for {:.3} s", now.since(since).as_secs_f64()),
                None => "since before the restart".to_owned(),
            };
            format!("{}, {since}", String::from_utf8_lossy(label.text))
        }
    };
    format!("the lock {key} was released by force from {by}; it was held by {holder}")
}

/// Parses a fence from a client; refuses one that no node would return `[F6]`.
fn fence(number: &[u8], reply: &mut Encoder<'_>) -> Option<u64> {
    let Some(number) = parse_integer(number) else {
        reply.error(refusal::NOT_AN_INTEGER);
        return None;
    };
    let fence = u64::try_from(number)
        .ok()
        .filter(|&fence| fence <= FENCE_IMPORT_MAX);
    if fence.is_none() {
        reply.error("ERR fence is out of range");
    }
    fence
}

const LOCK: Spec = Spec::of(
    exact!(release),
    Flags::WRITE.and(Flags::FAST),
    Keys::One,
    "string",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "lock.acquire",
        syntax: "key token milliseconds [FLOOR fence] [LABEL text]",
        call: least!(acquire),
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        summary: "Sets the token of a free key with a TTL in milliseconds, and returns the key's fence counter.",
        ..LOCK
    },
    Spec {
        name: "lock.extend",
        syntax: "key token milliseconds",
        call: exact!(extend),
        summary: "Moves the deadline of a key if its token matches.",
        ..LOCK
    },
    Spec {
        name: "lock.release",
        syntax: "key token",
        summary: "Releases a key if its token matches.",
        ..LOCK
    },
    Spec {
        name: "lock.fence",
        syntax: "key token grant fence",
        call: exact!(write_back),
        summary: "Raises the fence counter of a key while its token and grant match.",
        ..LOCK
    },
    Spec {
        name: "lock.get",
        syntax: "key",
        call: exact!(get),
        flags: Flags::READONLY.and(Flags::FAST),
        summary: "Returns the token, the time left, the grant and the fence counter of a key; its label, and how long it has been held.",
        ..LOCK
    },
    Spec {
        name: "lock.force",
        syntax: "key",
        call: exact!(force),
        flags: Flags::WRITE.and(Flags::NOSCRIPT).and(Flags::FAST),
        summary: "Releases a key no matter who holds it, raises its fence counter, and returns who held it.",
        ..LOCK
    },
];

/// The longest key that the log shows whole.
const KEY_SHOWN_MAX: usize = 128;
