//! An honest lock node without sockets: the commands that the client knows, on a map.

use std::collections::BTreeMap;

use locknode_resp::{Decoder, Encoder, Limits, Protocol};

use crate::core::Dialect;

/// A node. Time is the world's, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) dialect: Dialect,
    pub(super) run_id: Option<String>,
    keys: BTreeMap<Vec<u8>, Key>,
    /// How often each key was granted. They outlive a restart, which makes all of them at least `base`.
    counters: BTreeMap<Vec<u8>, u64>,
    base: u64,
    /// The scripts that it was sent, each with whether it compares the token.
    knows_release: Option<bool>,
    knows_extend: Option<bool>,
    /// It answers whatever concerns a key with an error until then.
    pub(super) failing_until: u64,
    pub(super) counts: Counts,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    pub(super) acquires: u64,
    pub(super) floors: u64,
    pub(super) write_backs: u64,
    pub(super) write_backs_refused: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) token: Vec<u8>,
    /// When it is gone, in true time.
    pub(super) deadline: u64,
    /// What the counter was raised to when it was granted.
    pub(super) grant: u64,
}

impl Server {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            run_id: None,
            keys: BTreeMap::new(),
            counters: BTreeMap::new(),
            base: 0,
            knows_release: None,
            knows_extend: None,
            failing_until: 0,
            counts: Counts::default(),
        }
    }

    /// What it holds under a key.
    pub(super) fn held(&self, now: u64, key: &[u8]) -> Option<&Key> {
        self.keys.get(key).filter(|held| held.deadline > now)
    }

    /// Everything in memory is gone, scripts too. What remains of the counters is that none goes back.
    pub(super) fn restart(&mut self, run_id: Option<String>) {
        self.keys.clear();
        self.base = self.counters.values().copied().fold(self.base, u64::max);
        (self.knows_release, self.knows_extend) = (None, None);
        self.run_id = run_id;
    }

    /// How often the key was granted, or what the counter was raised to.
    pub(super) fn counter(&self, key: &[u8]) -> u64 {
        self.counters.get(key).copied().unwrap_or(0).max(self.base)
    }

    /// All counters begin at this or above.
    pub(super) fn raise_base(&mut self, base: u64) {
        self.base = self.base.max(base);
    }

    /// Everything that it holds ends before its time.
    pub(super) fn end_all(&mut self) {
        self.keys.clear();
    }

    fn grant(&mut self, now: u64, key: &[u8], token: &[u8], ttl: &[u8], floor: u64) -> u64 {
        let deadline = self.deadline(now, ttl);
        let grant = self.counter(key).max(floor) + 1;
        self.counters.insert(key.to_vec(), grant);
        let held = Key {
            token: token.to_vec(),
            deadline,
            grant,
        };
        self.keys.insert(key.to_vec(), held);
        grant
    }

    fn acquire(
        &mut self,
        now: u64,
        [key, token, ttl]: [&[u8]; 3],
        floor: u64,
        reply: &mut Encoder<'_>,
    ) {
        self.counts.acquires += 1;
        let held = self.held(now, key).map(|held| held.deadline);
        let (granted, counter, remaining) = match held {
            Some(deadline) => (0, self.counter(key), (deadline - now) / 1_000_000),
            None => (1, self.grant(now, key, token, ttl, floor), number(ttl)),
        };
        reply.array(3);
        for integer in [granted, counter, remaining] {
            reply.integer(i64::try_from(integer).unwrap());
        }
    }

    /// Raises the counter for whoever holds the key by that very grant.
    fn fence(&mut self, now: u64, key: &[u8], token: &[u8], grant: u64, fence: u64) -> bool {
        let held = self.held(now, key);
        let is_held = held.is_some_and(|held| held.token == token && held.grant == grant);
        match is_held {
            true => {
                self.counts.write_backs += 1;
                let counter = self.counter(key).max(fence);
                self.counters.insert(key.to_vec(), counter);
            }
            false => self.counts.write_backs_refused += 1,
        }
        is_held
    }

    /// Executes whatever is complete in `input` and returns the replies.
    pub(super) fn serve(
        &mut self,
        now: u64,
        input: &mut Vec<u8>,
        decoder: &mut Decoder,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut start = 0;
        while let Some(frame) = decoder
            .decode(&input[start..], &Limits::default(), true)
            .expect("the client speaks the protocol")
        {
            let args: Vec<&[u8]> = frame.args().collect();
            start += frame.consumed();
            self.execute(now, &args, &mut Encoder::new(&mut out, Protocol::Resp2));
        }
        input.drain(..start);
        out
    }

    pub(super) fn execute(&mut self, now: u64, args: &[&[u8]], reply: &mut Encoder<'_>) {
        match args {
            [b"AUTH" | b"SELECT", ..] | [b"CLIENT", b"SETINFO", ..] => reply.ok(),
            [b"PING"] => reply.simple("PONG"),
            [b"COMMAND", b"INFO", names @ ..] => {
                reply.array(names.len());
                for name in names {
                    let has: &[Dialect] = match *name {
                        b"DELEX" => &[Dialect::DelEx],
                        b"DELIFEQ" => &[Dialect::DelIfEq],
                        b"LOCK.ACQUIRE" => &[Dialect::EarlyLock, Dialect::Lock],
                        _ => &[Dialect::Lock],
                    };
                    match has.contains(&self.dialect) {
                        true => {
                            reply.array(1);
                            reply.bulk(b"x");
                        }
                        false => reply.null_array(),
                    }
                }
            }
            [b"INFO", b"server"] => {
                let id = self.run_id.iter().map(|id| format!("run_id:{id}\r\n"));
                let text = format!(
                    "# Server\r\nredis_version:8.4.0\r\n{}",
                    id.collect::<String>()
                );
                reply.bulk(text.as_bytes());
            }
            _ => self.execute_on_key(now, args, reply),
        }
    }

    fn execute_on_key(&mut self, now: u64, args: &[&[u8]], reply: &mut Encoder<'_>) {
        if now < self.failing_until {
            return reply.error("OOM command not allowed when used memory > 'maxmemory'.");
        }
        match args {
            [b"SET", key, token, b"NX", b"PX", ttl] => match self.held(now, key) {
                Some(_) => reply.null(),
                None => {
                    self.grant(now, key, token, ttl, 0);
                    reply.ok();
                }
            },
            [b"SET", key, token, b"IFEQ", expected, b"PX", ttl]
                if matches!(self.dialect, Dialect::DelEx | Dialect::DelIfEq)
                    && token == expected =>
            {
                match self.extend(now, key, token, ttl) {
                    true => reply.ok(),
                    false => reply.null(),
                }
            }
            [b"DELEX", key, b"IFEQ", token] if self.dialect == Dialect::DelEx => {
                reply.integer(i64::from(self.release(now, key, token)));
            }
            [b"DELIFEQ", key, token] if self.dialect == Dialect::DelIfEq => {
                reply.integer(i64::from(self.release(now, key, token)));
            }
            [b"LOCK.ACQUIRE", key, token, ttl] if self.dialect == Dialect::Lock => {
                self.acquire(now, [key, token, ttl], 0, reply);
            }
            [b"LOCK.ACQUIRE", key, token, ttl, b"FLOOR", floor]
                if self.dialect == Dialect::Lock =>
            {
                self.counts.floors += 1;
                self.acquire(now, [key, token, ttl], number(floor), reply);
            }
            [b"LOCK.EXTEND", key, token, ttl] if self.dialect == Dialect::Lock => {
                reply.integer(i64::from(self.extend(now, key, token, ttl)));
            }
            [b"LOCK.RELEASE", key, token] if self.dialect == Dialect::Lock => {
                reply.integer(i64::from(self.release(now, key, token)));
            }
            [b"LOCK.FENCE", key, token, grant, fence] if self.dialect == Dialect::Lock => {
                let (grant, fence) = (number(grant), number(fence));
                reply.integer(i64::from(self.fence(now, key, token, grant, fence)));
            }
            [b"EVALSHA", RELEASE_SHA, b"1", key, token] if self.knows_release.is_some() => {
                let token = self.compared(self.knows_release, now, key, token);
                reply.integer(i64::from(self.release(now, key, &token)));
            }
            [b"EVALSHA", EXTEND_SHA, b"1", key, token, ttl] if self.knows_extend.is_some() => {
                let token = self.compared(self.knows_extend, now, key, token);
                reply.integer(i64::from(self.extend(now, key, &token, ttl)));
            }
            [b"EVALSHA", ..] => reply.error("NOSCRIPT No matching script. Please use EVAL."),
            [b"EVAL", text, b"1", key, token] if has(text, "\"del\"") => {
                self.knows_release = Some(has(text, COMPARISON));
                let token = self.compared(self.knows_release, now, key, token);
                reply.integer(i64::from(self.release(now, key, &token)));
            }
            [b"EVAL", text, b"1", key, token, ttl] if has(text, "\"pexpire\"") => {
                self.knows_extend = Some(has(text, COMPARISON));
                let token = self.compared(self.knows_extend, now, key, token);
                reply.integer(i64::from(self.extend(now, key, &token, ttl)));
            }
            [b"GET", key] => match self.held(now, key) {
                Some(held) => reply.bulk(&held.token),
                None => reply.null(),
            },
            [b"PTTL", key] => reply.integer(match self.held(now, key) {
                Some(held) => i64::try_from((held.deadline - now) / 1_000_000).unwrap(),
                None => -2,
            }),
            _ => panic!("no such command: {args:?}"),
        }
    }

    /// The token that a script acts for: one that does not compare acts for whoever has the key.
    fn compared(&self, compares: Option<bool>, now: u64, key: &[u8], token: &[u8]) -> Vec<u8> {
        match (compares, self.held(now, key)) {
            (Some(false), Some(held)) => held.token.clone(),
            _ => token.to_vec(),
        }
    }

    fn extend(&mut self, now: u64, key: &[u8], token: &[u8], ttl: &[u8]) -> bool {
        let deadline = self.deadline(now, ttl);
        match self.keys.get_mut(key) {
            Some(held) if held.deadline > now && held.token == token => {
                held.deadline = deadline;
                true
            }
            _ => false,
        }
    }

    fn release(&mut self, now: u64, key: &[u8], token: &[u8]) -> bool {
        let is_held = self.held(now, key).is_some_and(|held| held.token == token);
        if is_held {
            self.keys.remove(key);
        }
        is_held
    }

    fn deadline(&self, now: u64, ttl: &[u8]) -> u64 {
        let ms = number(ttl);
        assert!(ms > 0, "a node refuses a TTL of zero");
        now + ms * 1_000_000
    }
}

fn number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

fn has(text: &[u8], word: &str) -> bool {
    text.windows(word.len())
        .any(|window| window == word.as_bytes())
}

/// What the scripts' texts hash to.
const RELEASE_SHA: &[u8] = b"b70c2384248f88e6b75b9f89241a180f856ad852";
const EXTEND_SHA: &[u8] = b"36e94d1c6e02fcefaa7ee5d79eee614dbac55f10";

/// What makes a script the holder's own.
const COMPARISON: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then";
