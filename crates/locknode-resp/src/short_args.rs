//! The inner loop of the decoder: complete short arguments.
//!
//! Command names, keys, tokens and numbers have lengths of one or two digits. Their length line is
//! read as one machine word; anything longer, incomplete or invalid is left to the general path of
//! the decoder, which returns the same result for these too.

use crate::frame::Span;

/// Decodes arguments of at most 99 bytes as long as they are complete; returns how many are still
/// missing, and where the next one starts. This loop is most of what a node's own code does per
/// command.
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

/// Decodes a complete request of one to nine short arguments straight into slices; returns the
/// number of arguments and of bytes. `None` means only that the general path must decode it.
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
    // The general path checks for a browser's first words.
    if matches!(args.first()?, [b'P' | b'p' | b'H' | b'h', b'O' | b'o', ..]) {
        return None;
    }
    Some((count, input.len() - rest.len()))
}

/// The most arguments that [`short_request`] accepts: those that a count of one digit can announce.
pub(crate) const SHORT_ARGS_MAX: usize = 9;

/// `$`, a digit and CR, the digit and the fourth byte masked out.
const HEAD_1: u32 = u32::from_le_bytes([b'$', 0, b'\r', 0]);
/// `$`, two digits and CR, the digits masked out.
const HEAD_2: u32 = u32::from_le_bytes([b'$', 0, 0, b'\r']);
/// The longest argument that [`short_args`] accepts.
pub(crate) const SHORT_LEN_MAX: usize = 99;

/// Length of CR LF.
pub(crate) const TERMINATOR_LEN: usize = 2;
