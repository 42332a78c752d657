//! What came of a run, in plain words. Pure: a history and what checkers found in it come in, sentences come out.

use std::time::Duration;

use locknode_testkit::history::{Event, History, Window};
use locknode_testkit::{
    Guarding, Headline, Mark, Promise, Scenario, SimTime, Violation, ViolationKind, check_all,
};

use super::board::clock;
use super::tally::Tally;
use super::telling::counted;

/// A judged run.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Whether a rule was broken.
    pub(super) is_bad: bool,
    /// What happened.
    pub(super) story: String,
    /// What that means.
    pub(super) judgement: String,
    /// What led to it, and what to try next.
    pub(super) more: Vec<String>,
    violations: Vec<Violation>,
}

impl Verdict {
    /// Judges what clients believed. `scenario` says what was promised.
    pub(super) fn of(history: &History, scenario: &Scenario) -> Self {
        let mut tally = Tally::new(history.clients);
        for entry in &history.entries {
            tally.take(entry);
        }
        let promise = Promise::of(scenario).in_world(scenario, history);
        let mut violations = check_all(history, scenario);
        violations.retain(|it| match it.kind {
            // That is what everybody wants to know.
            ViolationKind::Exclusion => true,
            ViolationKind::Continuity if is_late(it) => false,
            kind => CLIENTS.contains(&kind) && promise.has(kind),
        });
        let mut verdict = Self {
            is_bad: !violations.is_empty(),
            story: story(history, &tally),
            judgement: String::new(),
            more: Vec::new(),
            violations,
        };
        verdict.judge(history, scenario.setup.guard, &tally);
        verdict
    }

    /// What stands above a timeline.
    pub(super) fn headline(&self, title: String, replay: String) -> Headline {
        Headline {
            title,
            verdict_is_bad: self.is_bad,
            verdict: format!("{} {}", self.judgement, self.story),
            replay: Some(replay),
        }
    }

    /// Red bands for a timeline.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let mark = |violation: &Violation| Mark {
            from: violation.from,
            until: violation.until,
            clients: violation.clients.clone(),
            nodes: violation.nodes.clone(),
            text: violation.text.lines().next().unwrap_or_default().to_owned(),
        };
        self.violations.iter().map(mark).collect()
    }

    /// When the first rule was broken.
    pub(super) fn first_at(&self) -> Option<SimTime> {
        self.violations.first().map(|violation| violation.from)
    }

    fn judge(&mut self, history: &History, guard: Guarding, tally: &Tally) {
        let overlaps: Vec<&Violation> = self
            .violations
            .iter()
            .filter(|violation| violation.kind == ViolationKind::Exclusion)
            .collect();
        self.judgement = match (overlaps.first(), self.violations.first()) {
            (Some(first), _) => {
                let again = match len(&overlaps) {
                    1 => String::new(),
                    times => format!(" And {} more.", counted(times - 1, "time")),
                };
                format!(
                    "TWO CLIENTS HELD IT AT THE SAME TIME: {}, from {} on, for {}.{again}",
                    clients(first),
                    moment(first.from),
                    span(first.until.since(first.from)),
                )
            }
            (None, Some(first)) => {
                format!(
                    "A PROMISE WAS BROKEN at {}: {}.",
                    moment(first.from),
                    first.kind
                )
            }
            (None, None) => match (tally.acquired, history.left_out.since) {
                (0, None) => "Nobody ever held it.".to_owned(),
                (0, Some(since)) => format!("Nobody held it before {}.", moment(since)),
                (_, None) => "At no moment did two clients hold it.".to_owned(),
                (_, Some(since)) => {
                    format!(
                        "At no moment before {} did two clients hold it.",
                        moment(since)
                    )
                }
            },
        };
        if let Some(since) = history.left_out.since {
            self.more.push(format!(
                "{} after {} {} not recorded, and not judged: there were too many. Run it for a shorter time, or with \
                 fewer clients or keys.",
                counted(history.left_out.events, "event"),
                moment(since),
                if history.left_out.events == 1 { "is" } else { "are" },
            ));
        }
        if let Some(first) = overlaps.first() {
            self.more.extend(explain(history, first));
        } else if let Some(first) = self.violations.first() {
            self.more.extend(first.text.lines().map(str::to_owned));
        }
        if tally.refused_writes > 0 {
            self.more.push(format!(
                "Fencing tokens turned away {} of clients that had slept through the end of their lock or did not \
                 have it alone.",
                counted(tally.refused_writes, "late write")
            ));
        }
        let crashes = history
            .entries
            .iter()
            .any(|entry| matches!(entry.event, Event::Down { .. }));
        if guard == Guarding::Off && !overlaps.is_empty() {
            self.more.push(
                "The nodes ran without their restart guard: one that crashed came back at once and had forgotten whom it \
                 had granted the lock. Leave --restart-guard off out and see the difference."
                    .to_owned(),
            );
        } else if guard == Guarding::Off && crashes {
            self.more.push(
                "The nodes ran without their restart guard, and it went well this time. It need not: try another seed, or \
                 longer."
                    .to_owned(),
            );
        }
    }
}

/// `8 clients acquired the lock 143 times on 5 nodes, through 12 crashes and 9 partitions.`
fn story(history: &History, tally: &Tally) -> String {
    let through = tally
        .faults()
        .map_or("and nothing went wrong".to_owned(), |faults| {
            format!("through {faults}")
        });
    let what = if history.keys.len() == 1 {
        "the lock"
    } else {
        "locks"
    };
    format!(
        "{} acquired {what} {} on {}, {through}.",
        counted(history.clients, "client"),
        counted(tally.acquired, "time"),
        counted(history.nodes, "node"),
    )
}

/// How it came to it: from which nodes each of the two had the lock, and which nodes forgot that in between.
fn explain(history: &History, violation: &Violation) -> Vec<String> {
    let at = violation.from;
    let windows = history.windows();
    let mut holders: Vec<&Window> = windows
        .iter()
        .filter(|window| violation.clients.contains(&window.client))
        .filter(|window| window.from <= at && window.until > at)
        .collect();
    holders.sort_by_key(|window| window.from);
    let [first, second] = holders.as_slice() else {
        return Vec::new();
    };
    let of_first = granted(history, first);
    let mut lines = vec![format!(
        "{}  client {} has the lock, from {}",
        clock(first.from),
        first.client,
        nodes(&of_first)
    )];
    for entry in &history.entries {
        match entry.event {
            Event::Down { node, .. }
                if of_first.contains(&node) && entry.at > first.from && entry.at < second.from =>
            {
                let line = format!("{}  node {node} goes down, and forgets it", clock(entry.at));
                lines.push(line);
            }
            _ => {}
        }
    }
    lines.push(format!(
        "{}  client {} has the lock, from {}; client {} has it until {}",
        clock(second.from),
        second.client,
        nodes(&granted(history, second)),
        first.client,
        moment(first.until)
    ));
    lines
}

/// The nodes that granted a lock.
fn granted(history: &History, window: &Window) -> Vec<u8> {
    let by = history
        .entries
        .iter()
        .filter_map(|entry| match entry.event {
            Event::Granted { node, attempt, .. } if attempt == window.attempt => Some(node),
            _ => None,
        });
    by.collect()
}

/// Whether an extension came after the end of what it extends. That is no matter of the lab: on a slow machine a client is
/// woken late, and what it had done in time is recorded after the end. Who was robbed of a lock extends it in one moment.
fn is_late(violation: &Violation) -> bool {
    violation.from < violation.until
}

fn nodes(numbers: &[u8]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
    format!("nodes {}", numbers.join(","))
}

fn clients(violation: &Violation) -> String {
    let numbers: Vec<String> = violation.clients.iter().map(u8::to_string).collect();
    match numbers.len() {
        1 => format!("client {}", numbers.concat()),
        _ => format!("clients {}", numbers.join(" and ")),
    }
}

fn moment(at: SimTime) -> String {
    format!("{:.3}s", at.since(SimTime::ZERO).as_secs_f64())
}

fn span(span: Duration) -> String {
    match span.as_millis() {
        ms @ 1000.. => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{ms} ms"),
    }
}

fn len<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

/// The rules about what clients believe. What nodes do is seen too late to judge it by a microsecond.
const CLIENTS: [ViolationKind; 5] = [
    ViolationKind::Exclusion,
    ViolationKind::Continuity,
    ViolationKind::FencingDuplicate,
    ViolationKind::FencingOrder,
    ViolationKind::FencedResource,
];

#[cfg(test)]
mod tests {
    use locknode_testkit::history::{Entry, Event, LeftOut};
    use locknode_testkit::{Fault, Setup};

    use super::*;

    fn at(ms: u64) -> SimTime {
        SimTime::from(Duration::from_millis(ms))
    }

    fn run(guard: Guarding, second_at_ms: u64) -> Verdict {
        let (history, scenario) = two_holders(guard, second_at_ms);
        Verdict::of(&history, &scenario)
    }

    /// Two clients acquire the lock for a second each, the first one at 100 ms.
    fn two_holders(guard: Guarding, second_at_ms: u64) -> (History, Scenario) {
        let mut history = History {
            nodes: 5,
            clients: 2,
            end: at(5000),
            keys: vec!["k".into()],
            ..History::default()
        };
        let mut push = |ms, event| history.entries.push(Entry { at: at(ms), event });
        push(1, Event::Fault("crash node 1 kill".into()));
        for (client, from) in [(0u8, 100), (1, second_at_ms)] {
            let lock = u32::from(client);
            push(
                from,
                Event::Calls {
                    client,
                    lock,
                    key: 0,
                },
            );
            push(
                from,
                Event::Acquired {
                    client,
                    lock,
                    key: 0,
                    attempt: lock,
                    fencing: Some(7 + u64::from(client)),
                    valid_until: at(from + 1000),
                },
            );
        }
        let scenario = Scenario::new(Setup {
            guard,
            clients: 2,
            ..Setup::default()
        })
        .at(
            Duration::from_millis(1),
            Fault::parse("crash node 1 kill").unwrap(),
        );
        (history, scenario)
    }

    fn extension(at_ms: u64, until_ms: u64) -> Entry {
        Entry {
            at: at(at_ms),
            event: Event::Validity {
                client: 0,
                lock: 0,
                valid_until: at(until_ms),
                is_extension: true,
            },
        }
    }

    #[test]
    fn who_was_woken_late_has_broken_no_promise() {
        let (mut history, scenario) = two_holders(Guarding::Memory, 3000);
        history.entries.insert(3, extension(1102, 2000));
        let late = check_all(&history, &scenario);
        assert!(
            late.iter().any(|it| it.kind == ViolationKind::Continuity),
            "{late:?}"
        );
        let verdict = Verdict::of(&history, &scenario);
        assert!(!verdict.is_bad, "{verdict:?}");
    }

    #[test]
    fn who_extends_over_the_head_of_a_later_holder_was_robbed() {
        // The first one ends at 1100, and the second one has it and lets it go again.
        let (mut history, scenario) = two_holders(Guarding::Memory, 600);
        history.entries.push(Entry {
            at: at(600),
            event: Event::Releases {
                client: 1,
                lock: 1,
                is_left: false,
            },
        });
        history.entries.push(extension(700, 1700));
        let verdict = Verdict::of(&history, &scenario);
        let kinds: Vec<ViolationKind> = verdict.violations.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [ViolationKind::Continuity]);
        assert!(verdict.is_bad);
    }

    #[test]
    fn of_what_was_not_recorded_nothing_is_promised() {
        let (mut history, scenario) = two_holders(Guarding::Memory, 1100);
        history.left_out = LeftOut {
            events: 12,
            since: Some(at(2500)),
            messages: 0,
        };
        let verdict = Verdict::of(&history, &scenario);
        let want = "At no moment before 2.500s did two clients hold it.";
        assert_eq!(verdict.judgement, want);
        let want = "12 events after 2.500s are not recorded, and not judged: ";
        assert!(verdict.more[0].starts_with(want), "{verdict:?}");
        history.entries.clear();
        let verdict = Verdict::of(&history, &scenario);
        assert_eq!(verdict.judgement, "Nobody held it before 2.500s.");
    }

    #[test]
    fn one_holder_after_the_other_is_good_news() {
        let verdict = run(Guarding::Memory, 1100);
        assert!(!verdict.is_bad);
        assert_eq!(
            verdict.story,
            "2 clients acquired the lock 2 times on 5 nodes, through 1 crash."
        );
        assert_eq!(verdict.judgement, "At no moment did two clients hold it.");
        assert_eq!(verdict.more, [""; 0]);
    }

    #[test]
    fn two_at_once_are_bad_news_with_when_who_and_why() {
        for guard in [Guarding::Off, Guarding::Memory] {
            let verdict = run(guard, 600);
            assert!(verdict.is_bad);
            let want = "TWO CLIENTS HELD IT AT THE SAME TIME: clients 0 and 1, from 0.600s on, for 500 ms.";
            assert_eq!(verdict.judgement, want);
            assert_eq!(verdict.first_at(), Some(Duration::from_millis(600).into()));
            assert_eq!(verdict.marks().len(), 1);
            let tells_why = verdict
                .more
                .iter()
                .any(|line| line.contains("--restart-guard off"));
            assert_eq!(tells_why, guard == Guarding::Off);
        }
    }
}
