//! Five nodes of a kind, or of two: locknodes in this process, real servers beside it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use locknode::Node;
use locknode_resp::Reply;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::conversation::Conversation;
use crate::loopback::LoopbackPort;
use crate::redis_server::RedisServer;

/// What a cluster is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// Five locknodes in this process.
    Locknodes,
    /// Five `redis-server` processes.
    RedisServers,
    /// Three locknodes and two `redis-server` processes.
    Mixed,
}

impl Make {
    /// Every make.
    pub const ALL: [Self; 3] = [Self::Locknodes, Self::RedisServers, Self::Mixed];
}

/// Five nodes on TCP, each of which can be killed and started again on its address, empty.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Member>,
}

#[derive(Debug)]
enum Member {
    Locknode(InProcessNode),
    Server(RedisServer),
}

/// A locknode that listens on TCP.
#[derive(Debug)]
struct InProcessNode {
    port: LoopbackPort,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Cluster {
    /// Starts five nodes; `None`, with the reason printed, when there is no real server to start.
    pub async fn start(make: Make) -> Option<Self> {
        let mut members = Vec::new();
        for index in 0..SIZE {
            let is_locknode = match make {
                Make::Locknodes => true,
                Make::RedisServers => false,
                Make::Mixed => index % 2 == 0,
            };
            members.push(if is_locknode {
                Member::Locknode(InProcessNode::start())
            } else {
                Member::Server(RedisServer::start_on_tcp()?)
            });
        }
        Some(Self { members })
    }

    /// The nodes' addresses as Redis users write them.
    pub fn urls(&self) -> Vec<String> {
        let addresses = (0..self.members.len()).map(|index| self.address(index));
        addresses
            .map(|address| format!("redis://{address}"))
            .collect()
    }

    /// The address of one node.
    pub fn address(&self, index: usize) -> SocketAddr {
        match &self.members[index] {
            Member::Locknode(node) => node.port.address(),
            Member::Server(server) => server.address(),
        }
    }

    /// Ends one node at once. What it knew is gone.
    pub async fn kill(&mut self, index: usize) {
        match &mut self.members[index] {
            Member::Locknode(node) => node.kill().await,
            Member::Server(server) => server.kill(),
        }
    }

    /// Starts one node again, empty.
    pub async fn restart(&mut self, index: usize) {
        match &mut self.members[index] {
            Member::Locknode(node) => {
                node.kill().await;
                node.running = Some(Running::start(&node.port));
            }
            Member::Server(server) => server.restart(),
        }
    }

    /// Asks one node something; `None` when it is not there.
    pub async fn ask(&self, index: usize, words: &[&str]) -> Option<Reply> {
        let mut conversation = Conversation::with(self.address(index)).await.ok()?;
        conversation.ask(words).await
    }

    /// The token that the key is held by, on each node; `None` where it is not held or nobody answers.
    pub async fn holders(&self, key: &str) -> Vec<Option<String>> {
        let mut holders = Vec::new();
        for index in 0..self.members.len() {
            holders.push(match self.ask(index, &["GET", key]).await {
                Some(Reply::Bulk(token)) => Some(String::from_utf8_lossy(&token).into_owned()),
                _ => None,
            });
        }
        holders
    }

    /// How many nodes have the key.
    pub async fn count(&self, key: &str) -> usize {
        self.holders(key).await.iter().flatten().count()
    }

    /// The keys on any node and how long the longest of each still lives; `None` for one that has no end.
    pub async fn keys(&self) -> BTreeMap<String, Option<Duration>> {
        let mut found = BTreeMap::new();
        for index in 0..self.members.len() {
            let Some(Reply::Array(keys)) = self.ask(index, &["KEYS", "*"]).await else {
                continue;
            };
            for key in keys {
                let Reply::Bulk(key) = key else { continue };
                let key = String::from_utf8_lossy(&key).into_owned();
                let remaining = match self.ask(index, &["PTTL", &key]).await {
                    Some(Reply::Integer(ms @ 0..)) => {
                        Some(Duration::from_millis(ms.unsigned_abs()))
                    }
                    Some(Reply::Integer(-1)) => None,
                    _ => continue,
                };
                let longest = found.entry(key).or_insert(remaining);
                *longest = longest.zip(remaining).map(|(a, b): (Duration, _)| a.max(b));
            }
        }
        found
    }

    /// Gives the key to nobody, on one node.
    pub async fn remove(&self, index: usize, key: &str) {
        self.ask(index, &["DEL", key]).await;
    }
}

impl InProcessNode {
    fn start() -> Self {
        let port = LoopbackPort::reserve();
        let running = Some(Running::start(&port));
        Self { port, running }
    }

    async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.stop);
            let _ = running.task.await;
        }
    }
}

impl Running {
    fn start(port: &LoopbackPort) -> Self {
        let listener = port.listen(BACKLOG);
        let node = Node::builder()
            .restart_guard(false)
            .drain(Duration::ZERO)
            .build();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let serve = node.serve(listener, async { drop(stopped.await) });
            serve.await.expect("a listener that goes on");
        });
        Self { stop, task }
    }
}

/// Nodes of a cluster.
pub const SIZE: usize = 5;

/// Connections that nobody has accepted yet, at most.
const BACKLOG: u32 = 128;
