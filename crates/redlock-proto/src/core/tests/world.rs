//! A world of clients and lock nodes in one thread: every delay, every failure and every whim of a caller comes
//! from one seed. Bytes arrive in order on each connection, in pieces, late, or not at all; a connection that ended
//! may still have something under way. Nodes are honest and their clocks differ by what the drift allows.

mod whims;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use locknode_resp::Decoder;

use crate::cause::Cause;
use crate::core::tests::caller::{Caller, Stage, Thing};
use crate::core::tests::claims::{Claim, Claims};
use crate::core::tests::fences::{Fences, Success};
use crate::core::tests::random::Random;
use crate::core::tests::server::{Counts, Server};
use crate::core::{Core, CoreConfig, Dialect, LockTerms, Login, Look, Notice, OpId};
use crate::drift::Drift;
use crate::error_kind::ErrorKind;
use crate::fencing_token::FencingToken;
use crate::quorum::{NodeId, NodeSet};
use crate::time::nanos;
use crate::token::Token;

/// What happened in a run, to see that everything does happen.
#[derive(Clone, Default, Debug)]
pub(super) struct Tally {
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) events: u64,
    /// A hash of all that happened, in order.
    pub(super) hash: u64,
}

impl Tally {
    fn add(&mut self, what: &'static str, n: u64) {
        *self.counts.entry(what).or_default() += n;
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        for (what, n) in &other.counts {
            self.add(what, *n);
        }
        self.events += other.events;
        self
    }
}

#[derive(Clone, Debug)]
enum Event {
    Opened(usize),
    Refused(usize),
    ToServer(usize, Vec<u8>),
    ToClient(usize, Vec<u8>),
    Gone(usize),
    Timer(usize),
    Write(usize),
    Act(usize),
    Fault,
    Wake(usize),
}

#[derive(Debug)]
struct Conn {
    client: usize,
    node: NodeId,
    server: usize,
    client_open: bool,
    server_open: bool,
    /// What the server sent is lost.
    is_deaf: bool,
    input: Vec<u8>,
    decoder: Decoder,
    to_server_at: u64,
    to_client_at: u64,
}

#[derive(Debug)]
pub(super) struct World {
    random: Random,
    now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    seq: u64,
    servers: Vec<Server>,
    /// Until when each server does not read.
    silent_until: Vec<u64>,
    inboxes: Vec<Vec<(usize, Vec<u8>)>>,
    refuses_until: Vec<u64>,
    /// Which server each node of the clients' list is.
    addresses: Vec<usize>,
    callers: Vec<Caller>,
    conns: Vec<Conn>,
    claims: Claims,
    fences: Fences,
    /// Nodes end locks before their time and restart without waiting: nothing holds but the order of fencing tokens.
    is_hostile: bool,
    /// Tokens that nobody has to release.
    excused: BTreeSet<Vec<u8>>,
    /// Tokens that were left to their TTL and may be taken over.
    leaked: Vec<(LockTerms, Token)>,
    drift: Drift,
    keys: u64,
    ttls: &'static [u64],
    delay_max: u64,
    fault_every: u64,
    is_someone_dead: bool,
    /// No faults any more.
    is_calm: bool,
    log: Option<Vec<String>>,
    tally: Tally,
}

impl World {
    pub(super) fn new(seed: u64, is_logged: bool) -> Self {
        Self::of(seed, is_logged, false)
    }

    /// A world whose nodes break every promise about time, and none about their counters.
    pub(super) fn hostile(seed: u64, is_logged: bool) -> Self {
        Self::of(seed, is_logged, true)
    }

    fn of(seed: u64, is_logged: bool, is_hostile: bool) -> Self {
        let mut random = Random::new(seed);
        let nodes = random.pick(&[1, 2, 3, 3, 3, 5]);
        let fenced = match is_hostile {
            true => 95,
            false => random.pick(&[0, 50, 100]),
        };
        let drift = random.pick(&[
            Drift::default(),
            Drift::new(0, Duration::ZERO),
            Drift::new(50_000, Duration::from_millis(1)),
        ]);
        // The share of the drift that is the clocks'.
        let rate = i64::try_from(nanos(drift.of(MS * 1_000)) / 1_000).unwrap() / 2;
        let mut addresses: Vec<usize> = (0..nodes).collect();
        if nodes > 2 && random.chance(10) {
            addresses[random.index(nodes)] = random.index(nodes);
        }
        let has_ids = random.chance(80) || addresses.iter().collect::<BTreeSet<_>>().len() < nodes;
        let servers = (0..nodes).map(|i| {
            let dialect = match random.chance(fenced) {
                true => Dialect::Lock,
                false => random.pick(&[Dialect::Script, Dialect::DelEx, Dialect::DelIfEq]),
            };
            let mut server = Server::new(dialect);
            server.raise_base(random.pick(&[0, 0, 0, 3, 1 << 20]));
            let spread = u64::try_from(2 * rate).unwrap();
            server.fast_ppm = i64::try_from(random.between(0, spread)).unwrap() - rate;
            server.answers_releases_in_quarantine = random.chance(50);
            server.run_id = has_ids.then(|| format!("run-{i}-0"));
            server
        });
        let servers: Vec<Server> = servers.collect();
        let callers = (0..random.between(1, 3)).map(|_| {
            let config = CoreConfig {
                logins: vec![Login::default(); nodes],
                drift,
                connect_timeout: MS * 300,
            };
            Caller {
                core: Core::new(config, Random::new(random.next())).unwrap(),
                offset: random.below(1_000_000_000_000),
                things: Vec::new(),
                conns: vec![None; nodes],
                wakes_at: u64::MAX,
                paused_until: 0,
                paused: 0,
                is_dead: false,
            }
        });
        let callers: Vec<Caller> = callers.collect();
        let mut world = Self {
            now: 1_000_000_000,
            queue: BTreeMap::new(),
            seq: 0,
            silent_until: vec![0; nodes],
            inboxes: vec![Vec::new(); nodes],
            refuses_until: vec![0; nodes],
            servers,
            addresses,
            callers,
            conns: Vec::new(),
            claims: Claims::new(is_hostile),
            fences: Fences::default(),
            is_hostile,
            excused: BTreeSet::new(),
            leaked: Vec::new(),
            drift,
            keys: match is_hostile {
                true => 1,
                false => random.between(1, 2),
            },
            ttls: random.pick(&[&[20_u64, 100, 400][..], &[300, 1_000], &[2_000, 60_000]]),
            fault_every: nanos(MS * random.pick(&[60, 250, 1_500])),
            delay_max: random.pick(&[100_000, 2_000_000, 20_000_000]),
            is_someone_dead: false,
            is_calm: false,
            log: is_logged.then(Vec::new),
            tally: Tally::default(),
            random,
        };
        for client in 0..world.callers.len() {
            world.schedule(0, Event::Act(client));
        }
        world.schedule(0, Event::Fault);
        world
    }

    /// Lets the world run, first wild, then calm, and says what went wrong.
    pub(super) fn run(&mut self) -> Result<Tally, String> {
        let wild = self.now + nanos(MS * u32::try_from(self.random.between(100, 1_500)).unwrap());
        self.run_until(wild)?;
        self.calm();
        self.run_until(wild + nanos(MS * 10_000))?;
        self.check_end()?;
        self.tally.hash = self.tally.hash.wrapping_add(self.random.next());
        for server in &self.servers {
            let Counts {
                noscript,
                loading,
                errors,
                acquires: _,
                floors,
                write_backs,
                write_backs_refused,
            } = server.counts;
            self.tally.add("floors", floors);
            self.tally.add("write_backs", write_backs);
            self.tally.add("write_backs_refused", write_backs_refused);
            self.tally.add("noscript", noscript);
            self.tally.add("loading", loading);
            self.tally.add("errors", errors);
        }
        Ok(self.tally.clone())
    }

    pub(super) fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push(format!(
                "{:>12.6} {}",
                Duration::from_nanos(now).as_secs_f64() * 1e3,
                what()
            ));
        }
    }

    fn schedule(&mut self, delay: u64, event: Event) {
        self.schedule_at(self.now + delay, event);
    }

    fn schedule_at(&mut self, at: u64, event: Event) {
        self.seq += 1;
        self.queue.insert((at, self.seq), event);
    }

    fn delay(&mut self) -> u64 {
        match self.random.chance(5) {
            true => self.random.below(self.delay_max * 20),
            false => self.random.below(self.delay_max),
        }
    }

    fn run_until(&mut self, end: u64) -> Result<(), String> {
        let needed = self.callers[0].core.quorum().needed();
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.tally.events += 1;
            self.tally.hash = (self.tally.hash ^ at).wrapping_mul(0x0100_0000_01b3);
            self.event(event)?;
            self.claims.check(self.now, &self.servers, needed)?;
        }
        self.now = end;
        Ok(())
    }

    /// The client that an event is for, if it is for one.
    fn client_of(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Opened(conn) | Event::Refused(conn) | Event::Gone(conn) => {
                Some(self.conns[*conn].client)
            }
            Event::ToClient(conn, _) => Some(self.conns[*conn].client),
            Event::Timer(client) | Event::Write(client) | Event::Act(client) => Some(*client),
            Event::ToServer(..) | Event::Fault | Event::Wake(_) => None,
        }
    }

    fn event(&mut self, event: Event) -> Result<(), String> {
        if let Some(client) = self.client_of(&event) {
            let caller = &self.callers[client];
            if caller.is_dead {
                return Ok(());
            }
            // Whatever happens meanwhile waits, in order.
            if caller.paused_until > self.now {
                self.schedule_at(caller.paused_until, event);
                return Ok(());
            }
        }
        match event {
            Event::Opened(conn) => self.opened(conn),
            Event::Refused(conn) | Event::Gone(conn) => self.gone(conn),
            Event::ToServer(conn, bytes) => self.reach_server(conn, bytes),
            Event::ToClient(conn, bytes) => self.reach_client(conn, &bytes),
            Event::Timer(client) => {
                self.callers[client].wakes_at = u64::MAX;
                let now = self.callers[client].local(self.now);
                if now >= self.callers[client].core.next_deadline() {
                    self.callers[client].core.on_time(now);
                }
                self.turn(client)
            }
            Event::Write(client) => self.turn(client),
            Event::Act(client) => self.act(client),
            Event::Fault => {
                self.fault();
                Ok(())
            }
            Event::Wake(server) => {
                for (conn, bytes) in std::mem::take(&mut self.inboxes[server]) {
                    self.serve(conn, &bytes);
                }
                Ok(())
            }
        }
    }

    fn opened(&mut self, conn: usize) -> Result<(), String> {
        let (client, node) = (self.conns[conn].client, self.conns[conn].node);
        if self.conns[conn].client_open && self.callers[client].conns[node.index()] == Some(conn) {
            let now = self.callers[client].local(self.now);
            self.callers[client].core.connected(now, node);
        }
        self.turn(client)
    }

    fn gone(&mut self, conn: usize) -> Result<(), String> {
        let (client, node) = (self.conns[conn].client, self.conns[conn].node);
        if self.conns[conn].client_open {
            self.conns[conn].client_open = false;
            self.callers[client].conns[node.index()] = None;
            self.say(|| format!("client {client} sees the end of connection {conn}"));
            let now = self.callers[client].local(self.now);
            self.callers[client]
                .core
                .disconnected(now, node, Cause::Disconnected);
        }
        self.turn(client)
    }

    fn reach_client(&mut self, conn: usize, bytes: &[u8]) -> Result<(), String> {
        let (client, node) = (self.conns[conn].client, self.conns[conn].node);
        if !self.conns[conn].client_open || self.conns[conn].is_deaf {
            return Ok(());
        }
        self.say(|| format!("client {client} <- {conn}: {}", bytes.escape_ascii()));
        let now = self.callers[client].local(self.now);
        self.callers[client].core.received(now, node, bytes);
        self.turn(client)
    }

    fn reach_server(&mut self, conn: usize, bytes: Vec<u8>) -> Result<(), String> {
        let server = self.conns[conn].server;
        if self.conns[conn].server_open {
            match self.silent_until[server] > self.now {
                true => self.inboxes[server].push((conn, bytes)),
                false => self.serve(conn, &bytes),
            }
        }
        Ok(())
    }

    fn serve(&mut self, conn: usize, bytes: &[u8]) {
        let (now, link) = (self.now, &mut self.conns[conn]);
        if !link.server_open {
            return;
        }
        let server = &mut self.servers[link.server];
        let before = (!link.client_open).then(|| server.clone());
        link.input.extend_from_slice(bytes);
        let replies = server.serve(now, &mut link.input, &mut link.decoder);
        // What comes after its sender gave the connection up may grant, after the release that undoes it.
        if let Some(before) = before {
            let is_new = |key: &[u8]| before.held(now, key).is_none();
            let all = server.all_held(now).filter(|(key, _)| is_new(key));
            self.excused.extend(all.map(|(_, held)| held.token.clone()));
            self.tally.add("late", 1);
        }
        self.say(|| format!("{conn} serves {}", bytes.escape_ascii()));
        if replies.is_empty() || !self.conns[conn].client_open {
            return;
        }
        for piece in self.pieces(&replies) {
            let delay = self.delay();
            let at = self.conns[conn].to_client_at.max(self.now + delay);
            self.conns[conn].to_client_at = at;
            self.schedule_at(at, Event::ToClient(conn, piece));
        }
    }

    fn pieces(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while rest.len() > 1 && self.random.chance(20) {
            let (head, tail) = rest.split_at(1 + self.random.index(rest.len() - 1));
            pieces.push(head.to_vec());
            rest = tail;
        }
        pieces.push(rest.to_vec());
        pieces
    }

    /// What a driver does after each call: tell, then write, then set the timer.
    fn turn(&mut self, client: usize) -> Result<(), String> {
        while let Some(notice) = self.callers[client].core.poll_notice() {
            self.notice(client, notice)?;
        }
        for index in 0..self.addresses.len() {
            self.write(client, NodeId::new(index).unwrap());
        }
        let caller = &mut self.callers[client];
        let deadline = caller.core.next_deadline().as_nanos();
        // Who holds a lock is told before its end: the client wants to be woken before, whatever else it waits for.
        let (now, offset) = (self.now, caller.offset);
        let of_client = self.claims.of(client).filter(|claim| claim.until > now);
        for claim in of_client {
            let until = claim.until + offset;
            if deadline >= until && deadline > now + offset {
                return Err(format!("told at {deadline}, too late: {claim:?}"));
            }
        }
        if deadline != u64::MAX {
            let late = match self.random.chance(10) {
                true => self.random.below(3_000_000),
                false => self.random.below(20_000),
            };
            let at = deadline.saturating_sub(caller.offset).max(self.now) + late;
            if at < caller.wakes_at {
                caller.wakes_at = at;
                self.schedule_at(at, Event::Timer(client));
            }
        }
        Ok(())
    }

    fn write(&mut self, client: usize, node: NodeId) {
        let Some(conn) = self.callers[client].conns[node.index()] else {
            return;
        };
        let out = self.callers[client].core.output(node).unwrap();
        if out.is_empty() {
            return;
        }
        let len = match self.random.chance(5) {
            true => self.random.index(out.len()),
            false => out.len(),
        };
        let bytes: Vec<u8> = out.drain(..len).collect();
        if !out.is_empty() {
            let delay = self.delay();
            self.schedule(delay, Event::Write(client));
        }
        if bytes.is_empty() {
            return;
        }
        self.say(|| format!("client {client} -> {conn}: {}", bytes.escape_ascii()));
        for piece in self.pieces(&bytes) {
            let delay = self.delay();
            let at = self.conns[conn].to_server_at.max(self.now + delay);
            self.conns[conn].to_server_at = at;
            self.schedule_at(at, Event::ToServer(conn, piece));
        }
    }

    fn connect(&mut self, client: usize, node: NodeId) {
        let server = self.addresses[node.index()];
        let conn = self.conns.len();
        self.conns.push(Conn {
            client,
            node,
            server,
            client_open: true,
            server_open: true,
            is_deaf: false,
            input: Vec::new(),
            decoder: Decoder::new(),
            to_server_at: 0,
            to_client_at: 0,
        });
        self.callers[client].conns[node.index()] = Some(conn);
        let delay = self.delay();
        if self.refuses_until[server] > self.now {
            // Or nothing comes back at all.
            if self.random.chance(70) {
                self.schedule(delay, Event::Refused(conn));
            }
        } else {
            self.schedule(delay, Event::Opened(conn));
        }
    }

    /// The client closes the connection; what is under way may arrive or not.
    fn close(&mut self, conn: usize) {
        let is_late = self.random.chance(30);
        let link = &mut self.conns[conn];
        link.client_open = false;
        link.server_open &= is_late;
    }

    fn notice(&mut self, client: usize, notice: Notice) -> Result<(), String> {
        self.say(|| format!("client {client} is told {notice:?}"));
        match notice {
            Notice::Connect(node) => self.connect(client, node),
            Notice::Disconnect(node) => {
                if let Some(conn) = self.callers[client].conns[node.index()].take() {
                    self.close(conn);
                }
            }
            Notice::NodeUp(..) => {}
            Notice::NodeDown(_, cause) => {
                self.tally.add(
                    "duplicates",
                    u64::from(matches!(cause, Cause::Duplicate { .. })),
                );
                self.tally
                    .add("suspected", u64::from(cause == Cause::Unresponsive));
            }
            Notice::Acquired {
                op,
                token,
                fencing,
                valid_until,
                tries,
            } => {
                self.fenced(client, op, fencing, valid_until.as_nanos())?;
                self.acquired(client, op, token, valid_until.as_nanos(), tries)?;
            }
            Notice::NotAcquired { op, kind, .. } => self.not_acquired(client, op, kind)?,
            Notice::Validity {
                op,
                valid_until,
                is_renewal,
            } => {
                self.tally.add("renewed", u64::from(is_renewal));
                self.tally.add("shortened", u64::from(!is_renewal));
                let until = valid_until.as_nanos() - self.callers[client].offset;
                let claim = self.claims.get_mut(client, op);
                if !is_renewal && claim.is_none_or(|claim| claim.until <= until) {
                    return Err("a validity that is no shorter".into());
                }
                self.claims.change(self.now, client, op, until)?;
            }
            Notice::RenewalFailed { op, .. } => {
                self.tally.add("renewals_failed", 1);
                self.expect(client, op, &[Stage::Held])?;
            }
            Notice::Extended { op, result, .. } => self.extended(client, op, result)?,
            Notice::Lost { op, kind, .. } => self.lost(client, op, kind)?,
            Notice::Released {
                op,
                confirmed,
                pending,
                not_held,
                ..
            } => {
                self.released(client, op, confirmed, not_held, pending)?;
            }
            Notice::Looked { op, looks } => self.looked(client, op, &looks)?,
        }
        Ok(())
    }

    /// The notice is about something that the caller waits for, and not too late.
    fn expect(&mut self, client: usize, op: OpId, stages: &[Stage]) -> Result<Thing, String> {
        let (now, paused) = (self.now, self.callers[client].paused);
        let Some(thing) = self.callers[client].find(op) else {
            return Err(format!("a notice about {op:?}, which nobody waits for"));
        };
        if !stages.contains(&thing.stage) {
            return Err(format!("a notice that fits {stages:?}, but {thing:?}"));
        }
        if thing.stage != Stage::Held && now > thing.due + (paused - thing.paused_before) {
            return Err(format!("an answer at {now}, too late: {thing:?}"));
        }
        Ok(thing.clone())
    }

    fn acquired(
        &mut self,
        client: usize,
        op: OpId,
        token: Token,
        valid_until: u64,
        tries: u32,
    ) -> Result<(), String> {
        let thing = self.expect(client, op, &[Stage::Acquiring])?;
        self.tally.add("acquired", 1);
        self.tally.add("acquired_later", u64::from(tries > 1));
        self.tally.add("adopted", u64::from(thing.is_adopted));
        let at_once = self
            .drift
            .valid_until(thing.since, thing.terms.ttl)
            .as_nanos();
        if tries == 1 && valid_until != at_once {
            return Err(format!(
                "valid until {valid_until}, not {at_once}: {thing:?}"
            ));
        }
        let latest = self
            .drift
            .valid_until(self.callers[client].local(self.now), thing.terms.ttl);
        if valid_until > latest.as_nanos() {
            return Err(format!("valid for longer than the TTL: {thing:?}"));
        }
        if thing.terms.hold_at_least > Duration::ZERO {
            self.excused.insert(token.as_ref().to_vec());
        } else {
            self.excused.remove(token.as_ref());
        }
        let caller = &mut self.callers[client];
        let until = valid_until - caller.offset;
        if let Some(thing) = caller.find(op) {
            thing.stage = Stage::Held;
            thing.token = Some(token);
        }
        let key = thing.terms.key.to_vec();
        self.claims.begin(
            self.now,
            Claim {
                client,
                op,
                key,
                token,
                until,
            },
        )
    }

    /// A lock has a fencing token where a majority counts, and none where it does not. The token is in order.
    fn fenced(
        &mut self,
        client: usize,
        op: OpId,
        fencing: Option<FencingToken>,
        valid_until: u64,
    ) -> Result<(), String> {
        let thing = self.expect(client, op, &[Stage::Acquiring])?;
        let counts = |server: &&usize| self.servers[**server].dialect.has_fences();
        let counting = self.addresses.iter().filter(counts).count();
        let needed = self.callers[client].core.quorum().needed();
        let is_possible = counting >= needed && !thing.is_adopted;
        let is_certain = counting == self.addresses.len() && !thing.is_adopted;
        if fencing.is_some() && !is_possible || fencing.is_none() && is_certain {
            return Err(format!("{fencing:?} with {counting} that count: {thing:?}"));
        }
        let Some(fencing) = fencing else {
            self.tally.add("unfenced", 1);
            return Ok(());
        };
        self.tally.add("fenced", 1);
        let ttl = thing.terms.ttl;
        let started = valid_until - nanos(ttl - self.drift.of(ttl));
        self.fences.add(Success {
            key: thing.terms.key.to_vec(),
            fencing,
            started: started - self.callers[client].offset,
            told: self.now,
        })
    }

    fn not_acquired(&mut self, client: usize, op: OpId, kind: ErrorKind) -> Result<(), String> {
        self.expect(client, op, &[Stage::Acquiring])?;
        match kind {
            ErrorKind::Busy => self.tally.add("busy", 1),
            ErrorKind::Contended => self.tally.add("contended", 1),
            ErrorKind::NoQuorum => self.tally.add("no_quorum", 1),
            ErrorKind::Timeout => self.tally.add("timeout", 1),
            _ => {}
        }
        self.callers[client].take(op);
        Ok(())
    }

    fn extended(
        &mut self,
        client: usize,
        op: OpId,
        result: Result<crate::time::Time, ErrorKind>,
    ) -> Result<(), String> {
        let mut thing = self.expect(client, op, &[Stage::Held, Stage::Lost])?;
        let Some((since, ttl, due)) = thing.extension.take() else {
            return Err(format!("extended, which nobody asked for: {thing:?}"));
        };
        if self.now > due + (self.callers[client].paused - thing.paused_before) {
            return Err(format!("an extension decided too late: {thing:?}"));
        }
        if let Some(thing) = self.callers[client].find(op) {
            thing.extension = None;
        }
        match result {
            Ok(until) => {
                self.tally.add("extended", 1);
                if until != self.drift.valid_until(since, ttl) {
                    return Err(format!("extended until {until:?}: {thing:?}"));
                }
                let until = until.as_nanos() - self.callers[client].offset;
                self.claims.change(self.now, client, op, until)
            }
            Err(_) => {
                self.tally.add("not_extended", 1);
                Ok(())
            }
        }
    }

    fn lost(&mut self, client: usize, op: OpId, kind: ErrorKind) -> Result<(), String> {
        self.expect(client, op, &[Stage::Held])?;
        if let Some(thing) = self.callers[client].find(op) {
            thing.stage = Stage::Lost;
        }
        let Some(claim) = self.claims.end(client, op) else {
            return Err(format!("lost, but not held: {op:?}"));
        };
        if kind == ErrorKind::Lost {
            self.tally.add("lost", 1);
            let (now, token) = (self.now, claim.token);
            let holds = |server: &&Server| {
                server
                    .held(now, &claim.key)
                    .is_some_and(|held| held.token == token.as_ref())
            };
            let is_plain = self
                .addresses
                .iter()
                .enumerate()
                .all(|(i, server)| i == *server);
            let needed = self.callers[client].core.quorum().needed();
            if is_plain && !self.is_hostile && self.servers.iter().filter(holds).count() >= needed {
                return Err(format!(
                    "said to be lost, but a majority holds it: {claim:?}"
                ));
            }
        } else {
            self.tally.add("expired", 1);
            if claim.until > self.now + nanos(MS * 100) {
                return Err(format!("said to be over long before: {claim:?}"));
            }
        }
        Ok(())
    }

    fn released(
        &mut self,
        client: usize,
        op: OpId,
        confirmed: NodeSet,
        not_held: NodeSet,
        pending: NodeSet,
    ) -> Result<(), String> {
        let thing = self.expect(client, op, &[Stage::Releasing])?;
        self.tally.add("released", 1);
        self.callers[client].take(op);
        for node in confirmed.iter() {
            if not_held.contains(node) || pending.contains(node) {
                return Err(format!("{node:?} said two things: {thing:?}"));
            }
        }
        // Who confirms without having deleted it confirms by the reply to another question.
        let Some(token) = thing
            .token
            .filter(|_| thing.terms.hold_at_least == Duration::ZERO)
        else {
            return Ok(());
        };
        let has_deleted = |node: NodeId| {
            let server = &self.servers[self.addresses[node.index()]];
            server.deleted.contains(token.as_ref())
        };
        match confirmed.iter().all(has_deleted) {
            true => Ok(()),
            false => Err(format!(
                "confirmed by {confirmed:?}, not all deleted it: {thing:?}"
            )),
        }
    }

    fn looked(&mut self, client: usize, op: OpId, looks: &[Look]) -> Result<(), String> {
        let thing = self.expect(client, op, &[Stage::Looking])?;
        self.tally.add("looked", 1);
        self.callers[client].take(op);
        for (i, look) in looks.iter().enumerate() {
            if let Some(token) = &look.token
                && !self.servers[self.addresses[i]].seen.contains(token)
            {
                return Err(format!("a token that was never there: {look:?} {thing:?}"));
            }
        }
        Ok(())
    }
}

pub(super) const MS: Duration = Duration::from_millis(1);
