//! Messages and keyspace events: several connections of a real server against those of the engine.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use locknode_engine::{Engine, EngineConfig, Moment, Session};
use locknode_tests::RedisServer;

use crate::difference::Peculiarities;
use crate::node::present;
use crate::sequence::{self, Dice, Request};
use crate::server::Server;
use crate::{reply, rounds, seed};

/// What every connection receives after each request, byte for byte.
#[test]
fn messages_are_those_of_a_real_server() {
    let Some(process) = RedisServer::start() else {
        return;
    };
    for number in 0..rounds(SEQUENCES) {
        let seed = seed().wrapping_add(number);
        let mut dice = Dice::new(seed);
        let (mut theirs, mut ours) = (Theirs::new(&process.socket()), Ours::new());
        let mut sent = String::new();
        for _ in 0..REQUESTS {
            let client = dice.below(CLIENTS);
            let request = messages(&mut dice);
            sent += &format!("  {client}: {request}\n");
            let (theirs, ours) = (theirs.ask(client, &request), ours.ask(client, &request));
            assert_eq!(
                plain(&request, &ours),
                plain(&request, &theirs),
                "LOCKNODE_TEST_SEED={seed}, after\n{sent}"
            );
        }
    }
}

/// What a subscriber to all keyspace events receives.
#[test]
fn events_are_those_of_a_real_server() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let peculiarities = Peculiarities::of(&mut server);
    for number in 0..rounds(SEQUENCES) {
        let seed = seed().wrapping_add(number);
        let mut dice = Dice::new(seed);
        let (mut theirs, mut ours) = (Theirs::new(&server.socket()), Ours::new());
        let mut sent = String::new();
        let begin =
            |words: &[&str]| Request::array(words.iter().map(|word| word.as_bytes().to_vec()));
        let set_up = [
            (0, begin(&["FLUSHALL"])),
            (
                0,
                begin(&["CONFIG", "SET", "notify-keyspace-events", "KEAnm"]),
            ),
            (1, begin(&["PSUBSCRIBE", "__key*@*__:*"])),
        ];
        for (client, request) in &set_up {
            theirs.ask(*client, request);
            ours.ask(*client, request);
        }
        for request in sequence::random(&mut dice, REQUESTS, &peculiarities) {
            if stores_what_is_past(&request) {
                continue;
            }
            sent += &format!("  {request}\n");
            let (theirs, ours) = (theirs.ask(0, &request), ours.ask(0, &request));
            let mut both = [&ours, &theirs].map(|received| events(&request, &received[1]));
            if peculiarities.is_valkey {
                both.iter_mut().for_each(|it| as_valkey(&request, it));
            }
            let [ours, theirs] = both;
            assert_eq!(ours, theirs, "LOCKNODE_TEST_SEED={seed}, after\n{sent}");
        }
    }
}

/// Levels where Valkey 9.1 tells something else than Redis does, and we: a key that is given a deadline in the past is
/// `expired` instead of deleted, and GETEX with a bad deadline does not look for its key.
fn as_valkey(request: &Request, events: &mut Vec<String>) {
    if request.name() == "getex" {
        events.retain(|event| !event.contains("keymiss"));
    }
    if EXPIRES.contains(&&*request.name()) {
        for event in events {
            let words = event.split(r"\r\n").filter(|word| !word.starts_with('$'));
            *event = words
                .collect::<Vec<_>>()
                .join(" ")
                .replace("del", "expired");
        }
    }
}

const EXPIRES: [&str; 6] = [
    "eval",
    "expire",
    "expireat",
    "getex",
    "pexpire",
    "pexpireat",
];

/// The events of a request; what a script only reads is no event of ours, because native ones do not read one by one.
fn events(request: &Request, received: &[u8]) -> Vec<String> {
    let (events, _) = reply::split(received);
    let mut events: Vec<String> = events.iter().map(|event| text(event)).collect();
    events.retain(|event| request.name() != "eval" || !event.contains("keymiss"));
    events
}

/// A timestamp in the past may leave a key that Redis stores until somebody looks at it; here it is never there.
fn stores_what_is_past(request: &Request) -> bool {
    let is =
        |word: &Vec<u8>| word.eq_ignore_ascii_case(b"EXAT") || word.eq_ignore_ascii_case(b"PXAT");
    matches!(&*request.name(), "set" | "msetex") && request.words.iter().any(is)
}

/// A random request about messages, good or bad.
fn messages(dice: &mut Dice) -> Request {
    let mut words = vec![dice.pick(&COMMANDS).to_owned()];
    match &*words[0] {
        "HELLO" => words.push(dice.pick(&["2", "3"]).to_owned()),
        "GET" => words.push("k".to_owned()),
        "CONFIG" => words.extend(["GET", "maxclients"].map(str::to_owned)),
        "PUBLISH" | "SPUBLISH" => {
            words.extend([
                dice.pick(&CHANNELS).to_owned(),
                dice.pick(&["m", "", "a\r\nb"]).to_owned(),
            ]);
        }
        "EVAL" => {
            let script =
                "redis.call(ARGV[1], ARGV[2], 'one') return redis.call(ARGV[1], ARGV[3], 'two')";
            words.extend([script, "0", dice.pick(&["publish", "SPUBLISH"])].map(str::to_owned));
            words.extend([
                dice.pick(&CHANNELS).to_owned(),
                dice.pick(&CHANNELS).to_owned(),
            ]);
        }
        "PUBSUB" => {
            words.push(dice.pick(&PUBSUB).to_owned());
            for _ in 0..dice.below(3) {
                words.push(dice.pick(&CHANNELS).to_owned());
            }
        }
        "PING" | "RESET" => {}
        name => {
            let names = if name.starts_with('P') {
                PATTERNS.as_slice()
            } else {
                CHANNELS.as_slice()
            };
            for _ in 0..dice.below(4) {
                words.push(dice.pick(names).to_owned());
            }
        }
    }
    if dice.one_in(30) {
        words.push("more".to_owned());
    }
    Request::array(words.into_iter().map(String::into_bytes))
}

/// The replies and messages of each connection, without their order and what depends on it: neither side promises in
/// which order patterns are tried, names are listed or all subscriptions end.
fn plain(request: &Request, received: &[Vec<u8>]) -> Vec<Vec<String>> {
    let name = request.name();
    let ends_all = name.ends_with("unsubscribe") && request.words.len() == 1;
    let plain_reply = |reply: Vec<u8>| {
        let mut elements = reply::elements(&reply);
        if name == "pubsub" {
            elements.sort();
        }
        let mut words: Vec<String> = elements.iter().map(|element| text(element)).collect();
        if name == "hello" && reply.windows(6).any(|part| part == b"server") {
            words = vec!["a greeting".to_owned()];
        }
        if ends_all {
            let last = words.pop().filter(|last| !last.starts_with(':'));
            words.extend(last);
        }
        words.join(" ")
    };
    let of_connection = |bytes: &Vec<u8>| {
        let mut replies: Vec<String> = reply::split(bytes).0.into_iter().map(plain_reply).collect();
        replies.sort();
        replies
    };
    received.iter().map(of_connection).collect()
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Connections of a real server.
struct Theirs(Vec<UnixStream>);

impl Theirs {
    fn new(socket: &Path) -> Self {
        let connect = |_| {
            let stream = UnixStream::connect(socket).expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            stream
        };
        Self((0..CLIENTS).map(connect).collect())
    }

    /// Sends a request, then a PING on every connection, and returns what each received up to its reply.
    fn ask(&mut self, client: usize, request: &Request) -> Vec<Vec<u8>> {
        let mut received = vec![Vec::new(); CLIENTS];
        let mut order: Vec<usize> = (0..CLIENTS).collect();
        // Its PING is answered when the request is done.
        order.swap(0, client);
        self.0[client]
            .write_all(&request.encode())
            .expect("a server that reads");
        for client in order {
            let stream = &mut self.0[client];
            stream
                .write_all(format!("PING {TOKEN}\r\n").as_bytes())
                .expect("a server that reads");
            let end = format!("{TOKEN}\r\n");
            let mut chunk = vec![0; 1 << 16];
            while !received[client].ends_with(end.as_bytes()) {
                let len = stream.read(&mut chunk).expect("a reply in time");
                received[client].extend_from_slice(&chunk[..len]);
            }
        }
        received
    }
}

/// Sessions of an engine.
struct Ours {
    engine: Engine,
    moment: Moment,
    sessions: Vec<Session>,
}

impl Ours {
    fn new() -> Self {
        let moment = present();
        let engine = Engine::new(EngineConfig::new(7, "run"), moment);
        let connect = |_| {
            engine
                .connect(locknode_engine::Peer::default(), moment.time)
                .expect("room")
        };
        Self {
            sessions: (0..CLIENTS).map(connect).collect(),
            engine,
            moment,
        }
    }

    fn ask(&mut self, client: usize, request: &Request) -> Vec<Vec<u8>> {
        let mut received = vec![Vec::new(); CLIENTS];
        let words: Vec<&[u8]> = request.words.iter().map(Vec::as_slice).collect();
        let mut batch = self.engine.batch(self.moment);
        batch.execute(&mut self.sessions[client], &words, &mut received[client]);
        drop(batch);
        for (session, received) in self.sessions.iter_mut().zip(&mut received) {
            session.client().take_mail(received, usize::MAX);
            let mut batch = self.engine.batch(self.moment);
            batch.execute(session, &[b"PING", TOKEN.as_bytes()], received);
        }
        received
    }
}

const CLIENTS: usize = 3;

/// No message ends like this.
const TOKEN: &str = "the-end-of-it";

const COMMANDS: [&str; 17] = [
    "SUBSCRIBE",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "PUBLISH",
    "PUBLISH",
    "SPUBLISH",
    "PUBSUB",
    "PING",
    "HELLO",
    "RESET",
    "EVAL",
    "GET",
    "CONFIG",
];
const CHANNELS: [&str; 6] = ["a", "b", "ab", "", "k\u{e9}y\0\r\n", "lock:{1}"];
const PATTERNS: [&str; 8] = ["*", "a*", "?", "[ab]", "a", "", "\\a", "*{1}"];
const PUBSUB: [&str; 6] = [
    "CHANNELS",
    "NUMSUB",
    "NUMPAT",
    "shardchannels",
    "SHARDNUMSUB",
    "foo",
];

/// Each pair of commands comes many times, in a few seconds.
const SEQUENCES: u64 = 60;
const REQUESTS: usize = 60;

/// Far longer than any of the commands takes.
const PATIENCE: Duration = Duration::from_secs(3);
