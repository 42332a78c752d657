//! The clients' part of a world: the client itself, and the caller who works under its locks.

use std::sync::Arc;
use std::time::Duration;

use redlock_proto::Time;

use crate::bug::Bug;
use crate::history::{self, KeyNo, LockNo};
use crate::random::Random;
use crate::scenario::{Ending, Hook, LockAction, Setup};
use crate::sim::clocks::{Clocks, Rule};
use crate::sim::conduct::Finding;
use crate::sim::event::{CallerTask, Event};
use crate::sim::notice::ClientNotice;
use crate::sim::player::Player;
use crate::sim::world::World;
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
    /// The attempt that acquired it began no sooner.
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

    pub(crate) fn time(&mut self, now: SimTime) -> Time {
        Time::from_nanos(self.clocks.read(now, &mut self.random))
    }

    pub(crate) fn lock(&mut self, lock: LockNo) -> Option<&mut ActiveLock> {
        self.locks.iter_mut().find(|active| active.lock == lock)
    }
}

impl World {
    pub(crate) fn client(&mut self, client: u8) -> Option<&mut SimClient> {
        self.clients.get_mut(usize::from(client))
    }

    /// A client whose process runs, and the time that its clock shows.
    pub(crate) fn running(&mut self, client: u8) -> Option<(&mut SimClient, Time)> {
        let now = self.now;
        let it = self.client(client).filter(|it| it.is_up)?;
        let time = it.time(now);
        Some((it, time))
    }

    /// Adds an event to the history.
    pub(crate) fn note(&mut self, event: history::Event) {
        self.recorder.push(self.now, event);
    }

    /// Takes the client's reports, sends what it has written, and sets its timer. A holder learns of a shortened validity
    /// before any node can act on it.
    pub(crate) fn turn(&mut self, client: u8) {
        let mut notices = 0_u32;
        while let Some(notice) = self.client(client).and_then(|it| it.player.poll_notice()) {
            self.notice(client, notice);
            notices += 1;
            if notices > NOTICES_MAX {
                return self.never_ends();
            }
            if !self.client(client).is_some_and(|it| it.is_up) {
                return;
            }
        }
        let mut bytes = self.buffers.take();
        for node in 0..u8::try_from(self.nodes.len()).unwrap_or(u8::MAX) {
            let it = self.client(client);
            if it.is_some_and(|it| it.player.take_output(node, &mut bytes)) {
                let taken = std::mem::replace(&mut bytes, self.buffers.take());
                self.send_request(client, node, taken);
            }
        }
        self.buffers.recycle(bytes);
        let now = self.now;
        let findings = self.client(client).map(|it| {
            let time = it.time(now);
            it.player.settle(time)
        });
        for Finding { key, text } in findings.unwrap_or_default() {
            self.misbehaved(client, &key, &text);
        }
        self.set_timer(client);
    }

    fn misbehaved(&mut self, client: u8, key: &[u8], text: &str) {
        let (key, text) = (self.recorder.key(key), text.into());
        self.note(history::Event::Misbehaved { client, key, text });
    }

    pub(crate) fn set_timer(&mut self, client: u8) {
        let (now, bug) = (self.now, self.scenario.setup.bug);
        let Some(it) = self.client(client) else {
            return;
        };
        let mut deadline = it.player.next_deadline();
        if bug == Some(Bug::Restless) && !it.locks.is_empty() {
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
        if let Some((it, time)) = self.running(client) {
            it.wakes_at = SimTime::NEVER;
            if time >= it.player.next_deadline() {
                it.player.on_time(time);
            }
            self.turn(client);
        }
    }

    /// The pace of a client's clock changed: its timer and the ends of its locks are others now.
    pub(crate) fn pace_changed(&mut self, client: u8) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        it.wakes_at = SimTime::NEVER;
        for active in &it.locks {
            let Some(held) = active.held else { continue };
            let event = history::Event::Validity {
                client,
                lock: active.lock,
                valid_until: it.clocks.when(now, held.valid_until.as_nanos()),
                is_extension: false,
            };
            self.recorder.push(now, event);
        }
        self.set_timer(client);
    }

    /// Something reaches a client, if its process is there.
    pub(crate) fn tell_client(&mut self, client: u8, tell: impl FnOnce(&mut Player, Time)) {
        if let Some((it, time)) = self.running(client) {
            tell(&mut it.player, time);
            self.turn(client);
        }
    }

    /// A client's process ends. What it sent still arrives.
    pub(crate) fn client_down(&mut self, client: u8) {
        let Some(it) = self.client(client).filter(|it| it.is_up) else {
            return;
        };
        it.is_up = false;
        it.life += 1;
        it.locks.clear();
        it.wakes_at = SimTime::NEVER;
        self.note(history::Event::ClientDown { client });
        for node in 0..u8::try_from(self.nodes.len()).unwrap_or(u8::MAX) {
            self.give_up(client, node);
        }
        let starts_at = self.now + CLIENT_STARTS_AFTER;
        self.push(starts_at, Event::ClientStarts { client });
    }

    pub(crate) fn client_starts(&mut self, client: u8) {
        let scenario = Arc::clone(&self.scenario);
        let Some(it) = self.client(client) else {
            return;
        };
        let number = u64::from(client) + (u64::from(it.life) << 8);
        let tokens = Random::stream(scenario.setup.seed, "tokens", number);
        it.player = Player::new(&scenario.setup, client, tokens);
        it.is_up = true;
        self.note(history::Event::ClientStarted { client });
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
                self.acquired(client, lock, token, fencing, valid_until);
            }
            ClientNotice::Failed { lock, why } => {
                if self.forget(client, lock).is_some() {
                    self.recorder.counters.bump(failed_word(why));
                    self.note(history::Event::Failed { client, lock, why });
                    self.hook(Hook::Failed(client));
                }
            }
            ClientNotice::Extended { lock, result } => match result {
                Ok(valid_until) => self.validity(client, lock, valid_until, true),
                Err(why) if self.active(client, lock).is_some() => {
                    self.recorder.counters.bump("extension-failed");
                    self.note(history::Event::NotExtended { client, lock, why });
                }
                Err(_) => {}
            },
            ClientNotice::Validity { lock, valid_until } => {
                self.validity(client, lock, valid_until, false);
            }
            ClientNotice::Lost { lock, why } => {
                if self.forget(client, lock).is_some() {
                    self.recorder.counters.bump("lock-lost");
                    self.note(history::Event::Lost { client, lock, why });
                    if let Some((it, time)) = self.running(client) {
                        it.player.end(time, lock, Ending::Drop, None);
                    }
                    self.hook(Hook::Lost(client));
                }
            }
            ClientNotice::Looked { key, tokens } => {
                self.recorder.counters.bump("looked");
                for token in tokens {
                    self.recorder.counters.bump("look-finds-holder");
                    if self.recorder.known(0, &key, &token).is_none() {
                        self.misbehaved(client, &key, NEVER_THERE);
                    }
                }
            }
            ClientNotice::Kept { lock, confirmed } => {
                let is_kept = usize::from(confirmed) > self.nodes.len() / 2;
                if let Some(active) = self.forget(client, lock).filter(|_| is_kept) {
                    self.recorder.counters.bump("released-and-kept");
                    let until = active.kept_until;
                    self.note(history::Event::Kept {
                        client,
                        lock,
                        until,
                    });
                }
            }
            ClientNotice::Released { lock, confirmed } => {
                if self.forget(client, lock).is_some() {
                    self.note(history::Event::Released {
                        client,
                        lock,
                        confirmed,
                    });
                }
            }
        }
    }

    fn acquired(
        &mut self,
        client: u8,
        lock: LockNo,
        token: Vec<u8>,
        fencing: Option<u64>,
        until: Time,
    ) {
        let now = self.now;
        let Some(it) = self.clients.get_mut(usize::from(client)) else {
            return;
        };
        let valid_until = it.clocks.when(now, until.as_nanos());
        let Some(active) = it.lock(lock) else { return };
        let (key, act) = (active.key, Arc::clone(&active.act));
        let attempt = self.recorder.attempt(key, &token);
        active.held = Some(Held {
            valid_until: until,
            fencing,
            since: Time::from_nanos(until.as_nanos().saturating_sub(nanos(act.ttl))),
        });
        active.token = token;
        self.recorder.counters.bump("acquired");
        self.note(history::Event::Acquired {
            client,
            lock,
            key,
            attempt,
            fencing,
            valid_until,
        });
        let first_write = act.write_every.map(|_| FIRST_WRITE_AFTER);
        self.plan_chore(client, lock, first_write, CallerTask::Write);
        self.plan_chore(client, lock, act.extend_every, CallerTask::Extend);
        self.plan_chore(client, lock, act.hold, CallerTask::End);
        self.hook(Hook::Acquired(client));
    }

    fn validity(&mut self, client: u8, lock: LockNo, until: Time, is_extension: bool) {
        let now = self.now;
        let Some(it) = self.client(client) else {
            return;
        };
        let valid_until = it.clocks.when(now, until.as_nanos());
        let Some(active) = it.lock(lock) else { return };
        let Some(held) = &mut active.held else { return };
        held.valid_until = until;
        let is_renewal = is_extension && active.act.renew_every.is_some();
        self.note(history::Event::Validity {
            client,
            lock,
            valid_until,
            is_extension,
        });
        if is_renewal {
            self.recorder.counters.bump("renewed");
        }
        if is_extension {
            self.recorder.counters.bump("extended");
            self.hook(Hook::Renewed(client));
        }
    }

    pub(crate) fn active(&mut self, client: u8, lock: LockNo) -> Option<&mut ActiveLock> {
        self.client(client)?.lock(lock)
    }

    /// The lock that a client holds under a key.
    pub(crate) fn held(&self, client: u8, key: &str) -> Option<LockNo> {
        let mut locks = self.clients.get(usize::from(client))?.locks.iter();
        let held = locks.find(|active| active.held.is_some() && &*active.act.key == key);
        held.map(|active| active.lock)
    }

    fn forget(&mut self, client: u8, lock: LockNo) -> Option<ActiveLock> {
        let locks = &mut self.client(client)?.locks;
        let place = locks.iter().position(|active| active.lock == lock)?;
        Some(locks.remove(place))
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
