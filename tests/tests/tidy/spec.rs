//! SPEC.md, the code and the tests name the same requirements.

use std::collections::BTreeMap;
use std::path::Path;

use super::{files, root};

/// Where requirements are kept.
const CODE: [&str; 4] = [
    "crates/locknode-engine/src",
    "crates/locknode/src",
    "crates/redlock-client/src",
    "crates/redlock-proto/src",
];

/// Where they are kept and tested.
const EVERYTHING: [&str; 2] = ["crates", "tests"];

/// The numbers that SPEC.md gives.
fn requirements() -> Vec<String> {
    let spec = std::fs::read_to_string(root().join("SPEC.md")).expect("SPEC.md");
    let numbers = spec.lines().filter_map(|line| {
        let (number, _) = line.strip_prefix("* **")?.split_once("**")?;
        Some(number.to_owned())
    });
    numbers.collect()
}

/// The marks in a text, such as `[G1]`.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.split('[').skip(1).filter_map(|rest| {
        let (mark, _) = rest.split_once(']')?;
        let (letter, number) = mark.split_at_checked(1)?;
        let is_mark = "GLFSC".contains(letter)
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit());
        is_mark.then_some(mark)
    })
}

pub(super) fn is_test_file(path: &Path) -> bool {
    path.starts_with("tests")
        || path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs")
}

#[test]
fn every_requirement_has_code_and_a_test() {
    let mut code = BTreeMap::<String, usize>::new();
    let mut tests = BTreeMap::<String, usize>::new();
    for (path, text) in EVERYTHING.iter().flat_map(|dir| files(dir)) {
        if path.starts_with("tests/tests/tidy") {
            continue;
        }
        let (kept, tested) = match text.split_once("#[cfg(test)]") {
            _ if is_test_file(&path) => ("", text.as_str()),
            Some((kept, tested)) => (kept, tested),
            None => (text.as_str(), ""),
        };
        if CODE.iter().any(|dir| path.starts_with(dir)) {
            for mark in marks(kept) {
                *code.entry(mark.to_owned()).or_default() += 1;
            }
        }
        for mark in marks(tested) {
            *tests.entry(mark.to_owned()).or_default() += 1;
        }
    }
    let requirements = requirements();
    assert!(
        requirements.len() > 30,
        "SPEC.md is not read: {requirements:?}"
    );
    let without = |places: &BTreeMap<String, usize>| -> Vec<String> {
        let missing = requirements
            .iter()
            .filter(|number| !places.contains_key(*number));
        missing.cloned().collect()
    };
    let (no_code, no_test) = (without(&code), without(&tests));
    assert!(no_code.is_empty(), "no code is marked with {no_code:?}");
    assert!(no_test.is_empty(), "no test is marked with {no_test:?}");
    let unknown: Vec<&String> = code
        .keys()
        .chain(tests.keys())
        .filter(|mark| !requirements.contains(*mark))
        .collect();
    assert!(unknown.is_empty(), "SPEC.md does not have {unknown:?}");
}
