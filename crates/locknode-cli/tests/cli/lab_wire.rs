//! What a lab says of clients that are others': it goes by the messages, and claims nothing about what it did not see.

use std::net::SocketAddr;

use rustix::process::Signal;

use crate::program::{Directory, Program, ask, connect, outcome_of, shows, text_of};

/// A lab with these arguments on any free ports, and the addresses of its three nodes.
fn lab(flags: &str) -> (Program, [SocketAddr; 3]) {
    let mut lab = Program::of(&format!("lab --faults --port 0 --nodes 3 {flags}"));
    let addresses = [(); 3].map(|()| lab.address());
    (lab, addresses)
}

/// Sends a command to some nodes and expects the same answer of each.
fn all(nodes: &[SocketAddr], command: &str, want: &str) {
    for node in nodes {
        assert_eq!(ask(&mut connect(*node), command), want, "{command}");
    }
}

/// One program takes a lock on all three nodes, a majority of which forgets it in a crash, and another one takes it there.
fn two_take_it(nodes: [SocketAddr; 3]) {
    all(&nodes, "SET jobs first-token NX PX 60000", "+OK");
    let mut console = connect(nodes[0]);
    assert_eq!(ask(&mut console, "FAULT CRASH NODE 1,2"), "+OK");
    assert_eq!(ask(&mut console, "FAULT RESTART"), "+OK");
    // A script as lock libraries send it.
    let script = "EVAL \"if redis.call('exists',KEYS[1])==0 then redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) \
                  return 1 end return 0\" 1 jobs other-token 60000";
    all(&nodes[..1], script, ":0");
    all(&nodes[1..], script, ":1");
}

#[test]
fn two_programs_that_hold_a_majority_at_once_are_two_holders() {
    let directory = Directory::new("wire");
    let (page, history) = (
        text_of(&directory.path.join("seen.html")),
        text_of(&directory.path.join("seen.jsonl")),
    );
    let files = format!("--timeline {page} --history {history}");
    let (mut lab, nodes) = lab(&format!("--restart-guard off {files}"));
    two_take_it(nodes);
    lab.signal(Signal::INT);
    let verdict = lab.line_with("TWO HELD THE LOCK `jobs` AT THE SAME TIME: ");
    shows(&verdict, &["token first-token", "token other-token"]);
    assert_eq!(lab.wait().code(), Some(1));
    let page = std::fs::read_to_string(page).expect("the picture");
    shows(&page, &["TWO HELD THE LOCK", "crash node 1 kill"]);
    let history = std::fs::read_to_string(history).expect("the history");
    for (event, count) in [("acquired", 2), ("granted", 5), ("fault", 4)] {
        let event = format!("\"event\":\"{event}\"");
        let found = history.matches(&event).count();
        assert_eq!(found, count, "{event} in {history}");
    }
}

#[test]
fn a_release_is_seen_and_the_next_holder_is_good_news() {
    let (mut lab, nodes) = lab("");
    for token in ["one", "other"] {
        all(&nodes, &format!("SET jobs {token} NX PX 60000"), "+OK");
        all(&nodes, &format!("DELEX jobs IFEQ {token}"), ":1");
    }
    lab.signal(Signal::INT);
    lab.line_with("a majority of the 3 nodes granted the same token 2 times");
    lab.line_with("No lock was seen to have two holders at the same time.");
    assert_eq!(lab.wait().code(), Some(0));
}

/// Faults and no clients.
const CRASHES: &str = "\
locknode-scenario 1
nodes 3
clients 1
guard off
delay 0s 0s
run 200ms
at 50ms do crash node 0 kill
at 50ms do restart node 0
";

#[test]
fn a_script_without_clients_claims_nothing_about_what_was_not_watched() {
    let directory = Directory::new("wire-script");
    let script = directory.file("crashes.scenario", CRASHES);
    let page = text_of(&directory.path.join("page.html"));
    let files = format!("--script {script} --timeline {page}");
    let (code, out, err) = outcome_of(&format!("lab --port 0 {files}"));
    assert_eq!((code, &*err), (Some(0), ""), "{out}");
    assert!(out.contains("\nNothing was watched: "), "{out}");
    for claim in ["this time", "At no moment", "acquired"] {
        assert!(!out.contains(claim), "{claim} in {out}");
    }
}

#[test]
fn a_script_judges_the_programs_that_used_its_ports() {
    let directory = Directory::new("wire-script-programs");
    let script = directory.file("crashes.scenario", &CRASHES.replace("200ms", "5m"));
    let page = text_of(&directory.path.join("page.html"));
    let files = format!("--script {script} --timeline {page}");
    let mut lab = Program::of(&format!("lab --faults --port 0 {files}"));
    let line = lab.line_with("client 0: ");
    let (_, addresses) = line.split_once("client 0: ").expect("the text just found");
    let addresses = addresses
        .split(',')
        .map(|it| it.parse().expect("an address"));
    let addresses: Vec<SocketAddr> = addresses.collect();
    lab.line_with("node 0 starts again");
    two_take_it(addresses.try_into().expect("three of them"));
    lab.signal(Signal::INT);
    lab.line_with("TWO HELD THE LOCK `jobs` AT THE SAME TIME: ");
    assert_eq!(lab.wait().code(), Some(1));
}

#[test]
fn pictures_and_histories_count_the_same_messages() {
    let directory = Directory::new("wire-count");
    let (page, history) = (
        text_of(&directory.path.join("page.html")),
        text_of(&directory.path.join("all.jsonl")),
    );
    let files = format!("--timeline {page} --history {history}");
    let line = format!("lab --chaos 7 --for 2s --ttl 300ms {files}");
    let (code, out, err) = outcome_of(&line);
    assert_eq!((code, &*err), (Some(0), ""), "{out}");
    let (page, history) = (
        std::fs::read_to_string(page).expect("the picture"),
        std::fs::read_to_string(history).expect("the history"),
    );
    let head = history.lines().next().expect("a head");
    shows(head, &["\"left_out_messages\":0"]);
    let count = history.matches("{\"event\":\"message\"").count();
    assert!(count > 400, "{count}");
    assert!(!page.contains("messages were not kept"));
    let told = format!("The {count} messages are too many to be arrows here");
    shows(&page, &[&told]);
}
