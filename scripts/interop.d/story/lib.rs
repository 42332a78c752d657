//! The life of a lock, told through any Rust library on all nodes.
//!
//! A client's file implements [`Client`]; the story acquires, contends, extends, releases and
//! expires, and looks at every node itself, over its own sockets, after each step. It panics at the
//! first thing that is not as it should be, which is how a client's run fails.

use std::env;
use std::future::Future;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The resource that the story is about, which is also its key.
pub const RESOURCE: &str = "interop:resource";
const LONG_TTL: Duration = Duration::from_secs(30);
/// Long enough that five writes on a busy machine fit in, short enough to wait for.
const SHORT_TTL: Duration = Duration::from_millis(800);
/// How long the nodes that a library does not wait for may take to follow.
const SETTLE: Duration = Duration::from_secs(5);
/// How long a client tries for a lock that expires meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

/// The release script of the documented algorithm, for the clients that are no lock libraries.
pub const RELEASE: &str =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
/// The same condition before a new TTL.
pub const EXTEND: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then \
     return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";

/// A library with connections to all nodes.
pub trait Client: Sized {
    /// What an acquired lock is to the library.
    type Handle;

    /// Connects to the nodes.
    fn connect() -> impl Future<Output = Self>;
    /// Tries once.
    fn acquire(&self, resource: &str, ttl: Duration) -> impl Future<Output = Option<Self::Handle>>;
    /// True when the lock was held and has the new TTL.
    fn extend(&self, handle: &Self::Handle, ttl: Duration) -> impl Future<Output = bool>;
    /// Releases what is still held.
    fn release(&self, handle: &Self::Handle) -> impl Future<Output = ()>;
}

/// The addresses of the nodes.
pub fn nodes() -> Vec<String> {
    let nodes = env::var("INTEROP_NODES").expect("INTEROP_NODES names the nodes");
    nodes.split(',').map(str::to_owned).collect()
}

/// The addresses of those that serve: one may be down or in its quarantine.
fn serving() -> Vec<String> {
    let nodes = env::var("INTEROP_SERVING").expect("INTEROP_SERVING names the nodes that serve");
    nodes.split(',').map(str::to_owned).collect()
}

/// A token with every byte that a text protocol could stumble over.
pub fn binary_token() -> Vec<u8> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut token: Vec<u8> = (0..=u8::MAX).collect();
    token.extend_from_slice(b"\r\n$-1\r\n");
    token.extend_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    token
}

/// A majority of as many nodes as there are.
pub fn quorum() -> usize {
    nodes().len() / 2 + 1
}

/// Tells the story with one client type and returns the names of its steps.
pub async fn tell<C: Client>() -> &'static str {
    let mut stage = Stage::open();
    let (first, second) = (C::connect().await, C::connect().await);

    let handle = first
        .acquire(RESOURCE, LONG_TTL)
        .await
        .expect("a free resource was refused");
    let token = stage.token("acquire").await;
    assert!(
        second.acquire(RESOURCE, LONG_TTL).await.is_none(),
        "two holders at once"
    );
    // Once more, when the client has asked all that it asks a node first and some nodes do not know.
    let errors = stage.errors();
    assert!(
        second.acquire(RESOURCE, LONG_TTL).await.is_none(),
        "two holders at the second try"
    );
    // A node that answers with an error has not refused but failed.
    assert_eq!(stage.errors(), errors, "the nodes refused by an error");
    assert_eq!(
        stage.token("contend").await,
        token,
        "the second client changed the token"
    );
    assert!(first.extend(&handle, LONG_TTL * 2).await, "not extended");
    stage
        .until("not extended on all nodes", |node| node.ttl() > LONG_TTL)
        .await;

    stage.flush_scripts();
    first.release(&handle).await;
    stage
        .until("not released", |node| node.token().is_none())
        .await;
    let handle = second
        .acquire(RESOURCE, LONG_TTL)
        .await
        .expect("a released resource was refused");
    stage.token("acquire again").await;
    second.release(&handle).await;
    stage
        .until("not released again", |node| node.token().is_none())
        .await;

    if env::var_os("INTEROP_AWAY").is_some() {
        return "acquire, contend, extend, script flush, release, acquire again";
    }
    let started = Instant::now();
    let stale = first
        .acquire(RESOURCE, SHORT_TTL)
        .await
        .expect("a free resource was refused");
    let handle = loop {
        if let Some(handle) = second.acquire(RESOURCE, LONG_TTL).await {
            break handle;
        }
        assert!(started.elapsed() < PATIENCE, "the lock never expired");
        tokio::time::sleep(POLL).await;
    };
    assert!(started.elapsed() >= SHORT_TTL, "the lock expired too early");
    // Nodes may expire the old lock a little after the majority that the new one was won on.
    let token = stage.majority();
    first.release(&stale).await;
    assert!(
        !first.extend(&stale, LONG_TTL).await,
        "extended a lost lock"
    );
    assert_eq!(
        stage.majority(),
        token,
        "a client without the lock changed it"
    );
    second.release(&handle).await;
    stage
        .until("not released at the end", |node| node.token().is_none())
        .await;
    "acquire, contend, extend, script flush, release, acquire again, expire, stale release, stale extend"
}

/// The nodes, seen over bare sockets.
struct Stage {
    nodes: Vec<Node>,
}

impl Stage {
    fn open() -> Self {
        Self {
            nodes: serving()
                .iter()
                .map(|address| Node::connect(address))
                .collect(),
        }
    }

    /// Polls until the condition holds on every node.
    async fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Node) -> bool) {
        let started = Instant::now();
        while !self.nodes.iter_mut().all(&mut condition) {
            assert!(started.elapsed() < SETTLE, "{what}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The token that every node holds, once they agree.
    async fn token(&mut self, step: &str) -> Vec<u8> {
        self.until(step, |node| node.token().is_some()).await;
        let token = self.nodes[0].token();
        self.until(step, |node| node.token() == token).await;
        token.expect(step)
    }

    /// The token that a majority holds.
    fn majority(&mut self) -> Vec<u8> {
        let tokens: Vec<_> = self.nodes.iter_mut().filter_map(Node::token).collect();
        let votes = |token: &&Vec<u8>| tokens.iter().filter(|other| other == token).count();
        let most = tokens
            .iter()
            .max_by_key(votes)
            .expect("no node holds a lock");
        assert!(votes(&most) >= quorum(), "no majority holds one lock");
        most.clone()
    }

    /// How many error replies each node has sent.
    fn errors(&mut self) -> Vec<String> {
        let count = |node: &mut Node| {
            let stats = node.ask(&["INFO", "stats"]).expect("INFO replies");
            let stats = String::from_utf8_lossy(&stats).into_owned();
            let line = stats
                .lines()
                .find(|line| line.starts_with("total_error_replies:"));
            line.expect("a count of errors").to_owned()
        };
        self.nodes.iter_mut().map(count).collect()
    }

    fn flush_scripts(&mut self) {
        for node in &mut self.nodes {
            node.ask(&["SCRIPT", "FLUSH"]);
        }
    }
}

struct Node {
    stream: BufReader<TcpStream>,
}

impl Node {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the node accepts connections");
        stream
            .set_read_timeout(Some(SETTLE))
            .expect("a time-out can be set");
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends one command; the reply is a status, a number's digits or a value, as bytes.
    fn ask(&mut self, words: &[&str]) -> Option<Vec<u8>> {
        let mut frame = format!("*{}\r\n", words.len());
        for word in words {
            frame += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream
            .get_mut()
            .write_all(frame.as_bytes())
            .expect("the node reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the node replies");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "$" if rest == "-1" => None,
            "$" => {
                let mut value = vec![0; rest.parse::<usize>().expect("a length") + 2];
                self.stream.read_exact(&mut value).expect("the whole value");
                value.truncate(value.len() - 2);
                Some(value)
            }
            ":" | "+" => Some(rest.into()),
            _ => panic!("{words:?}: {line}"),
        }
    }

    fn token(&mut self) -> Option<Vec<u8>> {
        self.ask(&["GET", RESOURCE])
    }

    /// The lock's TTL; zero when there is no lock or no TTL.
    fn ttl(&mut self) -> Duration {
        let reply = self
            .ask(&["PTTL", RESOURCE])
            .expect("PTTL replies with a number");
        let millis: i64 = String::from_utf8_lossy(&reply).parse().expect("a number");
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}
