//! Scripts that mean harm, through the server: what they cost other clients, and what they leave.
//!
//! Nothing here depends on how scripts are run: each either ends or is refused, after some tenths of a second at the
//! latest.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::node_with;

/// A node that serves TCP on a thread of its own, as the program does. One at a time: each other one would be a delay.
pub(crate) struct Served {
    _alone: MutexGuard<'static, ()>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let node = node_with(|options| options.script_time_limit = 100);
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                node.serve(listener, async { drop(stopped.await) })
                    .await
                    .unwrap();
            });
        });
        Self {
            _alone: alone,
            address: address.recv().unwrap(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    /// Tells the node to end, and how long it took.
    fn stop(mut self) -> Duration {
        let begun = Instant::now();
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
        begun.elapsed()
    }
}

static ALONE: Mutex<()> = Mutex::new(());

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The first line of the next reply; the rest of it is read and forgotten.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a reply in time");
        let head = line.trim_end().to_owned();
        let count = head.get(1..).and_then(|it| it.parse::<i64>().ok());
        match (head.as_bytes()[0], count) {
            (b'$', Some(len @ 0..)) => {
                let mut body = vec![0; usize::try_from(len).unwrap() + 2];
                self.0.read_exact(&mut body).expect("a reply in time");
            }
            (b'*', Some(count)) => (0..count).for_each(|_| drop(self.hear())),
            _ => {}
        }
        head
    }

    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.send(&request(words));
        self.hear()
    }
}

pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        let _ = write!(text, "${}\r\n{word}\r\n", word.len());
    }
    text.into_bytes()
}

/// Work that grows with the length of a string, and loops without end.
fn hostile_scripts() -> Vec<String> {
    const LONG: &str = "local a = string.sub(ARGV[1], 1, 64) for i = 1, 16 do a = a .. a end ";
    let mut scripts: Vec<String> = [
        "for i = 1, 1e5 do redis.sha1hex(a) end",
        "for i = 1, 1e6 do local b = a .. i end",
        "for i = 1, 1e6 do local b = a .. 'x' == a .. 'x' end",
        "local b = string.lower(a) for i = 1, 1e6 do local c = a == b end",
        "local b = string.lower(a) for i = 1, 1e6 do local c = a < b end",
        "local b = string.lower(a) for i = 1, 1e6 do local c = a <= b end",
        "for i = 1, 1e6 do string.len(a) end",
        "for i = 1, 1e6 do local b = #a end",
        "for i = 1, 1e6 do string.upper(a) end",
        "for i = 1, 1e6 do string.sub(a, 2) end",
        "for i = 1, 1e6 do string.sub(a, -1) end",
        "for i = 1, 1e6 do tostring(a) end",
        "for i = 1, 1e6 do type(a) end",
        "local n = string.lower(ARGV[2]) for i = 1, 20 do n = n .. n end for i = 1, 1e6 do tonumber(n) end",
        "local n = string.lower(ARGV[2]) for i = 1, 20 do n = n .. n end for i = 1, 1e6 do local b = n + 1 end",
        "local n = ARGV[2] for i = 1, 20 do n = n .. n end for i = 1, 1e6 do local b = -n end",
        "local n = ARGV[2] for i = 1, 20 do n = n .. n end for i = 1, 1e6 do for j = n, 0 do end end",
        "local n = ARGV[2] for i = 1, 20 do n = n .. n end for i = 1, 1e6 do math.max(n, n) end",
        "local t = {} for i = 1, 1e6 do t[a] = i end",
        "local t = {} t[a] = 1 for i = 1, 1e6 do local b = t[a] end",
        "local t = {} t[a .. 'x'] = 1 for i = 1, 1e6 do local b = t[a .. 'y'] end",
        "for i = 1, 1e6 do redis.call('echo', a) end",
        "for i = 1, 1e6 do redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) end",
        "for i = 1, 1e6 do redis.call('set', KEYS[1] .. i, string.sub(a, 1, 1e6)) end",
        "redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) for i = 1, 1e6 do redis.call('get', KEYS[1]) end",
        "redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) for i = 1, 1e6 do redis.call('digest', KEYS[1]) end",
        "redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) for i = 1, 1e6 do redis.call('delex', KEYS[1], 'ifdeq', '0000000000000000') end",
        "redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) for i = 1, 1e6 do redis.call('set', KEYS[1], 'x', 'ifdeq', '0000000000000000') end",
        "redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) for i = 1, 1e6 do redis.call('mget', KEYS[1], KEYS[1], KEYS[1]) end",
        "redis.call('set', KEYS[1], string.sub(a, 1, 1e6)) for i = 1, 1e6 do redis.call('strlen', KEYS[1]) end",
        "for i = 1, 1e6 do redis.error_reply(a) end",
        "for i = 1, 1e6 do redis.status_reply(a) end",
        "for i = 1, 1e6 do redis.log(redis.LOG_DEBUG, a) end",
        "for i = 1, 1e6 do redis.pcall(a) end",
        "for i = 1, 1e6 do redis.pcall('get', a, a) end",
        "for i = 1, 1e6 do string.rep(a, 1000) end",
        "for i = 1, 1e6 do string.gsub(a, '.', '%0%0') end",
        "for i = 1, 1e6 do string.find(a, '.-.-.-.-.-b') end",
        "return string.find(a, '.-.-.-.-.-.-.-.-b')",
        "for i = 1, 1e6 do string.reverse(a) end",
        "for i = 1, 1e6 do string.byte(a, 1, 5000) end",
        "for i = 1, 1e6 do string.format('%q', a) end",
        "for i = 1, 1e6 do table.concat({a, a, a}, a) end",
        "for i = 1, 1e6 do cjson.encode({a}) end",
        "local j = cjson.encode({a}) for i = 1, 1e6 do cjson.decode(j) end",
        "for i = 1, 1e6 do cmsgpack.pack(a) end",
        "for i = 1, 1e6 do struct.pack('s', a) end",
        "return {a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}",
    ]
    .iter()
    .map(|body| format!("{LONG}{body}"))
    .collect();
    scripts.extend(
        [
            "while true do end",
            "repeat until false",
            "while true do redis.call('get', KEYS[1]) end",
            "while true do redis.pcall('nosuch') end",
            "for i = 1, 1e9 do redis.call('set', 'k' .. i, i) end",
            "local t = {} for i = 1, 1e9 do table.insert(t, 1, i) end",
            "local t = {} for i = 1, 1e9 do t[i] = {} end",
            "local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
            "local t = {} for i = 1e9, 1, -1 do t[i] = i end",
            "for i = 1, 1e9 do local s = i / 3 .. i / 7 end",
            "for i = 1, 1e9 do tostring(i / 3) end",
            "local function f(n) return f(n + 1) + f(n + 2) end return f(1)",
            "local t = {} for i = 1, 7000 do t[i] = 'k' .. i end for i = 1, 1e9 do redis.call('del', unpack(t)) end",
            "local t = {} for i = 1, 7000 do t[i] = 'k' .. i end for i = 1, 1e9 do redis.call('mset', unpack(t)) end",
            "for i = 1, 1e9 do pcall(function() while true do end end) end",
            "local s = 'x' while true do s = s .. s end",
            "local t = {} while true do t = {t, t} end",
        ]
        .map(str::to_owned),
    );
    let names: Vec<String> = (0..12_000).map(|n| format!("n{n:x}")).collect();
    scripts.push(format!("return {{{}}}", names.join(",")));
    scripts.push(format!("return {}1", "1+".repeat(30_000)));
    scripts.push(format!("return {}", "'x'..".repeat(12_000) + "1"));
    scripts.push("local a=1 ".repeat(6_000));
    scripts
}

/// How long a PING takes while the requests of another client are at work, at best: the machine may be busy, too.
fn delay(served: &Served, hostile: &[u8], replies: usize) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let (mut villain, mut victim) = (served.connect(), served.connect());
        assert_eq!(victim.ask(&["PING"]), "+PONG");
        villain.send(hostile);
        let begun = Instant::now();
        assert_eq!(victim.ask(&["PING"]), "+PONG");
        best = best.min(begun.elapsed());
        (0..replies).for_each(|_| drop(villain.hear()));
        victim.ask(&["FLUSHALL"]);
        if best < DELAY_MAX {
            break;
        }
    }
    best
}

fn eval(script: &str) -> Vec<u8> {
    let token = "x".repeat(64);
    request(&["EVAL", script, "1", "key", &token, "0000000000000001"])
}

#[test]
fn a_script_delays_other_clients_by_less_than_a_twentieth_of_a_second() {
    let served = Served::start();
    for script in hostile_scripts() {
        let delay = delay(&served, &eval(&script), 1);
        println!("{delay:?} {}", script.get(..160).unwrap_or(&script));
        assert!(delay < DELAY_MAX, "{delay:?}: {script:.200}");
    }
}

#[test]
fn many_scripts_of_one_client_let_other_clients_in_between() {
    let served = Served::start();
    for script in [
        "while true do end",
        "local a = ARGV[1] for i = 1, 1e6 do a = a .. a end",
        "for i = 1, 1000 do redis.call('get', KEYS[1]) end",
    ] {
        let delay = delay(&served, &eval(script).repeat(40), 40);
        assert!(delay < DELAY_MAX, "{delay:?}: {script}");
    }
    let mut loads = Vec::new();
    for number in 0..300 {
        let script = format!("return {}{number}", "1+".repeat(150));
        loads.extend(request(&["SCRIPT", "LOAD", &script]));
    }
    let delay = delay(&served, &loads, 300);
    assert!(delay < DELAY_MAX, "{delay:?}: SCRIPT LOAD");
}

/// A runtime runs some sixty tasks before it looks for input.
#[test]
fn long_commands_of_many_clients_let_other_clients_in_between() {
    let served = Served::start();
    let mut filler = served.connect();
    filler.send(&request(&["RPUSH", "l", "a"]).repeat(20_000));
    (0..20_000).for_each(|_| drop(filler.hear()));
    for (command, count) in [
        (eval("while true do end"), 1),
        (
            eval("for i = 1, 1e9 do redis.call('set', KEYS[1] .. i, i) end"),
            1,
        ),
        (request(&["LREM", "l", "0", "b"]), 40),
    ] {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let mut villains: Vec<Client> = (0..60).map(|_| served.connect()).collect();
            let mut victim = served.connect();
            assert_eq!(victim.ask(&["PING"]), "+PONG");
            let requests = command.repeat(count);
            villains.iter_mut().for_each(|it| it.send(&requests));
            let pings = (0..20).map(|_| {
                let begun = Instant::now();
                assert_eq!(victim.ask(&["PING"]), "+PONG");
                begun.elapsed()
            });
            best = best.min(pings.max().unwrap());
            drop(villains);
            if best < DELAY_MAX {
                break;
            }
        }
        let name = String::from_utf8_lossy(&command).into_owned();
        assert!(best < DELAY_MAX, "{best:?}: {name:.100}");
    }
}

#[test]
fn a_node_with_a_hostile_client_ends_when_it_is_told() {
    let served = Served::start();
    let mut villain = served.connect();
    villain.send(&eval("while true do end").repeat(20));
    // The first answer says that the others are being worked on.
    villain.hear();
    drop(villain);
    let took = served.stop();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// Redis would execute all of it.
#[test]
fn a_script_that_is_stopped_leaves_nothing_half_done() {
    let served = Served::start();
    let mut client = served.connect();
    assert_eq!(client.ask(&["SET", "k1", "before", "PX", "60000"]), "+OK");
    assert_eq!(client.ask(&["SET", "k3", "before"]), "+OK");
    for script in [
        "for i = 1, 20000 do redis.call('set', 'k' .. i, 'after') end",
        "for i = 1, 20000 do redis.call('set', 'k' .. i, 'after') end return redis.call('del', 'k1')",
        "redis.call('del', 'k1', 'k2', 'k3') while true do end",
        "redis.call('pexpire', 'k1', 5) redis.call('persist', 'k3') local s = 'x' while true do s = s .. s end",
        "for i = 1, 100 do redis.call('set', 'k' .. i, string.lower(ARGV[1])) end while true do redis.pcall('get', 'k1') end",
        "redis.call('del', 'k3') local t = {} for i = 1, 1e9 do t[i] = ARGV[1] .. i end return t",
    ] {
        let reply = client.ask(&["EVAL", script, "0", &"x".repeat(1000)]);
        let done = client.ask(&["DBSIZE"]);
        if !reply.starts_with('-') {
            assert_eq!(done, ":20000", "{script}: {reply}");
            client.ask(&["FLUSHALL"]);
            continue;
        }
        assert_eq!(done, ":2", "{script}: {reply}");
        assert_eq!(client.ask(&["EXISTS", "k1", "k3"]), ":2", "{script}");
        let digests = [client.ask(&["STRLEN", "k1"]), client.ask(&["STRLEN", "k3"])];
        assert_eq!(digests, [":6", ":6"], "{script}");
        assert_eq!(client.ask(&["PTTL", "k3"]), ":-1", "{script}");
        let left: i64 = client.ask(&["PTTL", "k1"])[1..].parse().unwrap();
        assert!(left > 10_000, "{script}: {left}");
    }
}

/// As README promises.
pub(crate) const DELAY_MAX: Duration = Duration::from_millis(50);

/// On a busy machine a round may be slow for other reasons.
const ROUNDS: usize = 12;

/// Only a node that is frozen takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
