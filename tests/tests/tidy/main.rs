//! Rules about the source text that no compiler checks.

#![cfg(test)]

mod book;
mod errors;
mod imports;
mod spec;

use std::fs;
use std::path::{Path, PathBuf};

/// Crates, and parts of one, that take time, randomness and storage as arguments.
const PURE: [&str; 15] = [
    "crates/locknode-resp/src",
    "crates/locknode-engine/src",
    "crates/redlock-proto/src",
    "crates/locknode-testkit/src/check",
    "crates/locknode-testkit/src/determinism.rs",
    "crates/locknode-testkit/src/fault",
    "crates/locknode-testkit/src/history.rs",
    "crates/locknode-testkit/src/random.rs",
    "crates/locknode-testkit/src/report.rs",
    "crates/locknode-testkit/src/scenario",
    "crates/locknode-testkit/src/shrink.rs",
    "crates/locknode-testkit/src/sim",
    "crates/locknode-testkit/src/span.rs",
    "crates/locknode-testkit/src/swarm",
    "crates/locknode-testkit/src/timeline",
];

/// What a pure crate never names outside of comments.
const IMPURE: [&str; 11] = [
    "Instant::now",
    "SystemTime",
    "std::thread",
    "std::net",
    "std::fs",
    "std::env",
    "std::io",
    "std::process",
    "tokio::",
    "rand::",
    "println!",
];

/// Where the disk is a trait, whose errors are those of the standard library: values, no input or output.
const DISK: [&str; 2] = [
    "crates/locknode-engine/src/durable",
    "crates/locknode-testkit/src/sim/node/disk.rs",
];

/// How a clock is read.
const CLOCKS: [&str; 3] = ["clock_gettime(", "Instant::now", "SystemTime::now"];

/// The files and directories that read clocks, and what for.
const CLOCK_READERS: [(&str, &str); 17] = [
    ("crates/locknode/src/clock.rs", "the node's time"),
    ("crates/redlock-client/src/clock.rs", "the client's time"),
    (
        "crates/redlock-client/src/driver.rs",
        "a timer of the runtime; the client's time decides",
    ),
    (
        "crates/redlock-client/src/guard.rs",
        "hands out an instant for the caller's timer",
    ),
    (
        "crates/locknode-cli/src/acquisition.rs",
        "tells people by the calendar when a lock ends",
    ),
    ("crates/locknode-cli/src/bench", "measures"),
    (
        "crates/locknode-cli/src/log.rs",
        "times of lines, and how many there are in a while",
    ),
    (
        "crates/locknode-cli/src/lab",
        "shows what happens, and when faults are due",
    ),
    ("crates/locknode-cli/src/sim", "shows rates and progress"),
    (
        "crates/locknode-testkit/src/cluster",
        "the runtime's clock, paused or real, from which nodes' clocks are made",
    ),
    (
        "crates/locknode-testkit/examples/contend.rs",
        "how long real nodes make a client wait",
    ),
    (
        "crates/locknode-cli/src/server_connection.rs",
        "a limit of patience",
    ),
    (
        "crates/locknode-cli/src/status/mod.rs",
        "a limit of patience, and round trips",
    ),
    ("crates/locknode-cli/src/doctor", "compares clocks"),
    (
        "crates/locknode-cli/src/serve/hand_over",
        "limits of patience, and how long nobody was served",
    ),
    (
        "crates/locknode-cli/src/serve/service_manager.rs",
        "when files were read again, as systemd wants to know it",
    ),
    ("benches", "measures"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    if dir.is_file() {
        found.push(dir.to_owned());
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != ".git" && name != ".interop" {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn files(dir: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    rust_files(&root().join(dir), &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("readable source");
        (
            path.strip_prefix(root())
                .expect("inside the workspace")
                .to_owned(),
            text,
        )
    };
    found.into_iter().map(read).collect()
}

/// The lines of a file that are code, up to its unit tests.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn pure_crates_name_no_clock_no_system_and_no_randomness() {
    let mut found = Vec::new();
    for dir in PURE {
        assert!(!files(dir).is_empty(), "{dir} is not there any more");
    }
    let is_test = |path: &Path| {
        let is_named = |part: std::path::Component<'_>| {
            part.as_os_str() == "tests" || part.as_os_str() == "tests.rs"
        };
        path.components().any(is_named)
    };
    for (path, text) in PURE.iter().flat_map(|dir| files(dir)) {
        if is_test(&path) {
            continue;
        }
        for (number, line) in code(&text) {
            let is_value = |word: &&&str| {
                **word == "std::io" && DISK.iter().any(|disk| path.starts_with(disk))
            };
            let words = IMPURE.iter().filter(|word| line.contains(**word));
            for word in words.filter(|word| !is_value(word)) {
                found.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "time, randomness and storage are arguments:\n{}",
        found.join("\n")
    );
}

/// [G16] Whoever reads a clock elsewhere decides by one that stops while the machine sleeps, or that is set.
#[test]
fn clocks_are_read_where_it_is_said_why() {
    let mut found = Vec::new();
    let mut unused: Vec<&str> = CLOCK_READERS.iter().map(|(path, _)| *path).collect();
    for (path, text) in ["crates", "benches"].iter().flat_map(|dir| files(dir)) {
        if path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        for (number, line) in code(&text) {
            if !CLOCKS.iter().any(|word| line.contains(word)) {
                continue;
            }
            if CLOCK_READERS
                .iter()
                .any(|(known, _)| path.starts_with(known))
            {
                unused.retain(|known| !path.starts_with(known));
            } else {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "time is an argument, or comes from the clock files:\n{}",
        found.join("\n")
    );
    assert!(unused.is_empty(), "no clock is read any more in {unused:?}");
}

#[test]
fn source_is_ascii_and_free_of_unfinished_work() {
    let mut found = Vec::new();
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
        concat!("#[ig", "nore"),
    ];
    for (path, text) in ["crates", "tests", "benches"]
        .iter()
        .flat_map(|dir| files(dir))
    {
        for (number, line) in text.lines().enumerate() {
            if !line.is_ascii() || marks.iter().any(|mark| line.contains(mark)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_file_can_be_read_in_one_sitting() {
    let too_long: Vec<String> = ["crates", "benches"]
        .iter()
        .flat_map(|dir| files(dir))
        .filter(|(path, _)| {
            path.file_name().is_none_or(|name| name != "tests.rs")
                && !path.components().any(|part| part.as_os_str() == "tests")
        })
        .filter_map(|(path, text)| {
            let lines = text
                .split("#[cfg(test)]")
                .next()
                .unwrap_or_default()
                .lines()
                .count();
            (lines > LINES_MAX).then(|| format!("{} has {lines} lines", path.display()))
        })
        .collect();
    assert!(
        too_long.is_empty(),
        "split by concept:\n{}",
        too_long.join("\n")
    );
}

#[test]
fn the_readme_and_ci_use_the_same_test_command() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("readable");
    for name in ["README.md", ".ci/run", "scripts/check"] {
        assert!(
            read(name).contains("cargo test --workspace"),
            "{name} names another test command"
        );
    }
}

/// The hard cap of lines per file, tests apart.
const LINES_MAX: usize = 600;
