//! Commands that wait for others, and clients that want no replies: what each of several connections receives.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use locknode_engine::{Engine, EngineConfig, Flow, Moment, Peer, Session};

use crate::difference::Peculiarities;
use crate::node::present;
use crate::sequence::{Dice, Request};
use crate::server::{self, Server, ask};
use crate::{reply, rounds, seed};

#[test]
fn who_waits_is_served_as_by_a_real_server() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let peculiarities = Peculiarities::of(&mut server);
    let mut compared = 0;
    for number in 0..rounds(SEQUENCES) {
        let seed = seed().wrapping_add(number);
        let mut dice = Dice::new(seed);
        let (mut theirs, mut ours) = (Theirs::new(&server), Ours::new());
        let mut sent = String::new();
        let mut in_transaction = [false; CLIENTS];
        for client in (0..CLIENTS).filter(|_| dice.one_in(2)) {
            theirs.ask(client, "HELLO 3");
            ours.ask(client, "HELLO 3");
        }
        for _ in 0..STEPS {
            let awake: Vec<usize> = (0..CLIENTS).filter(|&it| !ours.waits(it)).collect();
            // All wait: nothing that can be sent wakes one.
            let Some(&client) = awake.get(dice.below(CLIENTS) % awake.len().max(1)) else {
                break;
            };
            let mut line = line(&mut dice);
            if in_transaction[client] && peculiarities.is_unfit_for_transaction(&line) {
                line = "PING".to_owned();
            }
            in_transaction[client] = match &*line {
                "MULTI" => true,
                "EXEC" | "DISCARD" => false,
                _ => in_transaction[client],
            };
            sent += &format!("  {client}: {line}\n");
            let received = [theirs.ask(client, &line), ours.ask(client, &line)];
            let [theirs, ours] = &received;
            let request = Request::array(line.split(' ').map(|word| word.into()));
            let mut both = theirs.iter().zip(ours);
            assert!(
                both.all(|(theirs, ours)| peculiarities.allow(&request, theirs, ours)),
                "LOCKNODE_TEST_SEED={seed}, {}, after\n{sent}\n  real: {:?}\n  ours: {:?}",
                peculiarities.version,
                theirs.each_ref().map(|it| text(it)),
                ours.each_ref().map(|it| text(it))
            );
            compared += 1;
        }
    }
    println!("{compared} steps compared with {}", peculiarities.version);
}

/// A random request, in words; `ID0` stands for the number of client 0.
fn line(dice: &mut Dice) -> String {
    let form = dice.pick(&FORMS);
    let mut words = Vec::new();
    for part in form.split(' ') {
        let word = match part {
            "k" => dice.pick(&["a", "a", "b", "c", "string"]),
            "l" => dice.pick(&["a", "b"]),
            "s" => dice.pick(&["c", "string"]),
            "v" => dice.pick(&["x", "y", "z"]),
            "t" => dice.pick(&["0", "0", "0.0", "1000", "1e3", "-1", "x", "", "nan"]),
            "n" => dice.pick(&["1", "2", "0", "-1", "x"]),
            "id" => dice.pick(&["ID0", "ID1", "ID2", "ID3", "999999", "x"]),
            "mode" => dice.pick(&["ON", "ON", "OFF", "SKIP", "SKIP", "foo"]),
            word => word,
        };
        words.push(word);
    }
    if dice.one_in(40) {
        words.pop();
    }
    words.join(" ")
}

fn request(line: &str, ids: &[String; CLIENTS]) -> Request {
    let word = |word: &str| {
        let id = word
            .strip_prefix("ID")
            .and_then(|it| it.parse::<usize>().ok());
        id.map_or(word, |id| &ids[id]).as_bytes().to_vec()
    };
    Request::array(line.split(' ').map(word))
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Connections of a real server, and one that tells when a request is done.
struct Theirs {
    streams: [UnixStream; CLIENTS],
    ids: [String; CLIENTS],
    watcher: UnixStream,
}

impl Theirs {
    fn new(server: &Server) -> Self {
        let mut watcher = server.connect();
        ask(&mut watcher, b"FLUSHALL\r\n");
        ask(&mut watcher, b"SET string s\r\n");
        let mut streams = [(); CLIENTS].map(|()| server.connect());
        let ids = streams.each_mut().map(|stream| {
            let id = ask(stream, b"CLIENT ID\r\n");
            stream.set_nonblocking(true).expect("a mode");
            reply::integer(&id).expect("a number").to_string()
        });
        Self {
            streams,
            ids,
            watcher,
        }
    }

    fn ask(&mut self, client: usize, line: &str) -> [Vec<u8>; CLIENTS] {
        let bytes = request(line, &self.ids).encode();
        self.streams[client]
            .write_all(&bytes)
            .expect("a server that reads");
        // What a request has others receive is sent before the next reply to another.
        server::settle(&mut self.watcher);
        self.streams.each_mut().map(|stream| {
            let (mut received, mut chunk) = (Vec::new(), [0; 1 << 12]);
            loop {
                match stream.read(&mut chunk) {
                    Ok(0) => received.extend(b"(closed)"),
                    Ok(len) => {
                        received.extend_from_slice(&chunk[..len]);
                        continue;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
                break received;
            }
        })
    }
}

/// Sessions of an engine whose clock stands still.
struct Ours {
    engine: Engine,
    moment: Moment,
    sessions: [Session; CLIENTS],
    ids: [String; CLIENTS],
}

impl Ours {
    fn new() -> Self {
        let moment = present();
        let engine = Engine::new(EngineConfig::new(7, "run"), moment);
        let connect = || engine.connect(Peer::default(), moment.time).expect("room");
        let mut sessions = [(); CLIENTS].map(|()| connect());
        let ids = sessions.each_mut().map(|session| {
            let mut out = Vec::new();
            let mut batch = engine.batch(moment);
            batch.execute(session, &[b"CLIENT", b"ID"], &mut out);
            reply::integer(&out).expect("a number").to_string()
        });
        let set: [&[u8]; 3] = [b"SET", b"string", b"s"];
        let mut batch = engine.batch(moment);
        batch.execute(&mut sessions[0], &set, &mut Vec::new());
        drop(batch);
        Self {
            engine,
            moment,
            sessions,
            ids,
        }
    }

    fn waits(&self, client: usize) -> bool {
        self.sessions[client].is_waiting()
    }

    fn ask(&mut self, client: usize, line: &str) -> [Vec<u8>; CLIENTS] {
        let mut received: [Vec<u8>; CLIENTS] = Default::default();
        let request = request(line, &self.ids);
        let words: Vec<&[u8]> = request.words.iter().map(Vec::as_slice).collect();
        let flow = self.engine.batch(self.moment).execute(
            &mut self.sessions[client],
            &words,
            &mut received[client],
        );
        assert!(
            matches!(flow, Flow::Continue | Flow::Blocked),
            "{line}: {flow:?}"
        );
        for (session, received) in self.sessions.iter_mut().zip(&mut received) {
            session.client().take_mail(received, usize::MAX);
            if !session.is_waiting() {
                session.forget_wait();
            }
        }
        received
    }
}

const CLIENTS: usize = 4;

/// `k` is a key, `l` one that never holds a string, `s` one that may, `v` an element, `t` a timeout, `n` a number, `id`
/// a client, `mode` one of CLIENT REPLY's.
const FORMS: [&str; 32] = [
    "BLPOP k t",
    "BLPOP k 0",
    "BLPOP k 0",
    "BLPOP l l 0",
    "BLPOP l l l t",
    "RPUSH k v",
    "RPUSH k v v",
    "LPUSH k v v v",
    "RPUSH k v",
    "LPOP k",
    "LPOP k n",
    "LRANGE k 0 -1",
    "DEL k",
    "DEL k k",
    "SET s v",
    "EXISTS k k",
    "TYPE k",
    "MULTI",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH k",
    "EVAL return{redis.pcall('rpush',KEYS[1],'e','f'),redis.pcall('lpop',KEYS[1])} 1 k",
    "CLIENT REPLY mode",
    "CLIENT REPLY ON",
    "CLIENT REPLY mode x",
    "CLIENT UNBLOCK id",
    "CLIENT UNBLOCK id TIMEOUT",
    "CLIENT UNBLOCK id ERROR",
    "CLIENT UNBLOCK id foo",
    "PING",
    "nosuch v",
];

/// Each pair of forms comes many times, in a few seconds.
const SEQUENCES: u64 = 60;
const STEPS: usize = 120;
