//! Transactions of two clients, one command after another: MULTI, EXEC, WATCH, keys that change and expire.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use locknode_engine::{Flow, Moment, Peer, Session, Time, WallTime};

use crate::difference::Peculiarities;
use crate::node::{Node, present};
use crate::sequence::{self, Dice, KEYS, Request};
use crate::server::Server;
use crate::{reply, report, rounds, seed};

/// A request of one of the clients.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) client: usize,
    pub(crate) request: Request,
    /// Whether it is followed by a pause in which short TTLs end.
    pub(crate) expires: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pause = if self.expires { "(pause)" } else { "" };
        write!(f, "{}> {} {pause}", self.client, self.request)
    }
}

#[test]
fn transactions_of_two_clients_are_those_of_a_real_server() {
    compare(SEQUENCES, random);
}

/// Compares sequences of random steps with a real server, one shard and eight.
pub(crate) fn compare(sequences: u64, random: impl Fn(&mut Dice, &Peculiarities) -> Vec<Step>) {
    let Some(mut server) = Server::start() else {
        return;
    };
    let nodes = [Node::new(1), Node::new(8)];
    let peculiarities = Peculiarities::of(&mut server);
    let mut compared = 0;
    for number in 0..rounds(sequences) {
        let seed = seed().wrapping_add(number);
        let steps = random(&mut Dice::new(seed), &peculiarities);
        compared += steps.len();
        let first_mismatch =
            |steps: &[Step]| first_mismatch(&server, &nodes, &peculiarities, steps);
        if let Some(mismatch) = first_mismatch(&steps) {
            // Making it shorter may take long.
            println!("LOCKNODE_TEST_SEED={seed}: {mismatch}");
            report(seed, steps, first_mismatch);
        }
    }
    println!("{compared} replies compared with {}", peculiarities.version);
}

/// It ends by asking for the state of every key.
fn random(dice: &mut Dice, peculiarities: &Peculiarities) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut has_begun = [false; 3];
    for number in 0..STEPS {
        let expires = dice.one_in(200);
        let request = if expires {
            words(&["SET", dice.pick(&KEYS[..2]), "a", "PX", "1"])
        } else {
            match dice.below(20) {
                0..=3 => words(&["WATCH", dice.pick(&KEYS[..3])]),
                4 => words(&["WATCH", dice.pick(&KEYS), dice.pick(&KEYS)]),
                5..=8 => words(&["MULTI"]),
                9..=12 => words(&["EXEC"]),
                13 if dice.one_in(2) => words(&["DISCARD"]),
                13 => words(&["UNWATCH"]),
                14 if dice.one_in(4) => words(&["RESET"]),
                14 if dice.one_in(2) => words(&[dice.pick(&["GET", "EXEC", "MULTI", "WATCH"])]),
                14 => words(&["EVALSHA", &"f".repeat(40), "0"]),
                15 => words(&["SET", dice.pick(&KEYS[..3]), "b", "NX"]),
                _ => loop {
                    let request = sequence::one(dice, number, peculiarities);
                    let has_timestamp = request.words.iter().any(|word| {
                        word.eq_ignore_ascii_case(b"EXAT") || word.eq_ignore_ascii_case(b"PXAT")
                    });
                    // DBSIZE may count what has expired; a SET that is past at once changes nothing here if there
                    // was nothing.
                    if request.name() != "dbsize" && !has_timestamp {
                        break request;
                    }
                },
            }
        };
        // What expires is set at once, by a client without a transaction.
        let client = if expires { 2 } else { dice.below(2) };
        match request.name().as_str() {
            "multi" | "watch" if peculiarities.is_valkey && has_begun[client] => continue,
            "multi" => has_begun[client] |= request.words.len() == 1,
            "exec" | "discard" | "reset" => has_begun[client] = false,
            _ => {}
        }
        steps.push(Step {
            client,
            request,
            expires,
        });
    }
    for client in [0, 1] {
        let last = ["DISCARD", "RESET"].map(|word| words(&[word]));
        let states = KEYS.map(|key| words(&["GET", key]));
        steps.extend(last.into_iter().chain(states).map(|request| Step {
            client,
            request,
            expires: false,
        }));
    }
    steps
}

pub(crate) fn words(words: &[&str]) -> Request {
    Request::array(words.iter().map(|word| word.as_bytes().to_vec()))
}

/// Sends the steps to both sides; what differs first, in words.
fn first_mismatch(
    server: &Server,
    nodes: &[Node],
    peculiarities: &Peculiarities,
    steps: &[Step],
) -> Option<String> {
    let mut connections = [(); 3].map(|()| server.connect());
    ask(&mut connections[0], &words(&["FLUSHALL"]));
    let theirs: Vec<_> = steps
        .iter()
        .map(|step| {
            let reply = ask(&mut connections[step.client], &step.request);
            if step.expires {
                std::thread::sleep(PAUSE);
            }
            reply
        })
        .collect();
    nodes.iter().find_map(|node| {
        let mut clients = Clients::of(node);
        let mut queues = [(); 3].map(|()| Vec::new());
        steps.iter().zip(&theirs).find_map(|(step, theirs)| {
            let ours = clients.run(step);
            let queue = &mut queues[step.client];
            let agree = agree(peculiarities, queue, &step.request, theirs, &ours);
            if theirs == b"+QUEUED\r\n" {
                queue.push(step.request.clone());
            } else if ["exec", "discard", "reset"].contains(&step.request.name().as_str()) {
                queue.clear();
            }
            (!agree).then(|| {
                format!(
                    "{step}\n  real: {}\n  ours: {}",
                    theirs.escape_ascii(),
                    ours.escape_ascii()
                )
            })
        })
    })
}

/// Whether the two replies agree; those of EXEC element by element.
fn agree(
    peculiarities: &Peculiarities,
    queue: &[Request],
    request: &Request,
    theirs: &[u8],
    ours: &[u8],
) -> bool {
    if request.name() != "exec" || theirs == ours || theirs.starts_with(b"-") {
        return peculiarities.allow(request, theirs, ours);
    }
    let (theirs, ours) = (reply::elements(theirs), reply::elements(ours));
    let mut elements = queue.iter().zip(theirs.iter().zip(&ours));
    theirs.len() == queue.len()
        && ours.len() == queue.len()
        && elements.all(|(request, (theirs, ours))| peculiarities.allow(request, theirs, ours))
}

fn ask(stream: &mut UnixStream, request: &Request) -> Vec<u8> {
    if stream.write_all(&request.encode()).is_err() {
        return b"(closed)".to_vec();
    }
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        if let Some(first) = reply::split(&bytes).0.into_iter().next() {
            return first;
        }
        match stream.read(&mut chunk) {
            Ok(len @ 1..) => bytes.extend_from_slice(&chunk[..len]),
            Ok(_) => return b"(closed)".to_vec(),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return b"(closed)".to_vec();
            }
            Err(_) => return b"(no reply in time)".to_vec(),
        }
    }
}

/// Three clients of an empty node, whose clock moves in pauses only.
struct Clients<'n> {
    node: &'n Node,
    sessions: [Session; 3],
    moment: Moment,
}

impl<'n> Clients<'n> {
    fn of(node: &'n Node) -> Self {
        let moment = present();
        let connect = || node.engine.connect(Peer::default(), moment.time);
        let mut clients = Self {
            node,
            sessions: [(); 3].map(|()| connect().expect("room")),
            moment,
        };
        clients.run(&Step {
            client: 0,
            request: words(&["FLUSHALL"]),
            expires: false,
        });
        clients
    }

    fn run(&mut self, step: &Step) -> Vec<u8> {
        let args: Vec<&[u8]> = step.request.words.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        let session = &mut self.sessions[step.client];
        if session.client().is_killed() {
            return b"(closed)".to_vec();
        }
        let engine = &self.node.engine;
        loop {
            let flow = engine.batch(self.moment).execute(session, &args, &mut out);
            // The answer to a wrong password takes a while.
            match engine.wait_end(session, self.moment.time) {
                Some(end) if flow == Flow::Paused => self.moment.time = end,
                _ => break,
            }
        }
        if step.expires {
            let nanos = u64::try_from(PAUSE.as_nanos()).expect("a short time");
            self.moment = Moment {
                time: Time::from_nanos(self.moment.time.as_nanos() + nanos),
                wall: WallTime::from_unix_nanos(self.moment.wall.as_unix_nanos() + nanos),
            };
        }
        out
    }
}

/// Long enough for a TTL of a millisecond.
const PAUSE: Duration = Duration::from_millis(3);

const SEQUENCES: u64 = 400;
const STEPS: u64 = 80;
