//! Several fakes and clients of them.

use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, FakeNode, Flavour, Hold, On, Purpose};
use locknode_tests::patience::{eventually, eventually_async, in_time};
use redlock_client::{
    Builder, Clock, Error, Event, Guard, HeldKey, NodeView, Observer, Redlock, Released, Time,
};
use tokio::task::JoinHandle;

/// Fakes in the order in which a client has them.
pub(crate) struct Stage {
    fakes: Vec<FakeNode>,
}

impl Stage {
    /// That many plain fakes.
    pub(crate) async fn of(count: usize) -> Self {
        Self::of_flavour(count, Flavour::Redis7).await
    }

    /// That many fakes of a flavour.
    pub(crate) async fn of_flavour(count: usize, flavour: Flavour) -> Self {
        let mut fakes = Vec::new();
        for _ in 0..count {
            fakes.push(FakeNode::start_as(flavour).await);
        }
        Self { fakes }
    }

    /// That many plain fakes, and a client of them.
    pub(crate) async fn with_client(count: usize) -> (Self, Redlock) {
        let stage = Self::of(count).await;
        let redlock = stage.redlock();
        (stage, redlock)
    }

    /// The same with a client that is connected to all of them.
    pub(crate) async fn with_connected_client(count: usize) -> (Self, Redlock) {
        let stage = Self::of(count).await;
        let redlock = stage.connected().await;
        (stage, redlock)
    }

    /// The same with a client that gives up on a node soon.
    pub(crate) async fn with_impatient_client(count: usize) -> (Self, Redlock) {
        let stage = Self::of(count).await;
        let redlock = stage.impatient();
        (stage, redlock)
    }

    /// The same with a client whose clock the test moves.
    pub(crate) async fn with_clock(count: usize) -> (Self, MovableClock, Redlock) {
        let (stage, clock) = (Self::of(count).await, MovableClock::start());
        let redlock = stage.redlock_by(&clock);
        (stage, clock, redlock)
    }

    /// The same with a client whose events are recorded.
    pub(crate) async fn with_recorder(count: usize) -> (Self, Recorder, Redlock) {
        let (stage, recorder) = (Self::of(count).await, Recorder::default());
        let builder = stage.builder().observer(Arc::new(recorder.clone()));
        let redlock = builder.build().expect("a good configuration");
        (stage, recorder, redlock)
    }

    /// A client of all fakes, with time enough for a slow machine.
    pub(crate) fn redlock(&self) -> Redlock {
        self.builder().build().expect("a good configuration")
    }

    /// The same, connected to all of them: no node is late for the first lock.
    pub(crate) async fn connected(&self) -> Redlock {
        let redlock = self.redlock();
        wait_until_connected(&redlock).await;
        redlock
    }

    /// What [`Stage::redlock`] is built from.
    pub(crate) fn builder(&self) -> Builder {
        Redlock::builder()
            .nodes(self.fakes.iter().map(FakeNode::url))
            .node_timeout(AMPLE)
    }

    /// A client that gives up on a node soon.
    pub(crate) fn impatient(&self) -> Redlock {
        let builder = self.builder().node_timeout(SHORT);
        builder.build().expect("a good configuration")
    }

    /// A client whose clock the test moves.
    pub(crate) fn redlock_by(&self, clock: &MovableClock) -> Redlock {
        let builder = self.builder().clock(Arc::new(clock.clone()));
        builder.build().expect("a good configuration")
    }

    /// A lock that every node has.
    pub(crate) async fn lock(&self, redlock: &Redlock, key: &str) -> Guard {
        let guard = redlock.lock(key).ttl(LONG).acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("{key}: {error}"));
        self.wait_until_held(key, guard.token(), self.len()).await;
        guard
    }

    /// Releases the last lock, until no node has a key.
    pub(crate) async fn release(&self, guard: Guard) {
        drop(guard.release().await);
        self.wait_until_empty().await;
    }

    /// The tokens that hold the key, node by node.
    pub(crate) fn holders(&self, key: &str) -> Vec<Option<String>> {
        self.fakes.iter().map(|fake| fake.holder(key)).collect()
    }

    /// On how many nodes the token holds the key.
    pub(crate) fn held(&self, key: &str, token: impl ToString) -> usize {
        let token = Some(token.to_string());
        self.holders(key)
            .iter()
            .filter(|holder| **holder == token)
            .count()
    }

    /// How many such requests have come to all nodes.
    pub(crate) fn count(&self, on: impl Into<On>) -> usize {
        let on = on.into();
        self.fakes.iter().map(|fake| fake.count(on.clone())).sum()
    }

    /// Every token that a lock was asked for with, in the order of arrival on each node.
    pub(crate) fn tokens_asked(&self) -> Vec<Vec<String>> {
        let asked = |fake: &FakeNode| {
            let requests = fake.received().into_iter();
            requests
                .filter(|request| request.purpose == Purpose::Acquire)
                .map(|request| request.text(2))
                .collect()
        };
        self.fakes.iter().map(asked).collect()
    }

    /// Gives the key to somebody else on some nodes, for a minute.
    pub(crate) fn held_by_other(&self, key: &str, nodes: impl IntoIterator<Item = usize>) {
        for node in nodes {
            self.fakes[node].put(key, "other", Duration::from_secs(60));
        }
    }

    /// Makes some nodes answer such requests in that way from now on.
    pub(crate) fn always(
        &self,
        nodes: impl IntoIterator<Item = usize>,
        on: impl Into<On>,
        behaviour: &Behaviour,
    ) {
        let on = on.into();
        for node in nodes {
            self.fakes[node].always(on.clone(), behaviour.clone());
        }
    }

    /// Lets every node answer honestly again.
    pub(crate) fn behave(&self) {
        self.fakes.iter().for_each(FakeNode::behave);
    }

    /// Takes every node down.
    pub(crate) async fn go_down(&self) {
        for fake in &self.fakes {
            fake.go_down().await;
        }
    }

    /// Restarts some nodes, which forget their keys.
    pub(crate) async fn restart(&self, nodes: impl IntoIterator<Item = usize>) {
        for node in nodes {
            self.fakes[node].crash().await;
            self.fakes[node].come_back().await;
        }
    }

    /// Takes the key away from every node.
    pub(crate) fn remove(&self, key: &str) {
        self.fakes.iter().for_each(|fake| fake.remove(key));
    }

    /// Whether no node has a key.
    pub(crate) fn is_empty(&self) -> bool {
        self.fakes.iter().all(|fake| fake.keys().is_empty())
    }

    /// Waits until that many nodes have the key by that token.
    pub(crate) async fn wait_until_held(&self, key: &str, token: impl ToString, count: usize) {
        let token = token.to_string();
        let what = format!("{count} nodes hold {key}, now {:?}", self.holders(key));
        eventually(&what, || self.held(key, &token) == count).await;
    }

    /// Waits until no node has a key.
    pub(crate) async fn wait_until_empty(&self) {
        for fake in &self.fakes {
            fake.wait_until_empty().await;
        }
    }

    /// Lets time pass on every node.
    pub(crate) fn pass_time(&self, by: Duration) {
        for fake in &self.fakes {
            fake.pass_time(by);
        }
    }

    /// What every node was sent, for people.
    pub(crate) fn story(&self) -> String {
        self.fakes
            .iter()
            .map(|fake| format!("{}:\n{}", fake.address(), fake.story()))
            .collect()
    }
}

impl Deref for Stage {
    type Target = [FakeNode];

    fn deref(&self) -> &[FakeNode] {
        &self.fakes
    }
}

/// Requests that several nodes keep back, or their replies.
pub(crate) struct Holds(Vec<Hold>);

impl Holds {
    /// Has each of the nodes keep something back.
    pub(crate) fn on(fakes: &[FakeNode], hold: impl Fn(&FakeNode) -> Hold) -> Self {
        Self(fakes.iter().map(hold).collect())
    }

    /// Waits until each node keeps something back.
    pub(crate) async fn caught(&self) {
        for hold in &self.0 {
            hold.caught().await;
        }
    }

    /// Lets everything go.
    pub(crate) fn release(&self) {
        self.0.iter().for_each(Hold::release);
    }
}

impl Deref for Holds {
    type Target = [Hold];

    fn deref(&self) -> &[Hold] {
        &self.0
    }
}

/// A client's clock: real time, and what the test adds. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MovableClock {
    started: Instant,
    added_ns: Arc<AtomicU64>,
}

impl MovableClock {
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            added_ns: Arc::default(),
        }
    }

    /// Moves the clock on, as a suspended machine finds it when it wakes.
    pub(crate) fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).expect("a few years at most");
        self.added_ns.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Time {
        let added = Duration::from_nanos(self.added_ns.load(Ordering::SeqCst));
        Time::from_nanos(1) + self.started.elapsed() + added
    }
}

/// Records the names of events, each with its key or address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    events: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Recorder {
    /// How many events of that name there were.
    pub(crate) fn count(&self, name: &str) -> usize {
        let events = self.events.lock().expect("no panic");
        events.iter().filter(|(event, _)| *event == name).count()
    }

    /// All of them, for people.
    pub(crate) fn story(&self) -> String {
        format!("{:?}", self.events.lock().expect("no panic"))
    }
}

impl Observer for Recorder {
    fn on_event(&self, event: &Event<'_>) {
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let entry = match event {
            Event::Acquired { key, .. } => ("acquired", text(key)),
            Event::AcquireFailed { key, .. } => ("acquire failed", text(key)),
            Event::Renewed { key, .. } => ("renewed", text(key)),
            Event::RenewFailed { key, .. } => ("renew failed", text(key)),
            Event::Lost { key, .. } => ("lost", text(key)),
            Event::Released { key, .. } => ("released", text(key)),
            Event::NodeUp { address, .. } => ("node up", (*address).to_owned()),
            Event::NodeDown { address, .. } => ("node down", (*address).to_owned()),
            _ => ("other", String::new()),
        };
        self.events.lock().expect("no panic").push(entry);
    }
}

/// A lock that outlives the test.
pub(crate) fn acquire(
    redlock: &Redlock,
    key: &str,
) -> impl Future<Output = Result<Guard, Error>> + use<> {
    redlock.lock(key).ttl(LONG).acquire()
}

/// The same, tried for so long.
pub(crate) fn acquire_within(
    redlock: &Redlock,
    key: &str,
    wait: Duration,
) -> impl Future<Output = Result<Guard, Error>> + use<> {
    redlock.lock(key).ttl(LONG).wait_for(wait).acquire()
}

/// The same, tried once.
pub(crate) fn try_acquire(
    redlock: &Redlock,
    key: &str,
) -> impl Future<Output = Result<Option<Guard>, Error>> + use<> {
    redlock.lock(key).ttl(LONG).try_acquire()
}

/// What a node that holds a key says of it.
pub(crate) fn held_key(view: &NodeView) -> &HeldKey {
    let held = view.answer.as_ref().expect("an answer");
    held.as_ref().expect("a key that is held")
}

/// The outcome of a task that neither hangs nor panics.
pub(crate) async fn joined<T>(what: &str, task: JoinHandle<T>) -> T {
    in_time(what, task).await.expect("no panic")
}

/// Waits until the client is connected to all of its nodes.
pub(crate) async fn wait_until_connected(redlock: &Redlock) {
    eventually_async("connected to all nodes", async || {
        let nodes = redlock.nodes().await.expect("a list");
        nodes.iter().all(|node| node.state.is_ok())
    })
    .await;
}

/// Tries once for a lock that too few nodes can grant.
pub(crate) async fn finds_no_quorum(redlock: &Redlock, key: &str) -> Error {
    let tried = redlock.lock(key).ttl(LONG).try_acquire().await;
    let error = tried.expect_err("too few nodes");
    assert!(error.is_no_quorum(), "{error}");
    error
}

/// Whether a lock that a majority held was let go. Nodes that were late may never have had it and be the first to
/// answer; but every majority of answers has one of a node that had it.
pub(crate) fn is_let_go(released: &Released) -> bool {
    released.is_free() && released.confirmed() > 0
}

/// A TTL that no test outlives.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// More than any answer takes, less than a TTL.
pub(crate) const AMPLE: Duration = Duration::from_secs(5);

/// Less than a person notices, more than an honest node in this process takes.
pub(crate) const SHORT: Duration = Duration::from_millis(400);
