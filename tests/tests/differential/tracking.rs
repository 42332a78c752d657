//! Two connections, of which one caches what it reads: the same replies and the same invalidations.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use locknode_engine::{Engine, EngineConfig, Peer, Session};
use locknode_tests::RedisServer;

use crate::node::present;
use crate::reply;
use crate::sequence::{Dice, Request};

/// The caching connection and the other.
const CONNECTIONS: usize = 2;

/// What a step led to: the reply, and what the caching connection was sent, in order of bytes.
/// command's invalidations have none: they follow the order of hash tables.
type Outcome = (Vec<u8>, Vec<Vec<u8>>);

#[test]
fn a_caching_client_is_sent_the_same_invalidations() {
    let Some(server) = RedisServer::start() else {
        return;
    };
    let seed = crate::seed();
    for number in 0..crate::rounds(SEQUENCES) {
        let mut dice = Dice::new(seed.wrapping_add(number));
        let steps: Vec<_> = (0..STEPS).flat_map(|_| steps(&mut dice)).collect();
        let theirs = real(&server, &steps);
        for shards in [1, 8] {
            let ours = node(shards, &steps);
            for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
                let seed = seed.wrapping_add(number);
                let before: String = steps[..=at]
                    .iter()
                    .map(|(c, r)| format!("{c}> {r}\n"))
                    .collect();
                assert_eq!(
                    show(ours),
                    show(theirs),
                    "LOCKNODE_TEST_SEED={seed}, after\n{before}"
                );
            }
        }
    }
}

fn show((reply, pushes): &Outcome) -> String {
    let all = std::iter::once(reply).chain(pushes);
    all.map(|bytes| bytes.escape_ascii().to_string())
        .collect::<Vec<_>>()
        .join("\n")
}

/// One step, or how tracking ends: nothing of before is remembered then, as on a real server after
/// FLUSHALL.
fn steps(dice: &mut Dice) -> Vec<(usize, Request)> {
    if dice.below(20) == 0 {
        return vec![(0, words("CLIENT TRACKING OFF")), (1, words("FLUSHALL"))];
    }
    vec![step(dice)]
}

/// A connection and what it sends.
fn step(dice: &mut Dice) -> (usize, Request) {
    let caching = |words: &str| (0, words.to_owned());
    let key = format!(
        "{}{}",
        dice.pick(&["a", "b", "ab"]),
        dice.pick(&["", "", "1"])
    );
    let key = key.as_str();
    let (connection, words) = match dice.below(20) {
        0 => caching(&tracking(dice)),
        1 => caching(dice.pick(&["CLIENT TRACKINGINFO", "CLIENT GETREDIR"])),
        2..=3 => caching(dice.pick(&["CLIENT CACHING YES", "CLIENT CACHING NO"])),
        4 => caching(dice.pick(&["PING", "NOSUCH", "GET", "SELECT 1", "SELECT 0"])),
        5 => (
            dice.below(2),
            dice.pick(&["FLUSHDB", "FLUSHALL", "SELECT 1", "SELECT 0"])
                .to_owned(),
        ),
        6..=10 => {
            let name = dice.pick(&["GET", "EXISTS", "TYPE", "STRLEN", "MGET b", "GETRANGE"]);
            let end = if name == "GETRANGE" { " 0 1" } else { "" };
            caching(&format!("{name} {key}{end}"))
        }
        11 => (
            dice.below(2),
            format!(
                "EVAL redis.call('SET',KEYS[1],'x','NX')\treturn\tredis.call('GET',KEYS[1]) 1 {key}"
            ),
        ),
        _ => {
            let change = dice.pick(&[
                "SET k v",
                "SET k v NX",
                "SETNX k v",
                "DEL k b",
                "MSET k 1 b 1",
                "PEXPIRE k 100000",
                "PERSIST k",
                "PEXPIRE k 0",
                "GETDEL k",
                "SET k v PX 100000",
                "GETEX k PX 90000",
            ]);
            (dice.below(2), change.replace('k', key))
        }
    };
    let words = words
        .split(' ')
        .map(|word| word.replace('\t', " ").into_bytes());
    (connection, Request::array(words))
}

fn tracking(dice: &mut Dice) -> String {
    let mut words = "CLIENT TRACKING ON".to_owned();
    for _ in 0..dice.below(3) {
        words += dice.pick(&[
            " OPTIN",
            " OPTOUT",
            " NOLOOP",
            " BCAST",
            " BCAST PREFIX a",
            " PREFIX b",
            " PREFIX ab",
            " REDIRECT 1000000",
            " maybe",
        ]);
    }
    words
}

/// What the real server answers and sends.
fn real(server: &RedisServer, steps: &[(usize, Request)]) -> Vec<Outcome> {
    let mut wires: Vec<Wire> = (0..CONNECTIONS).map(|_| Wire::connect(server)).collect();
    wires[1].ask(&words("FLUSHALL"));
    wires[0].ask(&words("HELLO 3"));
    let outcome = |(connection, request): &(usize, Request)| {
        let reply = wires[*connection].ask(request);
        // What was sent before the reply to this is here with it, and CLIENT leaves CLIENT CACHING
        // in force.
        wires[0].ask(&words("CLIENT GETNAME"));
        let mut pushes: Vec<_> = std::mem::take(&mut wires[0].pushes);
        pushes.sort();
        (reply, without_own(*connection, request, pushes))
    };
    steps.iter().map(outcome).collect()
}

/// What the engine answers and sends.
fn node(shards: usize, steps: &[(usize, Request)]) -> Vec<Outcome> {
    let moment = present();
    let mut config = EngineConfig::new(7, "run");
    config.shards = shards;
    let engine = Engine::new(config, moment);
    let connect = |_| engine.connect(Peer::default(), moment.time).expect("room");
    let mut sessions: Vec<Session> = (0..CONNECTIONS).map(connect).collect();
    let mut ask = |connection: usize, request: &Request| {
        let args: Vec<&[u8]> = request.words.iter().map(Vec::as_slice).collect();
        let (mut out, mut mail) = (Vec::new(), Vec::new());
        engine
            .batch(moment)
            .execute(&mut sessions[connection], &args, &mut out);
        sessions[0].client().take_mail(&mut mail, usize::MAX);
        let mut pushes = reply::split(&mail).0;
        pushes.sort();
        (out, without_own(connection, request, pushes))
    };
    ask(0, &words("HELLO 3"));
    steps
        .iter()
        .map(|(connection, request)| ask(*connection, request))
        .collect()
}

/// Leaves out what a script of the caching client changes: with BCAST and NOLOOP the real server
/// sends it that, because it knows no longer who has run the script.
fn without_own(connection: usize, request: &Request, pushes: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if connection == 0 && request.name() == "eval" {
        return Vec::new();
    }
    pushes
}

fn words(text: &str) -> Request {
    Request::array(text.split(' ').map(|word| word.as_bytes().to_vec()))
}

/// A connection to the real server.
struct Wire {
    stream: UnixStream,
    received: Vec<u8>,
    replies: VecDeque<Vec<u8>>,
    pushes: Vec<Vec<u8>>,
}

impl Wire {
    fn connect(server: &RedisServer) -> Self {
        let stream = UnixStream::connect(server.socket()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self {
            stream,
            received: Vec::new(),
            replies: VecDeque::new(),
            pushes: Vec::new(),
        }
    }

    fn ask(&mut self, request: &Request) -> Vec<u8> {
        self.stream
            .write_all(&request.encode())
            .expect("a server that reads");
        let mut chunk = [0; 4096];
        loop {
            if let Some(reply) = self.replies.pop_front() {
                return reply;
            }
            let len = self.stream.read(&mut chunk).expect("a reply in time");
            assert_ne!(len, 0, "{request}: closed");
            self.received.extend_from_slice(&chunk[..len]);
            let (all, len) = reply::split(&self.received);
            self.received.drain(..len);
            let (pushes, replies) = all.into_iter().partition(|each| each.starts_with(b">"));
            self.pushes.extend::<Vec<_>>(pushes);
            self.replies.extend::<Vec<_>>(replies);
        }
    }
}

/// Far longer than any of the commands takes.
const PATIENCE: Duration = Duration::from_secs(3);

const SEQUENCES: u64 = 200;
const STEPS: usize = 60;
