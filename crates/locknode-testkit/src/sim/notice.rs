//! What a simulated client reports to its world: the same for the shipped core and the plain client.

use redlock_proto::Time;

/// A lock of a client, by its number in the history.
pub(crate) type Handle = crate::history::LockNo;

/// What a client reports. Times are of the client's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientNotice {
    /// Open a connection to the node; then call `connected` or `disconnected`.
    Connect(u8),
    /// Close the connection to the node, or stop opening it.
    Disconnect(u8),
    /// The lock is held.
    Acquired {
        lock: Handle,
        token: Vec<u8>,
        fencing: Option<u64>,
        valid_until: Time,
    },
    /// The lock was not acquired.
    Failed { lock: Handle, why: &'static str },
    /// The outcome of an extension: the new validity, or why it failed.
    Extended {
        lock: Handle,
        result: Result<Time, &'static str>,
    },
    /// The validity changed without being asked for.
    Validity { lock: Handle, valid_until: Time },
    /// The lock is not held any more.
    Lost { lock: Handle, why: &'static str },
    /// The lock is released: `confirmed` nodes held it and deleted it.
    Released { lock: Handle, confirmed: u8 },
    /// The lock is released and the key stays taken for a while: `confirmed` nodes keep it.
    Kept { lock: Handle, confirmed: u8 },
    /// Nodes hold the key for these tokens.
    Looked { key: Vec<u8>, tokens: Vec<Vec<u8>> },
}
