//! `locknode lab --faults`: what goes wrong when a client says FAULT, and that nothing does without the flag.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::program::{Directory, Program, ask, command, connect, outcome, run, text_of};

/// A lab in which things can go wrong, and the addresses of its nodes.
fn lab(nodes: usize, more: &[&str]) -> (Program, Vec<SocketAddr>) {
    let count = nodes.to_string();
    let mut args = vec!["lab", "--faults", "--port", "0", "--nodes", &count];
    args.extend(more);
    let mut lab = Program::start(command(&args));
    let addresses = (0..nodes).map(|_| lab.address()).collect();
    (lab, addresses)
}

/// Sends a command whose reply is a list, and returns its lines.
fn list(stream: &mut TcpStream, command: &str) -> Vec<String> {
    let head = ask(stream, command);
    let count = head.strip_prefix('*').and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or_else(|| panic!("{command}: no list but {head}"));
    (0..count).map(|_| line(stream)).collect()
}

/// The next line that comes without having been asked for.
fn line(stream: &mut TcpStream) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).expect("a line");
        line.extend_from_slice(&byte);
    }
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

/// All that comes until the connection ends.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => rest,
    }
}

fn is_refused(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn without_the_flag_there_is_no_such_command() {
    let mut lab = Program::start(command(["lab", "--nodes", "1", "--port", "0"]));
    let mut client = connect(lab.address());
    let reply = ask(&mut client, "FAULT HELP");
    assert!(reply.starts_with("-ERR unknown command"), "{reply}");
}

#[test]
fn help_and_status_tell_what_there_is() {
    let (_lab, nodes) = lab(3, &[]);
    let mut client = connect(nodes[1]);
    for help in ["FAULT", "fault help"] {
        let help = list(&mut client, help);
        assert!(
            help.iter()
                .any(|line| line.contains("FAULT DROP REPLIES 2")),
            "{help:?}"
        );
    }
    assert_eq!(ask(&mut client, "FAULT CRASH NODE 2"), "+OK");
    let status = list(&mut client, "FAULT STATUS");
    let of = |node: usize, state: &str| format!("+{node}     {}  {state} ", nodes[node]);
    assert!(status[0].starts_with("+node  address"), "{status:?}");
    assert!(status[2].starts_with(&of(1, "serving")), "{status:?}");
    assert!(status[3].starts_with(&of(2, "down")), "{status:?}");
    let want = format!("node 2 is killed (port {})", nodes[2].port());
    assert!(status[4].ends_with(&want), "{status:?}");
}

#[test]
fn a_node_that_crashed_is_gone_and_comes_back_into_its_quarantine() {
    let (_lab, nodes) = lab(3, &["--max-ttl", "30s"]);
    let mut client = connect(nodes[0]);
    let mut other = connect(nodes[1]);
    assert_eq!(ask(&mut other, "SET k token NX PX 30000"), "+OK");
    let port = nodes[1].port();
    assert_eq!(ask(&mut client, &format!("FAULT CRASH NODE {port}")), "+OK");
    assert_eq!(rest(&mut other), b"");
    assert!(is_refused(nodes[1]));
    let restart = format!("FAULT RESTART NODE {port}");
    assert_eq!(ask(&mut client, &restart), "+OK");
    let reply = ask(&mut connect(nodes[1]), "SET k token NX PX 30000");
    assert!(reply.starts_with("-LOADING"), "{reply}");
}

#[test]
fn without_restart_guard_it_has_forgotten_everything() {
    let (_lab, nodes) = lab(3, &["--restart-guard", "off"]);
    let mut client = connect(nodes[0]);
    assert_eq!(ask(&mut connect(nodes[1]), "SET k one NX PX 30000"), "+OK");
    assert_eq!(ask(&mut client, "FAULT CRASH NODE 1"), "+OK");
    assert_eq!(ask(&mut client, "FAULT RESTART NODE 1"), "+OK");
    assert_eq!(
        ask(&mut connect(nodes[1]), "SET k other NX PX 30000"),
        "+OK"
    );
}

#[test]
fn who_crashes_the_node_it_asks_is_told_so_before_the_connection_ends() {
    let (_lab, nodes) = lab(2, &[]);
    let mut client = connect(nodes[0]);
    assert_eq!(ask(&mut client, "FAULT CRASH FOR 1m"), "+OK");
    assert_eq!(rest(&mut client), b"");
    // One command is done after the other.
    list(&mut connect(nodes[1]), "FAULT STATUS");
    assert!(is_refused(nodes[0]));
}

#[test]
fn the_last_node_does_not_crash_for_good() {
    let (_lab, nodes) = lab(2, &[]);
    let mut client = connect(nodes[0]);
    let reply = ask(&mut client, "FAULT CRASH NODE ALL");
    assert!(reply.contains("no node would be left"), "{reply}");
    assert_eq!(ask(&mut client, "FAULT CRASH NODE 1"), "+OK");
    let reply = ask(&mut client, "FAULT CRASH");
    assert!(reply.contains("no node would be left"), "{reply}");
    assert_eq!(ask(&mut client, "FAULT CALM"), "+OK");
    connect(nodes[1]);
}

#[test]
fn a_crash_for_a_time_ends_by_itself() {
    let (mut lab, nodes) = lab(2, &[]);
    assert_eq!(
        ask(&mut connect(nodes[0]), "FAULT CRASH NODE 1 FOR 50ms"),
        "+OK"
    );
    lab.line_with("node 1 is killed");
    lab.line_with("node 1 starts again");
    connect(nodes[1]);
}

#[test]
fn a_lost_reply_was_done_and_never_arrives() {
    let (mut lab, nodes) = lab(1, &["--clients", "2"]);
    let line = lab.line_with("client 1: ");
    let (_, address) = line.split_once("client 1: ").expect("the text just found");
    let mut other = connect(address.parse().expect("an address"));
    let mut client = connect(nodes[0]);
    assert_eq!(ask(&mut other, "FAULT DROP CLIENT 0 REPLIES 1"), "+OK");
    client
        .write_all(b"SET k token NX PX 30000\r\n")
        .expect("sent");
    // The other's link loses nothing.
    while ask(&mut other, "EXISTS k") != ":1" {}
    assert_eq!(ask(&mut other, "FAULT RESET CLIENT 0"), "+OK");
    assert_eq!(rest(&mut client), b"");
}

#[test]
fn whoever_cut_a_link_can_heal_it_through_the_same_connection() {
    let (_lab, nodes) = lab(2, &[]);
    let mut client = connect(nodes[0]);
    assert_eq!(ask(&mut client, "FAULT CUT"), "+OK");
    client.write_all(b"ECHO late\r\n").expect("sent");
    let status = list(&mut client, "FAULT STATUS");
    assert!(
        status.iter().any(|line| line.contains("cut: between")),
        "{status:?}"
    );
    client.write_all(b"FAULT HEAL\r\n").expect("sent");
    let replies = [line(&mut client), line(&mut client), line(&mut client)];
    assert_eq!(replies, ["$4", "late", "+OK"]);
    assert_eq!(ask(&mut connect(nodes[1]), "PING"), "+PONG");
}

#[test]
fn answers_come_in_the_order_of_the_questions() {
    let (_lab, nodes) = lab(1, &[]);
    let mut client = connect(nodes[0]);
    let questions = "PING\r\nFAULT DELAY 5ms\r\nECHO 2\r\nFAULT nonsense\r\nPING\r\n";
    for _ in 0..20 {
        client.write_all(questions.as_bytes()).expect("sent");
    }
    client.shutdown(std::net::Shutdown::Write).expect("open");
    let replies = String::from_utf8(rest(&mut client)).expect("text");
    let of = |start: &str| {
        replies
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    assert_eq!(
        (of("+PONG"), of("+OK"), of("$1"), of("-ERR FAULT")),
        (40, 20, 20, 20)
    );
}

#[test]
fn a_pause_delays_what_is_asked_meanwhile() {
    let (_lab, nodes) = lab(1, &[]);
    let mut client = connect(nodes[0]);
    let pause = Duration::from_secs(2);
    let start = Instant::now();
    assert_eq!(ask(&mut client, "FAULT PAUSE 2s"), "+OK");
    assert!(start.elapsed() < pause, "the answer does not wait");
    assert_eq!(ask(&mut client, "PING"), "+PONG");
    assert!(start.elapsed() >= pause);
}

#[test]
fn commands_that_make_no_sense_are_refused_and_harm_nothing() {
    let (_lab, nodes) = lab(2, &[]);
    let mut client = connect(nodes[0]);
    for (command, expected) in [
        ("FAULT explode", "expected CRASH"),
        ("FAULT CRASH NODE 9", "no node 9"),
        ("FAULT CRASH NODE x", "expected numbers from 0 to 15"),
        ("FAULT CRASH CLIENT 0", "does not play in a run"),
        ("FAULT CUT CLIENT 5", "none of these links"),
        ("FAULT DISK full", "cannot be done here"),
        ("FAULT DELAY soon", "expected a time"),
        ("FAULT DROP REPLIES 1 2", "nothing more after DROP"),
        ("FAULT \"\\x00\\r\\n\"", "expected CRASH"),
    ] {
        let reply = ask(&mut client, command);
        assert!(
            reply.starts_with("-ERR FAULT: ") && reply.contains(expected),
            "{command}: {reply}"
        );
    }
    let long = format!("FAULT {}", "x ".repeat(1000));
    assert!(ask(&mut client, &long).contains("at most 16 words"));
    for node in nodes {
        assert_eq!(ask(&mut connect(node), "PING"), "+PONG");
    }
}

#[test]
fn flags_that_need_each_other_say_so() {
    for (args, expected) in [
        (&["lab", "--clients", "2"][..], "--faults"),
        (&["lab", "--for", "5s"], "--chaos"),
        (&["lab", "--timeline", "x.html"], "--faults"),
        (&["lab", "--history", "x.jsonl"], "--faults"),
        (&["lab", "--chaos", "1", "--max-ttl", "5s"], "--max-ttl"),
        (&["lab", "--faults", "--ttl", "5s"], "--chaos"),
        (&["lab", "--faults", "--threads", "2"], "--threads"),
        (&["lab", "--faults", "--nodes", "17"], "16"),
        (&["lab", "--chaos", "1", "--script", "x"], "--script"),
        (
            &["lab", "--chaos", "1", "--for", "1h"],
            "must be within 1s and 10m",
        ),
        (&["lab", "--chaos", "1", "--clients", "17"], "16"),
        (
            &["lab", "--faults", "--port", "65535", "--nodes", "3"],
            "65535",
        ),
    ] {
        let (code, _, err) = outcome(&run(args));
        assert_eq!(code, Some(64), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

#[test]
fn a_port_that_somebody_has_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let (code, _, err) = outcome(&run(["lab", "--faults", "--nodes", "1", "--port", &port]));
    assert_eq!(code, Some(69), "{err}");
    assert!(err.contains(&port), "{err}");
}

#[test]
fn a_fault_of_all_clients_is_one_of_those_that_there_are() {
    let (_lab, nodes) = lab(1, &["--clients", "2"]);
    let reply = ask(&mut connect(nodes[0]), "FAULT CRASH CLIENT ALL");
    assert!(reply.contains("`crash client 0`"), "{reply}");
}

#[test]
fn what_the_lab_cannot_measure_or_does_not_have_is_not_played() {
    let directory = Directory::new("not-played");
    for (line, expected) in [
        ("at 0s do rate client 0 -500000ppm", "sim --replay "),
        (
            "at 1s client 1 lock k ttl 2s\nat 0s do slew client 1 +80000ppm",
            "clock of the recorder",
        ),
        ("at 0s do rate client 9 +5ppm", "no client 9"),
        ("replica 10ms", "`replica`"),
        (
            "at 1s client 0 lock k ttl 2s tries 1 hold 1s renew every 500ms then release",
            "renews by itself",
        ),
    ] {
        let text = format!("locknode-scenario 1\n{line}\n");
        let script = directory.file("refused.scenario", &text);
        let page = directory.path.join("refused.html");
        let flags = ["--port", "0", "--timeline", &text_of(&page)];
        let (code, _, err) = outcome(&run([&["lab", "--script", &script], &flags[..]].concat()));
        assert_eq!(code, Some(64), "{line}: {err}");
        assert!(err.contains(expected), "{line}: {err}");
        assert!(!page.exists(), "{line}: nothing was played");
    }
}

#[test]
fn files_that_cannot_be_written_end_the_run_before_it_begins() {
    let directory = Directory::new("no-files");
    let nowhere = text_of(&directory.path.join("no/such/directory/file"));
    let page = text_of(&directory.path.join("page.html"));
    for (timeline, history, flag) in [
        (&nowhere, &page, "--timeline"),
        (&page, &nowhere, "--history"),
    ] {
        // Longer than the test waits.
        let lab = ["lab", "--chaos", "1", "--for", "10m"];
        let files = ["--timeline", timeline, "--history", history];
        let (code, out, err) = outcome(&run([&lab[..], &files].concat()));
        assert_eq!((code, &*out), (Some(69), ""), "{err}");
        assert!(err.contains(&nowhere) && err.contains(flag), "{err}");
    }
}

/// A majority forgets the lock that a client holds, and another one takes it.
#[cfg(target_os = "linux")]
const FORGETFUL: &str = "\
locknode-scenario 1
nodes 1
clients 2
guard off
delay 0s 0s
run 800ms
at 0s client 0 lock k ttl 20s then release
at 300ms do crash node 0 kill
at 300ms do restart node 0
at 350ms client 1 lock k ttl 20s tries 3 then release
";

/// A file that is there and always full.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_written_in_the_end_does_not_hide_the_verdict() {
    let directory = Directory::new("full");
    let script = directory.file("forgetful.scenario", FORGETFUL);
    for (guard, want) in [("off", 1), ("on", 69)] {
        let lab = ["lab", "--script", &script, "--port", "0"];
        let flags = ["--restart-guard", guard, "--timeline", "/dev/full"];
        let (code, out, err) = outcome(&run([&lab[..], &flags].concat()));
        assert_eq!(code, Some(want), "{out}{err}");
        assert!(
            err.starts_with("locknode: cannot write the timeline to /dev/full"),
            "{err}"
        );
    }
}

#[test]
fn a_picture_without_restart_guard_has_a_name_of_its_own() {
    let directory = Directory::new("names");
    for guard in ["on", "off"] {
        let lab = ["lab", "--chaos", "2", "--for", "1s", "--ttl", "100ms"];
        let mut lab = command([&lab[..], &["--restart-guard", guard]].concat());
        lab.current_dir(&directory.path);
        lab.output().expect("the program starts");
    }
    for name in ["locknode-chaos-2.html", "locknode-chaos-2-guard-off.html"] {
        assert!(directory.path.join(name).is_file(), "{name}");
    }
}

#[test]
fn the_highest_port_is_one() {
    // Others may have it: that is another error.
    let mut lab = Program::start(command([
        "lab", "--faults", "--nodes", "1", "--port", "65535",
    ]));
    let line = lab.line_with("65535");
    assert!(!line.contains("beyond"), "{line}");
}
