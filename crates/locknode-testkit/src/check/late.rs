//! What callers are told too late: a holder learns of the end of its lock before that end, by its own clock.
//!
//! A client that stands still when its lock ends is told when it goes on. Only for simulated worlds: where callers run in threads
//! of their own, they note what they were told a moment after they were.

use std::time::Duration;

use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::fault::{Fault, Who};
use crate::history::index::Call;
use crate::scenario::{Deed, Scenario};
use crate::span::SimTime;

/// Ends that were told too late, or never.
pub(crate) fn late(facts: &Facts<'_>, scenario: &Scenario) -> Vec<Violation> {
    let held = facts.index.calls.iter().filter(|it| it.window.is_some());
    let late = held.filter_map(|call| {
        let at = call.let_go.map_or(facts.history.end, |(at, _)| at);
        let slack = noise(scenario, call.client) + SLACK;
        (at > excused(facts, call, slack) + slack).then(|| told(facts, call, at))
    });
    late.take(FINDINGS_MAX).collect()
}

/// When a client can have been told at the latest: at once, or when it goes on that stood still.
fn excused(facts: &Facts<'_>, call: &Call, slack: Duration) -> SimTime {
    let mine = facts.index.standstills.iter();
    let mine = mine.filter(|stop| stop.who == Who::Client(call.client));
    mine.fold(call.valid_until, |due, stop| {
        if stop.from <= due + slack {
            due.max(stop.until)
        } else {
            due
        }
    })
}

fn told(facts: &Facts<'_>, call: &Call, at: SimTime) -> Violation {
    Violation {
        kind: ViolationKind::LateLoss,
        from: call.valid_until,
        until: at,
        clients: vec![call.client],
        nodes: Vec::new(),
        key: Some(call.key),
        text: format!(
            "client {} was not told of the end of its lock of `{}` at {} before {at}",
            call.client,
            facts.history.key(call.key),
            call.valid_until
        ),
    }
}

/// By how much the clock of a client may show less than it is.
fn noise(scenario: &Scenario, client: u8) -> Duration {
    let spans = scenario.steps.iter().filter_map(|step| match step.what {
        Deed::Fault(Fault::Noise(who, span)) if who == Who::Client(client) => Some(span),
        _ => None,
    });
    spans.max().unwrap_or_default()
}

/// Roundings.
const SLACK: Duration = Duration::from_micros(10);
