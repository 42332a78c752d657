//! Help, completions and man pages.

use std::process::Stdio;

use crate::program::{Directory, command, outcome, run, text_of};

const COMMANDS: &[&str] = &[
    "serve",
    "lab",
    "run",
    "lock",
    "extend",
    "release",
    "status",
    "bench",
    "sim",
    "completions",
    "man",
];

#[test]
fn help_teaches_by_example() {
    for name in COMMANDS {
        let (code, out, _) = outcome(&run([name, "--help"]));
        assert_eq!(code, Some(0));
        assert!(
            out.contains("Examples:\n") && out.contains(&format!("locknode {name}")),
            "{out}"
        );
    }
    let (code, out, _) = outcome(&run(["--help"]));
    assert_eq!(code, Some(0));
    assert!(COMMANDS.iter().all(|name| out.contains(name)), "{out}");
}

#[test]
fn the_version_is_printed() {
    let (code, out, _) = outcome(&run(["--version"]));
    assert_eq!(code, Some(0));
    assert_eq!(out, format!("locknode {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_commands_and_their_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, err) = outcome(&run(["completions", shell]));
        assert_eq!(code, Some(0), "{err}");
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
    let (code, out, _) = outcome(&run(["man"]));
    assert_eq!(code, Some(0));
    assert!(out.contains(".TH locknode 1"), "{out}");

    let directory = Directory::new("man");
    let pages = directory.path.join("man1");
    let (code, out, err) = outcome(&run(["man", &text_of(&pages)]));
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(pages.join("locknode.1").exists());
    for name in COMMANDS {
        let page =
            std::fs::read_to_string(pages.join(format!("locknode-{name}.1"))).expect("a page");
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
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
