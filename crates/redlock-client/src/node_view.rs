//! What nodes say of themselves and of a key, for people.

use std::time::Duration;

use redlock_proto::{Cause, ServerInfo, Token};

/// What one node says of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeView {
    /// The node's address, without a password.
    pub address: String,
    /// What it holds under the key, `None` for nothing; or why it did not say. A value that can be no token is
    /// [`Cause::Protocol`].
    pub answer: Result<Option<HeldKey>, Cause>,
}

impl NodeView {
    /// What the node at this address says.
    pub fn new(address: impl Into<String>, answer: Result<Option<HeldKey>, Cause>) -> Self {
        Self {
            address: address.into(),
            answer,
        }
    }
}

/// A key on one node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeldKey {
    /// The token of the holder.
    pub token: Token,
    /// How long the node keeps it, to the millisecond; `None` without end.
    pub remaining: Option<Duration>,
}

impl HeldKey {
    /// A key that has this token.
    pub fn new(token: Token, remaining: Option<Duration>) -> Self {
        Self { token, remaining }
    }
}

/// One node as it answers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's address, without a password.
    pub address: String,
    /// Who it is, or why it did not say.
    pub state: Result<ServerInfo, Cause>,
}

impl NodeStatus {
    /// How the node at this address answers.
    pub fn new(address: impl Into<String>, state: Result<ServerInfo, Cause>) -> Self {
        Self {
            address: address.into(),
            state,
        }
    }
}
