//! What clients were told, and what must therefore not happen: a model of clients, not of the node.

use std::collections::BTreeMap;
use std::time::Duration;

use locknode_tests::{Answer, StoredNode};

/// What clients hold and know, by their own clocks, which run true.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises {
    now: Duration,
    held: BTreeMap<String, Promise>,
    /// The highest counter told, by key.
    counters: BTreeMap<String, u64>,
    db: String,
}

#[derive(Clone, Debug)]
struct Promise {
    token: String,
    /// `None`: until it is released.
    until: Option<Duration>,
}

impl Promises {
    /// Sends a request that is answered at once or not at all, and notes what it means for those who got the reply.
    pub(crate) fn send(&mut self, node: &mut StoredNode, request: &str) -> Option<String> {
        let words: Vec<&str> = request.split(' ').collect();
        let reply = match node.send(request) {
            Answer::Reply(reply) => Some(reply),
            Answer::Withheld(_) | Answer::Lost => None,
        };
        self.note(&words, reply.as_deref());
        reply
    }

    /// Sends a request that is answered by OK at once.
    #[track_caller]
    pub(crate) fn expect_ok(&mut self, node: &mut StoredNode, request: &str) {
        assert_eq!(
            self.send(node, request).as_deref(),
            Some("+OK"),
            "{request}"
        );
    }

    /// Time passes.
    pub(crate) fn advance(&mut self, node: &mut StoredNode, by: Duration) {
        self.now += by;
        node.advance(by);
    }

    /// The holder of a key has let it go.
    pub(crate) fn forget(&mut self, key: &str) {
        self.held.remove(key);
    }

    /// What a new run of the node must not do: grant what is promised, tell a counter again.
    pub(crate) fn check_start(&self, node: &mut StoredNode, name: &str) {
        let left = node.quarantine_left();
        node.advance(left.unwrap_or_default());
        let now = self.now + left.unwrap_or_default();
        // It has to be there, under its token, unless the wait outlasts it.
        for (key, promise) in &self.held {
            if promise.until.is_some_and(|until| until <= now) {
                continue;
            }
            let (db, key) = key.split_once('/').unwrap_or(("0", key));
            let _ = node.send(&format!("SELECT {db}"));
            let want = format!("${} {}", promise.token.len(), promise.token);
            let got = node.send(&format!("GET {key}"));
            assert_eq!(
                got,
                Answer::Reply(want),
                "{name}: {key} was promised: {promise:?} at {now:?}"
            );
        }
        let _ = node.send("SELECT 0");
        for (key, counter) in &self.counters {
            let Answer::Reply(reply) = node.send(&format!("LOCK.ACQUIRE {key} promise 1")) else {
                panic!("{name}: {key} is not answered");
            };
            let told = crate::fence(&reply);
            let is_granted = reply.starts_with("*3 :1");
            assert!(
                told >= *counter + u64::from(is_granted),
                "{name}: {key}: {reply} after {counter}"
            );
        }
    }

    fn note(&mut self, words: &[&str], reply: Option<&str>) {
        let key = |name: &str| match &self.db[..] {
            "" | "0" => name.to_owned(),
            db => format!("{db}/{name}"),
        };
        let is_granted =
            reply.is_some_and(|it| matches!(it, "+OK" | ":1") || it.starts_with("*3 :1"));
        let ttl = |at: usize| {
            words
                .get(at)
                .and_then(|it| it.parse().ok())
                .map(Duration::from_millis)
        };
        match words {
            ["SELECT", db] => self.db = (*db).to_owned(),
            ["FLUSHDB"] => {
                let (db, prefix) = (self.db.clone(), format!("{}/", self.db));
                self.held.retain(|key, _| {
                    if db.is_empty() || db == "0" {
                        key.contains('/')
                    } else {
                        !key.starts_with(&prefix)
                    }
                });
            }
            ["DEL", name] | ["LOCK.RELEASE", name, _] => {
                // Who asks for it relies on it no more, whatever the answer.
                self.held.remove(&key(name));
            }
            ["SET", name, token, ..] => {
                let at = words.iter().position(|it| *it == "PX").map(|at| at + 1);
                let has_nx = words.contains(&"NX");
                self.grant(key(name), token, at.and_then(ttl), is_granted, !has_nx);
            }
            ["LOCK.ACQUIRE", name, token, ..] => {
                if let Some(reply) = reply.filter(|it| it.starts_with('*')) {
                    self.counters.insert(key(name), crate::fence(reply));
                }
                self.grant(key(name), token, ttl(3), is_granted, false);
            }
            ["LOCK.EXTEND", name, token, _] => {
                self.grant(key(name), token, ttl(3), is_granted, true);
            }
            ["PEXPIRE", name, _] => self.extend(&key(name), ttl(2), is_granted),
            ["PERSIST", name] => self.extend(&key(name), None, is_granted),
            _ => panic!("a request that the model does not know: {words:?}"),
        }
    }

    /// A grant that was told, or, when it changes a lock that may be there, one of which nothing is known: whoever held
    /// the key cannot rely on it any more.
    fn grant(
        &mut self,
        key: String,
        token: &str,
        ttl: Option<Duration>,
        is_granted: bool,
        overwrites: bool,
    ) {
        let until = ttl.map(|ttl| self.now + ttl);
        if is_granted {
            let token = token.to_owned();
            self.held.insert(key, Promise { token, until });
        } else if overwrites {
            self.held.remove(&key);
        }
    }

    fn extend(&mut self, key: &str, ttl: Option<Duration>, is_granted: bool) {
        let until = ttl.map(|ttl| self.now + ttl);
        match self.held.get_mut(key) {
            Some(promise) if is_granted => promise.until = until,
            _ => {
                self.held.remove(key);
            }
        }
    }
}
