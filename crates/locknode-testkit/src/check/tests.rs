//! Each rule by a history written by hand, with its boundaries; and the sweeps against all pairs.

mod exclusion;
mod expectation;
mod fencing;
mod liveness;
mod node;
mod reports;
mod votes;
mod writes;

use std::time::Duration;

use crate::check::facts::Facts;
use crate::check::violation::{Violation, ViolationKind};
use crate::check::{check, check_all};
use crate::fault::Fault;
use crate::history::tests::{ms, story};
use crate::history::{History, Window};
use crate::scenario::{GuardMode, Scenario, Setup};
use crate::span::{SimTime, nanos};

/// What a checker says of a history.
fn found(events: &str, checker: impl Fn(&Facts<'_>) -> Vec<Violation>) -> Vec<Violation> {
    checker(&Facts::of(&story(events)))
}

fn kinds(violations: &[Violation]) -> Vec<ViolationKind> {
    violations.iter().map(|violation| violation.kind).collect()
}

/// The kind of a violation, as tables have it.
fn kind(violation: &Violation) -> String {
    violation.kind.to_string()
}

/// Since when and until when a rule was broken, in milliseconds, as tables have it.
fn span(violation: &Violation) -> String {
    let ms = |at: SimTime| at.as_nanos() / 1_000_000;
    format!("{}..{}", ms(violation.from), ms(violation.until))
}

/// The rows of a table, a line each.
fn rows<const COLUMNS: usize>(table: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    let lines = table.lines().filter(|row| !row.trim().is_empty());
    lines.map(|row| {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let count = columns.len();
        columns
            .try_into()
            .unwrap_or_else(|_| panic!("{count} columns: {row}"))
    })
}

/// A scenario with these faults, which stand with commas between.
fn with_faults(guard: GuardMode, faults: &str) -> Scenario {
    let setup = Setup {
        guard,
        ..Setup::default()
    };
    let faults = faults.split(", ").filter(|fault| !fault.is_empty());
    faults.fold(Scenario::new(setup), |scenario, fault| {
        let fault = Fault::parse(fault).expect("a fault");
        scenario.at(Duration::from_secs(1), fault)
    })
}

/// Judges the rows of a table: a name, what happens after `before`, and what is found then. Returns all that was found, with
/// the names of the rows.
fn judge<'t>(
    before: &str,
    table: &'t str,
    shown: fn(&Violation) -> String,
    checker: impl Fn(&Facts<'_>) -> Vec<Violation>,
) -> Vec<(&'t str, Violation)> {
    let mut all = Vec::new();
    for [name, events, want] in rows(table) {
        let found = found(&format!("{before};{events}"), &checker);
        let texts: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(texts.join(" "), want, "{name}");
        all.extend(found.into_iter().map(|violation| (name, violation)));
    }
    all
}

#[test]
fn only_what_is_promised_is_a_violation_of_a_scenario() {
    let events = "0 c0 calls l0; 0 c1 calls l1; 5 n0,1,2 grants a0 until 1000; 5 n3,4 grants a1 until 1000; \
        6 n2 grants a1 until 1000; 10 c0 acquires l0 until 900 fence 2; 20 c1 acquires l1 until 900 fence 2";
    let guarded = Scenario::new(Setup::default());
    use ViolationKind::{Exclusion, FencingDuplicate, Majority};
    // Node 2 let one lock go for the other.
    let history = story(events);
    let all = kinds(&check_all(&history, &guarded));
    assert_eq!(all, [Majority, Exclusion, FencingDuplicate]);
    assert_eq!(kinds(&check(&history, &guarded)), all);
    let unguarded = with_faults(GuardMode::Off, "crash node 2 kill");
    assert_eq!(kinds(&check(&history, &unguarded)), [FencingDuplicate]);
    let lost = story(&format!("{events}; 7 n0 dies; 7 n0 starts"));
    assert_eq!(kinds(&check_all(&lost, &guarded)), all);
    assert_eq!(kinds(&check(&lost, &unguarded)), [FencingDuplicate]);
}

/// A hundred thousand locks one after the other, which keep every promise.
fn check_many(lock: impl Fn(u64, u64) -> String) -> History {
    let locks: Vec<String> = (0..100_000).map(|n| lock(n * 10, n)).collect();
    let mut history = story(&locks.join("\n"));
    history.end = ms(1_000_000);
    let scenario = Scenario::new(Setup {
        liveness_from: Some(SimTime::ZERO),
        ..Setup::default()
    });
    assert_eq!(check(&history, &scenario), []);
    history
}

#[test]
fn a_hundred_thousand_windows_are_looked_through_at_once() {
    check_many(|from, n| {
        let (granted, held, wrote, until) = (from + 1, from + 2, from + 3, from + 9);
        let fence = n + 1;
        format!(
            "{from} c0 calls l{n}; {granted} n0,1,2 grants a{n} until {until}
            {held} c0 acquires l{n} until {until} fence {fence}; {wrote} c0 writes l{n} fence {fence}"
        )
    });
}

/// Neither is what clients leave behind when they die.
#[test]
fn a_hundred_thousand_deaths_are_looked_through_at_once() {
    let history = check_many(|from, n| {
        let (granted, held, dead, until) = (from + 1, from + 2, from + 3, from + 9);
        format!(
            "{from} c0 calls l{n}; {granted} n0,1,2 grants a{n} until {until}
            {held} c0 acquires l{n} until {until}; {dead} c0 dies"
        )
    });
    let windows = history.windows();
    let is_cut = |it: &Window| nanos(it.until.since(it.from)) == 1_000_000;
    assert!(windows.len() == 100_000 && windows.iter().all(is_cut));
}
