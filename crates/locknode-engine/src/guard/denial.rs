//! Why a grant is refused although the key is free.

use std::time::Duration;

use locknode_resp::Encoder;

/// A reason, with advice for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The TTL exceeds `max-ttl`, or there is none, and there is no log for the lock `[L1]`.
    NeedsLog { max_ttl: Duration },
    /// A sync failed `[G13]`.
    Failed { error: String },
    /// The disk accepts no writes, usually because it is full, and the grant is beyond what is
    /// durable `[G14]`.
    Full { error: String },
    /// A release must be logged, but the disk is full or has failed `[G13]` `[G14]`.
    Unreleasable { error: String },
    /// The fencing tokens are used up `[F6]`.
    Exhausted,
    /// The node is shutting down: its snapshot is written or being written.
    Closed,
}

impl Denial {
    /// Replies with the reason.
    #[cold]
    pub(crate) fn refuse(&self, reply: &mut Encoder<'_>) {
        let text = match self {
            Self::NeedsLog { max_ttl } => {
                let ms = max_ttl.as_millis();
                format!(
                    "UNSUPPORTED give a TTL of {ms} ms at most (SET key token NX PX {ms}): this node has no data \
                     directory and cannot keep a longer lock, or one without a TTL, across a restart. Start it with \
                     --dir to allow both, with a higher --max-ttl, or with --restart-guard off if a restart may \
                     forget locks"
                )
            }
            Self::Failed { error } => format!(
                "MISCONF writing to the data directory failed ({error}), so this node grants no locks; it still releases \
                 locks that have a TTL. Check the disk, then restart the node"
            ),
            Self::Full { error } => format!(
                "MISCONF this lock cannot be made durable ({error}): check the disk of the data directory, which may be full. \
                 The node resumes by itself once it can write; it still grants locks that need no write, and releases locks \
                 that have a TTL"
            ),
            Self::Unreleasable { error } => format!(
                "MISCONF this release cannot be made durable ({error}), so nothing was released: a restart would bring \
                 back a lock without a TTL. Check the disk of the data directory, then try again"
            ),
            Self::Exhausted => {
                "MISCONF this node has used up its fencing tokens, because a client raised them with \
                 LOCK.FENCE or FLOOR, and grants no locks. Once no lock is held anywhere, start all nodes with \
                 empty data directories"
                    .to_owned()
            }
            Self::Closed => "LOADING locknode is shutting down: use the other nodes until it is back".to_owned(),
        };
        // An error is one line.
        reply.error(&text.replace(['\r', '\n'], " "));
    }
}
