//! A node with a disk that fails and clocks that a test steps, without threads: engine, store, disk and clock in the order in
//! which the server drives them.
//!
//! A reply is told only when what it rests on is durable. While the disk is held it is withheld; when a sync fails, the disk
//! is full, or the process ends before, it is lost. Nothing here is random and nothing panics: a simulator can run thousands
//! of them.

use std::time::Duration;

use locknode::{Clock, Machine};
use locknode_engine::durable::{
    Durability, Durable, OpenError, Reading, StartReason, Store, StoreError, StoreFigures,
    StoreSettings, StoreSizes, Work,
};
use locknode_engine::{
    Engine, EngineConfig, GuardConfig, GuardMode, GuardReport, Need, Options, Peer, Session,
};

use crate::faulty_disk::{FaultyDisk, dice, keep_none};
use crate::manual_clock::ManualClock;

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// The longest TTL that rides on the restart guard.
    pub max_ttl: Duration,
    /// Which locks are on the log.
    pub durability: Durability,
    /// How large files get.
    pub sizes: StoreSizes,
    /// The options under their Redis names.
    pub options: Options,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The reply left the node; its line ends are spaces.
    Told(String),
    /// The reply waits for the disk; [`StoredNode::take_late`] has it later.
    Withheld(Ticket),
    /// The connection was closed without a reply, or the node is down.
    Lost,
}

/// A reply that waits, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// A node in memory; see the module text. At first it is down and its disk is empty.
#[derive(Debug)]
pub struct StoredNode {
    settings: NodeSettings,
    clock: ManualClock,
    machine: Machine,
    disk: FaultyDisk,
    seed: u64,
    is_held: bool,
    next_ticket: u64,
    late: Vec<(Ticket, Answer)>,
    run: Option<Run>,
}

/// One run of the node's process.
#[derive(Debug)]
struct Run {
    engine: Engine,
    session: Session,
    store: Store<FaultyDisk>,
    reason: StartReason,
    /// Taken from the engine when it came up, not done by the store yet.
    in_flight: Option<(Work, Reading)>,
    withheld: Vec<(Ticket, Need, String)>,
}

impl Default for NodeSettings {
    /// A minute of `max-ttl`, and files so small that a test sees their edges.
    fn default() -> Self {
        Self {
            max_ttl: Duration::from_secs(60),
            durability: Durability::Long,
            sizes: StoreSizes {
                segment: 4 << 10,
                log: 16 << 10,
            },
            options: Options::default(),
        }
    }
}

impl StoredNode {
    /// A node that was never started, on a machine of its own.
    pub fn new(settings: NodeSettings) -> Self {
        Self {
            settings,
            clock: ManualClock::starting_at_unix_millis(NOON_MS),
            machine: Machine {
                boot_id: [1; 16],
                machine_id: [1; 16],
                time_namespace: Machine::INITIAL_TIME_NAMESPACE,
            },
            disk: FaultyDisk::new(),
            seed: 1,
            is_held: false,
            next_ticket: 0,
            late: Vec::new(),
            run: None,
        }
    }

    /// A node at its first start, said to be that: it serves at once.
    ///
    /// # Errors
    ///
    /// What the store says. A new disk has no reason to.
    pub fn first_start(settings: NodeSettings) -> Result<Self, OpenError> {
        let mut node = Self::new(settings);
        node.open(true)?;
        Ok(node)
    }

    /// The next run, after the last one has ended; one that goes on is killed.
    ///
    /// # Errors
    ///
    /// What the store says; the node is down then.
    pub fn start(&mut self) -> Result<(), OpenError> {
        self.open(false)
    }

    /// The next run, said to be the first.
    ///
    /// # Errors
    ///
    /// What the store says, where there was one before; the node is down then.
    pub fn start_as_first(&mut self) -> Result<(), OpenError> {
        self.open(true)
    }

    /// Sends a request of words, separated by single spaces.
    pub fn send(&mut self, request: &str) -> Answer {
        let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        self.send_all(&[&args])
    }

    /// Sends requests in one piece; their replies leave together.
    pub fn send_all(&mut self, requests: &[&[&[u8]]]) -> Answer {
        let Some(run) = &mut self.run else {
            return Answer::Lost;
        };
        let mut out = Vec::new();
        let moment = self.clock.now();
        run.engine.guard().note_slip(self.clock.slip_ns());
        let mut batch = run.engine.batch(moment);
        for args in requests {
            batch.execute(&mut run.session, args, &mut out);
        }
        let need = batch.finish(&run.session, requests.len() as u64);
        let text = String::from_utf8_lossy(&out).replace("\r\n", " ");
        let reply = text.trim_end().to_owned();
        if need.is_none() {
            self.turn();
            return Answer::Told(reply);
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        run.withheld.push((ticket, need, reply));
        self.turn();
        match self.late.iter().position(|(it, _)| *it == ticket) {
            Some(at) => self.late.remove(at).1,
            None => Answer::Withheld(ticket),
        }
    }

    /// What has become of withheld replies since the last call.
    pub fn take_late(&mut self) -> Vec<(Ticket, Answer)> {
        std::mem::take(&mut self.late)
    }

    /// Time passes on all clocks; what has ended is swept, and a full disk is tried again.
    pub fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        if let Some(run) = &self.run {
            run.engine.sweep(self.clock.now().time, SWEEP_SLOTS);
        }
        self.turn();
    }

    /// The disk does not come back from its next work until it is let go.
    pub fn hold_disk(&mut self) {
        self.is_held = true;
    }

    /// The disk does what it was held from, and all that was asked for since.
    pub fn release_disk(&mut self) {
        self.is_held = false;
        self.turn();
    }

    /// The process ends where it is; the machine goes on.
    pub fn kill(&mut self) {
        self.end();
        self.disk.kill();
    }

    /// The process ends, and of what was not synced the disk keeps what the dice of `seed` say. Clocks go on.
    pub fn power_loss(&mut self, seed: u64) {
        self.end();
        self.disk.crash(&mut dice(seed));
    }

    /// The machine loses power and boots: nothing that was not synced is kept.
    pub fn reboot(&mut self) {
        self.end();
        self.disk.crash(&mut keep_none);
        self.clock.reboot();
        self.machine.boot_id = self.fresh_id();
    }

    /// The process ends, and the disk is put into another machine, which has been running for a day.
    pub fn move_to_other_machine(&mut self) {
        self.end();
        self.disk.kill();
        self.clock.set_boottime(DAY);
        self.clock.set_raw(DAY);
        self.machine = Machine {
            boot_id: self.fresh_id(),
            machine_id: self.fresh_id(),
            time_namespace: Machine::INITIAL_TIME_NAMESPACE,
        };
    }

    /// Begins to end: nothing is granted any more. [`StoredNode::clean_stop`] does this first.
    pub fn close(&mut self) {
        if let Some(run) = &self.run {
            run.engine.close();
        }
    }

    /// Ends the process in order.
    ///
    /// # Errors
    ///
    /// When the disk refuses: the process has ended without leaving a clean marker.
    pub fn clean_stop(&mut self) -> Result<(), StoreError> {
        self.is_held = false;
        self.turn();
        let Some(mut run) = self.run.take() else {
            return Ok(());
        };
        run.engine.close();
        let guard = run.engine.guard();
        let mut result = Ok(());
        while result.is_ok()
            && let Some(work) = guard.take_work(self.clock.now().time)
        {
            result = run.store.perform(&work, self.clock.reading());
            if result.is_ok() {
                guard.done(&work);
            }
        }
        run.tell(&mut self.late);
        result?;
        let reading = self.clock.reading();
        let mut table = run.engine.table(reading.moment.time);
        run.store.close(&mut table, reading)
    }

    /// What the next run is started with.
    pub fn settings_mut(&mut self) -> &mut NodeSettings {
        &mut self.settings
    }

    /// The disk, to break it.
    pub fn disk(&self) -> &FaultyDisk {
        &self.disk
    }

    /// The machine's clocks and the node's, to skew them.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// The machine, for the next run.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Whether a process runs.
    pub fn is_up(&self) -> bool {
        self.run.is_some()
    }

    /// Why this run began with a wait, or without; `None` when it is down.
    pub fn reason(&self) -> Option<StartReason> {
        self.run.as_ref().map(|run| run.reason)
    }

    /// How long it stays out of every lock; `None` when it serves or is down.
    pub fn quarantine_left(&self) -> Option<Duration> {
        let now = self.clock.now().time;
        self.run.as_ref()?.engine.guard().quarantine_left(now)
    }

    /// What the guard tells; `None` when it is down.
    pub fn guard(&self) -> Option<GuardReport> {
        let now = self.clock.now().time;
        Some(self.run.as_ref()?.engine.guard().report(now))
    }

    /// What the store has made durable in this run; `None` when it is down.
    pub fn durable(&self) -> Option<Durable> {
        Some(self.run.as_ref()?.store.durable())
    }

    /// Numbers about the store; `None` when it is down.
    pub fn figures(&self) -> Option<StoreFigures> {
        Some(self.run.as_ref()?.store.figures())
    }

    fn open(&mut self, is_first_start: bool) -> Result<(), OpenError> {
        self.end();
        self.clock = self.clock.restarted();
        let settings = StoreSettings {
            max_ttl: self.settings.max_ttl,
            durability: self.settings.durability,
            is_first_start,
            needs_state: false,
        };
        let (low, high) = (self.fresh_id(), self.fresh_id());
        let mut entropy = [0; 32];
        entropy[..16].copy_from_slice(&low);
        entropy[16..].copy_from_slice(&high);
        let reading = self.clock.reading();
        let (store, start) = Store::open_sized(
            self.disk.clone(),
            &settings,
            self.settings.sizes,
            self.machine,
            reading,
            entropy,
        )?;
        let mut config = EngineConfig::new(self.seed, format!("{:040x}", self.seed));
        config.options = self.settings.options.clone();
        let mode = GuardMode::Store(self.settings.durability);
        config.guard = GuardConfig::new(mode, self.settings.max_ttl, &start);
        let engine = Engine::new(config, self.clock.now());
        for lock in start.locks() {
            engine.restore(&lock, reading.moment.time);
        }
        // Nobody else is connected; a node that allows no client is down.
        self.run = engine
            .connect(Peer::default(), reading.moment.time)
            .map(|session| Run {
                engine,
                session,
                store,
                reason: start.reason,
                in_flight: None,
                withheld: Vec::new(),
            });
        Ok(())
    }

    /// The process is gone, and so is what it had not told.
    fn end(&mut self) {
        self.is_held = false;
        if let Some(run) = self.run.take() {
            let lost = run
                .withheld
                .into_iter()
                .map(|(ticket, ..)| (ticket, Answer::Lost));
            self.late.extend(lost);
        }
    }

    /// The disk's turn.
    fn turn(&mut self) {
        if let Some(run) = &mut self.run {
            run.turn(&self.clock, self.is_held);
            run.tell(&mut self.late);
        }
    }

    fn fresh_id(&mut self) -> [u8; 16] {
        self.seed += 1;
        let mixed = u128::from(self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        mixed.to_le_bytes()
    }
}

impl Run {
    /// Does what is wanted, as the server's disk thread does, until there is nothing left or the disk refuses.
    fn turn(&mut self, clock: &ManualClock, is_held: bool) {
        loop {
            if self.in_flight.is_none() {
                let work = self.engine.guard().take_work(clock.now().time);
                self.in_flight = work.map(|work| (work, clock.reading()));
            }
            if is_held {
                return;
            }
            if let Some((work, reading)) = self.in_flight.take() {
                let guard = self.engine.guard();
                match self.store.perform(&work, reading) {
                    Ok(()) => guard.done(&work),
                    Err(error) => return guard.failed(work, &error, &self.store.durable()),
                }
            } else {
                let reading = clock.reading();
                let mut table = self.engine.table(reading.moment.time);
                if !self.store.compact(&mut table, reading).unwrap_or(false) {
                    return;
                }
            }
        }
    }

    /// Lets go of the replies that may leave, or never will.
    fn tell(&mut self, late: &mut Vec<(Ticket, Answer)>) {
        let guard = self.engine.guard();
        self.withheld.retain_mut(|(ticket, need, reply)| {
            let answer = if guard.is_durable(need) {
                Answer::Told(std::mem::take(reply))
            } else if guard.is_hopeless(need) {
                Answer::Lost
            } else {
                return true;
            };
            late.push((*ticket, answer));
            false
        });
    }
}

/// Noon of a day in 2027, in Unix milliseconds.
const NOON_MS: u64 = 1_800_000_000_000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// More than a test's locks.
const SWEEP_SLOTS: usize = 4096;
