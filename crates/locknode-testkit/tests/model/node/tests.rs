use locknode_testkit::Random;

use super::*;

#[test]
fn an_engine_reads_back_what_it_was_loaded_with() {
    let engines = Engines::new(3);
    let held = node(2, 3, 4, 7);
    let rows = [
        (held, held),
        (Node { left: 1, ..held }, Node { left: 1, ..held }),
        (Node { left: 0, ..held }, Node::restarted(0, 7)),
        (Node::restarted(2, 5), Node::restarted(2, 5)),
        (Node::default(), Node::default()),
    ];
    for (loaded, seen) in rows {
        assert_eq!(engines.look(loaded), seen, "{loaded:?}");
    }
}

#[test]
fn a_request_has_its_answer_and_its_effect() {
    let engines = Engines::new(3);
    let free = Node::restarted(0, 5);
    let held = node(2, 1, 4, 5);
    let prolonged = Node { left: 3, ..held };
    let raised = Node { counter: 9, ..held };
    let mine = node(1, 3, 6, 6);
    let quarantined = Node::restarted(1, 5);
    let acquire = Request::Acquire { token: 1 };
    let fenced = Request::AcquireFenced { token: 1 };
    let extend = |token| Request::Extend { token };
    let release = |token| Request::Release { token };
    let fence = |token, grant| Request::Fence {
        token,
        grant,
        fence: 9,
    };
    let rows = [
        (free, acquire, Answer::Yes, mine),
        (free, fenced, Answer::Granted(6), mine),
        (held, acquire, Answer::No, held),
        (held, fenced, Answer::Refused(5), held),
        (quarantined, acquire, Answer::Quarantined, quarantined),
        (quarantined.later(), acquire, Answer::Yes, mine),
        (held, extend(2), Answer::Yes, prolonged),
        (held, extend(1), Answer::No, held),
        (held, release(2), Answer::Yes, free),
        (held, release(1), Answer::No, held),
        (held, Request::Prolong, Answer::Yes, prolonged),
        (held, Request::Delete, Answer::Yes, free),
        (held, fence(2, 4), Answer::Yes, raised),
        (held, fence(2, 5), Answer::No, held),
        (held, fence(1, 4), Answer::No, held),
    ];
    for (node, request, answer, after) in rows {
        let asked = engines.ask(node, request);
        assert_eq!(asked, (answer, after), "{node:?} {request:?}");
    }
}

/// A node that is loaded anew for every request does what one does that runs on.
#[test]
fn an_engine_that_runs_on_agrees_step_by_step() {
    let mut dice = Dice(Random::new(7));
    let engines = Engines::new(2);
    for _ in 0..60 {
        let (mut now, mut node) = (now(), Node::default());
        let mut running = Trial::new(node, 2, now);
        for step in 0..60 {
            match dice.below(10) {
                0..3 => {
                    // Later in each tick than in the one before, so that a deadline is the first that happens in its tick.
                    now = after(now, 1);
                    now.time = now.time.saturating_add(Duration::from_nanos(1));
                    node = engines.look(node.later());
                }
                3 => {
                    node = Node::restarted(dice.below(3), node.counter);
                    running = Trial::new(node, 2, now);
                }
                _ => {
                    let request = dice.request(node);
                    let (answer, after) = engines.ask(node, request);
                    let running = running.answer(request, now);
                    assert_eq!(running, answer, "{step}: {node:?} {request:?}");
                    node = after;
                }
            }
            let held = (node.holder != NOBODY).then_some(node);
            assert_eq!(running.held(now), held, "{step}");
        }
    }
}

/// A node that serves and whose key is held.
fn node(holder: u8, left: u8, grant: u8, counter: u8) -> Node {
    Node {
        holder,
        left,
        grant,
        counter,
        quarantine: 0,
    }
}

/// Numbers by chance, the same every time.
struct Dice(Random);

impl Dice {
    fn below(&mut self, end: u8) -> u8 {
        small(self.0.below(end.into()).cast_signed())
    }

    fn request(&mut self, node: Node) -> Request {
        let token = 1 + self.below(2);
        match self.below(8) {
            0 | 1 => Request::Acquire { token },
            2 => Request::AcquireFenced { token },
            3 => Request::Extend { token },
            4 => Request::Release { token },
            5 => Request::Fence {
                token,
                grant: node.grant.saturating_sub(self.below(2)),
                fence: node.counter.min(200) + self.below(2),
            },
            6 => Request::Prolong,
            _ => Request::Delete,
        }
    }
}
