//! The limits of one reply, for clients.

/// Limits that a [`ReplyDecoder`](crate::ReplyDecoder) enforces on each reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyLimits {
    /// The maximum nesting of aggregates. Default 8: what `COMMAND` of Redis 8.0 needs, and twice
    /// what a lock needs; only `COMMAND DOCS` is deeper (12). Freeing a reply recurses this deep,
    /// so keep it small.
    pub depth_max: usize,
    /// How deep elements are kept: 0 for a reply without its elements. Deeper ones are checked and
    /// dropped, and the aggregate that held them comes back empty. Default 8: all of them. A
    /// client that looks only at the top of `COMMAND INFO` saves most of its cost.
    pub depth_kept: usize,
    /// The maximum number of elements in total, including aggregates and attributes. Default
    /// 262,144, sixteen times the largest reply of an idle Redis 8.0 (`COMMAND DOCS`, 15,772).
    pub elements_max: usize,
    /// The longest reply in bytes. Default 16 MiB, sixteen times the longest value that a node
    /// accepts by default.
    pub bytes_max: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            depth_max: 8,
            depth_kept: 8,
            elements_max: 1 << 18,
            bytes_max: 16 << 20,
        }
    }
}
