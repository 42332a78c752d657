//! The blocking client against small fake nodes: the same promises as the async one, on any thread.
#![cfg(feature = "blocking")]
#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redlock_client::blocking::Redlock;
use redlock_client::{ErrorKind, RenewPolicy, RetryPolicy, Token};

/// A node that knows the commands of a lock and nothing else; its keys live until they are deleted.
struct FakeNode {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    keys: HashMap<Vec<u8>, Vec<u8>>,
    connections: usize,
    connected: usize,
}

impl FakeNode {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                let stream = stream.unwrap();
                thread::spawn(move || {
                    state.change(|inner| (inner.connections += 1, inner.connected += 1));
                    let _ = serve(&stream, &state);
                    state.change(|inner| inner.connections -= 1);
                });
            }
        });
        Self { address, state }
    }

    /// Waits until the node is as `wanted`.
    fn wait_until(&self, wanted: impl Fn(&Inner) -> bool) {
        let inner = self.state.inner.lock().unwrap();
        let (_inner, wait) = self
            .state
            .changed
            .wait_timeout_while(inner, LONG, |inner| !wanted(inner))
            .unwrap();
        assert!(!wait.timed_out(), "the node did not become as wanted");
    }

    fn holds(&self, key: &str) -> bool {
        self.state
            .inner
            .lock()
            .unwrap()
            .keys
            .contains_key(key.as_bytes())
    }
}

impl State {
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = change(&mut self.inner.lock().unwrap());
        self.changed.notify_all();
        result
    }
}

fn serve(stream: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut input = BufReader::new(stream);
    let mut output = stream;
    while let Some(command) = read_command(&mut input)? {
        let reply = state.change(|inner| match &command[..] {
            [name, key] if name.eq_ignore_ascii_case(b"GET") => token(&inner.keys, key),
            _ => answer(&mut inner.keys, &command).to_owned(),
        });
        output.write_all(reply.as_bytes())?;
    }
    Ok(())
}

fn read_command(input: &mut impl BufRead) -> std::io::Result<Option<Vec<Vec<u8>>>> {
    let Some(count) = read_length(input)? else {
        return Ok(None);
    };
    let mut command = Vec::new();
    for _ in 0..count {
        let length = read_length(input)?.unwrap();
        let mut argument = vec![0; length + 2];
        input.read_exact(&mut argument)?;
        argument.truncate(length);
        command.push(argument);
    }
    Ok(Some(command))
}

fn read_length(input: &mut impl BufRead) -> std::io::Result<Option<usize>> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line
        .get(1..)
        .map(|length| length.trim_end().parse().unwrap()))
}

fn token(keys: &HashMap<Vec<u8>, Vec<u8>>, key: &[u8]) -> String {
    keys.get(key).map_or("$-1\r\n".to_owned(), |token| {
        let token = String::from_utf8_lossy(token);
        format!("${}\r\n{token}\r\n", token.len())
    })
}

fn answer(keys: &mut HashMap<Vec<u8>, Vec<u8>>, command: &[Vec<u8>]) -> &'static str {
    let name = String::from_utf8_lossy(&command[0]).to_ascii_uppercase();
    match (name.as_str(), command) {
        ("SET", [_, key, token, rest @ ..]) if rest[0] == b"NX" => {
            if keys.contains_key(key) {
                return "$-1\r\n";
            }
            keys.insert(key.clone(), token.clone());
            "+OK\r\n"
        }
        ("EVAL" | "EVALSHA", [_, script, _, key, token, rest @ ..]) => {
            let known = name == "EVAL" || script.len() == 40;
            match keys.get(key) {
                _ if !known => "-NOSCRIPT No matching script\r\n",
                Some(held) if held == token => {
                    if rest.is_empty() {
                        keys.remove(key);
                    }
                    ":1\r\n"
                }
                _ => ":0\r\n",
            }
        }
        ("PING", _) => "+PONG\r\n",
        _ => "-ERR unknown command\r\n",
    }
}

fn cluster() -> ([FakeNode; 3], Redlock) {
    let nodes = [(); 3].map(|()| FakeNode::start());
    let redlock = Redlock::builder()
        .nodes(nodes.iter().map(|node| &node.address))
        .node_timeout(Duration::from_secs(2))
        .build_blocking()
        .unwrap();
    // Every node is connected, so that each of them takes part in every lock.
    let deadline = Instant::now() + LONG;
    while !is_connected(&redlock) {
        assert!(Instant::now() < deadline, "{:?}", redlock.nodes());
    }
    (nodes, redlock)
}

fn is_connected(redlock: &Redlock) -> bool {
    let nodes = redlock.nodes().unwrap();
    nodes.iter().all(|node| node.state.is_ok())
}

#[test]
fn a_lock_excludes_others_until_it_is_released() {
    let (nodes, redlock) = cluster();
    assert_eq!((redlock.node_count(), redlock.quorum()), (3, 2));
    let guard = redlock.lock("a").ttl(TTL).try_acquire().unwrap().unwrap();
    assert_eq!(guard.key(), b"a");
    assert!(guard.is_valid() && guard.validity() <= TTL);
    assert!(guard.valid_until() > Instant::now());
    assert!(redlock.lock("a").ttl(TTL).try_acquire().unwrap().is_none());
    let error = redlock
        .lock("a")
        .ttl(TTL)
        .retry(RetryPolicy::tries(1))
        .acquire()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(guard.release().is_free());
    for node in &nodes {
        node.wait_until(|inner| inner.keys.is_empty());
    }
    let again = redlock.lock("a").ttl(TTL).acquire().unwrap();
    assert!(again.release().is_free());
}

#[test]
fn a_dropped_guard_is_released_without_waiting_and_the_thread_ends_after_it() {
    let (nodes, redlock) = cluster();
    let guard = redlock.lock("a").ttl(TTL).acquire().unwrap();
    drop(redlock);
    // The guard alone keeps the thread and the connections.
    guard.extend(TTL).unwrap();
    drop(guard);
    for node in &nodes {
        node.wait_until(|inner| inner.keys.is_empty() && inner.connections == 0);
    }
}

#[test]
fn close_waits_for_the_releases_under_way() {
    let (nodes, redlock) = cluster();
    drop(redlock.lock("a").ttl(TTL).acquire().unwrap());
    redlock.close();
    for node in &nodes {
        assert!(!node.holds("a"));
        node.wait_until(|inner| inner.connections == 0);
    }
}

#[tokio::test]
async fn it_works_on_a_thread_that_belongs_to_a_runtime() {
    let (nodes, redlock) = cluster();
    let guard = redlock.lock("a").ttl(TTL).acquire().unwrap();
    guard.extend(TTL).unwrap();
    assert!(guard.lost(Duration::ZERO).is_none());
    drop(guard);
    let result = redlock.with_lock(redlock.lock("b").ttl(TTL), |guard| guard.is_valid());
    assert!(result.unwrap());
    redlock.close();
    drop(redlock);
    for node in &nodes {
        node.wait_until(|inner| inner.keys.is_empty() && inner.connections == 0);
    }
}

#[test]
fn many_threads_exclude_each_other() {
    let (_nodes, redlock) = cluster();
    let inside = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..4 {
            let (redlock, inside) = (redlock.clone(), &inside);
            scope.spawn(move || {
                for _ in 0..5 {
                    let request = redlock.lock("a").ttl(TTL).wait_for(LONG);
                    let guard = request.acquire().unwrap();
                    let alone = inside.try_lock().expect("only the holder is inside");
                    thread::yield_now();
                    drop(alone);
                    guard.release();
                }
            });
        }
    });
}

#[test]
fn the_end_of_the_validity_is_told_in_time() {
    let (_nodes, redlock) = cluster();
    let guard = redlock
        .lock("a")
        .ttl(Duration::from_secs(1))
        .acquire()
        .unwrap();
    assert!(guard.lost(Duration::ZERO).is_none());
    let error = guard.lost(LONG).expect("the validity ends");
    assert_eq!(error.kind(), ErrorKind::Expired);
    assert!(guard.cancellation().is_cancelled());
}

#[test]
fn a_lock_that_the_nodes_lost_is_told_by_its_renewal() {
    let (nodes, redlock) = cluster();
    let renew = RenewPolicy::until(TTL * 10).every(Duration::from_millis(20));
    let guard = redlock.lock("a").ttl(TTL).renew(renew).acquire().unwrap();
    for node in &nodes {
        node.state.change(|inner| inner.keys.clear());
    }
    let error = guard.lost(LONG).expect("the renewal finds out");
    assert_eq!(error.kind(), ErrorKind::Lost);
}

#[test]
fn a_leaked_lock_stays_and_its_token_takes_it_over_or_releases_it() {
    let (nodes, redlock) = cluster();
    let token = redlock.lock("a").ttl(TTL).acquire().unwrap().leak();
    let adopted = redlock.adopt("a", token).ttl(TTL).acquire().unwrap();
    assert_eq!(adopted.token().as_ref(), token.as_ref());
    let _ = adopted.leak();
    // A release would have gone before this lock's own.
    redlock.lock("b").ttl(TTL).acquire().unwrap().release();
    for node in &nodes {
        node.wait_until(|inner| inner.keys.contains_key(&b"a"[..]));
    }
    let other = Token::new("other").unwrap();
    assert!(!redlock.release("a", &other).unwrap().is_confirmed());
    assert!(redlock.release("a", &token).unwrap().is_confirmed());
}

#[test]
fn several_locks_are_had_all_or_none() {
    let (nodes, redlock) = cluster();
    let both = redlock.lock_all(["b", "a"]).ttl(TTL).acquire().unwrap();
    assert_eq!(both.keys().collect::<Vec<_>>(), [b"a", b"b"]);
    both.extend(TTL).unwrap();
    assert!(both.is_valid() && both.lost(Duration::ZERO).is_none());
    assert!(
        redlock
            .lock_all(["0", "b"])
            .ttl(TTL)
            .try_acquire()
            .unwrap()
            .is_none()
    );
    assert!(both.release().iter().all(|released| released.is_free()));
    for node in &nodes {
        node.wait_until(|inner| inner.keys.is_empty());
    }
}

#[test]
fn an_owner_enters_again_and_the_last_to_leave_releases() {
    let (nodes, redlock) = cluster();
    let owner = redlock.reentrant();
    let outer = owner.enter(redlock.lock("a").ttl(TTL)).unwrap();
    let inner = owner.clone().enter(redlock.lock("a").ttl(TTL)).unwrap();
    assert_eq!((inner.entries(), inner.key()), (2, outer.key()));
    assert!(redlock.lock("a").ttl(TTL).try_acquire().unwrap().is_none());
    inner.extend(TTL).unwrap();
    assert!(inner.lost(Duration::ZERO).is_none());
    assert!(inner.leave().is_none());
    assert!(outer.is_valid());
    assert!(outer.leave().is_some_and(|released| released.is_free()));
    for node in &nodes {
        node.wait_until(|inner| inner.keys.is_empty());
    }
}

#[test]
fn the_result_of_the_work_comes_back_and_the_lock_is_released_even_after_a_panic() {
    let (nodes, redlock) = cluster();
    let request = redlock.lock("a").ttl(TTL);
    let result = redlock
        .with_lock(request.clone(), |_| Err::<(), _>("own error"))
        .unwrap();
    assert_eq!(result, Err("own error"));
    let panicked = thread::spawn(move || redlock.with_lock(request, |_| panic!("wanted"))).join();
    assert!(panicked.is_err());
    for node in &nodes {
        node.wait_until(|inner| inner.keys.is_empty());
    }
}

#[test]
fn no_quorum_is_an_error_and_not_a_panic() {
    let node = FakeNode::start();
    // Nobody listens at the other two.
    let refused = ["/nowhere/one.sock", "/nowhere/other.sock"];
    let redlock = Redlock::builder()
        .node(&node.address)
        .nodes(refused)
        .build_blocking()
        .unwrap();
    let error = redlock.lock("a").ttl(TTL).try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    node.wait_until(|inner| inner.connected > 0 && inner.keys.is_empty());
}

#[test]
fn a_bad_configuration_starts_no_thread() {
    let error = Redlock::builder().build_blocking().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let error = Redlock::builder()
        .node("redis://host:0")
        .build_blocking()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Of locks that are not meant to expire.
const TTL: Duration = Duration::from_secs(30);

/// Never reached by a test that passes.
const LONG: Duration = Duration::from_secs(20);
