//! A node that goes on in another process: what it leaves, and how another begins with that.
//!
//! ```text
//!  begin_hand_over --> connections give up their sockets between two commands, instead of closing
//!  hand_over --> nothing is granted any more --> Legacy, connections --> another process
//!                                                  |
//!                        NodeBuilder::take_over <--+--> Resuming: a listener that begins with them
//! ```

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use locknode_engine::CarriedSession;
use locknode_engine::durable::{
    Durability, Durable, Start, StartReason, Store, StoreError, StoreSettings, Work,
};

use crate::clock::Clock;
use crate::listener::{Accepted, Listener};
use crate::machine_identity::machine_identity;
use crate::memory_disk::{Files, MemoryDisk};
use crate::node::Node;
use crate::shared::Shared;
use crate::sync_waiters::lock;

/// What a node leaves besides its data directory and its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Legacy {
    /// Of a node without a directory: what a clean stop would have written to one.
    pub(crate) files: Files,
    pub(crate) scripts: Vec<Vec<u8>>,
    /// The run as INFO names it: it goes on, and nothing is lost.
    pub(crate) run_id: String,
}

/// A connection that another process goes on with.
#[derive(Debug)]
pub struct CarriedConnection {
    /// The socket.
    pub socket: OwnedFd,
    session: CarriedSession,
    /// Input that was not executed.
    unread: Vec<u8>,
    /// Replies that the peer has not taken.
    unsent: Vec<u8>,
}

/// The connections that gave up their sockets, once they are to.
pub(crate) type Carried = Mutex<Option<Vec<CarriedConnection>>>;

/// A listener whose first connections come from another process.
#[derive(Debug)]
pub struct Resuming<L> {
    inner: L,
    carried: Mutex<Vec<CarriedConnection>>,
}

/// A connection as [`Listener::resume`] returns it.
#[derive(Debug)]
pub struct Resumed<S> {
    pub(crate) accepted: Accepted<S>,
    pub(crate) session: CarriedSession,
    pub(crate) unread: Vec<u8>,
    pub(crate) unsent: Vec<u8>,
}

impl Node {
    /// Ends every call of [`Node::serve`], as SHUTDOWN does.
    pub fn stop(&self) {
        self.shared.stop(true);
    }

    /// Ends every call of [`Node::serve`], and has their connections give up their sockets for another process instead
    /// of closing. Those whose session is more than a login, names and a database close all the same, and so do those
    /// that speak TLS. [`Node::hand_over`] comes next.
    pub fn begin_hand_over(&self) {
        lock(&self.shared.carried).get_or_insert_default();
        self.stop();
    }

    /// Stops the node as [`Node::close`] does, and returns what another process needs to go on in its place: from
    /// here on this node grants nothing `[G10]`. A node with a data directory leaves its locks there; one that is in
    /// quarantine leaves none, and the other then waits as after any start.
    ///
    /// # Errors
    ///
    /// Fails when the disk fails now or has failed before. The node grants nothing all the same, and the other one
    /// waits as after a crash.
    pub fn hand_over(&self) -> Result<(Legacy, Vec<CarriedConnection>), StoreError> {
        let shared = &*self.shared;
        let is_in_quarantine = self.quarantine_left().is_some();
        self.close()?;
        let legacy = Legacy {
            files: if shared.disk.is_some() || is_in_quarantine {
                Files::new()
            } else {
                write(shared)?
            },
            scripts: shared.engine.script_texts(),
            run_id: shared.engine.run_id().to_owned(),
        };
        let carried = lock(&shared.carried).take();
        Ok((legacy, carried.unwrap_or_default()))
    }
}

/// Writes the locks as a clean stop does, but to memory.
fn write(shared: &Shared) -> Result<Files, StoreError> {
    let disk = MemoryDisk::default();
    let reading = shared.clock.reading();
    let settings = settings(shared.engine.guard().max_ttl(), true);
    let opened = Store::open(
        disk.clone(),
        &settings,
        machine_identity(),
        reading,
        rand::random(),
    );
    // Nothing that is opened for the first time, in memory, is refused. If it is, the other process waits.
    let Ok((mut store, _)) = opened else {
        return Ok(Files::new());
    };
    let goal = Durable {
        ceiling: shared.engine.fence_max(),
        ..store.durable()
    };
    let work = Work {
        log: Vec::new(),
        goal,
    };
    store.perform(&work, reading)?;
    store.close(&mut shared.engine.table(reading.moment.time), reading)?;
    Ok(disk.take())
}

/// Reads what [`write()`] wrote; `None` if that is not what it is.
pub(crate) fn read(files: Files, max_ttl: std::time::Duration, clock: &dyn Clock) -> Option<Start> {
    let disk = MemoryDisk::with(files);
    let reading = clock.reading();
    let settings = settings(max_ttl, false);
    let opened = Store::open(disk, &settings, machine_identity(), reading, rand::random());
    let (_, mut start) = opened.ok()?;
    if start.reason != StartReason::CleanStop {
        return None;
    }
    // Nothing is kept from here on, as in every node without a directory.
    start.incarnation = 0;
    start.durable = Start::without_guard(reading).durable;
    Some(start)
}

const fn settings(max_ttl: std::time::Duration, is_first_start: bool) -> StoreSettings {
    StoreSettings {
        max_ttl,
        durability: Durability::Long,
        is_first_start,
        needs_state: false,
    }
}

impl Legacy {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_len(out, self.files.len());
        for (name, content) in &self.files {
            put(out, name.as_bytes());
            put(out, content);
        }
        put_len(out, self.scripts.len());
        for script in &self.scripts {
            put(out, script);
        }
        put(out, self.run_id.as_bytes());
    }

    /// Reads them; `None` when they are not whole.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut legacy = Self::default();
        let rest = &mut { bytes };
        for _ in 0..take_len(rest)? {
            let name = String::from_utf8(take(rest)?.to_vec()).ok()?;
            legacy.files.insert(name, take(rest)?.to_vec());
        }
        for _ in 0..take_len(rest)? {
            legacy.scripts.push(take(rest)?.to_vec());
        }
        legacy.run_id = String::from_utf8(take(rest)?.to_vec()).ok()?;
        rest.is_empty().then_some(legacy)
    }
}

impl CarriedConnection {
    pub(crate) const fn new(
        socket: OwnedFd,
        session: CarriedSession,
        unread: Vec<u8>,
        unsent: Vec<u8>,
    ) -> Self {
        Self {
            socket,
            session,
            unread,
            unsent,
        }
    }

    /// Appends its bytes, which go beside its socket.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut session = Vec::new();
        self.session.encode(&mut session);
        put(out, &session);
        put(out, &self.unread);
        put(out, &self.unsent);
    }

    /// Reads them; `None` when they are not whole.
    pub fn decode(bytes: &[u8], socket: OwnedFd) -> Option<Self> {
        let rest = &mut { bytes };
        let session = CarriedSession::decode(take(rest)?)?;
        let (unread, unsent) = (take(rest)?.to_vec(), take(rest)?.to_vec());
        rest.is_empty()
            .then(|| Self::new(socket, session, unread, unsent))
    }
}

impl<L> Resuming<L> {
    /// Has a listener begin with these connections.
    pub const fn new(inner: L, carried: Vec<CarriedConnection>) -> Self {
        Self {
            inner,
            carried: Mutex::new(carried),
        }
    }
}

impl<L: Listener + Sync> Listener for Resuming<L> {
    type Stream = L::Stream;

    async fn accept(&self) -> std::io::Result<Accepted<Self::Stream>> {
        self.inner.accept().await
    }

    fn set_keepalive(&self, stream: &Self::Stream, seconds: u64) {
        self.inner.set_keepalive(stream, seconds);
    }

    fn duplicate(stream: &Self::Stream) -> Option<OwnedFd> {
        L::duplicate(stream)
    }

    fn adopt(&self, socket: OwnedFd) -> Option<Accepted<Self::Stream>> {
        self.inner.adopt(socket)
    }

    fn resume(&self) -> Option<Resumed<Self::Stream>> {
        loop {
            let carried = lock(&self.carried).pop()?;
            // A peer that left meanwhile is no loss.
            if let Some(accepted) = self.inner.adopt(carried.socket) {
                return Some(Resumed {
                    accepted,
                    session: carried.session,
                    unread: carried.unread,
                    unsent: carried.unsent,
                });
            }
        }
    }
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&(len as u64).to_le_bytes());
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn take_len(rest: &mut &[u8]) -> Option<usize> {
    let (len, more) = rest.split_first_chunk()?;
    *rest = more;
    usize::try_from(u64::from_le_bytes(*len)).ok()
}

fn take<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = take_len(rest)?;
    let (own, more) = rest.split_at_checked(len)?;
    *rest = more;
    Some(own)
}

#[cfg(test)]
mod tests;
