//! Deadlines: EXPIRE and TTL with their forms, and PERSIST.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::lifetime::{MILLIS_PER_SECOND, NO_DEADLINE, Unit};
use super::refusal;
use super::set::Outcome;
use super::spec::{Flags, Keys, Spec, exact, least, specs};
use crate::entry::Entry;
use crate::time::{Deadline, Moment};

/// The options of one EXPIRE.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

/// A new deadline, in both representations.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Unix milliseconds, by which Redis decides whether it has passed.
    unix_ms: i64,
    deadline: Deadline,
    is_absolute: bool,
}

impl Options {
    fn parse(words: &[&[u8]], reply: &mut Encoder<'_>) -> Option<Self> {
        let mut options = Self::default();
        for word in words {
            let option = match word {
                _ if word.eq_ignore_ascii_case(b"nx") => &mut options.nx,
                _ if word.eq_ignore_ascii_case(b"xx") => &mut options.xx,
                _ if word.eq_ignore_ascii_case(b"gt") => &mut options.gt,
                _ if word.eq_ignore_ascii_case(b"lt") => &mut options.lt,
                _ => {
                    let word = refusal::quoted(word, word.len());
                    reply.error_bytes(&[b"ERR Unsupported option ", word].concat());
                    return None;
                }
            };
            *option = true;
        }
        if options.nx && (options.xx || options.gt || options.lt) {
            reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
            return None;
        }
        if options.gt && options.lt {
            reply.error("ERR GT and LT options at the same time are not compatible");
            return None;
        }
        Some(options)
    }

    /// Returns whether a key with this deadline may get the new one. No deadline counts as the
    /// latest of all.
    fn allow(self, current: Deadline, target: Target, moment: Moment) -> bool {
        if current == Deadline::NEVER {
            return !self.xx && !self.gt;
        }
        let order = target.cmp_with(current, moment);
        !self.nx && (!self.gt || order.is_gt()) && (!self.lt || order.is_lt())
    }
}

impl Target {
    /// Returns the target for a number; `None` when it overflows.
    fn of(number: i64, unit: Unit, moment: Moment) -> Option<Self> {
        let ms = number.checked_mul(unit.millis())?;
        let is_absolute = unit.is_absolute();
        let (unix_ms, deadline) = if is_absolute {
            (ms, Deadline::at_unix_millis(moment, ms))
        } else {
            let unix_ms = ms.checked_add(moment.wall.as_unix_millis())?;
            (unix_ms, Deadline::after_millis(moment.time, ms))
        };
        Some(Self {
            unix_ms,
            deadline,
            is_absolute,
        })
    }

    /// Compares. A timestamp compares by its own milliseconds: the clocks that translate it differ
    /// by nanoseconds between two readings, and a key's own timestamp must not count as later than
    /// itself.
    fn cmp_with(self, current: Deadline, moment: Moment) -> std::cmp::Ordering {
        match current.unix_millis(moment) {
            Some(current_ms) if self.is_absolute => self.unix_ms.cmp(&current_ms),
            _ => self.deadline.cmp(&current),
        }
    }
}

fn move_deadline(
    context: &mut Context<'_, '_>,
    (name, unit): (&str, Unit),
    [_, key, number]: &[&[u8]; 3],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let Some(options) = Options::parse(words, reply) else {
        return;
    };
    let Some(number) = parse_integer(number) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let Some(target) = Target::of(number, unit, context.moment) else {
        return refusal::invalid_expire(reply, name);
    };
    let moment = context.moment;
    let mut entry = context.entry(key);
    let Some(current) = entry.deadline() else {
        return reply.integer(0);
    };
    if !options.allow(current, target, moment) {
        return reply.integer(0);
    }
    let is_ahead = target.unix_ms > moment.wall.as_unix_millis();
    let deadline = is_ahead.then_some(target.deadline);
    if let Some(outcome) = Outcome::of(&mut entry, deadline, reply) {
        settle(outcome, entry);
        reply.integer(1);
    }
}

/// Moves the deadline of a live key, or removes the key if the deadline has passed.
pub(super) fn settle(outcome: Outcome, entry: Entry<'_>) {
    match outcome {
        Outcome::Held(permit) => entry.extend(permit),
        Outcome::Missing => {
            entry.remove();
        }
    }
}

fn persist(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let mut entry = context.entry(key);
    let deadline = entry.deadline();
    let has_deadline = deadline.is_some_and(|deadline| deadline != Deadline::NEVER);
    if has_deadline {
        let Some(permit) = entry.permit(Deadline::NEVER, reply) else {
            return;
        };
        entry.extend(permit);
    }
    reply.integer(i64::from(has_deadline));
}

fn show_deadline(
    context: &mut Context<'_, '_>,
    show: fn(Deadline, Moment) -> Option<i64>,
    [_, key]: &[&[u8]; 2],
    reply: &mut Encoder<'_>,
) {
    let moment = context.moment;
    reply.integer(match context.entry_to_read(key).deadline() {
        Some(deadline) => show(deadline, moment).unwrap_or(NO_DEADLINE),
        None => NO_KEY,
    });
}

fn millis_left(deadline: Deadline, moment: Moment) -> Option<i64> {
    deadline.remaining_millis(moment.time)
}

fn seconds_left(deadline: Deadline, moment: Moment) -> Option<i64> {
    millis_left(deadline, moment).map(to_seconds)
}

fn unix_seconds(deadline: Deadline, moment: Moment) -> Option<i64> {
    deadline.unix_millis(moment).map(to_seconds)
}

/// Redis rounds half up.
fn to_seconds(ms: i64) -> i64 {
    ms / MILLIS_PER_SECOND + i64::from(ms % MILLIS_PER_SECOND >= MILLIS_PER_SECOND / 2)
}

/// The reply of the TTL commands for a missing key.
const NO_KEY: i64 = -2;

const MOVE: Spec = Spec::of(
    least!(move_deadline, ("expire", Unit::Seconds)),
    Flags::WRITE.and(Flags::FAST),
    Keys::One,
    "generic",
);

const SHOW: Spec = Spec::of(
    exact!(show_deadline, seconds_left),
    Flags::READONLY.and(Flags::FAST),
    Keys::One,
    "generic",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Sets the deadline of a key, in seconds from now.
    "expire" "key seconds [NX|XX|GT|LT]" since "1.0.0", ..MOVE;

    /// Sets the deadline of a key, in milliseconds from now.
    "pexpire" "key milliseconds [NX|XX|GT|LT]" since "2.6.0",
        call: least!(move_deadline, ("pexpire", Unit::Millis)), ..MOVE;

    /// Sets the deadline of a key, as Unix seconds.
    "expireat" "key unix-time-seconds [NX|XX|GT|LT]" since "1.2.0",
        call: least!(move_deadline, ("expireat", Unit::UnixSeconds)), ..MOVE;

    /// Sets the deadline of a key, as Unix milliseconds.
    "pexpireat" "key unix-time-milliseconds [NX|XX|GT|LT]" since "2.6.0",
        call: least!(move_deadline, ("pexpireat", Unit::UnixMillis)), ..MOVE;

    /// Removes the deadline of a key.
    "persist" "key" since "2.2.0", call: exact!(persist), ..MOVE;

    /// Returns the time left of a key, in seconds.
    "ttl" "key" since "1.0.0", ..SHOW;

    /// Returns the time left of a key, in milliseconds.
    "pttl" "key" since "2.6.0", call: exact!(show_deadline, millis_left), ..SHOW;

    /// Returns the deadline of a key as Unix seconds.
    "expiretime" "key" since "7.0.0", call: exact!(show_deadline, unix_seconds), ..SHOW;

    /// Returns the deadline of a key as Unix milliseconds.
    "pexpiretime" "key" since "7.0.0", call: exact!(show_deadline, Deadline::unix_millis), ..SHOW;
};
