//! One client connection to a node, as plain as it gets: words in, replies out.

use std::net::SocketAddr;

use locknode_resp::{Reply, ReplyDecoder, ReplyLimits, encode_command};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::patience::in_time;

/// A connection that sends requests and waits for replies.
#[derive(Debug)]
pub struct Conversation {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Conversation {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When nobody listens there.
    pub async fn with(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
        })
    }

    /// Sends a request.
    pub async fn say(&mut self, words: &[&str]) {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.say_bytes(&words).await;
    }

    /// Sends a request of any bytes.
    pub async fn say_bytes(&mut self, words: &[&[u8]]) {
        let mut request = Vec::new();
        encode_command(&mut request, words);
        // A node that has closed is found out by whoever waits for its reply.
        let _ = self.stream.write_all(&request).await;
    }

    /// The next reply; `None` when the node has closed instead, or has said something that is no reply.
    pub async fn hear(&mut self) -> Option<Reply> {
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        loop {
            match decoder.decode(&self.received) {
                Ok(Some((reply, len))) => {
                    self.received.drain(..len);
                    return Some(reply);
                }
                Ok(None) => {}
                Err(_) => return None,
            }
            let read = self.stream.read_buf(&mut self.received);
            match in_time("a reply", read).await {
                Ok(1..) => {}
                _ => return None,
            }
        }
    }

    /// Sends a request and waits for its reply.
    pub async fn ask(&mut self, words: &[&str]) -> Option<Reply> {
        self.say(words).await;
        self.hear().await
    }

    /// What comes next, reply or not, at most `max` bytes; empty when the node has closed.
    pub async fn bytes(&mut self, max: usize) -> Vec<u8> {
        if self.received.is_empty() {
            let _ = in_time("bytes", self.stream.read_buf(&mut self.received)).await;
        }
        let len = self.received.len().min(max);
        self.received.drain(..len).collect()
    }

    /// Everything until the node closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.received);
        // A reset is a way of closing, too.
        let _ = in_time("the end", self.stream.read_to_end(&mut rest)).await;
        rest
    }
}
