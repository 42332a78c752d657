//! What the figures should be, and whether they are.

use locknode_peers::statistics::{median, ratio};

/// A ratio to reach, and the floor or ceiling beyond which nothing is released.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast { target: f64, least: f64 },
    AtMost { target: f64, least: f64 },
}

/// A measured ratio with its bound.
#[derive(Debug)]
pub(crate) struct Finding {
    label: String,
    /// One a round.
    ratios: Vec<f64>,
    bound: Bound,
}

impl Finding {
    /// A figure of the last table.
    pub(crate) fn new(label: String, ratios: Vec<f64>, bound: Bound) -> Self {
        Self {
            label,
            ratios,
            bound,
        }
    }
}

impl Bound {
    fn verdict(self, ratio: f64) -> &'static str {
        let (is_met, is_tolerable) = match self {
            Self::AtLeast { target, least } => (ratio >= target, ratio >= least),
            Self::AtMost { target, least } => (ratio <= target, ratio <= least),
        };
        match (is_met, is_tolerable) {
            (true, _) => "met",
            (false, true) => "least met",
            (false, false) => "missed",
        }
    }

    fn columns(self) -> String {
        match self {
            Self::AtLeast { target, least } => format!(">= {target} | {least}"),
            Self::AtMost { target, least } => format!("<= {target} | {least}"),
        }
    }
}

/// How much more CPU than ours a client should need for a lock, with so many in flight.
pub(crate) fn cost(client: &str, in_flight: u32) -> Option<Bound> {
    let (target, least) = match (client, in_flight) {
        ("redis-rs", 64) => (4.0, 2.5),
        ("rslock", 64) => (5.0, 3.5),
        ("node-redlock", 64) => (15.0, 8.0),
        // It blocks: with more than one in flight, its threads are what is measured.
        ("redlock-py", 1) => (10.0, 6.0),
        _ => return None,
    };
    Some(Bound::AtLeast { target, least })
}

/// Prints the last table, if there is a figure for it.
pub(crate) fn print(findings: &[Finding]) {
    let mut findings = findings
        .iter()
        .filter(|it| !it.ratios.is_empty())
        .peekable();
    if findings.peek().is_none() {
        return;
    }
    println!("\n## Targets\n\n| figure | measured | target | least | |\n|---|---|---|---|---|");
    for finding in findings {
        println!(
            "| {} | {} | {} | {} |",
            finding.label,
            ratio(&finding.ratios, 2),
            finding.bound.columns(),
            finding.bound.verdict(median(&finding.ratios)),
        );
    }
}

/// Locks a second, ours to theirs.
pub(crate) const END_TO_END: Bound = Bound::AtLeast {
    target: 7.0,
    least: 4.0,
};
/// p99 of our acquire with a silent node to that without.
pub(crate) const SILENCE: Bound = Bound::AtMost {
    target: 1.2,
    least: 2.0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_compares_in_the_direction_of_the_bound() {
        let rows = [
            (END_TO_END, 7.0, "met"),
            (END_TO_END, 6.9, "least met"),
            (END_TO_END, 3.9, "missed"),
            (SILENCE, 1.2, "met"),
            (SILENCE, 1.3, "least met"),
            (SILENCE, 2.1, "missed"),
            (SILENCE, f64::NAN, "missed"),
        ];
        for (bound, ratio, expected) in rows {
            assert_eq!(bound.verdict(ratio), expected, "{bound:?} at {ratio}");
        }
    }
}
