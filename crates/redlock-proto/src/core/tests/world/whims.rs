//! What callers take into their heads, what goes wrong, and how a run ends.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Event, MS, World};
use crate::core::LockTerms;
use crate::core::OpId;
use crate::core::link::Phase;
use crate::core::tests::caller::{Stage, Thing, terms};
use crate::drift::Drift;
use crate::time::nanos;

impl World {
    /// A caller does something and thinks of the next time.
    pub(super) fn act(&mut self, client: usize) -> Result<(), String> {
        if self.is_calm {
            return self.finish(client);
        }
        let pause = self.random.below(nanos(MS * 90));
        self.schedule(pause, Event::Act(client));
        if self.callers[client].things.len() < 3 && self.random.chance(50) {
            self.begin(client);
        } else if !self.callers[client].things.is_empty() {
            let i = self.random.index(self.callers[client].things.len());
            let thing = self.callers[client].things[i].clone();
            self.go_on(client, thing);
        }
        self.turn(client)
    }

    fn begin(&mut self, client: usize) {
        let now = self.callers[client].local(self.now);
        let (terms, bound) = terms(&mut self.random, self.keys, self.ttls);
        let slack = SLACK * 5;
        let mut thing = Thing {
            op: OpId {
                slot: 0,
                generation: 0,
            },
            terms: terms.clone(),
            stage: Stage::Acquiring,
            is_adopted: false,
            token: None,
            since: now,
            due: self.now + nanos(bound + slack),
            paused_before: self.callers[client].paused,
            extension: None,
        };
        let answer_due = self.now + nanos(terms.timeout + slack);
        let core = &mut self.callers[client].core;
        match self.random.below(20) {
            0 => {
                let key = self.random.chance(80).then(|| terms.key.clone());
                thing.op = core.look(now, key, terms.timeout);
                (thing.stage, thing.due) = (Stage::Looking, answer_due);
            }
            1..=3 if !self.leaked.is_empty() => {
                let (old, token) = self.leaked.swap_remove(0);
                thing.terms.key = old.key;
                thing.due = answer_due;
                match self.random.chance(60) {
                    true => {
                        thing.op = core.adopt(now, thing.terms.clone(), token);
                        thing.is_adopted = true;
                    }
                    false => {
                        let looking = LockTerms::looking(thing.terms.key.clone(), terms.timeout);
                        thing.op = core.release_token(now, looking, token);
                        self.excused.remove(token.as_ref());
                        (thing.stage, thing.token) = (Stage::Releasing, Some(token));
                    }
                }
            }
            _ => thing.op = core.acquire(now, terms),
        }
        self.say(|| format!("client {client} begins {thing:?}"));
        self.callers[client].things.push(thing);
    }

    fn go_on(&mut self, client: usize, thing: Thing) {
        let op = thing.op;
        match (thing.stage, self.random.below(10)) {
            (Stage::Acquiring, 0) => self.drop_it(client, op),
            (Stage::Held, 0..=1) => self.extend(client, &thing),
            (Stage::Held | Stage::Lost, 2..=4) => self.release(client, op),
            (Stage::Held | Stage::Lost, 5) => self.drop_it(client, op),
            (Stage::Held, 6) if self.random.chance(60) => self.leak(client, &thing),
            (Stage::Lost, _) => self.release(client, op),
            (Stage::Releasing, 0) => self.drop_it(client, op),
            _ => {}
        }
    }

    fn extend(&mut self, client: usize, thing: &Thing) {
        if thing.extension.is_some() {
            return;
        }
        let ttl = Duration::from_millis(self.random.pick(self.ttls));
        if ttl <= self.drift.of(ttl) {
            return;
        }
        let now = self.callers[client].local(self.now);
        let due = self.now + nanos(thing.terms.timeout + SLACK);
        let paused = self.callers[client].paused;
        if let Some(thing) = self.callers[client].find(thing.op) {
            thing.extension = Some((now, ttl, due));
            thing.paused_before = paused;
        }
        self.say(|| format!("client {client} extends {:?} by {ttl:?}", thing.op));
        self.callers[client].core.extend(now, thing.op, ttl);
    }

    fn release(&mut self, client: usize, op: OpId) {
        self.claims.end(client, op);
        let (now, paused) = (
            self.callers[client].local(self.now),
            self.callers[client].paused,
        );
        let due = self.now;
        if let Some(thing) = self.callers[client].find(op) {
            thing.stage = Stage::Releasing;
            thing.paused_before = paused;
            thing.due = due + nanos(thing.terms.timeout + SLACK);
        }
        self.say(|| format!("client {client} releases {op:?}"));
        self.callers[client].core.release(now, op);
    }

    fn drop_it(&mut self, client: usize, op: OpId) {
        self.claims.end(client, op);
        // One that is left while it is being taken over stays.
        self.callers[client].take(op);
        self.say(|| format!("client {client} drops {op:?}"));
        let now = self.callers[client].local(self.now);
        self.callers[client].core.drop_interest(now, op);
    }

    fn leak(&mut self, client: usize, thing: &Thing) {
        let Some(claim) = self.claims.end(client, thing.op) else {
            return;
        };
        self.callers[client].take(thing.op);
        self.excused.insert(claim.token.as_ref().to_vec());
        // An extension under way would outlive a release of the token by another client.
        if thing.extension.is_none() && thing.terms.renew.is_none() {
            self.leaked.push((thing.terms.clone(), claim.token));
        }
        self.say(|| format!("client {client} leaks {:?}", thing.op));
        self.callers[client].core.leak(thing.op);
    }

    /// The caller ends what it has, as long as there is something.
    fn finish(&mut self, client: usize) -> Result<(), String> {
        for thing in self.callers[client].things.clone() {
            match thing.stage {
                Stage::Held | Stage::Lost => self.release(client, thing.op),
                Stage::Acquiring if !thing.is_adopted => self.drop_it(client, thing.op),
                _ => {}
            }
        }
        if !self.callers[client].things.is_empty() {
            self.schedule(nanos(MS * 20), Event::Act(client));
        }
        self.turn(client)
    }

    /// Something goes wrong.
    pub(super) fn fault(&mut self) {
        if self.is_calm {
            return;
        }
        let next = self.random.below(self.fault_every);
        self.schedule(next, Event::Fault);
        let server = self.random.index(self.servers.len());
        let span = nanos(MS * self.random.pick(&[10, 100, 700, 2_500]));
        if self.is_hostile && self.random.chance(60) {
            self.tally.add("ended", 1);
            self.say(|| format!("all locks of server {server} end"));
            return self.servers[server].end_all();
        }
        match self.random.below(12) {
            0..=3 => self.cut(),
            4 => self.crash(server),
            5..=6 => {
                self.say(|| format!("server {server} falls silent for {span}"));
                self.tally.add("silent", 1);
                self.silent_until[server] = self.silent_until[server].max(self.now + span);
                self.schedule_at(self.silent_until[server], Event::Wake(server));
            }
            7 => self.refuses_until[server] = self.now + span,
            8 => self.servers[server].failing_until = self.now + span,
            9 => self.servers[server].forget_scripts(),
            10 => {
                let client = self.random.index(self.callers.len());
                self.say(|| format!("client {client} is paused for {span}"));
                let caller = &mut self.callers[client];
                if caller.paused_until <= self.now {
                    caller.paused_until = self.now + span;
                    caller.paused += span;
                    self.tally.add("paused", 1);
                }
            }
            _ if self.callers.len() > 1 && self.random.chance(5) => {
                let client = self.random.index(self.callers.len());
                self.die(client);
            }
            _ => {}
        }
    }

    /// A connection is cut: what is under way is lost, some of it or all.
    fn cut(&mut self) {
        let open = |conn: &&mut super::Conn| conn.client_open && conn.server_open;
        let mut open: Vec<usize> = (0..self.conns.len())
            .filter(|i| open(&&mut self.conns[*i]))
            .collect();
        if open.is_empty() {
            return;
        }
        let conn = open.swap_remove(self.random.index(open.len()));
        let (lost_there, lost_back) = (self.random.chance(50), self.random.chance(50));
        self.say(|| format!("connection {conn} is cut"));
        self.tally.add("cut", 1);
        self.conns[conn].server_open &= !lost_there;
        self.conns[conn].is_deaf |= lost_back;
        self.end_for_client(conn);
    }

    fn end_for_client(&mut self, conn: usize) {
        let delay = self.delay();
        let at = self.conns[conn].to_client_at.max(self.now + delay);
        self.conns[conn].to_client_at = at;
        self.schedule_at(at, Event::Gone(conn));
    }

    /// A server restarts with nothing in its memory and takes no part until all it ever granted is over.
    fn crash(&mut self, server: usize) {
        self.say(|| format!("server {server} crashes"));
        self.tally.add("crashed", 1);
        let slow = 1 + u64::from(self.drift != Drift::new(0, Duration::ZERO));
        let longest = self.ttls.iter().max().unwrap() * (100 + 10 * slow) / 100 + 3;
        let is_named = self.servers[server].run_id.is_some();
        let id = is_named.then(|| format!("run-{server}-{}", self.now));
        self.servers[server].restart(id);
        let counter = self.servers[server].counter(b"key-0");
        let jump = self.random.pick(&[0, 0, 1, 1 << 20]);
        self.servers[server].raise_base(counter + jump);
        self.servers[server].quarantined_until = match self.is_hostile {
            true => 0,
            false => self.now + longest * 1_000_000,
        };
        let down = nanos(MS * self.random.pick(&[0, 20, 500]));
        self.refuses_until[server] = self.refuses_until[server].max(self.now + down);
        self.inboxes[server].clear();
        for conn in 0..self.conns.len() {
            if self.conns[conn].server == server && self.conns[conn].server_open {
                self.conns[conn].server_open = false;
                self.conns[conn].is_deaf |= self.random.chance(50);
                self.end_for_client(conn);
            }
        }
    }

    /// A client is gone from one moment to the next; its locks are left to their TTL.
    fn die(&mut self, client: usize) {
        self.say(|| format!("client {client} dies"));
        self.claims.end_all_of(client);
        self.callers[client].is_dead = true;
        self.is_someone_dead = true;
        for conn in self.callers[client].conns.clone().into_iter().flatten() {
            self.close(conn);
        }
    }

    /// From now on everything goes well, and callers finish.
    pub(super) fn calm(&mut self) {
        self.say(|| "calm".to_owned());
        self.is_calm = true;
        let now = self.now;
        for server in 0..self.servers.len() {
            self.silent_until[server] = now;
            self.refuses_until[server] = now;
            self.servers[server].failing_until = now;
            self.schedule(0, Event::Wake(server));
        }
        for client in 0..self.callers.len() {
            self.schedule(nanos(MS * 2), Event::Act(client));
        }
    }

    /// When all is over nothing is left: not with the clients, and not on the servers.
    pub(super) fn check_end(&self) -> Result<(), String> {
        for (client, caller) in self.callers.iter().enumerate() {
            if caller.is_dead {
                continue;
            }
            if !caller.things.is_empty() {
                return Err(format!(
                    "client {client} never had an answer: {:?}",
                    caller.things
                ));
            }
            if caller.core.operations() != 0 {
                return Err(format!(
                    "client {client} keeps operations: {:#?}",
                    caller.core.operations
                ));
            }
            // One that is out of date is forgotten when its time comes; no place ever has two.
            let places: BTreeSet<u32> = caller.core.alarms.iter().map(|(_, slot)| *slot).collect();
            if places.len() != caller.core.alarms.len() {
                return Err(format!(
                    "client {client} keeps alarms: {:?}",
                    caller.core.alarms
                ));
            }
            for link in &caller.core.links {
                let is_settled = match link.phase {
                    Phase::Idle => true,
                    Phase::Ready => link.ledger.is_empty(),
                    _ => self.is_twin(link.node.index()),
                };
                if !is_settled || !link.waiting.is_empty() || !link.out.is_empty() {
                    return Err(format!(
                        "client {client} has a link that did not settle: {link:?}"
                    ));
                }
                if link.phase == Phase::Ready && !link.unanswered.is_empty() {
                    return Err(format!("client {client} waits for a node: {link:?}"));
                }
            }
        }
        // Where locks come and go by themselves nothing can be said of what is left.
        let servers = self.servers.iter().filter(|_| !self.is_hostile);
        for (i, server) in servers.enumerate() {
            for (key, held) in server.all_held(self.now) {
                let is_excused = self.excused.contains(&held.token)
                    || server.failed_to_delete.contains(&held.token)
                    || self.is_someone_dead;
                if !is_excused {
                    let (key, token) = (key.escape_ascii(), held.token.escape_ascii());
                    return Err(format!("server {i} still holds {key} for {token}"));
                }
            }
        }
        Ok(())
    }

    /// Whether the node is on the same server as another of the list.
    fn is_twin(&self, node: usize) -> bool {
        let server = self.addresses[node];
        self.addresses
            .iter()
            .filter(|other| **other == server)
            .count()
            > 1
    }
}

/// Timers and callers are late.
const SLACK: Duration = Duration::from_millis(5);
