//! The first minutes: what libraries ask and `--help` shows works on a lab as it starts.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::program::{
    Directory, Program, ask, command, connect, outcome, run, shows, text_of, words,
};

/// What lock libraries ask first: no TTL, ten minutes, five, a day; and an extension beyond `--max-ttl`.
#[test]
fn locks_as_most_libraries_take_them_are_granted() {
    for flags in [
        "",
        "--max-ttl 5s",
        "--restart-guard off",
        "--faults",
        "--faults --restart-guard off",
    ] {
        let mut lab = Program::of(&format!("lab --port 0 {flags}"));
        let mut client = connect(lab.address());
        for (command, want) in [
            ("SET redis-py token NX", "+OK"),
            ("SET redis-py-600 token NX PX 600000", "+OK"),
            ("SET django token NX PX 300000", "+OK"),
            ("SET laravel token EX 86400 NX", "+OK"),
            ("SETNX redis-mutex 17", ":1"),
            ("SET extended token NX PX 30000", "+OK"),
            ("PEXPIRE extended 90000", ":1"),
        ] {
            assert_eq!(ask(&mut client, command), want, "{flags}: {command}");
        }
        let left = ask(&mut client, "PTTL extended");
        let left: u64 = left.trim_start_matches(':').parse().expect("a number");
        assert!(left > 60_000, "{flags}: {left}");
        drop(client);
        lab.signal(Signal::INT);
        assert_eq!(lab.wait().code(), Some(0), "{flags}");
    }
}

#[test]
fn what_a_lab_has_written_goes_with_it() {
    for line in ["lab --port 0", "lab --port 0 --faults"] {
        let directory = Directory::new("lab-temporary");
        let mut lab = command(words(line));
        lab.env("TMPDIR", &directory.path);
        let mut lab = Program::start(lab);
        let mut client = connect(lab.address());
        assert_eq!(ask(&mut client, "SET k token NX"), "+OK");
        let entries = || directory.path.read_dir().expect("a directory").count();
        assert_eq!(entries(), 1, "{line}");
        drop(client);
        lab.signal(Signal::TERM);
        assert_eq!(lab.wait().code(), Some(0));
        assert_eq!(entries(), 0, "{line}");
    }
    let (code, _, err) = {
        let mut lab = command(words("lab --port 0"));
        lab.env("TMPDIR", "/nonexistent/directory");
        outcome(&lab.output().expect("the program starts"))
    };
    assert_eq!(code, Some(69), "{err}");
    shows(&err, &["TMPDIR", "--restart-guard off"]);
}

/// The lines that the help of a command shows as examples.
fn examples(name: &str) -> Vec<String> {
    let (_, help, _) = outcome(&run([name, "--help"]));
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("  "));
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    assert!(
        lines.iter().any(|line| line.contains("locknode")),
        "{name}: {help}"
    );
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// Runs lines of shell, with the nodes of a lab where the help has addresses and stand-ins for others' programs.
fn shell(directory: &Directory, nodes: &str, lines: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_locknode"));
    let beside = binary.parent().expect("a directory");
    let path = format!(
        "{}:{}:{}",
        text_of(beside),
        text_of(&directory.path),
        std::env::var("PATH").unwrap_or_default()
    );
    let here = text_of(&directory.path);
    let lines = lines
        .replace("10.0.0.5:6379,10.0.0.6:6379,10.0.0.7:6379", nodes)
        .replace("10.0.0.5,10.0.0.6,10.0.0.7", nodes)
        .replace(
            "redis://:secret@10.0.0.5:6379,unix:/run/locknode.sock",
            nodes,
        )
        .replace("/run/", &format!("{here}/"))
        .replace("/usr/local/bin/", &format!("{here}/"))
        // Nobody waits for the better part of a minute.
        .replace("--at-least 50s", "--at-least 50ms");
    let mut shell = Command::new("sh");
    shell.env("PATH", path).env("LOCKNODE_NODES", nodes);
    let output = shell.args(["-euc", &lines]).output().expect("a shell");
    let (code, out, err) = outcome(&output);
    assert_eq!(code, Some(0), "{lines}\n{out}{err}");
}

#[test]
fn every_example_of_the_lock_commands_works_on_a_lab() {
    let mut lab = Program::of("lab --port 0 --nodes 3");
    let nodes = [(); 3].map(|()| lab.address().to_string()).join(",");
    let directory = Directory::new("examples");
    for name in ["report", "backup.sh", "job", "make"] {
        let file = directory.file(name, "#!/bin/sh\nexit 0\n");
        let is_runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(file, is_runnable).expect("a file of ours");
    }
    shell(&directory, &nodes, &examples("lock").join("\n"));
    for name in ["extend", "release"] {
        for example in examples(name) {
            let before = "locknode lock deploy --token-file /run/deploy.token; token=$(cat /run/deploy.token)";
            let after = "locknode release deploy - 2>&1 || true";
            let lines = format!("{before}\n{example}\nprintf %s \"$token\" | {after}");
            shell(&directory, &nodes, &lines);
        }
    }
    for name in ["run", "status"] {
        for example in examples(name) {
            shell(&directory, &nodes, &example);
        }
    }
}
