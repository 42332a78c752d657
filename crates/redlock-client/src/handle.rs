//! How callers reach the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use redlock_proto::{ErrorKind, Time};
use tokio::sync::oneshot;

use crate::driver::Driver;
use crate::error::Error;
use crate::inbox::{Command, Config, Inbox, closed};

/// The way to the driver, shared by the client's clones and guards. When the last is dropped, the driver
/// finishes its releases and ends.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) config: Arc<Config>,
    inbox: Arc<Mutex<Inbox>>,
    /// Counts the driver's turns, so that callers notice when its runtime no longer runs it.
    pulse: Arc<AtomicU64>,
}

impl Handle {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config: Arc::new(config),
            inbox: Arc::default(),
            pulse: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.config.clock.now()
    }

    /// Sends the driver a command, and starts a driver if there is none.
    ///
    /// # Errors
    /// If the client is closed or there is no runtime to start a driver on.
    pub(crate) fn submit(&self, command: Command) -> Result<(), Error> {
        let mut inbox = self.inbox.lock();
        if inbox.is_closed {
            return Err(closed());
        }
        if inbox.driver == 0 {
            let Ok(runtime) = tokio::runtime::Handle::try_current() else {
                return Err(Error::config(
                    "no tokio runtime here: call from within one, or use the blocking interface",
                ));
            };
            inbox.drivers += 1;
            inbox.driver = inbox.drivers;
            let config = Arc::clone(&self.config);
            inbox.panic = None;
            let (shared, pulse) = (Arc::clone(&self.inbox), Arc::clone(&self.pulse));
            let driver = Driver::new(config, shared, pulse, inbox.driver);
            drop(runtime.spawn(driver));
        }
        put(inbox, command);
        Ok(())
    }

    /// Sends a running driver a command; false if there is none.
    pub(crate) fn submit_if_running(&self, command: Command) -> bool {
        let inbox = self.inbox.lock();
        if inbox.driver == 0 {
            return false;
        }
        put(inbox, command);
        true
    }

    /// Closes the client for good; resolves when its driver has ended, if there is one.
    pub(crate) async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        self.inbox.lock().is_closed = true;
        if self.submit_if_running(Command::Close { answer }) {
            // An error means that the driver has ended already.
            let _ = self.answer(answered, Duration::ZERO).await;
        }
    }

    /// Sends the driver a command and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        self.submit(command(answer))?;
        self.answer(answered, Duration::ZERO).await
    }

    /// Waits for the driver's answer as long as the driver runs, and for `patience` at least.
    ///
    /// The caller's own timer decides, because the driver's runtime, on which the client was first
    /// used, may be idle by now.
    pub(crate) async fn answer<T>(
        &self,
        mut answered: oneshot::Receiver<T>,
        patience: Duration,
    ) -> Result<T, Error> {
        // Without a runtime there is no timer.
        if tokio::runtime::Handle::try_current().is_err() {
            return answered.await.map_err(|_| self.inbox.lock().end());
        }
        let mut wait = patience.max(STALL);
        loop {
            let turns = self.pulse.load(Ordering::Relaxed);
            let Some(timer) = timer(wait) else {
                return Err(Error::config(
                    "this tokio runtime has no timers: build it with enable_time or enable_all",
                ));
            };
            tokio::select! {
                biased;
                answer = &mut answered => return answer.map_err(|_| self.inbox.lock().end()),
                () = timer => {}
            }
            if self.pulse.load(Ordering::Relaxed) == turns {
                return Err(stalled());
            }
            wait = STALL;
        }
    }
}

fn put(mut inbox: MutexGuard<'_, Inbox>, command: Command) {
    inbox.commands.push(command);
    wake(inbox);
}

fn wake(mut inbox: MutexGuard<'_, Inbox>) {
    let waker = inbox.waker.take();
    drop(inbox);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A timer of the caller's runtime; `None` if it has no timers, in which case tokio panics.
fn timer(wait: Duration) -> Option<tokio::time::Sleep> {
    std::panic::catch_unwind(|| tokio::time::sleep(wait)).ok()
}

/// The driver does not run.
fn stalled() -> Error {
    Error::new(
        ErrorKind::Timeout,
        "the client's task does not run: the runtime that the client was first used on is idle, blocked or lost by a \
         fork; build a client for this runtime",
    )
}

/// A driver with work to do runs at least every second.
const STALL: Duration = Duration::from_secs(2);

impl Drop for Handle {
    fn drop(&mut self) {
        let mut inbox = self.inbox.lock();
        inbox.is_orphaned = true;
        wake(inbox);
    }
}
