//! One connection to a fake: requests in the order in which they came, each answered as its rule says.

use std::ops::ControlFlow;
use std::sync::Arc;

use locknode_engine::Session;
use locknode_resp::{Decoder, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::behaviour::Behaviour;
use super::received::Received;
use super::state::{Mode, State};

/// Serves everyone who connects, until the task is aborted.
pub(super) fn listen(state: &Arc<State>, listener: TcpListener) -> JoinHandle<()> {
    let state = Arc::clone(state);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection = Connection {
                number: state.note_connection(),
                session: state.session(),
                state: Arc::clone(&state),
                stream,
                is_ignored: false,
            };
            state.keep(tokio::spawn(connection.serve()));
        }
    })
}

struct Connection {
    state: Arc<State>,
    number: usize,
    session: Session,
    stream: TcpStream,
    /// Whether a request was left without an answer: in a protocol without numbers no later one can have one.
    is_ignored: bool,
}

impl Connection {
    async fn serve(mut self) {
        // Each write is to be seen as it was made.
        let _ = self.stream.set_nodelay(true);
        let (mut decoder, limits) = (Decoder::new(), Limits::default());
        let mut input = Vec::new();
        let mut mode = self.state.mode();
        loop {
            let mut start = 0;
            loop {
                let args: Vec<Vec<u8>> = match decoder.decode(&input[start..], &limits, true) {
                    Ok(Some(frame)) => {
                        start += frame.consumed();
                        frame.args().map(<[u8]>::to_vec).collect()
                    }
                    Ok(None) => break,
                    Err(error) => panic!("the client sent {}: {error}", input.escape_ascii()),
                };
                if args.is_empty() {
                    continue;
                }
                let request = self.state.note(self.number, args);
                if *mode.borrow() == Mode::Silent {
                    self.is_ignored = true;
                }
                if self.is_ignored {
                    continue;
                }
                if self.answer(&request).await.is_break() {
                    return;
                }
            }
            input.drain(..start);
            if mode
                .wait_for(|&mode| mode != Mode::NotReading)
                .await
                .is_err()
            {
                return;
            }
            // The mode may change while nothing comes, and then nothing is to be read.
            let read = tokio::select! {
                biased;
                changed = mode.wait_for(|&mode| mode == Mode::NotReading) => {
                    if changed.is_err() { return; }
                    continue;
                }
                read = self.stream.read_buf(&mut input) => read,
            };
            if !matches!(read, Ok(1..)) {
                return;
            }
        }
    }

    /// Answers one request; breaks when the connection is to be closed.
    async fn answer(&mut self, request: &Received) -> ControlFlow<()> {
        let behaviour = self.state.behaviour_for(request);
        match behaviour {
            Behaviour::Honest => {
                let reply = self.apply(request);
                self.send(&reply).await
            }
            Behaviour::Ignore => {
                self.is_ignored = true;
                ControlFlow::Continue(())
            }
            Behaviour::ApplyThenIgnore => {
                self.apply(request);
                self.is_ignored = true;
                ControlFlow::Continue(())
            }
            Behaviour::Close => ControlFlow::Break(()),
            Behaviour::ApplyThenClose => {
                self.apply(request);
                ControlFlow::Break(())
            }
            Behaviour::ApplyThenCutReply => {
                let reply = self.apply(request);
                let _ = self.send(&reply[..reply.len() / 2]).await;
                ControlFlow::Break(())
            }
            Behaviour::Answer(bytes) => self.send(&bytes).await,
            Behaviour::ApplyThenAnswer(bytes) => {
                self.apply(request);
                self.send(&bytes).await
            }
            Behaviour::ApplyAfterSaying(mut bytes) => {
                bytes.extend(self.apply(request));
                self.send(&bytes).await
            }
            Behaviour::ApplyThenAnswerTwice => {
                let reply = self.apply(request);
                self.send(&reply.repeat(2)).await
            }
            Behaviour::ApplyThenTrickle => {
                for byte in self.apply(request) {
                    self.send(&[byte]).await?;
                    tokio::task::yield_now().await;
                }
                ControlFlow::Continue(())
            }
            Behaviour::Flood(len) => self.flood(len).await,
            Behaviour::ApplyThenWait(hold) => {
                let reply = self.apply(request);
                hold.wait().await;
                self.send(&reply).await
            }
            Behaviour::WaitThenApply(hold) => {
                hold.wait().await;
                let reply = self.apply(request);
                self.send(&reply).await
            }
        }
    }

    fn apply(&mut self, request: &Received) -> Vec<u8> {
        self.state.apply(&mut self.session, request)
    }

    async fn send(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        match self.stream.write_all(bytes).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    async fn flood(&mut self, len: usize) -> ControlFlow<()> {
        self.send(format!("${len}\r\n").as_bytes()).await?;
        let chunk = vec![b'x'; FLOOD_CHUNK];
        let mut left = len;
        while left > 0 {
            let now = left.min(FLOOD_CHUNK);
            self.send(&chunk[..now]).await?;
            left -= now;
        }
        self.send(b"\r\n").await
    }
}

/// What a kernel buffer takes at once, about.
const FLOOD_CHUNK: usize = 64 << 10;
