//! Requests decoded before their turn, so that the engine can look ahead to their keys.

use locknode_engine::{Batch, LOOK_AHEAD_MAX, Session};
use locknode_resp::Decoder;
use smallvec::SmallVec;

/// The next short requests of an input, from `next` on.
#[derive(Debug, Default)]
pub(crate) struct Upcoming<'b> {
    requests: SmallVec<[Request<'b>; LOOK_AHEAD_MAX]>,
    next: usize,
}

#[derive(Debug)]
struct Request<'b> {
    args: [&'b [u8]; 9],
    count: usize,
    /// Its bytes.
    len: usize,
}

impl<'b> Upcoming<'b> {
    /// Decodes the next requests of `input` if none is left, and lets the engine look at their keys.
    pub(crate) fn refill(
        &mut self,
        input: &'b [u8],
        decoder: &Decoder,
        batch: &Batch<'_>,
        session: &Session,
    ) {
        if self.next < self.requests.len() || input.len() < WORTHWHILE {
            return;
        }
        self.requests.clear();
        self.next = 0;
        let mut keys = SmallVec::<[&[u8]; LOOK_AHEAD_MAX]>::new();
        let mut rest = input;
        while self.requests.len() < LOOK_AHEAD_MAX {
            let mut args = [&[][..]; 9];
            let Some((found, len)) = decoder.decode_short(rest, &mut args) else {
                break;
            };
            let count = found.len();
            keys.push(likely_key(found));
            self.requests.push(Request { args, count, len });
            rest = rest.get(len..).unwrap_or_default();
        }
        batch.look_ahead(session, &keys);
    }

    /// Takes the next request: its arguments and its bytes.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(&[&'b [u8]], usize)> {
        let request = self.requests.get(self.next)?;
        self.next += 1;
        Some((request.args.get(..request.count)?, request.len))
    }
}

/// Returns what is probably the key of a request; looking at another one does no harm.
fn likely_key<'b>(args: &[&'b [u8]]) -> &'b [u8] {
    match args {
        // EVALSHA, a hash, one key.
        [_, _, [b'1'], key, ..] | [_, key, ..] => key,
        _ => &[],
    }
}

/// Shorter input is one request or two.
const WORTHWHILE: usize = 256;
