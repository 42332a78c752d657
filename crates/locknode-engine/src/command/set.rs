//! SET, which acquires a lock and extends it, and its older forms SETNX, SETEX, PSETEX and GETSET.

use locknode_resp::Encoder;

use super::condition::{Condition, InvalidDigest};
use super::context::Context;
use super::lifetime::{Lifetime, Unit};
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
    /// GET: reply the value that the key had.
    wants_old: bool,
}

/// On what SET depends.
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
    /// The options that the words spell; `None` is a syntax error.
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
    /// Whether the key, as it is, allows the write.
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
    match options.when.allows(&entry) {
        Ok(true) => {}
        Ok(false) if options.wants_old => return reply_old(&entry, reply),
        Ok(false) => return reply.null(),
        Err(invalid) => return invalid.refuse(reply),
    }
    if options.lifetime == Lifetime::Keep {
        deadline = entry.deadline().or(deadline);
    }
    let Some(outcome) = Outcome::of(&mut entry, deadline, reply) else {
        return;
    };
    if options.wants_old {
        reply_old(&entry, reply);
    } else {
        reply.ok();
    }
    outcome.write(entry, value);
}

/// What a write makes of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// It is held.
    Held(Permit),
    /// Its deadline has passed already: it is missing, as it would be found.
    Missing,
}

impl Outcome {
    /// What a write with this deadline (`None`: it has passed already) makes of a key; replies the refusal when it may
    /// not be held so long.
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
    let mut entry = context.entry_to_read(key);
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
    Flags::WRITE.and(Flags::DENYOOM),
    Keys::One,
    "string",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "set",
        syntax: "key value [NX|XX|IFEQ value|IFNE value|IFDEQ digest|IFDNE digest] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::LOOKS_THROUGH),
        summary: "Holds a token under a key, on conditions, for a time.",
        since: "1.0.0",
        ..WRITE
    },
    Spec {
        name: "setnx",
        syntax: "key value",
        call: exact!(setnx),
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        summary: "Holds a token under a key that is not held, without a deadline.",
        since: "1.0.0",
        ..WRITE
    },
    Spec {
        name: "setex",
        syntax: "key seconds value",
        call: exact!(set_with_ttl, ("setex", Unit::Seconds)),
        summary: "Holds a token under a key for a number of seconds.",
        since: "2.0.0",
        ..WRITE
    },
    Spec {
        name: "psetex",
        syntax: "key milliseconds value",
        call: exact!(set_with_ttl, ("psetex", Unit::Millis)),
        summary: "Holds a token under a key for a number of milliseconds.",
        since: "2.6.0",
        ..WRITE
    },
    Spec {
        name: "getset",
        syntax: "key value",
        call: exact!(getset),
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        summary: "Holds a token under a key and replies the one held before.",
        since: "1.0.0",
        ..WRITE
    },
];
