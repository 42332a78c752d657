//! The callers of a world's clients: they acquire locks, work under them and let them go.

use std::sync::Arc;
use std::time::Duration;

use redlock_proto::{Drift, Time};

use crate::history::{Event as Told, KeyNo, LockNo};
use crate::scenario::{ClientAction, Ending, Hook, LockAction};
use crate::sim::client::{ActiveLock, Held, SimClient};
use crate::sim::notice::Handle;
use crate::sim::world::{Chore, Event, World};
use crate::span::SimTime;

impl World {
    /// A caller does something.
    pub(crate) fn client_acts(&mut self, client: u8, act: &ClientAction) {
        let (now, place) = (self.now, usize::from(client));
        // A process that stands still does it when it goes on.
        let stopped = self.client_stopped.get(place).copied().unwrap_or_default();
        if stopped > now {
            self.recorder.counters.bump("act-while-stopped");
            let act = Box::new(act.clone());
            self.push(stopped, Event::ClientAction { client, act });
            return;
        }
        let Some(it) = self.clients.get_mut(place) else {
            return;
        };
        if !it.is_up {
            self.recorder.counters.bump("act-of-dead-client");
            return;
        }
        match act {
            ClientAction::Lock(lock) => self.begin_lock(client, lock),
            ClientAction::Extend { key, ttl } => {
                if let Some(handle) = self.held(client, key).map(|lock| lock.handle) {
                    self.extend_lock(client, handle, *ttl);
                }
            }
            ClientAction::Release { key } => {
                if let Some(lock) = self.held(client, key).map(|lock| lock.lock) {
                    self.end_lock(client, lock, Ending::Release);
                }
            }
            ClientAction::GiveUp { key } => self.give_up_lock(client, key),
            ClientAction::Look { key } => {
                self.tell_client(client, |player, now| player.look(now, key))
            }
            ClientAction::Ask { node, line, words } => self.ask_aside(client, *node, *line, words),
            ClientAction::Write { key, takes } => {
                if let Some(lock) = self.held(client, key).map(|lock| lock.lock) {
                    self.check_and_write(client, lock, *takes);
                }
            }
        }
    }

    fn begin_lock(&mut self, client: u8, act: &LockAction) {
        let now = self.now;
        let lock = self.next_lock;
        self.next_lock += 1;
        let key = self.recorder.key(act.key.as_bytes());
        self.recorder.push(now, Told::Calls { client, lock, key });
        self.hook(Hook::Calls(client));
        let Some(it) = self
            .clients
            .get_mut(usize::from(client))
            .filter(|it| it.is_up)
        else {
            return;
        };
        let time = it.time(now);
        let handle = it.player.acquire(time, act);
        it.locks.push(ActiveLock {
            lock,
            handle,
            key,
            act: Arc::new(act.clone()),
            held: None,
            token: Vec::new(),
            extensions: 0,
            kept_until: SimTime::ZERO,
        });
        self.turn(client);
    }

    /// A client takes over what another one left to it.
    fn take_over(&mut self, client: u8, act: &LockAction, key: KeyNo, token: Vec<u8>) {
        let now = self.now;
        let is_standing = self
            .client_stopped
            .get(usize::from(client))
            .is_some_and(|until| *until > now);
        let it = self
            .clients
            .get_mut(usize::from(client))
            .filter(|it| it.is_up && !is_standing);
        let Some(it) = it else { return };
        let time = it.time(now);
        let act = Arc::new(LockAction {
            ending: Ending::Release,
            at_least: None,
            within: None,
            ..act.clone()
        });
        let Some(handle) = it.player.adopt(time, &act, &token) else {
            return;
        };
        let lock = self.next_lock;
        self.next_lock += 1;
        let (held, extensions) = (None, 0);
        it.locks.push(ActiveLock {
            lock,
            handle,
            key,
            act,
            held,
            token: Vec::new(),
            extensions,
            kept_until: SimTime::ZERO,
        });
        let attempt = self.recorder.attempt(key, &token);
        self.recorder.is_shared(attempt);
        self.recorder.counters.bump("handed-over");
        self.recorder.push(now, Told::Calls { client, lock, key });
        self.turn(client);
    }

    fn extend_lock(&mut self, client: u8, handle: Handle, ttl: Duration) {
        let now = self.now;
        if let Some(it) = self.clients.get_mut(usize::from(client)) {
            let time = it.time(now);
            it.player.extend(time, handle, ttl);
        }
        self.turn(client);
    }

    /// A caller ends its lock.
    fn end_lock(&mut self, client: u8, lock: LockNo, ending: Ending) {
        let now = self.now;
        if ending == Ending::Crash {
            self.client_down(client);
            return;
        }
        let is_left = matches!(
            ending,
            Ending::Leave | Ending::HandOver | Ending::ReleaseByNext
        );
        let Some(active) = self.active(client, lock) else {
            return;
        };
        let (handle, key, act) = (active.handle, active.key, Arc::clone(&active.act));
        let token = active.token.clone();
        self.recorder.push(
            now,
            Told::Releases {
                client,
                lock,
                is_left,
            },
        );
        let drift = Drift::new(
            self.scenario.setup.drift_ppm,
            self.scenario.setup.drift_constant,
        );
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let time = it.time(now);
        let mut kept_until = act.at_least.map(|_| Time::ZERO);
        if let Some(active) = it.locks.iter_mut().find(|active| active.lock == lock)
            && let Some(held) = active.held.take()
        {
            let until = held.since + act.at_least.unwrap_or_default();
            kept_until = kept_until.map(|_| until);
            let keep = until.since(time);
            // By a clock that is as fast as it may be.
            active.kept_until = now + keep.saturating_sub(drift.of(keep));
        }
        match ending {
            _ if is_left => it.player.leave(handle),
            Ending::Drop => it.player.let_go(time, handle, kept_until),
            _ => it.player.release(time, handle, kept_until),
        }
        if is_left || ending == Ending::Drop {
            it.locks.retain(|active| active.lock != lock);
        }
        self.hook(Hook::Releases(client));
        self.turn(client);
        let next = (client + 1) % u8::try_from(self.clients.len()).unwrap_or(1).max(1);
        match ending {
            Ending::HandOver => self.take_over(next, &act, key, token),
            Ending::ReleaseByNext if next != client => {
                self.recorder.counters.bump("released-by-next");
                let attempt = self.recorder.attempt(key, &token);
                self.recorder.is_shared(attempt);
                self.tell_client(next, |it, now| it.release_token(now, &act, &token));
            }
            _ => {}
        }
    }

    /// A caller gives up what it has begun with a key.
    fn give_up_lock(&mut self, client: u8, key: &str) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let Some(active) = it.locks.iter().find(|active| &*active.act.key == key) else {
            return;
        };
        let (lock, handle, was_held) = (active.lock, active.handle, !active.token.is_empty());
        if active.held.is_some() {
            self.recorder.counters.bump("lock-dropped");
            return self.end_lock(client, lock, Ending::Drop);
        }
        let time = it.time(now);
        it.player.let_go(time, handle, None);
        it.locks.retain(|active| active.lock != lock);
        if was_held {
            self.recorder.counters.bump("release-given-up");
        } else {
            self.recorder.counters.bump("call-given-up");
            let why = GIVEN_UP;
            self.recorder.push(now, Told::Failed { client, lock, why });
        }
        self.turn(client);
    }

    /// A caller looks whether it holds the lock, and writes if it does.
    fn check_and_write(&mut self, client: u8, lock: LockNo, takes: Duration) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let (time, life) = (it.time(now), it.life);
        let Some(active) = it.locks.iter().find(|active| active.lock == lock) else {
            return;
        };
        let (key, held) = (active.key, active.held);
        let Some(Held { fencing, .. }) = held.filter(|held| time < held.valid_until) else {
            return;
        };
        self.recorder.push(now, Told::Checked { client, lock });
        self.push(
            now + takes,
            Event::Write {
                client,
                life,
                lock,
                key,
                fencing,
            },
        );
        self.hook(Hook::Checked(client));
    }

    /// Something that a caller had planned is due.
    pub(crate) fn chore(&mut self, client: u8, life: u32, lock: LockNo, what: Chore) {
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        if !it.is_up || it.life != life {
            return;
        }
        let Some(active) = it.locks.iter_mut().find(|active| active.lock == lock) else {
            return;
        };
        let (act, handle) = (Arc::clone(&active.act), active.handle);
        if active.held.is_none() {
            return;
        }
        match what {
            Chore::End => self.end_lock(client, lock, act.ending),
            Chore::Extend => {
                let ttl = active.next_ttl();
                if ttl < act.ttl {
                    self.hook(Hook::Shortens(client));
                }
                if ttl != act.ttl {
                    self.recorder.counters.bump("extension-to-another-ttl");
                }
                self.extend_lock(client, handle, ttl);
                self.plan_chore(client, lock, act.extend_every, Chore::Extend);
            }
            Chore::Write => {
                self.check_and_write(client, lock, WRITE_TAKES);
                self.plan_chore(client, lock, act.write_every, Chore::Write);
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
        let is_sent = |it: &SimClient| it.is_up && it.life == life;
        if !self.clients.get(usize::from(client)).is_some_and(is_sent) {
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
        let told = Told::Wrote {
            client,
            lock,
            key,
            fencing,
            is_accepted,
        };
        self.recorder.push(self.now, told);
    }

    pub(crate) fn plan_chore(
        &mut self,
        client: u8,
        lock: LockNo,
        every: Option<Duration>,
        what: Chore,
    ) {
        let Some(it) = self.clients.get(usize::from(client)) else {
            return;
        };
        if let Some(every) = every {
            let life = it.life;
            self.push(
                self.now + every,
                Event::Caller {
                    client,
                    life,
                    lock,
                    what,
                },
            );
        }
    }
}

impl ActiveLock {
    /// The TTL of the next extension that its caller had planned.
    fn next_ttl(&mut self) -> Duration {
        self.extensions = self.extensions.wrapping_add(1);
        self.act.ttl_of_extension(self.extensions)
    }
}

/// Why a call failed that its caller gave up.
pub(crate) const GIVEN_UP: &str = "given-up";

/// From the look at the lock to the arrival at the resource.
const WRITE_TAKES: Duration = Duration::from_millis(1);
