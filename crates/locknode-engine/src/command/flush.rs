//! Releasing all keys: FLUSHDB and FLUSHALL.

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use super::spec::{Flags, Keys, Spec, least, specs};

/// Clears the database of the connection, or all. SYNC and ASYNC do the same here: the keys are gone
/// before the reply.
fn flush(
    context: &mut Context<'_, '_>,
    is_all: bool,
    _: &[&[u8]; 1],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    if !is_flush_mode(words) {
        return refusal::syntax(reply);
    }
    let db = (!is_all).then_some(context.session.db);
    if context.clear(db, reply) {
        reply.ok();
    }
}

/// Returns whether the words are SYNC, ASYNC or none.
pub(super) fn is_flush_mode(words: &[&[u8]]) -> bool {
    match words {
        [] => true,
        [word] => word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async"),
        _ => false,
    }
}

const FLUSH: Spec = Spec {
    since: "1.0.0",
    ..Spec::of(least!(flush, false), Flags::WRITE, Keys::All, "server")
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Releases all keys of the database.
    "flushdb" "[ASYNC|SYNC]", ..FLUSH;

    /// Releases all keys of all databases.
    "flushall" "[ASYNC|SYNC]", call: least!(flush, true), ..FLUSH;
};
