//! A client of a scenario on real nodes: acquires locks, works under them and releases them, and notes in the history what it
//! believes.
//!
//! It is the shipped client. Its process exists for faults only: while it is paused, it takes no next step of its work, and when
//! it crashes, it leaves its locks to their TTL. It notes the end of a belief before it acts on that, so the history never shows
//! two holders where there were none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redlock_client::{Connection, Drift, FenceCheck, FencingToken, Guard, Redlock, RetryPolicy};
use tokio::io::{AsyncWriteExt as _, WriteHalf, copy, sink, split};
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::error::ClusterError;
use super::net::after;
use super::recorder::Recorder;
use super::{Cluster, LinkConnector};
use crate::history::{Event, KeyNo, LockNo};
use crate::scenario::{ClientAction, Ending, LockAction, Setup};
use crate::sim::word;
use crate::span::SimTime;

/// A client of a scenario.
#[derive(Debug)]
pub(crate) struct Player {
    client: u8,
    redlock: Redlock,
    way: LinkConnector,
    recorder: Arc<Recorder>,
    /// What the locks protect; all clients have the same.
    resource: Arc<FenceCheck>,
    /// Counts crashes. What a process has not noted before its crash, it never notes.
    life: watch::Sender<u32>,
    state: Mutex<State>,
    /// Connections for other requests, by node and line.
    asides: AsyncMutex<HashMap<(u8, u8), Aside>>,
}

/// A connection whose replies are ignored.
type Aside = WriteHalf<Box<dyn Connection>>;

#[derive(Debug, Default)]
struct State {
    paused_until: Option<Instant>,
    /// When the process starts again after a crash.
    down_until: Option<Instant>,
    /// The locks that it holds: their keys, and where acts go that are about them.
    held: HashMap<LockNo, (Box<str>, mpsc::UnboundedSender<ClientAction>)>,
}

/// A process from its start to its crash.
struct Life {
    player: Arc<Player>,
    number: u32,
    ended: watch::Receiver<u32>,
}

/// A lock that is held. When the run is over, this is dropped before the guard, so that the belief ends first.
struct Holding<'a> {
    life: Life,
    lock: LockNo,
    key: KeyNo,
    act: &'a LockAction,
    acts: mpsc::UnboundedReceiver<ClientAction>,
    is_over: bool,
}

/// Why a lock is no longer held.
enum Outcome {
    Ended(Ending),
    Lost(&'static str),
    Crashed,
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
        Ok(Self {
            client,
            redlock: built.map_err(|error| ClusterError::Config(error.to_string()))?,
            way,
            recorder: Arc::clone(recorder),
            resource: Arc::clone(resource),
            life: watch::Sender::new(0),
            state: Mutex::default(),
            asides: AsyncMutex::default(),
        })
    }

    /// Pauses the process before its next step.
    pub(crate) fn pause(&self, span: Duration) {
        let mut state = self.state();
        state.paused_until = state.paused_until.max(Some(after(Instant::now(), span)));
    }

    /// The process crashes, and starts again a little later.
    pub(crate) fn crash(&self) {
        let mut state = self.state();
        if state.down_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        self.restart(&mut state);
        state.down_until = Some(Instant::now() + DOWN_FOR);
        state.held.clear();
        let client = self.client;
        self.life.send_modify(|life| {
            *life = life.wrapping_add(1);
            self.recorder.note(Event::ClientDown { client });
        });
    }

    /// Does something once the process is not paused; nothing while it is down.
    pub(crate) async fn act(self: Arc<Self>, act: ClientAction) {
        self.resumed().await;
        let life = {
            let mut state = self.state();
            if state.down_until.is_some_and(|until| until > Instant::now()) {
                return;
            }
            self.restart(&mut state);
            let ended = self.life.subscribe();
            let number = *ended.borrow();
            let player = Arc::clone(&self);
            Life {
                player,
                number,
                ended,
            }
        };
        match act {
            ClientAction::Lock(act) => life.lock(&act).await,
            // What it finds is not used: the history has what the nodes were asked.
            ClientAction::Look { key } => drop(self.redlock.inspect(key.as_bytes()).await),
            ClientAction::Ask { node, line, words } => self.ask(node, line, &words).await,
            ClientAction::Extend { ref key, .. }
            | ClientAction::Release { ref key }
            | ClientAction::GiveUp { ref key }
            | ClientAction::Write { ref key, .. } => {
                let state = self.state();
                let held = state.held.values().find(|(held, _)| held == key);
                // A lock that is not held does nothing.
                if let Some((_, acts)) = held {
                    let _ = acts.send(act);
                }
            }
        }
    }

    /// Sends requests, with ` ; ` between them, and ignores the replies. If the node cannot be reached, nothing is sent.
    async fn ask(&self, node: u8, line: u8, words: &str) {
        let requests = words.replace(" ; ", "\r\n") + "\r\n";
        let mut asides = self.asides.lock().await;
        if let Some(open) = asides.get_mut(&(node, line))
            && open.write_all(requests.as_bytes()).await.is_ok()
        {
            return;
        }
        asides.remove(&(node, line));
        let Ok(stream) = self.way.dial(node).await else {
            return;
        };
        let (mut replies, mut open) = split(stream);
        // They are read so that the node does not block.
        tokio::spawn(async move { copy(&mut replies, &mut sink()).await });
        if open.write_all(requests.as_bytes()).await.is_ok() {
            asides.insert((node, line), open);
        }
    }

    /// Returns once the process is not paused.
    async fn resumed(&self) {
        loop {
            let paused_until = self.state().paused_until;
            match paused_until.filter(|until| *until > Instant::now()) {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    /// Notes the restart of the process, if it was down.
    fn restart(&self, state: &mut State) {
        if state.down_until.take().is_some() {
            let client = self.client;
            self.recorder.note(Event::ClientStarted { client });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Life {
    /// Acquires a lock, works under it, and ends it.
    async fn lock(mut self, act: &LockAction) {
        let player = Arc::clone(&self.player);
        let (client, recorder) = (player.client, &player.recorder);
        let (lock, key) = (recorder.next_lock(), recorder.key(act.key.as_bytes()));
        self.note(|_| Event::Calls { client, lock, key });
        let retry = match act.within {
            Some(within) => RetryPolicy::wait_for(within),
            None => RetryPolicy::tries(act.tries),
        };
        let request = player
            .redlock
            .lock(act.key.as_bytes())
            .ttl(act.ttl)
            .retry(retry.backoff(BACKOFF_MIN, act.ttl / 5))
            .hold_at_least(act.at_least.unwrap_or_default());
        // In a task of its own: a process that crashes takes nothing back.
        let mut acquiring = tokio::spawn(request.acquire());
        let acquired = tokio::select! {
            biased;
            _ = self.ended.changed() => {
                drop(tokio::spawn(async {
                    if let Ok(Ok(guard)) = acquiring.await {
                        guard.leak();
                    }
                }));
                return;
            }
            acquired = &mut acquiring => acquired,
        };
        self.player.resumed().await;
        let failed = |why| self.note(|_| Event::Failed { client, lock, why });
        let guard = match acquired {
            Ok(Ok(guard)) if guard.is_valid() => guard,
            Ok(Ok(_)) => return failed("expired"),
            Ok(Err(error)) => return failed(word(error.kind())),
            Err(_) => return,
        };
        let attempt = recorder.attempt(guard.token().as_ref());
        let fencing = guard.fencing().map(FencingToken::get);
        self.note(|now| Event::Acquired {
            client,
            lock,
            key,
            attempt,
            fencing,
            valid_until: now + whole_micros(guard.validity()),
        });
        let (sender, acts) = mpsc::unbounded_channel();
        let held = (act.key.clone(), sender);
        self.player.state().held.insert(lock, held);
        let mut holding = Holding {
            life: self,
            lock,
            key,
            act,
            acts,
            is_over: false,
        };
        match holding.work(&guard).await {
            Outcome::Crashed => {
                guard.leak();
            }
            Outcome::Lost(why) => holding.end(Event::Lost { client, lock, why }),
            Outcome::Ended(Ending::Release) => {
                holding.releases(false);
                let released = guard.release().await;
                let confirmed = u8::try_from(released.confirmed()).unwrap_or(u8::MAX);
                holding.life.note(|_| Event::Released {
                    client,
                    lock,
                    confirmed,
                });
            }
            Outcome::Ended(Ending::Drop) => {
                holding.releases(false);
                drop(guard);
            }
            Outcome::Ended(how) => {
                if how == Ending::Crash {
                    holding.life.player.crash();
                }
                holding.releases(true);
                guard.leak();
            }
        }
    }

    /// Notes something, unless the process has crashed.
    fn note(&self, event: impl FnOnce(SimTime) -> Event) {
        let now = self.player.life.borrow();
        if *now == self.number {
            self.player.recorder.note_with(event);
        }
    }
}

impl Holding<'_> {
    async fn work(&mut self, guard: &Guard) -> Outcome {
        let start = Instant::now();
        let ends = self.act.hold.map(|hold| start + hold);
        let mut next_write = self.act.write_every.map(|every| start + every / 4);
        let mut next_extension = self.act.extend_every.map(|every| start + every);
        let (mut lost, mut extensions) = (None, 0_u32);
        loop {
            self.life.player.resumed().await;
            if let Some(why) = lost.or((!guard.is_valid()).then_some("expired")) {
                return Outcome::Lost(why);
            }
            let now = Instant::now();
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            if is_due(ends) {
                return Outcome::Ended(self.act.ending);
            }
            if is_due(next_write) {
                self.write(guard, WRITE_TAKES).await;
                next_write = self.act.write_every.map(|every| Instant::now() + every);
                continue;
            }
            if is_due(next_extension) {
                extensions = extensions.wrapping_add(1);
                let ttl = self.act.ttl_of_extension(extensions);
                self.extend(guard, ttl).await;
                next_extension = self.act.extend_every.map(|every| Instant::now() + every);
                continue;
            }
            let wakes = [ends, next_write, next_extension].into_iter().flatten();
            let wake = wakes.min().unwrap_or(now + FAR);
            tokio::select! {
                biased;
                _ = self.life.ended.changed() => return Outcome::Crashed,
                error = guard.lost() => lost = Some(word(error.kind())),
                Some(act) = self.acts.recv() => match act {
                    ClientAction::Extend { ttl, .. } => self.extend(guard, ttl).await,
                    ClientAction::Release { .. } => return Outcome::Ended(Ending::Release),
                    ClientAction::GiveUp { .. } => return Outcome::Ended(Ending::Drop),
                    ClientAction::Write { takes, .. } => self.write(guard, takes).await,
                    ClientAction::Lock(_) | ClientAction::Look { .. } | ClientAction::Ask { .. } => {}
                },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Checks that the lock is held, and writes; that takes some time, during which the process may be paused.
    async fn write(&self, guard: &Guard, takes: Duration) {
        if !guard.is_valid() {
            return;
        }
        let (player, lock, key) = (&self.life.player, self.lock, self.key);
        let client = player.client;
        self.life.note(|_| Event::Checked { client, lock });
        sleep(takes).await;
        player.resumed().await;
        self.life.note(|_| {
            let fencing = guard.fencing();
            let check = |token| player.resource.check(guard.key(), token).is_ok();
            Event::Wrote {
                client,
                lock,
                key,
                fencing: fencing.map(FencingToken::get),
                is_accepted: fencing.is_none_or(check),
            }
        });
    }

    async fn extend(&self, guard: &Guard, ttl: Duration) {
        let (client, lock) = (self.life.player.client, self.lock);
        let extended = guard.extend(ttl).await;
        self.life.note(|now| match extended {
            Ok(()) => Event::Validity {
                client,
                lock,
                valid_until: now + whole_micros(guard.validity()),
                is_extension: true,
            },
            Err(error) => Event::NotExtended {
                client,
                lock,
                why: word(error.kind()),
            },
        });
    }

    fn releases(&mut self, is_left: bool) {
        self.end(Event::Releases {
            client: self.life.player.client,
            lock: self.lock,
            is_left,
        });
    }

    /// Notes how the belief ended.
    fn end(&mut self, event: Event) {
        if !self.is_over {
            self.is_over = true;
            self.life.player.state().held.remove(&self.lock);
            self.life.note(|_| event);
        }
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.releases(false);
    }
}

/// A little less, to read like all other times of a history.
fn whole_micros(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

/// As long as a fast database takes.
const WRITE_TAKES: Duration = Duration::from_millis(1);

/// Long enough to separate the tries of many clients.
const BACKOFF_MIN: Duration = Duration::from_millis(10);

/// The client's own default.
const PATIENCE_MAX: Duration = Duration::from_secs(1);

/// As in simulated worlds.
const DOWN_FOR: Duration = Duration::from_millis(500);

/// Longer than any run.
const FAR: Duration = Duration::from_secs(1 << 20);
