//! The inner loop of the decoder: short arguments that are complete.
//!
//! Command names, keys, tokens and numbers have lengths of one or two digits. For them the length line is read
//! as one machine word; whatever is longer, incomplete or wrong is left to the decoder's general way, which
//! gives the same result for these too.

use crate::frame::Span;

/// Takes arguments of at most 99 bytes, as long as they are complete: how many are missing after them, and
/// where the next one starts. This loop is most of what a node's own code does per command.
#[inline]
pub(crate) fn short_args(
    window: &[u8],
    mut missing: usize,
    pos: usize,
    spans: &mut Vec<Span>,
) -> (usize, usize) {
    let mut rest = window.get(pos..).unwrap_or_default();
    while missing > 0 {
        // `$` and what may be digits and a carriage return: one load, then arithmetic.
        let Some(&head) = rest.first_chunk() else {
            break;
        };
        let head = u32::from_le_bytes(head);
        let first = ((head >> 8) & 0xff).wrapping_sub(u32::from(b'0'));
        let (len, header_len) = if head & 0x00ff_00ff == HEAD_1 && first <= 9 {
            (first as usize, 4)
        } else if head & 0xff00_00ff == HEAD_2 {
            let second = ((head >> 16) & 0xff).wrapping_sub(u32::from(b'0'));
            if first.wrapping_sub(1) > 8 || second > 9 {
                break;
            }
            ((first * 10 + second) as usize, 5)
        } else {
            break;
        };
        let Some(next) = rest.get(header_len + len + TERMINATOR_LEN..) else {
            break;
        };
        spans.push(Span::new(window.len() - rest.len() + header_len, len));
        rest = next;
        missing -= 1;
    }
    (missing, window.len() - rest.len())
}

/// Decodes a request of one to nine short arguments that is complete, straight into slices: how many arguments,
/// and how many bytes it took. `None` says nothing about the input but that the general way has to look at it.
#[inline]
pub(crate) fn short_request<'b>(
    input: &'b [u8],
    args: &mut [&'b [u8]; SHORT_ARGS_MAX],
) -> Option<(usize, usize)> {
    let [b'*', digit @ b'1'..=b'9', b'\r', _, rest @ ..] = input else {
        return None;
    };
    let count = usize::from(digit - b'0');
    let mut rest = rest;
    for slot in args.get_mut(..count)? {
        let head = u32::from_le_bytes(*rest.first_chunk()?);
        let first = ((head >> 8) & 0xff).wrapping_sub(u32::from(b'0'));
        let (header_len, len) = if head & 0xff00_00ff == HEAD_2 {
            let second = ((head >> 16) & 0xff).wrapping_sub(u32::from(b'0'));
            if first.wrapping_sub(1) > 8 || second > 9 {
                return None;
            }
            (5, (first * 10 + second) as usize)
        } else if head & 0x00ff_00ff == HEAD_1 && first <= 9 {
            (4, first as usize)
        } else {
            return None;
        };
        let (arg, next) = rest.split_at_checked(header_len + len + TERMINATOR_LEN)?;
        *slot = arg.get(header_len..header_len + len)?;
        rest = next;
    }
    // A browser's first words are looked at by the general way.
    if matches!(args.first()?, [b'P' | b'p' | b'H' | b'h', b'O' | b'o', ..]) {
        return None;
    }
    Some((count, input.len() - rest.len()))
}

/// The most arguments that [`short_request`] takes: those that a count of one digit announces.
pub(crate) const SHORT_ARGS_MAX: usize = 9;

/// `$`, a digit and CR, the digit and the fourth byte masked out.
const HEAD_1: u32 = u32::from_le_bytes([b'$', 0, b'\r', 0]);
/// `$`, two digits and CR, the digits masked out.
const HEAD_2: u32 = u32::from_le_bytes([b'$', 0, 0, b'\r']);
/// The longest argument that [`short_args`] takes.
pub(crate) const SHORT_LEN_MAX: usize = 99;

/// Length of CR LF.
pub(crate) const TERMINATOR_LEN: usize = 2;
