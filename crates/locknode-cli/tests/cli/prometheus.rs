//! A real Prometheus looks at five nodes: the rules and the dashboard of docs/monitoring are of use with it.

#![expect(
    clippy::print_stdout,
    reason = "who runs it wants to know what was left out"
)]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::monitoring::{get, monitoring_of};
use crate::processes::wait_until;
use crate::program::{Directory, Program, ask, command, connect, serve, shows};

/// The files for monitoring.
fn file(name: &str) -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let path = root.join("docs/monitoring").join(name);
    path.canonicalize().expect("a file of docs/monitoring")
}

/// Whether a program is installed; says so if not.
fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        println!("skipped: {program} is not installed (apt-get install prometheus)");
    }
    found.is_ok()
}

/// Has promtool look at something, which must find nothing wrong.
#[track_caller]
fn promtool(words: &[&str], input: &str) {
    let mut child = Command::new("promtool")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("read");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{words:?}: {text}");
}

/// Five nodes with data directories, and the addresses of their metrics.
fn cluster(directory: &Directory) -> Vec<(Program, SocketAddr, SocketAddr)> {
    let start = |n| {
        let dir = directory.path_of(&format!("node-{n}"));
        let line = "serve --port 0 --metrics-bind 0 --first-start --max-ttl 10s --dir";
        let mut node = Program::start(command(line.split(' ').chain([&*dir])));
        let monitoring = monitoring_of(&mut node);
        let address = node.address();
        (node, address, monitoring)
    };
    (1..=5).map(start).collect()
}

/// Uses locks so that every metric has a value.
fn use_locks(address: SocketAddr) {
    let mut client = connect(address);
    for (request, reply) in [
        ("SET a x NX PX 5000", "+OK"),
        ("SET a y NX PX 5000", "$-1"),
        ("DELIFEQ a y", ":0"),
        ("DELIFEQ a x", ":1"),
        ("SET a y NX PX 5000", "+OK"),
        ("DELIFEQ a y", ":1"),
        ("SET long x NX PX 60000", "+OK"),
        (
            "HGET long x",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ] {
        assert_eq!(ask(&mut client, request), reply);
    }
}

/// For those who take no port 0: one that was free a moment ago.
fn free_address() -> SocketAddr {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    free.expect("a port")
}

/// What somebody answers to a GET.
fn fetch(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (_, text) = answer.split_once("\r\n\r\n").expect("a head");
    text.to_owned()
}

/// A running Prometheus.
struct Prometheus {
    _program: Program,
    address: SocketAddr,
}

impl Prometheus {
    fn start(directory: &Directory, nodes: &[SocketAddr]) -> Self {
        let nodes: Vec<String> = nodes.iter().map(|node| format!("\"{node}\"")).collect();
        let config = directory.file(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\n\
                 scrape_configs:\n  - job_name: locknode\n    static_configs: [{{targets: [{}]}}]\n\
                 rule_files: [{}]\n",
                nodes.join(","),
                file("alerts.yml").display()
            ),
        );
        let address = free_address();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={config}"))
            .arg(format!("--storage.tsdb.path={}", directory.path_of("data")))
            .arg(format!("--web.listen-address={address}"));
        let mut program = Program::start(command);
        program.line_with("ready to receive web requests");
        Self {
            _program: program,
            address,
        }
    }

    fn get(&self, path: &str) -> String {
        fetch(self.address, path)
    }

    /// The answer to a query.
    fn query(&self, query: &str) -> String {
        let mut path = String::from("/api/v1/query?query=");
        for byte in query.bytes() {
            let _ = write!(path, "%{byte:02x}");
        }
        let answer = self.get(&path);
        shows(&answer, &["\"status\":\"success\""]);
        answer
    }

    /// Waits until a query has a result.
    fn finds(&self, query: &str) -> String {
        let mut answer = String::new();
        wait_until(query, || {
            answer = self.query(query);
            !answer.contains("\"result\":[]")
        });
        answer
    }
}

/// The queries of the dashboard.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(file("dashboard.json")).expect("the dashboard");
    let queries = text.split("\"expr\": \"").skip(1).map(|rest| {
        let mut query = String::new();
        let mut chars = rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => query.extend(chars.next()),
                c => query.push(c),
            }
        }
        query
            .replace("$job", "locknode")
            .replace("$instance", ".*")
            .replace("$__rate_interval", "1m")
    });
    queries.collect()
}

#[test]
fn a_prometheus_has_series_for_the_dashboard_and_evaluates_the_rules() {
    if !has("prometheus") || !has("promtool") {
        return;
    }
    promtool(
        &[
            "check",
            "rules",
            file("alerts.yml").to_str().expect("a path"),
        ],
        "",
    );
    promtool(
        &[
            "check",
            "config",
            "--syntax-only",
            file("prometheus.yml").to_str().expect("a path"),
        ],
        "",
    );
    let directory = Directory::new("prometheus");
    let mut nodes = cluster(&directory);
    for (_, address, _) in &nodes {
        use_locks(*address);
    }
    let (_, text) = get(nodes[0].2, "/metrics");
    promtool(&["check", "metrics"], &text);

    let targets: Vec<SocketAddr> = nodes.iter().map(|(.., monitoring)| *monitoring).collect();
    let prometheus = Prometheus::start(&directory, &targets);
    let up = prometheus.finds("sum(locknode_grants_total) == 15");
    shows(&up, &["\"15\""]);
    let queries = queries();
    assert!(queries.len() > 30, "{queries:#?}");
    for query in queries {
        prometheus.finds(&query);
    }

    // Every rule was evaluated, and none has anything to say.
    let mut rules = String::new();
    wait_until("every rule is evaluated", || {
        rules = prometheus.get("/api/v1/rules");
        !rules.contains("\"health\":\"unknown\"")
    });
    assert!(!rules.contains("\"health\":\"err\""), "{rules}");
    let alerts = std::fs::read_to_string(file("alerts.yml")).expect("the rules");
    for name in alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        shows(&rules, &[&format!("\"name\":\"{name}\"")]);
    }

    // Three of five nodes are down: the rules about that are met.
    for (node, ..) in &mut nodes[..3] {
        node.end(Signal::KILL);
    }
    for alert in ["LocknodeNoQuorum", "LocknodeNoSpareNode", "LocknodeDown"] {
        prometheus.finds(&format!("ALERTS{{alertname=\"{alert}\"}}"));
    }
}

/// The exporter that people have for Redis, if REDIS_EXPORTER is the path of one.
#[test]
fn the_exporter_for_redis_shows_a_node() {
    let Some(exporter) = std::env::var_os("REDIS_EXPORTER") else {
        println!("skipped: REDIS_EXPORTER is not the path of a redis_exporter");
        return;
    };
    for (flags, serves) in [("--first-start", true), ("--max-ttl 1h", false)] {
        let mut node = serve(&format!("{flags} --slowlog-log-slower-than 0"));
        let address = node.address();
        let mut client = connect(address);
        let granted = ask(&mut client, "SET a x NX PX 60000").starts_with('+');
        assert_eq!(granted, serves);
        let page = free_address();
        let mut command = Command::new(&exporter);
        command
            .arg(format!("--redis.addr=redis://{address}"))
            .arg(format!("--web.listen-address={page}"));
        let mut exporter = Program::start(command);
        exporter.line_with("Providing metrics at");
        wait_until("the exporter listens", || {
            std::net::TcpStream::connect(page).is_ok()
        });
        let text = fetch(page, "/metrics");
        let set = u8::from(serves);
        for line in [
            "redis_up 1".to_owned(),
            "redis_exporter_last_scrape_error{err=\"\"} 0".to_owned(),
            format!("redis_rdb_last_bgsave_status {set}"),
            format!("redis_db_keys{{db=\"db0\"}} {set}"),
            format!(
                "redis_commands_rejected_calls_total{{cmd=\"set\"}} {}",
                1 - set
            ),
        ] {
            assert!(text.lines().any(|it| it == line), "no {line} in {text}");
        }
        let has_histogram = text.contains("redis_commands_latencies_usec_count{cmd=\"set\"} 1");
        assert_eq!(has_histogram, serves, "{text}");
        assert!(!text.contains("redis_slowlog_length 0"), "{text}");
    }
}
