//! The callers of a world's clients: they acquire locks, work under them and release them.

use std::sync::Arc;
use std::time::Duration;

use redlock_proto::{Drift, Time};

use crate::history::{self, KeyNo, LockNo};
use crate::scenario::{ClientAction, Ending, Hook, LockAction};
use crate::sim::client::{ActiveLock, Held};
use crate::sim::event::{CallerTask, Event};
use crate::sim::world::World;
use crate::span::SimTime;

impl World {
    /// A caller does something.
    pub(crate) fn client_acts(&mut self, client: u8, act: &ClientAction) {
        // A process that stands still does it when it goes on.
        let stopped = self.client_stopped(client);
        if stopped > self.now {
            self.recorder.counters.bump("act-while-stopped");
            let act = Box::new(act.clone());
            self.push(stopped, Event::Act { client, act });
            return;
        }
        if !self.client(client).is_some_and(|it| it.is_up) {
            self.recorder.counters.bump("act-of-dead-client");
            return;
        }
        match act {
            ClientAction::Lock(lock) => self.begin_lock(client, lock),
            ClientAction::Extend { key, ttl } => {
                if let Some(lock) = self.held(client, key) {
                    self.tell_client(client, |player, now| player.extend(now, lock, *ttl));
                }
            }
            ClientAction::Release { key } => {
                if let Some(lock) = self.held(client, key) {
                    self.end_lock(client, lock, Ending::Release);
                }
            }
            ClientAction::GiveUp { key } => self.give_up_lock(client, key),
            ClientAction::Look { key } => {
                self.tell_client(client, |player, now| player.look(now, key))
            }
            ClientAction::Ask { node, line, words } => self.ask_aside(client, *node, *line, words),
            ClientAction::Write { key, takes } => {
                if let Some(lock) = self.held(client, key) {
                    self.check_and_write(client, lock, *takes);
                }
            }
        }
    }

    fn begin_lock(&mut self, client: u8, act: &LockAction) {
        let lock = self.next_lock;
        self.next_lock += 1;
        let key = self.recorder.key(act.key.as_bytes());
        self.note(history::Event::Calls { client, lock, key });
        self.hook(Hook::Calls(client));
        if let Some((it, time)) = self.running(client) {
            it.player.acquire(time, lock, act);
            it.locks.push(ActiveLock::new(lock, key, act.clone()));
            self.turn(client);
        }
    }

    /// A client takes over what another one left to it, unless its process does not run.
    fn take_over(&mut self, client: u8, act: &LockAction, key: KeyNo, token: &[u8]) {
        if self.client_stopped(client) > self.now {
            return;
        }
        let act = LockAction {
            ending: Ending::Release,
            at_least: None,
            within: None,
            ..act.clone()
        };
        let lock = self.next_lock;
        let Some((it, time)) = self.running(client) else {
            return;
        };
        if !it.player.adopt(time, lock, &act, token) {
            return;
        }
        it.locks.push(ActiveLock::new(lock, key, act));
        self.next_lock += 1;
        let attempt = self.recorder.attempt(key, token);
        self.recorder.is_shared(attempt);
        self.recorder.counters.bump("handed-over");
        self.note(history::Event::Calls { client, lock, key });
        self.turn(client);
    }

    /// A caller ends its lock.
    fn end_lock(&mut self, client: u8, lock: LockNo, ending: Ending) {
        if ending == Ending::Crash {
            return self.client_down(client);
        }
        let Some(active) = self.active(client, lock) else {
            return;
        };
        let (key, act, token) = (active.key, Arc::clone(&active.act), active.token.clone());
        let is_left = ending.leaves();
        self.note(history::Event::Releases {
            client,
            lock,
            is_left,
        });
        let (now, setup) = (self.now, &self.scenario.setup);
        let drift = Drift::new(setup.drift_ppm, setup.drift_constant);
        let Some((it, time)) = self.running(client) else {
            return;
        };
        let mut kept_until = act.at_least.map(|_| Time::ZERO);
        if let Some(active) = it.lock(lock)
            && let Some(held) = active.held.take()
        {
            let until = held.since + act.at_least.unwrap_or_default();
            kept_until = kept_until.map(|_| until);
            let keep = until.since(time);
            // By a clock that is as fast as it may be.
            active.kept_until = now + keep.saturating_sub(drift.of(keep));
        }
        it.player.end(time, lock, ending, kept_until);
        if ending != Ending::Release {
            it.locks.retain(|active| active.lock != lock);
        }
        self.hook(Hook::Releases(client));
        self.turn(client);
        let next = (client + 1) % u8::try_from(self.clients.len()).unwrap_or(1).max(1);
        match ending {
            Ending::HandOver => self.take_over(next, &act, key, &token),
            Ending::ReleaseByNext if next != client => {
                self.recorder.counters.bump("released-by-next");
                let attempt = self.recorder.attempt(key, &token);
                self.recorder.is_shared(attempt);
                self.tell_client(next, |it, now| it.release_token(now, lock, &act, &token));
            }
            _ => {}
        }
    }

    /// A caller gives up what it has begun with a key.
    fn give_up_lock(&mut self, client: u8, key: &str) {
        let Some(it) = self.client(client) else {
            return;
        };
        let Some(active) = it.locks.iter().find(|active| &*active.act.key == key) else {
            return;
        };
        let (lock, was_held) = (active.lock, !active.token.is_empty());
        if active.held.is_some() {
            self.recorder.counters.bump("lock-dropped");
            return self.end_lock(client, lock, Ending::Drop);
        }
        let Some((it, time)) = self.running(client) else {
            return;
        };
        it.player.end(time, lock, Ending::Drop, None);
        it.locks.retain(|active| active.lock != lock);
        if was_held {
            self.recorder.counters.bump("release-given-up");
        } else {
            self.recorder.counters.bump("call-given-up");
            let why = GIVEN_UP;
            self.note(history::Event::Failed { client, lock, why });
        }
        self.turn(client);
    }

    /// A caller checks that it holds the lock, and writes if it does.
    fn check_and_write(&mut self, client: u8, lock: LockNo, takes: Duration) {
        let Some((it, time)) = self.running(client) else {
            return;
        };
        let life = it.life;
        let Some(active) = it.lock(lock) else { return };
        let key = active.key;
        let Some(Held { fencing, .. }) = active.held.filter(|held| time < held.valid_until) else {
            return;
        };
        self.note(history::Event::Checked { client, lock });
        let write = Event::Write {
            client,
            life,
            lock,
            key,
            fencing,
        };
        self.push(self.now + takes, write);
        self.hook(Hook::Checked(client));
    }

    /// Something that a caller had planned is due.
    pub(crate) fn chore(&mut self, client: u8, life: u32, lock: LockNo, what: CallerTask) {
        if !self.lives(client, life) {
            return;
        }
        let active = self.active(client, lock);
        let Some(active) = active.filter(|active| active.held.is_some()) else {
            return;
        };
        let act = Arc::clone(&active.act);
        match what {
            CallerTask::End => self.end_lock(client, lock, act.ending),
            CallerTask::Extend => {
                active.extensions = active.extensions.wrapping_add(1);
                let ttl = act.ttl_of_extension(active.extensions);
                if ttl < act.ttl {
                    self.hook(Hook::Shortens(client));
                }
                if ttl != act.ttl {
                    self.recorder.counters.bump("extension-to-another-ttl");
                }
                self.tell_client(client, |player, now| player.extend(now, lock, ttl));
                self.plan_chore(client, lock, act.extend_every, CallerTask::Extend);
            }
            CallerTask::Write => {
                self.check_and_write(client, lock, WRITE_TAKES);
                self.plan_chore(client, lock, act.write_every, CallerTask::Write);
            }
        }
    }

    /// A caller's write comes to the resource, unless its process died before it was sent.
    pub(crate) fn write_arrives(
        &mut self,
        client: u8,
        life: u32,
        lock: LockNo,
        key: KeyNo,
        fencing: Option<u64>,
    ) {
        if !self.lives(client, life) {
            return;
        }
        let slot = usize::from(key);
        if self.resource.len() <= slot {
            self.resource.resize(slot + 1, 0);
        }
        let Some(highest) = self.resource.get_mut(slot) else {
            return;
        };
        let token = fencing.unwrap_or(0);
        let is_accepted = fencing.is_some() && token >= *highest;
        if is_accepted {
            *highest = token;
        } else if fencing.is_some() {
            self.recorder.counters.bump("write-fenced-off");
        }
        self.note(history::Event::Wrote {
            client,
            lock,
            key,
            fencing,
            is_accepted,
        });
    }

    pub(crate) fn plan_chore(
        &mut self,
        client: u8,
        lock: LockNo,
        every: Option<Duration>,
        what: CallerTask,
    ) {
        if let Some(every) = every
            && let Some(it) = self.client(client)
        {
            let chore = Event::Caller {
                client,
                life: it.life,
                lock,
                what,
            };
            self.push(self.now + every, chore);
        }
    }

    /// Whether a client's process still is in the same life.
    fn lives(&mut self, client: u8, life: u32) -> bool {
        let it = self.client(client);
        it.is_some_and(|it| it.is_up && it.life == life)
    }

    /// When the process of a client goes on, if it stands still.
    fn client_stopped(&self, client: u8) -> SimTime {
        let until = self.client_stopped.get(usize::from(client));
        until.copied().unwrap_or_default()
    }
}

impl ActiveLock {
    fn new(lock: LockNo, key: KeyNo, act: LockAction) -> Self {
        Self {
            lock,
            key,
            act: Arc::new(act),
            held: None,
            token: Vec::new(),
            extensions: 0,
            kept_until: SimTime::ZERO,
        }
    }
}

impl Ending {
    /// Whether the client leaves the lock as it is.
    pub(crate) const fn leaves(self) -> bool {
        matches!(self, Self::Leave | Self::HandOver | Self::ReleaseByNext)
    }
}

/// Why a call failed that its caller gave up.
pub(crate) const GIVEN_UP: &str = "given-up";

/// From the look at the lock to the arrival at the resource.
const WRITE_TAKES: Duration = Duration::from_millis(1);
