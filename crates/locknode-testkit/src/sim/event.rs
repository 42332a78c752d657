//! What happens in a world, in the order of its queue.

use crate::fault::Who;
use crate::scenario::ClientAction;

/// What happens in a world.
#[derive(Debug)]
pub(crate) enum Event {
    /// A step of the scenario.
    Step(usize),
    /// Bytes arrive at a node, or those of a reply at a client.
    Arrives {
        conn: u32,
        is_request: bool,
        message: u32,
        bytes: Vec<u8>,
    },
    /// The end of a connection arrives, behind the requests or behind the replies.
    Closed {
        conn: u32,
        is_request: bool,
    },
    /// A client's connection is open, or refused.
    Opened(u32),
    Refused(u32),
    /// What waited before a closed link arrives, in its order.
    Drain {
        client: u8,
        node: u8,
        is_requests: bool,
    },
    /// A client's timer.
    Timer {
        client: u8,
        life: u32,
    },
    /// A client's process starts again.
    ClientStarts {
        client: u8,
    },
    /// What a caller was to do while its process stood still.
    Act {
        client: u8,
        act: Box<ClientAction>,
    },
    /// Something that a caller does under a lock.
    Caller {
        client: u8,
        life: u32,
        lock: u32,
        what: CallerTask,
    },
    /// A caller's write comes to the resource: it was sent when the lock was held, and nobody looks again.
    Write {
        client: u8,
        life: u32,
        lock: u32,
        key: u16,
        fencing: Option<u64>,
    },
    /// Something happens to a node's process, unless another one has started since.
    Node {
        node: u8,
        incarnation: u32,
        what: NodeEvent,
    },
    /// A command reaches a node's replica.
    Replicated {
        node: u8,
        args: Vec<Vec<u8>>,
    },
    /// A process or machine goes on.
    GoesOn {
        who: Who,
        stop: Stop,
    },
}

/// What happens to a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeEvent {
    /// Its disk has finished its work.
    DiskDone,
    /// It stood still, and is asked only now to end in order.
    AskedToStop,
    /// It ends in order, and waits for its clients no longer.
    Drained,
    /// Its quarantine may be over.
    Serving,
}

/// What a caller has planned to do under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerTask {
    End,
    Extend,
    Write,
}

/// How somebody stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Pause,
    Suspend,
    Freeze,
}

impl Event {
    /// What the hash of a world takes of it: its kind, a number and bytes.
    pub(crate) fn mark(&self) -> (u64, u64, &[u8]) {
        match self {
            Self::Step(step) => (1, *step as u64, &[]),
            Self::Arrives {
                conn,
                is_request,
                bytes,
                ..
            } => (if *is_request { 2 } else { 3 }, (*conn).into(), bytes),
            Self::Opened(conn) => (4, (*conn).into(), &[]),
            Self::Refused(conn) => (5, (*conn).into(), &[]),
            Self::Closed { conn, is_request } => {
                (if *is_request { 7 } else { 6 }, (*conn).into(), &[])
            }
            Self::Timer { client, .. } => (8, (*client).into(), &[]),
            Self::ClientStarts { client } => (9, (*client).into(), &[]),
            Self::Caller { lock, what, .. } => (10, (*lock).into(), what.mark()),
            Self::Node { node, what, .. } => {
                let tag = match what {
                    NodeEvent::DiskDone => 11,
                    NodeEvent::Serving => 12,
                    NodeEvent::AskedToStop => 18,
                    NodeEvent::Drained => 19,
                };
                (tag, (*node).into(), &[])
            }
            Self::GoesOn { .. } => (13, 0, &[]),
            Self::Replicated { node, .. } => (14, (*node).into(), &[]),
            Self::Write { lock, .. } => (15, (*lock).into(), &[]),
            Self::Act { client, .. } => (16, (*client).into(), &[]),
            Self::Drain { client, node, .. } => (17, (*node).into(), std::slice::from_ref(client)),
        }
    }
}

impl CallerTask {
    const fn mark(self) -> &'static [u8] {
        match self {
            Self::End => &[0],
            Self::Extend => &[1],
            Self::Write => &[2],
        }
    }
}
