//! The two transports, and a conversation in the protocol over either.

use std::io;
use std::time::Duration;

use locknode_resp::{Reply, ReplyDecoder, ReplyLimits, encode_command};
use locknode_testkit::Fault;
use locknode_testkit::cluster::{Cluster, ClusterBuilder};
use locknode_testkit::history::{Event, History};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// How clients reach the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Streams in memory, and paused time.
    Memory,
    /// Sockets, and the real time.
    Loopback,
}

/// A connection as a Redis client has it.
pub(crate) struct Conversation {
    stream: Box<dyn Stream>,
    decoder: ReplyDecoder,
    unread: Vec<u8>,
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Wire {
    pub(crate) async fn build(self, builder: ClusterBuilder) -> Cluster {
        let builder = match self {
            Self::Memory => builder.in_memory(),
            Self::Loopback => builder,
        };
        builder.build().await.unwrap()
    }

    pub(crate) async fn dial(
        self,
        cluster: &Cluster,
        client: u8,
        node: u8,
    ) -> io::Result<Conversation> {
        let stream: Box<dyn Stream> = match self {
            Self::Memory => Box::new(cluster.connect(client, node).await?),
            Self::Loopback => {
                let addresses = cluster.addresses_for(client).unwrap();
                Box::new(TcpStream::connect(addresses[usize::from(node)]).await?)
            }
        };
        Ok(Conversation {
            stream,
            decoder: ReplyDecoder::new(ReplyLimits::default()),
            unread: Vec::new(),
        })
    }

    /// A short time that passes here, for what a test has to see last: seconds in memory, a tenth of that on loopback.
    pub(crate) fn span(self, seconds: u64) -> Duration {
        match self {
            Self::Memory => Duration::from_secs(seconds),
            Self::Loopback => Duration::from_millis(seconds * 100),
        }
    }

    /// That nothing comes of it. What is wrong is found always in memory, and most of the time on loopback.
    pub(crate) async fn is_silent<T>(self, future: impl Future<Output = T>) -> bool {
        let span = match self {
            Self::Memory => Duration::from_secs(1),
            Self::Loopback => Duration::from_millis(50),
        };
        timeout(span, future).await.is_err()
    }
}

impl Conversation {
    /// Sends a request: its words, with spaces between them.
    pub(crate) async fn say(&mut self, line: &str) {
        self.stream.write_all(&encoded(line)).await.unwrap();
    }

    /// As slow a sender as there is.
    pub(crate) async fn say_in_pieces(&mut self, line: &str) {
        for byte in encoded(line) {
            self.stream.write_all(&[byte]).await.unwrap();
            self.stream.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    /// Says no more.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// The next reply; an error when the connection breaks, and `UnexpectedEof` when it ends.
    pub(crate) async fn hear(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((reply, len)) = self.decoder.decode(&self.unread).unwrap() {
                self.unread.drain(..len);
                return Ok(reply);
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// How the connection has ended.
    pub(crate) async fn end(&mut self) -> io::ErrorKind {
        self.hear().await.unwrap_err().kind()
    }

    pub(crate) async fn ask(&mut self, line: &str) -> Reply {
        self.say(line).await;
        self.hear().await.unwrap()
    }

    /// Takes the key for 30 seconds.
    pub(crate) async fn take(&mut self, key: &str) -> Reply {
        self.ask(&taking(key)).await
    }

    pub(crate) async fn get(&mut self, key: &str) -> Option<String> {
        match self.ask(&format!("GET {key}")).await {
            Reply::Bulk(token) => Some(String::from_utf8(token).unwrap()),
            Reply::Null => None,
            reply => panic!("{reply:?}"),
        }
    }

    /// Waits until somebody holds the key.
    pub(crate) async fn sees(&mut self, key: &str) {
        while self.get(key).await.is_none() {
            tokio::task::yield_now().await;
        }
    }

    /// The key's time to live in milliseconds.
    pub(crate) async fn ttl(&mut self, key: &str) -> i64 {
        match self.ask(&format!("PTTL {key}")).await {
            Reply::Integer(ms) => ms,
            reply => panic!("{reply:?}"),
        }
    }

    /// The node's wall clock in milliseconds.
    pub(crate) async fn wall(&mut self) -> i64 {
        let Reply::Array(parts) = self.ask("TIME").await else {
            panic!("no time")
        };
        let number = |part: &Reply| match part {
            Reply::Bulk(digits) => String::from_utf8_lossy(digits).parse::<i64>().unwrap(),
            part => panic!("{part:?}"),
        };
        number(&parts[0]) * 1000 + number(&parts[1]) / 1000
    }
}

fn encoded(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    encode_command(&mut bytes, &words);
    bytes
}

/// The request that takes the key for 30 seconds.
pub(crate) fn taking(key: &str) -> String {
    format!("SET {key} t NX PX 30000")
}

/// Does a fault that the cluster can have.
pub(crate) async fn inject(cluster: &Cluster, fault: Fault) {
    cluster.inject(fault).await.unwrap();
}

/// `+OK`.
pub(crate) fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

pub(crate) fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

/// How many of these events are in a history.
pub(crate) fn count(history: &History, is_one: impl Fn(&Event) -> bool) -> usize {
    let entries = history.entries.iter();
    entries.filter(|entry| is_one(&entry.event)).count()
}

pub(crate) fn is_loading(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"LOADING"))
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        sleep(Duration::from_millis(1)).await;
    }
}

/// Runs each test over both transports.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod in_memory {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::$name(crate::wire::Wire::Memory).await;
            })+
        }
        mod on_loopback {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::wire::Wire::Loopback).await;
            })+
        }
    };
}
