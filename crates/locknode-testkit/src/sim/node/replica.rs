//! The replica that takes a node's place: it has heard of some commands, and keeps nothing.

use locknode_engine::durable::StartReason;
use locknode_engine::{Engine, EngineConfig, Moment, Peer, Session};

use super::{Run, SimNode, TABLES};
use crate::sim::oracle::Oracle;
use crate::span::SimTime;

impl SimNode {
    /// A command reaches the replica, which knows of nothing else.
    pub(crate) fn replicate(&mut self, now: SimTime, args: &[Vec<u8>]) {
        let moment = self.clocks.moment(now, &mut self.random);
        if let Some((engine, session)) = self.replica(moment) {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            let mut batch = engine.batch(moment);
            batch.execute(session, &args, &mut Vec::new());
            // A replica keeps nothing: no reply rests on it.
            let _ = batch.finish(session, 1);
        }
    }

    /// The replica takes the place of a node that is down; whether there is one.
    pub(crate) fn promote(&mut self, now: SimTime) -> bool {
        let moment = self.clocks.moment(now, &mut self.random);
        self.replica(moment);
        let Some((engine, _)) = self.replica.take() else {
            return false;
        };
        self.incarnation += 1;
        self.oracle = Oracle::default();
        self.run = Some(Run::new(engine, StartReason::GuardOff, now));
        true
    }

    /// The node's replica, if nodes have one.
    fn replica(&mut self, moment: Moment) -> Option<&mut (Engine, Session)> {
        if self.has_replica && self.replica.is_none() {
            let mut config = EngineConfig::new(self.random.next(), String::new());
            config.sizes = TABLES;
            let engine = Engine::new(config, moment);
            let session = engine.connect(Peer::default(), moment.time);
            self.replica = session.map(|session| (engine, session));
        }
        self.replica.as_mut()
    }
}
