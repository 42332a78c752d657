//! A client of the lab: takes the lock, works under it, lets it go, and says in the history what it believes meanwhile.
//!
//! It is the shipped client over a socket, and a process only as far as the faults are concerned: one that stands still does
//! nothing between two steps of its work, one that dies leaves its lock to the TTL. What it believes is told before it acts on
//! it, so the history never shows two holders where there were none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locknode_testkit::cluster::Recorder;
use locknode_testkit::history::{AttemptNo, Event, KeyNo, LockNo};
use locknode_testkit::{Act, Ending, LockAct};
use redlock_client::{Error, ErrorKind, FenceCheck, FencingToken, Guard, Redlock, RetryPolicy};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::aside::Asides;

/// A client. Clones are the same client.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    number: u8,
    redlock: Redlock,
    asides: Asides,
    recorder: Arc<Recorder>,
    /// What the locks protect; all clients have the same.
    resource: Arc<FenceCheck>,
    still_until: Mutex<Option<Instant>>,
    /// Counts deaths.
    deaths: watch::Sender<u32>,
    /// The ways to the locks that are held, by key.
    held: Mutex<HashMap<Box<str>, mpsc::UnboundedSender<Wish>>>,
}

/// What is asked of a lock that is held.
#[derive(Debug)]
enum Wish {
    Extend(Duration),
    Release,
    Write(Duration),
}

/// Whether the client has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    GoesOn,
    Over,
}

/// A lock that is held.
struct Holding<'w> {
    worker: &'w Worker,
    guard: Guard,
    lock: LockNo,
    key: KeyNo,
    act: &'w LockAct,
    wishes: mpsc::UnboundedReceiver<Wish>,
    deaths: watch::Receiver<u32>,
}

impl Worker {
    pub(super) fn new(
        number: u8,
        redlock: Redlock,
        asides: Asides,
        recorder: Arc<Recorder>,
        resource: Arc<FenceCheck>,
    ) -> Self {
        let shared = Shared {
            number,
            redlock,
            asides,
            recorder,
            resource,
            still_until: Mutex::default(),
            deaths: watch::Sender::new(0),
            held: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Stands still for so long, from its next step on.
    pub(super) fn stand_still(&self, span: Duration) {
        let mut still = self
            .shared
            .still_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *still = (*still).max(Some(Instant::now() + span));
    }

    /// Dies at its next step.
    pub(super) fn die(&self) {
        self.shared.deaths.send_modify(|deaths| *deaths += 1);
    }

    /// Does one act of a scenario.
    pub(super) async fn act(self, act: Act) {
        let tell = |key: &str, wish| {
            let held = self
                .shared
                .held
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // Of a lock that is not held nothing can be asked.
            let _ = held.get(key).map(|lock| lock.send(wish));
        };
        match act {
            Act::Lock(act) => {
                self.lock(&act).await;
            }
            Act::Extend { key, ttl } => tell(&key, Wish::Extend(ttl)),
            Act::Release { key } => tell(&key, Wish::Release),
            Act::Write { key, takes } => tell(&key, Wish::Write(takes)),
            Act::Ask { node, line, words } => self.shared.asides.ask(node, line, &words).await,
        }
    }

    /// Acquires a lock, works under it, and lets it go.
    async fn lock(&self, act: &LockAct) -> Life {
        let Shared {
            number: client,
            redlock,
            recorder,
            ..
        } = &*self.shared;
        let client = *client;
        let mut deaths = self.shared.deaths.subscribe();
        let (lock, key) = (recorder.next_lock(), recorder.key(act.key.as_bytes()));
        self.note(Event::Calls { client, lock, key });
        let retry = match act.within {
            Some(within) => RetryPolicy::wait_for(within),
            None => RetryPolicy::tries(act.tries),
        };
        let retry = retry.backoff(BACKOFF_MIN, act.ttl / 5);
        let request = redlock.lock(act.key.as_bytes()).ttl(act.ttl).retry(retry);
        // Asked for in a task of its own: a process that dies takes nothing back.
        let mut acquiring = tokio::spawn(request.acquire());
        let acquired = tokio::select! {
            acquired = &mut acquiring => acquired,
            _ = deaths.changed() => {
                self.note(Event::ClientDown { client });
                drop(tokio::spawn(async {
                    if let Ok(Ok(guard)) = acquiring.await {
                        guard.leak();
                    }
                }));
                return Life::Over;
            }
        };
        self.goes_on().await;
        let guard = match acquired {
            Ok(Ok(guard)) if guard.is_valid() => guard,
            Ok(Ok(_)) => {
                self.note(Event::Failed {
                    client,
                    lock,
                    why: "expired",
                });
                return Life::GoesOn;
            }
            Ok(Err(error)) => {
                self.note(Event::Failed {
                    client,
                    lock,
                    why: word(&error),
                });
                return Life::GoesOn;
            }
            Err(_) => return Life::GoesOn,
        };
        let attempt: AttemptNo = recorder.attempt(guard.token().as_ref());
        let fencing = guard.fencing().map(FencingToken::get);
        recorder.note_with(|now| Event::Acquired {
            client,
            lock,
            key,
            attempt,
            fencing,
            valid_until: now + whole_micros(guard.validity()),
        });
        let (wish, wishes) = mpsc::unbounded_channel();
        self.held(|held| held.insert(act.key.clone(), wish));
        let holding = Holding {
            worker: self,
            guard,
            lock,
            key,
            act,
            wishes,
            deaths,
        };
        let life = holding.work().await;
        self.held(|held| held.remove(&act.key));
        life
    }

    fn held<T>(
        &self,
        change: impl FnOnce(&mut HashMap<Box<str>, mpsc::UnboundedSender<Wish>>) -> T,
    ) {
        let mut held = self
            .shared
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut held);
    }

    /// Returns when the process does not stand still.
    async fn goes_on(&self) {
        loop {
            let still = *self
                .shared
                .still_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            match still.filter(|until| *until > Instant::now()) {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    fn note(&self, event: Event) {
        self.shared.recorder.note(event);
    }
}

impl Holding<'_> {
    async fn work(mut self) -> Life {
        let start = Instant::now();
        let ends = self.act.hold.map(|hold| start + hold);
        let mut next_write = self.act.write_every.map(|every| start + every / 4);
        let mut next_extension = self.act.extend_every.map(|every| start + every);
        let (mut lost, mut extensions) = (None, 0_u32);
        loop {
            self.worker.goes_on().await;
            if lost.is_none() && !self.guard.is_valid() {
                lost = Some("expired");
            }
            if let Some(why) = lost {
                let (client, lock) = (self.client(), self.lock);
                self.worker.note(Event::Lost { client, lock, why });
                return Life::GoesOn;
            }
            let now = Instant::now();
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            if is_due(ends) {
                let how = self.act.ending;
                return self.end(how).await;
            }
            if is_due(next_write) {
                self.write(WRITE_TAKES).await;
                next_write = self.act.write_every.map(|every| Instant::now() + every);
                continue;
            }
            if is_due(next_extension) {
                extensions = extensions.wrapping_add(1);
                self.extend(self.act.ttl_of_extension(extensions)).await;
                next_extension = self.act.extend_every.map(|every| Instant::now() + every);
                continue;
            }
            let wakes = [ends, next_write, next_extension].into_iter().flatten();
            let wake = wakes.min().unwrap_or(now + FAR);
            tokio::select! {
                biased;
                _ = self.deaths.changed() => return self.end(Ending::Crash).await,
                error = self.guard.lost() => lost = Some(word(&error)),
                // Nobody can ask any more when the same client has locked the same key again.
                Some(wish) = self.wishes.recv() => match wish {
                    Wish::Extend(ttl) => self.extend(ttl).await,
                    Wish::Release => return self.end(Ending::Release).await,
                    Wish::Write(takes) => self.write(takes).await,
                },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Looks whether the lock is held, and writes; that takes a while, in which the process may stand still.
    async fn write(&self, takes: Duration) {
        if !self.guard.is_valid() {
            return;
        }
        let (client, lock, key) = (self.client(), self.lock, self.key);
        self.worker.note(Event::Checked { client, lock });
        sleep(takes).await;
        self.worker.goes_on().await;
        let shared = &self.worker.shared;
        shared.recorder.note_with(|_| {
            let fencing = self.guard.fencing();
            let is_accepted =
                fencing.is_none_or(|token| shared.resource.check(self.guard.key(), token).is_ok());
            Event::Wrote {
                client,
                lock,
                key,
                fencing: fencing.map(FencingToken::get),
                is_accepted,
            }
        });
    }

    async fn extend(&self, ttl: Duration) {
        let (client, lock) = (self.client(), self.lock);
        match self.guard.extend(ttl).await {
            Ok(()) => {
                self.worker
                    .shared
                    .recorder
                    .note_with(|now| Event::Validity {
                        client,
                        lock,
                        valid_until: now + whole_micros(self.guard.validity()),
                        is_extension: true,
                    });
            }
            Err(error) => {
                let why = word(&error);
                self.worker.note(Event::NotExtended { client, lock, why });
            }
        }
    }

    async fn end(self, how: Ending) -> Life {
        let (client, lock) = (self.client(), self.lock);
        match how {
            Ending::Release => {
                self.worker.note(Event::Releases {
                    client,
                    lock,
                    is_left: false,
                });
                let released = self.guard.release().await;
                let confirmed = u8::try_from(released.confirmed()).unwrap_or(u8::MAX);
                self.worker.note(Event::Released {
                    client,
                    lock,
                    confirmed,
                });
                Life::GoesOn
            }
            // Nobody takes over here.
            Ending::Leave | Ending::HandOver => {
                self.worker.note(Event::Releases {
                    client,
                    lock,
                    is_left: true,
                });
                self.guard.leak();
                Life::GoesOn
            }
            Ending::Crash => {
                self.worker.note(Event::ClientDown { client });
                self.guard.leak();
                Life::Over
            }
        }
    }

    fn client(&self) -> u8 {
        self.worker.shared.number
    }
}

/// Why something did not work, in a word.
fn word(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Busy => "busy",
        ErrorKind::Contended => "contended",
        ErrorKind::NoQuorum => "no-quorum",
        ErrorKind::Lost => "lost",
        ErrorKind::Expired => "expired",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Cancelled => "cancelled",
        _ => "other",
    }
}

/// A little less, to be read like all other times of the history.
fn whole_micros(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

/// As long as a fast database takes.
const WRITE_TAKES: Duration = Duration::from_millis(1);

/// Tries of many clients for one lock are to be seen one by one.
const BACKOFF_MIN: Duration = Duration::from_millis(10);

/// Longer than any lab runs.
const FAR: Duration = Duration::from_secs(1 << 20);
