//! What can change places without a difference.

/// Of all states that differ by the names of nodes and of clients or attempts alone, the one that stands for them. Neither
/// differ in anything that is not in the state. `renamed` gives the state with its clients or attempts in another order,
/// and its nodes sorted.
pub(crate) fn least<S: Ord>(count: usize, renamed: impl Fn(&[usize]) -> S) -> S {
    let states = orders(count).iter().map(|order| renamed(order));
    states.min().expect("the present order")
}

/// The orders in which so many clients or attempts can be named, the present one first.
fn orders(count: usize) -> &'static [[usize; 3]] {
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
