//! Reading tokens: GET, GETDEL, GETEX, MGET, GETRANGE, SUBSTR, STRLEN and DIGEST.

use locknode_resp::{Encoder, parse_integer};

use super::condition::digest;
use super::context::Context;
use super::expiry::settle;
use super::lifetime::Lifetime;
use super::option_word::OptionWord;
use super::refusal;
use super::set::Outcome;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use crate::entry::Entry;
use crate::time::Deadline;

fn get(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let Some(entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    match entry.value() {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
}

fn getdel(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let Some(entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    if !entry.may_remove(reply) {
        return;
    }
    match entry.value() {
        Some(value) => reply.bulk(value),
        None => return reply.null(),
    }
    entry.remove();
}

fn getex(
    context: &mut Context<'_, '_>,
    [_, key]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let Some(lifetime) = getex_lifetime(words) else {
        return refusal::syntax(reply);
    };
    let moment = context.moment;
    let Some(mut entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    // Redis parses the number only if there is a key to which it could apply.
    if !entry.is_live() {
        return reply.null();
    }
    let is_endless = entry.deadline() == Some(Deadline::NEVER);
    let deadline = match lifetime {
        Lifetime::Unspecified | Lifetime::Keep => {
            return reply.bulk(entry.value().unwrap_or_default());
        }
        // Not a change, for those who watch the key.
        Lifetime::Persist if is_endless => {
            return reply.bulk(entry.value().unwrap_or_default());
        }
        Lifetime::Persist => Some(Deadline::NEVER),
        Lifetime::Ends { unit, number } => match unit.deadline(number, moment) {
            Ok(deadline) => deadline,
            Err(invalid) => return invalid.refuse(reply, "getex"),
        },
    };
    if let Some(outcome) = Outcome::of(&mut entry, deadline, reply) {
        reply.bulk(entry.value().unwrap_or_default());
        settle(outcome, entry);
    }
}

fn getex_lifetime<'a>(mut words: &[&'a [u8]]) -> Option<Lifetime<'a>> {
    let mut lifetime = Lifetime::Unspecified;
    while let Some((word, rest)) = words.split_first() {
        words = match OptionWord::of(word)? {
            OptionWord::KeepTtl => return None,
            word => lifetime.take(word, rest)?,
        };
    }
    Some(lifetime)
}

fn mget(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let keys = args.get(1..).unwrap_or_default();
    let mark = reply.out_len();
    let output_max = context.services.settings.output_max();
    reply.array(keys.len());
    for key in keys {
        let entry = context.entry_to_read(key);
        match Some(&entry)
            .filter(|it| !it.is_collection())
            .and_then(Entry::value)
        {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
        if reply.out_len() - mark > output_max {
            return refusal::reply_too_long(reply, mark);
        }
    }
}

fn getrange(
    context: &mut Context<'_, '_>,
    [_, key, start, end]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let (Some(start), Some(end)) = (parse_integer(start), parse_integer(end)) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let Some(entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    reply.bulk(range(entry.value().unwrap_or_default(), start, end));
}

/// The bytes from `start` to `end`, both included; a negative position counts from the end of the
/// value.
fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    // Clamped to the first byte, two positions before it would otherwise meet there.
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let len = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let absolute = |position: i64| {
        if position < 0 {
            (len + position).max(0)
        } else {
            position
        }
    };
    let (start, end) = (absolute(start), absolute(end).min(len - 1));
    if start > end {
        return &[];
    }
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) => value.get(start..=end).unwrap_or_default(),
        _ => &[],
    }
}

fn strlen(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let Some(entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    let len = entry.value().map_or(0, <[u8]>::len);
    reply.integer(i64::try_from(len).unwrap_or(i64::MAX));
}

fn digest_of(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let Some(entry) = context.entry_to_read(key).only_string(reply) else {
        return;
    };
    match entry.value() {
        Some(value) => reply.bulk(&digest(value)),
        None => reply.null(),
    }
}

const READ: Spec = Spec::of(
    exact!(get),
    Flags::READONLY.and(Flags::FAST),
    Keys::One,
    "string",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Returns the token of a key.
    "get" "key" since "1.0.0", ..READ;

    /// Returns the token of a key and releases the key.
    "getdel" "key" since "6.2.0",
        call: exact!(getdel), flags: Flags::WRITE.and(Flags::FAST), ..READ;

    /// Returns the token of a key and moves the key's deadline.
    "getex" "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]"
        since "6.2.0", call: least!(getex), flags: Flags::WRITE.and(Flags::FAST), ..READ;

    /// Returns the tokens of several keys.
    "mget" "key [key ...]" since "1.0.0",
        call: Call::any(-2, mget), keys: Keys::Each { step: 1 }, ..READ;

    /// Returns a part of the token of a key.
    "getrange" "key start end" since "2.4.0",
        call: exact!(getrange), flags: Flags::READONLY, ..READ;

    /// The older name of GETRANGE.
    "substr" "key start end" since "1.0.0", call: exact!(getrange), flags: Flags::READONLY, ..READ;

    /// Returns the length of the token of a key, in bytes.
    "strlen" "key" since "2.2.0", call: exact!(strlen), ..READ;

    /// Returns the XXH3 digest of the token of a key, for IFDEQ and IFDNE.
    "digest" "key" since "8.4.0",
        call: exact!(digest_of), flags: Flags::READONLY.and(Flags::FAST), ..READ;
};
