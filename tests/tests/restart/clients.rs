//! Clients of one node under random requests and crashes: what they were told, and what must therefore not happen.
//!
//! A client believes in a lock from the reply until 1 % and 2 ms before the TTL has passed since the request. What it was not
//! told it does not know: a request that may change a lock ends the belief in it when it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use locknode::{Clock, Time};
use locknode_engine::durable::Durability;
use locknode_tests::{Answer, StoredNode, Ticket};

/// All clients together; see the module text.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// True time.
    pub(crate) now: Duration,
    keys: BTreeMap<u8, Key>,
    waiting: BTreeMap<Ticket, Sent>,
    /// Tokens that no node may show any more.
    dead: BTreeSet<u32>,
    next_token: u32,
    /// Deadlines and TTLs that this run of the node told of locks which ride on its guard, in its own time.
    guarded: Vec<(Time, Duration)>,
    /// The highest counter told, of any key.
    highest: u64,
}

#[derive(Debug, Default)]
struct Key {
    /// Grows with every request that may end or move a lock that another holds.
    epoch: u32,
    /// Grants that were told in this epoch.
    told: Vec<Held>,
    /// The token that was sent last, told or not.
    last_token: u32,
    /// The highest counter told.
    counter: u64,
    /// Grants by number, as LOCK.ACQUIRE told them.
    grants: BTreeMap<u32, u64>,
}

#[derive(Clone, Debug)]
struct Held {
    token: u32,
    sent: Duration,
    /// `None`: until it is released.
    until: Option<Duration>,
}

/// A request as clients make it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// By a token that nobody used before.
    Acquire {
        key: u8,
        ttl_ms: Option<u32>,
        way: u8,
    },
    /// A token of its own, whoever holds the key.
    Overwrite {
        key: u8,
        ttl_ms: Option<u32>,
        only_held: bool,
    },
    /// By the last token, or by a foreign one.
    Extend {
        key: u8,
        ttl_ms: u32,
        way: u8,
        is_own: bool,
    },
    /// Whoever holds it.
    Move {
        key: u8,
        ttl_ms: Option<u32>,
    },
    Release {
        key: u8,
        way: u8,
        is_own: bool,
    },
    Flush,
    Fence {
        key: u8,
        above: u32,
        is_right: bool,
    },
    Look {
        key: u8,
    },
}

/// A request whose reply is open.
#[derive(Clone, Debug)]
struct Sent {
    request: Request,
    token: u32,
    epoch: u32,
    at: Duration,
    node_time: Time,
    /// The key's counter that was known then.
    counter: u64,
    fence: u64,
    is_guarded: bool,
    /// Requests of any kind that were sent to the key since may have changed what this one tells.
    is_alone: bool,
}

impl Clients {
    /// Sends a request. `is_lost`: the reply does not arrive.
    pub(crate) fn send(
        &mut self,
        node: &mut StoredNode,
        request: Request,
        is_lost: bool,
    ) -> Result<(), String> {
        self.next_token += 1;
        let sent = self.prepare(node, request);
        if matches!(request, Request::Extend { .. } | Request::Move { .. }) {
            // What is open on that key ends who knows when.
            let same_key = |it: &&mut Sent| it.request.key() == request.key();
            self.waiting
                .values_mut()
                .filter(same_key)
                .for_each(|it| it.epoch = u32::MAX);
        }
        let words = self.words(&sent);
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let left = node.quarantine_left();
        let answer = node.send_all(&[&args]);
        if left.is_some()
            && !matches!(&answer, Answer::Told(reply) if reply.starts_with("-LOADING "))
        {
            return Err(format!("{words:?} in the quarantine: {answer:?}"));
        }
        match answer {
            Answer::Told(reply) if !is_lost => self.told(&sent, &reply),
            Answer::Told(_) | Answer::Lost => {
                self.unknown(&sent);
                Ok(())
            }
            Answer::Withheld(ticket) => {
                self.unknown(&sent);
                self.waiting.insert(ticket, sent);
                Ok(())
            }
        }
    }

    /// Takes the replies that came late.
    pub(crate) fn receive(&mut self, node: &mut StoredNode) -> Result<(), String> {
        for (ticket, answer) in node.take_late() {
            if let (Some(mut sent), Answer::Told(reply)) = (self.waiting.remove(&ticket), answer) {
                sent.is_alone = false;
                self.told(&sent, &reply)?;
            }
        }
        Ok(())
    }

    /// Another run of the node has begun.
    pub(crate) fn node_started(&mut self) {
        self.guarded.clear();
        self.waiting.clear();
    }

    /// What is durable covers what was told. [G5] [G6] [F2]
    pub(crate) fn check_durable(&self, node: &StoredNode) -> Result<(), String> {
        let Some(durable) = node.durable() else {
            return Ok(());
        };
        let now = node.clock().now().time;
        for (deadline, ttl) in &self.guarded {
            if *deadline > durable.horizon {
                return Err(format!("{deadline:?} was told, {durable:?}"));
            }
            if *deadline >= now && *ttl > durable.ttl_in_use {
                return Err(format!("a TTL of {ttl:?} was told, {durable:?}"));
            }
        }
        if self.highest > durable.ceiling {
            return Err(format!(
                "the counter {} was told, {durable:?}",
                self.highest
            ));
        }
        Ok(())
    }

    /// Looks at every key.
    pub(crate) fn look(&mut self, node: &mut StoredNode) -> Result<(), String> {
        let keys: Vec<u8> = self.keys.keys().copied().collect();
        for key in keys {
            self.send(node, Request::Look { key }, false)?;
            let way = 1;
            let ttl_ms = Some(1);
            self.send(node, Request::Acquire { key, ttl_ms, way }, false)?;
        }
        Ok(())
    }

    fn prepare(&mut self, node: &StoredNode, request: Request) -> Sent {
        let voids = matches!(request, Request::Overwrite { .. } | Request::Flush)
            || matches!(request, Request::Release { is_own: true, .. });
        let is_grant = matches!(request, Request::Acquire { .. } | Request::Overwrite { .. });
        let ttl_ms = match request {
            Request::Acquire { ttl_ms, .. }
            | Request::Overwrite { ttl_ms, .. }
            | Request::Move { ttl_ms, .. } => ttl_ms,
            Request::Extend { ttl_ms, .. } => Some(ttl_ms),
            _ => None,
        };
        let guard = node.guard();
        let is_guarded = ttl_ms.is_some_and(|ttl_ms| {
            guard.is_some_and(|guard| {
                guard.mode == locknode_engine::GuardMode::Store(Durability::Long)
                    && millis(ttl_ms) <= guard.max_ttl
            })
        });
        let mut sent = Sent {
            request,
            token: 0,
            epoch: 0,
            at: self.now,
            node_time: node.clock().now().time,
            counter: 0,
            fence: 0,
            is_guarded,
            is_alone: true,
        };
        let Some(name) = request.key() else {
            for key in self.keys.values_mut() {
                key.epoch += 1;
            }
            sent.token = self.next_token;
            return sent;
        };
        let key = self.keys.entry(name).or_default();
        let last_token = key.last_token;
        if voids {
            key.epoch += 1;
        }
        if is_grant {
            key.last_token = self.next_token;
        }
        sent.token = match request {
            Request::Extend { is_own: true, .. }
            | Request::Release { is_own: true, .. }
            | Request::Fence { .. } => last_token,
            _ => self.next_token,
        };
        sent.epoch = key.epoch;
        sent.counter = key.counter;
        if let Request::Fence { above, .. } = request {
            sent.fence = key.counter.max(1) + u64::from(above);
        }
        sent
    }

    fn words(&self, sent: &Sent) -> Vec<String> {
        let token = format!("t{}", sent.token);
        let k = |key: u8| format!("k{key}");
        let line = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let px = |ttl_ms: Option<u32>| ttl_ms.map(|ttl_ms| ttl_ms.to_string());
        match sent.request {
            Request::Acquire { key, ttl_ms, way } => match (px(ttl_ms), way % 2) {
                (None, 0) => line(&["SET", &k(key), &token, "NX"]),
                (None, _) => line(&["SETNX", &k(key), &token]),
                (Some(ttl), 0) => line(&["SET", &k(key), &token, "NX", "PX", &ttl]),
                (Some(ttl), _) => line(&["LOCK.ACQUIRE", &k(key), &token, &ttl]),
            },
            Request::Overwrite {
                key,
                ttl_ms,
                only_held,
            } => {
                let mut words: Vec<String> = line(&["SET", &k(key), &token]);
                words.extend(only_held.then(|| "XX".to_owned()));
                if let Some(ttl) = px(ttl_ms) {
                    words.extend(["PX".to_owned(), ttl]);
                }
                words
            }
            Request::Extend {
                key, ttl_ms, way, ..
            } => {
                let (key, ttl) = (k(key), ttl_ms.to_string());
                match way % 3 {
                    0 => line(&["LOCK.EXTEND", &key, &token, &ttl]),
                    1 => line(&["EVAL", EXTEND_SCRIPT, "1", &key, &token, &ttl]),
                    _ => line(&["SET", &key, &token, "IFEQ", &token, "PX", &ttl]),
                }
            }
            Request::Move { key, ttl_ms } => match px(ttl_ms) {
                Some(ttl) => line(&["PEXPIRE", &k(key), &ttl]),
                None => line(&["PERSIST", &k(key)]),
            },
            Request::Release { key, way, .. } => match way % 3 {
                0 => line(&["LOCK.RELEASE", &k(key), &token]),
                1 => line(&["EVAL", RELEASE_SCRIPT, "1", &k(key), &token]),
                _ => line(&["DELIFEQ", &k(key), &token]),
            },
            Request::Flush => line(&["FLUSHALL"]),
            Request::Fence { key, is_right, .. } => {
                let known = self
                    .keys
                    .get(&key)
                    .and_then(|it| it.grants.get(&sent.token));
                let grant = known.copied().unwrap_or(7) + u64::from(!is_right);
                let (grant, fence) = (grant.to_string(), sent.fence.to_string());
                line(&["LOCK.FENCE", &k(key), &token, &grant, &fence])
            }
            Request::Look { key } => line(&["LOCK.GET", &k(key)]),
        }
    }

    /// The node may have done it, or not.
    fn unknown(&mut self, sent: &Sent) {
        let until = sent.until();
        if let Some(name) = sent.request.key()
            && matches!(sent.request, Request::Extend { .. } | Request::Move { .. })
            && let Some(key) = self.keys.get_mut(&name)
        {
            for held in &mut key.told {
                if let Some(until) = until {
                    held.until = Some(held.until.map_or(until, |it| it.min(until)));
                }
            }
        }
        self.forget_old_epochs(sent);
    }

    fn forget_old_epochs(&mut self, sent: &Sent) {
        match sent.request {
            Request::Flush => self.keys.values_mut().for_each(|key| key.told.clear()),
            Request::Overwrite { key, .. }
            | Request::Release {
                key, is_own: true, ..
            } => {
                if let Some(key) = self.keys.get_mut(&key) {
                    key.told.clear();
                }
            }
            _ => {}
        }
    }

    fn told(&mut self, sent: &Sent, reply: &str) -> Result<(), String> {
        if reply.starts_with("-LOADING ") || reply.starts_with("-MISCONF ") {
            // It changed nothing. Whoever wanted to let go has let go.
            self.forget_old_epochs(sent);
            return Ok(());
        }
        if reply.starts_with('-') {
            return Err(format!("{sent:?}: {reply}"));
        }
        let Some(name) = sent.request.key() else {
            // Nothing that was there before comes back. [L3]
            self.dead.extend(0..=sent.token);
            self.forget_old_epochs(sent);
            return Ok(());
        };
        let context = format!("k{name} {sent:?}: {reply}");
        let is_done = matches!(reply, "+OK" | ":1") || reply.starts_with("*3 :1");
        if let Request::Release { is_own: true, .. } = sent.request {
            return self.released(name, sent, is_done, &context);
        }
        if let Request::Overwrite { .. } = sent.request {
            self.forget_old_epochs(sent);
        }
        self.counters(name, sent, reply, &context)?;
        let key = self.keys.entry(name).or_default();
        let is_current = key.epoch == sent.epoch;
        let until = sent.until();
        match sent.request {
            Request::Acquire { .. } if is_done => {
                let other = key
                    .told
                    .iter()
                    .find(|held| is_current && held.sent <= sent.at && held.is_alive(sent.at));
                if let Some(held) = other {
                    return Err(format!("{context}: granted to two: {held:?}"));
                }
            }
            Request::Extend { is_own, .. } | Request::Release { is_own, .. } => {
                if !is_own && is_done {
                    return Err(format!("{context}: by a foreign token"));
                }
                let lost = key.told.iter().find(|held| {
                    is_own && held.token == sent.token && is_current && held.is_alive(sent.at)
                });
                if let (Some(held), false, true) = (lost, is_done, sent.is_alone) {
                    return Err(format!("{context}: {held:?} is lost"));
                }
            }
            Request::Move {
                ttl_ms: Some(_), ..
            } if !is_done && is_current && sent.is_alone => {
                if let Some(held) = key.told.iter().find(|held| held.is_alive(sent.at)) {
                    return Err(format!("{context}: {held:?} is lost"));
                }
            }
            Request::Fence {
                is_right: false, ..
            } if is_done => {
                return Err(format!("{context}: by another grant"));
            }
            Request::Look { .. } if is_current && sent.is_alone => {
                let token = format!(" t{} ", held_token(reply).unwrap_or(u32::MAX));
                let lost = key.told.iter().find(|held| held.is_alive(sent.at));
                if let Some(held) = lost
                    && token != format!(" t{} ", held.token)
                {
                    return Err(format!("{context}: {held:?} is lost"));
                }
            }
            _ => {}
        }
        if let Some(token) = held_token(reply)
            && self.dead.contains(&token)
        {
            return Err(format!("{context}: it was released"));
        }
        if !is_done {
            return Ok(());
        }
        if sent.is_guarded {
            let deadline = sent
                .node_time
                .saturating_add(sent.ttl().unwrap_or_default());
            self.guarded
                .push((deadline, sent.ttl().unwrap_or_default()));
        }
        let (token, at) = (sent.token, sent.at);
        match sent.request {
            Request::Acquire { .. } | Request::Overwrite { .. } if is_current => {
                key.told.retain(|held| held.is_alive(at));
                key.told.push(Held {
                    token,
                    sent: at,
                    until,
                });
            }
            Request::Extend { .. } | Request::Move { .. } if is_current && sent.is_alone => {
                let any = matches!(sent.request, Request::Move { .. });
                for held in key
                    .told
                    .iter_mut()
                    .filter(|held| any || held.token == token)
                {
                    // One whose validity has ended extends nothing.
                    if held.is_alive(at) {
                        held.until = until;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The holder let go.
    fn released(
        &mut self,
        name: u8,
        sent: &Sent,
        is_done: bool,
        context: &str,
    ) -> Result<(), String> {
        let key = self.keys.entry(name).or_default();
        let held = key
            .told
            .iter()
            .find(|held| held.token == sent.token)
            .cloned();
        let alive = held.filter(|held| held.is_alive(sent.at));
        self.forget_old_epochs(sent);
        match alive {
            Some(held) if !is_done && sent.is_alone => Err(format!("{context}: {held:?} is lost")),
            Some(Held {
                until: None, token, ..
            }) if is_done => {
                // A lock without a TTL whose release was told never comes back. [L3]
                self.dead.insert(token);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// [F1] [F2] [F5]
    fn counters(
        &mut self,
        name: u8,
        sent: &Sent,
        reply: &str,
        context: &str,
    ) -> Result<(), String> {
        let key = self.keys.entry(name).or_default();
        let number = |at: usize| {
            reply
                .split(' ')
                .nth(at)?
                .strip_prefix(':')?
                .parse::<u64>()
                .ok()
        };
        let told = match sent.request {
            Request::Acquire { .. } if reply.starts_with("*3") => {
                let counter = number(2).ok_or_else(|| context.to_owned())?;
                let is_granted = reply.starts_with("*3 :1");
                if counter < sent.counter + u64::from(is_granted) {
                    return Err(format!("{context}: it was {} before", sent.counter));
                }
                if is_granted {
                    key.grants.insert(sent.token, counter);
                }
                counter
            }
            Request::Fence { .. } if reply == ":1" => sent.fence,
            Request::Look { .. } if reply.starts_with("*4") => {
                let counter = number(5).ok_or_else(|| context.to_owned())?;
                if counter < sent.counter {
                    return Err(format!("{context}: it was {} before", sent.counter));
                }
                counter
            }
            _ => return Ok(()),
        };
        key.counter = key.counter.max(told);
        self.highest = self.highest.max(told);
        Ok(())
    }
}

impl Request {
    const fn key(self) -> Option<u8> {
        match self {
            Self::Acquire { key, .. }
            | Self::Overwrite { key, .. }
            | Self::Extend { key, .. }
            | Self::Move { key, .. }
            | Self::Release { key, .. }
            | Self::Fence { key, .. }
            | Self::Look { key } => Some(key),
            Self::Flush => None,
        }
    }
}

impl Sent {
    fn ttl(&self) -> Option<Duration> {
        match self.request {
            Request::Acquire { ttl_ms, .. }
            | Request::Overwrite { ttl_ms, .. }
            | Request::Move { ttl_ms, .. } => ttl_ms.map(millis),
            Request::Extend { ttl_ms, .. } => Some(millis(ttl_ms)),
            _ => None,
        }
    }

    /// Until when the client relies on it.
    fn until(&self) -> Option<Duration> {
        let ttl = self.ttl()?;
        Some(self.at + (ttl - ttl / 100).saturating_sub(Duration::from_millis(2)))
    }
}

impl Held {
    fn is_alive(&self, at: Duration) -> bool {
        self.until.is_none_or(|until| until > at)
    }
}

/// The token in a reply to LOCK.GET.
fn held_token(reply: &str) -> Option<u32> {
    let token = reply.strip_prefix("*4 ")?.split(' ').nth(1)?;
    token.strip_prefix('t')?.parse().ok()
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

const RELEASE_SCRIPT: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const EXTEND_SCRIPT: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], \
    ARGV[2]) else return 0 end";
