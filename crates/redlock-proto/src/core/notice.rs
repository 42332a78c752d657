//! The reports of a core.

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

/// A report of a core to its driver or to a caller. A driver must handle each of them.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Open a connection to the node, then call `connected` or `disconnected`.
    Connect(NodeId),
    /// Close the connection to the node, or stop opening it.
    Disconnect(NodeId),
    /// The node accepts requests.
    NodeUp(NodeId, Arc<ServerInfo>),
    /// The node no longer accepts requests.
    NodeDown(NodeId, Cause),
    /// The lock was acquired.
    Acquired {
        /// The operation, which identifies the lock from now on.
        op: OpId,
        /// The token of the attempt that succeeded.
        token: Token,
        /// The fencing token, if a majority of the nodes counts grants; `None` for an adopted lock.
        fencing: Option<FencingToken>,
        /// When the lock stops being held.
        valid_until: Time,
        /// The number of attempts.
        tries: u32,
    },
    /// The lock was not acquired, and the operation has ended.
    NotAcquired {
        /// The operation.
        op: OpId,
        /// Why.
        kind: ErrorKind,
        /// The failures of the nodes.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The lock's validity changed.
    Validity {
        /// The lock.
        op: OpId,
        /// When the lock stops being held.
        valid_until: Time,
        /// Whether this is a renewal that succeeded.
        is_renewal: bool,
    },
    /// A renewal failed; the lock is still held.
    RenewalFailed {
        /// The lock.
        op: OpId,
        /// The failures of the nodes.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The extension that the holder requested is decided.
    Extended {
        /// The lock.
        op: OpId,
        /// When the lock now stops being held, or why it was not extended; the lock is then unchanged.
        result: Result<Time, ErrorKind>,
        /// The failures of the nodes.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The lock is no longer held, or will expire within the warning time.
    Lost {
        /// The lock.
        op: OpId,
        /// [`ErrorKind::Lost`], [`ErrorKind::Expired`] or [`ErrorKind::Cancelled`].
        kind: ErrorKind,
        /// The failures of the nodes.
        causes: Vec<(NodeId, Cause)>,
    },
    /// A release is decided. Replies of `pending` nodes are still to come.
    Released {
        /// The lock, which has ended.
        op: OpId,
        /// The nodes that deleted the key.
        confirmed: NodeSet,
        /// The nodes that did not hold it.
        not_held: NodeSet,
        /// The nodes that have not replied yet.
        pending: NodeSet,
        /// Whether the nodes keep the key until its minimum time has passed.
        is_kept: bool,
        /// The failures of the other nodes.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The replies to a look at a key or at the nodes.
    Looked {
        /// The operation, which has ended.
        op: OpId,
        /// One reply per node, in node order.
        looks: Vec<Look>,
    },
}
