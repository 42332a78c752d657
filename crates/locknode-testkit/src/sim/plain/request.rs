//! What is asked of a node, and what its reply says.

use locknode_resp::Reply;
use redlock_proto::Time;

use crate::sim::notice::Handle;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Acquire,
    /// Whose the key is, after a refusal.
    Look,
    /// To accept this fencing token.
    Fence(u64),
    Extend,
    /// To set a key that could not be extended.
    SetAgain,
    Release,
}

/// A request without reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) lock: Handle,
    pub(super) round: u32,
    pub(super) what: What,
    /// Until when the node has time to reply.
    pub(super) deadline: Time,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Done; with the counter, where there is one.
    Yes(u64),
    No,
    /// The node takes no part: `LOADING` and other errors, or what is no reply to this request.
    Failed,
}

impl Answer {
    /// What the reply to a request says to the holder of this token.
    pub(super) fn of(what: What, reply: &Reply, own: &[u8]) -> Self {
        match (what, reply) {
            (What::Acquire, Reply::Array(parts)) => match parts[..] {
                [Reply::Integer(1), Reply::Integer(fence), _] => Self::counted(fence),
                [Reply::Integer(0), _, _] => Self::No,
                _ => Self::Failed,
            },
            (What::Look, Reply::Array(parts)) => match &parts[..] {
                [Reply::Bulk(token), _, Reply::Integer(grant), _] if token == own => {
                    Self::counted(*grant)
                }
                _ => Self::No,
            },
            (What::Look, Reply::Null) => Self::No,
            (What::Fence(_) | What::Extend | What::Release, Reply::Integer(1)) => Self::Yes(0),
            (What::Fence(_) | What::Extend | What::Release, Reply::Integer(0)) => Self::No,
            (What::SetAgain, Reply::Simple(_)) => Self::Yes(0),
            (What::SetAgain, Reply::Null) => Self::No,
            _ => Self::Failed,
        }
    }

    fn counted(fence: i64) -> Self {
        u64::try_from(fence).map_or(Self::Failed, Self::Yes)
    }
}
