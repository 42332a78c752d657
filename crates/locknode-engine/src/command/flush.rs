//! Releasing everything: FLUSHDB and FLUSHALL.

use locknode_resp::Encoder;

use super::refusal;
use super::spec::{Flags, Keys, Spec};
use crate::context::Context;

fn flushdb(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let db = context.session.db;
    flush(context, args, reply, Some(db));
}

fn flushall(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    flush(context, args, reply, None);
}

/// SYNC and ASYNC are the same here: the keys are gone before the reply.
fn flush(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>, db: Option<u8>) {
    match args {
        [_] => {}
        [_, word] if word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async") => {}
        _ => return refusal::syntax(reply),
    }
    if context.clear(db, reply) {
        reply.ok();
    }
}

const FLUSH: Spec = Spec {
    name: "flushdb",
    syntax: "[ASYNC|SYNC]",
    arity: -1,
    flags: Flags::WRITE,
    keys: Keys::All,
    run: flushdb,
    summary: "Releases all keys of the database.",
    group: "server",
    since: "1.0.0",
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[
    FLUSH,
    Spec {
        name: "flushall",
        syntax: "[ASYNC|SYNC]",
        run: flushall,
        summary: "Releases all keys of all databases.",
        ..FLUSH
    },
];
