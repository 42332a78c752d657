use super::*;
use crate::{Engine, EngineConfig, Peer, Time, WallTime};

fn moment(ms: u64) -> Moment {
    Moment {
        time: Time::from_millis(ms),
        wall: WallTime::from_unix_nanos((1_700_000_000_000 + ms) * 1_000_000),
    }
}

/// Runs commands, one to a line.
fn node(commands: &str) -> Engine {
    let engine = Engine::new(EngineConfig::new(1, "run"), moment(0));
    let mut session = engine.connect(Peer::default(), Time::ZERO).expect("room");
    let mut out = Vec::new();
    for line in commands
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        engine
            .batch(moment(1))
            .execute(&mut session, &args, &mut out);
    }
    engine
}

#[track_caller]
fn shows(text: &str, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(text.lines().any(|it| it == line), "no {line:?} in\n{text}");
    }
}

#[test]
fn commands_are_counted_by_name_and_result() {
    let engine = node(
        "set a x nx px 1000
         set a y nx px 1000
         get a
         get b
         set a
         incr a
         delifeq a z
         lock.extend a z 5
         pexpire a 70000
         delifeq a x",
    );
    shows(
        &engine.metrics(moment(2)),
        "# TYPE locknode_commands_total counter
         locknode_commands_total{command=\"set\",result=\"ok\"} 2
         locknode_commands_total{command=\"set\",result=\"rejected\"} 1
         locknode_commands_total{command=\"incr\",result=\"error\"} 1
         locknode_errors_total{code=\"ERR\"} 2
         locknode_reads_total{result=\"hit\"} 1
         locknode_reads_total{result=\"miss\"} 1
         locknode_grants_total 1
         locknode_refusals_total 1
         locknode_extensions_total 1
         locknode_releases_total 1
         locknode_foreign_attempts_total{operation=\"release\"} 1
         locknode_foreign_attempts_total{operation=\"extend\"} 1
         locknode_lock_held_seconds_bucket{le=\"0.001024\"} 1
         locknode_lock_held_seconds_bucket{le=\"+Inf\"} 1
         locknode_lock_held_seconds_count 1
         locknode_locks{db=\"0\"} 0
         locknode_connections_accepted_total 1
         locknode_state{state=\"serving\"} 1
         locknode_state{state=\"quarantine\"} 0",
    );
}

/// Names are as Prometheus wants them, so that its own linter has nothing to say.
#[test]
fn names_and_help_follow_the_conventions() {
    for metric in METRICS {
        let (name, help) = (metric.name(), metric.help());
        let is_counter = metric.kind() == MetricKind::Counter;
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        assert!(
            name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()),
            "{name}"
        );
        assert!(
            help.ends_with('.') && !help.contains(['\n', '\\']),
            "{name}"
        );
        let same = METRICS.iter().filter(|other| other.name == name);
        assert_eq!(same.count(), 1, "{name}");
    }
}

/// Whatever clients send, a label is one line, and there are no more series than before.
#[test]
fn clients_choose_no_labels() {
    let quiet = node("").metrics(moment(2)).lines().count();
    let mut commands = String::from("client setname \"evil\n");
    for n in 0..1000 {
        commands += &format!("nosuch{n} a\nset key{n} v\nget \"{n}\n");
    }
    let text = node(&commands).metrics(moment(2));
    let added = text.lines().count() - quiet;
    assert!(added <= 30, "{added} more lines:\n{text}");
    assert!(!text.contains("evil") && !text.contains("nosuch") && !text.contains("key9"));
    assert_eq!(Escaped("a\"b\\c\nd\u{e9}").to_string(), "a\\\"b\\\\c?d?");
}

/// Keys are named only if somebody wants that.
#[test]
fn the_keys_held_longest_and_refused_most_have_ranks() {
    let commands = "set a x
         set b x
         set b y nx
         set b z nx px 5
         setnx a y";
    let text = node(commands).metrics(moment(11));
    shows(
        &text,
        "locknode_longest_held_seconds{rank=\"1\"} 0.01
         locknode_longest_held_seconds{rank=\"2\"} 0.01
         locknode_most_refused{rank=\"1\"} 2
         locknode_most_refused{rank=\"2\"} 1",
    );
    assert!(!text.contains("key="), "{text}");
    let text = node(&format!("config set metrics-keys yes\n{commands}")).metrics(moment(11));
    shows(
        &text,
        "locknode_most_refused{rank=\"1\",db=\"0\",key=\"b\"} 2
         locknode_most_refused{rank=\"2\",db=\"0\",key=\"a\"} 1",
    );
}
