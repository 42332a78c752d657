//! Broken promises, for people and for machines.

use std::fmt::Write as _;

use locknode_testkit::{Report, Violation};

use crate::json::Object;

/// The first promises that a world broke, in words: the worst in at most this many lines, each other one in a line.
pub(super) fn text(report: &Report, lines_of_worst: usize) -> String {
    let violations = report.gravest_first();
    let mut text = String::new();
    for (place, violation) in violations.iter().take(VIOLATIONS_SHOWN_MAX).enumerate() {
        let lines_max = if place == 0 { lines_of_worst } else { 1 };
        for line in violation.to_string().lines().take(lines_max) {
            text.extend(["  ", line, "\n"]);
        }
    }
    if violations.len() > VIOLATIONS_SHOWN_MAX {
        let _ = writeln!(
            text,
            "  ... {} more",
            violations.len() - VIOLATIONS_SHOWN_MAX
        );
    }
    text
}

/// The first promises that a world broke, for machines.
pub(super) fn objects(report: &Report) -> Vec<Object> {
    let object = |violation: &Violation| {
        Object::default()
            .text("kind", violation.kind.name())
            .number("from_ns", violation.from.as_nanos())
            .number("until_ns", violation.until.as_nanos())
            .numbers(
                "clients",
                violation.clients.iter().map(|client| u64::from(*client)),
            )
            .numbers("nodes", violation.nodes.iter().map(|node| u64::from(*node)))
            .text("text", &violation.text)
    };
    let first = report.gravest_first().into_iter();
    first.take(VIOLATIONS_SHOWN_MAX).map(object).collect()
}

/// The first few say it all.
const VIOLATIONS_SHOWN_MAX: usize = 3;
