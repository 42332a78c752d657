//! Several keys at once, all or none: MSET, MSETNX and MSETEX.
//!
//! Every error is found before the first key is written.

use locknode_resp::{Encoder, parse_integer};
use smallvec::SmallVec;

use super::context::Context;
use super::lifetime::Lifetime;
use super::option_word::OptionWord;
use super::refusal;
use super::set::Outcome;
use super::spec::{Call, Flags, Keys, Spec, specs};
use crate::time::Deadline;

fn mset(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(pairs) = all_pairs(args, reply, "mset") else {
        return;
    };
    if put_all(context, pairs, Some(Deadline::NEVER), false, reply) {
        reply.ok();
    }
}

fn msetnx(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(pairs) = all_pairs(args, reply, "msetnx") else {
        return;
    };
    if !are_all(context, pairs, false) {
        return reply.integer(0);
    }
    if put_all(context, pairs, Some(Deadline::NEVER), false, reply) {
        reply.integer(1);
    }
}

fn msetex(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(([_, count], rest)) = args.split_first_chunk() else {
        return refusal::wrong_arity(reply, "msetex");
    };
    let count = match parse_integer(count) {
        Some(count @ 1..=PAIRS_MAX) => usize::try_from(count).unwrap_or(usize::MAX),
        _ => return reply.error("ERR invalid numkeys value"),
    };
    let (pairs, _) = rest.as_chunks();
    let Some(pairs) = pairs.get(..count) else {
        return reply.error("ERR wrong number of key-value pairs");
    };
    let words = rest.get(count * 2..).unwrap_or_default();
    let Some((wanted, lifetime)) = msetex_options(words) else {
        return refusal::syntax(reply);
    };
    let mut deadline = Some(Deadline::NEVER);
    if let Lifetime::Ends { unit, number } = lifetime {
        deadline = match unit.deadline(number, context.moment) {
            Ok(deadline) => deadline,
            Err(invalid) => return invalid.refuse(reply, "msetex"),
        };
    }
    if is_any_too_long(pairs, reply) {
        return;
    }
    if let Some(is_held) = wanted
        && !are_all(context, pairs, is_held)
    {
        return reply.integer(0);
    }
    if put_all(context, pairs, deadline, lifetime == Lifetime::Keep, reply) {
        reply.integer(1);
    }
}

/// Returns whether all keys are held, or none of them.
fn are_all(context: &mut Context<'_, '_>, pairs: &[[&[u8]; 2]], is_held: bool) -> bool {
    let mut pairs = pairs.iter();
    pairs.all(|[key, _]| context.entry(key).is_live() == is_held)
}

/// Returns whether all keys must be held (XX) or missing (NX), and their deadline.
fn msetex_options<'a>(mut words: &[&'a [u8]]) -> Option<(Option<bool>, Lifetime<'a>)> {
    let (mut wanted, mut lifetime) = (None, Lifetime::Unspecified);
    while let Some((word, rest)) = words.split_first() {
        words = match OptionWord::of(word)? {
            OptionWord::Nx if wanted != Some(true) => {
                wanted = Some(false);
                rest
            }
            OptionWord::Xx if wanted != Some(false) => {
                wanted = Some(true);
                rest
            }
            OptionWord::Persist => return None,
            word => lifetime.take(word, rest)?,
        };
    }
    Some((wanted, lifetime))
}

/// Returns the arguments as pairs of key and value, if they are complete and not too long.
fn all_pairs<'p, 'a>(
    args: &'p [&'a [u8]],
    reply: &mut Encoder<'_>,
    name: &str,
) -> Option<&'p [[&'a [u8]; 2]]> {
    let (pairs, single) = args.get(1..)?.as_chunks();
    if !single.is_empty() {
        refusal::wrong_arity(reply, name);
        return None;
    }
    (!is_any_too_long(pairs, reply)).then_some(pairs)
}

fn is_any_too_long(pairs: &[[&[u8]; 2]], reply: &mut Encoder<'_>) -> bool {
    let mut pairs = pairs.iter();
    pairs.any(|[key, value]| refusal::too_long(reply, key, value))
}

/// Writes all pairs, or refuses one and writes none; returns whether it wrote.
fn put_all(
    context: &mut Context<'_, '_>,
    pairs: &[[&[u8]; 2]],
    deadline: Option<Deadline>,
    keeps_deadlines: bool,
    reply: &mut Encoder<'_>,
) -> bool {
    let mut outcomes = SmallVec::<[Outcome; PAIRS_INLINE]>::new();
    for [key, _] in pairs {
        let mut deadline = deadline;
        let mut entry = context.entry(key);
        if keeps_deadlines {
            deadline = entry.deadline().or(deadline);
        }
        match Outcome::of(&mut entry, deadline, reply) {
            Some(mut outcome) => {
                outcome.keep_deadline(keeps_deadlines);
                outcomes.push(outcome);
            }
            None => return false,
        }
    }
    for ([key, value], outcome) in pairs.iter().zip(outcomes) {
        outcome.write(context.entry(key), value);
    }
    true
}

/// Pairs without allocation: two or three keys at once are common.
const PAIRS_INLINE: usize = 4;

/// Redis's limit on MSETEX's count: the largest `int`.
const PAIRS_MAX: i64 = i32::MAX as i64;

const WRITE_ALL: Spec = Spec {
    since: "1.0.1",
    ..Spec::of(
        Call::any(-3, mset),
        Flags::WRITE.and(Flags::DENYOOM),
        Keys::Each { step: 2 },
        "string",
    )
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Sets the tokens of several keys.
    "mset" "key value [key value ...]", ..WRITE_ALL;

    /// Sets the tokens of several keys if none of them is held.
    "msetnx" "key value [key value ...]", call: Call::any(-3, msetnx), ..WRITE_ALL;

    /// Sets the tokens of several keys, with a condition and a TTL.
    "msetex" "numkeys key value [key value ...] [NX|XX] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]"
        since "8.4.0", call: Call::any(-4, msetex), keys: Keys::Counted { at: 1, step: 2 }, ..WRITE_ALL;
};
