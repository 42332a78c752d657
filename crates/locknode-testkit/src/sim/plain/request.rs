//! What is asked of a node, and what its reply says.

use locknode_resp::Reply;
use redlock_proto::Time;

use crate::sim::notice::Handle;

/// How a client keeps its locks on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A token under a key, by the commands for locks.
    Token,
    /// A hash, by scripts.
    Script,
    /// A hash, by transactions.
    Transaction,
}

/// What is done to a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Take,
    /// Acquired once more by its holder.
    Enter,
    Renew,
    /// Released once by its holder, who keeps it.
    Leave,
    Free,
}

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
    /// The steps of a transaction: to watch the key, to say what is there, and to change it, with what is queued for that.
    Watch,
    See,
    Commit,
    Queued,
    /// To watch nothing any more.
    Unwatch,
}

impl What {
    /// How many replies it has; the last one counts.
    pub(super) const fn replies(self) -> u32 {
        match self {
            // MULTI, two commands, EXEC.
            Self::Commit => 4,
            _ => 1,
        }
    }
}

/// What a key is held by, as a transaction sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    /// The holder's own hash, with this count.
    Own(u64),
    Another,
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
    /// The key is held by this.
    Sees(Seen),
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
            (
                What::Acquire | What::Fence(_) | What::Extend | What::Release,
                Reply::Integer(done),
            ) => match done {
                0 => Self::No,
                1 => Self::Yes(0),
                _ => Self::Failed,
            },
            (What::SetAgain | What::Watch, Reply::Simple(_)) => Self::Yes(0),
            (What::SetAgain | What::Commit, Reply::Null) => Self::No,
            (What::Commit, Reply::Array(_)) => Self::Yes(0),
            (What::See, Reply::Array(parts)) => Self::Sees(match &parts[..] {
                [] => Seen::Nothing,
                [Reply::Bulk(field), Reply::Bulk(levels)] if field == own => {
                    let levels = std::str::from_utf8(levels).ok();
                    Seen::Own(levels.and_then(|it| it.parse().ok()).unwrap_or(1))
                }
                _ => Seen::Another,
            }),
            _ => Self::Failed,
        }
    }

    fn counted(fence: i64) -> Self {
        u64::try_from(fence).map_or(Self::Failed, Self::Yes)
    }
}
