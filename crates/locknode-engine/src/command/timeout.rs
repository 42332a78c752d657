//! A timeout in milliseconds, as CLIENT PAUSE and WAIT take it.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;

/// The timeout in milliseconds, or `None` and the refusal in the reply.
pub(crate) fn parse(context: &Context<'_, '_>, arg: &[u8], reply: &mut Encoder<'_>) -> Option<u64> {
    let Some(timeout_ms) = parse_integer(arg) else {
        reply.error("ERR timeout is not an integer or out of range");
        return None;
    };
    let Ok(positive_ms) = u64::try_from(timeout_ms) else {
        reply.error("ERR timeout is negative");
        return None;
    };
    if context
        .moment
        .wall
        .as_unix_millis()
        .checked_add(timeout_ms)
        .is_none()
    {
        reply.error("ERR timeout is out of range");
        return None;
    }
    Some(positive_ms)
}
