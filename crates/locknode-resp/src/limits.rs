//! The limits of one request. The docs use the names of the Redis options.

/// Limits that a [`Decoder`](crate::Decoder) enforces on each request.
///
/// They are passed to every call rather than stored, so that a changed setting applies from the
/// next request on and a connection stays small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest argument of an array request in bytes: `proto-max-bulk-len`. Default 1 MiB, the
    /// lowest value that Redis accepts; a lock's token takes tens of bytes.
    pub bulk_len_max: usize,
    /// The maximum number of arguments of an array request. Default 1,048,576, a fixed limit in
    /// Redis up to version 6; values above 2,147,483,647 act as that number.
    pub args_max: usize,
    /// The longest inline request without its line feed, and the longest length line, in bytes.
    /// Default 64 KiB, a fixed limit in Redis.
    pub inline_len_max: usize,
    /// The longest request in total, in bytes, like `client-query-buffer-limit`. Default 64 MiB;
    /// values above 4,294,967,293 act as that number, because offsets into a request are kept in 32
    /// bits.
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
    /// `request_len_max` as enforced.
    #[inline]
    pub(crate) fn request_len(&self) -> usize {
        self.request_len_max.min(REQUEST_LEN_CAP)
    }

    /// `inline_len_max` as enforced.
    pub(crate) fn line_len(&self) -> usize {
        self.inline_len_max.min(REQUEST_LEN_CAP)
    }

    /// `args_max` as enforced.
    #[inline]
    pub(crate) fn args(&self) -> usize {
        self.args_max.min(ARGS_CAP)
    }
}

/// Leaves room for the two bytes that end an argument, so that no offset overflows 32 bits.
const REQUEST_LEN_CAP: usize = u32::MAX as usize - 2;
/// Redis counts arguments in an `int`.
const ARGS_CAP: usize = i32::MAX as usize;
/// The maximum number of arguments before authentication; fixed in Redis, enough for HELLO with all
/// options.
pub(crate) const UNAUTHENTICATED_ARGS_MAX: usize = 10;
/// The longest argument before authentication, in bytes; fixed in Redis, enough for any password.
pub(crate) const UNAUTHENTICATED_BULK_LEN_MAX: usize = 16_384;
