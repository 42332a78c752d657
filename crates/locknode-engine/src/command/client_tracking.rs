//! CLIENT TRACKING and its relatives: there is no client side caching, and this is how clients learn it.

use locknode_resp::Encoder;

use super::refusal;
use crate::context::Context;

pub(super) fn tracking(_: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let is_on = match args.get(2) {
        Some(word) if word.eq_ignore_ascii_case(b"on") => true,
        Some(word) if word.eq_ignore_ascii_case(b"off") => false,
        _ => return refusal::syntax(reply),
    };
    let mut options = args.get(3..).unwrap_or_default();
    while let [option, rest @ ..] = options {
        options = match (option.to_ascii_lowercase().as_slice(), rest) {
            (b"bcast" | b"optin" | b"optout" | b"noloop", _) => rest,
            (b"redirect" | b"prefix", [_, rest @ ..]) => rest,
            _ => return refusal::syntax(reply),
        };
    }
    if is_on {
        reply.error("ERR this node does not support client side caching");
    } else {
        reply.ok();
    }
}

pub(super) fn caching(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
    );
}

pub(super) fn tracking_info(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.integer(NOT_TRACKING);
    reply.bulk(b"prefixes");
    reply.array(0);
}

pub(super) fn redirection(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.integer(NOT_TRACKING);
}

/// How Redis says that invalidation messages are not redirected because there are none.
const NOT_TRACKING: i64 = -1;
