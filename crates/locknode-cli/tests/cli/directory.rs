//! A node's data directory: lost, somebody else's, full, damaged, taken by another process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use rustix::process::Signal;

use crate::program::{Directory, Program, ask, command, connect, shows, text_of};
use crate::restart::{refused, serve};

/// [G7] Two time namespaces, one after the other, have the same number and clocks of their own.
#[cfg(target_os = "linux")]
#[test]
fn a_crash_in_a_time_namespace_is_waited_for_by_the_ttl() {
    let within = |boottime: &str, flags: &[&str]| {
        let node = command([&["serve", "--port", "0"], flags].concat());
        let mut unshare = std::process::Command::new("unshare");
        unshare
            .args(["--time", "--boottime", boottime, "--monotonic", boottime])
            .arg(node.get_program())
            .args(node.get_args());
        unshare
    };
    let probe = std::process::Command::new("unshare")
        .args(["--time", "--boottime", "1", "true"])
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped: this user may not make a time namespace");
        return;
    }
    let directory = Directory::new("time-namespace");
    let path = text_of(&directory.path.join("node"));
    let mut node = Program::start(within("1000", &["--dir", &path, "--first-start"]));
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET short token NX PX 30000"), "+OK");
    assert_eq!(ask(&mut client, "SET long token NX PX 100000"), "+OK");
    node.signal(Signal::KILL);
    node.wait();
    let mut node = Program::start(within("1000000", &["--dir", &path]));
    let line = node.line_with("refusing locks for 3");
    assert!(line.contains("another time namespace"), "{line}");
    node.signal(Signal::TERM);
    node.wait();
}

/// Everything in a directory, names and content.
fn everything(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).expect("a directory").map(|entry| {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap_or_default())
    });
    entries.collect()
}

/// [S4] A file called `state` may be anybody's.
#[test]
fn a_strangers_state_is_refused_and_left_as_it_was() {
    for (name, content) in [
        ("short", b"my terraform state\n".to_vec()),
        ("slot", b"terraform".repeat(455)),
        ("long", b"terraform".repeat(4000)),
    ] {
        let directory = Directory::new(&format!("stranger-{name}"));
        fs::write(directory.path.join("state"), content).expect("written");
        let before = everything(&directory.path);
        let path = text_of(&directory.path);
        for flags in [&["--dir", &path][..], &["--dir", &path, "--first-start"]] {
            let (code, err) = refused(flags);
            assert_eq!(code, Some(69), "{name}: {err}");
            for part in [
                "/state: this is not a lock node's file",
                "an empty directory",
            ] {
                assert!(err.contains(part), "{name}: {part:?} in {err}");
            }
            assert_eq!(everything(&directory.path), before, "{name}");
        }
    }
}

/// [G4] [G14] On a file system of a few pages, where this user may make one.
#[cfg(target_os = "linux")]
#[test]
fn a_first_start_on_a_full_disk_can_be_repeated() {
    let directory = Directory::new("full");
    let path = text_of(&directory.path);
    let tool = |name: &str, args: &[&str]| {
        let done = std::process::Command::new(name).args(args).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !tool("mount", &["-t", "tmpfs", "-o", "size=12k", "tmpfs", &path]) {
        eprintln!("skipped: this user may not mount a file system");
        return;
    }
    for durability in ["long", "always"] {
        let node = text_of(&directory.path.join(durability));
        let flags = ["--dir", &node, "--durability", durability, "--first-start"];
        let ballast = directory.path.join("ballast");
        fs::write(&ballast, [1; 4096]).expect("written");
        let (code, err) = refused(&flags);
        assert_eq!(code, Some(69), "{err}");
        assert!(err.contains("No space left"), "{err}");
        fs::remove_file(&ballast).expect("removed");
        assert!(tool("mount", &["-o", "remount,size=8m", &path]));
        serve(&flags).line_with("--first-start");
        assert!(fs::remove_dir_all(&node).is_ok());
        assert!(tool("mount", &["-o", "remount,size=12k", &path]));
    }
    assert!(tool("umount", &["-l", &path]));
}

/// [S1] [G13]
#[test]
fn a_node_whose_lock_file_is_gone_grants_nothing_more_and_says_why() {
    let directory = Directory::new("lock-gone");
    let path = text_of(&directory.path.join("node"));
    let flags = ["--dir", path.as_str(), "--max-ttl", "1s"];
    let mut node = serve(&[&flags[..], &["--first-start"]].concat());
    let address = node.address();
    let mut client = connect(address);
    assert_eq!(ask(&mut client, "SET long token NX PX 60000"), "+OK");
    fs::remove_file(Path::new(&path).join("lock")).expect("removed");
    let mut second = serve(&flags);
    let mut other = connect(second.address());
    // The grant that found it out is not answered.
    let mut lost = connect(address);
    lost.write_all(b"SET lost token NX PX 60000\r\n")
        .expect("sent");
    let mut answer = Vec::new();
    let _ = lost.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let refusal = ask(&mut connect(address), "SET later token NX PX 60000");
    assert!(refusal.starts_with("-MISCONF"), "{refusal}");
    let line = node.line_with("lock file was removed or replaced");
    shows(&line, &["another process may be using the directory"]);
    // The second one has what the first one told.
    assert_eq!(ask(&mut other, "SET long other NX PX 1000"), "$-1");
    assert_eq!(ask(&mut other, "SET lost other NX PX 1000"), "+OK");
}

/// [G3]
#[test]
fn a_start_without_a_state_says_what_is_lost_or_is_refused() {
    let directory = Directory::new("lost-disk");
    let path = text_of(&directory.path.join("node"));
    let refuse = ["--dir", path.as_str(), "--empty-dir", "refuse"];
    let (code, err) = refused(&refuse);
    assert_eq!(code, Some(69), "{err}");
    for part in [
        "there is no state",
        "--empty-dir wait",
        "above --max-ttl, or none",
        "--first-start",
    ] {
        assert!(err.contains(part), "{part:?} in {err}");
    }
    let mut node = serve(&[&refuse[..], &["--first-start"]].concat());
    let mut client = connect(node.address());
    assert_eq!(ask(&mut client, "SET ever token NX"), "+OK");
    node.signal(Signal::KILL);
    node.wait();
    serve(&refuse).line_with("serving, 1 lock");
    fs::remove_dir_all(&path).expect("removed");
    let (code, err) = refused(&refuse);
    assert_eq!(code, Some(69), "{err}");
    let mut node = serve(&["--dir", &path, "--max-ttl", "7s"]);
    node.line_with(
        "until every lock with a TTL up to 7 s has expired; locks with a longer TTL or none are lost with the disk",
    );
    node.line_with("in this place of the clients' list");
}

/// [L5]
#[test]
fn a_log_that_was_cut_is_refused_and_a_dropped_batch_is_waited_for() {
    let directory = Directory::new("log-end");
    let path = text_of(&directory.path.join("node"));
    let flags = ["--dir", path.as_str(), "--durability", "always"];
    let mut node = serve(&[&flags[..], &["--first-start"]].concat());
    let mut client = connect(node.address());
    for key in ["a", "b"] {
        assert_eq!(
            ask(&mut client, &format!("SET {key} token NX PX 60000")),
            "+OK"
        );
    }
    node.signal(Signal::KILL);
    node.wait();
    let log = Path::new(&path).join("log-0000000000000001");
    let whole = fs::read(&log).expect("read");
    for len in [0, 100, 128, 200, 4096, whole.len() - 1] {
        fs::write(&log, &whole[..len]).expect("written");
        let (code, err) = refused(&flags);
        assert_eq!(code, Some(69), "{len}: {err}");
        for part in ["/log-0000000000000001: ", "restore the file"] {
            assert!(err.contains(part), "{len}: {part:?} in {err}");
        }
    }
    let mut rotten = whole.clone();
    let last = rotten.iter().rposition(|byte| *byte != 0).expect("a batch");
    rotten[last] ^= 1;
    fs::write(&log, rotten).expect("written");
    let mut node = serve(&flags);
    let mut client = connect(node.address());
    let line = node.line_with("refusing locks for 60.");
    shows(&line, &["the last batch of the log was dropped"]);
    assert!(ask(&mut client, "SET b other NX PX 1000").starts_with("-LOADING"));
    let head = ask(&mut client, "INFO restart");
    let len: usize = head.trim_start_matches('$').parse().expect("a length");
    let mut info = vec![0; len];
    client.read_exact(&mut info).expect("a reply");
    let info = String::from_utf8_lossy(&info);
    assert!(info.contains("restart_reason:dropped_batch"), "{info}");
}
