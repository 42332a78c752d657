//! The one task that does all input and output of a client.
//!
//! It owns the sockets and the [`Core`]. In each turn it takes the callers' commands, reads the nodes'
//! replies, lets time pass, reports outcomes to callers, and writes once per node. It takes everything
//! available before it writes, so many locks in flight share their system calls.

mod port;
mod reports;
mod waiter;

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

use redlock_proto::{Cause, Core, CoreConfig, OpId, Time, Unreachable};

use crate::driver::port::{Port, PortEvent};
use crate::driver::waiter::{LockWaiter, Waiter, Waiters};
use crate::entropy::SystemEntropy;
use crate::inbox::{Command, Config, Inbox};
use crate::limits;
use crate::lock_state::LockState;
use crate::observer::Event;

/// The task. When the client is closed or its last handle dropped, it finishes the releases, within a
/// time limit, and ends.
#[derive(Debug)]
pub(crate) struct Driver {
    config: Arc<Config>,
    inbox: Arc<Mutex<Inbox>>,
    pulse: Arc<AtomicU64>,
    /// Which driver of the client this is.
    number: u64,
    core: Core<SystemEntropy>,
    ports: Vec<Port>,
    waiters: Waiters,
    commands: Vec<Command>,
    buffer: Box<[u8]>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When `sleep` ends on the client's clock.
    wakes_at: Time,
    /// When the driver ends at the latest, once it is closing.
    closes_at: Option<Time>,
    /// Who waits for its end.
    closers: Vec<oneshot::Sender<()>>,
}

impl Driver {
    pub(crate) fn new(
        config: Arc<Config>,
        inbox: Arc<Mutex<Inbox>>,
        pulse: Arc<AtomicU64>,
        number: u64,
    ) -> Self {
        let logins = config.addresses.iter();
        let core_config = CoreConfig {
            logins: logins.map(|address| address.login.clone()).collect(),
            drift: config.drift,
            connect_timeout: config.connect_timeout,
        };
        let Some(core) = Core::new(core_config, SystemEntropy) else {
            unreachable!("the builder has checked the number of nodes");
        };
        Self {
            ports: config.addresses.iter().map(|_| Port::Closed).collect(),
            config,
            inbox,
            pulse,
            number,
            core,
            waiters: Waiters::default(),
            commands: Vec::new(),
            buffer: vec![0; READ_BYTES].into(),
            sleep: None,
            wakes_at: Time::NEVER,
            closes_at: None,
            closers: Vec::new(),
        }
    }

    /// Takes the callers' commands. Returns whether there were any.
    fn take_commands(&mut self, context: &Context<'_>) -> bool {
        let mut inbox = self.inbox.lock();
        std::mem::swap(&mut self.commands, &mut inbox.commands);
        let is_orphaned = inbox.is_orphaned;
        match &mut inbox.waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            waker => *waker = Some(context.waker().clone()),
        }
        drop(inbox);
        if is_orphaned && self.closes_at.is_none() {
            self.begin_closing(None);
        }
        if self.commands.is_empty() {
            return false;
        }
        // A lock's age counts from here, before the first byte is written.
        let now = self.config.clock.now();
        let mut commands = std::mem::take(&mut self.commands);
        for command in commands.drain(..) {
            self.command(now, command);
        }
        self.commands = commands;
        true
    }

    fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Acquire {
                state,
                terms,
                adopt,
                answer,
            } => {
                // The caller may have dropped the request already.
                if answer.is_closed() {
                    return;
                }
                let op = match adopt {
                    Some(token) => self.core.adopt(now, terms, token),
                    None => self.core.acquire(now, terms),
                };
                state.set_op(self.number, op);
                let lock = LockWaiter {
                    state,
                    acquire: Some(answer),
                    extend: None,
                    release: None,
                };
                self.waiters.insert(op, Waiter::Lock(lock));
            }
            Command::Extend { state, ttl, answer } => {
                if let Some(op) = state.op(self.number)
                    && let Some(lock) = self.waiters.lock(op)
                {
                    lock.extend = Some(answer);
                    self.core.extend(now, op, ttl);
                }
            }
            Command::Release {
                state,
                token,
                answer,
            } => match (state.op(self.number), answer) {
                (Some(op), Some(answer)) => {
                    if let Some(lock) = self.waiters.lock(op) {
                        lock.release = Some(answer);
                    }
                    self.core.release(now, op);
                }
                (Some(op), None) => {
                    match token {
                        Some(_) => self.core.drop_interest(now, op),
                        None => self.abandon(now, op, &state),
                    }
                    // The acquire was dropped while its grant was on the way: `Acquired` was reported.
                    if let Some(Waiter::Lock(lock)) = self.waiters.remove(op)
                        && token.is_none()
                        && lock.acquire.is_none()
                    {
                        let (key, released) = (state.key(), None);
                        self.config.observe(&Event::Released { key, released });
                    }
                }
                // Another driver acquired the lock: only the token is known.
                (None, answer) => {
                    if let Some(token) = token {
                        let terms = Arc::clone(&state.terms);
                        let op = self.core.release_token(now, terms, token);
                        self.waiters.insert(op, Waiter::Token(answer));
                    }
                }
            },
            Command::Leak { state } => {
                if let Some(op) = state.op(self.number) {
                    self.core.leak(op);
                    self.waiters.remove(op);
                }
            }
            Command::ReleaseToken {
                terms,
                token,
                answer,
            } => {
                let op = self.core.release_token(now, terms, token);
                self.waiters.insert(op, Waiter::Token(Some(answer)));
            }
            Command::Look {
                key,
                timeout,
                answer,
            } => {
                let op = self.core.look(now, key, timeout);
                self.waiters.insert(op, Waiter::Look(answer));
            }
            Command::Force {
                key,
                timeout,
                answer,
            } => {
                let op = self.core.force(now, key, timeout);
                self.waiters.insert(op, Waiter::Look(answer));
            }
            Command::Close { answer } => self.begin_closing(Some(answer)),
        }
    }

    /// The caller dropped an acquire. Releases its lock, unless another process had acquired it.
    fn abandon(&mut self, now: Time, op: OpId, state: &LockState) {
        if state.is_adopted {
            self.core.leak(op)
        } else {
            self.core.drop_interest(now, op)
        }
    }

    fn begin_closing(&mut self, answer: Option<oneshot::Sender<()>>) {
        let now = self.config.clock.now();
        if self.closes_at.is_none() {
            self.core.close(now);
        }
        // Nodes have as long as for any reply.
        let other = limits::node_timeout(self.config.node_timeout, Duration::MAX);
        let until = now + self.core.patience(other).min(CLOSE_TIME);
        self.closes_at.get_or_insert(until);
        self.closers.extend(answer);
    }

    /// Reads from all nodes and follows their connections. Returns whether anything happened.
    fn poll_ports(&mut self, context: &mut Context<'_>) -> bool {
        let mut progress = false;
        for (node, port) in self.core.quorum().all().iter().zip(&mut self.ports) {
            for _ in 0..READS_MAX {
                let Poll::Ready(event) = port.poll(context, &mut self.buffer) else {
                    break;
                };
                progress = true;
                // A lock's remaining validity counts from here, after the last byte arrived.
                let now = self.config.clock.now();
                match event {
                    PortEvent::Opened => self.core.connected(now, node),
                    PortEvent::Received(len) => {
                        let bytes = self.buffer.get(..len).unwrap_or_default();
                        self.core.received(now, node, bytes);
                        // The socket is empty; poll once more so that it wakes this task.
                        if len < self.buffer.len() {
                            continue;
                        }
                    }
                    PortEvent::Closed(cause) => {
                        self.core.disconnected(now, node, cause);
                        break;
                    }
                }
            }
        }
        progress
    }

    /// Writes to all nodes. Returns whether a connection broke.
    fn poll_write(&mut self, context: &mut Context<'_>) -> bool {
        let mut broken = false;
        for (node, port) in self.core.quorum().all().iter().zip(&mut self.ports) {
            let Some(out) = self.core.output(node) else {
                continue;
            };
            if let Err(error) = port.poll_write(context, out) {
                let now = self.config.clock.now();
                let cause = Cause::Unreachable(Unreachable::new(error));
                self.core.disconnected(now, node, cause);
                broken = true;
            }
        }
        broken
    }

    /// Runs the core if its deadline has passed. Returns whether it had.
    fn pass_time(&mut self) -> bool {
        let deadline = self.core.next_deadline();
        if deadline == Time::NEVER {
            return false;
        }
        let now = self.config.clock.now();
        if now < deadline {
            return false;
        }
        self.core.on_time(now);
        true
    }

    /// Sets the timer for the next deadline. Only an earlier deadline moves the timer: if it fires too
    /// soon it is set again, and most deadlines never come.
    fn set_timer(&mut self, context: &mut Context<'_>) {
        loop {
            let closes_at = self.closes_at.unwrap_or(Time::NEVER);
            let deadline = self.core.next_deadline().min(closes_at);
            if deadline == Time::NEVER {
                return;
            }
            let now = self.config.clock.now();
            // The runtime's timers stop while the machine sleeps.
            let deadline = deadline.min(now + TIMER_MAX);
            if deadline < self.wakes_at || self.sleep.is_none() {
                let at = Instant::now() + deadline.since(now);
                match &mut self.sleep {
                    Some(sleep) => sleep.as_mut().reset(at),
                    None => self.sleep = Some(Box::pin(tokio::time::sleep_until(at))),
                }
                self.wakes_at = deadline;
            }
            let Some(sleep) = &mut self.sleep else {
                return;
            };
            if sleep.as_mut().poll(context).is_pending() {
                return;
            }
            self.wakes_at = Time::NEVER;
            if self.pass_time() || self.is_over() {
                context.waker().wake_by_ref();
                return;
            }
        }
    }

    fn turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS_MAX {
            let mut progress = self.take_commands(context);
            progress |= self.poll_ports(context);
            progress |= self.pass_time();
            // Report before writing: see the core.
            progress |= self.report();
            progress |= self.poll_write(context);
            if self.is_over() {
                return Poll::Ready(());
            }
            if !progress {
                self.set_timer(context);
                return Poll::Pending;
            }
        }
        // Let other tasks of this runtime run.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_over(&self) -> bool {
        self.closes_at.is_some_and(|closes_at| {
            let is_done = self.core.is_settled() && self.ports.iter().all(Port::is_quiet);
            is_done || self.config.clock.now() >= closes_at
        })
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.pulse.fetch_add(1, Ordering::Relaxed);
        // An observer panicked, or the runtime lacks something: pass the message on to callers.
        match catch_unwind(AssertUnwindSafe(|| this.turn(context))) {
            Ok(poll) => poll,
            Err(panic) => {
                this.inbox.lock().panic = Some(message(&*panic));
                Poll::Ready(())
            }
        }
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> Arc<str> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").into()
}

impl Drop for Driver {
    /// The driver ends, in order or with its runtime: ends all locks and waits.
    fn drop(&mut self) {
        let mut inbox = self.inbox.lock();
        inbox.driver = 0;
        inbox.waker = None;
        let commands = std::mem::take(&mut inbox.commands);
        let (error, has_panicked) = (inbox.end(), inbox.panic.is_some());
        drop(inbox);
        drop(commands);
        for state in self.waiters.take_locks() {
            // An observer that panicked is not called again.
            if !has_panicked && state.error().is_none() && state.valid_until() != Time::ZERO {
                let (key, error) = (state.key(), &error);
                self.config.observe(&Event::Lost { key, error });
            }
            state.end(error.clone());
        }
    }
}

/// The size of one read: about a thousand replies.
const READ_BYTES: usize = 16_384;

/// The most reads from one node in a row.
const READS_MAX: usize = 4;

/// The most turns before other tasks of the runtime run.
const TURNS_MAX: usize = 8;

/// The longest timer. After the machine wakes from sleep, expired locks are noticed within this time.
const TIMER_MAX: Duration = Duration::from_secs(1);

/// The longest that a closed client goes on with its releases.
const CLOSE_TIME: Duration = Duration::from_secs(2);
