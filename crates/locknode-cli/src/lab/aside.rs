//! What a client of the lab asks nodes beside its locks, by connections of its own whose replies it does not look at.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use locknode_testkit::cluster::Recorder;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Mutex;

/// The connections of a client, by node and line; each is made when it is first used, and again when it broke.
#[derive(Debug)]
pub(super) struct Asides {
    /// Of the nodes, through the client's own links.
    nodes: Vec<SocketAddr>,
    /// Knows these connections as the lab's own.
    recorder: Arc<Recorder>,
    lines: Mutex<HashMap<(u8, u8), OwnedWriteHalf>>,
}

impl Asides {
    pub(super) fn new(recorder: Arc<Recorder>, nodes: Vec<SocketAddr>) -> Self {
        Self {
            recorder,
            nodes,
            lines: Mutex::default(),
        }
    }

    /// Sends requests with ` ; ` between. A node that cannot be reached is not asked: nobody waits for the replies.
    pub(super) async fn ask(&self, node: u8, line: u8, words: &str) {
        let Some(address) = self.nodes.get(usize::from(node)) else {
            return;
        };
        let requests: String = words
            .split(" ; ")
            .map(|request| format!("{request}\r\n"))
            .collect();
        let mut lines = self.lines.lock().await;
        if let Some(open) = lines.get_mut(&(node, line))
            && open.write_all(requests.as_bytes()).await.is_ok()
        {
            return;
        }
        lines.remove(&(node, line));
        if let Ok(mut open) = connect(&self.recorder, *address).await
            && open.write_all(requests.as_bytes()).await.is_ok()
        {
            lines.insert((node, line), open);
        }
    }
}

/// A connection whose replies are read, so that the node goes on, and forgotten.
async fn connect(recorder: &Recorder, address: SocketAddr) -> io::Result<OwnedWriteHalf> {
    let stream = TcpStream::connect(address).await?;
    recorder.notes_itself(stream.local_addr()?);
    let (mut replies, requests) = stream.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut replies, &mut tokio::io::sink()).await });
    Ok(requests)
}
