//! A client of a scenario on real nodes: acquires locks, works under them and releases them, and notes in the history what it
//! believes.
//!
//! It is the shipped client, and a process only as far as faults are concerned: one that stands still does nothing between two
//! steps of its work, one that dies leaves its locks to their TTL. It notes that it stops believing before it acts on that, so
//! the history never shows two holders where there were none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redlock_client::{
    Connection, Drift, Error, ErrorKind, FenceCheck, FencingToken, Guard, Redlock, RetryPolicy,
};
use tokio::io::{AsyncWriteExt as _, WriteHalf, copy, sink, split};
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::error::ClusterError;
use super::net::after;
use super::recorder::Recorder;
use super::{Cluster, LinkConnector};
use crate::history::{Event, KeyNo, LockNo};
use crate::scenario::{Act, Ending, LockAct, Setup};
use crate::span::SimTime;

/// A client that plays. Clones are the same client.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: u8,
    redlock: Redlock,
    way: LinkConnector,
    recorder: Arc<Recorder>,
    /// What the locks protect; all clients have the same.
    resource: Arc<FenceCheck>,
    /// Counts deaths. What a process has not noted when it dies, it never does.
    life: watch::Sender<u32>,
    state: Mutex<State>,
    /// Connections for requests beside the locks, by node and line.
    asides: AsyncMutex<HashMap<(u8, u8), Aside>>,
}

/// A connection whose replies nobody looks at.
#[derive(Debug)]
struct Aside(WriteHalf<Box<dyn Connection>>);

#[derive(Debug, Default)]
struct State {
    still_until: Option<Instant>,
    /// When the process starts again.
    dead_until: Option<Instant>,
    held: HashMap<LockNo, (Box<str>, mpsc::UnboundedSender<Order>)>,
}

/// What a lock that is held is to do.
#[derive(Debug)]
enum Order {
    Extend(Duration),
    Release,
    Write(Duration),
}

/// A lock that is held.
struct Holding<'a> {
    player: &'a Player,
    belief: Belief,
    guard: Guard,
    key: KeyNo,
    act: &'a LockAct,
    orders: mpsc::UnboundedReceiver<Order>,
    life: Life,
}

/// Ends in the history when it is dropped, unless it has ended before: when the run is over, the guard is dropped next.
struct Belief {
    player: Player,
    life: u32,
    lock: LockNo,
    is_over: bool,
}

/// The life of a process in which something is done.
struct Life {
    number: u32,
    ended: watch::Receiver<u32>,
}

impl Player {
    pub(crate) fn new(
        cluster: &Cluster,
        client: u8,
        setup: &Setup,
        recorder: &Arc<Recorder>,
        resource: &Arc<FenceCheck>,
    ) -> Result<Self, ClusterError> {
        let way = LinkConnector {
            notes_itself: Some(Arc::clone(recorder)),
            ..cluster.way(client)
        };
        let drift = Drift::new(setup.drift_ppm, setup.drift_constant);
        // A connection that a lost reply has silenced is given up within a TTL.
        let patience = (setup.max_ttl / 5).min(PATIENCE_MAX);
        let builder = cluster.redlock(client)?.connector(Arc::new(way.clone()));
        let built = builder.drift(drift).connect_timeout(patience).build();
        let shared = Shared {
            client,
            redlock: built.map_err(|error| ClusterError::Config(error.to_string()))?,
            way,
            recorder: Arc::clone(recorder),
            resource: Arc::clone(resource),
            life: watch::Sender::new(0),
            state: Mutex::default(),
            asides: AsyncMutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The process stands still, from its next step on.
    pub(crate) fn stand_still(&self, span: Duration) {
        let mut state = self.state();
        state.still_until = state.still_until.max(Some(after(Instant::now(), span)));
    }

    /// The process dies, and starts again a little later.
    pub(crate) fn die(&self) {
        let mut state = self.state();
        if state.dead_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        self.rise(&mut state);
        state.dead_until = Some(Instant::now() + DEAD_FOR);
        state.held.clear();
        let client = self.shared.client;
        self.shared.life.send_modify(|life| {
            *life = life.wrapping_add(1);
            self.shared.recorder.note(Event::ClientDown { client });
        });
    }

    /// Does something, when the process goes on; nothing while it is dead.
    pub(crate) async fn act(self, act: Act) {
        self.goes_on().await;
        let life = {
            let mut state = self.state();
            if state.dead_until.is_some_and(|until| until > Instant::now()) {
                return;
            }
            self.rise(&mut state);
            let ended = self.shared.life.subscribe();
            let number = *ended.borrow();
            Life { number, ended }
        };
        let order = |key: &str, order| {
            let state = self.state();
            let held = state.held.values().find(|(held, _)| **held == *key);
            // A lock that is not held does nothing.
            let _ = held.map(|(_, orders)| orders.send(order));
        };
        match act {
            Act::Lock(act) => self.lock(&act, life).await,
            Act::Extend { key, ttl } => order(&key, Order::Extend(ttl)),
            Act::Release { key } => order(&key, Order::Release),
            Act::Write { key, takes } => order(&key, Order::Write(takes)),
            Act::Ask { node, line, words } => self.ask(node, line, &words).await,
        }
    }

    /// Acquires a lock, works under it, and lets it go.
    async fn lock(&self, act: &LockAct, mut life: Life) {
        let Shared {
            client,
            redlock,
            recorder,
            ..
        } = &*self.shared;
        let (client, number) = (*client, life.number);
        let (lock, key) = (recorder.next_lock(), recorder.key(act.key.as_bytes()));
        self.note(number, |_| Event::Calls { client, lock, key });
        let retry = match act.within {
            Some(within) => RetryPolicy::wait_for(within),
            None => RetryPolicy::tries(act.tries),
        };
        let request = redlock
            .lock(act.key.as_bytes())
            .ttl(act.ttl)
            .retry(retry.backoff(BACKOFF_MIN, act.ttl / 5))
            .hold_at_least(act.at_least.unwrap_or_default());
        // In a task of its own: a process that dies takes nothing back.
        let mut acquiring = tokio::spawn(request.acquire());
        let acquired = tokio::select! {
            biased;
            _ = life.ended.changed() => {
                drop(tokio::spawn(async {
                    if let Ok(Ok(guard)) = acquiring.await {
                        guard.leak();
                    }
                }));
                return;
            }
            acquired = &mut acquiring => acquired,
        };
        self.goes_on().await;
        let failed = |why| self.note(number, |_| Event::Failed { client, lock, why });
        let guard = match acquired {
            Ok(Ok(guard)) if guard.is_valid() => guard,
            Ok(Ok(_)) => return failed("expired"),
            Ok(Err(error)) => return failed(word(&error)),
            Err(_) => return,
        };
        let attempt = recorder.attempt(guard.token().as_ref());
        let fencing = guard.fencing().map(FencingToken::get);
        self.note(number, |now| Event::Acquired {
            client,
            lock,
            key,
            attempt,
            fencing,
            valid_until: now + whole_micros(guard.validity()),
        });
        let (sender, orders) = mpsc::unbounded_channel();
        self.state().held.insert(lock, (act.key.clone(), sender));
        let belief = Belief {
            player: self.clone(),
            life: number,
            lock,
            is_over: false,
        };
        let holding = Holding {
            player: self,
            belief,
            guard,
            key,
            act,
            orders,
            life,
        };
        holding.work().await;
    }

    /// Sends requests with ` ; ` between, through a connection whose replies nobody looks at. A node that cannot be reached is
    /// not asked.
    async fn ask(&self, node: u8, line: u8, words: &str) {
        let requests = words.replace(" ; ", "\r\n") + "\r\n";
        let mut asides = self.shared.asides.lock().await;
        if let Some(open) = asides.get_mut(&(node, line))
            && open.0.write_all(requests.as_bytes()).await.is_ok()
        {
            return;
        }
        asides.remove(&(node, line));
        let Ok(stream) = self.shared.way.dial(node).await else {
            return;
        };
        let (mut replies, mut open) = split(stream);
        // They are read, so that the node goes on.
        tokio::spawn(async move { copy(&mut replies, &mut sink()).await });
        if open.write_all(requests.as_bytes()).await.is_ok() {
            asides.insert((node, line), Aside(open));
        }
    }

    /// Returns when the process does not stand still.
    async fn goes_on(&self) {
        loop {
            let still_until = self.state().still_until;
            match still_until.filter(|until| *until > Instant::now()) {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    /// Notes that the process has started again, if it was dead.
    fn rise(&self, state: &mut State) {
        if state.dead_until.take().is_some() {
            let client = self.shared.client;
            self.shared.recorder.note(Event::ClientStarted { client });
        }
    }

    /// Notes something, unless the process has died in that life.
    fn note(&self, life: u32, event: impl FnOnce(SimTime) -> Event) {
        let now = self.shared.life.borrow();
        if *now == life {
            self.shared.recorder.note_with(event);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding<'_> {
    async fn work(mut self) {
        let start = Instant::now();
        let ends = self.act.hold.map(|hold| start + hold);
        let mut next_write = self.act.write_every.map(|every| start + every / 4);
        let mut next_extension = self.act.extend_every.map(|every| start + every);
        let (mut lost, mut extensions) = (None, 0_u32);
        loop {
            self.player.goes_on().await;
            if lost.is_none() && !self.guard.is_valid() {
                lost = Some("expired");
            }
            if let Some(why) = lost {
                return self
                    .belief
                    .end(|client, lock| Event::Lost { client, lock, why });
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
                _ = self.life.ended.changed() => {
                    self.guard.leak();
                    return;
                }
                error = self.guard.lost() => lost = Some(word(&error)),
                Some(order) = self.orders.recv() => match order {
                    Order::Extend(ttl) => self.extend(ttl).await,
                    Order::Release => return self.end(Ending::Release).await,
                    Order::Write(takes) => self.write(takes).await,
                },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Checks that the lock is held, and writes; that takes a while, in which the process may stand still.
    async fn write(&self, takes: Duration) {
        if !self.guard.is_valid() {
            return;
        }
        let (client, lock, key) = (self.player.shared.client, self.belief.lock, self.key);
        self.note(|_| Event::Checked { client, lock });
        sleep(takes).await;
        self.player.goes_on().await;
        self.note(|_| {
            let fencing = self.guard.fencing();
            let resource = &self.player.shared.resource;
            let check = |token| resource.check(self.guard.key(), token).is_ok();
            Event::Wrote {
                client,
                lock,
                key,
                fencing: fencing.map(FencingToken::get),
                is_accepted: fencing.is_none_or(check),
            }
        });
    }

    async fn extend(&self, ttl: Duration) {
        let (client, lock) = (self.player.shared.client, self.belief.lock);
        let extended = self.guard.extend(ttl).await;
        self.note(|now| match extended {
            Ok(()) => Event::Validity {
                client,
                lock,
                valid_until: now + whole_micros(self.guard.validity()),
                is_extension: true,
            },
            Err(error) => Event::NotExtended {
                client,
                lock,
                why: word(&error),
            },
        });
    }

    async fn end(mut self, how: Ending) {
        let is_left = how != Ending::Release;
        if how == Ending::Crash {
            self.player.die();
        }
        self.belief.end(|client, lock| Event::Releases {
            client,
            lock,
            is_left,
        });
        if is_left {
            self.guard.leak();
            return;
        }
        let released = self.guard.release().await;
        let confirmed = u8::try_from(released.confirmed()).unwrap_or(u8::MAX);
        let (client, lock) = (self.player.shared.client, self.belief.lock);
        self.player.note(self.life.number, |_| Event::Released {
            client,
            lock,
            confirmed,
        });
    }

    fn note(&self, event: impl FnOnce(SimTime) -> Event) {
        self.player.note(self.life.number, event);
    }
}

impl Belief {
    fn end(&mut self, event: impl FnOnce(u8, LockNo) -> Event) {
        if !self.is_over {
            self.is_over = true;
            self.player.state().held.remove(&self.lock);
            let client = self.player.shared.client;
            self.player.note(self.life, |_| event(client, self.lock));
        }
    }
}

impl Drop for Belief {
    fn drop(&mut self) {
        self.end(|client, lock| Event::Releases {
            client,
            lock,
            is_left: false,
        });
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

/// The client's own default.
const PATIENCE_MAX: Duration = Duration::from_secs(1);

/// As in simulated worlds.
const DEAD_FOR: Duration = Duration::from_millis(500);

/// Longer than any run.
const FAR: Duration = Duration::from_secs(1 << 20);
