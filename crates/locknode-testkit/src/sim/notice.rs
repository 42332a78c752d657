//! What a simulated client says to its world: the same for the shipped core and the plain client.

use redlock_proto::Time;

/// A lock act of one client, by its place in that client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Handle(pub(crate) u64);

/// What a client has to say. Times are of the client's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientNotice {
    /// Open a connection to the node; then say `connected` or `disconnected`.
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
    /// The lock was not had; it is over.
    Failed { lock: Handle, why: &'static str },
    /// The extension that was asked for is decided; the new validity, or why there is none.
    Extended {
        lock: Handle,
        result: Result<Time, &'static str>,
    },
    /// The validity changed without being asked for.
    Validity { lock: Handle, valid_until: Time },
    /// The lock is not held any more.
    Lost { lock: Handle, why: &'static str },
    /// A release is decided: so many nodes had the lock and deleted it. It is over.
    Released { lock: Handle, confirmed: u8 },
    /// A release is decided that leaves the key taken for a while: so many nodes keep it. It is over.
    Kept { lock: Handle, confirmed: u8 },
    /// Nodes hold the key for these tokens.
    Looked { key: Vec<u8>, tokens: Vec<Vec<u8>> },
}
