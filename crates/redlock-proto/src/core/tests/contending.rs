//! Clients that start at the same moment: one of them has the lock in the end, and "held" is said only of a holder.

use std::collections::BTreeMap;
use std::time::Duration;

use locknode_resp::Decoder;

use crate::cause::Cause;
use crate::core::tests::random::Random;
use crate::core::tests::server::Server;
use crate::core::tests::stage::{Stage, id, ms, terms};
use crate::core::{Core, CoreConfig, Dialect, Login, Notice};
use crate::drift::Drift;
use crate::error_kind::ErrorKind;
use crate::policy::RetryPolicy;
use crate::quorum::NodeId;
use crate::time::{Time, nanos};

/// Hosts and nodes in zones: near ones answer at once, others take their time.
struct Zones {
    random: Random,
    now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    seq: u64,
    servers: Vec<Server>,
    is_down: Vec<bool>,
    hosts: Vec<Core<Random>>,
    /// Which zone a node is in; a host is in the zone of its number.
    zones: Vec<usize>,
    outcomes: Vec<Option<Outcome>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Held,
    Failed(ErrorKind),
}

enum Event {
    Opened(usize, NodeId),
    Refused(usize, NodeId),
    ToNode(usize, usize, Vec<u8>),
    ToHost(usize, usize, Vec<u8>),
    Timer(usize),
}

impl Zones {
    fn new(seed: u64, hosts: usize, zones: &[usize], dialect: Dialect) -> Self {
        let mut random = Random::new(seed);
        let config = CoreConfig {
            logins: vec![Login::default(); zones.len()],
            drift: Drift::default(),
            connect_timeout: ms(1_000),
        };
        let host = |_| Core::new(config.clone(), Random::new(random.next())).unwrap();
        let all: Vec<Core<Random>> = (0..hosts).map(host).collect();
        Self {
            random,
            now: 1_000_000_000,
            queue: BTreeMap::new(),
            seq: 0,
            servers: vec![Server::new(dialect); zones.len()],
            is_down: vec![false; zones.len()],
            outcomes: vec![None; hosts],
            hosts: all,
            zones: zones.to_vec(),
        }
    }

    /// All hosts try once, at the same moment, connections included; what each is told.
    fn run(mut self) -> Vec<Outcome> {
        for host in 0..self.hosts.len() {
            let mut terms = terms(ms(10_000));
            terms.timeout = ms(250);
            self.hosts[host].acquire(Time::from_nanos(self.now), terms);
            self.turn(host);
        }
        while self.outcomes.iter().any(Option::is_none) {
            let ((at, _), event) = self.queue.pop_first().expect("somebody is still waiting");
            assert!(at < 60_000_000_000, "it ends");
            self.now = at;
            self.event(event);
        }
        self.outcomes.into_iter().flatten().collect()
    }

    fn event(&mut self, event: Event) {
        let now = Time::from_nanos(self.now);
        let host = match event {
            Event::Opened(host, node) => {
                self.hosts[host].connected(now, node);
                host
            }
            Event::Refused(host, node) => {
                let cause = Cause::Unreachable("down".into());
                self.hosts[host].disconnected(now, node, cause);
                host
            }
            Event::ToNode(host, node, mut bytes) => {
                let server = &mut self.servers[node];
                let replies = server.serve(self.now, &mut bytes, &mut Decoder::new());
                let delay = self.delay(host, node);
                return self.push(delay, Event::ToHost(host, node, replies));
            }
            Event::ToHost(host, node, bytes) => {
                self.hosts[host].received(now, id(node), &bytes);
                host
            }
            Event::Timer(host) => {
                self.hosts[host].on_time(now);
                host
            }
        };
        self.turn(host);
    }

    fn turn(&mut self, host: usize) {
        while let Some(notice) = self.hosts[host].poll_notice() {
            match notice {
                Notice::Connect(node) => {
                    let delay = 2 * self.delay(host, node.index());
                    let event = match self.is_down[node.index()] {
                        true => Event::Refused(host, node),
                        false => Event::Opened(host, node),
                    };
                    self.push(delay, event);
                }
                Notice::Acquired { .. } => self.outcomes[host] = Some(Outcome::Held),
                Notice::NotAcquired { kind, .. } => {
                    self.outcomes[host] = Some(Outcome::Failed(kind));
                }
                _ => {}
            }
        }
        for node in 0..self.zones.len() {
            let out = std::mem::take(self.hosts[host].output(id(node)).unwrap());
            if !out.is_empty() {
                let delay = self.delay(host, node);
                self.push(delay, Event::ToNode(host, node, out));
            }
        }
        let deadline = self.hosts[host].next_deadline().as_nanos();
        if deadline != u64::MAX {
            let at = deadline.max(self.now);
            self.seq += 1;
            self.queue.insert((at, self.seq), Event::Timer(host));
        }
    }

    /// A constant for each pair, so that what is sent first arrives first, and a little that belongs to the round.
    fn delay(&mut self, host: usize, node: usize) -> u64 {
        match self.zones[node] == host {
            true => nanos(Duration::from_micros(100)),
            false => nanos(ms(10)),
        }
    }

    fn push(&mut self, delay: u64, event: Event) {
        self.seq += 1;
        // Later than what was sent before on the same way, by less than anything here takes.
        let at = self.now + delay + self.random.next() % 1_000;
        self.queue.insert((at, self.seq), event);
    }
}

/// How many of the rounds end without a holder.
fn without_holder(rounds: u64, hosts: usize, zones: &[usize], down: &[usize]) -> usize {
    let dialects = [
        Dialect::Script,
        Dialect::DelEx,
        Dialect::DelIfEq,
        Dialect::Lock,
    ];
    let mut failed = 0;
    for seed in 0..rounds {
        for dialect in dialects {
            let mut world = Zones::new(seed, hosts, zones, dialect);
            for node in down {
                world.is_down[*node] = true;
            }
            let outcomes = world.run();
            let held = |outcome: &&Outcome| **outcome == Outcome::Held;
            let count = outcomes.iter().filter(held).count();
            assert!(count <= 1, "two holders: {outcomes:?}, seed {seed}");
            failed += usize::from(count == 0);
        }
    }
    failed
}

/// Three hosts in three zones, nodes near each of them: the first round of votes is always split.
#[test]
fn of_hosts_in_several_zones_that_start_together_one_gets_the_lock() {
    assert_eq!(without_holder(100, 3, &[0, 0, 1, 1, 2], &[]), 0);
}

#[test]
fn of_two_hosts_one_gets_the_lock_although_a_node_is_down() {
    assert_eq!(without_holder(100, 2, &[0, 0, 1, 1, 2], &[4]), 0);
}

#[test]
fn of_many_hosts_that_start_together_one_gets_the_lock() {
    assert_eq!(without_holder(10, 20, &[0, 1, 2, 3, 4], &[]), 0);
}

#[test]
fn held_is_said_of_one_holder_with_a_majority_and_of_nobody_else() {
    let rows: [(&[&str], ErrorKind); 6] = [
        (&["a", "a", "a", "a", "a"], ErrorKind::Busy),
        (&["a", "a", "a", "", ""], ErrorKind::Busy),
        (&["a", "a", "b", "a", "b"], ErrorKind::Busy),
        (&["a", "a", "b", "b", "c"], ErrorKind::Contended),
        (&["a", "b", "c", "", ""], ErrorKind::Contended),
        (&["a", "b", "c", "d", "e"], ErrorKind::Contended),
    ];
    for (holders, expected) in rows {
        for dialect in [Dialect::Script, Dialect::Lock] {
            let mut stage = Stage::new(5, dialect);
            for (node, token) in holders.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
                stage.put(node, token, 60_000);
            }
            stage.acquire(terms(ms(60_000)));
            assert_eq!(stage.outcome(), Some(expected), "{holders:?}");
            let acquires = stage.servers[0].counts.acquires;
            if dialect == Dialect::Lock && expected == ErrorKind::Busy {
                assert_eq!(acquires, 1, "a lock that is held is tried for once");
            }
        }
    }
}

/// The exit code of a command follows from it, so it is the same whatever the order of the answers.
#[test]
fn what_votes_amount_to_does_not_depend_on_their_order() {
    // What three nodes say: held, or an error; in every order.
    for (errors, expected) in [(1, ErrorKind::Busy), (2, ErrorKind::NoQuorum)] {
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut stage = Stage::new(3, Dialect::Script);
            for node in 0..3 - errors {
                stage.put(node, "a", 60_000);
            }
            for node in 3 - errors..3 {
                stage.servers[node].failing_until = u64::MAX;
            }
            stage.acquire(terms(ms(60_000)));
            for _ in 0..4 {
                order.iter().for_each(|node| stage.answer(*node));
            }
            assert_eq!(
                stage.outcome(),
                Some(expected),
                "{errors} errors, {order:?}"
            );
        }
    }
}

/// A free lock is acquired in one round trip; when it is held, a majority is asked once by whom.
#[test]
fn neither_a_free_lock_nor_a_held_one_costs_more_than_is_needed() {
    let mut stage = Stage::new(5, Dialect::Lock);
    stage.acquire(terms(ms(60_000)));
    for node in 0..5 {
        let requests = stage.sent(node);
        assert_eq!(requests.iter().filter(|byte| **byte == b'*').count(), 1);
        let replies = stage.serve(node, requests);
        stage.hear(node, &replies);
        assert!(stage.sent(node).is_empty(), "nothing after the answer");
    }
    assert!(stage.told("Acquired"));
    stage.notices.clear();
    stage.acquire(terms(ms(60_000)));
    let mut all = Vec::new();
    for _ in 0..4 {
        for node in 0..5 {
            let requests = stage.sent(node);
            all.extend_from_slice(&requests);
            let replies = stage.serve(node, requests);
            stage.hear(node, &replies);
        }
    }
    let count = |name: &[u8]| all.windows(name.len()).filter(|it| *it == name).count();
    assert_eq!((count(b"LOCK.ACQUIRE"), count(b"GET")), (5, 3));
    assert_eq!(stage.outcome(), Some(ErrorKind::Busy));
}

/// The wait is for the whole: who waits is not told that nobody holds it when the wait is over.
#[test]
fn a_wait_that_ends_says_that_the_lock_was_held_all_the_time() {
    let mut stage = Stage::new(3, Dialect::Script);
    (0..3).for_each(|node| stage.put(node, "a", 60_000));
    let mut terms = terms(ms(60_000));
    terms.retry = RetryPolicy::wait_for(ms(300)).backoff(ms(10), ms(50));
    stage.acquire(terms);
    assert_eq!(stage.outcome(), Some(ErrorKind::Busy));
}

impl Stage {
    /// Lets everything go its way for ten seconds, or until it is known why the lock was not had.
    fn outcome(&mut self) -> Option<ErrorKind> {
        for _ in 0..10_000 {
            self.exchange();
            if let Some(kind) = self.refused() {
                return Some(kind);
            }
            self.pass(ms(1));
        }
        None
    }
}
