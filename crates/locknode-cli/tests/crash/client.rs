//! A client that takes, extends and releases locks as fast as it can, until the node is gone.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use locknode_resp::Reply;

use crate::conversation::Conversation;
use crate::ledger::{Asked, Held, Ledger};
use crate::plan::{Random, Settings};
use crate::request::{FAT, Request, What, from_wire, text};
use crate::tally::Tally;

/// A client, over all runs of its node.
#[derive(Debug)]
pub(crate) struct Client {
    name: String,
    random: Random,
    serial: u64,
    held: Vec<Held>,
}

/// What a run is to its clients.
#[derive(Debug)]
pub(crate) struct Run<'r> {
    pub(crate) address: SocketAddr,
    pub(crate) settings: Settings,
    /// A signal is about to end the node: it may refuse, and close.
    pub(crate) is_ending: &'r AtomicBool,
    pub(crate) tally: &'r Tally,
}
impl Client {
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self {
            name: format!("{seed}-{number}"),
            random: Random::new(seed, 1 + number),
            serial: 0,
            held: Vec::new(),
        }
    }

    /// Asks until the node is gone.
    pub(crate) fn work(&mut self, run: &Run<'_>, ledger: &Mutex<Ledger<'_>>) {
        let result = self.ask_all(run, ledger);
        let mut ledger = ledger.lock().expect("no panic");
        match result {
            // The signal is sent after the note that it is.
            Err(error) if !run.is_ending.load(Ordering::SeqCst) => {
                ledger.violate(&format!("{}: {error} from a node that lives", self.name));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                ledger.violate(&format!("{}: no answer", self.name));
            }
            _ => {}
        }
    }

    fn ask_all(&mut self, run: &Run<'_>, ledger: &Mutex<Ledger<'_>>) -> io::Result<()> {
        let mut conversation = Conversation::with(run.address)?;
        let mut is_served = false;
        loop {
            let batch: Vec<Request> = {
                let mut ledger = ledger.lock().expect("no panic");
                if ledger.violation().is_some() {
                    return Ok(());
                }
                let held = std::mem::take(&mut self.held);
                let is_left = |held: &Held| !ledger.is_over(held);
                self.held = held.into_iter().filter(is_left).collect();
                if is_served {
                    (0..=self.random.below(4))
                        .map(|_| self.draw(run, &ledger))
                        .collect()
                } else {
                    vec![ping(), self.read(), self.acquire(run, &ledger)]
                }
            };
            is_served = self.ask(&mut conversation, batch, run, ledger)? || is_served;
            // Somewhere between the limits of a client and of a core.
            std::thread::sleep(Duration::from_micros(self.random.below(2500)));
        }
    }

    /// Sends a batch and hears the answers; whether the last one was served.
    fn ask(
        &mut self,
        conversation: &mut Conversation,
        mut batch: Vec<Request>,
        run: &Run<'_>,
        ledger: &Mutex<Ledger<'_>>,
    ) -> io::Result<bool> {
        let sent;
        let was_served;
        {
            let mut ledger = ledger.lock().expect("no panic");
            was_served = ledger.is_served();
            sent = Instant::now();
            for request in &mut batch {
                request.begin(&mut ledger, sent);
            }
        }
        let commands: Vec<_> = batch.iter().flat_map(Request::commands).collect();
        let mut result = conversation.say(&commands);
        let mut is_served = was_served;
        for request in batch {
            let reply = match result {
                Ok(()) => conversation.hear(),
                Err(error) => Err(error),
            };
            let heard = Instant::now();
            let mut ledger = ledger.lock().expect("no panic");
            result = match reply {
                Ok(reply) => {
                    let asked = Asked { sent, heard };
                    is_served = self.hear(request, &reply, asked, is_served, run, &mut ledger);
                    Ok(())
                }
                Err(error) => {
                    ledger.note(&format!("{}: {} -> {error}", self.name, request.line()));
                    self.lose(request, &mut ledger);
                    Err(error)
                }
            };
        }
        result.map(|()| is_served)
    }

    /// Takes an answer; whether the client is served now.
    fn hear(
        &mut self,
        request: Request,
        reply: &Reply,
        asked: Asked,
        was_served: bool,
        run: &Run<'_>,
        ledger: &mut Ledger<'_>,
    ) -> bool {
        let line = request.line();
        let Reply::Error(error) = reply else {
            ledger.note(&format!("{}: {line} -> {}", self.name, text(reply)));
            ledger.served();
            self.take(request, reply, asked, run, ledger);
            return true;
        };
        let error = String::from_utf8_lossy(error);
        let left = error
            .strip_prefix("LOADING locknode is in its restart quarantine, ")
            .and_then(|rest| rest.strip_suffix(" ms left"));
        let is_unserved_limit =
            !run.settings.has_directory && error.starts_with("UNSUPPORTED give a TTL of ");
        if left.is_none() || !ledger.is_quarantined() {
            ledger.note(&format!("{}: {line} -> -{error}", self.name));
        }
        match left.map(str::parse) {
            Some(Ok(left_ms)) => ledger.loading(left_ms, asked, was_served),
            None if is_unserved_limit && request.is_long(run.settings.max_ttl) => {}
            None if error == "LOADING locknode is shutting down"
                && run.is_ending.load(Ordering::SeqCst) => {}
            _ => ledger.violate(&format!("{line} is answered {error}")),
        }
        match request.what {
            What::Set | What::Acquire { .. } => ledger.refused(&request.lock, asked, false),
            _ => self.lose(request, ledger),
        }
        was_served
    }

    /// Takes an answer that is no error.
    fn take(
        &mut self,
        request: Request,
        reply: &Reply,
        asked: Asked,
        run: &Run<'_>,
        ledger: &mut Ledger<'_>,
    ) {
        let Request {
            what,
            ref lock,
            ttl,
            floor,
        } = request;
        match (what, reply) {
            (What::Set, Reply::Simple(ok)) if ok == b"OK" => {
                ledger.granted(lock, asked, ttl);
                ledger.fence_raised(&lock.key, floor);
                self.held.push(request.lock);
            }
            (What::Set, Reply::Null) => ledger.refused(lock, asked, true),
            (What::Mute, Reply::Simple(ok)) if ok == b"OK" => {
                run.tally.add("acquired with replies off");
                self.lose(request, ledger);
            }
            (What::Acquire { hint }, Reply::Array(reply)) => match integers(reply)[..] {
                [1, fence, left] if u128::try_from(left).ok() == ttl.map(|it| it.as_millis()) => {
                    let fence = fence.unsigned_abs();
                    ledger.granted(lock, asked, ttl);
                    ledger.fence(&lock.key, fence, floor.max(hint), true);
                    if hint > floor + FAR {
                        run.tally.add("fences moved far");
                    }
                    let grant = Some(fence);
                    self.held.push(Held {
                        grant,
                        ..request.lock
                    });
                }
                [0, fence, _] => {
                    ledger.refused(lock, asked, true);
                    ledger.fence(&lock.key, fence.unsigned_abs(), floor, false);
                }
                _ => ledger.violate(&format!("{} is answered {reply:?}", request.line())),
            },
            (What::Extend, Reply::Integer(is_held @ 0..=1)) => {
                ledger.extended(lock, asked, ttl.expect("a TTL"), Some(*is_held == 1));
                if *is_held == 1 {
                    let is_eternal = false;
                    self.held.push(Held {
                        is_eternal,
                        ..request.lock
                    });
                }
            }
            (What::Release { was_eternal, .. }, Reply::Integer(is_held @ 0..=1)) => {
                ledger.released(lock, asked, was_eternal, *is_held == 1);
            }
            (What::Fence { fence }, Reply::Integer(is_held @ 0..=1)) => {
                if *is_held == 1 {
                    ledger.fence(&lock.key, fence, 0, false);
                } else {
                    ledger.denied(lock, asked);
                }
                self.held.push(request.lock);
            }
            (What::Ping, Reply::Simple(pong)) if pong == b"PONG" => {}
            _ => take_read(&request, reply, asked, ledger),
        }
    }

    /// Nobody knows what became of a request.
    fn lose(&mut self, request: Request, ledger: &mut Ledger<'_>) {
        let lock = request.lock;
        match request.what {
            What::Set | What::Mute | What::Acquire { .. } => {
                ledger.acquire_unknown(&lock, request.ttl);
            }
            What::Extend => {
                let now = Instant::now();
                let asked = Asked {
                    sent: now,
                    heard: now,
                };
                ledger.extended(&lock, asked, request.ttl.expect("a TTL"), None);
            }
            What::Release { .. } | What::Fence { .. } => {}
            What::Get | What::LockGet | What::Ping => return,
        }
        self.held.push(lock);
    }

    fn draw(&mut self, run: &Run<'_>, ledger: &Ledger<'_>) -> Request {
        let is_eternal = self.held.iter().any(|held| held.is_eternal);
        match self.random.below(100) {
            0..38 => self.acquire(run, ledger),
            38..45 => match self.acquire(run, ledger) {
                set if set.what == What::Set => Request {
                    what: What::Mute,
                    ..set
                },
                other => other,
            },
            45..60 => match self.take_held() {
                Some(lock) => Request {
                    ttl: Some(self.ttl(run.settings)),
                    ..Request::new(What::Extend, lock)
                },
                None => self.read(),
            },
            // A lock without a TTL is in everybody's way: released sooner, so that there are enough of them.
            60..80 => match self.take_held() {
                Some(lock) if !lock.is_eternal || self.random.chance(30) => {
                    let release = What::Release {
                        by_script: self.random.chance(50),
                        was_eternal: false,
                    };
                    Request::new(release, lock)
                }
                Some(lock) => {
                    self.held.push(lock);
                    self.read()
                }
                None if is_eternal => ping(),
                None => self.acquire(run, ledger),
            },
            80..84 => match self.held.iter().position(|held| held.grant.is_some()) {
                Some(index) => {
                    let lock = self.held.swap_remove(index);
                    let fence = ledger.fence_floor(&lock.key) + self.random.below(2 * FAR);
                    Request::new(What::Fence { fence }, lock)
                }
                None => ping(),
            },
            _ => self.read(),
        }
    }

    fn acquire(&mut self, run: &Run<'_>, ledger: &Ledger<'_>) -> Request {
        self.serial += 1;
        let key = self.key();
        let floor = ledger.fence_floor(&key);
        let is_free_of_eternals = self.held.iter().all(|held| !held.is_eternal);
        let is_eternal = run.settings.has_directory && is_free_of_eternals && self.random.chance(6);
        let fat = if run.settings.has_fat_tokens && self.random.chance(50) {
            FAT
        } else {
            ""
        };
        let lock = Held {
            token: format!("{}-{}{fat}", self.name, self.serial),
            key,
            grant: None,
            is_eternal,
        };
        let ttl = Some(self.ttl(run.settings)).filter(|_| !is_eternal);
        let what = if is_eternal || self.random.chance(50) {
            What::Set
        } else {
            let hint = match self.random.below(10) {
                0 => floor + FAR + self.random.below(2 * FAR),
                1..4 => floor,
                _ => 0,
            };
            What::Acquire { hint }
        };
        Request {
            ttl,
            ..Request::new(what, lock)
        }
    }

    fn read(&mut self) -> Request {
        let key = self.key();
        let what = match self.random.below(2) {
            0 => What::Get,
            _ => What::LockGet,
        };
        let lock = Held {
            key,
            ..Held::default()
        };
        Request::new(what, lock)
    }

    fn key(&mut self) -> String {
        format!("k{}", self.random.below(KEYS))
    }

    /// Mostly what rides on the guard, sometimes what goes to the log.
    fn ttl(&mut self, settings: Settings) -> Duration {
        let max_ttl_ms = u64::try_from(settings.max_ttl.as_millis()).expect("short");
        let ms = match self.random.below(10) {
            0..4 => 20 + self.random.below(max_ttl_ms.min(200) - 19),
            4..8 => 1 + self.random.below(max_ttl_ms),
            _ => max_ttl_ms + 1 + self.random.below(1500),
        };
        Duration::from_millis(ms)
    }

    fn take_held(&mut self) -> Option<Held> {
        if self.held.is_empty() {
            return None;
        }
        let len = u64::try_from(self.held.len()).expect("a few");
        let index = usize::try_from(self.random.below(len)).expect("a few");
        Some(self.held.swap_remove(index))
    }
}

fn ping() -> Request {
    Request::new(What::Ping, Held::default())
}

/// Takes an answer that says who holds a key.
fn take_read(request: &Request, reply: &Reply, asked: Asked, ledger: &mut Ledger<'_>) {
    let key = &request.lock.key;
    match (request.what, reply) {
        (What::Get | What::LockGet, Reply::Null) => ledger.read(key, None, None, asked),
        (What::Get, Reply::Bulk(token)) => {
            ledger.read(key, Some(&from_wire(token)), None, asked);
        }
        (What::LockGet, Reply::Array(reply)) => match &reply[..] {
            [
                Reply::Bulk(token),
                Reply::Integer(left),
                Reply::Integer(grant),
                Reply::Integer(fence),
            ] if grant <= fence => {
                ledger.read(key, Some(&from_wire(token)), Some(*left), asked);
                ledger.fence(key, fence.unsigned_abs(), request.floor, false);
            }
            _ => ledger.violate(&format!("{} is answered {reply:?}", request.line())),
        },
        (_, reply) => ledger.violate(&format!("{} is answered {}", request.line(), text(reply))),
    }
}

fn integers(replies: &[Reply]) -> Vec<i64> {
    let integer = |reply: &Reply| match reply {
        Reply::Integer(number) => *number,
        _ => i64::MIN,
    };
    replies.iter().map(integer).collect()
}

/// Few enough that the clients are in each other's way, many enough that some are free.
const KEYS: u64 = 16;

/// More than the step by which the ceiling of the fence counters is raised.
const FAR: u64 = 1 << 20;
