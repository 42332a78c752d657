//! A real server on a socket of its own, which ends with the test.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::reply;
use crate::sequence::Request;

pub(crate) struct Server {
    process: Child,
    directory: PathBuf,
    socket: PathBuf,
}

impl Server {
    /// Starts the server; `None`, with the reason printed, when there is none.
    pub(crate) fn start() -> Option<Self> {
        let program = std::env::var("LOCKNODE_TEST_REDIS").unwrap_or("redis-server".to_owned());
        // A directory of its own: nothing there to load, and a socket path instead of a port that may be taken.
        let directory = std::env::temp_dir().join(format!(
            "locknode-differential-{}-{}",
            std::process::id(),
            STARTED.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir(&directory).expect("a fresh directory");
        let socket = directory.join("s");
        let process = Command::new(&program)
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ])
            .arg(&socket)
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                println!("skipped: cannot start {program}: {error}");
                let _ = std::fs::remove_dir(&directory);
                return None;
            }
        };
        let mut server = Self {
            process,
            directory,
            socket,
        };
        let patience = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(&server.socket).is_err() {
            let exit = server.process.try_wait().expect("the state of a child");
            assert!(exit.is_none(), "{program} ended at once: {exit:?}");
            assert!(Instant::now() < patience, "{program} does not listen");
            std::thread::yield_now();
        }
        Some(server)
    }

    /// Empties the server, then sends the requests down one connection; one reply for each.
    pub(crate) fn run(&mut self, requests: &[Request]) -> Vec<Vec<u8>> {
        let mut stream = UnixStream::connect(&self.socket).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
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

    /// Sends one command; its reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Vec<u8> {
        self.run(&[Request::array(
            words.iter().map(|word| word.as_bytes().to_vec()),
        )])
        .remove(0)
    }
}

/// The replies without FLUSHALL's, and what came instead of the next one.
fn with_rest(mut replies: Vec<Vec<u8>>, rest: &[u8]) -> Vec<Vec<u8>> {
    replies.push(rest.to_vec());
    replies.remove(0);
    replies
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing can be done about an error, and the next run uses another path.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Far longer than any of the commands takes.
const PATIENCE: Duration = Duration::from_secs(3);

/// Servers that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);
