//! The pictures of a scripted story and of a long random run, and what a file must be whatever is in it.

mod stories;
mod well_formed;

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::history::tests::{empty, ms};
use crate::history::{Entry, Event, Message};
use crate::timeline::tests::stories::{random_run, restart_story};
use crate::timeline::tests::well_formed::well_formed;

#[test]
fn the_picture_of_a_story_is_the_one_that_was_looked_at() {
    let (history, headline, marks) = restart_story();
    let timeline = Timeline::new(&history).headline(headline).marks(marks);
    is_snapshot("restart_story.svg", &timeline.svg());
    let page = timeline.html();
    for part in [
        "Client 0 and client 2 both believed they held &quot;orders&quot; from 1.206s to 1.9s.",
        "The resource rejected a write",
        "kit --seed 7",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn whoever_points_at_something_reads_what_it_is() {
    let (history, _, marks) = restart_story();
    let svg = Timeline::new(&history).marks(marks).svg();
    for title in [
        "client 0 asked for orders from 200ms to 206ms and got it",
        "client 1 asked for orders from 1.25s to 1.72s and did not get it: taken",
        "client 0 believed that it held orders from 206ms to 1.9s (fencing token 1, attempt 0, extended once): it then began",
        "client 2 believed that it held orders from 1.206s to 3.17s (fencing token 2, attempt 1, not extended): the run ended",
        "client 0 to node 3: SET k v NX PX 2000 (sent at 200ms, did not arrive)",
        "node 2 to client 2: +OK (sent at 1.204s, arrived at 1.206s)",
        "node 0 held orders for client 0 (attempt 0) from 202ms to 1.903s, when it was released; extended once. Its client acquired",
        "node 2 had granted orders to client 0 (attempt 0) until 2.702s, went down at 800ms and did not know of it until",
        "node 2 is down from 800ms to 1s: kill",
        "node 4 is up but quarantined from 2.25s to 2.8s",
        "at 2.5s node 4 refused client 1: LOADING",
        "client 1 stands still from 1.3s to 1.7s: pause (the process does nothing, its clocks go on)",
        "client 0 is down from 2.75s to 3s",
        "the clock of node 1 shows 500ms at 500ms: right, and runs at the right pace",
        "the clock of node 1 shows 1s at 1.025s: 25ms behind, and runs 20 % too slow",
        "at 705ms client 0 extended its lock; valid until 2.67s",
        "at 2.6s client 2 could not extend its lock: not-held",
        "at 500ms client 0 wrote under orders with fencing token 1: taken",
        "at 1.62s client 0 wrote under orders with fencing token 1: rejected",
        "fault at 800ms: crash node 2 kill",
        "1.206s to 1.9s: exclusion: client 0 and client 2 hold",
    ] {
        assert!(svg.contains(&format!("<title>{title}")), "{title}");
    }
    // Of clocks that are always right the axis tells.
    assert!(!svg.contains("the clock of node 0"));
}

#[test]
fn every_violation_is_seen_and_named_and_faults_that_end_say_so() {
    let mut history = empty(1, 1, 20_000, 0);
    history.tell("1000 fault delay client all node 0 30ms; 9000 fault delay client all node 0 0s");
    // Six, of a millisecond each.
    let mark = |number: u64| Mark {
        from: ms(2_000 * number),
        until: ms(2_000 * number + 1),
        clients: vec![0],
        nodes: Vec::new(),
        text: format!(
            "overlap {number} of clients 0 and 1 in the lock of a long name, and what had led to it until then"
        ),
    };
    let svg = Timeline::new(&history).marks((1..=6).map(mark)).svg();
    for number in 1..=6 {
        let text = mark(number).text;
        assert!(svg.contains(&format!(">{text}</text>")), "{text} in {svg}");
    }
    let band = svg.lines().find(|line| line.contains("class=\"ln-band"));
    assert!(
        band.is_some_and(|band| band.contains("width=\"4\"")),
        "{band:?}"
    );
    assert!(svg.contains(">delay client all node 0 30ms</text>"));
    assert!(
        svg.contains(">end of delay client all node 0</text>"),
        "{svg}"
    );
}

#[test]
fn what_a_node_reads_from_its_log_is_held_again() {
    let mut history = empty(1, 1, 1_000, 1);
    history.tell(
        "100 n0 grants a0 until 900; 200 n0 dies power-loss
        300 n0 starts quarantined because a start after a crash; 300 n0 restores a0 until 900",
    );
    let svg = Timeline::new(&history).svg();
    for title in [
        "node 0 held a for client 0 (attempt 0) from 100ms to 200ms, when the node went down",
        "node 0 had granted a to client 0 (attempt 0) until 900ms, went down at 200ms and did not know of it until 300ms",
        "node 0 held a for client 0 (attempt 0) from 300ms to 900ms, when its deadline passed, read from its log",
    ] {
        assert!(svg.contains(&format!("<title>{title}")), "{title}");
    }
}

#[test]
fn one_history_gives_one_file() {
    for seed in 0..3 {
        let draw = || Timeline::new(&random_run(seed, 5, 3, 20, 2)).html();
        assert_eq!(draw(), draw(), "seed {seed}");
    }
}

#[test]
fn files_are_ascii_and_well_formed() {
    let (story, headline, marks) = restart_story();
    let mut histories = vec![
        History::default(),
        History {
            nodes: 1,
            ..History::default()
        },
        hostile("</script><script>alert(1)</script>"),
        hostile("\u{0}\u{7}]]>&amp;\u{1f512}\"' onload='x"),
        story,
    ];
    for (seed, nodes, clients, keys) in [(1, 5, 3, 1), (2, 3, 8, 2), (3, 7, 2, 9)] {
        histories.push(random_run(seed, nodes, clients, 10, keys));
    }
    for (place, history) in histories.iter().enumerate() {
        let timeline = Timeline::new(history)
            .headline(headline.clone())
            .marks(marks.clone());
        let svg = timeline.svg();
        assert_eq!(well_formed(&svg), Ok(()), "history {place}");
        let page = timeline.html();
        let body = page.split_once("<header>").map_or("", |(_, body)| body);
        let body = body.split_once("<script>").map_or("", |(body, _)| body);
        assert_eq!(
            well_formed(&format!("<header>{body}")),
            Ok(()),
            "history {place}"
        );
        for text in [&svg, &page] {
            assert!(text.is_ascii(), "history {place}");
        }
    }
}

#[test]
fn no_text_of_a_history_becomes_markup() {
    let name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
    let history = hostile(name);
    let mark = Mark {
        text: name.to_owned(),
        ..Mark::default()
    };
    let headline = Headline {
        title: name.to_owned(),
        verdict: name.to_owned(),
        replay: Some(name.to_owned()),
        verdict_is_bad: true,
    };
    let timeline = Timeline::new(&history).headline(headline).marks([mark]);
    let page = timeline.html();
    assert_eq!(page.matches("<script").count(), 1);
    for (text, file) in [("page", page), ("picture", timeline.svg())] {
        assert!(!file.contains("<img"), "{text}");
        assert!(file.contains("&lt;img src=x"), "{text}");
    }
}

#[test]
fn a_file_loads_nothing() {
    let page = Timeline::new(&random_run(1, 5, 3, 10, 2)).html();
    for loading in ["src=", "url(http", "@import", "<link", "fetch(", "import("] {
        assert!(!page.contains(loading), "{loading}");
    }
    let addresses = page.matches("://").count();
    let names = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(
        addresses, names,
        "only the name of SVG looks like an address"
    );
}

#[test]
fn a_huge_history_gives_a_bounded_file_that_says_what_is_missing() {
    let mut history = random_run(1, 16, 16, 60, 40);
    let message = history.messages.first().expect("messages").clone();
    history.messages = (0..20_000)
        .map(|place| Message {
            sent: SimTime::from_nanos(place * 1_000_000),
            text: "x".repeat(1_000).into(),
            ..message.clone()
        })
        .collect();
    history.entries.insert(
        0,
        Entry {
            at: SimTime::ZERO,
            event: Event::Fault("f".repeat(1_000_000).into()),
        },
    );
    let page = Timeline::new(&history).html();
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    assert!(page.contains("Of 20000 messages, only the 5000 nearest to 0s are drawn."));
    assert!(page.contains("locks on nodes, only the 3000"));
}

#[test]
fn what_is_near_a_violation_is_drawn_when_there_is_too_much() {
    let history = random_run(2, 5, 3, 300, 1);
    let mark = Mark {
        from: ms(250_000),
        until: ms(250_000),
        ..Mark::default()
    };
    let drawn = |svg: &str| {
        let bars = svg.matches("believed that it held k0 from 249.").count();
        assert!(svg.contains("nearest to"), "there is too much");
        bars
    };
    let without = drawn(&Timeline::new(&history).svg());
    let with = drawn(&Timeline::new(&history).marks([mark]).svg());
    assert!(without == 0 && with > 0, "{without} and {with}");
}

#[test]
fn only_the_asked_for_time_is_drawn() {
    let history = random_run(1, 5, 3, 60, 1);
    let at = |seconds: u64| SimTime::from_nanos(seconds * 1_000_000_000);
    let whole = Timeline::new(&history).svg();
    let part = Timeline::new(&history).between(at(20), at(22)).svg();
    assert!(
        part.len() < whole.len() / 5,
        "{} of {}",
        part.len(),
        whole.len()
    );
    assert!(part.contains("Shown: 20s to 22s"));
    // Nothing goes wrong where there is no time, or none that has been.
    for (from, until) in [(5, 5), (9, 3), (100, 200)] {
        let none = Timeline::new(&history).between(at(from), at(until)).svg();
        assert_eq!(well_formed(&none), Ok(()), "{from} to {until}");
    }
}

/// Compares with a file of the crate, or writes it when `UPDATE_SNAPSHOTS` is set.
fn is_snapshot(name: &str, found: &str) {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let path = dir.join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(&path, found).expect("written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differing = expected
        .lines()
        .zip(found.lines())
        .position(|(a, b)| a != b);
    assert!(
        expected == found,
        "{name} differs from line {:?} on; look at the new picture, and run again with UPDATE_SNAPSHOTS=1 if it is right",
        differing.map(|line| line + 1)
    );
}

fn hostile(name: &str) -> History {
    let mut history = random_run(4, 3, 2, 3, 1);
    history.keys = vec![name.into()];
    for entry in &mut history.entries {
        if let Event::Fault(text) = &mut entry.event {
            *text = name.into();
        }
    }
    for message in &mut history.messages {
        message.text = name.into();
    }
    history
}

/// What the documentation promises as a few megabytes.
const PAGE_BYTES_MAX: usize = 7_000_000;
