//! Help, completions and man pages.

use std::process::Stdio;

use crate::program::{Directory, command, ended, ends};

const COMMANDS: &[&str] = &[
    "serve",
    "lab",
    "run",
    "lock",
    "extend",
    "release",
    "status",
    "doctor",
    "bench",
    "sim",
    "completions",
    "man",
];

#[test]
fn help_teaches_by_example() {
    for name in COMMANDS {
        let (out, _) = ends(0, [name, "--help"]);
        assert!(
            out.contains("Examples:\n") && out.contains(&format!("locknode {name}")),
            "{out}"
        );
    }
    let (out, _) = ends(0, ["--help"]);
    assert!(COMMANDS.iter().all(|name| out.contains(name)), "{out}");
}

#[test]
fn the_version_is_printed() {
    let (out, _) = ends(0, ["--version"]);
    assert_eq!(out, format!("locknode {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_commands_and_their_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (out, _) = ends(0, ["completions", shell]);
        for word in [
            "serve",
            "unixsocketperm",
            "workload",
            "max-hold",
            "token-file",
            "check-determinism",
        ] {
            assert!(out.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn man_pages_are_printed_and_written() {
    let (out, _) = ends(0, ["man"]);
    assert!(out.contains(".TH locknode 1"), "{out}");

    let directory = Directory::new("man");
    let pages = directory.path.join("man1");
    let (out, _) = ends(0, ["man", &directory.path_of("man1")]);
    assert_eq!(out, "");
    assert!(pages.join("locknode.1").exists());
    for name in COMMANDS {
        let page = std::fs::read_to_string(pages.join(format!("locknode-{name}.1")));
        let page = page.expect("a page");
        assert!(
            page.contains(".SH NAME") && page.contains("Examples:"),
            "{name}"
        );
    }
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    for args in [
        &["man"][..],
        &["completions", "bash"],
        &["serve", "--print-config"],
        &["--help"],
    ] {
        let mut command = command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        drop(child.stdout.take());
        ended(0, &child.wait_with_output().expect("it ends"));
    }
}
