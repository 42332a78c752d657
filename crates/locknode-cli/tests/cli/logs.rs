//! What a node writes to standard error, and what it never does.

use rustix::process::Signal;

#[cfg(feature = "metrics")]
use crate::monitoring::{get, monitoring_of};
use crate::program::{Program, ask, connect, serve};

/// All lines of a node that is ended.
fn lines_of(mut node: Program) -> Vec<String> {
    assert!(node.end(Signal::TERM).success());
    node.seen().to_vec()
}

#[test]
fn a_log_in_json_has_an_object_on_each_line() {
    let mut node = serve("--first-start --log-format json");
    node.line_with("listening on 127.0.0.1:");
    let lines = lines_of(node);
    assert!(lines.len() > 4, "{lines:#?}");
    for line in &lines {
        let is_one = line.starts_with("{\"time\":") && line.ends_with("\"}");
        assert!(is_one && line.contains(",\"level\":\""), "{line}");
    }
    let warning = ",\"level\":\"warning\",\"message\":\"--first-start counts at every start";
    assert!(
        lines.iter().any(|line| line.contains(warning)),
        "{lines:#?}"
    );
}

#[test]
fn the_level_is_changed_while_the_node_runs() {
    let mut node = serve("--first-start --loglevel debug");
    let mut client = connect(node.address());
    node.line_with("debug: threads 1");
    assert_eq!(ask(&mut client, "CONFIG SET loglevel WARNING"), "+OK");
    drop(client);
    let lines = lines_of(node);
    assert!(
        !lines.iter().any(|line| line.contains("SIGTERM")),
        "{lines:#?}"
    );
}

/// Passwords, tokens, keys and names of clients are nowhere that others look.
#[cfg(feature = "metrics")]
#[test]
fn no_secret_is_in_logs_info_or_metrics() {
    let mut node = serve("--first-start --metrics-bind 0 --loglevel debug --requirepass geheim");
    let monitoring = monitoring_of(&mut node);
    let mut client = connect(node.address());
    for request in [
        "AUTH wrong-geheim",
        "HELLO 2 AUTH default wrong-geheim",
        "AUTH geheim",
        "CLIENT SETNAME geheim-name",
        "CONFIG SET requirepass geheim2",
        "CONFIG SET requirepass geheim",
        "SET geheim-key geheim-token NX PX 60000",
        "SET geheim-key geheim-token NX PX 60000",
        "geheim-command \"a\\nwarning: b\"",
    ] {
        ask(&mut client, request);
    }
    let mut text = |request: &str| {
        let len: usize = ask(&mut client, request)[1..].parse().expect("a length");
        let mut text = vec![0; len + 2];
        std::io::Read::read_exact(&mut client, &mut text).expect("the text");
        String::from_utf8_lossy(&text).into_owned()
    };
    let info = text("INFO everything");
    let (_, metrics) = get(monitoring, "/metrics");
    drop(client);
    let lines = lines_of(node);
    for shown in [&info, &metrics, &lines.join("\n")] {
        assert!(shown.len() > 100 && !shown.contains("geheim"), "{shown}");
    }
}
