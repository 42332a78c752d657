//! A core and its nodes under a test's hand: nothing moves unless the test says so.

use std::time::Duration;

use locknode_resp::{Decoder, encode_command};

use crate::cause::Cause;
use crate::core::tests::random::Random;
use crate::core::tests::server::Server;
use crate::core::{Core, CoreConfig, Dialect, LockTerms, Login, Look, Notice, OpId};
use crate::drift::Drift;
use crate::error_kind::ErrorKind;
use crate::policy::RetryPolicy;
use crate::quorum::NodeId;
use crate::time::Time;
use crate::token::Token;

pub(super) struct Stage {
    pub(super) core: Core<Random>,
    pub(super) now: Time,
    pub(super) servers: Vec<Server>,
    pub(super) notices: Vec<Notice>,
}

impl Stage {
    /// A core with connections to `nodes` nodes that are ready.
    pub(super) fn new(nodes: usize, dialect: Dialect) -> Self {
        let mut stage = Self::unconnected(nodes, dialect);
        stage.core.look(stage.now, None, ms(100));
        for node in 0..nodes {
            stage.core.connected(stage.now, id(node));
        }
        stage.exchange();
        stage.notices.clear();
        assert_eq!(stage.core.operations(), 0, "the look is over");
        stage
    }

    pub(super) fn unconnected(nodes: usize, dialect: Dialect) -> Self {
        let config = CoreConfig {
            logins: vec![Login::default(); nodes],
            drift: Drift::new(0, Duration::ZERO),
            connect_timeout: ms(300),
        };
        Self {
            core: Core::new(config, Random::new(7)).unwrap(),
            now: Time::from_nanos(1_000_000_000),
            servers: vec![Server::new(dialect); nodes],
            notices: Vec::new(),
        }
    }

    /// Lets time pass, with whatever has to happen meanwhile.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.core.next_deadline() <= end {
            self.now = self.core.next_deadline().max(self.now);
            self.core.on_time(self.now);
            self.listen();
        }
        self.now = end;
    }

    /// What the core sends to a node next.
    pub(super) fn sent(&mut self, node: usize) -> Vec<u8> {
        std::mem::take(self.core.output(id(node)).unwrap())
    }

    /// The node's replies to requests.
    pub(super) fn serve(&mut self, node: usize, mut requests: Vec<u8>) -> Vec<u8> {
        let now = self.now.as_nanos();
        self.servers[node].serve(now, &mut requests, &mut Decoder::new())
    }

    pub(super) fn hear(&mut self, node: usize, replies: &[u8]) {
        self.core.received(self.now, id(node), replies);
        self.listen();
    }

    /// The node answers what it was sent so far; false if that is nothing.
    pub(super) fn answer_once(&mut self, node: usize) -> bool {
        let requests = self.sent(node);
        if requests.is_empty() {
            return false;
        }
        let replies = self.serve(node, requests);
        self.hear(node, &replies);
        true
    }

    /// The node answers all that it is sent.
    pub(super) fn answer(&mut self, node: usize) {
        while self.answer_once(node) {}
    }

    /// Somebody else acquires the key on this node.
    pub(super) fn put(&mut self, node: usize, token: &str, ttl_ms: u64) {
        let ttl = ttl_ms.to_string();
        let token = token.as_bytes();
        let mut request = Vec::new();
        let args: [&[u8]; 6] = [b"SET", KEY, token, b"NX", b"PX", ttl.as_bytes()];
        encode_command(&mut request, &args);
        self.serve(node, request);
    }

    /// All nodes answer all that they are sent.
    pub(super) fn exchange(&mut self) {
        for _ in 0..4 {
            for node in 0..self.servers.len() {
                self.answer(node);
            }
        }
    }

    pub(super) fn break_off(&mut self, node: usize) {
        self.core
            .disconnected(self.now, id(node), Cause::Disconnected);
        self.listen();
    }

    /// Cuts the node off so that it is known to be down.
    pub(super) fn take_down(&mut self, node: usize) {
        self.break_off(node);
        self.break_off(node);
    }

    /// The connection that the core asked for is there.
    pub(super) fn reconnect(&mut self, node: usize) {
        self.core.connected(self.now, id(node));
        self.listen();
    }

    pub(super) fn acquire(&mut self, terms: LockTerms) -> OpId {
        let op = self.core.acquire(self.now, terms);
        self.listen();
        op
    }

    /// A lock that all nodes grant.
    pub(super) fn lock(&mut self, terms: LockTerms) -> OpId {
        let op = self.acquire(terms);
        self.exchange();
        assert!(self.told("Acquired"), "{:?}", self.notices);
        self.notices.clear();
        op
    }

    /// Extends a lock, and all nodes answer.
    pub(super) fn extend(&mut self, op: OpId, ttl: Duration) {
        self.core.extend(self.now, op, ttl);
        self.exchange();
    }

    /// Releases a lock, and all nodes answer.
    pub(super) fn release(&mut self, op: OpId) {
        self.core.release(self.now, op);
        self.exchange();
    }

    pub(super) fn listen(&mut self) {
        while let Some(notice) = self.core.poll_notice() {
            self.notices.push(notice);
        }
    }

    /// Whether a notice of this name came.
    pub(super) fn told(&self, name: &str) -> bool {
        let is = |notice: &Notice| format!("{notice:?}").starts_with(name);
        self.notices.iter().any(is)
    }

    /// What the first notice that has it says.
    pub(super) fn find<'a, T>(&'a self, of: impl FnMut(&'a Notice) -> Option<T>) -> Option<T> {
        self.notices.iter().find_map(of)
    }

    /// The lock that was acquired.
    pub(super) fn acquired(&self) -> Option<(OpId, Token)> {
        self.find(|notice| match notice {
            Notice::Acquired { op, token, .. } => Some((*op, *token)),
            _ => None,
        })
    }

    /// Why a lock was not acquired.
    pub(super) fn refused(&self) -> Option<ErrorKind> {
        self.find(|notice| match notice {
            Notice::NotAcquired { kind, .. } => Some(*kind),
            _ => None,
        })
    }

    /// What became of an extension.
    pub(super) fn extended(&self) -> Option<Result<Time, ErrorKind>> {
        self.find(|notice| match notice {
            Notice::Extended { result, .. } => Some(*result),
            _ => None,
        })
    }

    /// What the nodes replied to a look.
    pub(super) fn looked(&self) -> Option<&[Look]> {
        self.find(|notice| match notice {
            Notice::Looked { looks, .. } => Some(&looks[..]),
            _ => None,
        })
    }

    /// How many nodes hold the key.
    pub(super) fn holders(&self) -> usize {
        let now = self.now.as_nanos();
        self.servers
            .iter()
            .filter(|server| server.held(now, KEY).is_some())
            .count()
    }
}

pub(super) fn terms(ttl: Duration) -> LockTerms {
    LockTerms {
        key: KEY.into(),
        ttl,
        timeout: ms(100),
        retry: RetryPolicy::tries(1),
        renew: None,
        hold_at_least: Duration::ZERO,
        label: None,
    }
}

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(super) fn id(node: usize) -> NodeId {
    NodeId::new(node).unwrap()
}

pub(super) const KEY: &[u8] = b"key";
