//! What nodes say of themselves and of a key, for people.

use std::time::Duration;

use redlock_proto::{Cause, ServerInfo};

/// What one node says of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeView {
    /// The node's address, without a password.
    pub address: String,
    /// What it holds under the key, `None` for nothing; or why it did not say.
    pub answer: Result<Option<HeldKey>, Cause>,
}

/// A key on one node.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldKey {
    /// The token of the holder.
    pub token: Vec<u8>,
    /// How long the node keeps it, to the millisecond; `None` without end.
    pub remaining: Option<Duration>,
}

/// A token opens a lock, so debug output shows its beginning only.
impl std::fmt::Debug for HeldKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let head = self.token.get(..6).unwrap_or(&self.token);
        f.debug_struct("HeldKey")
            .field("token", &format_args!("{}..", head.escape_ascii()))
            .field("remaining", &self.remaining)
            .finish()
    }
}

/// One node as it answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeStatus {
    /// The node's address, without a password.
    pub address: String,
    /// Who it is, or why it did not say.
    pub state: Result<ServerInfo, Cause>,
}
