//! A node with a disk that fails and clocks that a test steps, without threads: it drives engine,
//! store, disk and clock in the same order as the server.
//!
//! A reply leaves the node only when everything it depends on is durable. While the disk is held,
//! the reply is withheld; when a sync fails, the disk is full or the process ends first, it is
//! lost. Nothing here is random.

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
    /// The reply left the node. Its line ends are spaces.
    Reply(String),
    /// The reply waits for the disk; [`StoredNode::take_late`] returns it later.
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
    /// What the next run is started with.
    pub settings: NodeSettings,
    /// The machine's clocks and the node's, to skew them.
    pub clock: ManualClock,
    /// The machine of the next run.
    pub machine: Machine,
    /// The disk, to break it.
    pub disk: FaultyDisk,
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

    /// A node after its first start, at which it serves at once.
    pub fn first_start(settings: NodeSettings) -> Self {
        let mut node = Self::new(settings);
        node.open(true).expect("a new disk");
        node
    }

    /// Starts the next run; one that still goes on is killed.
    #[track_caller]
    pub fn start(&mut self) {
        self.open(false)
            .unwrap_or_else(|error| panic!("it does not start: {error}"));
    }

    /// Ends the process in this way, and starts the next run.
    #[track_caller]
    pub fn restart(&mut self, end: impl FnOnce(&mut Self)) {
        end(self);
        self.start();
    }

    /// Lets the quarantine end.
    pub fn wait(&mut self) {
        self.advance(self.quarantine_left().unwrap_or_default());
    }

    /// Starts the next run, which is or is not said to be the node's first.
    ///
    /// # Errors
    ///
    /// Fails as the store does; the node is down then.
    pub fn open(&mut self, is_first_start: bool) -> Result<(), OpenError> {
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
        let session = engine.connect(Peer::default(), reading.moment.time);
        self.run = Some(Run {
            session: session.expect("room for a client"),
            engine,
            store,
            reason: start.reason,
            in_flight: None,
            withheld: Vec::new(),
        });
        Ok(())
    }

    /// Sends a request of words, separated by spaces; a word in double quotes may hold spaces.
    pub fn send(&mut self, request: &str) -> Answer {
        let Some(run) = &mut self.run else {
            return Answer::Lost;
        };
        let mut args: Vec<&[u8]> = Vec::new();
        for (index, part) in request.split('"').enumerate() {
            match index % 2 {
                0 => args.extend(part.split_whitespace().map(str::as_bytes)),
                _ => args.push(part.as_bytes()),
            }
        }
        let mut out = Vec::new();
        run.engine.guard().note_slip(self.clock.slip_ns());
        let mut batch = run.engine.batch(self.clock.now());
        batch.execute(&mut run.session, &args, &mut out);
        let need = batch.finish(&run.session, 1);
        let text = String::from_utf8_lossy(&out).replace("\r\n", " ");
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        run.withheld
            .push((ticket, need, text.trim_end().to_owned()));
        self.turn();
        match self.late.iter().position(|(it, _)| *it == ticket) {
            Some(at) => self.late.remove(at).1,
            None => Answer::Withheld(ticket),
        }
    }

    /// The reply to a request that is answered at once.
    #[track_caller]
    pub fn reply(&mut self, request: &str) -> String {
        match self.send(request) {
            Answer::Reply(reply) => reply,
            answer => panic!("{request}: {answer:?}"),
        }
    }

    /// Sends a request, and checks the reply, which must come at once.
    #[track_caller]
    pub fn expect(&mut self, request: &str, want: &str) {
        assert_eq!(self.reply(request), want, "{request}");
    }

    /// Sends requests that must be answered by OK at once.
    #[track_caller]
    pub fn expect_ok(&mut self, requests: &[&str]) {
        for request in requests {
            self.expect(request, "+OK");
        }
    }

    /// Sends a request whose reply must come at once and begin like this.
    #[track_caller]
    pub fn expect_start(&mut self, request: &str, start: &str) {
        let reply = self.reply(request);
        assert!(reply.starts_with(start), "{request}: {reply}");
    }

    /// Sends a request whose reply must wait for the disk.
    #[track_caller]
    pub fn expect_withheld(&mut self, request: &str) -> Ticket {
        match self.send(request) {
            Answer::Withheld(ticket) => ticket,
            answer => panic!("{request}: {answer:?} before it was durable"),
        }
    }

    /// Whether a request is refused because of the quarantine.
    #[track_caller]
    pub fn is_loading(&mut self, request: &str) -> bool {
        let reply = self.reply(request);
        reply.starts_with("-LOADING locknode is in its restart quarantine, ")
    }

    /// The withheld replies that have left or were lost since the last call.
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

    /// The disk hangs in its next work until it is released.
    pub fn hold_disk(&mut self) {
        self.is_held = true;
    }

    /// The disk does the work it hangs in, and all that was requested since.
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
        self.clock.set(DAY, DAY);
        self.machine = Machine {
            boot_id: self.fresh_id(),
            machine_id: self.fresh_id(),
            time_namespace: Machine::INITIAL_TIME_NAMESPACE,
        };
    }

    /// Begins to stop: the node grants nothing any more. [`StoredNode::clean_stop`] does this first.
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
        run.release_replies(&mut self.late);
        result?;
        let reading = self.clock.reading();
        let mut table = run.engine.table(reading.moment.time);
        run.store.close(&mut table, reading)
    }

    /// Whether a process runs.
    pub fn is_up(&self) -> bool {
        self.run.is_some()
    }

    /// Why this run began with a wait, or without; `None` when the node is down.
    pub fn reason(&self) -> Option<StartReason> {
        self.run.as_ref().map(|run| run.reason)
    }

    /// How much longer it refuses every lock; `None` when it serves or is down.
    pub fn quarantine_left(&self) -> Option<Duration> {
        let now = self.clock.now().time;
        self.run.as_ref()?.engine.guard().quarantine_left(now)
    }

    /// The guard's report.
    pub fn guard(&self) -> GuardReport {
        self.run().engine.guard().report(self.clock.now().time)
    }

    /// What the store has made durable in this run.
    pub fn durable(&self) -> Durable {
        self.run().store.durable()
    }

    /// Figures about the store in this run.
    pub fn figures(&self) -> StoreFigures {
        self.run().store.figures()
    }

    fn run(&self) -> &Run {
        self.run.as_ref().expect("the node is up")
    }

    /// The process is gone, and so are the replies that have not left it.
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
            run.release_replies(&mut self.late);
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

    /// Sends the replies that may leave, and drops those that never will.
    fn release_replies(&mut self, late: &mut Vec<(Ticket, Answer)>) {
        let guard = self.engine.guard();
        self.withheld.retain_mut(|(ticket, need, reply)| {
            let answer = if guard.is_durable(need) {
                Answer::Reply(std::mem::take(reply))
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
