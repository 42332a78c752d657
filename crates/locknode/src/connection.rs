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
//! Replies are written at once; after a short batch they are written at the task's next poll, so
//! that every connection that is ready is read before any is answered. Replies that depend on
//! something not yet durable wait in `unsent` for the disk.
//!
//! Back-pressure: while `unsent` holds anything, nothing is read or executed, so a client that
//! never reads costs one batch of replies and no more. A batch ends when its replies reach
//! [`OUTPUT_HIGH_WATER`].

#[cfg(feature = "hand-over")]
mod carrying;
mod limits;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use locknode_engine::{Flow, Need, Session};
use locknode_resp::Decoder;
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use self::limits::{
    ARGS_INLINE, BLOCKED_INPUT_MAX, BUSY, KEPT_MAX, LATE_INPUT_MAX, OUTPUT_HIGH_WATER, QUIET,
    SHORT_BATCH_LARGE, SHORT_BATCH_MAX, TIMER_SLACK,
};
use crate::scope::{Phase, ScopeMember};
use crate::scratch::Scratch;
use crate::shared::Shared;
use crate::upcoming::Upcoming;

/// The task of one connection; completes when the connection closes.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    node: Arc<Shared>,
    scope: ScopeMember,
    session: Session,
    decoder: Decoder,
    /// Input not yet executed.
    unread: Vec<u8>,
    /// Replies that the stream has not accepted yet, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    /// What `unread` and `unsent` use, as last noted for `maxmemory-clients`.
    buffered: usize,
    /// What must be durable before `unsent` may be sent.
    need: Need,
    state: State,
    /// Whether the last batch was short, so that its replies wait for the next poll.
    is_short_batch: bool,
    /// Whether other connections go first before this one continues.
    yields: bool,
    /// Whether it has just let them.
    has_yielded: bool,
    /// Whether it has woken itself, so that it need not prepare to sleep.
    is_woken: bool,
    /// Whether it has ended, and waits for its turn to be dropped.
    is_over: bool,
    /// Bytes read since the connection began to close.
    late_input: usize,
    /// Whether the peer was active when its connection began to close.
    is_busy: bool,
    /// Wakes the task when CLIENT PAUSE, or the wait for an active peer, may have ended.
    timer: Option<Pin<Box<Sleep>>>,
    #[cfg(feature = "hand-over")]
    duplicate: Option<carrying::Duplicate<S>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Reads.
    Open,
    /// `unread` holds commands to execute before more is read.
    Backlogged,
    /// CLIENT PAUSE or a script holds the next command back.
    Paused,
    /// A command has no reply yet, and nothing more is executed until it has.
    Blocked,
    /// Sends the remaining replies, then shuts down its side of the stream.
    Closing,
    /// Has shut down its side and discards further input. Closing a socket with unread input would
    /// make the kernel reset the connection, and the peer could lose replies already sent.
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
            buffered: 0,
            need: Need::NONE,
            state: State::Open,
            is_short_batch: false,
            yields: false,
            has_yielded: false,
            is_woken: false,
            is_over: false,
            late_input: 0,
            is_busy: false,
            timer: None,
            #[cfg(feature = "hand-over")]
            duplicate: None,
        }
    }

    /// Executes the complete requests in `input`, appends their replies, and returns the number of
    /// bytes consumed.
    fn execute(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let engine = &self.node.engine;
        let limits = engine.limits();
        let moment = self.node.clock.now();
        // Read after the time, so that it includes any lag at that moment.
        engine.guard().note_slip(self.node.clock.slip_ns());
        let mut batch = engine.batch(moment);
        let (mut done, mut commands) = (0, 0);
        self.state = State::Open;
        let mut short: [&[u8]; 9] = [&[]; 9];
        let (looks_ahead, mut upcoming) = (batch.is_worth_looking_ahead(), Upcoming::default());
        // Calling the decoder once more at the end of the input lets it free what a large request
        // needed.
        let mut was_large = false;
        while done < input.len() || was_large {
            let rest = input.get(done..).unwrap_or_default();
            if out.len() >= OUTPUT_HIGH_WATER && !rest.is_empty() {
                self.state = State::Backlogged;
                break;
            }
            if looks_ahead {
                upcoming.refill(rest, &self.decoder, &batch, &self.session);
            }
            let long: SmallVec<[&[u8]; ARGS_INLINE]>;
            let decoded = upcoming.take();
            let decoded = decoded.or_else(|| self.decoder.decode_short(rest, &mut short));
            let (args, consumed) = if let Some(request) = decoded {
                request
            } else {
                let is_authenticated = self.session.is_authenticated();
                match self.decoder.decode(rest, &limits, is_authenticated) {
                    Ok(Some(frame)) => {
                        was_large = frame.len() > ARGS_INLINE;
                        long = frame.args().collect();
                        (&*long, frame.consumed())
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.session.refuse(&error, out);
                        self.state = State::Closing;
                        break;
                    }
                }
            };
            let flow = batch.execute(&mut self.session, args, out);
            if flow == Flow::Paused {
                self.state = State::Paused;
                self.yields |= self.session.has_script() || self.session.is_in_queue();
                break;
            }
            done += consumed;
            commands += 1;
            self.state = match flow {
                Flow::Continue => continue,
                Flow::Yield => State::Backlogged,
                Flow::Blocked => State::Blocked,
                Flow::Close | Flow::Paused | Flow::Shutdown | Flow::ShutdownNoSave => {
                    State::Closing
                }
            };
            self.yields |= flow == Flow::Yield;
            if matches!(flow, Flow::Shutdown | Flow::ShutdownNoSave) {
                self.node.stop(flow == Flow::Shutdown);
            }
            break;
        }
        let need = batch.finish(&self.session, commands);
        if self.session.kept_bytes() + self.buffered > 0 {
            self.note_buffers();
        }
        let short_max = if looks_ahead {
            SHORT_BATCH_LARGE
        } else {
            SHORT_BATCH_MAX
        };
        self.is_short_batch = commands <= short_max && !out.is_empty();
        self.node.wake_sweeper();
        if !need.is_none() && !out.is_empty() {
            self.need = need;
        } else {
            // A grant must become durable even when no reply waits for it `[G17]`.
            self.node.wake_disk();
        }
        done
    }

    /// Executes what `unread` holds and keeps the rest.
    fn execute_unread(&mut self, out: &mut Vec<u8>) {
        let unread = std::mem::take(&mut self.unread);
        let done = self.execute(&unread, out);
        self.unread = unread;
        self.unread.drain(..done);
        if self.unread.capacity() > KEPT_MAX && self.unread.len() < KEPT_MAX / 4 {
            self.unread.shrink_to(self.unread.len());
        }
        self.note_buffers();
    }

    /// Keeps a batch's replies until the stream accepts them.
    fn keep(&mut self, replies: &[u8]) {
        self.unsent.extend_from_slice(replies);
        if self.unsent.capacity() > KEPT_MAX {
            self.note_buffers();
        }
    }

    /// Notes what the connection's buffers and its transaction use beyond their first room, if it has
    /// changed.
    ///
    /// The decoder's list of the arguments of an unfinished request is not counted: it is at most
    /// three times as long as the request, and only if they are empty.
    fn note_buffers(&mut self) {
        let buffers = [
            self.unread.capacity(),
            self.unsent.capacity(),
            self.session.kept_bytes(),
        ];
        let used = buffers.into_iter().filter(|room| *room > KEPT_MAX).sum();
        if used != self.buffered {
            self.buffered = used;
            self.session.client().note_buffers(used as u64);
        }
    }

    /// Returns whether the peer may still be sent what others send it.
    const fn takes_mail(&self) -> bool {
        !matches!(self.state, State::Closing | State::Lingering)
    }

    /// Waits until everything that `unsent` depends on is durable; `None` when it never will be.
    ///
    /// The replies must then not be sent: the peer sees its connection close and does not know the
    /// outcome of its commands `[G13]`.
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
            // Anything made durable from here on wakes this task; the second check sees what became
            // durable just before.
            if !is_waiting && self.scope.waiters.wait(cx.waker()) {
                self.node.wake_disk();
            }
        }
        Poll::Pending
    }

    /// Returns whether the node stops while a command waits for others: it is not executed any more.
    fn waits_in_vain(&mut self) -> bool {
        let now = self.node.clock.now().time;
        self.scope.phase() == Phase::Draining
            && !self.session.has_script()
            && !self.session.is_in_queue()
            && self.node.engine.wait_end(&self.session, now).is_some()
    }

    /// Waits until a paused command may be tried again.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.scope.phase() == Phase::Draining {
            self.session.stop_script();
        }
        loop {
            let now = self.node.clock.now().time;
            let Some(end) = self.node.engine.wait_end(&self.session, now) else {
                self.timer = None;
                return Poll::Ready(());
            };
            // The engine's clock decides; the timer only says when to check it again.
            let timer = Box::pin(tokio::time::sleep(end.since(now) + TIMER_SLACK));
            ready!(self.timer.insert(timer).as_mut().poll(cx));
        }
    }
}

impl<S> Drop for Connection<S> {
    /// Executed commands must become durable even though their replies will not be sent.
    fn drop(&mut self) {
        if !self.need.is_none() {
            self.node.wake_disk();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Drives the connection until it has to wait or closes.
    fn drive(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        loop {
            let phase = self.scope.phase();
            if self.session.client().is_killed() || phase == Phase::Aborting {
                return Poll::Ready(());
            }
            #[cfg(feature = "hand-over")]
            if phase == Phase::Draining && self.gives_up_socket(cx) {
                return Poll::Ready(());
            }
            if !self.unsent.is_empty() {
                let is_durable = ready!(self.poll_durable(cx)).is_some();
                if !is_durable || ready!(self.poll_send_unsent(cx)).is_none() {
                    return Poll::Ready(());
                }
                continue;
            }
            if self.session.client().has_mail() && self.takes_mail() {
                let client = self.session.client();
                client.take_mail(&mut scratch.output, OUTPUT_HIGH_WATER);
                self.node.traffic.note(0, scratch.output.len());
                self.need = self.session.mail_need();
                if !self.need.is_none() {
                    self.keep(&scratch.output);
                    scratch.output.clear();
                } else if self.send(cx, &mut scratch.output).is_none() {
                    return Poll::Ready(());
                }
                if !self.unsent.is_empty() {
                    continue;
                }
                // However much it is sent, its own requests have their turn too.
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
                    if self.waits_in_vain() {
                        self.state = State::Closing;
                        continue;
                    }
                    ready!(self.poll_pause(cx));
                    self.execute_unread(&mut scratch.output);
                }
                State::Backlogged => self.execute_unread(&mut scratch.output),
                State::Blocked => {
                    if ready!(self.poll_blocked(cx, scratch)).is_none() {
                        return Poll::Ready(());
                    }
                    continue;
                }
                State::Open => match self.poll_input(cx, scratch) {
                    Poll::Ready(Some(())) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending if self.scope.phase() == Phase::Draining => {
                        // Everything received has been answered.
                        self.state = State::Closing;
                        continue;
                    }
                    Poll::Pending => return Poll::Pending,
                },
            }
            let waits = !self.need.is_none();
            if waits || self.yields || self.is_short_batch {
                self.keep(&scratch.output);
                scratch.output.clear();
            } else if self.send(cx, &mut scratch.output).is_none() {
                return Poll::Ready(());
            }
            if waits {
                continue;
            }
            if std::mem::take(&mut self.yields) {
                // Unlike waking itself, this lets the runtime look for input on other connections
                // first.
                self.has_yielded = true;
                let mut turn = std::pin::pin!(tokio::task::yield_now());
                ready!(turn.as_mut().poll(cx));
            } else if std::mem::take(&mut self.is_short_batch) {
                cx.waker().wake_by_ref();
                self.is_woken = true;
                return Poll::Pending;
            }
        }
    }

    /// Reads once and executes the commands that the input completes; `None` when the peer is gone.
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
            if let Some(rest) = input.get(done..).filter(|rest| !rest.is_empty()) {
                self.unread.extend_from_slice(rest);
                self.note_buffers();
            }
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

    /// Waits for the reply of a command that waits, and keeps what the peer sends meanwhile; `None` when
    /// the peer is gone.
    fn poll_blocked(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<Option<()>> {
        loop {
            let is_draining = self.scope.phase() == Phase::Draining;
            let now = self.node.clock.now().time;
            let end = self.session.wait_end();
            if is_draining || end.is_some_and(|end| end <= now) {
                self.session.give_up(&mut self.unsent);
            }
            if !self.session.is_waiting() {
                // The reply goes first.
                if !self.session.client().has_mail() {
                    self.timer = None;
                    self.session.forget_wait();
                    self.state = State::Backlogged;
                }
                return Poll::Ready(Some(()));
            }
            if let Some(end) = end {
                let timer = || Box::pin(tokio::time::sleep(end.since(now) + TIMER_SLACK));
                let timer = self.timer.get_or_insert_with(timer);
                if timer.as_mut().poll(cx).is_ready() {
                    self.timer = None;
                    continue;
                }
            }
            if self.unread.len() >= BLOCKED_INPUT_MAX {
                return Poll::Pending;
            }
            let mut input = ReadBuf::new(&mut scratch.input);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut input));
            if read.is_err() || input.filled().is_empty() {
                return Poll::Ready(None);
            }
            self.unread.extend_from_slice(input.filled());
            self.note_buffers();
        }
    }

    /// Discards input. While the node shuts down, a peer that was active may have sent more before
    /// it saw the end, so the task reads until the peer closes too or sends nothing for a while.
    /// Otherwise it takes what is there, up to a limit.
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

    /// Sends a batch's replies and keeps what the stream does not accept at once; `None` when the
    /// peer is gone.
    fn send(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<()> {
        let mut sent = 0;
        while let Some(rest) = out.get(sent..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0) | Err(_)) => return None,
                Poll::Ready(Ok(n)) => sent += n,
                Poll::Pending => {
                    self.keep(rest);
                    break;
                }
            }
        }
        if self.unsent.is_empty() {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return None,
                Poll::Pending => {
                    // Something is unsent, although the stream has accepted all of it.
                    self.unsent.push(0);
                    self.sent = 1;
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
        if ready!(Pin::new(&mut self.stream).poll_flush(cx)).is_err() {
            return Poll::Ready(None);
        }
        self.sent = 0;
        self.unsent.clear();
        if self.unsent.capacity() > KEPT_MAX {
            self.unsent = Vec::new();
            self.note_buffers();
        }
        Poll::Ready(Some(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Connection<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        connection.node.engine.wake_next_client();
        let mut polled = if connection.is_over {
            Poll::Ready(())
        } else {
            Scratch::lend(|scratch| connection.drive(cx, scratch))
        };
        if polled.is_ready() && !connection.node.engine.may_leave(&mut connection.session) {
            (connection.is_over, connection.has_yielded) = (true, true);
            let mut turn = std::pin::pin!(tokio::task::yield_now());
            polled = turn.as_mut().poll(cx);
        }
        if polled.is_pending() && !std::mem::take(&mut connection.is_woken) {
            // After a yield the task is woken anyway, once others have been looked at.
            let has_yielded = std::mem::take(&mut connection.has_yielded);
            if !has_yielded {
                connection.session.leave_queue();
            }
            // A kill or the end of a pause wakes this task from here on; one that came just before
            // is seen here.
            let client = connection.session.client();
            client.sleep_with(cx.waker());
            let has_mail = client.has_mail() && connection.takes_mail();
            let is_due = || {
                let now = connection.node.clock.now().time;
                let end = connection.node.engine.wait_end(&connection.session, now);
                end.is_none()
            };
            if client.is_killed()
                || has_mail
                || connection.scope.has_moved()
                || !has_yielded && connection.state == State::Paused && is_due()
            {
                cx.waker().wake_by_ref();
            }
        }
        polled
    }
}
