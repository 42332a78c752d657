//! A node that goes on in another process: what clients see, and what comes of it when one of the two ends on the way.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::processes::{is_alive, number_in, signal, wait_until};
use crate::program::{Directory, PATIENCE, Program, ask, command, connect, serve};

const GOES_ON: &str = "goes on in the place of another process";

/// A place for two processes.
struct Place {
    directory: Directory,
    flags: String,
}

impl Place {
    fn new(name: &str, flags: &str) -> Self {
        let directory = Directory::new(name);
        let path = directory.path_of("hand-over");
        let flags = flags.replace("DIR", &directory.path_of(""));
        Self {
            flags: format!("--hand-over {path} {flags}"),
            directory,
        }
    }

    fn start(&self) -> Program {
        serve(&self.flags)
    }

    fn socket(&self) -> String {
        self.directory.path_of("hand-over")
    }
}

#[test]
fn clients_stay_connected_and_locks_are_held() {
    for (number, flags) in [
        "--first-start",
        "--first-start --dir DIR/node",
        "--first-start --threads 3 --dir DIR/node --durability always",
        "--restart-guard off --threads 2",
    ]
    .iter()
    .enumerate()
    {
        let place = Place::new(&format!("hand-over-{number}"), flags);
        let mut node = place.start();
        let address = node.address();
        let mut holder = connect(address);
        assert_eq!(ask(&mut holder, "SET k token NX PX 60000"), "+OK");
        assert_eq!(ask(&mut holder, "CLIENT SETNAME holder"), "+OK");
        let load = "SCRIPT LOAD \"return redis.call('exists',KEYS[1])+41\"";
        ask(&mut holder, load);
        let mut sha = [0; 42];
        holder.read_exact(&mut sha).expect("a digest");
        let sha = String::from_utf8_lossy(&sha[..40]).into_owned();
        // Twice: what was taken over is handed over again.
        for _ in 0..2 {
            let mut next = place.start();
            let line = next.line_with(GOES_ON);
            assert!(
                line.contains("with 1 open connections; nobody was served for "),
                "{line}"
            );
            assert_eq!(node.wait().code(), Some(0), "{flags}: {:?}", node.seen());
            assert_eq!(node.count("handed over to process"), 1, "{:?}", node.seen());
            node = next;
            assert_eq!(ask(&mut holder, "DELIFEQ k wrong"), ":0");
            assert_eq!(ask(&mut holder, &format!("EVALSHA {sha} 1 k")), ":42");
            assert_eq!(ask(&mut holder, "CLIENT GETNAME"), "$6");
            holder.read_exact(&mut [0; 8]).expect("the name");
            let mut other = connect(address);
            assert_eq!(ask(&mut other, "SET k other NX PX 60000"), "$-1");
        }
        assert_eq!(ask(&mut holder, "DELIFEQ k token"), ":1");
        assert_eq!(ask(&mut holder, "SET k again NX PX 60000"), "+OK");
        assert!(node.end(Signal::TERM).success());
    }
}

#[test]
fn a_unix_socket_goes_on_too() {
    let place = Place::new(
        "hand-over-unix",
        "--first-start --bind= --unixsocket DIR/node.sock",
    );
    let path = place.directory.path_of("node.sock");
    let mut node = place.start();
    node.line_with("listening on unix:");
    let mut holder = UnixStream::connect(&path).expect("it listens");
    assert_eq!(ask(&mut holder, "SET k token NX PX 60000"), "+OK");
    let mut next = place.start();
    next.line_with(GOES_ON);
    assert!(node.wait().success());
    assert_eq!(ask(&mut holder, "PING"), "+PONG");
    let mut other = UnixStream::connect(&path).expect("it still listens");
    assert_eq!(ask(&mut other, "SET k other NX PX 60000"), "$-1");
    assert!(next.end(Signal::TERM).success());
    assert!(
        UnixStream::connect(&path).is_err(),
        "the last one removes the file"
    );
}

/// What is begun, but not whole, is executed by the other process.
#[test]
fn a_command_in_two_parts_is_executed_once() {
    let place = Place::new("hand-over-half", "--first-start");
    let mut node = place.start();
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET k token NX PX 60000"), "+OK");
    client.write_all(b"*2\r\n$3\r\nGET\r\n$1\r").expect("sent");
    let mut next = place.start();
    next.line_with(GOES_ON);
    assert!(node.wait().success());
    assert_eq!(ask(&mut client, "\nk"), "$5");
}

/// A session goes on as its user's, with what the user may do in the new process; one whose user is gone is closed.
#[test]
fn users_go_on_as_who_they_are() {
    let place = Place::new("hand-over-users", "--first-start --aclfile DIR/users.acl");
    let users = place.directory.path_of("users.acl");
    std::fs::write(&users, "user app on >secret ~app:* +set +acl|whoami\n").expect("written");
    let mut node = place.start();
    let address = node.address();
    let [mut app, mut guest, mut anyone] = std::array::from_fn(|_| connect(address));
    assert_eq!(ask(&mut app, "AUTH app secret"), "+OK");
    assert_eq!(ask(&mut guest, "ACL SETUSER guest on nopass +@all"), "+OK");
    assert_eq!(ask(&mut guest, "AUTH guest x"), "+OK");
    assert_eq!(ask(&mut anyone, "PING"), "+PONG");
    let mut next = place.start();
    next.line_with(GOES_ON);
    assert!(node.wait().success());
    assert_eq!(ask(&mut app, "SET app:k token NX PX 60000"), "+OK");
    let refusal = ask(&mut app, "SET k token NX PX 60000");
    assert!(refusal.starts_with("-NOPERM"), "{refusal}");
    assert_eq!(ask(&mut anyone, "SET k token NX PX 60000"), "+OK");
    let mut rest = Vec::new();
    guest.read_to_end(&mut rest).expect("an end in order");
    assert_eq!(rest, b"", "nobody of that name is in the file");
}

/// Those that cannot be carried are closed in order, and served when they come again.
#[test]
fn a_session_with_more_is_closed_between_two_commands() {
    let place = Place::new("hand-over-more", "--first-start");
    let mut node = place.start();
    let address = node.address();
    let mut subscriber = connect(address);
    assert_eq!(ask(&mut subscriber, "SUBSCRIBE c"), "*3");
    let mut next = place.start();
    next.line_with(GOES_ON);
    assert!(node.wait().success());
    let mut rest = Vec::new();
    subscriber.read_to_end(&mut rest).expect("an end in order");
    assert_eq!(ask(&mut connect(address), "PING"), "+PONG");
}

/// Ten clients take and release locks all the time, while the node goes on in other processes: none of them sees an
/// error, and none gets a lock that another holds.
#[test]
fn nobody_loses_a_lock_or_sees_an_error_under_load() {
    for flags in ["--first-start", "--first-start --dir DIR/node --threads 2"] {
        let place = Place::new("hand-over-load", flags);
        let mut node = place.start();
        let address = node.address();
        let is_over = Arc::new(AtomicBool::new(false));
        let holders: Arc<[AtomicUsize; 3]> = Arc::default();
        let clients: Vec<_> = (0..10)
            .map(|number| {
                let (is_over, holders) = (Arc::clone(&is_over), Arc::clone(&holders));
                thread::spawn(move || work(address, number, &is_over, &holders))
            })
            .collect();
        for _ in 0..5 {
            let mut next = place.start();
            next.line_with(GOES_ON);
            assert!(node.wait().success(), "{:?}", node.seen());
            node = next;
        }
        is_over.store(true, Ordering::Relaxed);
        let done = clients
            .into_iter()
            .map(|client| client.join().expect("no error"));
        let cycles: usize = done.sum();
        assert!(cycles > 0, "nobody got a lock");
        assert!(node.end(Signal::TERM).success());
    }
}

/// Takes and releases locks; returns how many it got.
fn work(
    address: SocketAddr,
    number: usize,
    is_over: &AtomicBool,
    holders: &[AtomicUsize; 3],
) -> usize {
    let mut client = connect(address);
    let mut got = 0;
    let mut round = number;
    while !is_over.load(Ordering::Relaxed) {
        round += 1;
        let lock = round % holders.len();
        let reply = ask(
            &mut client,
            &format!("SET lock-{lock} {number} NX PX 60000"),
        );
        if reply == "$-1" {
            continue;
        }
        assert_eq!(reply, "+OK");
        assert_eq!(
            holders[lock].fetch_add(1, Ordering::SeqCst),
            0,
            "two hold it"
        );
        got += 1;
        assert_eq!(holders[lock].fetch_sub(1, Ordering::SeqCst), 1);
        assert_eq!(
            ask(&mut client, &format!("DELIFEQ lock-{lock} {number}")),
            ":1"
        );
    }
    got
}

/// SIGUSR2 has a node do all of that by itself, as a service does for an upgrade.
#[test]
fn a_signal_starts_the_program_again() {
    let place = Place::new("hand-over-again", "--dir DIR/node");
    let mut node = Program::start(command(
        format!("serve --port 0 --max-ttl 1ms {}", place.flags).split_whitespace(),
    ));
    let address = node.address();
    let mut client = connect(address);
    wait_until("it grants locks", || {
        ask(&mut client, "SET k token NX") == "+OK"
    });
    node.signal(Signal::USR2);
    // The other process writes to the same standard error.
    let other = number_in(&node.line_with("locknode 0.1.0, process "));
    node.line_with(GOES_ON);
    wait_until("the first one ends", || !is_alive(node.id()));
    assert_eq!(ask(&mut client, "SET k other NX"), "$-1");
    assert_eq!(ask(&mut client, "DELIFEQ k token"), ":1");
    signal(other, Signal::TERM);
    wait_until("the other one ends", || !is_alive(other));
}

/// The test is the other process, as far as it goes.
struct Other {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Other {
    fn come(place: &Place) -> Self {
        let stream = UnixStream::connect(place.socket()).expect("the node waits");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let reader = BufReader::new(stream.try_clone().expect("a handle"));
        Self { stream, reader }
    }

    fn say(&mut self, line: &str) -> String {
        writeln!(self.stream, "{line}").expect("sent");
        let mut answer = String::new();
        self.reader.read_line(&mut answer).expect("an answer");
        answer.trim_end().to_owned()
    }

    /// Sends a message without bytes.
    fn send(&mut self, kind: u8) {
        self.stream
            .write_all(&[kind, 0, 0, 0, 0, 0, 0, 0, 0])
            .expect("sent");
    }

    /// Reads the messages before the one that says that there are no more listening sockets, and it.
    fn take_listeners(&mut self) {
        let mut kind = 0;
        while kind != LISTENERS_END {
            let mut head = [0; 9];
            self.reader.read_exact(&mut head).expect("a message");
            kind = head[0];
            let mut bytes = vec![0; usize::from(head[1])];
            self.reader.read_exact(&mut bytes).expect("its bytes");
        }
    }

    /// Reads until the node ends.
    fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).expect("an end");
        rest
    }
}

const LISTENERS_END: u8 = 2;
const READY: u8 = 3;

#[test]
fn a_node_goes_on_when_the_other_process_ends_before_it_is_ready() {
    let place = Place::new("hand-over-gone", "--first-start");
    let mut node = place.start();
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET k token NX PX 60000"), "+OK");
    for step in 0..4 {
        let mut other = Other::come(&place);
        match step {
            0 => {}
            1 => drop(writeln!(other.stream, "GET / HTTP/1.1")),
            2 => assert_eq!(other.say("locknode hand-over 2 memory"), "yes 5000"),
            _ => {
                let answer = other.say("locknode hand-over 2 directory /elsewhere");
                assert_eq!(answer, "no the node that runs keeps its locks in memory");
            }
        }
        drop(other);
        node.line_with("this one goes on");
        assert_eq!(ask(&mut client, "DELIFEQ k wrong"), ":0");
    }
    // One that comes after all of these is served.
    let mut next = place.start();
    next.line_with(GOES_ON);
    assert!(node.wait().success());
    assert_eq!(ask(&mut client, "DELIFEQ k token"), ":1");
}

/// From when it is told to, the node grants nothing, whether the other process lives or not. The locks are in the
/// directory.
#[test]
fn a_node_that_has_begun_to_stop_does_not_come_back() {
    let place = Place::new("hand-over-ready", "--dir DIR/node --max-ttl 1s");
    let mut node = Program::start(command(
        format!("serve --port 0 --first-start {}", place.flags).split_whitespace(),
    ));
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET k token NX"), "+OK");
    let dir = place.directory.path.join("node");
    let mut other = Other::come(&place);
    assert_eq!(
        other.say(&format!("locknode hand-over 2 directory {}", dir.display())),
        "yes 5000"
    );
    other.take_listeners();
    other.send(READY);
    drop(other);
    assert!(node.wait().success(), "{:?}", node.seen());
    assert_eq!(client.read(&mut [0]).expect("an end in order"), 0);
    let mut next = place.start();
    let address = next.address();
    next.line_with("serving, 1 lock: the last run stopped cleanly");
    assert_eq!(ask(&mut connect(address), "SET k other NX"), "$-1");
}

#[test]
fn a_process_of_another_version_gets_a_clean_stop() {
    let place = Place::new("hand-over-version", "--first-start --dir DIR/node");
    let mut node = place.start();
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET k token NX PX 60000"), "+OK");
    let mut other = Other::come(&place);
    assert_eq!(other.say("locknode hand-over 3 whatever"), "stopping 5000");
    assert_eq!(other.rest(), b"", "its end says that it is over");
    assert!(node.wait().success());
    assert_eq!(node.count("locks written to"), 1, "{:?}", node.seen());
}

/// The test is the process that serves, as far as it goes. The other one then starts as after any other.
#[test]
fn a_process_without_all_of_it_starts_as_after_a_crash() {
    for (step, script) in [
        &[][..],
        &[&b"stopping 0\n"[..]],
        &[b"what?\n"],
        &[b"yes 0\n"],
        &[b"yes 0\n", &[2, 0, 0, 0, 0, 0, 0, 0, 0]],
        // What it leaves, and no end.
        &[
            b"yes 0\n",
            &[2, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 16, 0, 0, 0, 0, 0, 0, 0],
            &[0; 16],
        ],
        &[
            b"yes 0\n",
            &[2, 0, 0, 0, 0, 0, 0, 0, 0],
            &[6, 1, 0, 0, 0, 0, 0, 0, 0, b'x'],
        ],
        &[b"yes 0\n", &[2, 0, 0, 0, 0, 0, 0, 0, 0], &[77; 9]],
    ]
    .iter()
    .enumerate()
    {
        let place = Place::new(&format!("hand-over-dies-{step}"), "--max-ttl 1h");
        let listener = UnixListener::bind(place.socket()).expect("a socket");
        let mut node = place.start();
        let (mut stream, _) = listener.accept().expect("it comes");
        drop(listener);
        // A process that another test is just starting may still have it, and the node would not replace the file.
        wait_until("nobody listens", || {
            UnixStream::connect(place.socket()).is_err()
        });
        let mut greeting = String::new();
        let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
        reader.read_line(&mut greeting).expect("a greeting");
        assert_eq!(greeting, "locknode hand-over 2 memory\n");
        for part in *script {
            stream.write_all(part).expect("sent");
        }
        if script.len() > 1 {
            reader.read_exact(&mut [0; 9]).expect("it is ready");
        }
        drop((stream, reader));
        node.line_with("refusing locks for 36");
        let reply = ask(&mut connect(address_of(&node)), "SET k token NX PX 1000");
        assert!(reply.starts_with("-LOADING"), "{step}: {reply}");
        assert_eq!(node.count(GOES_ON), 0);
    }
}

fn address_of(node: &Program) -> SocketAddr {
    let listens = node
        .seen()
        .iter()
        .find_map(|line| line.split_once("listening on "));
    let (_, address) = listens.expect("it listens");
    address.parse().expect("an address")
}

#[test]
fn a_process_that_keeps_its_locks_elsewhere_is_refused() {
    let place = Place::new("hand-over-elsewhere", "--first-start");
    let mut node = place.start();
    node.address();
    let flags = format!("{} --dir {}", place.flags, place.directory.path_of("other"));
    let mut other = serve(&flags);
    other.ends(69);
    assert_eq!(
        other.count("the node that runs keeps its locks in memory"),
        1,
        "{:?}",
        other.seen()
    );
    assert!(node.end(Signal::TERM).success());
}

/// One of the two is killed at some moment. Whatever moment that is, at most one serves after it, and it does not grant
/// what the first one has granted.
#[test]
fn whoever_is_killed_on_the_way_no_lock_is_granted_twice() {
    for flags in ["--max-ttl 1h", "--max-ttl 1h --dir DIR/node"] {
        for round in 0..16 {
            let place = Place::new(&format!("hand-over-kill-{round}"), flags);
            let mut first = Program::start(command(
                format!("serve --port 0 --first-start {}", place.flags).split_whitespace(),
            ));
            let address = first.address();
            let mut holder = connect(address);
            assert_eq!(ask(&mut holder, "SET k token NX PX 3600000"), "+OK");
            let mut second = place.start();
            // Waiting for the start takes longer than the hand-over does.
            second.line_with("process ");
            let moment = Instant::now() + Duration::from_micros(round * 700);
            while Instant::now() < moment {}
            let killed = if round % 2 == 0 {
                &mut first
            } else {
                &mut second
            };
            killed.signal(Signal::KILL);
            killed.wait();
            let deadline = Instant::now() + Duration::from_secs(3);
            while Instant::now() < deadline {
                let Ok(mut stranger) = TcpStream::connect(address) else {
                    // Nobody serves there: the second one has a port of its own, or both have ended.
                    break;
                };
                stranger
                    .set_read_timeout(Some(PATIENCE))
                    .expect("a timeout");
                let mut reply = Vec::new();
                if stranger
                    .write_all(b"SET k other NX PX 60000\r\nQUIT\r\n")
                    .is_err()
                    || stranger.read_to_end(&mut reply).is_err()
                    || reply.is_empty()
                {
                    continue;
                }
                let reply = String::from_utf8_lossy(&reply);
                assert!(
                    reply.starts_with("$-1") || reply.starts_with("-LOADING"),
                    "{round}: {reply} {:?} {:?}",
                    first.seen(),
                    second.seen()
                );
                break;
            }
        }
    }
}
