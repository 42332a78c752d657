use super::*;
use crate::doctor::clock_rate::ClockRate;
use crate::doctor::examination::RoundTrips;
use crate::server_info::ServerInfo;

const LOCKNODE: &str = "locknode_version:0.1.0\nrestart_guard:on\nrestart_state:serving\ndurability:long\nmax_ttl_ms:60000\n";
const REDIS: &str =
    "redis_version:7.0.15\nrole:master\naof_enabled:1\nmaxmemory_policy:noeviction\n";

fn shown(info: &str) -> Shown {
    Shown {
        info: ServerInfo::parse(info.as_bytes()),
        appendfsync: Some("always".to_owned()),
        rate: Some(ClockRate {
            ppm: 12.0,
            error_ppm: 30.0,
        }),
        ahead: Some(1e9),
        round_trips: RoundTrips {
            count: 80,
            median: Duration::from_micros(90),
            longest: Duration::from_micros(900),
        },
        machine: None,
        is_open: false,
    }
}

fn nodes(shown: impl IntoIterator<Item = Shown>) -> Vec<Examined> {
    let named = |(index, shown)| Examined {
        address: format!("n{index}"),
        shown: Ok(shown),
    };
    shown.into_iter().enumerate().map(named).collect()
}

/// Three nodes of which the first is another.
fn beside_others(first: Shown) -> Vec<Examined> {
    nodes([first, shown(LOCKNODE), shown(LOCKNODE)])
}

#[track_caller]
fn check(nodes: &[Examined], expected: &[(Severity, &str)]) {
    let findings = diagnose(nodes);
    let found: Vec<_> = findings.iter().map(|it| (it.severity, it.name)).collect();
    assert_eq!(found, expected, "{findings:#?}");
    for finding in findings {
        assert!(
            finding.advice.ends_with('.') && !finding.text.ends_with('.'),
            "{finding:?}"
        );
    }
}

use Severity::{Note, Problem, Warning};

#[test]
fn three_healthy_nodes_are_healthy() {
    check(&beside_others(shown(LOCKNODE)), &[]);
    check(&beside_others(shown(REDIS)), &[]);
}

#[test]
fn one_sick_node_among_three() {
    let with = |info: &str, change: &str| {
        let field = change.split(':').next().expect("a field");
        let others = info
            .lines()
            .filter(|line| line.split(':').next() != Some(field));
        others.chain([change]).collect::<Vec<_>>().join("\n")
    };
    for (info, change, expected) in [
        (LOCKNODE, "restart_guard:off", &[(Problem, "no-guard")][..]),
        (LOCKNODE, "durability:none", &[(Note, "no-directory")]),
        (
            LOCKNODE,
            "restart_state:quarantine",
            &[(Warning, "quarantine"), (Warning, "bare-majority")],
        ),
        (
            LOCKNODE,
            "restart_state:full",
            &[(Warning, "disk-full"), (Warning, "bare-majority")],
        ),
        (
            LOCKNODE,
            "restart_state:failed",
            &[(Warning, "disk-failed"), (Warning, "bare-majority")],
        ),
        (LOCKNODE, "max_ttl_ms:30000", &[(Warning, "max-ttl")]),
        (LOCKNODE, "locknode_version:0.2.0", &[(Warning, "versions")]),
        (
            REDIS,
            "role:slave",
            &[(Problem, "replica"), (Warning, "bare-majority")],
        ),
        (
            REDIS,
            "redis_mode:sentinel",
            &[(Problem, "sentinel"), (Warning, "bare-majority")],
        ),
        (REDIS, "maxmemory_policy:allkeys-lru", &[(Note, "evicts")]),
        (
            REDIS,
            "maxmemory_policy:allkeys-lru\nmaxmemory:100",
            &[(Problem, "evicts")],
        ),
        (REDIS, "aof_enabled:0", &[(Warning, "forgets")]),
        (
            REDIS,
            "aof_last_write_status:err",
            &[(Warning, "disk-failed")],
        ),
        (REDIS, "connected_slaves:1", &[(Warning, "replicas")]),
        (REDIS, "cluster_enabled:1", &[(Warning, "cluster")]),
        (
            REDIS,
            "loading:1",
            &[(Warning, "loading"), (Warning, "bare-majority")],
        ),
        ("", "x:1", &[(Warning, "unknown")]),
    ] {
        check(&beside_others(shown(&with(info, change))), expected);
    }
    let late = Shown {
        appendfsync: Some("everysec".to_owned()),
        ..shown(REDIS)
    };
    check(&beside_others(late), &[(Warning, "forgets-some")]);
    let open = Shown {
        is_open: true,
        ..shown(REDIS)
    };
    check(&beside_others(open), &[(Warning, "open")]);
}

#[test]
fn clocks_and_round_trips() {
    for (ppm, error_ppm, expected) in [
        (900.0, 10.0, None),
        (5000.0, 4500.0, None),
        (1100.0, 10.0, Some(Warning)),
        (-9000.0, 10.0, Some(Warning)),
        (10_100.0, 10.0, Some(Problem)),
        (-500_000.0, 10.0, Some(Problem)),
    ] {
        let rate = Some(ClockRate { ppm, error_ppm });
        let expected: Vec<_> = expected.map(|it| (it, "clock-rate")).into_iter().collect();
        check(
            &beside_others(Shown {
                rate,
                ..shown(LOCKNODE)
            }),
            &expected,
        );
    }
    for (median_ms, longest_ms, expected) in [
        (49, 199, None),
        (1, 201, Some("pauses")),
        (51, 900, Some("slow")),
    ] {
        let round_trips = RoundTrips {
            count: 80,
            median: Duration::from_millis(median_ms),
            longest: Duration::from_millis(longest_ms),
        };
        let expected: Vec<_> = expected.map(|it| (Warning, it)).into_iter().collect();
        check(
            &beside_others(Shown {
                round_trips,
                ..shown(LOCKNODE)
            }),
            &expected,
        );
    }
    let silent = Shown {
        rate: None,
        ahead: None,
        ..shown(LOCKNODE)
    };
    check(&beside_others(silent), &[(Note, "no-clock")]);
    let ahead = Shown {
        ahead: Some(1e9 + 1.1),
        ..shown(LOCKNODE)
    };
    check(&beside_others(ahead), &[(Note, "wall-clocks")]);
}

#[test]
fn nodes_beside_one_another() {
    let run = |id: &str| shown(&format!("{LOCKNODE}run_id:{id}\n"));
    check(
        &nodes([run("a"), run("b"), run("a")]),
        &[(Problem, "twice")],
    );
    let on = |machine: &str| Shown {
        machine: machine.parse().ok(),
        ..shown(LOCKNODE)
    };
    check(
        &nodes([on("10.0.0.1"), on("10.0.0.2"), on("10.0.0.2")]),
        &[(Warning, "one-machine")],
    );
    check(&nodes([shown(REDIS)]), &[(Note, "one-node")]);
    check(&nodes([shown(REDIS), shown(REDIS)]), &[(Note, "even")]);
    // Nodes whose guard is off have no max-ttl to compare.
    let off = shown(&LOCKNODE.replace("guard:on", "guard:off"));
    check(&beside_others(off), &[(Problem, "no-guard")]);
    let mut away = beside_others(shown(LOCKNODE));
    away[0].shown = Err("connection refused".to_owned());
    check(&away, &[(Warning, "away"), (Warning, "bare-majority")]);
    away[1].shown = Err("connection refused".to_owned());
    check(
        &away,
        &[
            (Problem, "no-majority"),
            (Warning, "away"),
            (Warning, "away"),
        ],
    );
    assert!(
        diagnose(&[]).iter().all(|it| it.severity != Note),
        "no nodes"
    );
}
