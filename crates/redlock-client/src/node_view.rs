//! What nodes report about themselves and about a key, for people.

use std::time::Duration;

use redlock_proto::{Cause, FencingToken, ServerInfo, Token};

/// What one node reports about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeView {
    /// The node's address, without a password.
    pub address: String,
    /// What it holds under the key, `None` for nothing; or why it did not reply. A value that cannot be
    /// a token is [`Cause::Protocol`].
    pub answer: Result<Option<HeldKey>, Cause>,
}

impl NodeView {
    /// The view of the node at this address.
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
    /// The remaining TTL, to the millisecond; `None` for no TTL.
    pub remaining: Option<Duration>,
    /// What the holder said of itself, if the node knows labels.
    pub label: Option<String>,
    /// For how long a lock with a label has been held; `None` since before the node started.
    pub held_for: Option<Duration>,
}

impl HeldKey {
    /// A key with this token.
    pub fn new(token: Token, remaining: Option<Duration>) -> Self {
        Self {
            token,
            remaining,
            label: None,
            held_for: None,
        }
    }
}

/// What one node did to release a key, no matter who held it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeForced {
    /// The node's address, without a password.
    pub address: String,
    /// What it did, or why it did not reply.
    pub answer: Result<Forced, Cause>,
}

/// A key that is free on a node, because it was or by force.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Forced {
    /// Whether somebody held it.
    pub was_held: bool,
    /// Who held it; `None` if nobody did, or not with a token.
    pub holder: Option<HeldKey>,
    /// The key's counter afterwards, if the node counts grants.
    pub fencing: Option<FencingToken>,
}

/// The state of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's address, without a password.
    pub address: String,
    /// What it is, or why it did not reply.
    pub state: Result<ServerInfo, Cause>,
}

impl NodeStatus {
    /// The state of the node at this address.
    pub fn new(address: impl Into<String>, state: Result<ServerInfo, Cause>) -> Self {
        Self {
            address: address.into(),
            state,
        }
    }
}
