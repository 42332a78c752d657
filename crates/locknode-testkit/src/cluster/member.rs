//! One node of a cluster over all its runs: starting, ending in order, dying, and what its disk goes through meanwhile.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use locknode::{Durability, Machine, Node, OpenNodeError};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::clock::MachineClock;
use super::error::ClusterError;
use super::folder::{Folder, unpredictable};
use super::gate::Gate;
use super::incarnation::{Door, Incarnation};
use super::net::Net;
use super::recorder::Recorder;
use crate::fault::Crash;
use crate::scenario::{GuardMode, Setup};
use crate::sim::reason_word;

/// A node, whether it runs or not.
#[derive(Debug)]
pub(crate) struct Member {
    number: u8,
    guard: GuardMode,
    pub(crate) clock: MachineClock,
    folder: Option<Arc<Folder>>,
    /// One for each client; none in memory.
    pub(crate) gates: Vec<Gate>,
    net: Arc<Net>,
    front: Mutex<Front>,
    /// Locked while the node starts or ends.
    back: AsyncMutex<Back>,
}

/// What others see of the node.
#[derive(Debug)]
struct Front {
    running: Option<(Node, Arc<Incarnation>)>,
    max_ttl: Duration,
    machine: Machine,
}

#[derive(Debug, Default)]
struct Back {
    /// Tasks of the last run that are not known to have ended: the server's first.
    tasks: Vec<JoinHandle<()>>,
    /// Tells the last run how it ends.
    end: Option<oneshot::Sender<Crash>>,
    has_started: bool,
}

impl Member {
    pub(crate) fn new(
        number: u8,
        setup: &Setup,
        clock: MachineClock,
        folder: Option<Arc<Folder>>,
        gates: Vec<Gate>,
        net: Arc<Net>,
    ) -> Self {
        let front = Front {
            running: None,
            max_ttl: setup.max_ttl,
            machine: another_machine(number),
        };
        Self {
            number,
            guard: setup.guard,
            clock,
            folder,
            gates,
            net,
            front: Mutex::new(front),
            back: AsyncMutex::default(),
        }
    }

    /// The node and its run, while it takes connections.
    pub(crate) fn running(&self) -> Option<(Node, Arc<Incarnation>)> {
        let running = self.front().running.clone();
        running.filter(|(_, incarnation)| !incarnation.door.is_closed())
    }

    /// From the next start on.
    pub(crate) fn set_max_ttl(&self, max_ttl: Duration) {
        self.front().max_ttl = max_ttl;
    }

    /// Why files on a real disk cannot have this crash.
    pub(crate) fn why_not(&self, how: Crash) -> Option<&'static str> {
        let folder = self.folder.as_ref()?;
        match how {
            Crash::PowerLoss | Crash::PowerLossAll | Crash::TornWrite => Some(
                "the nodes write real files, and the system keeps what a task has written, synced or not",
            ),
            Crash::Rollback if !folder.has_kept(self.number) => {
                Some("the node was not stopped in order yet, so there is nothing to go back to")
            }
            _ => None,
        }
    }

    /// Ends the node, if it runs; then its disk suffers.
    pub(crate) async fn crash(&self, how: Crash) -> Result<(), ClusterError> {
        let mut back = self.back.lock().await;
        if how != Crash::CleanStop {
            // For others the node is gone at once, whatever its tasks still have to do.
            let running = self.front().running.take();
            if let Some((_, incarnation)) = running {
                incarnation.killed.send_replace(true);
                self.record(|recorder| recorder.down(self.number, how));
            }
        }
        if let Some(sender) = back.end.take() {
            // The run may have ended by itself.
            let _ = sender.send(how);
        }
        back.wait().await;
        let Some(folder) = self.folder.clone() else {
            return Ok(());
        };
        let number = self.number;
        let suffered = match how {
            Crash::DiskLost => blocking(move || folder.lose(number)).await,
            Crash::Rollback => blocking(move || folder.roll_back(number)).await,
            Crash::Moved => {
                self.front().machine = another_machine(number);
                Ok(())
            }
            _ => Ok(()),
        };
        suffered.map_err(|error| ClusterError::io("change a node's data directory", error))
    }

    /// Starts the node, unless it runs.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<(), ClusterError> {
        let mut back = self.back.lock().await;
        if self.net.is_closed() {
            return Err(ClusterError::Ended);
        }
        if self.running().is_some() {
            return Ok(());
        }
        back.wait().await;
        let node = self.open(!back.has_started).await?;
        let waits_for_disk = self.folder.is_some() && self.gates.is_empty();
        let (incarnation, door) = Incarnation::new(waits_for_disk);
        let mut gates = Vec::new();
        for gate in &self.gates {
            node.listens_on(gate.address);
            // Somebody may have taken it while the node was down.
            let accept = gate.open(&self.net, &incarnation);
            let port = gate.address.port();
            gates.push(accept.map_err(|error| ClusterError::port(port, error))?);
        }
        self.front().running = Some((node.clone(), incarnation));
        back.has_started = true;
        self.record(|recorder| {
            let reason = reason_word(node.guard().reason);
            recorder.started(self.number, node.quarantine_left(), reason);
        });
        let (end, ended) = oneshot::channel();
        back.end = Some(end);
        let server = tokio::spawn(Arc::clone(self).serve(node, door, ended));
        back.tasks.push(server);
        back.tasks.extend(gates.into_iter().map(tokio::spawn));
        Ok(())
    }

    /// The cluster is gone: the node dies without anybody waiting for it.
    pub(crate) fn let_go(&self) {
        if let Some((_, incarnation)) = self.front().running.take() {
            incarnation.killed.send_replace(true);
        }
        if let Ok(mut back) = self.back.try_lock() {
            back.end = None;
        }
    }

    async fn open(&self, is_first: bool) -> Result<Node, ClusterError> {
        let Front {
            max_ttl, machine, ..
        } = *self.front();
        let (number, guard) = (self.number, self.guard);
        let (clock, folder) = (self.clock.clone(), self.folder.clone());
        let is_new = folder.as_ref().is_none_or(|it| !it.has_node(number));
        let builder = move || {
            let durability = match guard {
                GuardMode::Always => Durability::Always,
                GuardMode::Off | GuardMode::Memory | GuardMode::Long => Durability::Long,
            };
            Node::builder()
                .restart_guard(guard != GuardMode::Off)
                .max_ttl(max_ttl)
                .durability(durability)
                .first_start(is_first && is_new)
                .machine(machine)
                .clock(clock.clone())
                .drain(DRAIN)
        };
        let Some(folder) = folder else {
            return Ok(builder().build());
        };
        let opening = move || {
            let open = || builder().open(folder.of_node(number));
            let mut opened = open();
            for _ in 0..IN_USE_MAX {
                // The last run's connections go away one by one, and the directory is theirs until then.
                if opened.as_ref().is_err_and(OpenNodeError::is_in_use) {
                    thread::sleep(IN_USE_PAUSE);
                    opened = open();
                }
            }
            opened
        };
        let opened = spawn_blocking(opening).await;
        let opened = opened.map_err(|_| ClusterError::Ended)?;
        opened.map_err(|error| ClusterError::Open(number, error))
    }

    /// A run of the node.
    async fn serve(self: Arc<Self>, node: Node, door: Door, ended: oneshot::Receiver<Crash>) {
        let mut end = None;
        // The listener is a queue: it does not fail.
        let _ = node.serve(door, async { end = Some(ended.await) }).await;
        // It may have ended by itself, in order.
        let is_killed = end.is_some_and(|how| how != Ok(Crash::CleanStop));
        if !is_killed {
            self.record(|recorder| recorder.down(self.number, Crash::CleanStop));
        }
        let (number, folder) = (self.number, self.folder.clone());
        let closing = move || {
            if !is_killed && node.close().is_ok() {
                // A disk that is full keeps nothing to go back to.
                let _ = folder.map(|folder| folder.keep(number));
            } else {
                drop(node);
            }
        };
        self.front().running = None;
        let _ = spawn_blocking(closing).await;
    }

    fn record(&self, event: impl FnOnce(&Recorder)) {
        if let Some(recorder) = &self.net.recorder {
            event(recorder);
        }
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Back {
    /// Waits until nothing of the last run is left. A call that is dropped is taken up by the next.
    async fn wait(&mut self) {
        while let Some(task) = self.tasks.last_mut() {
            let _ = task.await;
            self.tasks.pop();
        }
        self.end = None;
    }
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}

/// A machine that differs from every other, in this process or another.
fn another_machine(number: u8) -> Machine {
    let id = |salt| u128::from(unpredictable(salt)) << 64 | u128::from(unpredictable(salt));
    Machine {
        boot_id: (id(u64::from(number)) | 1).to_le_bytes(),
        machine_id: (id(u64::from(number)) | 1).to_le_bytes(),
        time_namespace: Machine::INITIAL_TIME_NAMESPACE,
    }
}

/// How long clients have to take their replies when a node ends in order.
const DRAIN: Duration = Duration::from_secs(1);

/// Between two attempts to open a directory that the last run still has.
const IN_USE_PAUSE: Duration = Duration::from_millis(5);

/// Attempts: two seconds of them.
const IN_USE_MAX: u32 = 400;
