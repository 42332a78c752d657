//! The five nodes as real servers, for your own code and for clients in any language, with faults in between.
//!
//! ```text
//!  your code, our client --- in-memory stream --+
//!                                               +-- link (client c, node n): faults -- node n: the server of `locknode`
//!  any client, any language --- 127.0.0.1:port -+                                      its clocks, its data directory
//! ```
//!
//! A [`Cluster`] runs the nodes of the crate `locknode` inside of the current tokio runtime and stands between them and
//! their clients. The faults are those of the simulated world, [`Fault`](crate::Fault); what real servers cannot have says so
//! ([`NotHere`]).
//!
//! # In memory, under paused time
//!
//! With [`in_memory`](ClusterBuilder::in_memory) and a paused clock hours pass in milliseconds, and a test that waits for a
//! quarantine, a TTL or a timeout waits for nothing. [`Cluster::redlock`] is our client, connected; [`Cluster::connect`] is a
//! byte stream for any other.
//!
//! ```
//! use std::time::Duration;
//! use locknode_testkit::cluster::Cluster;
//!
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let cluster = Cluster::builder().nodes(5).in_memory().build().await?;
//!     let redlock = cluster.redlock(0)?.build()?;
//!     let lock = redlock.lock("invoice/42").ttl(Duration::from_secs(30)).acquire().await?;
//!
//!     cluster.crash(2).await?; // takes its share of the lock with it ...
//!     cluster.restart(2).await?; // ... and stays out of every lock for over a minute
//!     assert!(cluster.quarantine_left(2) > Some(Duration::from_secs(60)));
//!     lock.extend(Duration::from_secs(30)).await?; // four are a majority
//!     cluster.wait_until_serving(2).await?; // a minute, at once
//!     assert!(!lock.is_valid());
//!     Ok(())
//! }
//! ```
//!
//! # On loopback, for any client
//!
//! Ports are free ones that the system chooses. They stay the same over crashes and restarts; while a node is down,
//! connections to its ports are refused.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use locknode_testkit::cluster::Cluster;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let cluster = Cluster::builder().nodes(3).build().await?;
//!     println!("give these to your program: {}", cluster.urls().join(" "));
//!     let address = cluster.addresses()[0];
//!     let client = tokio::task::spawn_blocking(move || {
//!         let mut stream = TcpStream::connect(address)?;
//!         stream.write_all(b"SET invoice/42 token-a NX PX 30000\r\n")?;
//!         let mut reply = [0; 5];
//!         stream.read_exact(&mut reply).map(|()| reply)
//!     });
//!     assert_eq!(&client.await??, b"+OK\r\n");
//!     cluster.crash(0).await?;
//!     assert!(TcpStream::connect(address).is_err());
//!     Ok(())
//! }
//! ```
//!
//! # Clients and links
//!
//! A link is between one client and one node. Who uses which is known by where it connects: [`Cluster::connect`] and
//! [`Cluster::redlock`] say it, and on loopback each client has ports of its own, [`Cluster::addresses_for`]. Programs that use
//! the same ports are the same client; [`Cluster::addresses`] are those of client 0.
//!
//! Messages are whole requests and whole replies, whatever pieces they arrive in. A message that is lost takes its connection
//! with it: nothing that follows it in its direction arrives, and neither end notices, until it gives up by itself or the node
//! crashes.
//! What a proxy might do, to lose one reply and pass on the next, is [`Cluster::skip_replies`].
//!
//! # Scenarios
//!
//! [`Cluster::run`] plays a scenario with its faults and its clients: one from a file, or
//! [`Swarm::chaos`](crate::Swarm::chaos).
//!
//! # Clocks
//!
//! Every node has clocks of its own, which go on while it is down and follow the runtime's time, paused or real, except
//! for what faults do to them. The clients' are [`Cluster::client_clock`].
//!
//! # For tools
//!
//! * [`ClusterBuilder::first_port`]: ports that people can remember, instead of free ones.
//! * [`ClusterBuilder::tap`]: commands of your own, which any client can send through the ports of any node; such as one that
//!   crashes the node that receives it.
//! * [`ClusterBuilder::record`]: a history of what nodes did, in real time, which the kit's checks and timelines take; and what
//!   clients that know nothing of the kit held, read off the wire: [`Recorder::wire_history`].
//!
//! # What is not here
//!
//! * **Determinism.** In memory, with one thread, paused time and without a data directory, runs hardly differ; but tokens,
//!   retries and node ids are random. Replay from a seed is what the simulated world is for.
//! * **Disks that fail.** With a guard that has a data directory the files are real: a crash keeps what was written, synced
//!   or not, and syncs take real time. Paused time waits for them, a second at most.
//! * **Connections that open late, on loopback.** The system answers before a link has a say: a client behind a cut connects
//!   and hears nothing, and is refused at once by a node that is down. In memory connecting takes as long as the link makes
//!   it take.
//! * **Paused time on loopback.** Sockets are real: a paused clock runs ahead while bytes are on their way.
//! * **`CLIENT REPLY OFF` and `SKIP`.** The links know a request as answered by its reply, and do not follow these commands:
//!   requests whose replies never come stay open in their account, so what is recorded, and the answers to tapped
//!   commands behind them, go by the wrong requests from there on.
//!
//! # Limits
//!
//! 16 nodes and 16 clients; 512 connections to a node, others are broken at once; 2 MiB on their way on a connection, then its
//! sender has to wait; messages above 1 MiB pass in pieces and are judged piece by piece. Connections whose clients have said
//! that they say no more do not count among the 512: what they have sent arrives when the link lets it, within 100 s, on 64 of
//! them per link; what is beyond that is given up at once.

mod builder;
mod clock;
mod command_tap;
mod error;
mod faults;
mod folder;
mod framing;
mod gate;
mod incarnation;
mod lock_command;
mod member;
mod net;
mod player;
mod pump;
mod recorder;
mod relay;
mod run;
mod stream;
mod wire;
mod wire_history;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locknode::{Node, Peer};
use redlock_client::{Connecting, Connection, Connector, NodeAddress, NodeId, Redlock};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::sleep;

use self::clock::MachineClock;
use self::member::Member;
use self::net::{LinkId, Net};
use self::player::Player;
use self::relay::Passage;
use crate::fault::Crash;

pub use self::builder::ClusterBuilder;
pub use self::command_tap::TappedCommand;
pub use self::error::{ClusterError, NotHere};
pub use self::folder::Folder;
pub use self::recorder::Recorder;
pub use self::stream::ClientStream;
pub use self::wire::WireCounts;
pub use self::wire_history::{Holder, WireHistory};

/// Nodes that run, and the links to them. Clones are handles to the same cluster; it ends with the last one, or with
/// [`shutdown`](Self::shutdown). See the [module](self).
#[derive(Clone, Debug)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: Handle,
    net: Arc<Net>,
    members: Vec<Arc<Member>>,
    machines: Vec<ClientMachine>,
}

/// The machine of a client.
#[derive(Debug)]
struct ClientMachine {
    clock: MachineClock,
    /// Whether anybody has asked for the clock.
    is_used: AtomicBool,
    /// The client if it plays in a run.
    player: Mutex<Option<Arc<Player>>>,
}

/// A client's way to the nodes: through its ports, or in memory without them. It does not keep the cluster alive.
#[derive(Clone, Debug)]
struct LinkConnector {
    cluster: Weak<Inner>,
    client: u8,
    /// Where the client notes what it believes, if it plays.
    notes_itself: Option<Arc<Recorder>>,
}

impl Cluster {
    /// How many connections a node takes; others are broken at once.
    pub const CONNECTIONS_MAX: usize = net::CONNECTIONS_MAX;

    /// How many connections a link keeps whose clients have left, for what they have sent; the others are given up at once.
    pub const ORPHANS_MAX: usize = net::ORPHANS_MAX;

    /// A builder: five nodes, three clients, guards without a disk, ports on loopback.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::new()
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u8 {
        u8::try_from(self.inner.members.len()).unwrap_or(u8::MAX)
    }

    /// How many clients have links of their own.
    pub fn clients(&self) -> u8 {
        u8::try_from(self.inner.machines.len()).unwrap_or(u8::MAX)
    }

    /// The nodes' addresses for client 0; none in memory.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses_for(0).unwrap_or_default()
    }

    /// The nodes' addresses for one of the clients; none in memory.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchClient`].
    pub fn addresses_for(&self, client: u8) -> Result<Vec<SocketAddr>, ClusterError> {
        self.machine(client)?;
        let gate = |member: &Arc<Member>| {
            let gate = member.gates.get(usize::from(client))?;
            Some(gate.address)
        };
        Ok(self.inner.members.iter().filter_map(gate).collect())
    }

    /// [`addresses`](Self::addresses) as Redis clients write them: `redis://127.0.0.1:49152`.
    pub fn urls(&self) -> Vec<String> {
        self.urls_for(0).unwrap_or_default()
    }

    /// [`addresses_for`](Self::addresses_for) as Redis clients write them.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchClient`].
    pub fn urls_for(&self, client: u8) -> Result<Vec<String>, ClusterError> {
        let addresses = self.addresses_for(client)?;
        let url = |address: &SocketAddr| format!("redis://{address}");
        Ok(addresses.iter().map(url).collect())
    }

    /// A new connection from a client to a node, in memory. It works beside open ports too.
    ///
    /// # Errors
    ///
    /// As of a socket: [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) while the node is down; and
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when there is no such client or node.
    ///
    /// # Cancel safety
    ///
    /// Nothing was connected.
    pub async fn connect(&self, client: u8, node: u8) -> io::Result<ClientStream> {
        self.inner.connect(client, node, "client").await
    }

    /// Our client as this client: a builder that knows the nodes and reads [`client_clock`](Self::client_clock). On loopback it
    /// goes through the client's ports.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchClient`].
    pub fn redlock(&self, client: u8) -> Result<redlock_client::Builder, ClusterError> {
        let builder = Redlock::builder().clock(self.client_clock(client)?);
        let urls = self.urls_for(client)?;
        if !urls.is_empty() {
            return Ok(builder.nodes(urls));
        }
        let names = (0..self.nodes()).map(|node| format!("node-{node}"));
        let connector = Arc::new(self.way(client));
        Ok(builder.nodes(names).connector(connector))
    }

    /// The clock of the machine that this client is on: the runtime's time, and whatever faults do to it.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchClient`].
    pub fn client_clock(&self, client: u8) -> Result<Arc<dyn redlock_client::Clock>, ClusterError> {
        let machine = self.machine(client)?;
        machine.is_used.store(true, Ordering::Release);
        Ok(Arc::new(machine.clock.clone()))
    }

    /// Whether the node runs, in quarantine or not.
    pub fn is_up(&self, node: u8) -> bool {
        self.node(node).is_some()
    }

    /// The node itself while it runs, for its figures. A clone that is kept over the end of the node keeps its data directory
    /// from the next start.
    pub fn node(&self, node: u8) -> Option<Node> {
        let (node, _) = self.member(node).ok()?.running()?;
        Some(node)
    }

    /// How long the node stays out of every lock; `None` when it serves, or is down.
    pub fn quarantine_left(&self, node: u8) -> Option<Duration> {
        self.node(node)?.quarantine_left()
    }

    /// Waits until the node serves; does not wait for a node that is down.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchNode`].
    ///
    /// # Cancel safety
    ///
    /// Nothing has changed.
    pub async fn wait_until_serving(&self, node: u8) -> Result<(), ClusterError> {
        self.member(node)?;
        while let Some(left) = self.quarantine_left(node) {
            // The node's clock may be slower than ours.
            sleep(left.max(GLANCE)).await;
        }
        Ok(())
    }

    /// Connections to the node right now, without those whose clients have left.
    pub fn connections(&self, node: u8) -> usize {
        self.inner.net.connections(node)
    }

    /// Ends all nodes as if they were killed, breaks all connections, and waits for that. Other handles see nodes that are
    /// down. A temporary data directory is removed with the last handle.
    ///
    /// # Cancel safety
    ///
    /// Connections are broken and no node starts any more; nodes may run until the last handle is gone.
    pub async fn shutdown(self) {
        self.inner.net.close();
        for member in &self.inner.members {
            // Killing does not fail.
            let _ = member.crash(Crash::Kill).await;
        }
    }

    fn way(&self, client: u8) -> LinkConnector {
        LinkConnector {
            cluster: Arc::downgrade(&self.inner),
            client,
            notes_itself: None,
        }
    }

    fn member(&self, node: u8) -> Result<&Arc<Member>, ClusterError> {
        let member = self.inner.members.get(usize::from(node));
        member.ok_or(ClusterError::NoSuchNode(node))
    }

    fn machine(&self, client: u8) -> Result<&ClientMachine, ClusterError> {
        let machine = self.inner.machines.get(usize::from(client));
        machine.ok_or(ClusterError::NoSuchClient(client))
    }
}

impl Inner {
    /// Connects in memory; the node sees the client by this name.
    async fn connect(&self, client: u8, node: u8, name: &str) -> io::Result<ClientStream> {
        let member = self.members.get(usize::from(node));
        let (Some(member), true) = (member, usize::from(client) < self.machines.len()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let link = LinkId { client, node };
        let mut changes = self.net.changed.subscribe();
        loop {
            // Nothing is answered through a cut, not even with a refusal.
            match self.net.opening(link) {
                _ if self.net.is_closed() => return Err(io::ErrorKind::ConnectionRefused.into()),
                None if changes.changed().await.is_ok() => {}
                None | Some(Duration::ZERO) => break,
                Some(span) => {
                    sleep(span).await;
                    break;
                }
            }
        }
        let Some((_, incarnation)) = member.running() else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let (near, far) = ClientStream::pair();
        let peer = Peer {
            addr: format!("{name}-{client}:0"),
            laddr: format!("node-{node}:0"),
            fd: 0,
        };
        let passage = Passage::new(Arc::clone(&self.net), link, incarnation, peer);
        let relay = passage.relay(far, ClientStream::break_off);
        drop(self.runtime.spawn(relay));
        Ok(near)
    }
}

impl Drop for Inner {
    /// The tasks of nodes, ports and connections end by themselves.
    fn drop(&mut self) {
        self.net.close();
        for member in &self.members {
            member.let_go();
        }
    }
}

impl LinkConnector {
    async fn dial(&self, node: u8) -> io::Result<Box<dyn Connection>> {
        let cluster = self.cluster.upgrade();
        let cluster = cluster.ok_or(io::ErrorKind::ConnectionRefused)?;
        let member = cluster.members.get(usize::from(node));
        let gates = &member.ok_or(io::ErrorKind::InvalidInput)?.gates;
        let address = gates.get(usize::from(self.client)).map(|gate| gate.address);
        let Some(address) = address else {
            let name = if self.notes_itself.is_some() {
                recorder::PLAYER
            } else {
                "client"
            };
            return Ok(Box::new(cluster.connect(self.client, node, name).await?));
        };
        drop(cluster);
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        if let Some(recorder) = &self.notes_itself {
            recorder.notes_itself(stream.local_addr()?, address);
        }
        Ok(Box::new(stream))
    }
}

impl Connector for LinkConnector {
    fn connect(&self, node: NodeId, _: &NodeAddress) -> Connecting {
        let way = self.clone();
        Box::pin(async move {
            let node = u8::try_from(node.index()).map_err(|_| io::ErrorKind::InvalidInput)?;
            way.dial(node).await
        })
    }
}

/// Between two looks at a node that is about to serve.
const GLANCE: Duration = Duration::from_millis(1);
