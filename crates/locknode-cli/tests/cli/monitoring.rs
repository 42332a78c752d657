//! Metrics and probes, and what comes to their port.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use locknode::METRICS;
use rustix::process::Signal;

use crate::program::{Program, ask, command, connect, ends, shows};

/// A node with metrics, its address, and that of its metrics.
fn monitored(flags: &str) -> (Program, SocketAddr, SocketAddr) {
    let line = format!("serve --port 0 --metrics-bind 0 {flags}");
    let mut node = Program::start(command(line.split_whitespace()));
    let monitoring = monitoring_of(&mut node);
    let address = node.address();
    (node, address, monitoring)
}

pub(crate) fn monitoring_of(node: &mut Program) -> SocketAddr {
    let line = node.line_with("metrics at http://");
    let (_, rest) = line.split_once("http://").expect("just found");
    rest.trim_end_matches("/metrics")
        .parse()
        .expect("an address")
}

/// Sends a request, and returns the status and the text of the answer.
fn exchange(address: SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = connect(address);
    stream.write_all(request).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.lines().next().expect("a status line");
    let len = format!("Content-Length: {}", text.len());
    assert!(head.contains(&len), "{head}");
    (status.replacen("HTTP/1.1 ", "", 1), text.to_owned())
}

pub(crate) fn get(address: SocketAddr, path: &str) -> (String, String) {
    exchange(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(),
    )
}

#[test]
fn metrics_and_probes_of_a_node_that_serves() {
    let (mut node, address, monitoring) = monitored("--first-start");
    let mut client = connect(address);
    for (request, reply) in [
        ("SET a x NX PX 60000", "+OK"),
        ("SET a y NX PX 60000", "$-1"),
        ("DELIFEQ a y", ":0"),
        (
            "SUBSCRIBE",
            "-ERR wrong number of arguments for 'subscribe' command",
        ),
    ] {
        assert_eq!(ask(&mut client, request), reply);
    }
    let (status, text) = get(monitoring, "/metrics?x=1");
    assert_eq!(status, "200 OK");
    shows(
        &text,
        &[
            "\nlocknode_commands_total{command=\"set\",result=\"ok\"} 2\n",
            "\nlocknode_commands_total{command=\"subscribe\",result=\"rejected\"} 1\n",
            "\nlocknode_locks{db=\"0\"} 1\n",
            "\nlocknode_connections 1\n",
            "\nlocknode_state{state=\"serving\"} 1\n",
            "\nlocknode_start_info{reason=\"first_start\"} 1\n",
            "\nprocess_open_fds ",
            "\nprocess_max_fds ",
            "\nprocess_resident_memory_bytes ",
        ],
    );
    for (path, answer) in [
        ("/healthz", ("200 OK", "up\n")),
        ("/readyz", ("200 OK", "granting locks\n")),
    ] {
        let (status, text) = get(monitoring, path);
        assert_eq!((status.as_str(), text.as_str()), answer);
    }
    assert!(node.end(Signal::TERM).success());
}

#[test]
fn a_node_in_quarantine_is_up_and_not_ready() {
    let (node, _, monitoring) = monitored("--max-ttl 1h");
    let (status, text) = get(monitoring, "/readyz");
    assert_eq!(status, "503 Service Unavailable");
    shows(
        &text,
        &[
            "in quarantine for another 36",
            " s: without a data directory",
        ],
    );
    assert_eq!(get(monitoring, "/healthz").0, "200 OK");
    let (_, text) = get(monitoring, "/metrics");
    shows(
        &text,
        &[
            "\nlocknode_state{state=\"quarantine\"} 1\n",
            "\nlocknode_quarantine_left_seconds 36",
            "\nlocknode_start_info{reason=\"no_directory\"} 1\n",
        ],
    );
    drop(node);
    // One that does not listen yet is looked at all the same.
    let line = "serve --port 0 --metrics-bind 0 --quarantine refuse --max-ttl 1h";
    let mut node = Program::start(command(line.split(' ')));
    let monitoring = monitoring_of(&mut node);
    assert_eq!(get(monitoring, "/readyz").0, "503 Service Unavailable");
    assert_eq!(get(monitoring, "/healthz").0, "200 OK");
}

#[test]
fn a_node_that_stops_is_not_ready() {
    let (mut node, address, monitoring) = monitored("--first-start --drain 1h");
    // A client that takes no replies keeps the node from ending.
    let mut deaf = connect(address);
    let request = "ECHO 1234567890123456789012345678901234567890\r\n".repeat(1 << 16);
    let mut writer = deaf.try_clone().expect("a handle");
    let sender = std::thread::spawn(move || writer.write_all(request.as_bytes()));
    let mut first = [0];
    deaf.read_exact(&mut first).expect("a reply");
    node.signal(Signal::TERM);
    node.line_with("SIGTERM");
    let (status, text) = get(monitoring, "/readyz");
    assert_eq!(
        (status.as_str(), text.as_str()),
        ("503 Service Unavailable", "stopping\n")
    );
    node.end(Signal::TERM);
    let _ = sender.join();
}

#[test]
fn bad_requests_are_refused() {
    let (_node, _, monitoring) = monitored("--first-start");
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(100 << 10));
    for (request, status) in [
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            "405 Method Not Allowed",
        ),
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("GET /metrics/../x HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("GET /metrics HTTP/2\r\n\r\n", "400 Bad Request"),
        ("GET /metrics\r\n\r\n", "400 Bad Request"),
        ("\r\n\r\n", "400 Bad Request"),
        ("\0\u{1}\n\n", "400 Bad Request"),
        (long.as_str(), "431 Request Header Fields Too Large"),
        (
            "GET /healthz HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n*1\r\n$4\r\nPING\r\n",
            "200 OK",
        ),
    ] {
        assert_eq!(
            exchange(monitoring, request.as_bytes()).0,
            status,
            "{request:.40}"
        );
    }
}

/// Connections that send little, or nothing, keep nobody from getting an answer.
#[test]
fn those_who_wait_with_their_requests_lose_their_place() {
    let (_node, address, monitoring) = monitored("--first-start");
    let began = Instant::now();
    let slow: Vec<TcpStream> = (0..100)
        .map(|n| {
            let mut stream = connect(monitoring);
            let part = "GET /metrics HTTP/1.1\r\nX: "
                .get(..n % 27)
                .expect("a part");
            stream.write_all(part.as_bytes()).expect("sent");
            stream
        })
        .collect();
    assert_eq!(get(monitoring, "/healthz").0, "200 OK");
    assert_eq!(ask(&mut connect(address), "SET a x NX PX 1000"), "+OK");
    // The first ones had to go, before their five seconds were over.
    let mut rest = Vec::new();
    let _ = (&slow[1]).read_to_end(&mut rest);
    assert_eq!(rest, b"");
    assert!(began.elapsed() < Duration::from_secs(5));
    // The last ones have their time, and not more.
    let _ = (&slow[99]).read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let flag = format!("--metrics-bind={port}");
    let (_, err) = ends(69, ["serve", "--port", "0", &flag]);
    shows(&err, &[&format!("127.0.0.1:{port}"), "--metrics-bind"]);
}

/// The table in docs/metrics.md is the node's.
#[test]
fn the_documents_list_every_metric() {
    let mut table = String::from("| metric | type | labels | what it is |\n|---|---|---|---|\n");
    for metric in METRICS {
        let labels = metric.labels().join(", ");
        let (name, kind) = (metric.name(), metric.kind().name());
        let _ = writeln!(
            table,
            "| `{name}` | {kind} | {labels} | {} |",
            metric.help()
        );
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = std::fs::read_to_string(path).expect("docs/metrics.md");
    let head = page.find("| metric |").expect("a table");
    let len = page[head..]
        .find("\n\n")
        .map_or(page.len() - head, |end| end + 1);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let mut page = page;
        page.replace_range(head..head + len, &table);
        std::fs::write(path, page).expect("written");
    } else {
        assert_eq!(
            &page[head..head + len],
            table,
            "UPDATE_SNAPSHOTS=1 cargo test -p locknode-cli --test cli monitoring"
        );
    }
}
