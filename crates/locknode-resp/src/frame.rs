//! A complete request, as slices of the received bytes.

use std::iter::FusedIterator;
use std::slice;

/// One complete request: its arguments, borrowed from the input and the decoder.
///
/// A frame without arguments stands for bytes that Redis skips silently: an empty line, `*0` or a
/// negative count. The caller only advances by [`consumed`](Self::consumed).
#[derive(Clone, Copy, Debug)]
pub struct Frame<'b> {
    /// What the spans point into: the input, or the decoder's scratch buffer for an inline request
    /// with quotes.
    bytes: &'b [u8],
    spans: &'b [Span],
    consumed: usize,
}

impl<'b> Frame<'b> {
    /// Returns how many bytes of the input the request took; never 0.
    #[inline]
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// Returns the number of arguments, including the command's name.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there is nothing to execute.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the argument at index `i`; 0 is the command's name.
    #[inline]
    pub fn arg(&self, i: usize) -> Option<&'b [u8]> {
        self.spans.get(i).map(|span| span.of(self.bytes))
    }

    /// Returns all arguments in order, the command's name first.
    #[inline]
    pub fn args(&self) -> Args<'b> {
        Args {
            bytes: self.bytes,
            spans: self.spans.iter(),
        }
    }

    #[inline]
    pub(crate) fn new(bytes: &'b [u8], spans: &'b [Span], consumed: usize) -> Self {
        debug_assert!(consumed > 0, "a frame that takes nothing would never end");
        Self {
            bytes,
            spans,
            consumed,
        }
    }
}

/// Iterator over the arguments of a [`Frame`].
#[derive(Clone, Debug)]
pub struct Args<'b> {
    bytes: &'b [u8],
    spans: slice::Iter<'b, Span>,
}

impl<'b> Iterator for Args<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        self.spans.next().map(|span| span.of(self.bytes))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for Args<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.spans.next_back().map(|span| span.of(self.bytes))
    }
}

impl ExactSizeIterator for Args<'_> {}

impl FusedIterator for Args<'_> {}

/// The position of an argument; 32 bits each, because a request may have a million of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    offset: u32,
    len: u32,
}

impl Span {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "requests are cut off below 4 GiB, see `Limits::request_len` and `Limits::line_len`"
    )]
    pub(crate) fn new(offset: usize, len: usize) -> Self {
        debug_assert!(
            u32::try_from(offset).is_ok(),
            "offset beyond the request limit"
        );
        debug_assert!(
            u32::try_from(len).is_ok(),
            "length beyond the request limit"
        );
        Self {
            offset: offset as u32,
            len: len as u32,
        }
    }

    #[inline]
    fn of(self, bytes: &[u8]) -> &[u8] {
        let (offset, len) = (self.offset as usize, self.len as usize);
        let arg = bytes.get(offset..).and_then(|tail| tail.get(..len));
        debug_assert!(arg.is_some(), "a span outside its bytes");
        arg.unwrap_or_default()
    }
}
