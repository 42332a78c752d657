//! A node's data directory: lost, somebody else's, full, damaged, taken by another process.

use std::fs;
use std::io::{Read as _, Write as _};

use rustix::process::Signal;

use crate::program::{Directory, Program, ask, command, connect, serve, shows, text_of};
use crate::restart::{acquire, files, node_directory, refused};

/// [G7] Two time namespaces, one after the other, have the same number and clocks of their own.
#[cfg(target_os = "linux")]
#[test]
fn a_crash_in_a_time_namespace_is_waited_for_by_the_ttl() {
    let within = |boottime: &str, flags: &str| {
        let node = command(format!("serve --port 0 {flags}").split_whitespace());
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
    let (_directory, dir) = node_directory("time-namespace");
    let mut node = Program::start(within("1000", &format!("{dir} --first-start")));
    let mut client = connect(node.address());
    acquire(&mut client, "short", Some(30_000));
    acquire(&mut client, "long", Some(100_000));
    node.end(Signal::KILL);
    let mut node = Program::start(within("1000000", &dir));
    let line = node.line_with("refusing locks for 3");
    shows(&line, &["another time namespace"]);
    node.end(Signal::TERM);
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
        let before = files(&directory.path);
        let path = text_of(&directory.path);
        for flag in ["", "--first-start"] {
            let err = refused(69, &format!("--dir {path} {flag}"));
            let parts = [
                "/state: this is not a lock node's file",
                "an empty directory",
            ];
            shows(&err, &parts);
            assert_eq!(files(&directory.path), before, "{name}");
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
        let node = directory.path_of(durability);
        let flags = format!("--dir {node} --durability {durability} --first-start");
        let ballast = directory.path.join("ballast");
        fs::write(&ballast, [1; 4096]).expect("written");
        shows(&refused(69, &flags), &["No space left"]);
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
    let (directory, dir) = node_directory("lock-gone");
    let flags = format!("{dir} --max-ttl 1s");
    let mut node = serve(&format!("{flags} --first-start"));
    let address = node.address();
    let mut client = connect(address);
    acquire(&mut client, "long", Some(60_000));
    fs::remove_file(directory.path_of("node/lock")).expect("removed");
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
    let (directory, dir) = node_directory("lost-disk");
    let refuse = format!("{dir} --empty-dir refuse");
    let parts = [
        "there is no state",
        "--empty-dir wait",
        "above --max-ttl, or none",
        "--first-start",
    ];
    shows(&refused(69, &refuse), &parts);
    let mut node = serve(&format!("{refuse} --first-start"));
    acquire(&mut connect(node.address()), "ever", None);
    node.end(Signal::KILL);
    serve(&refuse).line_with("serving, 1 lock");
    fs::remove_dir_all(directory.path_of("node")).expect("removed");
    refused(69, &refuse);
    let mut node = serve(&format!("{dir} --max-ttl 7s"));
    node.line_with(
        "until every lock with a TTL up to 7 s has expired; locks with a longer TTL or none are lost with the disk",
    );
    node.line_with("in this place of the clients' list");
}

/// [L5]
#[test]
fn a_log_that_was_cut_is_refused_and_a_dropped_batch_is_waited_for() {
    let (directory, dir) = node_directory("log-end");
    let flags = format!("{dir} --durability always");
    let mut node = serve(&format!("{flags} --first-start"));
    let mut client = connect(node.address());
    for key in ["a", "b"] {
        acquire(&mut client, key, Some(60_000));
    }
    node.end(Signal::KILL);
    let log = directory.path.join("node/log-0000000000000001");
    let whole = fs::read(&log).expect("read");
    for len in [0, 100, 128, 200, 4096, whole.len() - 1] {
        fs::write(&log, &whole[..len]).expect("written");
        let parts = ["/log-0000000000000001: ", "restore the file"];
        shows(&refused(69, &flags), &parts);
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
