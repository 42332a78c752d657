//! Sequences to a real server.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use locknode_tests::RedisServer;

use crate::reply;
use crate::sequence::Request;

pub(crate) struct Server {
    process: RedisServer,
}

impl Server {
    /// Starts the server; `None`, with the reason printed, when there is none.
    pub(crate) fn start() -> Option<Self> {
        RedisServer::start().map(|process| Self { process })
    }

    /// Empties the server, then sends the requests down one connection; one reply for each.
    pub(crate) fn run(&mut self, requests: &[Request]) -> Vec<Vec<u8>> {
        let mut stream = self.connect();
        let mut input = b"FLUSHALL\r\n".to_vec();
        input.extend(requests.iter().flat_map(Request::encode));
        stream.write_all(&input).expect("a server that reads");
        let (mut bytes, mut replies, mut chunk) = (Vec::new(), Vec::new(), vec![0; 1 << 16]);
        while replies.len() <= requests.len() {
            let len = match stream.read(&mut chunk) {
                Ok(len @ 1..) => len,
                Ok(_) => return with_rest(replies, b"(closed)"),
                Err(_) => return with_rest(replies, b"(no reply in time)"),
            };
            bytes.extend_from_slice(&chunk[..len]);
            let (more, len) = reply::split(&bytes);
            replies.extend(more);
            bytes.drain(..len);
        }
        with_rest(replies, b"")
    }

    /// Empties the server, then sends bytes down one connection; all that is received until the server closes it.
    pub(crate) fn run_bytes(&self, input: &[u8]) -> Vec<u8> {
        let [mut stream, mut watcher] = [(); 2].map(|()| self.connect());
        ask(&mut watcher, b"FLUSHALL\r\n");
        // The server may close before it has read all.
        let _ = stream.write_all(input);
        // What it has not sent by then is lost at the end of the input.
        settle(&mut watcher);
        let _ = stream.shutdown(Shutdown::Write);
        let mut received = Vec::new();
        let end = stream.read_to_end(&mut received);
        if end.is_err_and(|error| error.kind() != ErrorKind::ConnectionReset) {
            received.extend(b"(no end in time)");
        }
        received
    }

    /// The path of its Unix socket.
    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.process.socket()
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.process.socket()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends one command; its reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Vec<u8> {
        self.run(&[Request::array(
            words.iter().map(|word| word.as_bytes().to_vec()),
        )])
        .remove(0)
    }
}

/// Waits until the server has done what others have sent before, and has sent what they are to receive.
pub(crate) fn settle(watcher: &mut UnixStream) {
    for _ in 0..2 {
        ask(watcher, b"PING\r\n");
    }
}

/// The reply to a request, which is short.
pub(crate) fn ask(stream: &mut UnixStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).expect("a server that reads");
    let mut chunk = [0; 1 << 12];
    let len = stream.read(&mut chunk).expect("a reply in time");
    chunk[..len].to_vec()
}

/// The replies without FLUSHALL's, and what came instead of the next one.
fn with_rest(mut replies: Vec<Vec<u8>>, rest: &[u8]) -> Vec<Vec<u8>> {
    replies.push(rest.to_vec());
    replies.remove(0);
    replies
}

/// Far longer than any of the commands takes.
const PATIENCE: Duration = Duration::from_secs(3);
