//! What other threads of the clients ask of single nodes: they read the locks, and have keys of their own with which they do all that
//! a node can do with a key.

use std::time::Duration;

use crate::random::Random;
use crate::scenario::{Action, ClientAction, ClientKind, Hook, Scenario, Trigger};
use crate::span::{SimTime, nanos};

/// Draws requests and writes them into a scenario.
#[derive(Debug)]
pub(crate) struct AsideMaker<'s> {
    pub(crate) random: Random,
    pub(crate) scenario: &'s mut Scenario,
    pub(crate) client: u8,
    /// The connection of the request that is being made.
    pub(crate) line: u8,
    /// The keys of the locks.
    pub(crate) locks: &'s [String],
    /// They lay hands on the locks as well.
    pub(crate) meddles: bool,
    pub(crate) calm_at: SimTime,
}

impl AsideMaker<'_> {
    pub(crate) fn make(mut self) {
        let count = self.random.between(5, 25);
        for _ in 0..count {
            let node = self.below(self.scenario.setup.nodes.into());
            let line = self.below(2);
            self.line = line;
            let is_calm = self.random.chance(15);
            let (when, words) = match self.random.below(10) {
                // Just when something may not be durable yet.
                0 => {
                    let nth = u16::try_from(self.random.between(1, 4)).unwrap_or(1);
                    let (hook, after) = (Hook::Lowers(node), Duration::ZERO);
                    let words = if self.random.chance(50) {
                        self.own_longer()
                    } else {
                        self.own()
                    };
                    (Trigger::On { hook, nth, after }, words)
                }
                1..4 => {
                    let hook = if self.random.chance(70) {
                        Hook::Granted(node)
                    } else {
                        Hook::Extended(node)
                    };
                    let nth = u16::try_from(self.random.between(1, 40)).unwrap_or(1);
                    let after = Duration::ZERO;
                    (Trigger::On { hook, nth, after }, self.read())
                }
                4..7 => (self.moment(is_calm), self.read()),
                _ => (self.moment(is_calm), self.own()),
            };
            self.push(when, node, line, &words);
        }
        if self.meddles {
            for _ in 0..self.random.between(1, 6) {
                let node = self.below(self.scenario.setup.nodes.into());
                self.line = 0;
                let (when, words) = (self.moment(false), self.meddle());
                self.push(when, node, 0, &words);
            }
        }
    }

    fn push(&mut self, when: Trigger, node: u8, line: u8, words: &str) {
        let words = words.into();
        let what = Action::Client(self.client, ClientAction::Ask { node, line, words });
        self.scenario.add(when, what);
    }

    /// A look at the locks.
    fn read(&mut self) -> String {
        let key = self.lock();
        match self.random.below(9) {
            0 => format!("GET {key}"),
            1 => format!("PTTL {key}"),
            2 => format!("EXISTS {key} {}", self.lock()),
            3 | 4 => format!("LOCK.GET {key}"),
            5 => format!("MGET {key} {}", self.own_key()),
            6 => "SCAN 0".to_owned(),
            7 => format!("GET {key} ; TTL {key} ; KEYS *"),
            // One node of many: nobody is kept out of the lock by it, and its counters are others from now on.
            _ => format!(
                "LOCK.ACQUIRE {key} {} {}",
                self.token(),
                self.random.between(1, 20)
            ),
        }
    }

    /// Something with a key that is no lock of anybody else's.
    fn own(&mut self) -> String {
        let (key, token, ttl) = (self.own_key(), self.token(), self.ttl());
        match self.random.below(23) {
            0 | 1 => format!("SET {key} {token} NX{}", px(ttl)),
            2 => format!("SET {key} {token}{}", px(ttl)),
            3 => format!("SET {key} {token} XX GET{}", px(ttl)),
            4 => format!("SETNX {key} {token}"),
            5 => format!("PERSIST {key} ; PTTL {key}"),
            6 => format!("EXPIRE {key} {}", self.random.between(1, 2)),
            7 => format!(
                "PEXPIRE {key} {} ; PTTL {key}",
                self.random.between(1, 2_000)
            ),
            8 => format!("DEL {key} {} ; EXISTS {key}", self.own_key()),
            9 => format!("GETDEL {key}"),
            10 | 11 => format!(
                "LOCK.ACQUIRE {key} {token} {} ; LOCK.GET {key}",
                millis(ttl)
            ),
            12 => format!("LOCK.EXTEND {key} {token} {} ; PTTL {key}", millis(ttl)),
            13 => format!("LOCK.RELEASE {key} {token} ; GET {key}"),
            14 => format!("DELEX {key} IFEQ {token}"),
            // That was no grant of this lock.
            20 => format!(
                "LOCK.ACQUIRE {key} {token} {} ; LOCK.FENCE {key} {token} 7 9 ; LOCK.GET {key}",
                millis(ttl)
            ),
            21 => format!(
                "LOCK.ACQUIRE {key} {token} {} FLOOR {} ; PTTL {key}",
                millis(ttl),
                self.random.below(9)
            ),
            22 => format!("SELECT {} ; FLUSHDB ; SELECT 0", self.random.between(1, 3)),
            15 => format!("DELIFEQ {key} {token}"),
            16 => format!("SET {key} {token} IFEQ {token}{}", px(ttl)),
            17 => {
                let db = self.random.between(1, 3);
                let more = self.random.pick(&[
                    "",
                    " ; FLUSHDB ; SCAN 0",
                    " ; KEYS *",
                    // The other databases are as they were.
                    " ; FLUSHDB ; SELECT 2 ; KEYS * ; SELECT 3 ; KEYS *",
                ]);
                format!(
                    "SELECT {db} ; SET {key} {token} NX{} ; GET {key}{more} ; SELECT 0",
                    px(ttl)
                )
            }
            // Where replies are missing, nobody knows what became of the locks of others.
            18 if self.scenario.setup.client != ClientKind::Hash => {
                let replies = self.random.pick(&["OFF", "SKIP", "SKIP", "ON"]);
                let after = self
                    .random
                    .pick(&["", " ; CLIENT REPLY ON ; GET p ; GET q"]);
                format!(
                    "CLIENT REPLY {replies} ; SET {key} {token} NX{}{after}",
                    px(ttl)
                )
            }
            _ => format!(
                "LOCK.ACQUIRE {key} {token} {} ; {}",
                millis(ttl),
                self.read()
            ),
        }
    }

    /// A lock that is a little longer than what a node may have lowered its bound to.
    fn own_longer(&mut self) -> String {
        let bound = self.random.pick(&[512, 1_024, 2_048, 4_096]);
        let (key, token) = (self.own_key(), self.token());
        let ttl = bound + self.random.between(1, 240);
        format!("LOCK.ACQUIRE {key} {token} {ttl}")
    }

    /// What nobody may do to a lock that is not his.
    fn meddle(&mut self) -> String {
        let key = self.lock();
        match self.random.below(6) {
            0 => "FLUSHALL".to_owned(),
            1 => format!("DEL {key}"),
            2 => format!(
                "SET {key} {} PX {}",
                self.token(),
                self.random.between(1, 500)
            ),
            3 => format!("PEXPIRE {key} {}", self.random.between(1, 500)),
            4 => format!("EXPIRE {key} 1"),
            _ => format!("GETDEL {key}"),
        }
    }

    fn lock(&mut self) -> String {
        let place = self.random.index(self.locks.len().max(1));
        self.locks.get(place).cloned().unwrap_or_default()
    }

    fn own_key(&mut self) -> &'static str {
        self.random.pick(&["p", "q", "r"])
    }

    /// Each connection has its own.
    fn token(&mut self) -> String {
        format!(
            "{}{}{}",
            self.random.pick(&["u", "v"]),
            self.client,
            self.line
        )
    }

    /// None is no end.
    fn ttl(&mut self) -> Option<Duration> {
        let most = nanos(self.scenario.setup.max_ttl);
        let ttl = match self.random.below(10) {
            // Refused where nothing is kept.
            0 => return None,
            1 => self.random.between(most, most * 3),
            _ => self.random.between(1_000_000, most),
        };
        Some(Duration::from_nanos(ttl))
    }

    fn moment(&mut self, is_calm: bool) -> Trigger {
        let (calm, end) = (self.calm_at.as_nanos(), nanos(self.scenario.setup.run_for));
        let at = if is_calm {
            self.random.between(calm, end)
        } else {
            self.random.below(calm.max(1))
        };
        Trigger::At(SimTime::from_nanos(at / 1_000_000 * 1_000_000))
    }

    fn below(&mut self, count: u64) -> u8 {
        u8::try_from(self.random.below(count)).unwrap_or(0)
    }
}

fn millis(ttl: Option<Duration>) -> u128 {
    // Ten minutes stand for no end where one has to be given.
    ttl.map_or(600_000, |ttl| ttl.as_millis().max(1))
}

fn px(ttl: Option<Duration>) -> String {
    ttl.map_or_else(String::new, |ttl| format!(" PX {}", ttl.as_millis().max(1)))
}
