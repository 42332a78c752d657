//! One blocking connection to a node: requests out, replies in.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use locknode_resp::{Reply, ReplyDecoder, ReplyLimits, encode_command};

use crate::node::PATIENCE;

/// A connection that sends batches of requests and waits for the replies.
#[derive(Debug)]
pub(crate) struct Conversation {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Conversation {
    pub(crate) fn with(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            received: Vec::new(),
        })
    }

    /// Sends requests at once.
    pub(crate) fn say(&mut self, requests: &[Vec<String>]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for words in requests {
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            encode_command(&mut bytes, &words);
        }
        self.stream.write_all(&bytes)
    }

    /// The next reply; an error of the kind `WouldBlock` when the node does not answer.
    pub(crate) fn hear(&mut self) -> io::Result<Reply> {
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let mut bytes = [0; 4096];
        loop {
            let decoded = decoder.decode(&self.received);
            let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
            if let Some((reply, len)) = decoded.map_err(invalid)? {
                self.received.drain(..len);
                return Ok(reply);
            }
            match self.stream.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => self.received.extend_from_slice(&bytes[..len]),
            }
        }
    }
}
