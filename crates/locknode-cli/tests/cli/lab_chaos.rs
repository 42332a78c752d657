//! `locknode lab --chaos` and `--script`: clients and faults on real nodes, a verdict, and a picture.

use std::path::Path;

use rustix::process::Signal;

use crate::program::{Directory, Program, outcome_of, shows, text_of};

/// A page that a browser shows: whole, and nothing in it comes from elsewhere.
fn page(path: &Path) -> String {
    let page = std::fs::read_to_string(path).expect("the timeline");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.is_ascii());
    for tag in ["svg", "style", "script", "body"] {
        let opened = page.matches(&format!("<{tag}")).count();
        assert!(opened > 0, "{tag}");
        assert_eq!(page.matches(&format!("</{tag}>")).count(), opened, "{tag}");
    }
    assert!(!page.contains("src=") && !page.contains("href=\"http"));
    page
}

/// What went wrong, without the moments.
fn faults(out: &str) -> Vec<&str> {
    let is_moment =
        |text: &str| text.ends_with('s') && text[..text.len() - 1].parse::<f64>().is_ok();
    out.lines()
        .filter_map(|line| line.trim_start().split_once("  "))
        .filter(|(at, _)| is_moment(at))
        .map(|(_, what)| what)
        .collect()
}

#[test]
fn chaos_ends_with_a_verdict_and_a_picture_and_a_seed_means_the_same_faults() {
    let directory = Directory::new("chaos");
    let mut before: Option<Vec<String>> = None;
    for file in ["first.html", "second.html"] {
        let path = directory.path.join(file);
        let timeline = text_of(&path);
        let chaos = "--chaos 7 --clients 3 --for 3s --ttl 300ms";
        let (code, out, err) = outcome_of(&format!("lab {chaos} --timeline {timeline}"));
        assert_eq!((code, &*err), (Some(0), ""), "{out}");
        let parts = [
            "3 clients of this process contend for one lock, with a TTL of 300ms, on 5 nodes",
            "3 clients acquired the lock ",
            "\nAt no moment did two clients hold it.\n",
            "To repeat it: locknode lab --chaos 7 --clients 3 --for 3s --ttl 300ms\n",
            &timeline,
        ];
        shows(&out, &parts);
        let page = page(&path);
        shows(&page, &["chaos of seed 7", "At no moment"]);
        let faults: Vec<String> = faults(&out).into_iter().map(str::to_owned).collect();
        assert!(faults.len() > 3, "{out}");
        let before = before.get_or_insert_with(|| faults.clone());
        assert_eq!(*before, faults);
    }
}

#[test]
fn without_restart_guard_the_exit_code_says_what_the_verdict_says() {
    let directory = Directory::new("chaos-off");
    let path = directory.path.join("off.html");
    let chaos = "--chaos 3 --for 3s --ttl 400ms --restart-guard off";
    let (code, out, err) = outcome_of(&format!("lab {chaos} --timeline {}", text_of(&path)));
    let broke = out.contains("TWO CLIENTS HELD IT AT THE SAME TIME: client ");
    assert_eq!((code, &*err), (Some(i32::from(broke)), ""), "{out}");
    assert!(out.contains("ran without their restart guard"), "{out}");
    assert_eq!(page(&path).contains("TWO CLIENTS HELD IT"), broke);
}

#[test]
fn an_interrupted_chaos_is_judged_as_far_as_it_came() {
    let directory = Directory::new("chaos-cut");
    let path = directory.path.join("cut.html");
    let chaos = "--chaos 1 --for 5m";
    let mut lab = Program::of(&format!("lab {chaos} --timeline {}", text_of(&path)));
    lab.line_with(" is killed");
    lab.signal(Signal::INT);
    lab.line_with("Interrupted after ");
    lab.line_with("At no moment did two clients hold it.");
    assert_eq!(lab.wait().code(), Some(0));
    page(&path);
}

/// A lock that is held while a majority of the nodes crashes and comes back, and is then wanted by another client.
const CRASHES: &str = "\
locknode-scenario 1
nodes 5
clients 2
guard memory
max-ttl 20s
delay 0s 0s
run 1500ms
at 0s client 0 lock k ttl 20s then release
at 500ms do crash node 0 kill
at 500ms do restart node 0
at 500ms do crash node 1 kill
at 500ms do restart node 1
at 500ms do crash node 2 kill
at 500ms do restart node 2
at 900ms client 1 lock k ttl 20s tries 3 then release
";

#[test]
fn a_script_is_played_and_the_restart_guard_makes_the_difference() {
    let directory = Directory::new("script");
    let script = directory.file("crashes.scenario", CRASHES);
    let timeline = directory.path.join("crashes.html");
    let once = "2 clients acquired the lock 1 time on 5 nodes, through 3 crashes.\nAt no moment";
    let twice = "\nTWO CLIENTS HELD IT AT THE SAME TIME: client 0 and client 1, from ";
    for (guard, want_code, want) in [("on", 0, once), ("off", 1, twice)] {
        let files = format!("--script {script} --timeline {}", text_of(&timeline));
        let line = format!("lab --port 0 --restart-guard {guard} {files}");
        let (code, out, err) = outcome_of(&line);
        assert_eq!((code, &*err), (Some(want_code), ""), "{out}");
        assert!(out.contains(want), "{out}");
        assert!(page(&timeline).contains("crashes.scenario"));
    }
}

#[test]
fn scripts_that_cannot_be_played_are_refused_with_the_reason() {
    let directory = Directory::new("bad-script");
    let refused = |script: &str, want: i32, parts: &[&str]| {
        let (code, _, err) = outcome_of(&format!("lab --port 0 --script {script}"));
        assert_eq!(code, Some(want), "{err}");
        shows(&err, parts);
    };
    for (line, expected) in [
        (
            "at 1s do explode",
            "line 2: expected crash, crash-in, restart",
        ),
        (
            "on granted node 2 nth 1 after 0s do crash node 2 kill",
            "needs a time",
        ),
        ("at 1s do disk node 1 full", "cannot be done here"),
        ("at 1s do crash node 7 kill", "no node 7"),
        ("at 1s client 9 lock k ttl 1s", "no client 9"),
        ("client plain", "locknode sim"),
        ("bug quarantine-off", "`bug quarantine-off`"),
    ] {
        let script = directory.file("bad.scenario", &format!("locknode-scenario 1\n{line}\n"));
        refused(&script, 64, &[expected]);
    }
    refused(&text_of(&directory.path.join("missing")), 69, &[]);
}
