//! One run of a node's process, as its connections see it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locknode::{Accepted, Listener, Peer};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};

/// A run of a node: new connections go to it, and end with it.
#[derive(Debug)]
pub(crate) struct Incarnation {
    /// Closed once the node takes no connections any more.
    pub(crate) door: mpsc::Sender<Accepted<DuplexStream>>,
    /// Once this is true, nothing comes out of the node.
    pub(crate) killed: watch::Sender<bool>,
    pub(crate) anchor: Option<Anchor>,
}

/// Where the node's server takes its connections from.
#[derive(Debug)]
pub(crate) struct Door(AsyncMutex<mpsc::Receiver<Accepted<DuplexStream>>>);

/// Keeps paused time from running on while a node's disk, which works in real time, is waited for: tokio does not
/// advance a paused clock while a blocking task runs.
#[derive(Debug, Default)]
pub(crate) struct Anchor(Arc<Pending>);

#[derive(Debug, Default)]
struct Pending {
    requests: Mutex<usize>,
    none_is_left: Condvar,
}

impl Incarnation {
    pub(crate) fn new(waits_for_disk: bool) -> (Arc<Self>, Door) {
        let (door, connections) = mpsc::channel(BACKLOG);
        let incarnation = Self {
            door,
            killed: watch::Sender::new(false),
            anchor: waits_for_disk.then(Anchor::default),
        };
        (Arc::new(incarnation), Door(AsyncMutex::new(connections)))
    }

    /// The near end of a new connection to the node.
    ///
    /// # Errors
    ///
    /// When the node is down.
    pub(crate) async fn open(&self, peer: Peer) -> io::Result<DuplexStream> {
        let (near, far) = duplex(PIPE_BYTES);
        let accepted = Accepted {
            stream: far,
            peer,
            is_local: true,
        };
        match self.door.send(accepted).await {
            Ok(()) => Ok(near),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

impl Listener for Door {
    type Stream = DuplexStream;

    async fn accept(&self) -> io::Result<Accepted<DuplexStream>> {
        match self.0.lock().await.recv().await {
            Some(accepted) => Ok(accepted),
            None => std::future::pending().await,
        }
    }
}

impl Anchor {
    /// So many requests are on their way to the node.
    pub(crate) fn asked(&self, requests: usize) {
        if requests == 0 {
            return;
        }
        let mut pending = self.0.lock();
        if *pending == 0 {
            let waits = Arc::clone(&self.0);
            drop(tokio::task::spawn_blocking(move || waits.wait()));
        }
        *pending += requests;
    }

    /// So many were answered, or will not be.
    pub(crate) fn answered(&self, requests: usize) {
        let mut pending = self.0.lock();
        *pending = pending.saturating_sub(requests);
        if *pending == 0 {
            self.0.none_is_left.notify_all();
        }
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        self.answered(usize::MAX);
    }
}

impl Pending {
    fn wait(&self) {
        let pending = self.lock();
        let is_some = |pending: &mut usize| *pending > 0;
        let waited = self
            .none_is_left
            .wait_timeout_while(pending, ANCHOR_MAX, is_some);
        let (mut pending, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            // These wait for time to pass, not for the disk.
            *pending = 0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections that the node has not accepted: more wait.
const BACKLOG: usize = 64;

/// What a pipe to a node holds: as much as the node reads at once.
pub(crate) const PIPE_BYTES: usize = 64 << 10;

/// A disk that takes longer is not waited for: then paused time runs on. A request that waits for paused time itself, as
/// under CLIENT PAUSE, costs a test so much real time.
const ANCHOR_MAX: Duration = Duration::from_secs(1);
