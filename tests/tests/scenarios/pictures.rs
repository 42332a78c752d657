//! The pictures of README: one world, on nodes that forget and on nodes with a restart guard.

use std::fs;
use std::path::PathBuf;

use locknode_testkit::{GuardMode, Headline, Mark, Report, Scenario, Timeline};

use crate::script::Script;

/// Draws the world of `docs/pictures/crash.txt` under a guard. The checkers do not mark what nobody promised, so the time in
/// which both clients hold the lock is marked here. Returns whether there is such a time.
fn draw(guard: GuardMode, name: &str, title: &str) -> bool {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let text = fs::read_to_string(directory.join("crash.txt")).unwrap();
    let scenario = Scenario::parse(&text).unwrap().guarded(guard);
    let report = Report::of(&scenario);
    assert!(report.is_safe(), "{report}");
    let [first, second] = report.history().windows()[..] else {
        panic!("each client holds the lock once");
    };
    let is_held_twice = second.from < first.until;
    let mark = is_held_twice.then(|| Mark {
        from: second.from,
        until: second.until.min(first.until),
        clients: vec![0, 1],
        nodes: Vec::new(),
        text: "both clients hold the lock".to_owned(),
    });
    let headline = Headline {
        title: title.to_owned(),
        ..Headline::default()
    };
    let timeline = Timeline::new(report.history()).headline(headline);
    let svg = timeline.marks(mark).svg();
    let path = directory.join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &svg).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == svg,
        "{name} is not the picture of this world: look at the new one after UPDATE_SNAPSHOTS=1"
    );
    is_held_twice
}

#[test]
fn the_pictures_of_the_documents_are_of_one_world() {
    let title = "Nodes that forget: a crash gives the lock away twice";
    assert!(draw(GuardMode::Off, "held-twice.svg", title));
    let title = "The same with the restart guard: the second client waits";
    assert!(!draw(GuardMode::Long, "guarded.svg", title));
}
