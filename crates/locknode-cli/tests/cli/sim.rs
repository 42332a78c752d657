//! Simulated worlds: verdicts, planted bugs, replays.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::{Directory, command, outcome_of, shows, text_of};

/// A bug that some of the first few worlds show.
const BUG: &str = "quarantine-off";

/// Flags by which it is found.
const FOUND: &str = "--seeds 0..300 --bug quarantine-off --faults crash,rivalry --for 20s";

/// Runs `locknode sim` with these flags.
fn sim(flags: &str) -> (Option<i32>, String, String) {
    outcome_of(&format!("sim {flags}"))
}

/// The same, which succeeds; what it prints.
#[track_caller]
fn succeeds(line: &str) -> String {
    let (code, out, err) = sim(line);
    assert_eq!(code, Some(0), "{out}{err}");
    out
}

/// What follows a word at the beginning of a line.
fn after<'t>(text: &'t str, word: &str) -> &'t str {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(word));
    lines.next().expect(word).trim()
}

/// The value of a field of one line of JSON, up to the next comma or brace.
fn field<'t>(json: &'t str, name: &str) -> &'t str {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).expect(name);
    rest.split([',', '}']).next().expect(name)
}

#[test]
fn worlds_that_keep_their_promises_are_counted() {
    for (flags, first) in [
        ("--seeds 0..3 --threads 1 --faults none", "3 worlds, 30 s"),
        (
            "--seeds 5..=6 --threads 2 --faults crash,partition",
            "2 worlds, 20 s",
        ),
        (
            "--seeds 9..10 --threads 7 --faults promised,-disk",
            "1 world, 10 s",
        ),
    ] {
        let out = succeeds(&format!("{flags} --for 10s"));
        let first = format!("{first} simulated: every promise kept\n");
        assert!(out.starts_with(&first), "{out}");
        shows(&out, &[" worlds/s, ", " events/s per thread"]);
    }
}

#[test]
fn all_that_makes_a_world_can_be_chosen() {
    let chosen = "--print 12 --clients 4 --nodes 3 --ttl 2s --guard always --client plain \
                  --for 20s --bug slewed-clock";
    let text = succeeds(chosen);
    for line in [
        "locknode-scenario 1",
        "seed 12",
        "clients 4",
        "nodes 3",
        "guard always",
        "client plain",
        "run 20s",
        "bug slewed-clock",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
    shows(&text, &[" ttl 2s "]);
    assert_eq!(succeeds(chosen), text);
}

#[test]
fn a_printed_world_is_the_same_world_again() {
    let directory = Directory::new("sim-print");
    let text = succeeds("--print 3 --for 10s");
    let file = directory.file("world.txt", &text);
    let out = succeeds(&format!("--replay {file} --json --check-determinism"));
    let hash = field(&out, "hash").trim_matches('"').to_owned();
    let page = text_of(&directory.path.join("world.html"));
    let out = succeeds(&format!(
        "--replay {file} --expect {hash} --timeline {page} --check-determinism"
    ));
    shows(&out, &["seed 3: ", &hash, "every promise was kept"]);
    shows(
        &out,
        &["the same world as before", "two runs were the same"],
    );
    let page = std::fs::read_to_string(page).expect("a picture");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(&hash));

    let mut child = command(["sim", "--replay", "-", "--expect", &hash])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("an input");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let (code, out, _) = sim(&format!("--replay {file} --expect 0123456789abcdef"));
    assert_eq!(code, Some(65));
    shows(&out, &["not 0123456789abcdef", "--version"]);
}

#[test]
fn a_planted_bug_is_found_shrunk_and_replayed() {
    let directory = Directory::new("sim-bug");
    let dir = text_of(&directory.path.join("not there yet"));
    let flags = format!("{FOUND} --out '{dir}'");
    let out = succeeds(&flags);
    shows(&out, &["the bug quarantine-off was found: one failed\n"]);
    shows(&out, &["broke a promise:\n", "still broken:\n"]);
    let page = std::fs::read_to_string(after(&out, "timeline")).expect("a picture");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("locknode sim --replay"));
    let file = after(&out, "scenario");
    let scenario = std::fs::read_to_string(file).expect("a scenario");
    shows(&scenario, &["\nbug quarantine-off\n"]);

    // The directory has spaces in its name: the line is for a shell.
    let replay = after(&out, "replay");
    assert_eq!(replay.matches('\'').count(), 2, "{replay}");
    let (_, hash) = replay.split_once(" --expect ").expect("a hash");
    let (code, again, err) = sim(&format!("--replay '{file}' --expect {hash}"));
    assert_eq!(code, Some(1), "{again}{err}");
    shows(&again, &["the same world as before, event by event"]);
    let (_, broken) = out.split_once("still broken:\n").expect("just seen");
    let broken = broken.lines().next().expect("a line");
    assert!(again.starts_with(broken), "{broken} in {again}");

    // Without the bug, the same world keeps its promises.
    let healed = scenario.replace("\nbug quarantine-off\n", "\n");
    let healed = directory.file("healed.txt", &healed);
    succeeds(&format!("--replay {healed}"));

    let whole = after(&out, "unshrunk").strip_prefix("locknode sim ");
    let whole = whole.expect("a command");
    assert!(whole.starts_with("--seed "), "{whole}");
    succeeds(&format!("{whole} --out '{dir}'"));
}

#[test]
fn the_first_failing_seed_does_not_depend_on_the_threads() {
    let directory = Directory::new("sim-threads");
    let dir = text_of(&directory.path);
    let of_threads = |threads: &str| {
        let out = succeeds(&format!("{FOUND} --out {dir} --threads {threads} --json"));
        assert_eq!(field(&out, "verdict"), "\"found\"");
        assert_eq!(field(&out, "bug"), "\"quarantine-off\"");
        assert_eq!(field(&out, "failing_worlds"), "1");
        [
            field(&out, "seed").to_owned(),
            field(&out, "hash_shrunk").to_owned(),
        ]
    };
    assert_eq!(of_threads("1"), of_threads("5"));
}

#[test]
fn all_failing_worlds_are_counted_when_asked_to_go_on() {
    let directory = Directory::new("sim-keep-going");
    let dir = text_of(&directory.path);
    let flags = format!("--seeds 0..12 --bug {BUG} --faults crash,power-loss,rivalry --for 20s");
    let out = succeeds(&format!("{flags} --keep-going --out {dir}"));
    assert!(out.starts_with("12 worlds, "), "{out}");
    shows(&out, &[" failed\n", " broken in ", "  seeds "]);
}

/// A bug chooses the worlds that show it, down to the number of nodes, as long as nothing else is asked for.
#[test]
fn a_bug_brings_the_worlds_that_show_it() {
    let directory = Directory::new("sim-bug-worlds");
    let dir = text_of(&directory.path);
    let flags = format!("--seeds 1720..1740 --bug extend-or-set --out {dir}");
    let out = succeeds(&flags);
    shows(&out, &["continuity"]);
    let (code, out, err) = sim(&format!("{flags} --nodes 5 --faults none"));
    assert_eq!(code, Some(1), "{out}{err}");
}

#[test]
fn a_bug_that_nothing_brings_out_is_not_found() {
    let (code, out, err) = sim(&format!("--seeds 0..3 --bug {BUG} --faults none --for 10s"));
    assert_eq!(code, Some(1), "{out}{err}");
    shows(
        &out,
        &["the bug quarantine-off was not found within 3 seeds"],
    );
}

#[test]
fn each_world_is_the_same_again() {
    let out = succeeds("--seeds 0..3 --check-determinism --for 10s");
    shows(
        &out,
        &["each world ran twice and was the same, event by event\n"],
    );
}

#[test]
fn a_picture_of_a_world_is_written() {
    let directory = Directory::new("sim-timeline");
    let page = text_of(&directory.path.join("world.html"));
    let out = succeeds(&format!("--seed 7 --for 10s --timeline {page}"));
    assert_eq!(after(&out, "timeline"), page);
    let html = std::fs::read_to_string(&page).expect("a picture");
    assert!(
        html.contains("locknode sim --seed 7 --for 10s"),
        "no replay line"
    );

    let away = text_of(&directory.path.join("away").join("world.html"));
    let (code, _, err) = sim(&format!("--seed 7 --for 10s --timeline {away}"));
    assert_eq!(code, Some(69));
    shows(&err, &[&away]);
}

#[test]
fn what_happened_is_counted_and_what_never_did_is_named() {
    let out = succeeds("--seeds 0..3 --faults none --coverage --for 10s");
    shows(
        &out,
        &["counts of faults and states:\n", "  calm ", "  acquired "],
    );
    let out = succeeds("--seed 1 --faults freeze,bad-clock --coverage --for 10s --json");
    assert_eq!(field(&out, "calm"), "1");
    assert!(
        out.contains("\"never_happened\":\"") && !out.contains("power-loss"),
        "{out}"
    );
}

#[test]
fn bugs_and_faults_are_listed() {
    let out = succeeds("--list-bugs");
    shows(&out, &["  quarantine-off ", "  validity-from-reply "]);
    let out = succeeds("--list-faults");
    shows(&out, &["  power-loss ", "  promised "]);
}

#[test]
fn bad_arguments_are_explained() {
    let directory = Directory::new("sim-bad");
    let nonsense = directory.file("nonsense.txt", "hello\n");
    let half = directory.file("half.txt", "locknode-scenario 1\nat 1s do explode node 1\n");
    let bytes = text_of(&directory.path.join("bytes.txt"));
    std::fs::write(&bytes, [0xff, 0xfe]).expect("a file");
    let away = text_of(&directory.path.join("away.txt"));
    let rows: &[(&str, i32, &[&str])] = &[
        ("--seeds 5", 64, &["0..10000", "--seed"]),
        ("--seeds 7..7", 64, &["no seed is in it"]),
        (
            "--seeds 0..99999999999999999999",
            64,
            &["18446744073709551615"],
        ),
        ("--seeds 0..5 --seed 1", 64, &["--seed"]),
        ("--seed -1", 64, &["'-1'"]),
        ("--clients 0", 64, &["1..=16"]),
        ("--nodes 17", 64, &["1..=16"]),
        ("--threads 0", 64, &["--threads"]),
        ("--ttl 5", 64, &["30s"]),
        ("--ttl 1ms", 64, &["50ms"]),
        ("--for 1s", 64, &["10s"]),
        ("--guard maybe", 64, &["off, memory, long, always"]),
        ("--client fat", 64, &["shipped, plain"]),
        (
            "--faults crash,explosions",
            64,
            &["explosions", "power-loss"],
        ),
        ("--bug quarantine-of", 64, &["quarantine-off"]),
        (
            "--bug half-is-quorum --client shipped",
            64,
            &["--client plain"],
        ),
        ("--expect 0123456789abcdef", 64, &["--replay"]),
        (
            &format!("--replay {half} --expect 12"),
            64,
            &["16 hexadecimal digits"],
        ),
        (&format!("--replay {half} --nodes 3"), 64, &["--nodes"]),
        ("--print 3 --json", 64, &["--json"]),
        (
            &format!("--replay {nonsense}"),
            64,
            &["nonsense.txt", "line 1", "locknode-scenario", "--print"],
        ),
        (
            &format!("--replay {half}"),
            64,
            &["half.txt", "line 2", "explode"],
        ),
        (&format!("--replay {bytes}"), 64, &["bytes.txt", "UTF-8"]),
        (&format!("--replay {away}"), 69, &["away.txt"]),
    ];
    for (flags, expected, parts) in rows {
        let (code, out, err) = sim(flags);
        assert_eq!(
            (code, out.as_str()),
            (Some(*expected), ""),
            "{flags}: {err}"
        );
        shows(&err, parts);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let directory = Directory::new("sim-out");
    let file = directory.file("file", "");
    let (code, _, err) = sim(&format!("{FOUND} --out {file}"));
    assert_eq!(code, Some(69), "{err}");
    shows(&err, &[&file, "--out"]);
}

#[test]
fn ctrl_c_tells_what_was_done_so_far() {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours)
        .and_then(|()| unlockpt(&ours))
        .expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs = File::options()
        .write(true)
        .open(name.to_str().expect("UTF-8"));
    let theirs = theirs.expect("a terminal");
    let mut program =
        command("sim --seeds 0..=18446744073709551615 --for 10s --faults none".split(' '));
    let mut child = program
        .stdout(Stdio::piped())
        .stderr(theirs)
        .spawn()
        .expect("the program starts");
    let mut shown = Vec::new();
    let mut terminal = File::from(ours);
    while !String::from_utf8_lossy(&shown).contains(" of 18446744073709551616 worlds, ") {
        let mut bytes = [0; 256];
        let len = terminal.read(&mut bytes).expect("a line is redrawn");
        shown.extend_from_slice(&bytes[..len]);
    }
    let id = i32::try_from(child.id()).expect("a process id");
    let id = rustix::process::Pid::from_raw(id).expect("a process id");
    rustix::process::kill_process(id, Signal::INT).expect("the program runs");
    let mut out = String::new();
    let mut output = child.stdout.take().expect("an output");
    output.read_to_string(&mut out).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{out}");
    assert!(out.starts_with("ended by Ctrl-C: "), "{out}");
    shows(&out, &[" of 18446744073709551616 worlds were run\n"]);
    shows(&out, &["every promise kept"]);
}
