//! The failover race that made people look for something else: a replica is promoted before the key reached it.

use std::time::Duration;

use locknode_testkit::{
    ClientAction, Fault, GuardMode, Headline, Hook, LockAction, Mark, Report, Scenario, Setup,
    Timeline, ViolationKind, check_all,
};

const MS: Duration = Duration::from_millis(1);

/// Client 0 gets the lock, node 0 is lost at once, client 1 asks.
fn script(setup: Setup) -> Scenario {
    let lock = |hold: Duration| -> ClientAction {
        LockAction::new("invoice", 5_000 * MS)
            .tries(5)
            .hold(hold)
            .into()
    };
    Scenario::new(setup)
        .act(1_000 * MS, 0, lock(3_000 * MS))
        .after(Hook::Acquired(0), MS / 10, Fault::Promote(0))
        .act(1_500 * MS, 1, lock(2_000 * MS))
}

fn setup(nodes: u8, replica_lag: Option<Duration>) -> Setup {
    Setup {
        nodes,
        clients: 2,
        replica_lag,
        guard: GuardMode::Off,
        run_for: 6_000 * MS,
        ..Setup::seeded(7)
    }
}

#[test]
fn one_server_with_an_asynchronous_replica_gives_the_lock_to_two() {
    let report = Report::with_messages(&script(setup(1, Some(50 * MS))));
    let all = check_all(report.history(), report.scenario());
    let overlap = all
        .iter()
        .find(|violation| violation.kind == ViolationKind::Exclusion);
    let overlap = overlap.expect("the replica did not know of the lock");
    assert_eq!(overlap.clients, [0, 1]);
    assert_eq!(report.counters().of("replica-promoted"), 1);

    let mark = Mark {
        from: overlap.from,
        until: overlap.until,
        clients: overlap.clients.clone(),
        nodes: Vec::new(),
        text: overlap.to_string(),
    };
    let html = Timeline::new(report.history())
        .headline(Headline {
            title: "A replica is promoted before the key reached it".to_owned(),
            verdict_is_bad: true,
            verdict: "two clients hold the lock".to_owned(),
            replay: None,
        })
        .marks([mark])
        .html();
    assert!(html.contains("both believed they held"), "{html}");
}

/// A replica that was told in time knows of the lock: the race is what does the harm.
#[test]
fn a_replica_that_was_told_in_time_refuses_the_second() {
    let report = Report::of(&script(setup(1, Some(MS / 100))));
    assert_eq!(report.counters().of("replica-promoted"), 1);
    let windows = report.history().windows();
    let overlaps = windows.iter().any(|one| {
        windows
            .iter()
            .any(|other| one.lock != other.lock && one.from < other.until && other.from < one.until)
    });
    assert!(!overlaps, "{windows:?}");
}

#[test]
fn five_independent_nodes_give_the_lock_to_one() {
    for guard in [GuardMode::Off, GuardMode::Long] {
        let report = Report::of(&script(Setup {
            guard,
            ..setup(5, None)
        }));
        let all = check_all(report.history(), report.scenario());
        assert!(
            all.iter()
                .all(|violation| violation.kind != ViolationKind::Exclusion),
            "{all:?}"
        );
        let windows = report.history().windows();
        assert_eq!(
            windows.iter().filter(|window| window.client == 0).count(),
            1
        );
        assert!(
            windows
                .iter()
                .all(|window| window.client == 0 || window.from >= windows[0].until)
        );
    }
}
