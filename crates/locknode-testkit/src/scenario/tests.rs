use super::*;
use crate::fault::{Crash, Links, Way};

const S: Duration = Duration::from_secs(1);

#[test]
fn a_scenario_is_read_as_it_was_written() {
    let setup = Setup {
        seed: u64::MAX,
        bug: Some(Bug::VotesKept),
        client: ClientKind::Plain,
        guard: GuardMode::Always,
        replica_lag: Some(S / 100),
        shards: 4,
        watches_half: true,
        liveness_from: Some(SimTime::from(45 * S)),
        ..Setup::default()
    };
    let mut scenario = Scenario::new(setup)
        .at(4 * S, Fault::Crash(2, Crash::PowerLoss))
        .at(4 * S, Fault::Cut(Links::ALL, Way::Both));
    let key = || "k".into();
    let (node, line, words) = (3, 1, "GET k ; PTTL k".into());
    let lock = LockAction::new("k", 3 * S).hold(2 * S);
    for act in [
        lock.extend_every(S).write_every(S / 2).into(),
        LockAction::new("k", 3 * S).tries(4).into(),
        ClientAction::Ask { node, line, words },
        ClientAction::Extend { key: key(), ttl: S },
        ClientAction::Write {
            key: key(),
            takes: S,
        },
        ClientAction::Release { key: key() },
        ClientAction::GiveUp { key: key() },
        ClientAction::Look { key: key() },
    ] {
        scenario = scenario.act(2 * S, 0, act);
    }
    for ending in Ending::ALL {
        let act = LockAction::new("k", 3 * S).ending(ending);
        scenario = scenario.act(S, 1, act.into());
    }
    for (_, _, hook) in Hook::FORMS {
        scenario = scenario.after(hook(1), S / 1000, Fault::Restart(2));
    }
    for dialect in Dialect::ALL {
        scenario.setup.dialect = dialect;
        let text = scenario.to_string();
        assert_eq!(Scenario::parse(&text), Ok(scenario.clone()), "{text}");
    }
}

#[test]
fn extensions_to_another_ttl_and_renewals_are_words_of_a_lock() {
    let lock = LockAction::new("k", 3 * S).hold(2 * S).write_every(S);
    let rows = [
        (
            lock.clone().extend_every(S),
            "lock k ttl 3s tries 1 hold 2s extend 1s write 1s then release",
        ),
        (
            lock.clone().extend_every(S).extend_to(2 * S),
            "lock k ttl 3s tries 1 hold 2s extend 1s to 2s write 1s then release",
        ),
        (
            lock.clone().renew_every(S),
            "lock k ttl 3s tries 1 hold 2s renew every 1s write 1s then release",
        ),
        (
            lock.clone().within(2 * S),
            "lock k ttl 3s tries 1 within 2s hold 2s write 1s then release",
        ),
        (
            lock.renew_every(S).renew_for(9 * S),
            "lock k ttl 3s tries 1 hold 2s renew every 1s for 9s write 1s then release",
        ),
    ];
    for (lock, text) in rows {
        assert_eq!(ClientAction::from(lock.clone()).to_string(), text);
        let line = format!("locknode-scenario 1\nat 1s client 0 {text}");
        let expected = Scenario::new(Setup::default()).act(S, 0, lock.into());
        assert_eq!(Scenario::parse(&line), Ok(expected), "{line}");
    }
}

#[test]
fn what_is_no_scenario_is_told_where_and_why() {
    let rows = [
        ("guard maybe", "off, memory, long or always"),
        ("bug unknown", "the name of a bug"),
        ("delay 3ms 1ms", "the lesser time first"),
        ("at 1s do nothing", "crash, crash-in, restart"),
        ("at 1s do crash node 5 kill", "line 2: there is no node 5"),
        (
            "on lost client 3 nth 1 after 0s do calm\nnodes 5",
            "line 2: there is no client 3",
        ),
        (
            "at 1s client 7 lock k ttl 1s",
            "line 2: there is no client 7",
        ),
        (
            "at 1s client 0 dance k",
            "lock, extend, release, give-up, look, write or ask",
        ),
        (
            "on sunday node 1 nth 1 after 0s do calm",
            "started, serving",
        ),
        ("lock k ttl 3s until monday", "tries, within, hold"),
        ("lock k ttl 3s hold 1s to 2s", "to behind extend"),
        ("lock k ttl 3s renew 1s", "expected every"),
        (
            "lock k ttl 3s renew every 2s",
            "line 2: a renewal every 1ms to 1.5s",
        ),
        (
            "lock k ttl 3s renew every 1s for 0s",
            "a renewal for 0s is none",
        ),
        (
            "lock k ttl 3s extend 1s to 0s",
            "an extension to at least 1ms",
        ),
        (
            "client plain\nat 1s client 0 lock k ttl 3s extend 1s to 2s",
            "line 3: the plain client",
        ),
        (
            "bug votes-kept\nat 1s client 0 lock k ttl 3s renew every 1s",
            "line 3: the plain client",
        ),
    ];
    let rows = rows.map(|(line, expected)| {
        let step = if line.starts_with("lock") {
            "at 1s client 0 "
        } else {
            ""
        };
        (format!("locknode-scenario 1\n{step}{line}"), expected)
    });
    let heads = [
        ("", "locknode-scenario 1"),
        ("seed 1", "line 1: expected locknode-scenario"),
        ("locknode-scenario 2", "expected 1"),
        (
            "locknode-scenario 1\n\n# fine\nnodes 17",
            "line 4: expected a number from 1 to 16",
        ),
    ];
    let heads = heads.map(|(text, expected)| (text.to_owned(), expected));
    for (text, expected) in heads.into_iter().chain(rows) {
        let error = Scenario::parse(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
