//! What came of a script, and what tests ask of it.

use std::fmt::Debug;
use std::time::Duration;

use locknode_testkit::history::Event;
use locknode_testkit::{
    Counters, History, Scenario, SimTime, Violation, ViolationKind, Window, World, check, check_all,
};

/// A script that was played.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) history: History,
    pub(crate) counters: Counters,
    /// Rules that were broken although they were promised.
    pub(crate) promised: Vec<Violation>,
    /// All rules that were broken.
    pub(crate) all: Vec<Violation>,
}

/// The rules that a script breaks although they are promised.
pub(crate) fn verdict(scenario: &Scenario) -> Vec<ViolationKind> {
    kinds(&play(scenario).promised)
}

/// The rules that a script breaks, promised or not.
pub(crate) fn damage(scenario: &Scenario) -> Vec<ViolationKind> {
    kinds(&play(scenario).all)
}

/// Plays a script as it is read from its own text.
pub(crate) fn play(scenario: &Scenario) -> Outcome {
    let text = scenario.to_string();
    let read = Scenario::parse(&text).expect("the text of a script");
    assert_eq!(&read, scenario, "{text}");
    let mut world = World::new(&read);
    world.run();
    let counters = world.counters().clone();
    let history = world.into_history();
    Outcome {
        promised: check(&history, scenario),
        all: check_all(&history, scenario),
        history,
        counters,
    }
}

/// Plays a script that has to keep every promise, with the shipped node and client.
pub(crate) fn safe(scenario: &Scenario) -> Outcome {
    assert_eq!(scenario.setup.bug, None);
    let outcome = play(scenario);
    let again = play(scenario);
    assert_eq!(
        outcome.history, again.history,
        "two runs differ\n{scenario}"
    );
    let broken = &outcome.promised;
    assert!(
        broken.is_empty(),
        "{}\n{scenario}\n{}",
        listed(broken),
        outcome.story()
    );
    outcome
}

/// Plays a script with a mistake in it, which has to break this promise.
pub(crate) fn breaks(scenario: &Scenario, kind: ViolationKind) -> Outcome {
    let outcome = play(scenario);
    let found = kinds(&outcome.promised);
    assert!(
        found.contains(&kind),
        "{kind}, not {found:?}\n{scenario}\n{}",
        outcome.story()
    );
    outcome
}

/// Plays a script that goes beyond what is promised, and has to break this rule; every promise is kept.
pub(crate) fn costs(scenario: &Scenario, kind: ViolationKind) -> Outcome {
    let outcome = safe(scenario);
    let found = kinds(&outcome.all);
    assert!(
        found.contains(&kind),
        "{kind}, not {found:?}\n{scenario}\n{}",
        outcome.story()
    );
    outcome
}

impl Outcome {
    /// The times in which a client believed that it held a lock.
    pub(crate) fn windows(&self, client: u8) -> Vec<Window> {
        let windows = self.history.windows().into_iter();
        windows.filter(|window| window.client == client).collect()
    }

    /// The only such time.
    pub(crate) fn window(&self, client: u8) -> Window {
        let windows = self.windows(client);
        assert_eq!(windows.len(), 1, "client {client}\n{}", self.story());
        windows[0]
    }

    /// When something happened, each time.
    pub(crate) fn times(&self, mut is_it: impl FnMut(&Event) -> bool) -> Vec<SimTime> {
        let entries = self.history.entries.iter();
        entries
            .filter(|entry| is_it(&entry.event))
            .map(|entry| entry.at)
            .collect()
    }

    /// How often it happened.
    pub(crate) fn count(&self, is_it: impl FnMut(&Event) -> bool) -> usize {
        self.times(is_it).len()
    }

    /// Fails with all that happened unless this is so.
    #[track_caller]
    pub(crate) fn check(&self, is_so: bool) {
        assert!(is_so, "{}", self.story());
    }

    /// Fails with all that happened unless both are equal.
    #[track_caller]
    pub(crate) fn check_eq<T: PartialEq + Debug>(&self, found: T, want: T) {
        assert_eq!(found, want, "{}", self.story());
    }

    /// Fails with all that happened unless something happened this often.
    #[track_caller]
    pub(crate) fn happens(&self, is_it: impl FnMut(&Event) -> bool, times: usize) {
        self.check_eq(self.count(is_it), times);
    }

    /// When it happened first.
    pub(crate) fn first(&self, is_it: impl FnMut(&Event) -> bool) -> SimTime {
        let times = self.times(is_it);
        *times
            .first()
            .unwrap_or_else(|| panic!("it never happened\n{}", self.story()))
    }

    /// When it happened last.
    pub(crate) fn last(&self, is_it: impl FnMut(&Event) -> bool) -> SimTime {
        let times = self.times(is_it);
        *times
            .last()
            .unwrap_or_else(|| panic!("it never happened\n{}", self.story()))
    }

    /// How long after one thing another one happened, each the first time.
    pub(crate) fn between(
        &self,
        earlier: impl FnMut(&Event) -> bool,
        later: impl FnMut(&Event) -> bool,
    ) -> Duration {
        let (earlier, later) = (self.first(earlier), self.first(later));
        assert!(
            earlier <= later,
            "{earlier} is later than {later}\n{}",
            self.story()
        );
        later.since(earlier)
    }

    /// When a node served after it had been down for the first time.
    pub(crate) fn serves_again(&self, node: u8) -> SimTime {
        let down = self.first(down(node));
        let times = self.times(serving(node)).into_iter();
        let mut times = times.filter(|at| *at > down);
        times
            .next()
            .unwrap_or_else(|| panic!("node {node} never serves again\n{}", self.story()))
    }

    /// When the lock of a client would have ended on a node: as the node said when it granted it last.
    pub(crate) fn ends(&self, node: u8, client: u8) -> SimTime {
        let entries = self.history.entries.iter().rev();
        let mut ends = entries.filter_map(|entry| match entry.event {
            Event::Granted {
                node: n,
                client: c,
                ends,
                ..
            } if (n, c) == (node, client) => Some(ends),
            _ => None,
        });
        ends.next()
            .unwrap_or_else(|| panic!("never granted\n{}", self.story()))
    }

    /// Whether a rule was broken, promised or not.
    pub(crate) fn has(&self, kind: ViolationKind) -> bool {
        self.all.iter().any(|violation| violation.kind == kind)
    }

    /// All fencing tokens, in the order of their windows.
    pub(crate) fn fences(&self) -> Vec<u64> {
        self.history
            .windows()
            .iter()
            .filter_map(|window| window.fencing)
            .collect()
    }

    /// Fencing held although exclusion did not: the fenced resource turned the late holder away.
    pub(crate) fn assert_fenced(&self) {
        for kind in [
            ViolationKind::FencingOrder,
            ViolationKind::FencingDuplicate,
            ViolationKind::FencedResource,
            ViolationKind::NodeCounter,
        ] {
            assert!(!self.has(kind), "{}", listed(&self.all));
        }
        assert!(self.counters.of("write-fenced-off") > 0, "{}", self.story());
        assert!(self.count(write(true)) > 0, "{}", self.story());
    }

    /// All that happened, a line each.
    pub(crate) fn story(&self) -> String {
        let line = |entry: &locknode_testkit::history::Entry| {
            format!("{:>14} {:?}\n", entry.at.to_string(), entry.event)
        };
        self.history.entries.iter().map(line).collect()
    }
}

/// A node granted a lock to a client.
pub(crate) fn granted(node: u8, client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Granted { node: n, client: c, .. } if (n, c) == (node, client))
}

/// A node refused a client with this word.
pub(crate) fn refused(node: u8, client: u8, word: &str) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Refused { node: n, client: c, why } if (n, c, why) == (node, client, word))
}

/// A node told a client of a grant or an extension.
pub(crate) fn answered(node: u8, client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Answered { node: n, client: c, .. } if (n, c) == (node, client))
}

/// A node started, in quarantine or not, for this reason.
pub(crate) fn started(node: u8, quarantined: bool, word: &str) -> impl Fn(&Event) -> bool {
    move |event| {
        matches!(*event, Event::Started { node: n, is_quarantined, reason }
            if (n, is_quarantined, reason) == (node, quarantined, word))
    }
}

/// A node went down.
pub(crate) fn down(node: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Down { node: n, .. } if n == node)
}

/// A node serves.
pub(crate) fn serving(node: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Serving { node: n } if n == node)
}

/// A node let a lock go because it was told to.
pub(crate) fn freed(node: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Freed { node: n, .. } if n == node)
}

/// A client held a lock from then on.
pub(crate) fn acquired(client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Acquired { client: c, .. } if c == client)
}

/// A client did not get a lock.
pub(crate) fn failed(client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Failed { client: c, .. } if c == client)
}

/// A client did not get a lock, for this reason.
pub(crate) fn failed_for(client: u8, word: &str) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Failed { client: c, why, .. } if (c, why) == (client, word))
}

/// A client was told that its lock is lost.
pub(crate) fn lost(client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Lost { client: c, .. } if c == client)
}

/// A client's lock was extended.
pub(crate) fn renewed(client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Validity { client: c, is_extension: true, .. } if c == client)
}

/// A client's extension did not succeed.
pub(crate) fn not_extended(client: u8) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::NotExtended { client: c, .. } if c == client)
}

/// A write came to the resource, which took it or not.
pub(crate) fn write(accepted: bool) -> impl Fn(&Event) -> bool {
    move |event| matches!(*event, Event::Wrote { is_accepted, .. } if is_accepted == accepted)
}

fn kinds(violations: &[Violation]) -> Vec<ViolationKind> {
    let mut kinds: Vec<_> = violations.iter().map(|violation| violation.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn listed(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(|violation| format!("{violation}\n"))
        .collect()
}
