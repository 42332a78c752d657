use super::found;
use crate::check::majority::majority;
use crate::check::story::{Story, ms};
use crate::fault::Crash;
use crate::history::Event;

/// A lock that is believed in from 10 ms to a second.
fn story() -> Story {
    Story::new().held(0, 0, 10, 1000)
}

#[test]
fn a_majority_holds_the_lock_at_each_moment_of_its_window() {
    let kill = Crash::Kill;
    let five = || story().votes(5, &[0, 1, 2, 3, 4], 0, 1005);
    let three = || story().votes(5, &[0, 1, 2], 0, 1005);
    let two = || story().votes(5, &[0, 1], 0, 1005);
    let rows = [
        ("three of five", three(), None),
        ("two of five", two(), Some((10, 1000))),
        (
            "one ends as the belief does",
            two().granted(5, 2, 0, 1000),
            None,
        ),
        (
            "one ends sooner",
            two().granted(5, 2, 0, 999),
            Some((999, 1000)),
        ),
        (
            "one is granted as the belief begins",
            two().granted(10, 2, 0, 1010),
            None,
        ),
        (
            "one is granted later",
            two().granted(11, 2, 0, 1011),
            Some((10, 11)),
        ),
        (
            "another takes over",
            two().granted(5, 2, 0, 500).granted(500, 3, 0, 1000),
            None,
        ),
        (
            "another takes over too late",
            two().granted(5, 2, 0, 500).granted(501, 3, 0, 1001),
            Some((500, 501)),
        ),
        (
            "extended in time",
            two().granted(5, 2, 0, 500).prolonged(499, 2, 0, 1000),
            None,
        ),
        (
            "shortened",
            three().prolonged(499, 2, 0, 800),
            Some((800, 1000)),
        ),
        ("one lets go", three().freed(400, 2, 0), Some((400, 1000))),
        ("one lets go of another's", three().freed(400, 2, 1), None),
        (
            "one grants it to another",
            three().granted(400, 2, 1, 2000),
            Some((400, 1000)),
        ),
        (
            "one grants it to another, and another takes over",
            three().granted(400, 2, 1, 2000).granted(400, 3, 0, 2000),
            None,
        ),
        (
            "one grants another key to another",
            three().at(
                400,
                Event::Granted {
                    node: 2,
                    key: 1,
                    attempt: 1,
                    client: 1,
                    counter: 0,
                    ends: ms(2000),
                },
            ),
            None,
        ),
        (
            "one had granted it to another",
            two().granted(3, 2, 1, 4).granted(5, 2, 0, 1005),
            None,
        ),
        ("one goes down and stays", three().down(400, 2, kill), None),
        (
            "one forgets",
            three().down(400, 2, kill).starts(400, 2, false),
            Some((400, 1000)),
        ),
        (
            "two of five forget",
            five()
                .down(400, 2, kill)
                .starts(401, 2, false)
                .down(500, 3, kill)
                .starts(501, 3, false),
            None,
        ),
        (
            "in quarantine",
            three().down(400, 2, kill).starts(500, 2, true),
            None,
        ),
        (
            "out of quarantine",
            three()
                .down(400, 2, kill)
                .starts(500, 2, true)
                .serves(900, 2),
            Some((900, 1000)),
        ),
        (
            "as the belief ends",
            three()
                .down(400, 2, kill)
                .starts(500, 2, true)
                .serves(1000, 2),
            None,
        ),
        (
            "restored",
            three()
                .down(400, 2, kill)
                .starts(500, 2, false)
                .restored(500, 2, 0, 1100),
            None,
        ),
        (
            "restored for too short a time",
            three()
                .down(400, 2, kill)
                .starts(500, 2, false)
                .restored(500, 2, 0, 900),
            Some((900, 1000)),
        ),
        (
            "down and up at once, with the lock",
            three()
                .down(5, 2, kill)
                .starts(5, 2, false)
                .restored(5, 2, 0, 1100),
            None,
        ),
        ("never started", two().starts(2000, 2, false), None),
        (
            "the world ends before",
            two()
                .granted(5, 2, 0, 60_001)
                .extended(900, 0, 0, 70_000)
                .prolonged(899, 0, 0, 70_001)
                .prolonged(899, 1, 0, 70_001),
            None,
        ),
    ];
    for (name, story, want) in rows {
        let found = found(story, majority);
        let spans: Vec<_> = found.iter().map(|it| (it.from, it.until)).collect();
        let want: Vec<_> = want
            .into_iter()
            .map(|(from, until)| (ms(from), ms(until)))
            .collect();
        assert_eq!(spans, want, "{name}");
    }
}

#[test]
fn it_is_told_which_nodes_were_missing() {
    let story = story()
        .votes(5, &[0, 1, 2], 0, 1005)
        .freed(400, 2, 0)
        .fault(300, "reset all");
    let found = found(story, majority);
    let text = "400ms..1s majority: client 0 believed to hold `a` with 2 of 5 nodes behind it
  lock 0 of client 0: called for at 9ms, held 10ms..1s
    attempt 0: node 0 granted 5ms; node 1 granted 5ms; node 2 granted 5ms, freed 400ms
  300ms: reset all";
    assert_eq!(found[0].to_string(), text);
    assert_eq!(
        (&*found[0].nodes, &*found[0].clients),
        (&[2, 3, 4][..], &[0][..])
    );
}
