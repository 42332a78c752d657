//! One node of a cluster over all its runs: starting, ending in order, dying, and what its disk goes through meanwhile.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use locknode::{Durability, Machine, Node, NodeBuilder, OpenNodeError, StartReason};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::clock::{MachineClock, NodeClock};
use super::error::ClusterError;
use super::folder::{Folder, unpredictable};
use super::gate::Gate;
use super::incarnation::{Door, Incarnation};
use super::net::Net;
use super::recorder::Recorder;
use crate::fault::Crash;
use crate::scenario::GuardMode;

/// A node, whether it runs or not.
#[derive(Debug)]
pub(crate) struct Member {
    number: u8,
    guard: GuardMode,
    pub(crate) clock: Arc<MachineClock>,
    folder: Option<Arc<Folder>>,
    /// One for each client; none in memory.
    pub(crate) gates: Vec<Gate>,
    net: Arc<Net>,
    front: Mutex<Front>,
    /// Held by whoever starts or ends the node.
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
    end: Option<oneshot::Sender<End>>,
    has_started: bool,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    InOrder,
}

impl Member {
    pub(crate) fn new(
        number: u8,
        guard: GuardMode,
        max_ttl: Duration,
        clock: MachineClock,
        folder: Option<Arc<Folder>>,
        gates: Vec<Gate>,
        net: Arc<Net>,
    ) -> Self {
        let front = Front {
            running: None,
            max_ttl,
            machine: another_machine(number),
        };
        Self {
            number,
            guard,
            clock: Arc::new(clock),
            folder,
            gates,
            net,
            front: Mutex::new(front),
            back: AsyncMutex::default(),
        }
    }

    pub(crate) fn node(&self) -> Option<Node> {
        self.front().running.as_ref().map(|(node, _)| node.clone())
    }

    pub(crate) fn incarnation(&self) -> Option<Arc<Incarnation>> {
        let front = self.front();
        let (_, incarnation) = front.running.as_ref()?;
        (!incarnation.is_over()).then(|| Arc::clone(incarnation))
    }

    /// From the next start on.
    pub(crate) fn set_max_ttl(&self, max_ttl: Duration) {
        self.front().max_ttl = max_ttl;
    }

    /// Why this crash cannot be had with the files of a real disk.
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
        let end = match how {
            Crash::CleanStop => End::InOrder,
            _ => End::Kill,
        };
        if end == End::Kill {
            // For others the node is gone at once, whatever its tasks still have to do.
            let running = self.front().running.take();
            if let Some((_, incarnation)) = running {
                incarnation.kill();
                self.record(|recorder| recorder.down(self.number, how));
            }
        }
        if let Some(sender) = back.end.take() {
            // The run may have ended by itself.
            let _ = sender.send(end);
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
        if self.incarnation().is_some() {
            return Ok(());
        }
        back.wait().await;
        let node = self.open(!back.has_started).await?;
        let waits_for_disk = self.folder.is_some() && self.gates.is_empty();
        let (incarnation, door) = Incarnation::new(waits_for_disk);
        let mut gates = Vec::new();
        for gate in &self.gates {
            node.listens_on(gate.address());
            // Somebody may have taken it while the node was down.
            let accept = gate.open(&self.net, &incarnation);
            let port = gate.address().port();
            gates.push(accept.map_err(|error| ClusterError::port(port, error))?);
        }
        self.front().running = Some((node.clone(), incarnation));
        back.has_started = true;
        self.record(|recorder| {
            recorder.started(self.number, node.quarantine_left(), reason(&node));
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
            incarnation.kill();
        }
        if let Ok(mut back) = self.back.try_lock() {
            back.end = None;
        }
    }

    async fn open(&self, is_first: bool) -> Result<Node, ClusterError> {
        let (max_ttl, machine) = {
            let front = self.front();
            (front.max_ttl, front.machine)
        };
        let durability = match self.guard {
            GuardMode::Always => Durability::Always,
            GuardMode::Off | GuardMode::Memory | GuardMode::Long => Durability::Long,
        };
        let number = self.number;
        let folder = self.folder.clone();
        let is_new = folder
            .as_ref()
            .is_none_or(|folder| !folder.has_node(number));
        let clock = Arc::clone(&self.clock);
        let builder = move || {
            Node::builder()
                .restart_guard(!matches!(self.guard, GuardMode::Off))
                .max_ttl(max_ttl)
                .durability(durability)
                .first_start(is_first && is_new)
                .machine(machine)
                .clock(NodeClock(Arc::clone(&clock)))
                .drain(DRAIN)
        };
        let Some(folder) = folder else {
            return Ok(builder().build());
        };
        let path = folder.of_node(number);
        let mut attempts = 0;
        loop {
            let (builder, path) = (builder(), path.clone());
            let opened = spawn_blocking(move || open_or_wait(builder, path)).await;
            match opened {
                Ok(Ok(node)) => return Ok(node),
                // The last run's connections go away one by one, and the directory is theirs until then.
                Ok(Err(error)) if error.is_in_use() && attempts < IN_USE_MAX => attempts += 1,
                Ok(Err(error)) => return Err(ClusterError::Open(number, error)),
                Err(_) => return Err(ClusterError::Ended),
            }
        }
    }

    /// A run of the node.
    async fn serve(self: Arc<Self>, node: Node, door: Door, ended: oneshot::Receiver<End>) {
        let mut end = None;
        // The listener is a queue: it does not fail.
        let _ = node.serve(door, async { end = Some(ended.await) }).await;
        let is_killed = matches!(end, Some(Ok(End::Kill) | Err(_)));
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

fn open_or_wait(builder: NodeBuilder, path: std::path::PathBuf) -> Result<Node, OpenNodeError> {
    let opened = builder.open(path);
    if opened.as_ref().is_err_and(OpenNodeError::is_in_use) {
        thread::sleep(IN_USE_PAUSE);
    }
    opened
}

/// Why a node that has started waits or does not, in a word.
fn reason(node: &Node) -> &'static str {
    match node.guard().reason {
        StartReason::FirstStart => "first-start",
        StartReason::CleanStop => "start-after-clean-stop",
        StartReason::Crash => "start-after-crash",
        StartReason::Empty => "start-on-empty-disk",
        StartReason::NoDirectory => "start-without-directory",
        StartReason::GuardOff => "start-without-guard",
        StartReason::Logged => "start-from-log",
        _ => "start",
    }
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}

/// A machine that is nobody else's, in this process or another.
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
