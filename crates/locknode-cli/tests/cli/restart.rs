//! What a node does after a stop, a crash and a first start, and directories that it refuses.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::program::{Directory, Program, ask, connect, ends, outcome, run, serve, shows, text_of};

/// Runs `serve` with these flags to an end with that exit code: what it says.
#[track_caller]
pub(crate) fn refused(code: i32, flags: &str) -> String {
    let (out, err) = ends(code, format!("serve --port 0 {flags}").split_whitespace());
    assert_eq!(out, "", "{flags}");
    err
}

/// A directory for a node, and the flag that names it.
pub(crate) fn node_directory(name: &str) -> (Directory, String) {
    let directory = Directory::new(name);
    let flag = format!("--dir {}", directory.path_of("node"));
    (directory, flag)
}

/// Acquires a lock for that long, for ever without a number of milliseconds.
#[track_caller]
pub(crate) fn acquire(client: &mut TcpStream, key: &str, ttl_ms: Option<u64>) {
    let ttl = ttl_ms.map_or(String::new(), |ttl_ms| format!(" PX {ttl_ms}"));
    assert_eq!(ask(client, &format!("SET {key} token NX{ttl}")), "+OK");
}

/// The files of a directory, names and content, without the one that is locked.
pub(crate) fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).expect("a directory").map(|entry| {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap_or_default())
    });
    entries.filter(|(name, _)| name != "lock").collect()
}

/// [G1] [G2] [G3]
#[test]
fn a_node_that_knows_nothing_waits_and_says_so() {
    let mut node = serve("");
    let address = node.address();
    let line = node.line_with("refusing locks for 60.");
    shows(&line, &["without a data directory"]);
    node.line_with("--first-start");
    let mut client = connect(address);
    for request in ["PING", "SET k token NX PX 1000", "GET k"] {
        let reply = ask(&mut client, request);
        assert!(
            reply.starts_with("-LOADING locknode is in its restart quarantine, "),
            "{request}: {reply}"
        );
    }
    assert!(ask(&mut client, "INFO").starts_with('$'));
    node.signal(Signal::TERM);
    drop(client);
    node.ends(0);
}

/// [G3]
#[test]
fn the_end_of_the_quarantine_is_told_and_locks_are_granted() {
    let mut node = serve("--max-ttl 100ms");
    let address = node.address();
    node.line_with("refusing locks for 0.");
    node.line_with("the quarantine is over");
    let mut client = connect(address);
    acquire(&mut client, "k", Some(50));
    let reply = ask(&mut client, "SET j token NX PX 101");
    assert!(reply.starts_with('-'), "{reply}");
}

/// [G3]
#[test]
fn a_node_that_refuses_listens_when_its_quarantine_is_over() {
    let mut node = serve("--quarantine refuse --max-ttl 100ms");
    node.line_with("refusing locks for 0.");
    node.line_with("not listening");
    node.line_with("the quarantine is over");
    assert_eq!(ask(&mut connect(node.address()), "PING"), "+PONG");

    let (_directory, dir) = node_directory("refuse");
    let mut node = serve(&format!("--quarantine refuse {dir}"));
    node.line_with("not listening");
    node.signal(Signal::TERM);
    node.line_with("SIGTERM: stopping in quarantine");
    node.ends(0);
    serve(&dir).line_with("refusing locks for");
}

/// [G4] [G10] [S5]
#[test]
fn a_clean_stop_keeps_every_lock() {
    let (_directory, dir) = node_directory("clean-stop");
    let mut node = serve(&format!("{dir} --first-start"));
    let address = node.address();
    node.line_with("run 1, durability long");
    node.line_with("serving, 0 locks");
    let mut client = connect(address);
    for (key, ttl_ms) in [
        ("short", Some(30_000)),
        ("long", Some(3_600_000)),
        ("eternal", None),
    ] {
        acquire(&mut client, key, ttl_ms);
    }
    drop(client);
    node.signal(Signal::TERM);
    node.line_with("locks written to ");
    node.ends(0);

    let mut node = serve(&dir);
    let address = node.address();
    node.line_with("run 2, durability long");
    node.line_with("serving, 3 locks: the last run stopped cleanly");
    let mut client = connect(address);
    for key in ["short", "long", "eternal"] {
        let again = format!("SET {key} other NX PX 1000");
        assert_eq!(ask(&mut client, &again), "$-1");
    }
}

/// [G6] [L1] [L2]
#[test]
fn after_a_crash_long_locks_are_there_and_short_ones_are_waited_for() {
    let (_directory, dir) = node_directory("crash");
    let mut node = serve(&format!("{dir} --first-start"));
    let mut client = connect(node.address());
    acquire(&mut client, "long", Some(3_600_000));
    acquire(&mut client, "short", Some(100));
    node.end(Signal::KILL);

    // A tenth of a second, a second of slack and what is added for drift.
    let mut node = serve(&dir);
    let address = node.address();
    node.line_with("refusing locks for ");
    node.line_with("the quarantine is over");
    let mut client = connect(address);
    assert_eq!(ask(&mut client, "SET short other NX PX 100"), "+OK");
    assert_eq!(ask(&mut client, "SET long other NX PX 100"), "$-1");
}

/// [G10]
#[test]
fn shutdown_nosave_leaves_no_snapshot() {
    let (_directory, dir) = node_directory("nosave");
    let mut node = serve(&format!("{dir} --first-start"));
    let mut client = connect(node.address());
    acquire(&mut client, "short", Some(30_000));
    client.write_all(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    node.line_with("no locks written to ");
    node.ends(0);
    serve(&dir).line_with("refusing locks for ");
}

/// [G15]
#[test]
fn without_the_guard_nothing_is_waited_for_and_nothing_limited() {
    let mut node = serve("--restart-guard off");
    let address = node.address();
    node.line_with("the restart guard is off");
    acquire(&mut connect(address), "eternal", None);
}

/// [L1]
#[test]
fn with_durability_always_a_crash_costs_no_wait() {
    let (_directory, dir) = node_directory("always");
    let flags = format!("{dir} --durability always");
    let mut node = serve(&format!("{flags} --first-start"));
    acquire(&mut connect(node.address()), "short", Some(30_000));
    node.end(Signal::KILL);
    let mut node = serve(&flags);
    let address = node.address();
    node.line_with("serving, 1 lock: the last run crashed, and all its locks");
    let again = ask(&mut connect(address), "SET short other NX PX 1000");
    assert_eq!(again, "$-1");
}

/// [S1]
#[test]
fn a_directory_in_use_names_its_user() {
    let (directory, dir) = node_directory("in-use");
    let path = directory.path_of("node");
    let mut node = serve(&format!("{dir} --first-start"));
    let address = node.address();
    node.line_with("serving");
    let before = files(Path::new(&path));
    let err = refused(69, &dir);
    shows(
        &err,
        &[
            &path,
            "in use by process",
            "a directory of its own",
            "--dir",
        ],
    );
    assert_eq!(files(Path::new(&path)), before);
    assert_eq!(ask(&mut connect(address), "PING"), "+PONG");
}

/// [G4] [S3] [S4]
#[test]
fn directories_that_are_not_right_are_refused_and_left_as_they_were() {
    type Prepare = fn(&Path);
    let rows: &[(&str, Prepare, &[&str])] = &[
        (
            "somebody's files",
            |path| fs::write(path.join("holiday.jpg"), "x").expect("written"),
            &["holiday.jpg", "an empty directory"],
        ),
        (
            "random bytes",
            |path| {
                let mut number = 1_u32;
                let bytes: Vec<u8> = std::iter::repeat_with(|| {
                    number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    number.to_be_bytes()[0]
                })
                .take(8192)
                .collect();
                fs::write(path.join("state"), bytes).expect("written");
            },
            &["state", "empty directory"],
        ),
        (
            "a log without a state",
            |path| fs::write(path.join("log-0000000000000001"), "x").expect("written"),
            &["directory"],
        ),
        (
            "a state that is a directory",
            |path| fs::create_dir(path.join("state")).expect("made"),
            &["state", "not a regular file"],
        ),
    ];
    for (name, prepare, parts) in rows {
        let directory = Directory::new(&format!("refused-{}", name.replace(' ', "-")));
        prepare(&directory.path);
        let before = files(&directory.path);
        let path = text_of(&directory.path);
        for flag in ["", "--first-start"] {
            let line = format!("serve --port 0 --dir {path} {flag}");
            let (code, out, err) = outcome(&run(line.split_whitespace()));
            // That it is no first start may be all there is to say.
            let parts = match code {
                Some(64) => &["state"][..],
                _ => parts,
            };
            assert!(matches!(code, Some(64 | 69)), "{name}: {code:?}: {err}");
            assert_eq!(out, "", "{name}");
            shows(&err, &[parts, &[&path, "--dir"]].concat());
            assert_eq!(files(&directory.path), before, "{name}");
        }
    }
}

/// A directory that a node has left in order, with a lock in it.
fn left_directory(name: &str) -> (Directory, String) {
    let (directory, dir) = node_directory(name);
    let mut node = serve(&format!("{dir} --first-start"));
    acquire(&mut connect(node.address()), "k", Some(3_600_000));
    assert_eq!(node.end(Signal::TERM).code(), Some(0));
    let path = directory.path_of("node");
    (directory, path)
}

/// [L6] [S3] [S4]
#[test]
fn files_of_a_node_that_are_not_right_are_refused_and_left_as_they_were() {
    type Change = fn(&Path);
    let rows: &[(&str, Change, &[&str])] = &[
        (
            "newer",
            |path| change(&path.join("state"), |bytes| as_newer_format(bytes)),
            &["/state: ", "newer"],
        ),
        (
            "both-damaged",
            |path| {
                change(&path.join("state"), |bytes| {
                    bytes[100] ^= 1;
                    bytes[4096 + 100] ^= 1;
                });
            },
            &["/state: ", "restore the file"],
        ),
        (
            "snapshot-missing",
            |path| fs::remove_file(path.join("snapshot-0000000000000001")).expect("removed"),
            &["/snapshot-0000000000000001: ", "restore the file"],
        ),
        (
            "snapshot-damaged",
            |path| {
                change(&path.join("snapshot-0000000000000001"), |bytes| {
                    bytes[140] ^= 1
                })
            },
            &["/snapshot-0000000000000001: ", "restore the file"],
        ),
        (
            "state-missing",
            |path| fs::remove_file(path.join("state")).expect("removed"),
            &["/state: "],
        ),
    ];
    for (name, change, parts) in rows {
        let (_directory, path) = left_directory(name);
        change(Path::new(&path));
        let before = files(Path::new(&path));
        let err = refused(69, &format!("--dir {path}"));
        shows(&err, &[*parts, &[&path]].concat());
        assert_eq!(files(Path::new(&path)), before, "{name}");
    }
}

/// [F4] [S3]
#[test]
fn with_half_of_the_state_damaged_a_node_waits_as_long_as_it_may_have_to() {
    let (_directory, path) = left_directory("half-damaged");
    change(&Path::new(&path).join("state"), |bytes| bytes[100] ^= 1);
    let line = serve(&format!("--dir {path}")).line_with("refusing locks for 60.");
    shows(&line, &["part of the state file is damaged"]);
}

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).expect("readable");
    change(&mut bytes);
    fs::write(file, bytes).expect("writable");
}

/// Both slots as a newer version would write them: a format above all that there are, and a checksum
/// that is right.
fn as_newer_format(bytes: &mut [u8]) {
    for slot in [0, 4096] {
        bytes[slot + 8] += 4;
        let checksum = crc32(&bytes[slot..slot + 508]);
        bytes[slot + 508..slot + 512].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The checksum of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

/// [G4]
#[test]
fn a_first_start_where_there_is_state_is_refused() {
    let (_directory, path) = left_directory("first-start");
    let before = files(Path::new(&path));
    let err = refused(64, &format!("--dir {path} --first-start"));
    shows(&err, &[&path, "first start"]);
    assert_eq!(files(Path::new(&path)), before);
    serve(&format!("--dir {path}")).line_with("the last run stopped cleanly");
}

/// [S1]
#[test]
fn paths_that_cannot_be_a_directory_are_refused() {
    let directory = Directory::new("no-directory");
    let file = directory.file("file", "text");
    for (path, part) in [
        (file.as_str(), "is not a directory"),
        ("/nonexistent/node", "create its parent directory first"),
        ("/proc/node", "/proc/node"),
        ("/sys/node", "/sys/node"),
    ] {
        shows(&refused(69, &format!("--dir {path}")), &[part, path]);
    }
}

/// [G10] A port that is taken does not use up the marker of the clean stop.
#[test]
fn a_taken_port_costs_no_clean_stop() {
    let (_directory, path) = left_directory("taken-port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port();
    for flags in ["", "--quarantine refuse"] {
        let line = format!("serve --dir {path} --port {port} {flags}");
        ends(69, line.split_whitespace());
    }
    serve(&format!("--dir {path}")).line_with("the last run stopped cleanly");
}

/// [G15]
#[test]
fn options_that_contradict_each_other_are_wrong_usage() {
    for (flags, part) in [
        ("--max-ttl 0", "at least 1ms"),
        ("--max-ttl 0s", "at least 1ms"),
        ("--max-ttl 48h", "at most 24h"),
        ("--max-ttl 60", "30s"),
        ("--durability always", "--dir"),
        ("--durability never", "long"),
        ("--restart-guard off --first-start", "leave one of them out"),
        (
            "--restart-guard off --dir /nonexistent",
            "leave one of them out",
        ),
    ] {
        shows(&refused(64, flags), &[part]);
    }
}

/// [G2]
#[cfg(feature = "status")]
#[test]
fn status_tells_a_quarantine_from_a_failure() {
    let mut node = serve("");
    let address = node.address().to_string();
    let ask = ["status", "--timeout", "10s", "--nodes", &address];
    let (out, _) = ends(69, ask);
    let note = format!("{address}: in quarantine, ");
    shows(&out, &[&note, " s left (no directory): "]);
    let (out, _) = ends(69, [&ask[..], &["--json"]].concat());
    let parts = [
        "\"state\":\"quarantine\"",
        "\"reason\":\"no_directory\"",
        "\"wait_ms\":60602",
        "\"durability\":\"none\"",
    ];
    shows(&out, &parts);
}

/// [G2]
#[cfg(feature = "bench")]
#[test]
fn bench_says_that_a_node_is_in_quarantine() {
    let mut node = serve("");
    let address = node.address().to_string();
    let (_, err) = ends(69, ["bench", "--addr", &address, "--duration", "1s"]);
    shows(&err, &["quarantine", "--first-start"]);
}

/// [G14] S16: a disk that takes nothing is reported when it begins, with what to do, and when it is over.
#[test]
fn a_full_disk_is_reported_when_it_begins_and_when_it_is_over() {
    let directory = Directory::new("full");
    let path = directory.path_of("node");
    // The limit lets the state be written, and no segment of the log.
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "trap '' XFSZ; ulimit -S -f 32; exec \"$0\" serve --port 0 --first-start --dir \"$1\"",
        env!("CARGO_BIN_EXE_locknode"),
        &path,
    ]);
    let mut node = Program::start(limited);
    let address = node.address();
    let mut client = connect(address);
    acquire(&mut client, "short", Some(1000));
    // The one that finds it full is not answered.
    client.write_all(b"SET eternal token NX\r\n").expect("sent");
    assert_eq!(client.read(&mut [0; 64]).expect("an end"), 0);
    let line = node.line_with("the disk takes no writes (");
    assert!(line.starts_with("warning: "), "{line}");
    shows(&line, &["free some space"]);
    let mut client = connect(address);
    let reply = ask(&mut client, "SET other token NX");
    assert!(reply.starts_with("-MISCONF "), "{reply}");

    let id = i32::try_from(node.id()).expect("a process id");
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(Pid::from_raw(id), Resource::Fsize, unlimited).expect("room");
    node.line_with("the data directory can be written again");
    acquire(&mut client, "other", None);
    assert_eq!(node.count("the disk takes no writes"), 1);
}
