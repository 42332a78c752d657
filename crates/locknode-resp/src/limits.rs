//! What one request may cost. The names in the docs are those of the Redis options.

/// Limits that a [`Decoder`](crate::Decoder) enforces on each request.
///
/// Passed to every call instead of being stored, so that a changed setting counts from the next request on and
/// a connection stays small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Longest argument of an array request, in bytes: `proto-max-bulk-len`. Default 1 MiB, the least that
    /// Redis lets one set; a lock's token is tens of bytes.
    pub bulk_len_max: usize,
    /// Most arguments of an array request. Default 1,048,576, which Redis had as a fixed limit up to version 6;
    /// values above 2,147,483,647 act as that number.
    pub args_max: usize,
    /// Longest inline request without its line feed, and longest length line, in bytes. Default 64 KiB, a fixed
    /// limit in Redis.
    pub inline_len_max: usize,
    /// Longest request in total, in bytes: what `client-query-buffer-limit` is for. Default 64 MiB; values
    /// above 4,294,967,293 act as that number, because offsets into a request are kept in 32 bits.
    pub request_len_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bulk_len_max: 1 << 20,
            args_max: 1 << 20,
            inline_len_max: 64 << 10,
            request_len_max: 64 << 20,
        }
    }
}

impl Limits {
    /// `request_len_max` as it is enforced.
    #[inline]
    pub(crate) fn request_len(&self) -> usize {
        self.request_len_max.min(REQUEST_LEN_CAP)
    }

    /// `inline_len_max` as it is enforced.
    pub(crate) fn line_len(&self) -> usize {
        self.inline_len_max.min(REQUEST_LEN_CAP)
    }

    /// `args_max` as it is enforced.
    #[inline]
    pub(crate) fn args(&self) -> usize {
        self.args_max.min(ARGS_CAP)
    }
}

/// Leaves room for the two bytes that end an argument, so that no offset overflows 32 bits.
const REQUEST_LEN_CAP: usize = u32::MAX as usize - 2;
/// Redis counts arguments in an `int`.
const ARGS_CAP: usize = i32::MAX as usize;
/// Most arguments of a client that has not authenticated; fixed in Redis, enough for HELLO with all options.
pub(crate) const UNAUTHENTICATED_ARGS_MAX: usize = 10;
/// Longest argument of a client that has not authenticated, in bytes; fixed in Redis, enough for any password.
pub(crate) const UNAUTHENTICATED_BULK_LEN_MAX: usize = 16_384;
