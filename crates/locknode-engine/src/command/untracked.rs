//! CLIENT TRACKING and its relatives in a node without client-side caching.

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use super::spec::{Call, exact, least};

fn tracking(
    _: &mut Context<'_, '_>,
    [_, _, word]: &[&[u8]; 3],
    mut options: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let is_on = word.eq_ignore_ascii_case(b"on");
    if !is_on && !word.eq_ignore_ascii_case(b"off") {
        return refusal::syntax(reply);
    }
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

fn tracking_info(_: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.integer(NOT_TRACKING);
    reply.bulk(b"prefixes");
    reply.array(0);
}

/// CLIENT's answers about client-side caching.
pub(super) const CACHING: Call = Call::any(3, |_, _, reply| {
    reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
    );
});
pub(super) const REDIRECTION: Call = Call::any(2, |_, _, reply| reply.integer(NOT_TRACKING));
pub(super) const TRACKING: Call = least!(tracking);
pub(super) const TRACKING_INFO: Call = exact!(tracking_info);

/// Redis's reply when no invalidation messages are redirected.
const NOT_TRACKING: i64 = -1;
