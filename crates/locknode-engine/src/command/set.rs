//! SET, which acquires and extends locks, and its older forms SETNX, SETEX, PSETEX and GETSET.

use locknode_resp::Encoder;

use super::condition::{Condition, InvalidDigest};
use super::context::Context;
use super::lifetime::{Lifetime, Unit, deadline_after};
use super::option_word::OptionWord;
use super::refusal;
use super::spec::{Flags, Keys, Spec, exact, least};
use crate::entry::Entry;
use crate::guard::Permit;
use crate::time::Deadline;

/// The options of one SET.
#[derive(Clone, Copy, Debug, Default)]
struct Options<'a> {
    when: When<'a>,
    lifetime: Lifetime<'a>,
    /// GET: reply with the key's previous value.
    wants_old: bool,
}

/// The condition of a SET.
#[derive(Clone, Copy, Debug, Default)]
enum When<'a> {
    #[default]
    Always,
    /// NX.
    Missing,
    /// XX.
    Present,
    /// IFEQ, IFNE, IFDEQ, IFDNE.
    Value(Condition<'a>),
}

impl<'a> Options<'a> {
    /// Parses the options; `None` is a syntax error.
    #[inline]
    fn parse(mut words: &[&'a [u8]]) -> Option<Self> {
        let mut options = Self::default();
        while let Some((word, rest)) = words.split_first() {
            let word = OptionWord::of(word)?;
            words = match word {
                OptionWord::Nx if matches!(options.when, When::Always | When::Missing) => {
                    options.when = When::Missing;
                    rest
                }
                OptionWord::Xx if matches!(options.when, When::Always | When::Present) => {
                    options.when = When::Present;
                    rest
                }
                OptionWord::Nx | OptionWord::Xx | OptionWord::Persist => return None,
                OptionWord::Get => {
                    options.wants_old = true;
                    rest
                }
                OptionWord::IfEq | OptionWord::IfNe | OptionWord::IfDeq | OptionWord::IfDne => {
                    let (operand, rest) = rest.split_first()?;
                    if !matches!(options.when, When::Always) {
                        return None;
                    }
                    options.when = When::Value(Condition::of(word, operand)?);
                    rest
                }
                _ => options.lifetime.take(word, rest)?,
            };
        }
        Some(options)
    }
}

impl When<'_> {
    /// Returns whether the key, as it is, allows the write.
    #[inline]
    fn allows(self, entry: &Entry<'_>) -> Result<bool, InvalidDigest> {
        match self {
            Self::Always => Ok(true),
            Self::Missing => Ok(!entry.is_live()),
            Self::Present => Ok(entry.is_live()),
            Self::Value(condition) => match entry.value() {
                Some(value) => condition.holds(value),
                None => Ok(condition.holds_for_missing()),
            },
        }
    }
}

fn set(
    context: &mut Context<'_, '_>,
    [_, key, value]: &[&[u8]; 3],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    match words {
        [nx, px, ttl] | [px, ttl, nx] if OptionWord::are_nx_px(nx, px) => {
            return acquire(context, (key, value), ttl, reply);
        }
        _ => {}
    }
    let Some(options) = Options::parse(words) else {
        return refusal::syntax(reply);
    };
    let mut deadline = Some(Deadline::NEVER);
    if let Lifetime::Ends { unit, number } = options.lifetime {
        deadline = match unit.deadline(number, context.moment) {
            Ok(deadline) => deadline,
            Err(invalid) => return invalid.refuse(reply, "set"),
        };
    }
    if refusal::too_long(reply, key, value) {
        return;
    }
    let mut entry = context.entry(key);
    if options.wants_old {
        entry.count_read();
    }
    if options.wants_old || matches!(options.when, When::Value(_)) {
        let Some(string) = entry.only_string(reply) else {
            return;
        };
        entry = string;
    }
    match options.when.allows(&entry) {
        Ok(true) => {}
        Ok(false) => {
            if matches!(options.when, When::Missing) {
                entry.refused();
            }
            if options.wants_old {
                return reply_old(&entry, reply);
            }
            return reply.null();
        }
        Err(invalid) => return invalid.refuse(reply),
    }
    if options.lifetime == Lifetime::Keep {
        deadline = entry.deadline().or(deadline);
    }
    let Some(mut outcome) = Outcome::of(&mut entry, deadline, reply) else {
        return;
    };
    outcome.keep_deadline(options.lifetime == Lifetime::Keep);
    if options.wants_old {
        reply_old(&entry, reply);
    } else {
        reply.ok();
    }
    outcome.write(entry, value);
}

/// SET with NX and PX, which is how nearly every client acquires a lock: the general way, with what
/// the options decide decided.
#[inline]
fn acquire(
    context: &mut Context<'_, '_>,
    (key, token): (&[u8], &[u8]),
    ttl: &[u8],
    reply: &mut Encoder<'_>,
) {
    let Some(deadline) = deadline_after(context.moment, ttl, reply, "set") else {
        return;
    };
    if refusal::too_long(reply, key, token) {
        return;
    }
    let mut entry = context.entry(key);
    if entry.is_live() {
        entry.refused();
        return reply.null();
    }
    if let Some(permit) = entry.permit(deadline, reply) {
        reply.ok();
        entry.put(token, permit);
    }
}

/// The result of a write for a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// It is held.
    Held(Permit),
    /// Its deadline has already passed, so it is missing.
    Missing,
}

impl Outcome {
    /// Returns the result of a write with this deadline; `None` means that it has already passed.
    /// Replies with the refusal when the key may not be held that long.
    #[inline]
    pub(super) fn of(
        entry: &mut Entry<'_>,
        deadline: Option<Deadline>,
        reply: &mut Encoder<'_>,
    ) -> Option<Self> {
        match deadline {
            Some(deadline) => entry.permit(deadline, reply).map(Self::Held),
            None => entry.may_remove(reply).then_some(Self::Missing),
        }
    }

    /// Notes whether the deadline is the one that the key had before.
    #[inline]
    pub(super) const fn keep_deadline(&mut self, is_kept: bool) {
        if let Self::Held(permit) = self {
            permit.keeps_deadline = is_kept;
        }
    }

    /// Writes the key.
    #[inline]
    pub(super) fn write(self, entry: Entry<'_>, value: &[u8]) {
        match self {
            Self::Held(permit) => {
                entry.put(value, permit);
            }
            Self::Missing => {
                entry.remove();
            }
        }
    }
}

fn setnx(context: &mut Context<'_, '_>, [_, key, value]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    if refusal::too_long(reply, key, value) {
        return;
    }
    let mut entry = context.entry(key);
    if entry.is_live() {
        entry.refused();
        return reply.integer(0);
    }
    if let Some(permit) = entry.permit(Deadline::NEVER, reply) {
        entry.put(value, permit);
        reply.integer(1);
    }
}

fn set_with_ttl(
    context: &mut Context<'_, '_>,
    (name, unit): (&str, Unit),
    [_, key, ttl, value]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let deadline = match unit.deadline(ttl, context.moment) {
        Ok(deadline) => deadline,
        Err(invalid) => return invalid.refuse(reply, name),
    };
    if refusal::too_long(reply, key, value) {
        return;
    }
    let mut entry = context.entry(key);
    if let Some(outcome) = Outcome::of(&mut entry, deadline, reply) {
        outcome.write(entry, value);
        reply.ok();
    }
}

fn getset(context: &mut Context<'_, '_>, [_, key, value]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    if refusal::too_long(reply, key, value) {
        return;
    }
    let Some(mut entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    if let Some(permit) = entry.permit(Deadline::NEVER, reply) {
        reply_old(&entry, reply);
        entry.put(value, permit);
    }
}

fn reply_old(entry: &Entry<'_>, reply: &mut Encoder<'_>) {
    match entry.value() {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
}

const WRITE: Spec = Spec::of(
    least!(set),
    Flags::WRITE.and(Flags::DENYOOM).and(Flags::QUICK),
    Keys::One,
    "string",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "set",
        syntax: "key value [NX|XX|IFEQ value|IFNE value|IFDEQ digest|IFDNE digest] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
        summary: "Acquires or extends a lock: sets the token of a key, with conditions and a TTL.",
        since: "1.0.0",
        ..WRITE
    },
    Spec {
        name: "setnx",
        syntax: "key value",
        call: exact!(setnx),
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        summary: "Sets the token of a free key, without a deadline.",
        since: "1.0.0",
        ..WRITE
    },
    Spec {
        name: "setex",
        syntax: "key seconds value",
        call: exact!(set_with_ttl, ("setex", Unit::Seconds)),
        summary: "Sets the token of a key with a TTL in seconds.",
        since: "2.0.0",
        ..WRITE
    },
    Spec {
        name: "psetex",
        syntax: "key milliseconds value",
        call: exact!(set_with_ttl, ("psetex", Unit::Millis)),
        summary: "Sets the token of a key with a TTL in milliseconds.",
        since: "2.6.0",
        ..WRITE
    },
    Spec {
        name: "getset",
        syntax: "key value",
        call: exact!(getset),
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        summary: "Sets the token of a key and returns the previous one.",
        since: "1.0.0",
        ..WRITE
    },
];
