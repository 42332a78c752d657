//! What all connections of a fake share: the engine behind it, its rules, its record.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use locknode_engine::{Engine, EngineConfig, Flow, Moment, Peer, Session, Time, WallTime};
use locknode_resp::{Reply, ReplyDecoder, ReplyLimits};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::behaviour::Behaviour;
use super::flavour::Flavour;
use super::received::{On, Received};

/// Whether the node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Answering,
    /// Requests are read and recorded, nothing else.
    Silent,
    /// Nothing is read.
    NotReading,
}

#[derive(Debug)]
pub(super) struct State {
    flavour: Flavour,
    password: String,
    life: Mutex<Life>,
    started: Instant,
    time_passed_ns: AtomicU64,
    rules: Mutex<Vec<Rule>>,
    received: Mutex<Vec<Received>>,
    changed: watch::Sender<u64>,
    mode: watch::Sender<Mode>,
    connections: Mutex<Vec<JoinHandle<()>>>,
    accepted: AtomicUsize,
}

/// What a crash ends.
#[derive(Debug)]
struct Life {
    engine: Engine,
    run_id: String,
    /// The scripts that were sent, by SHA1.
    scripts: HashMap<String, String>,
}

#[derive(Debug)]
struct Rule {
    on: On,
    behaviour: Behaviour,
    /// How often it still counts; `None` for always.
    left: Option<usize>,
}

impl State {
    pub(super) fn new(flavour: Flavour, password: &str) -> Self {
        Self {
            flavour,
            password: password.to_owned(),
            life: Mutex::new(Life::begin(password)),
            started: Instant::now(),
            time_passed_ns: AtomicU64::new(0),
            rules: Mutex::default(),
            received: Mutex::default(),
            changed: watch::Sender::new(0),
            mode: watch::Sender::new(Mode::Answering),
            connections: Mutex::default(),
            accepted: AtomicUsize::new(0),
        }
    }

    // Rules.

    pub(super) fn add_rule(&self, on: On, behaviour: Behaviour, left: Option<usize>) {
        let mut rules = self.rules.lock().expect("no panic");
        rules.push(Rule {
            on,
            behaviour,
            left,
        });
    }

    pub(super) fn clear_rules(&self) {
        self.rules.lock().expect("no panic").clear();
    }

    /// The behaviour of the first rule for the request, those that count only so many times before the others.
    pub(super) fn behaviour_for(&self, request: &Received) -> Behaviour {
        let mut rules = self.rules.lock().expect("no panic");
        let matching = |wants_counted: bool| {
            rules
                .iter()
                .position(|rule| rule.left.is_some() == wants_counted && rule.on.matches(request))
        };
        let Some(index) = matching(true).or_else(|| matching(false)) else {
            return Behaviour::Honest;
        };
        let rule = &mut rules[index];
        let behaviour = rule.behaviour.clone();
        rule.left = rule.left.map(|left| left - 1);
        if rule.left == Some(0) {
            rules.remove(index);
        }
        behaviour
    }

    // The record.

    /// Notes a request when it arrives.
    pub(super) fn note(&self, connection: usize, args: Vec<Vec<u8>>) -> Received {
        let script = args.get(1).and_then(|sha| {
            let life = self.life.lock().expect("no panic");
            life.scripts.get(&lower(sha)).cloned()
        });
        let request = Received::arrive(connection, args, script.as_deref());
        self.received
            .lock()
            .expect("no panic")
            .push(request.clone());
        self.changed.send_modify(|count| *count += 1);
        request
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    // The mode.

    pub(super) fn set_mode(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    pub(super) fn mode(&self) -> watch::Receiver<Mode> {
        self.mode.subscribe()
    }

    // Connections.

    /// The number of a new connection, counted from 1.
    pub(super) fn note_connection(&self) -> usize {
        self.accepted.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(super) fn connections_accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn keep(&self, task: JoinHandle<()>) {
        self.connections.lock().expect("no panic").push(task);
    }

    pub(super) fn connections_open(&self) -> usize {
        let connections = self.connections.lock().expect("no panic");
        connections
            .iter()
            .filter(|task| !task.is_finished())
            .count()
    }

    pub(super) async fn close_connections(&self) {
        let tasks = std::mem::take(&mut *self.connections.lock().expect("no panic"));
        for task in tasks {
            task.abort();
            // Once the task has ended its socket is closed.
            let _ = task.await;
        }
    }

    pub(super) fn abort_connections(&self) {
        for task in self.connections.lock().expect("no panic").iter() {
            task.abort();
        }
    }

    // The engine.

    pub(super) fn session(&self) -> Session {
        let life = self.life.lock().expect("no panic");
        let now = self.now();
        life.engine
            .connect(Peer::default(), now.time)
            .expect("room for a client")
    }

    /// Does what an honest node of this flavour does and returns the reply; empty for none.
    pub(super) fn apply(&self, session: &mut Session, request: &Received) -> Vec<u8> {
        let args: Vec<&[u8]> = request.args.iter().map(Vec::as_slice).collect();
        let mut life = self.life.lock().expect("no panic");
        let name = request.name();
        if !self.flavour.has(&name) {
            return unknown_command(&args);
        }
        let sub = request.text(1).to_ascii_uppercase();
        match name.as_str() {
            "SET" if !self.flavour.has_ifeq() && request.args.iter().any(|a| a == b"IFEQ") => {
                return b"-ERR syntax error\r\n".to_vec();
            }
            "EVALSHA" if self.flavour.forgets_scripts() => {
                let sha = sub.to_ascii_lowercase();
                if !life.scripts.contains_key(&sha) {
                    return b"-NOSCRIPT No matching script. Please use EVAL.\r\n".to_vec();
                }
            }
            "EVAL" => life.learn(&request.text(1)),
            "SCRIPT" if sub == "LOAD" => life.learn(&request.text(2)),
            "SCRIPT" if sub == "FLUSH" => life.scripts.clear(),
            "COMMAND" if sub == "INFO" => {
                let known = args
                    .iter()
                    .enumerate()
                    .map(|(index, &arg)| {
                        if index < 2 || self.flavour.has(&upper(arg)) {
                            arg
                        } else {
                            b"nosuchcommand"
                        }
                    })
                    .collect::<Vec<_>>();
                return life.execute(self.now(), session, &known);
            }
            "INFO" if !self.is_stranger(&life, session) => {
                if let Some(info) = self.flavour.info(&life.run_id) {
                    return format!("${}\r\n{info}\r\n", info.len()).into_bytes();
                }
            }
            _ => {}
        }
        life.execute(self.now(), session, &args)
    }

    /// Runs a command of the test's own.
    pub(super) fn run(&self, words: &[&str]) -> Reply {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut session = self.session();
        let life = self.life.lock().expect("no panic");
        if !self.password.is_empty() {
            life.execute(
                self.now(),
                &mut session,
                &[b"AUTH", self.password.as_bytes()],
            );
        }
        reply(&life.execute(self.now(), &mut session, &args))
    }

    pub(super) fn keys(&self) -> BTreeMap<String, String> {
        let Reply::Array(keys) = self.run(&["KEYS", "*"]) else {
            panic!("KEYS gives an array");
        };
        let mut found = BTreeMap::new();
        for key in keys.iter().map(text) {
            if let token @ Reply::Bulk(_) = self.run(&["GET", &key]) {
                found.insert(key, text(&token));
            }
        }
        found
    }

    pub(super) fn remaining(&self, key: &str) -> Option<Duration> {
        match self.run(&["PTTL", key]) {
            Reply::Integer(ms) => u64::try_from(ms).ok().map(Duration::from_millis),
            other => panic!("PTTL gave {other:?}"),
        }
    }

    pub(super) fn pass_time(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.time_passed_ns.fetch_add(by, Ordering::SeqCst);
    }

    pub(super) fn forget_scripts(&self) {
        self.life.lock().expect("no panic").scripts.clear();
    }

    pub(super) fn forget_everything(&self) {
        *self.life.lock().expect("no panic") = Life::begin(&self.password);
    }

    fn is_stranger(&self, life: &Life, session: &mut Session) -> bool {
        !self.password.is_empty() && life.execute(self.now(), session, &[b"PING"])[0] == b'-'
    }

    fn now(&self) -> Moment {
        let passed = self.time_passed_ns.load(Ordering::SeqCst);
        let since = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let time_ns = ORIGIN_NS.saturating_add(since).saturating_add(passed);
        Moment {
            time: Time::from_nanos(time_ns),
            wall: WallTime::from_unix_nanos(time_ns),
        }
    }
}

impl Life {
    fn begin(password: &str) -> Self {
        let run_id = format!("{:040x}", RUNS.fetch_add(1, Ordering::SeqCst));
        let mut config = EngineConfig::new(7, run_id.clone());
        password.clone_into(&mut config.options.requirepass);
        let started = Moment {
            time: Time::from_nanos(ORIGIN_NS),
            wall: WallTime::from_unix_nanos(ORIGIN_NS),
        };
        Self {
            engine: Engine::new(config, started),
            run_id,
            scripts: HashMap::new(),
        }
    }

    fn learn(&mut self, text: &str) {
        let sha = sha1_smol::Sha1::from(text).digest().to_string();
        self.scripts.insert(sha, text.to_owned());
    }

    fn execute(&self, now: Moment, session: &mut Session, args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let flow = self.engine.batch(now).execute(session, args, &mut out);
        // A wrong password is answered later: here it is later at once.
        if flow == Flow::Paused
            && let Some(time) = self.engine.wait_end(session, now.time)
        {
            let later = Moment { time, ..now };
            self.engine.batch(later).execute(session, args, &mut out);
        }
        out
    }
}

fn unknown_command(args: &[&[u8]]) -> Vec<u8> {
    let mut words = args.iter().map(|arg| String::from_utf8_lossy(arg));
    let name = words.next().unwrap_or_default();
    let rest: String = words.map(|word| format!("'{word}' ")).collect();
    let rest = rest.replace(['\r', '\n'], " ");
    let rest = rest.get(..rest.len().min(128)).unwrap_or_default();
    format!("-ERR unknown command '{name}', with args beginning with: {rest}\r\n").into_bytes()
}

fn reply(bytes: &[u8]) -> Reply {
    match ReplyDecoder::new(ReplyLimits::default()).decode(bytes) {
        Ok(Some((reply, _))) => reply,
        other => panic!("the engine gave {other:?}"),
    }
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("no string: {other:?}"),
    }
}

fn lower(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_lowercase()
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// Runs of fakes in this process: each has a name of its own.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// Where every fake's clock begins: some day after 1970, so that nothing depends on zero.
const ORIGIN_NS: u64 = 1_700_000_000_000_000_000;
