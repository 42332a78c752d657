//! The arguments of a script call.

use locknode_resp::{Encoder, parse_integer};

use super::refusal;

/// KEYS and ARGV.
pub(super) struct Inputs<'a, 'b> {
    pub(super) keys: &'a [&'b [u8]],
    pub(super) argv: &'a [&'b [u8]],
}

/// Splits `EVAL script numkeys key... arg...`; replies with the error when the count is wrong.
#[inline]
pub(super) fn split<'a, 'b>(
    count: &[u8],
    rest: &'a [&'b [u8]],
    reply: &mut Encoder<'_>,
) -> Option<Inputs<'a, 'b>> {
    let error = match parse_integer(count).map(usize::try_from) {
        Some(Ok(count)) => match rest.split_at_checked(count) {
            Some((keys, argv)) => return Some(Inputs { keys, argv }),
            None => "ERR Number of keys can't be greater than number of args",
        },
        Some(Err(_)) => "ERR Number of keys can't be negative",
        None => refusal::NOT_AN_INTEGER,
    };
    reply.error(error);
    None
}
