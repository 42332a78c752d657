//! The timeout in milliseconds of CLIENT PAUSE and WAIT.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;

/// Parses the timeout; replies with the refusal and returns `None` if it is invalid.
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
