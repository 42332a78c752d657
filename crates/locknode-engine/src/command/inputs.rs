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
        _ if rest.len() > INPUTS_MAX => {
            refusal::unsupported(reply, TOO_MANY_INPUTS);
            return None;
        }
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

/// The most keys and arguments of a script, which are copied while others wait: twice as many as
/// `unpack` takes.
const INPUTS_MAX: usize = 16_384;
const TOO_MANY_INPUTS: &str = "a script with more than 16384 keys and arguments";
