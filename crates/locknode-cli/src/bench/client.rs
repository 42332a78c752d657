//! One connection of the load generator: sends a pipeline, waits for all its replies, sends the next.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use redlock_client::Endpoint;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
#[cfg(feature = "tls")]
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::batch::Batch;
use super::key_walk::KeyWalk;
use super::recorder::Recorder;
use crate::server_address::ServerAddress;
use crate::server_connection::ServerConnection;
#[cfg(feature = "tls")]
use crate::server_connection::{self, TIMED_OUT, encode};

/// What the connections of a thread share.
#[derive(Debug)]
pub(super) struct Turn {
    /// Whether the run goes on.
    pub(super) is_over: Cell<bool>,
    /// Operations that may still be begun; `None` for no limit.
    pub(super) operations_left: Cell<Option<u64>>,
    pub(super) recorder: RefCell<Recorder>,
}

/// A connection and what it sends.
#[derive(Debug)]
pub(super) struct Client {
    stream: Stream,
    sender: Sender,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

/// What a connection sends: the steps of the workload, for one pipeline of keys after the other.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) batches: Vec<Batch>,
    pub(super) keys: KeyWalk,
    pub(super) pipeline: usize,
}

impl Turn {
    /// How many operations may be begun now, `wanted` at most.
    fn claim(&self, wanted: usize) -> usize {
        if self.is_over.get() {
            return 0;
        }
        let Some(left) = self.operations_left.get() else {
            return wanted;
        };
        let granted = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.operations_left
            .set(Some(left - u64::try_from(granted).unwrap_or(left)));
        granted
    }
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    ///
    /// A reason for a person.
    pub(super) async fn open(address: &ServerAddress, sender: Sender) -> Result<Self, String> {
        let deadline = Instant::now() + CONNECT_MAX;
        #[cfg(feature = "tls")]
        if address.tls.is_some() {
            let opened = tokio::time::timeout(CONNECT_MAX, open_tls(address, deadline)).await;
            let stream = Stream::Tls(Box::new(opened.map_err(|_| TIMED_OUT)??));
            return Ok(Self { stream, sender });
        }
        let connection = ServerConnection::open(address, deadline)?;
        let socket = connection.into_socket().ok_or("this is TLS")?;
        let stream = socket.set_nonblocking(true).and_then(|()| {
            Ok(match address.node.endpoint() {
                Endpoint::Unix(_) => Stream::Unix(UnixStream::from_std(socket.into())?),
                _ => Stream::Tcp(TcpStream::from_std(socket.into())?),
            })
        });
        let stream = stream.map_err(|error| error.to_string())?;
        Ok(Self { stream, sender })
    }

    /// Sends until the run is over.
    ///
    /// # Errors
    ///
    /// Why the run does not count.
    pub(super) async fn run(self, turn: Rc<Turn>) -> Result<(), String> {
        match self.stream {
            Stream::Tcp(stream) => drive(stream, self.sender, &turn).await,
            Stream::Unix(stream) => drive(stream, self.sender, &turn).await,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => drive(stream, self.sender, &turn).await,
        }
    }
}

/// Connects over TLS and logs in.
#[cfg(feature = "tls")]
async fn open_tls(
    address: &ServerAddress,
    deadline: Instant,
) -> Result<TlsStream<TcpStream>, String> {
    let Endpoint::Tcp { host, port } = address.node.endpoint() else {
        return Err("TLS is for TCP".to_owned());
    };
    let text = |error: std::io::Error| error.to_string();
    let (config, name) = address.tls_for(host)?;
    let socket = server_connection::connect(host, *port, deadline)?;
    socket.set_nonblocking(true).map_err(text)?;
    let socket = TcpStream::from_std(socket).map_err(text)?;
    let opened = TlsConnector::from(config).connect(name, socket).await;
    let mut stream = opened.map_err(text)?;
    for words in address.greeting() {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        stream.write_all(&encode(&words)).await.map_err(text)?;
        stream.flush().await.map_err(text)?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).await.map_err(text)?;
        if &reply != b"+OK\r\n" {
            return Err("the login was refused".to_owned());
        }
    }
    Ok(stream)
}

async fn drive<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    sender: Sender,
    turn: &Turn,
) -> Result<(), String> {
    let Sender {
        mut batches,
        mut keys,
        pipeline,
    } = sender;
    let mut buffer = vec![0; READ_LEN];
    // The keys of the last pipelines, the newest first: those that a step may be sent for.
    let held_max = 1 + batches
        .iter()
        .map(|batch| batch.step.after)
        .max()
        .unwrap_or(0);
    let mut held: VecDeque<Vec<u64>> = vec![Vec::with_capacity(pipeline); held_max].into();
    for number in 0.. {
        let count = turn.claim(pipeline);
        let mut newest = held.pop_back().unwrap_or_default();
        keys.take(count, &mut newest);
        held.push_front(newest);
        if held.iter().all(Vec::is_empty) {
            break;
        }
        for (step, batch) in batches.iter_mut().enumerate() {
            let numbers = held.get(batch.step.after).map_or(&[][..], Vec::as_slice);
            if numbers.is_empty() {
                continue;
            }
            for _ in 0..batch.times(number) {
                let note = |latency, replies| {
                    turn.recorder.borrow_mut().note(step, latency, replies);
                };
                exchange(&mut stream, &mut buffer, batch, numbers, note).await?;
            }
        }
    }
    Ok(())
}

/// Sends a pipeline and waits for all its replies.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    buffer: &mut [u8],
    batch: &mut Batch,
    numbers: &[u64],
    mut note: impl FnMut(Duration, u64),
) -> Result<(), String> {
    let requests = batch.number(numbers);
    let sent = Instant::now();
    stream
        .write_all(requests)
        .await
        .map_err(|error| format!("sending failed: {error}"))?;
    // Nothing to do but for TLS.
    let flushed = stream.flush().await;
    flushed.map_err(|error| format!("sending failed: {error}"))?;
    let mut replies = batch.replies(numbers.len());
    while !replies.are_complete() {
        let read = stream.read(buffer).await;
        let len = read.map_err(|error| format!("receiving failed: {error}"))?;
        if len == 0 {
            return Err("the server closed a connection".to_owned());
        }
        let completed = replies.check(&buffer[..len])?;
        note(sent.elapsed(), completed);
    }
    Ok(())
}

/// Connecting and the login together.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Room for the replies to the longest pipeline.
const READ_LEN: usize = 16 << 10;
