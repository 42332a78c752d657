//! Histories for others: all that happened in a world, judged by a checker that shares nothing with ours.

use std::process::Command;

use crate::program::{Directory, outcome, outcome_of, text_of};

/// What `check_history.py` of the kit's examples says of a history; `None`, with the reason printed, where it cannot run.
#[expect(clippy::print_stdout, reason = "a test says what it skips")]
fn judged_by_another(history: &str) -> Option<(Option<i32>, String)> {
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../locknode-testkit/examples/check_history.py"
    );
    let judge = Command::new("python3")
        .args(["-B", program, history])
        .output();
    match judge {
        Ok(output) => {
            let (code, out, err) = outcome(&output);
            assert_eq!(err, "", "{out}");
            Some((code, out))
        }
        Err(error) => {
            println!("not judged: python3: {error}");
            None
        }
    }
}

#[test]
fn another_checker_finds_nothing_where_nothing_is_broken() {
    let directory = Directory::new("history-clean");
    let mut held = 0;
    for seed in 0..8 {
        let file = text_of(&directory.path.join(format!("{seed}.jsonl")));
        let flags = format!("--faults promised --for 20s --history {file}");
        let (code, out, err) = outcome_of(&format!("sim --seed {seed} {flags}"));
        assert_eq!((code, &*err), (Some(0), ""), "{out}");
        assert!(out.ends_with(&format!("history   {file}\n")), "{out}");
        let text = std::fs::read_to_string(&file).expect("a history");
        held += text.matches("\"event\":\"acquired\"").count();
        assert!(text.starts_with("{\"locknode_history\":1,\"nodes\":5,"));
        assert!(text.contains("{\"event\":\"message\",\"client\":"));
        let Some((code, said)) = judged_by_another(&file) else {
            return;
        };
        assert!(said.ends_with("; no broken promises\n"), "{seed}: {said}");
        assert_eq!(code, Some(0), "{seed}: {said}");
    }
    assert!(held > 50, "{held} locks: nothing was judged");
}

#[test]
fn another_checker_finds_what_ours_finds() {
    let directory = Directory::new("history-broken");
    for (bug, violation, words) in [
        ("half-is-quorum", "exclusion", " at the same time, from "),
        ("max-only", "fencing-order", " has the fencing token "),
    ] {
        let file = text_of(&directory.path.join(format!("{bug}.jsonl")));
        let out_dir = text_of(&directory.path);
        let flags = format!("--out {out_dir} --history {file} --json");
        let (code, out, err) = outcome_of(&format!("sim --seeds 0..400 --bug {bug} {flags}"));
        assert_eq!(code, Some(0), "{bug}: {out}{err}");
        assert!(out.contains(violation), "{bug}: {out}");
        let Some((code, said)) = judged_by_another(&file) else {
            return;
        };
        assert!(said.contains(words), "{bug}: {said}");
        assert_eq!(code, Some(1), "{bug}: {said}");
    }
}

#[test]
fn a_scenario_file_has_a_history_too_and_real_nodes_have_one() {
    let directory = Directory::new("history-replay");
    let scenario = text_of(&directory.path.join("world.txt"));
    let (code, printed, _) = outcome_of("sim --print 3 --for 10s");
    assert_eq!(code, Some(0));
    std::fs::write(&scenario, printed).expect("writable");
    let file = text_of(&directory.path.join("world.jsonl"));
    let sim = format!("sim --replay {scenario} --history {file}");
    let page = text_of(&directory.path.join("chaos.html"));
    // With shorter locks a node without a directory may restart and grant twice within a second, and F2 of SPEC.md
    // promises no order of fencing tokens then.
    let chaos = "lab --chaos 3 --clients 2 --for 3s --ttl 1100ms";
    let chaos = format!("{chaos} --timeline {page} --history {file}");
    for line in [sim, chaos] {
        let (code, out, err) = outcome_of(&line);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains(&file), "{out}");
        let text = std::fs::read_to_string(&file).expect("a history");
        assert!(text.starts_with("{\"locknode_history\":1,"), "{text}");
        if let Some((code, said)) = judged_by_another(&file) {
            assert_eq!(code, Some(0), "{said}");
        }
    }
    let away = text_of(&directory.path.join("away").join("world.jsonl"));
    for world in ["--seed 3 --for 10s", &format!("--replay {scenario}")] {
        let (code, _, err) = outcome_of(&format!("sim {world} --history {away}"));
        assert_eq!(code, Some(69), "{err}");
        assert!(err.contains(&away) && err.contains("--history"), "{err}");
    }
}
