//! Which nodes an example uses.

/// The arguments, or the five nodes of `locknode lab`.
pub(crate) fn from_arguments() -> Vec<String> {
    let mut nodes: Vec<String> = std::env::args().skip(1).collect();
    if nodes.is_empty() {
        nodes.extend((7101..=7105).map(|port| format!("127.0.0.1:{port}")));
    }
    nodes
}
