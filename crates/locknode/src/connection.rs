//! One connection: bytes in, commands to the engine, replies out.
//!
//! ```text
//!        one read                     one batch                       one write
//!  stream -----> shared input --decode--> engine --replies--> shared output -----> stream
//!                    |  ^                                          |
//!   half a request   v  |                       what did not fit   v
//!                 unread (own)                                  unsent (own)
//! ```
//!
//! The write follows at once, or, after a short batch, when the task's next turn comes: all connections that are ready are
//! read first, then all are answered. Replies that rest on something not durable yet wait in `unsent` for the disk.
//!
//! Back-pressure: while `unsent` holds anything, nothing is read and nothing executed, so a client that never reads
//! costs one batch of replies and no more. A batch ends when its replies reach [`OUTPUT_HIGH_WATER`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use locknode_engine::{Flow, Need, Session};
use locknode_resp::Decoder;
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::scope::{Phase, ScopeMember};
use crate::scratch::Scratch;
use crate::shared::Shared;

/// The task of one connection; completes when the connection is over.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    node: Arc<Shared>,
    scope: ScopeMember,
    session: Session,
    decoder: Decoder,
    /// Input not yet executed.
    unread: Vec<u8>,
    /// Replies not yet accepted by the stream, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    /// What has to be durable before `unsent` may leave.
    need: Need,
    state: State,
    /// Whether the batch just executed was short, so that its replies wait for their turn.
    is_short_batch: bool,
    /// Whether other connections go first before this one goes on.
    yields: bool,
    /// Bytes read since the connection began to end.
    late_input: usize,
    /// Whether the peer was at work when its connection ended.
    is_busy: bool,
    /// Wakes the task when CLIENT PAUSE, or the wait for a peer that was at work, may be over.
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Reads.
    Open,
    /// `unread` holds commands that can be executed before more is read.
    Backlogged,
    /// CLIENT PAUSE holds the next command back.
    Paused,
    /// Sends what it owes, then closes its direction.
    Closing,
    /// Has closed its direction and throws away what still comes. Closing the socket over unread input would make
    /// the kernel reset the connection, and the peer could lose replies that it was sent.
    Lingering,
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, node: Arc<Shared>, scope: ScopeMember, session: Session) -> Self {
        Self {
            stream,
            node,
            scope,
            session,
            decoder: Decoder::new(),
            unread: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
            need: Need::NONE,
            state: State::Open,
            is_short_batch: false,
            yields: false,
            late_input: 0,
            is_busy: false,
            timer: None,
        }
    }

    /// Executes the complete requests of `input` and appends their replies; returns how many bytes are done with.
    fn execute(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let engine = &self.node.engine;
        let limits = engine.limits();
        let moment = self.node.clock.now();
        // After the time: what it has fallen behind by then is in it.
        engine.guard().note_slip(self.node.clock.slip_ns());
        let mut batch = engine.batch(moment);
        let (mut done, mut commands) = (0, 0);
        self.state = State::Open;
        let mut short: [&[u8]; 9] = [&[]; 9];
        let mut was_large = false;
        // Asking once more at the end of the input lets the decoder give back what a large request needed.
        while let Some(rest) = input
            .get(done..)
            .filter(|rest| was_large || !rest.is_empty())
        {
            if out.len() >= OUTPUT_HIGH_WATER && !rest.is_empty() {
                self.state = State::Backlogged;
                break;
            }
            let (flow, consumed) =
                if let Some((count, consumed)) = self.decoder.decode_short(rest, &mut short) {
                    let args = short.get(..count).unwrap_or_default();
                    (batch.execute(&mut self.session, args, out), consumed)
                } else {
                    match self
                        .decoder
                        .decode(rest, &limits, self.session.is_authenticated())
                    {
                        Ok(Some(frame)) => {
                            was_large = frame.len() > ARGS_INLINE;
                            let args: SmallVec<[&[u8]; ARGS_INLINE]> = frame.args().collect();
                            (
                                batch.execute(&mut self.session, &args, out),
                                frame.consumed(),
                            )
                        }
                        Ok(None) => break,
                        Err(error) => {
                            error.append_reply(out);
                            self.state = State::Closing;
                            break;
                        }
                    }
                };
            if flow == Flow::Paused {
                self.state = State::Paused;
                break;
            }
            done += consumed;
            commands += 1;
            if flow != Flow::Continue {
                self.state = State::Closing;
                match flow {
                    Flow::Shutdown => self.node.stop(true),
                    Flow::ShutdownNoSave => self.node.stop(false),
                    Flow::Yield => {
                        self.state = State::Backlogged;
                        self.yields = true;
                    }
                    Flow::Continue | Flow::Close | Flow::Paused => {}
                }
                break;
            }
        }
        let need = batch.finish(&self.session, commands);
        self.is_short_batch = commands <= SHORT_BATCH_MAX && !out.is_empty();
        self.node.wake_sweeper();
        if !need.is_none() && !out.is_empty() {
            self.need = need;
        } else {
            // What nobody waits for has to become durable as well `[G17]`.
            self.node.wake_disk();
        }
        done
    }

    /// Executes what `unread` holds and keeps the rest.
    fn execute_unread(&mut self, out: &mut Vec<u8>) {
        let unread = std::mem::take(&mut self.unread);
        let done = self.execute(&unread, out);
        self.unread = unread;
        if done == self.unread.len() {
            self.unread.clear();
        } else {
            self.unread.drain(..done);
        }
        if self.unread.capacity() > KEPT_MAX && self.unread.len() < KEPT_MAX / 4 {
            self.unread.shrink_to(self.unread.len());
        }
    }

    /// Waits until what `unsent` rests on is durable; `None` when it never will be. Then the replies must not leave: the
    /// peer, whose connection is closed, does not know what became of its commands `[G13]`.
    fn poll_durable(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if self.need.is_none() {
            return Poll::Ready(Some(()));
        }
        let guard = self.node.engine.guard();
        for is_waiting in [false, true] {
            if guard.is_durable(&self.need) {
                self.need = Need::NONE;
                return Poll::Ready(Some(()));
            }
            if guard.is_hopeless(&self.need) {
                return Poll::Ready(None);
            }
            if !is_waiting {
                // What becomes durable from here on wakes this task; what did just before is seen by the second look.
                if self.scope.lobby().wait(cx.waker()) {
                    self.node.wake_disk();
                }
            }
        }
        Poll::Pending
    }

    /// Whether a paused command may be offered again.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = self.node.clock.now().time;
            let Some(end) = self.node.engine.pause_end(now) else {
                self.timer = None;
                return Poll::Ready(());
            };
            // The engine's clock decides; the timer only says when to ask it again.
            let timer = self
                .timer
                .insert(Box::pin(tokio::time::sleep(end.since(now) + TIMER_SLACK)));
            ready!(timer.as_mut().poll(cx));
        }
    }
}

impl<S> Drop for Connection<S> {
    /// What was executed has to become durable though its reply will not be sent.
    fn drop(&mut self) {
        if !self.need.is_none() {
            self.node.wake_disk();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Drives the connection until it has to wait or is over.
    fn drive(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        loop {
            if self.session.client().is_killed() || self.scope.phase() == Phase::Aborting {
                return Poll::Ready(());
            }
            if !self.unsent.is_empty() {
                if ready!(self.poll_durable(cx)).is_none() {
                    return Poll::Ready(());
                }
                if ready!(self.poll_send_unsent(cx)).is_none() {
                    return Poll::Ready(());
                }
                continue;
            }
            match self.state {
                State::Closing => {
                    if ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).is_err() {
                        return Poll::Ready(());
                    }
                    let now = self.node.clock.now().time;
                    self.is_busy = self.session.client().idle(now) < BUSY;
                    self.timer = None;
                    self.state = State::Lingering;
                    continue;
                }
                State::Lingering => return self.poll_linger(cx, scratch),
                State::Paused => {
                    ready!(self.poll_pause(cx));
                    self.execute_unread(&mut scratch.output);
                }
                State::Backlogged => self.execute_unread(&mut scratch.output),
                State::Open => match self.poll_input(cx, scratch) {
                    Poll::Ready(Some(())) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending if self.scope.phase() == Phase::Draining => {
                        // All that was received is answered.
                        self.state = State::Closing;
                        continue;
                    }
                    Poll::Pending => return Poll::Pending,
                },
            }
            if !self.need.is_none() {
                self.unsent.extend_from_slice(&scratch.output);
                scratch.output.clear();
                continue;
            }
            if self.yields {
                self.yields = false;
                self.unsent.extend_from_slice(&scratch.output);
                scratch.output.clear();
                // Unlike a wake-up of its own this lets the runtime look for input on other connections first.
                let mut turn = std::pin::pin!(tokio::task::yield_now());
                ready!(turn.as_mut().poll(cx));
                continue;
            }
            if self.is_short_batch {
                self.is_short_batch = false;
                self.unsent.extend_from_slice(&scratch.output);
                scratch.output.clear();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.send(cx, &mut scratch.output).is_none() {
                return Poll::Ready(());
            }
        }
    }

    /// One read and the commands it completes; `None` when the peer is gone.
    fn poll_input(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<Option<()>> {
        let mut input = ReadBuf::new(&mut scratch.input);
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut input));
        let len = input.filled().len();
        if read.is_err() || len == 0 {
            return Poll::Ready(None);
        }
        let input = scratch.input.get(..len).unwrap_or_default();
        if self.unread.is_empty() {
            let done = self.execute(input, &mut scratch.output);
            self.unread
                .extend_from_slice(input.get(done..).unwrap_or_default());
        } else {
            self.unread.extend_from_slice(input);
            self.execute_unread(&mut scratch.output);
        }
        self.node.traffic.note(len, scratch.output.len());
        if self.scope.phase() == Phase::Draining {
            self.late_input += len;
            if self.late_input > LATE_INPUT_MAX {
                self.state = State::Closing;
            }
        }
        Poll::Ready(Some(()))
    }

    /// Reads and forgets. When the node ends, a peer that was at work until now may have sent more before it saw the end:
    /// it is waited for until it closes too, or sends nothing for a while. Otherwise what is there is taken, up to a limit.
    fn poll_linger(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        let waits = self.is_busy && self.scope.phase() == Phase::Draining;
        let mut taken = 0;
        while waits || taken <= LATE_INPUT_MAX {
            let mut input = ReadBuf::new(&mut scratch.input);
            match Pin::new(&mut self.stream).poll_read(cx, &mut input) {
                Poll::Ready(Ok(())) if !input.filled().is_empty() => {
                    taken += input.filled().len();
                    self.timer = None;
                }
                Poll::Pending if waits => {
                    let quiet = || Box::pin(tokio::time::sleep(QUIET));
                    return self.timer.get_or_insert_with(quiet).as_mut().poll(cx);
                }
                Poll::Ready(_) | Poll::Pending => break,
            }
        }
        Poll::Ready(())
    }

    /// Sends a batch's replies; keeps what the stream does not take at once. `None` when the peer is gone.
    fn send(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<()> {
        let mut sent = 0;
        while let Some(rest) = out.get(sent..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0) | Err(_)) => return None,
                Poll::Ready(Ok(n)) => sent += n,
                Poll::Pending => {
                    self.unsent.extend_from_slice(rest);
                    break;
                }
            }
        }
        out.clear();
        Some(())
    }

    /// Sends what an earlier batch left; `None` when the peer is gone.
    fn poll_send_unsent(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        while let Some(rest) = self.unsent.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest)) {
                Ok(0) | Err(_) => return Poll::Ready(None),
                Ok(n) => self.sent += n,
            }
        }
        self.sent = 0;
        self.unsent.clear();
        if self.unsent.capacity() > KEPT_MAX {
            self.unsent = Vec::new();
        }
        Poll::Ready(Some(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Connection<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        let polled = Scratch::lend(|scratch| connection.drive(cx, scratch));
        if polled.is_pending() {
            // Whoever kills this client or ends the pause after this line wakes us; whoever did before is seen here.
            connection.session.client().sleep_with(cx.waker());
            if connection.session.client().is_killed() || connection.scope.has_moved() {
                cx.waker().wake_by_ref();
            }
        }
        polled
    }
}

/// Replies beyond this end a batch: the peer gets them before more is executed. One read of acquires stays below.
const OUTPUT_HIGH_WATER: usize = 256 << 10;

/// Batches up to here are answered only after every other connection that is ready has been read. Waking a peer for each
/// of many single replies costs more than the requests themselves; measured, this saves a twentieth of the CPU time per
/// command at pipeline 1. A longer batch is worth a wake-up of its own.
const SHORT_BATCH_MAX: u64 = 2;

/// An input buffer larger than this, grown by one large request, is given back when it is mostly empty.
const KEPT_MAX: usize = 4 << 10;

/// Arguments without allocation: a batch release of a dozen keys.
const ARGS_INLINE: usize = 16;

/// Input taken from a connection that ends: more than what usually waits in a socket's buffer.
const LATE_INPUT_MAX: usize = 256 << 10;

/// A peer that sent something so recently may be sending more right now.
const BUSY: std::time::Duration = std::time::Duration::from_secs(1);

/// What a peer sent before it saw the end arrives within a round trip; this is a long one.
const QUIET: std::time::Duration = std::time::Duration::from_millis(50);

/// Timers have a resolution of a millisecond; asking one later saves asking twice.
const TIMER_SLACK: std::time::Duration = std::time::Duration::from_millis(1);
