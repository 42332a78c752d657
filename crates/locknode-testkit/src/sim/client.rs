//! The clients' part of a world: the client itself, and the caller who works under its locks.

use std::sync::Arc;
use std::time::Duration;

use redlock_proto::Time;

use crate::bug::Bug;
use crate::history::{Event as Told, KeyNo, LockNo};
use crate::random::Random;
use crate::scenario::{Hook, LockAction, Setup};
use crate::sim::clocks::{Clocks, Rule};
use crate::sim::conduct::Finding;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::player::Player;
use crate::sim::world::{Chore, Event, World};
use crate::span::{SimTime, nanos};

/// A client's process and the machine it runs on.
#[derive(Debug)]
pub(crate) struct SimClient {
    pub(crate) clocks: Clocks,
    pub(crate) is_up: bool,
    /// Counts starts of the process.
    pub(crate) life: u32,
    pub(crate) player: Player,
    pub(crate) random: Random,
    pub(crate) locks: Vec<ActiveLock>,
    /// When its timer goes off.
    wakes_at: SimTime,
}

/// A lock that a caller acquires or holds.
#[derive(Clone, Debug)]
pub(crate) struct ActiveLock {
    pub(crate) lock: LockNo,
    pub(crate) handle: Handle,
    pub(crate) key: KeyNo,
    pub(crate) act: Arc<LockAction>,
    pub(crate) held: Option<Held>,
    /// The token under which it is held.
    pub(crate) token: Vec<u8>,
    /// How many extensions its caller asked for as planned.
    pub(crate) extensions: u32,
    /// Once it is released: how long its key stays taken at the least.
    pub(crate) kept_until: SimTime,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) valid_until: Time,
    pub(crate) fencing: Option<u64>,
    /// The attempt that had it began no sooner.
    pub(crate) since: Time,
}

impl SimClient {
    pub(crate) fn new(setup: &Setup, number: u8) -> Self {
        let mut random = Random::stream(setup.seed, "client", number.into());
        let rule = match setup.bug {
            Some(Bug::SleepyClock) => Rule::Raw,
            _ => Rule::Faster,
        };
        let uptime = random.below(UPTIME_NS_MAX);
        let mut clocks = Clocks::new(rule, uptime, 0);
        clocks.restart(SimTime::ZERO, uptime);
        let tokens = Random::stream(setup.seed, "tokens", number.into());
        Self {
            clocks,
            is_up: true,
            life: 0,
            player: Player::new(setup, number, tokens),
            random,
            locks: Vec::new(),
            wakes_at: SimTime::NEVER,
        }
    }

    /// Up to now its clocks went as they did.
    pub(crate) fn note_time(&mut self, now: SimTime) {
        self.time(now);
    }

    pub(crate) fn time(&mut self, now: SimTime) -> Time {
        Time::from_nanos(self.clocks.read(now, &mut self.random))
    }
}

impl World {
    /// Takes what the client has to say, writes what it wants written, and sets its timer. A holder learns of a shortened
    /// validity before any node can act on it.
    pub(crate) fn turn(&mut self, client: u8) {
        let place = usize::from(client);
        let mut notices = 0_u32;
        while let Some(notice) = self
            .clients
            .get_mut(place)
            .and_then(|it| it.player.poll_notice())
        {
            self.notice(client, notice);
            notices += 1;
            if notices > NOTICES_MAX {
                return self.never_ends();
            }
            if !self.clients.get(place).is_some_and(|it| it.is_up) {
                return;
            }
        }
        let mut bytes = self.buffers.take();
        for node in 0..u8::try_from(self.nodes.len()).unwrap_or(u8::MAX) {
            let it = self.clients.get_mut(place);
            if it.is_some_and(|it| it.player.take_output(node, &mut bytes)) {
                let taken = std::mem::replace(&mut bytes, self.buffers.take());
                self.send_request(client, node, taken);
            }
        }
        self.buffers.recycle(bytes);
        let now = self.now;
        let findings = self.clients.get_mut(place).map(|it| {
            let time = it.time(now);
            it.player.settle(time)
        });
        for Finding { key, text } in findings.unwrap_or_default() {
            let (key, text) = (self.recorder.key(&key), text.into());
            let told = Told::Misbehaved { client, key, text };
            self.recorder.push(self.now, told);
        }
        self.set_timer(client);
    }

    pub(crate) fn set_timer(&mut self, client: u8) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let mut deadline = it.player.next_deadline();
        if self.scenario.setup.bug == Some(Bug::Restless) && !it.locks.is_empty() {
            deadline = Time::ZERO;
        }
        if !it.is_up || deadline == Time::NEVER {
            return;
        }
        let when = it.clocks.when(now, deadline.as_nanos()).max(now);
        if when < it.wakes_at {
            it.wakes_at = when;
            let life = it.life;
            self.push(when, Event::Timer { client, life });
        }
    }

    /// Whether this timer is the one that was set last.
    pub(crate) fn is_timer(&self, client: u8, life: u32) -> bool {
        let it = self.clients.get(usize::from(client));
        it.is_some_and(|it| it.is_up && it.life == life && it.wakes_at <= self.now)
    }

    pub(crate) fn timer(&mut self, client: u8) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        it.wakes_at = SimTime::NEVER;
        let time = it.time(now);
        if time >= it.player.next_deadline() {
            it.player.on_time(time);
        }
        self.turn(client);
    }

    /// The pace of a client's clock changed: its timer and the ends of its locks are others now.
    pub(crate) fn pace_changed(&mut self, client: u8) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        it.wakes_at = SimTime::NEVER;
        let held: Vec<(LockNo, Time)> = it
            .locks
            .iter()
            .filter_map(|active| Some((active.lock, active.held?.valid_until)))
            .collect();
        for (lock, valid_until) in held {
            let Some(it) = self.clients.get(usize::from(client)) else {
                return;
            };
            let valid_until = it.clocks.when(now, valid_until.as_nanos());
            let told = Told::Validity {
                client,
                lock,
                valid_until,
                is_extension: false,
            };
            self.recorder.push(now, told);
        }
        self.set_timer(client);
    }

    /// Something reaches a client, if its process is there.
    pub(crate) fn tell_client(&mut self, client: u8, tell: impl FnOnce(&mut Player, Time)) {
        let now = self.now;
        let it = self.clients.get_mut(usize::from(client));
        if let Some(it) = it.filter(|it| it.is_up) {
            let time = it.time(now);
            tell(&mut it.player, time);
            self.turn(client);
        }
    }

    /// A client's process ends. What it sent still arrives.
    pub(crate) fn client_down(&mut self, client: u8) {
        let now = self.now;
        let Some(it) = self
            .clients
            .get_mut(usize::from(client))
            .filter(|it| it.is_up)
        else {
            return;
        };
        it.is_up = false;
        it.life += 1;
        it.locks.clear();
        it.wakes_at = SimTime::NEVER;
        self.recorder.push(now, Told::ClientDown { client });
        for node in 0..u8::try_from(self.nodes.len()).unwrap_or(u8::MAX) {
            self.give_up(client, node);
        }
        self.push(now + CLIENT_STARTS_AFTER, Event::ClientStarts { client });
    }

    pub(crate) fn client_starts(&mut self, client: u8) {
        let scenario = Arc::clone(&self.scenario);
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let number = u64::from(client) + (u64::from(it.life) << 8);
        let tokens = Random::stream(scenario.setup.seed, "tokens", number);
        it.player = Player::new(&scenario.setup, client, tokens);
        it.is_up = true;
        self.recorder.push(self.now, Told::ClientStarted { client });
    }

    fn notice(&mut self, client: u8, notice: ClientNotice) {
        match notice {
            ClientNotice::Connect(node) => self.open(client, node),
            ClientNotice::Disconnect(node) => self.give_up(client, node),
            ClientNotice::Acquired {
                lock,
                token,
                fencing,
                valid_until,
            } => {
                self.acquired(client, lock, &token, fencing, valid_until);
            }
            ClientNotice::Failed { lock, why } => {
                if let Some(lock) = self.forget(client, lock) {
                    self.recorder.counters.bump(failed_word(why));
                    self.recorder
                        .push(self.now, Told::Failed { client, lock, why });
                    self.hook(Hook::Failed(client));
                }
            }
            ClientNotice::Extended {
                lock,
                result: Ok(valid_until),
            } => {
                self.validity(client, lock, valid_until, true);
            }
            ClientNotice::Extended {
                lock,
                result: Err(why),
            } => {
                if let Some(lock) = self.by_handle(client, lock).map(|it| it.lock) {
                    self.recorder.counters.bump("extension-failed");
                    self.recorder
                        .push(self.now, Told::NotExtended { client, lock, why });
                }
            }
            ClientNotice::Validity { lock, valid_until } => {
                self.validity(client, lock, valid_until, false);
            }
            ClientNotice::Lost { lock: handle, why } => {
                let now = self.now;
                if let Some(lock) = self.forget(client, handle) {
                    self.recorder.counters.bump("lock-lost");
                    self.recorder.push(now, Told::Lost { client, lock, why });
                    if let Some(it) = self.clients.get_mut(usize::from(client)) {
                        let time = it.time(now);
                        it.player.let_go(time, handle, None);
                    }
                    self.hook(Hook::Lost(client));
                }
            }
            ClientNotice::Looked { key, tokens } => {
                self.recorder.counters.bump("looked");
                for token in tokens {
                    self.recorder.counters.bump("look-finds-holder");
                    if self.recorder.known(0, &key, &token).is_none() {
                        let (key, text) = (self.recorder.key(&key), NEVER_THERE.into());
                        let told = Told::Misbehaved { client, key, text };
                        self.recorder.push(self.now, told);
                    }
                }
            }
            ClientNotice::Kept { lock, confirmed } => {
                let until = self.by_handle(client, lock).map(|it| it.kept_until);
                let is_told = usize::from(confirmed) > self.nodes.len() / 2;
                if let (Some(until), Some(lock)) = (until, self.forget(client, lock))
                    && is_told
                {
                    self.recorder.counters.bump("released-and-kept");
                    let told = Told::Kept {
                        client,
                        lock,
                        until,
                    };
                    self.recorder.push(self.now, told);
                }
            }
            ClientNotice::Released { lock, confirmed } => {
                if let Some(lock) = self.forget(client, lock) {
                    self.recorder.push(
                        self.now,
                        Told::Released {
                            client,
                            lock,
                            confirmed,
                        },
                    );
                }
            }
        }
    }

    fn acquired(
        &mut self,
        client: u8,
        handle: Handle,
        token: &[u8],
        fencing: Option<u64>,
        valid_until: Time,
    ) {
        let now = self.now;
        let Some(key) = self.by_handle(client, handle).map(|it| it.key) else {
            return;
        };
        let attempt = self.recorder.attempt(key, token);
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let until = it.clocks.when(now, valid_until.as_nanos());
        let Some(active) = it.locks.iter_mut().find(|active| active.handle == handle) else {
            return;
        };
        let since = valid_until.as_nanos().saturating_sub(nanos(active.act.ttl));
        active.held = Some(Held {
            valid_until,
            fencing,
            since: Time::from_nanos(since),
        });
        active.token = token.to_vec();
        let (lock, act) = (active.lock, Arc::clone(&active.act));
        self.recorder.counters.bump("acquired");
        self.recorder.push(
            now,
            Told::Acquired {
                client,
                lock,
                key,
                attempt,
                fencing,
                valid_until: until,
            },
        );
        self.plan_chore(
            client,
            lock,
            act.write_every.map(|_| FIRST_WRITE_AFTER),
            Chore::Write,
        );
        self.plan_chore(client, lock, act.extend_every, Chore::Extend);
        self.plan_chore(client, lock, act.hold, Chore::End);
        self.hook(Hook::Acquired(client));
    }

    fn validity(&mut self, client: u8, handle: Handle, valid_until: Time, is_extension: bool) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let until = it.clocks.when(now, valid_until.as_nanos());
        let Some(active) = it.locks.iter_mut().find(|active| active.handle == handle) else {
            return;
        };
        let (Some(held), lock) = (&mut active.held, active.lock) else {
            return;
        };
        held.valid_until = valid_until;
        let is_renewal = is_extension && active.act.renew_every.is_some();
        let told = Told::Validity {
            client,
            lock,
            valid_until: until,
            is_extension,
        };
        self.recorder.push(now, told);
        if is_renewal {
            self.recorder.counters.bump("renewed");
        }
        if is_extension {
            self.recorder.counters.bump("extended");
            self.hook(Hook::Renewed(client));
        }
    }

    pub(crate) fn active(&self, client: u8, lock: LockNo) -> Option<&ActiveLock> {
        let it = self.clients.get(usize::from(client))?;
        it.locks.iter().find(|active| active.lock == lock)
    }

    pub(crate) fn by_handle(&self, client: u8, handle: Handle) -> Option<&ActiveLock> {
        let it = self.clients.get(usize::from(client))?;
        it.locks.iter().find(|active| active.handle == handle)
    }

    /// The lock that a client holds under a key.
    pub(crate) fn held(&self, client: u8, key: &str) -> Option<&ActiveLock> {
        let it = self.clients.get(usize::from(client))?;
        it.locks
            .iter()
            .find(|active| active.held.is_some() && &*active.act.key == key)
    }

    fn forget(&mut self, client: u8, handle: Handle) -> Option<LockNo> {
        let it = self.clients.get_mut(usize::from(client))?;
        let place = it.locks.iter().position(|active| active.handle == handle)?;
        Some(it.locks.remove(place).lock)
    }
}

const fn failed_word(why: &'static str) -> &'static str {
    match why.as_bytes() {
        b"busy" => "failed-busy",
        b"contended" => "failed-contended",
        b"no-quorum" => "failed-no-quorum",
        b"timeout" => "failed-timeout",
        b"expired" => "failed-expired",
        _ => "failed-otherwise",
    }
}

/// Of a look.
const NEVER_THERE: &str = "finds a holder that never asked for the key";

/// A client's process that died is started again after this.
const CLIENT_STARTS_AFTER: Duration = Duration::from_millis(500);

/// The first write follows the acquisition, the others come as often as the act says.
const FIRST_WRITE_AFTER: Duration = Duration::from_millis(1);

/// Machines of clients have been running for a day at most.
const UPTIME_NS_MAX: u64 = 86_400_000_000_000;

/// A client has at most some tens of locks to speak of at once.
const NOTICES_MAX: u32 = 10_000;
