//! Every error that a node can reply has a row in the book, and every row is of an error that it can reply.

use std::collections::BTreeSet;

use super::{code, files, root};

/// Where the pages are whose tables begin with a reply.
const PAGES: [&str; 2] = ["docs/errors.md", "docs/errors-of-requests.md"];

/// Where replies are made.
const NODE: [&str; 3] = [
    "crates/locknode-resp/src",
    "crates/locknode-engine/src",
    "crates/locknode/src",
];

/// Beginnings of texts that look like the code of an error, and are none.
const NOT_CODES: [&str; 4] = ["JSON", "SLOWLOG", "TLS", "ECHO"];

#[test]
fn every_error_of_a_node_is_in_the_book_with_what_to_do() {
    let rows = rows();
    let replies = replies();
    assert!(replies.len() > 100, "only {} replies", replies.len());
    let begins = |reply: &str, row: &str| reply.starts_with(row);
    let missing: Vec<&String> = replies
        .iter()
        .filter(|reply| !rows.iter().any(|row| begins(reply, row)))
        .collect();
    assert!(
        missing.is_empty(),
        "say in {PAGES:?} what to do about {missing:#?}"
    );
    let stale: Vec<&String> = rows
        .iter()
        .filter(|row| !replies.iter().any(|reply| begins(reply, row)))
        .collect();
    assert!(stale.is_empty(), "no node replies {stale:#?}");
}

/// What the tables show of replies, up to what varies in them.
fn rows() -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).expect("a page");
        for line in text.lines() {
            let Some((shown, _)) = line
                .strip_prefix("| `")
                .and_then(|rest| rest.split_once("` |"))
            else {
                continue;
            };
            let fixed = shown.split('\u{2026}').next().unwrap_or_default();
            // Kinds and causes of the client are in tables of the same form.
            if is_coded(fixed) {
                let is_new = rows.insert(fixed.replace("\\|", "|"));
                assert!(is_new, "{page} has `{shown}` twice");
            }
        }
    }
    rows
}

/// The errors that the source of the node has, up to what varies in them.
fn replies() -> BTreeSet<String> {
    let mut replies = BTreeSet::new();
    for (path, text) in NODE.iter().flat_map(|dir| files(dir)) {
        let is_test = path.components().any(|it| it.as_os_str() == "tests");
        if is_test || path.ends_with("tests.rs") {
            continue;
        }
        let code: String = code(&text).map(|(_, line)| format!("{line}\n")).collect();
        for (before, literal) in literals(&code) {
            let is_unsupported = before.contains("unsupported(") && !before.contains("fn ");
            let reply = match () {
                () if is_coded(&literal) => literal,
                () if literal.starts_with("Protocol error") => format!("ERR {literal}"),
                () if is_unsupported => format!("UNSUPPORTED {literal}"),
                () => continue,
            };
            let fixed = reply.split('{').next().unwrap_or_default();
            // A code alone is put before a text of its own.
            if fixed.trim_end().contains(' ') {
                replies.insert(fixed.to_owned());
            }
        }
    }
    replies
}

/// Whether a text begins with the code of an error: capitals, and more behind them.
fn is_coded(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(code, _)| {
        code.len() >= 3
            && code.bytes().all(|byte| byte.is_ascii_uppercase())
            && !NOT_CODES.contains(&code)
    })
}

/// The texts in Rust code, each with what stands before it.
fn literals(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = code[at..].find('"').map(|it| at + it) {
        let before = &code[..open];
        if before.ends_with('\'') || before.ends_with("'\\") {
            at = open + 1;
            continue;
        }
        let near = before
            .char_indices()
            .rev()
            .nth(NEAR)
            .map_or(0, |(at, _)| at);
        let (mut text, mut end) = (String::new(), code.len());
        let mut chars = code[open + 1..].char_indices();
        while let Some((place, c)) = chars.next() {
            match c {
                '"' => {
                    end = open + 1 + place + 1;
                    break;
                }
                '\\' => match chars.next() {
                    // The line goes on in the next one, without its indent.
                    Some((_, '\n')) => text.push('\n'),
                    Some((_, 'r' | 'n')) => {}
                    Some((_, c)) => text.push(c),
                    None => {}
                },
                c => text.push(c),
            }
        }
        let mut lines = text.split('\n');
        let mut joined = lines.next().unwrap_or_default().to_owned();
        joined.extend(lines.map(str::trim_start));
        let joined = joined.strip_prefix('-').unwrap_or(&joined);
        found.push((before[near..].to_owned(), joined.to_owned()));
        at = end;
    }
    found
}

/// How far before a text is looked for the function that sends it.
const NEAR: usize = 60;

#[test]
fn literals_are_read_as_the_compiler_reads_them() {
    let code = "a('\"', \"-ERR one \\\n        two\\r\\n\"); b(\"say \\\"x\\\"\")";
    let texts: Vec<String> = literals(code).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["ERR one two", "say \"x\""]);
}
