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
    while missing > 0
        && let Some((header_len, len)) = short_header(rest)
        && let Some(next) = rest.get(header_len + len + TERMINATOR_LEN..)
    {
        spans.push(Span::new(window.len() - rest.len() + header_len, len));
        rest = next;
        missing -= 1;
    }
    (missing, window.len() - rest.len())
}

/// Decodes a complete request of one to nine short arguments straight into slices; returns the
/// arguments and the number of bytes. `None` means only that the general path must decode it.
#[inline]
pub(crate) fn short_request<'a, 'b>(
    input: &'b [u8],
    args: &'a mut [&'b [u8]; SHORT_ARGS_MAX],
) -> Option<(&'a [&'b [u8]], usize)> {
    let count = one_digit(input, b'*').filter(|&count| count > 0)?;
    let args = args.get_mut(..count)?;
    let mut rest = input.get(HEADER_1_LEN..)?;
    for slot in args.iter_mut() {
        let (header_len, len) = short_header(rest)?;
        let (arg, next) = rest.split_at_checked(header_len + len + TERMINATOR_LEN)?;
        *slot = arg.get(header_len..header_len + len)?;
        rest = next;
    }
    // The general path checks for a browser's first words.
    if matches!(args.first()?, [b'P' | b'p' | b'H' | b'h', b'O' | b'o', ..]) {
        return None;
    }
    Some((args, input.len() - rest.len()))
}

/// Reads the length line of a short argument; returns its own length and the argument's.
#[inline]
fn short_header(input: &[u8]) -> Option<(usize, usize)> {
    if let Some(len) = one_digit(input, b'$') {
        return Some((HEADER_1_LEN, len));
    }
    // What is left of each byte is a digit's value or zero; a byte too low wraps, and is then above
    // nine like one too high.
    let line = u32::from_le_bytes(*input.first_chunk()?);
    let digits = line.wrapping_sub(u32::from_le_bytes(*b"$00\r"));
    let are_digits = (digits | digits.wrapping_add(0x0006_0600)) & 0xfff0_f0ff == 0;
    let has_leading_zero = digits & 0xff00 == 0;
    // The first digit times ten plus the second, in the second byte of the product.
    let product = (digits >> 8).wrapping_mul(0x0a01);
    (are_digits && !has_leading_zero).then_some((HEADER_1_LEN + 1, (product >> 8) as usize & 0xff))
}

/// Reads a line of `prefix` and one digit.
#[inline]
fn one_digit(input: &[u8], prefix: u8) -> Option<usize> {
    let line = u32::from_le_bytes(*input.first_chunk()?);
    let rest = line.wrapping_sub(u32::from_le_bytes([prefix, b'0', b'\r', b'\n']));
    // Zeros, but for the digit; turned by a byte, it is all that is left.
    Some(rest.rotate_right(8) as usize).filter(|&digit| digit <= 9)
}

/// The most arguments that [`short_request`] accepts: those that a count of one digit can announce.
pub(crate) const SHORT_ARGS_MAX: usize = 9;

/// Length of a prefix, one digit, CR and LF.
const HEADER_1_LEN: usize = 4;

/// The longest argument that [`short_args`] accepts.
pub(crate) const SHORT_LEN_MAX: usize = 99;

/// Length of CR LF.
pub(crate) const TERMINATOR_LEN: usize = 2;

#[cfg(test)]
mod tests {
    use super::{one_digit, short_header};

    /// Every length line that begins with the right byte.
    #[test]
    fn a_length_line_is_read_as_its_digits_say() {
        for rest in 0..1_u32 << 24 {
            let [a, b, c, _] = rest.to_le_bytes();
            let digit = |byte: u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
            let want = match (digit(a), digit(b), c) {
                (Some(len), _, b'\n') if b == b'\r' => Some((4, len)),
                (Some(tens), Some(ones), b'\r') if tens > 0 => Some((5, tens * 10 + ones)),
                _ => None,
            };
            assert_eq!(short_header(&[b'$', a, b, c]), want, "{a} {b} {c}");
        }
        for first in 0..=u8::MAX {
            let want = (first == b'*').then_some(7);
            assert_eq!(one_digit(&[first, b'7', b'\r', b'\n'], b'*'), want);
            let want = (first == b'$').then_some((5, 42));
            assert_eq!(short_header(&[first, b'4', b'2', b'\r']), want);
        }
    }
}
