//! Releasing all keys: FLUSHDB and FLUSHALL.

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use super::spec::{Flags, Keys, Spec, least, specs};

fn flushdb(
    context: &mut Context<'_, '_>,
    _: &[&[u8]; 1],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let db = context.session.db;
    flush(context, words, reply, Some(db));
}

fn flushall(
    context: &mut Context<'_, '_>,
    _: &[&[u8]; 1],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    flush(context, words, reply, None);
}

/// SYNC and ASYNC do the same here: the keys are gone before the reply.
fn flush(context: &mut Context<'_, '_>, words: &[&[u8]], reply: &mut Encoder<'_>, db: Option<u8>) {
    match words {
        [] => {}
        [mode] if is_flush_mode(mode) => {}
        _ => return refusal::syntax(reply),
    }
    if context.clear(db, reply) {
        reply.ok();
    }
}

/// Returns whether the word is SYNC or ASYNC.
pub(super) fn is_flush_mode(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async")
}

const FLUSH: Spec = Spec {
    since: "1.0.0",
    ..Spec::of(least!(flushdb), Flags::WRITE, Keys::All, "server")
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Releases all keys of the database.
    "flushdb" "[ASYNC|SYNC]", ..FLUSH;

    /// Releases all keys of all databases.
    "flushall" "[ASYNC|SYNC]", call: least!(flushall), ..FLUSH;
};
