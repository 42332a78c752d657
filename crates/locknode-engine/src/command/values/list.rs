//! Lists: the queue of Redisson's fair lock, and the wake-up of python-redis-lock and walrus.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use locknode_resp::{Encoder, Protocol, parse_integer};

use super::super::context::{Context, Flow};
use super::super::refusal;
use super::super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::{added_bytes, len, positions, read, reply_len};
use crate::key_change::Cause;
use crate::session::ReplyMode;
use crate::shard::Shard;
use crate::time::Time;
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
    entry.shard.note_push(entry.db, key);
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

/// Pops the first element that any of the lists has, or waits for one.
fn blpop(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let words = args.get(1..).unwrap_or_default();
    let Some((timeout, keys)) = words.split_last() else {
        return refusal::wrong_arity(reply, "blpop");
    };
    let until = match wait_end(context.moment.time, timeout) {
        Ok(until) => until,
        Err(refusal) => return reply.error(refusal),
    };
    for key in keys {
        let entry = context.entry(key);
        match entry.read::<List>() {
            Ok(None) => continue,
            Ok(Some(_)) => {}
            Err(wrong) => return wrong.refuse(reply),
        }
        return entry.shrink(reply, |list: Option<&mut List>, reply| {
            let popped = list.and_then(|list| list.pop(End::Left));
            if let Some(element) = &popped {
                write_popped(key, element, reply);
            }
            popped.is_some()
        });
    }
    // Within a script or a transaction nobody waits.
    if context.needs.is_provisional {
        return reply.null_array();
    }
    let session = &mut *context.session;
    let client = Arc::clone(&session.client);
    let is_silent = matches!(session.reply_mode, ReplyMode::Off | ReplyMode::SkipNext);
    let waiters = &context.services.waiters;
    let waiter = waiters.add(client, session.db, keys, until, is_silent);
    if waiter.is_none() {
        return reply.error("ERR a connection waits for at most 1048576 bytes of keys");
    }
    session.waiter = waiter;
    context.flow = Flow::Blocked;
}

fn write_popped(key: &[u8], element: &[u8], reply: &mut Encoder<'_>) {
    reply.array(2);
    reply.bulk(key);
    reply.bulk(element);
}

/// Parses a timeout in seconds; zero means that there is none.
fn wait_end(now: Time, timeout: &[u8]) -> Result<Option<Time>, &'static str> {
    let seconds: Option<f64> = std::str::from_utf8(timeout)
        .ok()
        .and_then(|it| it.parse().ok());
    let seconds = seconds.filter(|seconds| !seconds.is_nan());
    let seconds = seconds.ok_or("ERR timeout is not a float or out of range")?;
    if seconds < 0.0 {
        return Err("ERR timeout is negative");
    }
    let wait = Duration::try_from_secs_f64(seconds).ok();
    let end = wait.filter(|wait| wait.as_secs() <= TIMEOUT_MAX_SECS);
    let wait = end.ok_or("ERR timeout is out of range")?;
    Ok((!wait.is_zero()).then_some(now.saturating_add(wait)))
}

impl Context<'_, '_> {
    /// Gives those who wait the elements that the command has pushed, in the order in which they came.
    #[cold]
    pub(crate) fn serve_waiters(&mut self) {
        let pushed: Vec<_> = self.space.shards().flat_map(Shard::take_pushed).collect();
        let (db, key_hash) = (self.session.db, self.key_hash.take());
        let mut served = Vec::new();
        let ready: BTreeSet<_> = pushed.iter().collect();
        for (db, key) in &pushed {
            self.session.db = *db;
            let waiters = Arc::clone(&self.services.waiters);
            let mut queues = waiters.lock();
            while let Some(waiter) = queues.first(*db, key) {
                // Of several lists that a script has pushed to, the first one that it waits for.
                let names = || waiter.keys().iter().map(|name| (*db, name.clone()));
                let popped = names()
                    .filter(|name| ready.contains(name))
                    .find_map(|(_, name)| Some((self.pop_for_waiter(&name)?, name)));
                let Some((element, name)) = popped else {
                    break;
                };
                queues.remove(&waiter);
                let cause = Cause {
                    command: Some("lpop"),
                    client: Some(waiter.client.id),
                };
                let (services, changes) = (self.services, self.take_changes());
                services.observers.report(changes, cause, &services.clients);
                waiter.reply(self.needs.need, |reply| {
                    write_popped(&name, &element, reply)
                });
                served.push(Arc::clone(&waiter.client));
            }
        }
        self.services.clients.wake_in_turn(served);
        (self.session.db, self.key_hash) = (db, key_hash);
    }

    /// Pops an element; `None` if there is none, or it cannot be popped.
    fn pop_for_waiter(&mut self, key: &[u8]) -> Option<Box<[u8]>> {
        let (mut popped, mut refusal) = (None, Vec::new());
        let reply = &mut Encoder::new(&mut refusal, Protocol::Resp2);
        self.entry(key).shrink(reply, |list: Option<&mut List>, _| {
            popped = list.and_then(|list| list.pop(End::Left));
            popped.is_some()
        });
        self.needs.end_command();
        popped
    }
}

fn lrem(
    context: &mut Context<'_, '_>,
    [_, key, count, element]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let Some(count) = parse_integer(count) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    if count == i64::MIN {
        return reply.error(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        );
    }
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

fn ltrim(
    context: &mut Context<'_, '_>,
    [_, key, start, stop]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let (Some(start), Some(stop)) = (parse_integer(start), parse_integer(stop)) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    context
        .entry(key)
        .shrink(reply, |list: Option<&mut List>, reply| {
            reply.ok();
            list.is_some_and(|list| {
                let kept = positions(list.len(), start, stop);
                let (right, left) = (list.len() - kept.end, kept.start);
                (0..right).for_each(|_| drop(list.pop(End::Right)));
                (0..left).for_each(|_| drop(list.pop(End::Left)));
                // As in Redis, a list that stays as it is counts as changed, too.
                true
            })
        });
}

/// The longest timeout: a thousand years.
const TIMEOUT_MAX_SECS: u64 = 1000 * 366 * 86_400;

const READ: Spec = Spec::of(exact!(len::<List>), Flags::READONLY, Keys::One, "list");

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

    /// Like LPOP of the first list that has elements, and waits if none has (python-redis-lock, walrus).
    "blpop" "key [key ...] timeout" since "2.0.0",
        call: Call::any(-3, blpop), flags: Flags::WRITE, keys: Keys::ButLast, ..WRITE;

    /// Removes elements of a list by value (Redisson's fair lock).
    "lrem" "key count element" since "1.0.0",
        call: exact!(lrem), flags: Flags::WRITE, ..WRITE;

    /// Removes the elements of a list outside of a range (walrus).
    "ltrim" "key start stop" since "1.0.0",
        call: exact!(ltrim), flags: Flags::WRITE, ..WRITE;

    /// Counts the elements of a list (dv/redis-semaphore).
    "llen" "key" since "1.0.0", flags: Flags::READONLY.and(Flags::FAST), ..READ;

    /// Returns an element of a list (Redisson's fair lock).
    "lindex" "key index" since "1.0.0", call: exact!(lindex), ..READ;

    /// Returns a range of elements of a list (Redisson's fair lock).
    "lrange" "key start stop" since "1.0.0", call: exact!(lrange), ..READ;
};
