//! Why a grant is refused although the key is free.

use std::time::Duration;

use locknode_resp::Encoder;

/// A reason, with what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The TTL is above `max-ttl`, or there is none, and there is no log to write the lock to `[L1]`.
    NeedsLog { max_ttl: Duration },
    /// A sync failed `[G13]`.
    Failed { error: String },
    /// The disk takes nothing, being full as a rule, and the grant lies beyond what is durable `[G14]`.
    Full { error: String },
    /// A release that has to be on the log, and the disk is full or has failed `[G13]` `[G14]`.
    Unreleasable { error: String },
    /// The fencing tokens are used up `[F6]`.
    Exhausted,
    /// The node is ending: its snapshot is written or being written.
    Closed,
}

impl Denial {
    /// Replies why.
    #[cold]
    pub(crate) fn refuse(&self, reply: &mut Encoder<'_>) {
        let text = match self {
            Self::NeedsLog { max_ttl } => {
                let ms = max_ttl.as_millis();
                format!(
                    "UNSUPPORTED give a TTL of {ms} ms at most (SET key token NX PX {ms}): this node has no data \
                     directory, and cannot keep a longer lock, or one without a TTL, over a restart. Start it with \
                     --dir to allow both, with a higher --max-ttl, or with --restart-guard off if a restart may \
                     forget locks"
                )
            }
            Self::Failed { error } => format!(
                "MISCONF nothing is granted since writing to the data directory failed ({error}); releases of locks \
                 with a TTL are served: see to the disk, then restart the node"
            ),
            Self::Full { error } => format!(
                "MISCONF this lock cannot be made durable ({error}): see to the disk of the data directory, is it full? \
                 The node goes on by itself when it can write; locks that need no room on the disk, and releases of locks \
                 with a TTL, are served"
            ),
            Self::Unreleasable { error } => format!(
                "MISCONF this release cannot be made durable ({error}), so nothing was released: a restart would bring \
                 back what has no TTL. See to the disk of the data directory, then try again"
            ),
            Self::Exhausted => {
                "MISCONF the fencing tokens of this node are used up: somebody raised them by \
                 LOCK.FENCE or FLOOR; nothing is granted: when no lock is held any more, start all nodes with \
                 empty data directories"
                    .to_owned()
            }
            Self::Closed => "LOADING locknode is ending: use the other nodes until it is back".to_owned(),
        };
        // An error is one line.
        reply.error(&text.replace(['\r', '\n'], " "));
    }
}
