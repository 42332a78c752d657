//! Five nodes, clients that count votes as Redlock does, and the windows in which they believe in their locks.

use std::time::Duration;

use locknode_tests::{Answer, NodeSettings, StoredNode};

/// Five nodes and what clients were told of them. Clients' clocks run true.
#[derive(Debug)]
pub(crate) struct Five {
    pub(crate) nodes: Vec<StoredNode>,
    now: Duration,
    windows: Vec<Window>,
}

/// From when until when a client may rely on its lock.
#[derive(Clone, Debug)]
struct Window {
    key: String,
    token: String,
    start: Duration,
    end: Duration,
}

/// An acquisition under way: the votes so far, and when the first byte was sent.
#[derive(Debug)]
pub(crate) struct Attempt {
    key: String,
    token: String,
    ttl: Duration,
    began: Duration,
    votes: usize,
}

impl Five {
    /// Five nodes at their first start.
    pub(crate) fn first_start(settings: &NodeSettings) -> Self {
        let node = |_| StoredNode::first_start(settings.clone());
        Self {
            nodes: (0..5).map(node).collect(),
            now: Duration::ZERO,
            windows: Vec::new(),
        }
    }

    /// Time passes for all nodes and clients.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.now += by;
        self.nodes.iter_mut().for_each(|node| node.advance(by));
    }

    /// A client begins to acquire.
    pub(crate) fn attempt(&self, key: &str, token: &str, ttl: Duration) -> Attempt {
        Attempt {
            key: key.to_owned(),
            token: token.to_owned(),
            ttl,
            began: self.now,
            votes: 0,
        }
    }

    /// One node is asked; whether it granted, and the client knows.
    pub(crate) fn ask(&mut self, node: usize, attempt: &mut Attempt) -> bool {
        let Attempt {
            key, token, ttl, ..
        } = &attempt;
        let request = format!("SET {key} {token} NX PX {}", ttl.as_millis());
        let has_vote = self.nodes[node].send(&request) == Answer::Reply("+OK".to_owned());
        attempt.votes += usize::from(has_vote);
        has_vote
    }

    /// The client counts; whether it believes that it holds the lock now.
    pub(crate) fn conclude(&mut self, attempt: &Attempt) -> bool {
        let validity = attempt.ttl - attempt.ttl / 100 - Duration::from_millis(2);
        let end = attempt.began + validity;
        let holds = attempt.votes >= 3 && end > self.now;
        if holds {
            self.windows.push(Window {
                key: attempt.key.clone(),
                token: attempt.token.clone(),
                start: self.now,
                end,
            });
        }
        holds
    }

    /// A client asks some nodes at once; whether it believes that it holds the lock.
    pub(crate) fn acquire(
        &mut self,
        key: &str,
        token: &str,
        ttl: Duration,
        nodes: impl IntoIterator<Item = usize>,
    ) -> bool {
        let mut attempt = self.attempt(key, token, ttl);
        for node in nodes {
            self.ask(node, &mut attempt);
        }
        self.conclude(&attempt)
    }

    /// Whether no two windows of one key overlap.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.windows.iter().enumerate().all(|(index, a)| {
            let mut earlier = self.windows[..index].iter();
            earlier.all(|b| a.key != b.key || a.token == b.token || a.start >= b.end)
        })
    }
}
