//! A node, its addresses, its signals.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::process::Signal;

use crate::program::{
    Directory, PATIENCE, Program, ask, command, connect, ended, ends, run, serve, shows,
};

#[test]
fn a_node_on_a_free_port_prints_its_address_and_answers() {
    for threads in ["1", "3"] {
        let mut node = serve(&format!("--first-start --threads {threads}"));
        let address = node.address();
        assert!(address.ip().is_loopback());
        node.line_with("in memory only");
        node.line_with("remove it before the next one");
        node.line_with("serving, 0 locks");
        for index in 0..6 {
            let mut client = connect(address);
            assert_eq!(ask(&mut client, "PING"), "+PONG");
            let set = format!("SET k{index} token NX PX 30000");
            assert_eq!(ask(&mut client, &set), "+OK");
        }
        // Whatever thread a connection lands on, the locks are the same.
        for index in 0..6 {
            let set = format!("SET k{index} other NX PX 30000");
            assert_eq!(ask(&mut connect(address), &set), "$-1");
        }
    }
}

#[test]
fn a_signal_ends_the_node_and_its_connections() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let mut node = serve("--first-start --threads 2");
        let mut client = connect(node.address());
        assert_eq!(ask(&mut client, "SET k token NX PX 30000"), "+OK");
        node.signal(signal);
        node.line_with(name);
        let rest = client.read(&mut [0]);
        assert_eq!(rest.expect("the connection is closed in order"), 0);
        node.ends(0);
    }
}

/// Pooled clients keep their connections open; an hour of drain would be waited for them if anything were.
#[test]
fn clients_that_have_their_replies_do_not_delay_the_end() {
    for end in ["SIGTERM", "SHUTDOWN"] {
        let mut node = serve("--first-start --threads 2 --drain 1h");
        let address = node.address();
        let mut pool: Vec<_> = (0..200).map(|_| connect(address)).collect();
        for (index, client) in pool.iter_mut().enumerate() {
            let set = format!("SET k{index} token NX PX 30000");
            assert_eq!(ask(client, &set), "+OK");
        }
        match end {
            "SIGTERM" => node.signal(Signal::TERM),
            _ => pool[0].write_all(b"SHUTDOWN\r\n").expect("sent"),
        }
        node.ends(0);
    }
}

/// Three hundred connections, of which half were used just now, and two thousand locks that are written. A machine that
/// is busy with other tests delays everything: a program that only prints its version is the measure of that.
#[test]
fn a_stop_takes_less_than_a_tenth_of_a_second() {
    let stop = |round: usize| {
        let directory = Directory::new(&format!("stop-{round}"));
        let flags = format!("--first-start --dir {}", directory.path_of("node"));
        let mut node = serve(&flags);
        let address = node.address();
        let mut clients: Vec<_> = (0..300).map(|_| connect(address)).collect();
        for index in 0..2000 {
            let set = format!("SET k{index} token NX PX 60000");
            assert_eq!(ask(&mut clients[index % 150], &set), "+OK");
        }
        let began = Instant::now();
        assert!(node.end(Signal::TERM).success());
        let time = began.elapsed();
        assert_eq!(node.count("locks written to"), 1, "{:?}", node.seen());
        let began = Instant::now();
        ends(0, ["--version"]);
        (time, time.saturating_sub(10 * began.elapsed()))
    };
    let mut times = (0..20).map(stop);
    let found = times.find(|(_, time)| time.as_millis() < 100);
    assert!(found.is_some(), "twenty stops took longer");
}

#[test]
fn a_node_goes_on_when_its_terminal_is_closed() {
    let directory = Directory::new("hang-up");
    let flags = format!("--dir {}", directory.path_of("node"));
    let mut node = serve(&format!("{flags} --first-start"));
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET k token NX PX 30000"), "+OK");
    node.signal(Signal::HUP);
    assert_eq!(ask(&mut client, "GET k"), "$5");
    // Signals of different kinds need not be taken in order: the end shows that the first one was no crash.
    assert_eq!(node.end(Signal::TERM).code(), Some(0));
    serve(&flags).line_with("serving, 1 lock");
}

#[test]
fn a_second_signal_does_not_wait_for_a_client_that_reads_nothing() {
    for threads in ["1", "2"] {
        let mut node = serve(&format!(
            "--restart-guard off --drain 1h --threads {threads}"
        ));
        let address = node.address();
        let mut client = connect(address);
        let value = "x".repeat(60_000);
        assert_eq!(ask(&mut client, &format!("SET k {value}")), "+OK");
        // More replies than the sockets' buffers hold, and nobody reads them.
        client.set_nonblocking(true).expect("non-blocking");
        let requests = b"GET k\r\n".repeat(1000);
        while client.write(&requests).is_ok() {}
        node.signal(Signal::TERM);
        node.line_with("SIGTERM:");
        node.signal(Signal::TERM);
        node.line_with("SIGTERM again");
        node.ends(0);
    }
}

#[test]
fn shutdown_from_a_client_ends_the_process() {
    let mut node = serve("--threads 2 --bind 127.0.0.1 --bind -::1");
    let mut client = connect(node.address());
    client.write_all(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    node.ends(0);
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for threads in ["1", "2"] {
        let (out, err) = ends(69, ["serve", "--port", &port, "--threads", threads]);
        assert_eq!(out, "");
        shows(&err, &[&port, "--port"]);
    }
}

#[test]
fn two_nodes_never_share_a_port() {
    let mut first = serve("--threads 2");
    let port = first.address().port().to_string();
    for threads in ["1", "2"] {
        ends(69, ["serve", "--port", &port, "--threads", threads]);
    }
}

#[test]
fn a_unix_socket_has_its_permissions_and_goes_with_the_node() {
    let directory = Directory::new("unix");
    let path = directory.path.join("node.sock");
    let socket = directory.path_of("node.sock");
    let flags = format!(
        "serve --first-start --bind= --unixsocket {socket} --unixsocketperm 600 --threads 2"
    );
    let mut node = Program::start(command(flags.split(' ')));
    node.line_with("listening on unix:");
    let socket = std::fs::metadata(&path).expect("a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let mut client = UnixStream::connect(&path).expect("somebody listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    assert_eq!(ask(&mut client, "PING"), "+PONG");

    let (_, err) = ends(69, flags.split(' '));
    shows(&err, &["--unixsocket"]);
    let stays = "a second node leaves the first one's socket alone";
    assert!(path.exists(), "{stays}");

    drop(client);
    assert_eq!(node.end(Signal::TERM).code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn options_reach_the_node() {
    let mut serve = command(["serve", "--first-start", "--port", "0", "--maxclients", "1"]);
    serve.env("LOCKNODE_REQUIREPASS", "secret");
    let mut node = Program::start(serve);
    let address = node.address();
    let mut client = connect(address);
    let without_password = ask(&mut client, "SET k t NX");
    assert!(
        without_password.starts_with("-NOAUTH"),
        "{without_password}"
    );
    assert_eq!(ask(&mut client, "AUTH secret"), "+OK");
    assert_eq!(ask(&mut client, "SET k t NX PX 30000"), "+OK");
    let refused = std::io::read_to_string(connect(address)).expect("closed in order");
    assert_eq!(refused, "-ERR max number of clients reached\r\n");
}

/// A buffer for a megabyte takes up to two: not all requests fit, but some do.
#[test]
fn unfinished_requests_beyond_maxmemory_clients_are_closed() {
    let mut node = serve("--first-start --maxmemory-clients 4mb");
    let address = node.address();
    let mut clients = [(); 6].map(|()| connect(address));
    let (begun, rest) = (vec![b'v'; 900_000], vec![b'v'; 100_000]);
    for client in &mut clients {
        let head = b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n";
        // A client that is closed may see it here.
        let _ = client
            .write_all(head)
            .and_then(|()| client.write_all(&begun));
    }
    let end = Instant::now() + PATIENCE;
    let connected = || {
        let mut asking = connect(address);
        asking.write_all(b"INFO clients\r\nQUIT\r\n").expect("sent");
        let info = std::io::read_to_string(asking).expect("a reply");
        let mut lines = info.lines();
        let count = lines.find_map(|line| line.strip_prefix("connected_clients:"));
        count.expect("a count").parse::<usize>().expect("a number")
    };
    // Who asks counts, too.
    while connected() > clients.len() {
        assert!(Instant::now() < end, "nobody is closed");
    }
    let mut served = 0;
    for client in &mut clients {
        let mut reply = [0; 5];
        let sent = client
            .write_all(&rest)
            .and_then(|()| client.write_all(b"\r\n$2\r\nPX\r\n$5\r\n30000\r\n"));
        if sent.and_then(|()| client.read_exact(&mut reply)).is_ok() {
            assert_eq!(&reply, b"+OK\r\n");
            served += 1;
        }
    }
    assert!(0 < served && served < clients.len(), "{served}");
}

#[test]
fn too_few_descriptors_lower_maxclients_with_a_warning() {
    let mut limited = std::process::Command::new("sh");
    let script = "ulimit -n 100; exec \"$0\" serve --port 0 --maxclients 5000";
    limited.args(["-c", script, env!("CARGO_BIN_EXE_locknode")]);
    let mut node = Program::start(limited);
    let line = node.line_with("maxclients is");
    shows(&line, &["instead of 5000", "ulimit"]);
}

#[test]
fn an_open_address_without_a_password_is_warned_about() {
    serve("--bind 0.0.0.0").line_with("protected mode");
    serve("--bind * --protected-mode no").line_with("no password");
}

#[test]
fn addresses_that_cannot_be_used_are_explained() {
    for (flags, code, part) in [
        ("--port 0 --bind 192.0.2.1", 69, "--bind"),
        ("--bind=", 64, "nothing to listen on"),
        ("--bind 127.0.0.1:80", 64, "--port"),
        (
            "--unixsocket /nonexistent/x.sock --bind=",
            69,
            "/nonexistent/x.sock",
        ),
    ] {
        let (_, err) = ended(code, &run(format!("serve {flags}").split(' ')));
        shows(&err, &[part]);
    }
    // The same address is no error when it may be missing.
    let mut node = serve("--bind 127.0.0.1,-192.0.2.1");
    assert!(node.address().ip().is_loopback());
}
