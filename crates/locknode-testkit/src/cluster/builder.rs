//! Building a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use locknode::NodeBuilder;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use super::clock::MachineClock;
use super::command_tap::{CommandTap, TappedCommand};
use super::error::ClusterError;
use super::folder::Folder;
use super::gate::Gate;
use super::member::Member;
use super::net::{LinkId, Net};
use super::recorder::Recorder;
use super::{ClientMachine, Cluster, Inner};
use crate::random::Random;
use crate::scenario::{GuardMode, Setup};
use crate::sim::Rule;
use crate::span::nanos;

/// Builds a [`Cluster`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ClusterBuilder {
    /// Of which only nodes, clients, guard, longest TTL, delay and seed count.
    setup: Setup,
    data_dir: Option<PathBuf>,
    first_port: u16,
    is_in_memory: bool,
    tap: Option<CommandTap>,
    recorder: Option<Arc<Recorder>>,
}

impl ClusterBuilder {
    pub(crate) fn new() -> Self {
        let setup = Setup {
            guard: GuardMode::Memory,
            max_ttl: Duration::from_secs(60),
            delay: (Duration::ZERO, Duration::ZERO),
            ..Setup::default()
        };
        Self {
            setup,
            data_dir: None,
            first_port: 0,
            is_in_memory: false,
            tap: None,
            recorder: None,
        }
    }

    /// How many nodes, 1 to 16. Default 5.
    pub const fn nodes(mut self, nodes: u8) -> Self {
        self.setup.nodes = nodes;
        self
    }

    /// How many clients have links of their own to break, 1 to 16. Default 3. On loopback each has one port per node; any
    /// number of programs may use the ports of one.
    pub const fn clients(mut self, clients: u8) -> Self {
        self.setup.clients = clients;
        self
    }

    /// How nodes guard their restarts. Default [`GuardMode::Memory`]. [`GuardMode::Long`] and [`GuardMode::Always`] come with
    /// data directories, in a temporary directory unless [`data_dir`](Self::data_dir) names another.
    pub const fn guard(mut self, guard: GuardMode) -> Self {
        self.setup.guard = guard;
        self
    }

    /// The longest TTL that rides on the restart guard, and so how long a node that knows nothing of its past stays out of
    /// every lock; 1 ms to 24 hours. Default 60 s.
    pub const fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.setup.max_ttl = max_ttl;
        self
    }

    /// Where the nodes' data directories are, `node-0` and so on. It stays when the cluster ends, and a cluster that is
    /// built on it later has the locks that were on disk.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// How long a message travels, at least and at most; drawn for each from the seed. Default nothing.
    pub const fn delay(mut self, at_least: Duration, at_most: Duration) -> Self {
        self.setup.delay = (at_least, at_most);
        self
    }

    /// Determines what is drawn: delays and the noise of clocks. Default 1.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.setup.seed = seed;
        self
    }

    /// The port of node 0 for client 0; the other nodes' ports follow, then those of client 1, and so on. Default 0: any free
    /// ports.
    pub const fn first_port(mut self, port: u16) -> Self {
        self.first_port = port;
        self
    }

    /// Commands whose first word is this one, in upper or lower case, reach no node: they go to their owner by this channel,
    /// whatever is wrong with the link, and are [answered](TappedCommand::answer) from there. For commands of your own, such as
    /// `FAULT`.
    pub fn tap(mut self, word: &'static str, owner: UnboundedSender<TappedCommand>) -> Self {
        self.tap = Some(CommandTap { word, owner });
        self
    }

    /// What nodes do is written down there.
    pub fn record(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Opens no ports: the nodes are reached by [`Cluster::connect`] and [`Cluster::redlock`] only, and the wall clocks
    /// begin at 2026-01-01. With paused time such a cluster waits for nothing.
    pub const fn in_memory(mut self) -> Self {
        self.is_in_memory = true;
        self
    }

    /// Nodes, clients, guard, longest TTL, delay and seed of a scenario.
    pub fn setup(mut self, setup: &Setup) -> Self {
        self.setup = setup.clone();
        self
    }

    /// Starts the nodes. They serve at once: nobody holds a lock of theirs yet, unless [`data_dir`](Self::data_dir) says
    /// otherwise.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Config`] for numbers out of range, a longest TTL out of range, or a data directory without a guard
    /// that uses one; else whatever ports and directories bring.
    ///
    /// # Cancel safety
    ///
    /// What was started ends.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled, and I/O unless [`in_memory`](Self::in_memory).
    pub async fn build(self) -> Result<Cluster, ClusterError> {
        self.check()?;
        let runtime = Handle::current();
        let folder = self.folder()?;
        let mut net = Net::new(
            self.setup.clients,
            self.setup.nodes,
            self.setup.delay,
            Random::stream(self.setup.seed, "cluster delay", 0),
        );
        (net.tap, net.recorder) = (self.tap.clone(), self.recorder.clone());
        let net = Arc::new(net);
        let mut members = Vec::new();
        for node in 0..self.setup.nodes {
            members.push(Arc::new(Member::new(
                node,
                &self.setup,
                self.clock(&runtime, Rule::Slower, node),
                folder.clone(),
                self.gates(node)?,
                Arc::clone(&net),
            )));
        }
        let machine = |client: u8| ClientMachine {
            clock: self.clock(&runtime, Rule::Faster, 16 + client),
            is_used: false.into(),
            player: None.into(),
        };
        let inner = Inner {
            machines: (0..self.setup.clients).map(machine).collect(),
            runtime,
            net,
            members,
        };
        let cluster = Cluster {
            inner: Arc::new(inner),
        };
        for member in &cluster.inner.members {
            member.start().await?;
        }
        Ok(cluster)
    }

    fn check(&self) -> Result<(), ClusterError> {
        let has_disk = matches!(self.setup.guard, GuardMode::Long | GuardMode::Always);
        let problem = match () {
            () if !(1..=16).contains(&self.setup.nodes) => {
                format!("{} nodes: 1 to 16 are possible", self.setup.nodes)
            }
            () if !(1..=16).contains(&self.setup.clients) => {
                format!("{} clients: 1 to 16 are possible", self.setup.clients)
            }
            () if !(Duration::from_millis(1)..=NodeBuilder::MAX_TTL_MAX).contains(&self.setup.max_ttl) => {
                "the longest TTL is 1 ms to 24 hours".to_owned()
            }
            () if self.last_port().is_none() => {
                format!("ports from {} on would go beyond 65535", self.first_port)
            }
            () if self.data_dir.is_some() && !has_disk => {
                "this restart guard uses no data directory: choose `GuardMode::Long` or `GuardMode::Always`".to_owned()
            }
            () => return Ok(()),
        };
        Err(ClusterError::Config(problem))
    }

    fn folder(&self) -> Result<Option<Arc<Folder>>, ClusterError> {
        let folder = match (self.setup.guard, &self.data_dir) {
            (GuardMode::Off | GuardMode::Memory, _) => return Ok(None),
            (_, Some(path)) => Folder::given(path.clone()),
            (_, None) => Folder::temporary(),
        };
        let folder = folder.map_err(|error| ClusterError::io("create a data directory", error))?;
        Ok(Some(Arc::new(folder)))
    }

    fn gates(&self, node: u8) -> Result<Vec<Gate>, ClusterError> {
        let clients = if self.is_in_memory {
            0
        } else {
            self.setup.clients
        };
        let reserve = |client| {
            let port = match self.first_port {
                0 => 0,
                first => first + u16::from(client) * u16::from(self.setup.nodes) + u16::from(node),
            };
            Gate::reserve(LinkId { client, node }, port)
                .map_err(|error| ClusterError::port(port, error))
        };
        (0..clients).map(reserve).collect()
    }

    /// The last port, if it is one.
    fn last_port(&self) -> Option<u16> {
        let ports = u16::from(self.setup.clients) * u16::from(self.setup.nodes);
        self.first_port.checked_add(ports.saturating_sub(1))
    }

    fn clock(&self, runtime: &Handle, rule: Rule, stream: u8) -> MachineClock {
        let wall_ns = if self.is_in_memory {
            WALL_NS
        } else {
            SystemTime::UNIX_EPOCH.elapsed().map_or(WALL_NS, nanos)
        };
        let noise = Random::stream(self.setup.seed, "cluster noise", stream.into());
        MachineClock::start(runtime.clone(), rule, wall_ns, noise)
    }
}

/// The beginning of 2026: what a cluster in memory does is not to depend on the day.
const WALL_NS: u64 = 1_767_225_600_000_000_000;
