//! Reports that come too late: a client reports the end of a lock to its holder before that end, by its own clock.
//!
//! A client that stands still when its lock ends reports it when it goes on. Only for simulated worlds: where callers run in threads
//! of their own, they note a report a moment after it came.

use std::time::Duration;

use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::fault::{Fault, Who};
use crate::history::index::Call;
use crate::scenario::Scenario;
use crate::span::SimTime;

/// Ends that were reported too late, or never.
pub(crate) fn late(facts: &Facts<'_>, scenario: &Scenario) -> Vec<Violation> {
    let held = facts.index.calls.iter().filter(|it| it.window.is_some());
    let late = held.filter_map(|call| {
        let at = call.let_go.map_or(facts.history.end, |(at, _)| at);
        let slack = noise(scenario, call.client) + SLACK;
        (at > excused(facts, call, slack) + slack).then(|| told(facts, call, at))
    });
    late.take(FINDINGS_MAX).collect()
}

/// When a report was due at the latest: at once, or when the client goes on after it stood still.
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
    let text = format!(
        "client {} was not told of the end of its lock of `{}` at {} before {at}",
        call.client,
        facts.history.key(call.key),
        call.valid_until
    );
    Violation {
        clients: vec![call.client],
        key: Some(call.key),
        ..Violation::new(ViolationKind::LateLoss, call.valid_until, at, text)
    }
}

/// By how much the clock of a client may show less than it is.
fn noise(scenario: &Scenario, client: u8) -> Duration {
    let spans = scenario.faults().filter_map(|fault| match fault {
        Fault::Noise(who, span) if who == Who::Client(client) => Some(span),
        _ => None,
    });
    spans.max().unwrap_or_default()
}

/// Roundings.
const SLACK: Duration = Duration::from_micros(10);
