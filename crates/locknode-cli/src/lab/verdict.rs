//! The outcome of a run in sentences. Pure: a history and its violations come in, text comes out.

use std::time::Duration;

use locknode_testkit::cluster::{Holder, WireHistory};
use locknode_testkit::history::{Entry, Event, History, LockNo, Window};
use locknode_testkit::{
    Action, ClientAction, GuardMode, Headline, Mark, Promise, Scenario, SimTime, Violation,
    ViolationKind, check_all,
};

use super::layout::{clock, moment};
use super::tally::Tally;
use crate::figures::counted;

/// A judged run.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Whether a rule was broken.
    pub(super) is_bad: bool,
    /// What happened.
    pub(super) story: String,
    /// What that means.
    pub(super) judgement: String,
    /// How it happened, and what to try next.
    pub(super) more: Vec<String>,
    violations: Vec<Violation>,
}

impl Verdict {
    /// Judges what clients believed, by their own notes or by the messages. `scenario` decides what was promised.
    pub(super) fn of(wire: &WireHistory, scenario: &Scenario) -> Self {
        let history = &wire.history;
        let mut tally = Tally::new(history.nodes, history.clients);
        for entry in &history.entries {
            tally.take(entry);
        }
        let promise = Promise::of(scenario).in_world(scenario, history);
        let mut violations = check_all(history, scenario);
        violations.retain(|it| match it.kind {
            // Promised or not, this is the question.
            ViolationKind::Exclusion => true,
            ViolationKind::Continuity if is_late(it) => false,
            kind => CLIENTS.contains(&kind) && promise.has(kind),
        });
        let mut verdict = Self {
            is_bad: !violations.is_empty(),
            story: story(wire, &tally, has_clients(scenario)),
            judgement: String::new(),
            more: Vec::new(),
            violations,
        };
        verdict.judge(wire, scenario, &tally);
        verdict
    }

    /// The head of a timeline.
    pub(super) fn headline(&self, title: String, replay: Option<String>) -> Headline {
        Headline {
            title,
            verdict_is_bad: self.is_bad,
            verdict: format!("{} {}", self.judgement, self.story),
            replay,
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

    fn judge(&mut self, wire: &WireHistory, scenario: &Scenario, tally: &Tally) {
        let (history, guard) = (&wire.history, scenario.setup.guard);
        let since = history.left_out.since.map(moment);
        let is_overlap = |violation: &&Violation| violation.kind == ViolationKind::Exclusion;
        let overlaps: Vec<&Violation> = self.violations.iter().filter(is_overlap).collect();
        self.judgement = match (overlaps.first(), self.violations.first()) {
            (Some(first), _) => {
                let again = match overlaps.len() {
                    1 => String::new(),
                    times => format!(" It happened {}.", counted(times, "time")),
                };
                format!(
                    "{}, from {} on, for {}.{again}",
                    two_held(wire, first),
                    moment(first.from),
                    span(first.until.since(first.from)),
                )
            }
            (None, Some(first)) => {
                let (at, kind) = (moment(first.from), first.kind);
                format!("A PROMISE WAS BROKEN at {at}: {kind}.")
            }
            (None, None) => match (tally.acquired, &since) {
                (0, None) => nobody(wire, scenario),
                (0, Some(since)) => format!("No client was seen to hold it before {since}."),
                (_, Some(since)) => {
                    format!("At no moment before {since} did two clients hold it.")
                }
                (_, None) if !wire.holders.is_empty() => {
                    "No lock was seen to have two holders at the same time.".to_owned()
                }
                (_, None) => "At no moment did two clients hold it.".to_owned(),
            },
        };
        if let Some(since) = since {
            let events = history.left_out.events;
            self.more.push(format!(
                "{} after {since} {} not recorded, and not judged: there were too many. Run it for a shorter time, or with \
                 fewer clients or keys.",
                counted(events, "event"),
                if events == 1 { "is" } else { "are" },
            ));
        }
        if let Some(first) = overlaps.first() {
            self.more.extend(explain(wire, first));
        } else if let Some(first) = self.violations.first() {
            self.more.extend(first.text.lines().map(str::to_owned));
        }
        if tally.refused_writes > 0 {
            self.more.push(format!(
                "Fencing tokens stopped {}, of clients that were paused past the end of their lock or were not its only \
                 holder.",
                counted(tally.refused_writes, "late write")
            ));
        }
        self.more.extend(unseen(wire));
        let is_crash = |entry: &Entry| matches!(entry.event, Event::Down { .. });
        let crashes = history.entries.iter().any(is_crash);
        if guard == GuardMode::Off && !overlaps.is_empty() {
            self.more.push(
                "The nodes ran without their restart guard: after a crash a node served at once and had forgotten its \
                 locks. Leave out --restart-guard off to see the difference."
                    .to_owned(),
            );
        } else if guard == GuardMode::Off && crashes && tally.acquired > 0 {
            self.more.push(
                "The nodes ran without their restart guard, and it did no harm this time. Another seed or a longer run may \
                 show that it can."
                    .to_owned(),
            );
        }
    }
}

/// `8 clients acquired the lock 143 times on 5 nodes, through 12 crashes and 9 partitions.` And what other programs did.
fn story(wire: &WireHistory, tally: &Tally, has_clients: bool) -> String {
    let history = &wire.history;
    let through = match tally.faults() {
        Some(faults) => format!("through {faults}"),
        None => "without any fault".to_owned(),
    };
    let others = u64::try_from(wire.holders.len()).unwrap_or(u64::MAX);
    let own = tally.acquired.saturating_sub(others);
    let mut sentences = Vec::new();
    if has_clients {
        let what = match history.keys.len() {
            1 => "the lock",
            _ => "locks",
        };
        sentences.push(format!(
            "{} acquired {what} {} on {}, {through}.",
            counted(history.clients, "client"),
            counted(own, "time"),
            counted(history.nodes, "node"),
        ));
    }
    let counts = wire.counts;
    if counts.requests > 0 {
        let through = if has_clients {
            String::new()
        } else {
            format!(", {through}")
        };
        sentences.push(format!(
            "Other programs sent {} about locks; nodes granted locks {}, and a majority of the {} granted the same \
             token {}{through}.",
            counted(counts.requests, "request"),
            counted(counts.grants, "time"),
            counted(history.nodes, "node"),
            counted(others, "time"),
        ));
    }
    sentences.join(" ")
}

/// The judgement when no lock was seen to be held.
fn nobody(wire: &WireHistory, scenario: &Scenario) -> String {
    let (nodes, requests) = (wire.history.nodes, wire.counts.requests);
    match (has_clients(scenario), requests) {
        (false, 0) => {
            "Nothing was watched: no program sent a request about a lock through the lab's ports. \
             Traffic that bypasses them is not judged."
                .to_owned()
        }
        (_, 1..) => format!(
            "No lock was seen to be held: no token was granted by {} of {}. Traffic that bypasses the lab's ports is \
             not judged.",
            nodes / 2 + 1,
            counted(nodes, "node"),
        ),
        (true, 0) => {
            "None of the lab's clients ever held the lock, and no other program asked for one."
                .to_owned()
        }
    }
}

/// What other programs did that could not be judged.
fn unseen(wire: &WireHistory) -> impl Iterator<Item = String> {
    let counts = wire.counts;
    let why = " whose effect on locks the messages do not show.";
    let unread = (counts.unread, "script or transaction call", why);
    let left_out = (counts.left_out, "grant", ", because there were too many.");
    let unseen = [unread, left_out]
        .into_iter()
        .filter(|(count, ..)| *count > 0);
    unseen.map(|(count, what, why)| format!("Not judged: {}{why}", counted(count, what)))
}

/// Whether the scenario has clients that lock.
fn has_clients(scenario: &Scenario) -> bool {
    let is_lock = |action: &Action| matches!(action, Action::Client(_, ClientAction::Lock(_)));
    scenario.steps.iter().any(|step| is_lock(&step.what))
}

/// The two holders of an overlap, the earlier one first.
fn of_overlap(history: &History, violation: &Violation) -> Vec<Window> {
    let at = violation.from;
    let mut windows = history.windows();
    windows.retain(|window| {
        violation.key.is_none_or(|key| key == window.key)
            && violation.clients.contains(&window.client)
            && (window.from..window.until).contains(&at)
    });
    windows.sort_by_key(|window| window.from);
    windows
}

/// A holder that is known only by the messages.
fn by_wire(wire: &WireHistory, lock: LockNo) -> Option<&Holder> {
    wire.holders.iter().find(|holder| holder.lock == lock)
}

/// `TWO CLIENTS HELD IT AT THE SAME TIME: client 0 and client 1`, or which lock and tokens if they are known only by the messages.
fn two_held(wire: &WireHistory, violation: &Violation) -> String {
    let windows = of_overlap(&wire.history, violation);
    let is_by_wire = windows.iter().any(|it| by_wire(wire, it.lock).is_some());
    let what = match violation.key.filter(|_| is_by_wire) {
        Some(key) => format!("TWO HELD THE LOCK `{}`", wire.history.key(key)),
        None => "TWO CLIENTS HELD IT".to_owned(),
    };
    let names: Vec<String> = windows.iter().map(|window| name(wire, window)).collect();
    format!("{what} AT THE SAME TIME: {}", names.join(" and "))
}

/// `client 1`, or its token if it is known only by the messages.
fn name(wire: &WireHistory, window: &Window) -> String {
    match by_wire(wire, window.lock) {
        None => format!("client {}", window.client),
        Some(holder) => format!("token {} (ports of client {})", holder.token, holder.client),
    }
}

/// How it happened: which nodes granted the lock to each of the two, and which of them went down in between.
fn explain(wire: &WireHistory, violation: &Violation) -> Vec<String> {
    let history = &wire.history;
    let windows = of_overlap(history, violation);
    let [first, second] = windows.as_slice() else {
        return Vec::new();
    };
    let of_first = granted(history, first);
    let mut lines = vec![format!(
        "{}  {} holds the lock, granted by {}",
        clock(first.from),
        name(wire, first),
        nodes(&of_first)
    )];
    let between = |entry: &&Entry| entry.at > first.from && entry.at < second.from;
    for entry in history.entries.iter().filter(between) {
        if let Event::Down { node, .. } = entry.event
            && of_first.contains(&node)
        {
            lines.push(format!("{}  node {node} goes down", clock(entry.at)));
        }
    }
    let until = match first.until {
        SimTime::NEVER => "until it is released".to_owned(),
        until => format!("until {}", moment(until)),
    };
    lines.push(format!(
        "{}  {} holds the lock, granted by {}; {} holds it {until}",
        clock(second.from),
        name(wire, second),
        nodes(&granted(history, second)),
        name(wire, first),
    ));
    lines
}

/// The nodes that granted a lock.
fn granted(history: &History, window: &Window) -> Vec<u8> {
    let grant = |entry: &Entry| match entry.event {
        Event::Granted { node, attempt, .. } if attempt == window.attempt => Some(node),
        _ => None,
    };
    history.entries.iter().filter_map(grant).collect()
}

/// Whether an extension came after the end of what it extends. The lab does not judge that: on a slow machine a client wakes
/// late, and what it did in time is recorded after the end. An extension over a later holder takes one moment.
fn is_late(violation: &Violation) -> bool {
    violation.from < violation.until
}

fn nodes(numbers: &[u8]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
    format!("nodes {}", numbers.join(","))
}

fn span(span: Duration) -> String {
    match span.as_millis() {
        ms @ 1000.. => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{ms} ms"),
    }
}

/// The rules about what clients believe. What nodes do is recorded some microseconds too late to be judged.
const CLIENTS: [ViolationKind; 5] = [
    ViolationKind::Exclusion,
    ViolationKind::Continuity,
    ViolationKind::FencingDuplicate,
    ViolationKind::FencingOrder,
    ViolationKind::FencedResource,
];

#[cfg(test)]
mod tests {
    use locknode_testkit::cluster::WireCounts;
    use locknode_testkit::history::LeftOut;
    use locknode_testkit::{Fault, LockAction, Setup};

    use super::*;

    fn at(ms: u64) -> SimTime {
        SimTime::from(Duration::from_millis(ms))
    }

    fn run(guard: GuardMode, second_at_ms: u64) -> Verdict {
        let (history, scenario) = two_holders(guard, second_at_ms);
        judged(&history, &scenario)
    }

    /// Clients of the lab's own are judged by what they note.
    fn judged(history: &History, scenario: &Scenario) -> Verdict {
        let wire = WireHistory {
            history: history.clone(),
            ..WireHistory::default()
        };
        Verdict::of(&wire, scenario)
    }

    /// Two clients acquire the lock for a second each, the first one at 100 ms.
    fn two_holders(guard: GuardMode, second_at_ms: u64) -> (History, Scenario) {
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
            let (lock, key) = (u32::from(client), 0);
            push(from, Event::Calls { client, lock, key });
            let acquired = Event::Acquired {
                client,
                lock,
                key,
                attempt: lock,
                fencing: Some(7 + u64::from(client)),
                valid_until: at(from + 1000),
            };
            push(from, acquired);
        }
        let setup = Setup {
            guard,
            clients: 2,
            ..Setup::default()
        };
        let crash = Fault::parse("crash node 1 kill").unwrap();
        let lock = ClientAction::Lock(LockAction::new("k", Duration::from_secs(1)));
        let scenario = Scenario::new(setup).at(Duration::from_millis(1), crash);
        let scenario = scenario.act(Duration::ZERO, 0, lock);
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
    fn a_client_that_wakes_late_has_broken_no_promise() {
        let (mut history, scenario) = two_holders(GuardMode::Memory, 3000);
        history.entries.insert(3, extension(1102, 2000));
        let late = check_all(&history, &scenario);
        let is_seen = late.iter().any(|it| it.kind == ViolationKind::Continuity);
        assert!(is_seen, "{late:?}");
        let verdict = judged(&history, &scenario);
        assert!(!verdict.is_bad, "{verdict:?}");
    }

    #[test]
    fn an_extension_over_a_later_holder_is_a_broken_promise() {
        // The first one ends at 1100, and the second one acquires and releases it meanwhile.
        let (mut history, scenario) = two_holders(GuardMode::Memory, 600);
        history.entries.push(Entry {
            at: at(600),
            event: Event::Releases {
                client: 1,
                lock: 1,
                is_left: false,
            },
        });
        history.entries.push(extension(700, 1700));
        let verdict = judged(&history, &scenario);
        let kinds: Vec<ViolationKind> = verdict.violations.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [ViolationKind::Continuity]);
        assert!(verdict.is_bad);
    }

    #[test]
    fn nothing_is_claimed_about_what_was_not_recorded() {
        let (mut history, scenario) = two_holders(GuardMode::Memory, 1100);
        history.left_out = LeftOut {
            events: 12,
            since: Some(at(2500)),
            messages: 0,
        };
        let verdict = judged(&history, &scenario);
        let want = "At no moment before 2.500s did two clients hold it.";
        assert_eq!(verdict.judgement, want);
        let want = "12 events after 2.500s are not recorded, and not judged: ";
        assert!(verdict.more[0].starts_with(want), "{verdict:?}");
        history.entries.clear();
        let verdict = judged(&history, &scenario);
        let want = "No client was seen to hold it before 2.500s.";
        assert_eq!(verdict.judgement, want);
    }

    #[test]
    fn one_holder_after_the_other_is_good_news() {
        let verdict = run(GuardMode::Memory, 1100);
        assert!(!verdict.is_bad);
        let want = "2 clients acquired the lock 2 times on 5 nodes, through 1 crash.";
        assert_eq!(verdict.story, want);
        assert_eq!(verdict.judgement, "At no moment did two clients hold it.");
        assert_eq!(verdict.more, [""; 0]);
    }

    #[test]
    fn two_at_once_are_bad_news_with_when_who_and_why() {
        for guard in [GuardMode::Off, GuardMode::Memory] {
            let verdict = run(guard, 600);
            assert!(verdict.is_bad);
            let want = "TWO CLIENTS HELD IT AT THE SAME TIME: client 0 and client 1, from 0.600s on, for 500 ms.";
            assert_eq!(verdict.judgement, want);
            assert_eq!(verdict.marks()[0].from, at(600));
            assert_eq!(verdict.marks().len(), 1);
            let tells_why = verdict.more.join(" ").contains("--restart-guard off");
            assert_eq!(tells_why, guard == GuardMode::Off);
        }
    }

    /// The same two as programs that note nothing.
    fn watched(second_at_ms: u64, counts: WireCounts) -> WireHistory {
        let (mut history, _) = two_holders(GuardMode::Memory, second_at_ms);
        let holder = |lock, token: &str| Holder {
            lock,
            client: 0,
            key: 0,
            token: token.into(),
        };
        for entry in &mut history.entries {
            if let Event::Calls { client, .. } | Event::Acquired { client, .. } = &mut entry.event {
                *client = 0;
            }
        }
        WireHistory {
            history,
            holders: vec![holder(0, "aaa"), holder(1, "bbb")],
            counts,
        }
    }

    #[test]
    fn two_tokens_at_once_are_two_holders_though_they_came_by_the_same_ports() {
        let scenario = Scenario::new(Setup::default());
        let counts = WireCounts {
            requests: 10,
            grants: 6,
            ..WireCounts::default()
        };
        let verdict = Verdict::of(&watched(600, counts), &scenario);
        assert!(verdict.is_bad);
        assert_eq!(
            verdict.judgement,
            "TWO HELD THE LOCK `k` AT THE SAME TIME: token aaa (ports of client 0) and token bbb (ports of client 0), \
             from 0.600s on, for 500 ms."
        );
        let verdict = Verdict::of(&watched(1100, counts), &scenario);
        assert!(!verdict.is_bad);
        let want = "No lock was seen to have two holders at the same time.";
        assert_eq!(verdict.judgement, want);
        assert_eq!(
            verdict.story,
            "Other programs sent 10 requests about locks; nodes granted locks 6 times, and a majority of the 5 nodes \
             granted the same token 2 times, through 1 crash."
        );
    }

    #[test]
    fn nothing_is_claimed_about_what_was_not_watched() {
        let scenario = Scenario::new(Setup {
            guard: GuardMode::Off,
            ..Setup::default()
        });
        let mut wire = watched(1100, WireCounts::default());
        wire.holders.clear();
        let is_fault = |entry: &Entry| matches!(entry.event, Event::Fault(_));
        wire.history.entries.retain(is_fault);
        wire.history.entries.push(Entry {
            at: at(1),
            event: Event::Down {
                node: 1,
                how: locknode_testkit::Crash::Kill,
            },
        });
        let verdict = Verdict::of(&wire, &scenario);
        let want = "Nothing was watched: ";
        assert!(verdict.judgement.starts_with(want), "{verdict:?}");
        assert_eq!((&*verdict.story, verdict.more.len()), ("", 0));
        wire.counts.requests = 3;
        wire.counts.unread = 1;
        let verdict = Verdict::of(&wire, &scenario);
        let want = "No lock was seen to be held: no token was granted by 3 of 5 nodes.";
        assert!(verdict.judgement.starts_with(want), "{verdict:?}");
        let want = "Not judged: 1 script or transaction call whose";
        let mut more = verdict.more.iter();
        assert!(more.any(|line| line.starts_with(want)), "{verdict:?}");
    }
}
