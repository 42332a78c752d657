//! What the scripts are made of.

use std::time::Duration;

use locknode_engine::{Engine, EngineConfig, Moment, Peer, Session};
use locknode_testkit::{
    Action, Bug, ClientAction, Fault, GuardMode, Hook, Links, LockAction, Scenario, Setup, Trigger,
    Way,
};

/// Steps that wait for something, in one word.
pub(crate) trait Script {
    /// Something goes wrong so long after the `nth` time that something happens.
    fn breaks_on(self, hook: Hook, nth: u16, after: Duration, fault: Fault) -> Self;
    /// A client does something so long after the `nth` time that something happens.
    fn acts_on(
        self,
        hook: Hook,
        nth: u16,
        after: Duration,
        client: u8,
        act: impl Into<ClientAction>,
    ) -> Self;
    /// A client cannot reach these nodes from the start.
    fn cut<const N: usize>(self, client: u8, nodes: [u8; N]) -> Self;
    /// Client 0 reaches nodes 0, 1 and 2, client 1 reaches nodes 2, 3 and 4: node 2 alone stands between them.
    fn split(self) -> Self;
    /// The same with a mistake in it.
    fn with(&self, bug: Bug) -> Self;
    /// The same with another restart guard.
    fn guarded(&self, guard: GuardMode) -> Self;
    /// The same with another seed.
    fn seeded(&self, seed: u64) -> Self;
}

impl Script for Scenario {
    fn breaks_on(self, hook: Hook, nth: u16, after: Duration, fault: Fault) -> Self {
        self.step(Trigger::On { hook, nth, after }, Action::Fault(fault))
    }

    fn acts_on(
        self,
        hook: Hook,
        nth: u16,
        after: Duration,
        client: u8,
        act: impl Into<ClientAction>,
    ) -> Self {
        let what = Action::Client(client, act.into());
        self.step(Trigger::On { hook, nth, after }, what)
    }

    fn cut<const N: usize>(self, client: u8, nodes: [u8; N]) -> Self {
        self.at(
            Duration::ZERO,
            Fault::Cut(Links::between(client, nodes), Way::Both),
        )
    }

    fn split(self) -> Self {
        self.cut(0, [3, 4]).cut(1, [0, 1])
    }

    fn with(&self, bug: Bug) -> Self {
        let mut scenario = self.clone();
        scenario.setup.bug = Some(bug);
        scenario
    }

    fn guarded(&self, guard: GuardMode) -> Self {
        let mut scenario = self.clone();
        scenario.setup.guard = guard;
        scenario
    }

    fn seeded(&self, seed: u64) -> Self {
        let mut scenario = self.clone();
        scenario.setup.seed = seed;
        scenario
    }
}

/// The engine of one node, and one client of it.
pub(crate) struct OneNode {
    engine: Engine,
    session: Session,
}

impl OneNode {
    pub(crate) fn new(config: EngineConfig) -> Self {
        let now = Moment::default();
        let engine = Engine::new(config, now);
        let session = engine.connect(Peer::default(), now.time);
        let session = session.expect("room for a client");
        Self { engine, session }
    }

    /// The reply to a request, by its words.
    pub(crate) fn ask(&mut self, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let mut out = Vec::new();
        let mut batch = self.engine.batch(Moment::default());
        batch.execute(&mut self.session, &words, &mut out);
        let waits = batch.finish(&self.session, 1);
        assert!(waits.is_none(), "nothing here waits for a disk");
        String::from_utf8(out).expect("text")
    }
}

/// Five nodes with data directories and a longest TTL of four seconds, messages and disks that take a millisecond each.
pub(crate) fn setup() -> Setup {
    Setup {
        clients: 3,
        max_ttl: s(4),
        delay: (ms(1), ms(1)),
        sync: (ms(1), ms(1)),
        run_for: s(20),
        ..Setup::seeded(1)
    }
}

/// A world of [`setup`] in which client 0 reaches nodes 0, 1 and 2, and client 1 nodes 2, 3 and 4.
pub(crate) fn split() -> Scenario {
    Scenario::new(setup()).split()
}

/// The lock of all scripts, held until something ends it.
pub(crate) fn lock(ttl: Duration) -> LockAction {
    LockAction::new("k", ttl)
}

/// One link.
pub(crate) fn link(client: u8, node: u8) -> Links {
    Links::between(client, node)
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// At once: nothing comes between.
pub(crate) const NOW: Duration = Duration::ZERO;

/// When something has settled: a connection is open again, and nothing is under way.
pub(crate) const SOON: Duration = ms(30);
