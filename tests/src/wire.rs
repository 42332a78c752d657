//! Raw bytes to a node and back.

use std::future::Future;
use std::net::SocketAddr;

use locknode::{Node, Peer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One end of an in-memory connection to a node; the node's end is served by a task of its own.
#[derive(Debug)]
pub struct Wire {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
}

impl Wire {
    /// Connects to the node through a pipe that holds `capacity` bytes in each direction.
    pub fn connect_with_capacity(node: &Node, capacity: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(capacity);
        let node = node.clone();
        tokio::spawn(async move { node.serve_stream(theirs, Peer::default()).await });
        let (reader, writer) = split(ours);
        Self { reader, writer }
    }

    /// Connects through a pipe large enough for any test that does not look at back-pressure.
    pub fn connect(node: &Node) -> Self {
        Self::connect_with_capacity(node, 1 << 20)
    }

    /// Sends bytes and lets the node work on them until it waits. When the node has closed, what follows in the test
    /// finds out.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
        settle().await;
    }

    /// Sends bytes without waiting for anything; returns how many the pipe took before the node stopped reading.
    pub async fn send_while_taken(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            // Paused time: the timeout fires only when no task can go on.
            let write = self.writer.write(&bytes[sent..]);
            match tokio::time::timeout(std::time::Duration::from_secs(1), write).await {
                Ok(Ok(n)) if n > 0 => sent += n,
                _ => break,
            }
        }
        sent
    }

    /// Ends our direction of the stream.
    pub async fn finish_sending(&mut self) {
        self.writer.shutdown().await.expect("shutdown");
    }

    /// Receives exactly as many bytes as `want` has and compares.
    pub async fn expect(&mut self, want: &[u8]) {
        let mut got = vec![0; want.len()];
        let mut filled = 0;
        while filled < want.len() {
            let read = patiently(self.reader.read(&mut got[filled..])).await;
            let n = read.unwrap_or_else(|| {
                panic!("only {:?}, want {:?}", text(&got[..filled]), text(want))
            });
            assert!(
                n > 0,
                "closed after {:?}, want {:?}",
                text(&got[..filled]),
                text(want)
            );
            filled += n;
        }
        assert_eq!(text(&got), text(want));
    }

    /// Sends a request and compares the reply.
    pub async fn check(&mut self, request: &[u8], want: &[u8]) {
        self.send(request).await;
        self.expect(want).await;
    }

    /// The same for text, without the line ends.
    pub async fn ask(&mut self, request: &str, want: &str) {
        let (request, want) = (format!("{request}\r\n"), format!("{want}\r\n"));
        self.check(request.as_bytes(), want.as_bytes()).await;
    }

    /// Receives until the node closes.
    pub async fn drain(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let closed = patiently(self.reader.read_to_end(&mut rest)).await;
        assert!(closed.is_some(), "not closed after {:?}", text(&rest));
        rest
    }

    /// Receives whatever comes next, at most `max` bytes.
    pub async fn read_some(&mut self, max: usize) -> Vec<u8> {
        let mut got = vec![0; max];
        let n = patiently(self.reader.read(&mut got))
            .await
            .expect("nothing came");
        got.truncate(n);
        got
    }
}

/// Serves the node on a free loopback port until `shutdown` completes.
pub async fn serve_tcp(
    node: &Node,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let node = node.clone();
    let task = tokio::spawn(async move { node.serve(listener, shutdown).await.expect("served") });
    (address, task)
}

/// Lets every other task run until all of them wait.
async fn settle() {
    for _ in 0..SETTLE_ROUNDS {
        tokio::task::yield_now().await;
    }
}

/// The result, or `None` when nothing happens for longer than any node needs.
async fn patiently<T>(read: impl Future<Output = std::io::Result<T>>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(result) => Some(result.expect("an open pipe")),
        Err(_) => None,
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Only a node that will never answer takes so long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// A connection needs one poll per read and one per blocked write; a handful is ample on one thread.
const SETTLE_ROUNDS: usize = 8;
