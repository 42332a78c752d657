//! INFO.

use std::collections::BTreeMap;

use locknode_engine::{Host, HostFacts};

use crate::node::{Node, check, rows};

/// The report by section and field; every line must be a heading, a field or the blank line between sections.
fn parse(text: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut sections: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    if text.is_empty() {
        return sections;
    }
    let body = text.strip_suffix("\r\n").expect("the last line ends");
    for line in body.split("\r\n") {
        assert!(!line.contains(['\r', '\n']), "{line:?}");
        if let Some(name) = line.strip_prefix("# ") {
            sections.push((name.to_owned(), BTreeMap::new()));
        } else if !line.is_empty() {
            let (field, value) = line.split_once(':').expect("field:value");
            let (_, fields) = sections.last_mut().expect("a heading first");
            assert!(
                fields.insert(field.to_owned(), value.to_owned()).is_none(),
                "{field} twice"
            );
        }
    }
    sections
}

fn names(node: &mut Node, request: &str) -> String {
    let sections = parse(&node.text(request));
    sections
        .into_iter()
        .map(|(name, _)| name)
        .collect::<Vec<_>>()
        .join(" ")
}

fn fields(node: &mut Node, section: &str) -> BTreeMap<String, String> {
    let mut sections = parse(&node.text(&format!("INFO {section}")));
    assert_eq!(sections.len(), 1, "{section}");
    sections.remove(0).1
}

#[test]
fn sections_are_given_as_asked_in_the_order_of_redis() {
    let mut node = Node::new();
    let usual = "Server Clients Memory Persistence Restart Stats Replication CPU Errorstats Cluster Keyspace";
    let all = "Server Clients Memory Persistence Restart Stats Replication CPU Commandstats Errorstats Latencystats Holders Cluster Keyspace";
    for (request, want) in [
        ("INFO", usual),
        ("INFO default", usual),
        ("INFO all", all),
        ("INFO EVERYTHING", all),
        ("INFO commandstats latencystats holders default", all),
        ("INFO stats SERVER stats", "Server Stats"),
        ("INFO nosuch", ""),
        ("INFO nosuch keyspace", "Keyspace"),
    ] {
        assert_eq!(names(&mut node, request), want, "{request}");
    }
}

#[test]
fn the_text_is_laid_out_as_redis_lays_it_out() {
    check(
        "INFO cluster => $30 # Cluster cluster_enabled:0\n INFO cluster keyspace => $44 # Cluster cluster_enabled:0  # Keyspace",
    );
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check("INFO cluster => =34 txt:# Cluster cluster_enabled:0\n INFO nosuch => =4 txt:");
}

#[test]
fn what_clients_and_exporters_read_is_there() {
    let mut node = Node::new();
    node.advance_millis(90_000_000);
    let table = "
        server redis_version => 8.4.0
        server redis_mode => standalone
        server run_id => run
        server uptime_in_seconds => 90000
        server uptime_in_days => 1
        clients connected_clients => 3
        clients maxclients => 10000
        persistence loading => 0
        cluster cluster_enabled => 0
        replication role => master
        replication connected_slaves => 0
        memory maxmemory_policy => noeviction
    ";
    for (name, want) in rows(table) {
        let (section, field) = name.split_once(' ').expect("section field");
        assert_eq!(fields(&mut node, section)[field], want, "{name}");
    }
    let server = fields(&mut node, "server");
    assert_eq!(server["arch_bits"], usize::BITS.to_string());
    assert_eq!(server["locknode_version"], env!("CARGO_PKG_VERSION"));
}

fn used_memory(node: &mut Node) -> u64 {
    let used = &fields(node, "memory")["used_memory"];
    used.parse().expect("bytes")
}

#[test]
fn keys_and_memory_are_counted() {
    let mut node = Node::new();
    let before = used_memory(&mut node);
    node.check("SET a v => +OK\n SET b v PX 50 => +OK\n SELECT 3 => +OK\n SET c v => +OK");
    let after = used_memory(&mut node);
    assert!(after > before);
    let keyspace = fields(&mut node, "keyspace");
    assert_eq!(keyspace["db0"], "keys=2,expires=1");
    assert_eq!(keyspace["db3"], "keys=1,expires=0");
    assert_eq!(keyspace.len(), 2);
    node.check("+ 51\n GET c => $1 v\n SELECT 0 => +OK\n GET b => $-1");
    let stats = fields(&mut node, "stats");
    let counts =
        ["expired_keys", "keyspace_hits", "keyspace_misses"].map(|field| stats[field].as_str());
    assert_eq!(counts, ["1", "1", "1"]);
}

#[test]
fn commands_and_errors_are_counted() {
    let mut node = Node::new();
    node.check(
        "SET k v => +OK
         SET k v foo => -ERR syntax error
         SET k => -ERR wrong number of arguments for 'set' command
         EVALSHA 0123456789012345678901234567890123456789 0 => -NOSCRIPT No matching script. Please use EVAL.",
    );
    let commands = fields(&mut node, "commandstats");
    assert_eq!(
        commands["cmdstat_set"],
        "calls=2,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=1"
    );
    assert!(!commands.contains_key("cmdstat_get"));
    let errors = fields(&mut node, "errorstats");
    assert_eq!(errors["errorstat_ERR"], "count=2");
    assert_eq!(errors["errorstat_NOSCRIPT"], "count=1");
    let stats = fields(&mut node, "stats");
    assert_eq!(stats["total_error_replies"], "3");
    assert_eq!(stats["total_commands_processed"], "5");
}

#[test]
fn the_rate_is_that_since_the_report_before() {
    let mut node = Node::new();
    fields(&mut node, "stats");
    for _ in 0..49 {
        node.run("PING");
    }
    node.advance_millis(500);
    for _ in 0..2 {
        let stats = fields(&mut node, "stats");
        assert_eq!(stats["instantaneous_ops_per_sec"], "100");
        node.run("PING");
    }
}

#[test]
fn a_pause_is_shown() {
    let mut node = Node::new();
    node.check("CLIENT PAUSE 400 WRITE => +OK\n + 150");
    assert_eq!(
        fields(&mut node, "clients")["paused_timeout_milliseconds"],
        "250"
    );
}

/// A host that knows everything.
#[derive(Debug)]
struct KnownHost;

impl Host for KnownHost {
    fn facts(&self) -> HostFacts {
        let mut facts = HostFacts::default();
        facts.os = "Linux 6.1.0 x86_64".to_owned();
        facts.process_id = 42;
        facts.tcp_port = 7101;
        facts.bind = "127.0.0.1".to_owned();
        facts.executable = "/usr/bin/locknode".to_owned();
        facts.config_file = "/etc/locknode.conf".to_owned();
        facts.resident_bytes = 3 << 20;
        facts.cpu_user_seconds = 1.5;
        facts.cpu_system_seconds = 0.25;
        facts.net_input_bytes = 1000;
        facts.net_output_bytes = 2000;
        facts
    }
}

#[test]
fn what_the_host_knows_is_shown_and_what_it_does_not_know_is_left_out() {
    let mut node = Node::new();
    let all = node.text("INFO all");
    let unknown = "os: process_id: executable: used_memory_rss: used_cpu_sys: used_cpu_user:";
    for field in unknown.split(' ') {
        assert!(!all.contains(&format!("\n{field}")), "{field}");
    }
    let mut node = Node::with_config(|config| config.host = Box::new(KnownHost));
    let all = node.text("INFO all");
    let known = "
        os:Linux 6.1.0 x86_64
        process_id:42
        tcp_port:7101
        executable:/usr/bin/locknode
        config_file:/etc/locknode.conf
        used_memory_rss:3145728
        used_memory_rss_human:3.00M
        used_cpu_sys:0.250000
        used_cpu_user:1.500000
        total_net_input_bytes:1000
        total_net_output_bytes:2000
    ";
    for line in known.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(all.contains(&format!("\r\n{line}\r\n")), "{line}");
    }
    node.check(
        "CONFIG GET bind port => *4 $4 bind $9 127.0.0.1 $4 port $4 7101
         CONFIG SET bind 127.0.0.1 port 7101 => +OK
         CONFIG SET port 7102 => -ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config
         CONFIG REWRITE => -ERR the node does not write its configuration file
         CONFIG RESETSTAT => +OK",
    );
    assert_eq!(fields(&mut node, "stats")["total_net_input_bytes"], "0");
}

#[test]
fn clients_closed_for_their_buffers_are_counted() {
    let mut node = Node::with_options(|options| options.maxmemory_clients = 200_000);
    node.clients[1].client().note_buffers(150_000);
    assert!(
        node.text("INFO memory")
            .contains("mem_clients_normal:150000\r\n")
    );
    assert!(node.text("INFO stats").contains("evicted_clients:0\r\n"));
    node.clients[2].client().note_buffers(160_000);
    assert!(node.clients[2].client().is_killed() && !node.clients[1].client().is_killed());
    assert!(node.text("INFO stats").contains("evicted_clients:1\r\n"));
    node.check("CONFIG RESETSTAT => +OK");
    assert!(node.text("INFO stats").contains("evicted_clients:0\r\n"));
}

/// What scripts choose is shown as Redis shows it, in one line of INFO.
#[cfg(feature = "compat")]
#[test]
fn error_codes_of_scripts_are_counted() {
    let mut node = Node::new();
    for text in ["MY_CODE no", "MY:CODE no", "NOCODE", "no code", "A-B-C d"] {
        let script = format!("return {{err='{text}'}}");
        let reply = node.bytes(&[b"EVAL", script.as_bytes(), b"0"]);
        assert_eq!(reply, format!("-{text}\r\n").into_bytes());
    }
    let errors = fields(&mut node, "errorstats");
    let errors: Vec<_> = errors
        .iter()
        .map(|(code, count)| format!("{code} {count}"))
        .collect();
    let want = [
        "A-B-C count=1",
        "ERR count=1",
        "MY_CODE count=2",
        "no count=1",
    ];
    assert_eq!(errors, want.map(|line| format!("errorstat_{line}")));
}
