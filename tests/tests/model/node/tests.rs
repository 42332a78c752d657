use super::*;

#[test]
fn an_engine_reads_back_what_it_was_loaded_with() {
    let engines = Engines::new(3);
    let held = Node {
        holder: 2,
        left: 3,
        grant: 4,
        counter: 7,
        quarantine: 0,
    };
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
    let held = Node {
        holder: 2,
        left: 1,
        grant: 4,
        counter: 5,
        quarantine: 0,
    };
    let mine = Node {
        holder: 1,
        left: 3,
        grant: 6,
        counter: 6,
        quarantine: 0,
    };
    let quarantined = Node::restarted(1, 5);
    let rows = [
        (free, Request::Acquire { token: 1 }, Answer::Yes, mine),
        (
            free,
            Request::AcquireFenced { token: 1 },
            Answer::Granted(6),
            mine,
        ),
        (held, Request::Acquire { token: 1 }, Answer::No, held),
        (
            held,
            Request::AcquireFenced { token: 1 },
            Answer::Refused(5),
            held,
        ),
        (
            quarantined,
            Request::Acquire { token: 1 },
            Answer::Quarantined,
            quarantined,
        ),
        (
            quarantined.later(),
            Request::Acquire { token: 1 },
            Answer::Yes,
            mine,
        ),
        (
            held,
            Request::Extend { token: 2 },
            Answer::Yes,
            Node { left: 3, ..held },
        ),
        (held, Request::Extend { token: 1 }, Answer::No, held),
        (held, Request::Release { token: 2 }, Answer::Yes, free),
        (held, Request::Release { token: 1 }, Answer::No, held),
        (
            held,
            Request::Prolong,
            Answer::Yes,
            Node { left: 3, ..held },
        ),
        (held, Request::Delete, Answer::Yes, free),
        (
            held,
            Request::Fence {
                token: 2,
                grant: 4,
                fence: 9,
            },
            Answer::Yes,
            Node { counter: 9, ..held },
        ),
        (
            held,
            Request::Fence {
                token: 2,
                grant: 5,
                fence: 9,
            },
            Answer::No,
            held,
        ),
        (
            held,
            Request::Fence {
                token: 1,
                grant: 4,
                fence: 9,
            },
            Answer::No,
            held,
        ),
    ];
    for (node, request, answer, after) in rows {
        assert_eq!(
            engines.ask(node, request),
            (answer, after),
            "{node:?} {request:?}"
        );
    }
}

/// A node that is loaded anew for every request does what one does that runs on.
#[test]
fn an_engine_that_runs_on_agrees_step_by_step() {
    let mut dice = Dice(7);
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
                    assert_eq!(
                        running.answer(request, now),
                        answer,
                        "{step}: {node:?} {request:?}"
                    );
                    node = after;
                }
            }
            let held = (node.holder != NOBODY).then_some(node);
            assert_eq!(running.held(now), held, "{step}");
        }
    }
}

/// Numbers by chance, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u8) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = (self.0 >> 33) % u64::from(end);
        u8::try_from(number).expect("below a small number")
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
