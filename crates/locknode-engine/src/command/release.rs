//! Releasing locks: DEL, UNLINK, DELEX and DELIFEQ.

use locknode_resp::Encoder;

use super::condition::Condition;
use super::context::Context;
use super::option_word::OptionWord;
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact};

fn del(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let keys = args.get(1..).unwrap_or_default();
    if !context.may_remove_all(keys, reply) {
        return;
    }
    let mut removed = 0;
    for key in keys {
        removed += i64::from(context.entry(key).remove());
    }
    reply.integer(removed);
}

fn delex(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_, key, word, operand] => {
            let condition = OptionWord::of(word).and_then(|word| Condition::of(word, operand));
            delete_if(context, key, condition, reply);
        }
        [_, _] => del(context, args, reply),
        _ => refusal::wrong_arity(reply, "delex"),
    }
}

fn delifeq(context: &mut Context<'_, '_>, [_, key, value]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    delete_if(context, key, Some(Condition::Equal(value)), reply);
}

/// Removes the key if the condition holds. As in Redis, an invalid condition is an error only if
/// the key exists.
#[inline]
fn delete_if(
    context: &mut Context<'_, '_>,
    key: &[u8],
    condition: Option<Condition<'_>>,
    reply: &mut Encoder<'_>,
) {
    let Some(entry) = context.entry(key).only_string(reply) else {
        return;
    };
    let Some(value) = entry.value() else {
        return reply.integer(0);
    };
    let Some(condition) = condition else {
        return reply.error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    };
    match condition.holds(value) {
        Ok(true) => {
            if !entry.may_remove(reply) {
                return;
            }
            entry.remove();
            reply.integer(1);
        }
        Ok(false) => reply.integer(entry.foreign_release(0)),
        Err(invalid) => invalid.refuse(reply),
    }
}

const RELEASE: Spec = Spec::of(
    Call::any(-2, del),
    Flags::WRITE.and(Flags::QUICK),
    Keys::Each { step: 1 },
    "generic",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "del",
        syntax: "key [key ...]",
        summary: "Releases keys.",
        since: "1.0.0",
        ..RELEASE
    },
    Spec {
        name: "unlink",
        syntax: "key [key ...]",
        flags: Flags::WRITE.and(Flags::FAST),
        summary: "Releases keys; the same as DEL.",
        since: "4.0.0",
        ..RELEASE
    },
    Spec {
        name: "delex",
        syntax: "key [IFEQ value|IFNE value|IFDEQ digest|IFDNE digest]",
        call: Call::any(-2, delex),
        flags: Flags::WRITE.and(Flags::FAST),
        keys: Keys::One,
        summary: "Releases a key if its token, or the digest of it, is the one given.",
        group: "string",
        since: "8.4.0",
        ..RELEASE
    },
    Spec {
        name: "delifeq",
        syntax: "key value",
        summary: "Releases a key if its token is the one given.",
        since: "9.0.0",
        ..Spec::of(
            exact!(delifeq),
            Flags::WRITE.and(Flags::FAST),
            Keys::One,
            "string",
        )
    },
];
