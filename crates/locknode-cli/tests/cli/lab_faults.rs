//! `locknode lab --faults`: what goes wrong when a client says FAULT, and that nothing does without the flag.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::program::{
    Directory, Program, ask, command, connect, outcome_of, shows, text_of, words,
};

/// A lab in which things can go wrong, a connection to its first node, and the addresses of all.
fn lab(nodes: usize, more: &str) -> (Program, TcpStream, Vec<SocketAddr>) {
    let mut lab = Program::of(&format!("lab --faults --port 0 --nodes {nodes} {more}"));
    let addresses: Vec<SocketAddr> = (0..nodes).map(|_| lab.address()).collect();
    (lab, connect(addresses[0]), addresses)
}

/// Sends commands, each of which is carried out.
fn does(stream: &mut TcpStream, commands: &[&str]) {
    for command in commands {
        assert_eq!(ask(stream, command), "+OK", "{command}");
    }
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

fn sends(stream: &mut TcpStream, lines: &str) {
    stream.write_all(lines.as_bytes()).expect("sent");
}

fn is_refused(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn without_the_flag_there_is_no_such_command() {
    let mut lab = Program::of("lab --nodes 1 --port 0");
    let mut client = connect(lab.address());
    let reply = ask(&mut client, "FAULT HELP");
    assert!(reply.starts_with("-ERR unknown command"), "{reply}");
}

#[test]
fn help_and_status_tell_what_there_is() {
    let (_lab, _, nodes) = lab(3, "");
    let mut client = connect(nodes[1]);
    for help in ["FAULT", "fault help"] {
        let help = list(&mut client, help).join("\n");
        shows(&help, &["FAULT DROP REPLIES 2"]);
    }
    does(&mut client, &["FAULT CRASH NODE 2"]);
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
    let (_lab, mut client, nodes) = lab(3, "--max-ttl 30s");
    let mut other = connect(nodes[1]);
    does(&mut other, &["SET k token NX PX 30000"]);
    let port = nodes[1].port();
    does(&mut client, &[&format!("FAULT CRASH NODE {port}")]);
    assert_eq!(rest(&mut other), b"");
    assert!(is_refused(nodes[1]));
    does(&mut client, &[&format!("FAULT RESTART NODE {port}")]);
    let reply = ask(&mut connect(nodes[1]), "SET k token NX PX 30000");
    assert!(reply.starts_with("-LOADING"), "{reply}");
}

#[test]
fn without_restart_guard_it_has_forgotten_everything() {
    let (_lab, mut client, nodes) = lab(3, "--restart-guard off");
    does(&mut connect(nodes[1]), &["SET k one NX PX 30000"]);
    does(&mut client, &["FAULT CRASH NODE 1", "FAULT RESTART NODE 1"]);
    does(&mut connect(nodes[1]), &["SET k other NX PX 30000"]);
}

#[test]
fn who_crashes_the_node_it_asks_is_told_so_before_the_connection_ends() {
    let (_lab, mut client, nodes) = lab(2, "");
    does(&mut client, &["FAULT CRASH FOR 1m"]);
    assert_eq!(rest(&mut client), b"");
    // One command is done after the other.
    list(&mut connect(nodes[1]), "FAULT STATUS");
    assert!(is_refused(nodes[0]));
}

#[test]
fn the_last_node_does_not_crash_for_good() {
    let (_lab, mut client, nodes) = lab(2, "");
    let reply = ask(&mut client, "FAULT CRASH NODE ALL");
    assert!(reply.contains("no node would be left"), "{reply}");
    does(&mut client, &["FAULT CRASH NODE 1"]);
    let reply = ask(&mut client, "FAULT CRASH");
    assert!(reply.contains("no node would be left"), "{reply}");
    does(&mut client, &["FAULT CALM"]);
    connect(nodes[1]);
}

#[test]
fn a_crash_for_a_time_ends_by_itself() {
    let (mut lab, mut client, nodes) = lab(2, "");
    does(&mut client, &["FAULT CRASH NODE 1 FOR 50ms"]);
    lab.line_with("node 1 is killed");
    lab.line_with("node 1 starts again");
    // The line comes before the node listens.
    while is_refused(nodes[1]) {}
}

#[test]
fn a_lost_reply_was_done_and_never_arrives() {
    let (mut lab, mut client, _) = lab(1, "--clients 2");
    let line = lab.line_with("client 1: ");
    let (_, address) = line.split_once("client 1: ").expect("the text just found");
    let mut other = connect(address.parse().expect("an address"));
    does(&mut other, &["FAULT DROP CLIENT 0 REPLIES 1"]);
    sends(&mut client, "SET k token NX PX 30000\r\n");
    // The other's link loses nothing.
    while ask(&mut other, "EXISTS k") != ":1" {}
    does(&mut other, &["FAULT RESET CLIENT 0"]);
    assert_eq!(rest(&mut client), b"");
}

#[test]
fn whoever_cut_a_link_can_heal_it_through_the_same_connection() {
    let (_lab, mut client, nodes) = lab(2, "");
    does(&mut client, &["FAULT CUT"]);
    sends(&mut client, "ECHO late\r\n");
    let status = list(&mut client, "FAULT STATUS").join("\n");
    shows(&status, &["cut: between"]);
    sends(&mut client, "FAULT HEAL\r\n");
    let replies = [line(&mut client), line(&mut client), line(&mut client)];
    assert_eq!(replies, ["$4", "late", "+OK"]);
    assert_eq!(ask(&mut connect(nodes[1]), "PING"), "+PONG");
}

#[test]
fn answers_come_in_the_order_of_the_questions() {
    let (_lab, mut client, _) = lab(1, "");
    for _ in 0..20 {
        sends(&mut client, "PING\r\nFAULT DELAY 5ms\r\nECHO 2\r\n");
        sends(&mut client, "FAULT nonsense\r\nPING\r\n");
    }
    client.shutdown(std::net::Shutdown::Write).expect("open");
    let replies = String::from_utf8(rest(&mut client)).expect("text");
    let of = |start: &str| {
        let lines = replies.lines();
        lines.filter(|line| line.starts_with(start)).count()
    };
    let counts = ["+PONG", "+OK", "$1", "-ERR FAULT"].map(of);
    assert_eq!(counts, [40, 20, 20, 20]);
}

#[test]
fn a_pause_delays_what_is_asked_meanwhile() {
    let (_lab, mut client, _) = lab(1, "");
    let pause = Duration::from_secs(2);
    let start = Instant::now();
    does(&mut client, &["FAULT PAUSE 2s"]);
    assert!(start.elapsed() < pause, "the answer does not wait");
    assert_eq!(ask(&mut client, "PING"), "+PONG");
    assert!(start.elapsed() >= pause);
}

#[test]
fn commands_that_make_no_sense_are_refused_and_harm_nothing() {
    let (_lab, mut client, nodes) = lab(2, "");
    let long = format!("FAULT {}", "x ".repeat(1000));
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
        (&long, "at most 16 words"),
    ] {
        let reply = ask(&mut client, command);
        shows(&reply, &["-ERR FAULT: ", expected]);
    }
    for node in nodes {
        assert_eq!(ask(&mut connect(node), "PING"), "+PONG");
    }
    // All clients are those that there are.
    let (_lab, mut client, _) = lab(1, "--clients 2");
    let reply = ask(&mut client, "FAULT CRASH CLIENT ALL");
    shows(&reply, &["-ERR FAULT: ", "`crash client 0`"]);
}

#[test]
fn flags_that_need_each_other_say_so() {
    for (flags, expected) in [
        ("--clients 2", "--faults"),
        ("--for 5s", "--chaos"),
        ("--timeline x.html", "--faults"),
        ("--history x.jsonl", "--faults"),
        ("--chaos 1 --max-ttl 5s", "--max-ttl"),
        ("--faults --ttl 5s", "--chaos"),
        ("--faults --threads 2", "--threads"),
        ("--faults --nodes 17", "16"),
        ("--chaos 1 --script x", "--script"),
        ("--chaos 1 --for 1h", "must be within 1s and 10m"),
        ("--chaos 1 --clients 17", "16"),
        ("--faults --port 65535 --nodes 3", "65535"),
    ] {
        let (code, _, err) = outcome_of(&format!("lab {flags}"));
        assert_eq!(code, Some(64), "{flags}: {err}");
        assert!(err.contains(expected), "{flags}: {err}");
    }
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
        let files = format!("--script {script} --timeline {}", text_of(&page));
        let (code, _, err) = outcome_of(&format!("lab --port 0 {files}"));
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
        let files = format!("--timeline {timeline} --history {history}");
        let (code, out, err) = outcome_of(&format!("lab --chaos 1 --for 10m {files}"));
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
        let flags = format!("--restart-guard {guard} --timeline /dev/full");
        let (code, out, err) = outcome_of(&format!("lab --port 0 --script {script} {flags}"));
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
        let line = format!("lab --chaos 2 --for 1s --ttl 100ms --restart-guard {guard}");
        let mut lab = command(words(&line));
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
    let mut lab = Program::of("lab --faults --nodes 1 --port 65535");
    let line = lab.line_with("65535");
    assert!(!line.contains("beyond"), "{line}");
}
