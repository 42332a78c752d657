//! What can change places without a difference.

/// The orders in which so many clients or attempts can be named, the present one first.
pub(crate) fn orders(count: usize) -> &'static [[usize; 3]] {
    match count {
        2 => &[[0, 1, 2], [1, 0, 2]],
        3 => &[
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ],
        _ => &[[0, 1, 2]],
    }
}
