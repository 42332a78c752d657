//! What a core has to say.

use std::sync::Arc;

use crate::cause::Cause;
use crate::core::greeting::ServerInfo;
use crate::core::looking::Look;
use crate::core::op_id::OpId;
use crate::error_kind::ErrorKind;
use crate::fencing_token::FencingToken;
use crate::quorum::{NodeId, NodeSet};
use crate::time::Time;
use crate::token::Token;

/// What a core has to say to its driver or to a caller. A driver handles each of them.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Open a connection to the node; then call `connected` or `disconnected`.
    Connect(NodeId),
    /// Close the connection to the node, or stop opening it.
    Disconnect(NodeId),
    /// The node takes requests.
    NodeUp(NodeId, Arc<ServerInfo>),
    /// The node does not take requests any more.
    NodeDown(NodeId, Cause),
    /// The lock is held.
    Acquired {
        /// The operation, which is the lock's name from now on.
        op: OpId,
        /// The token of the attempt that succeeded.
        token: Token,
        /// The fencing token, when a majority of the nodes counts grants; none for a lock that was taken over.
        fencing: Option<FencingToken>,
        /// The moment from which on it is not held.
        valid_until: Time,
        /// The attempts that it took.
        tries: u32,
    },
    /// The lock was not had; the operation is over.
    NotAcquired {
        /// The operation.
        op: OpId,
        /// Why.
        kind: ErrorKind,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The lock's validity changed.
    Validity {
        /// The lock.
        op: OpId,
        /// The moment from which on it is not held.
        valid_until: Time,
        /// Whether this is a renewal that succeeded.
        is_renewal: bool,
    },
    /// A renewal failed; the lock is still held.
    RenewalFailed {
        /// The lock.
        op: OpId,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The extension that the holder asked for is decided.
    Extended {
        /// The lock.
        op: OpId,
        /// The new validity, or why there is none. Then the lock is as it was.
        result: Result<Time, ErrorKind>,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The lock is not held any more, or will not be within the warning time.
    Lost {
        /// The lock.
        op: OpId,
        /// [`ErrorKind::Lost`], [`ErrorKind::Expired`] or [`ErrorKind::Cancelled`].
        kind: ErrorKind,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// A release is decided; replies of `pending` nodes are still to come.
    Released {
        /// The lock, which is over.
        op: OpId,
        /// The nodes that deleted the key.
        confirmed: NodeSet,
        /// The nodes that did not hold it.
        not_held: NodeSet,
        /// The nodes whose reply is awaited in the background.
        pending: NodeSet,
        /// Whether the nodes were told to keep the key until its least time is over.
        is_kept: bool,
        /// What the others said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The answers to a look at a key or at the nodes, in node order.
    Looked {
        /// The operation, which is over.
        op: OpId,
        /// One answer per node.
        looks: Vec<Look>,
    },
}
