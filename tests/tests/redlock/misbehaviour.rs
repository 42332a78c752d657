//! Nodes that answer wrongly. A minority of them changes nothing; a majority gives an error of the right kind that names
//! each cause; in both cases no key stays where it must not.

use std::time::Duration;

use locknode_tests::fake_node::{Behaviour, FakeNode, Flavour, Purpose, errors};
use locknode_tests::patience::eventually;
use redlock_client::{Cause, Error, Redlock};

use crate::stage::{LONG, Stage, acquire, is_let_go, try_acquire};

/// What a cause has to be.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Disconnected,
    Protocol,
    TimedOut,
    Loading(Option<Duration>),
    Error(&'static str),
}

impl Expected {
    fn is(self, cause: &Cause) -> bool {
        match (self, cause) {
            (Self::Disconnected, Cause::Disconnected)
            | (Self::Protocol, Cause::Protocol(_))
            | (Self::TimedOut, Cause::TimedOut | Cause::Unresponsive) => true,
            (Self::Loading(left), Cause::Quarantined(said)) => left == *said,
            // Long ones are cut.
            (Self::Error(text), Cause::ServerError(said)) => {
                let shown = said.trim_end_matches("...").trim_end();
                text.starts_with(shown) && shown.len() >= text.len().min(100)
            }
            _ => false,
        }
    }
}

/// Every wrong answer to a request: what it is called, and what the client makes of it.
fn wrong_answers() -> impl Iterator<Item = (String, Behaviour, Expected)> {
    let answer = |text: &[u8]| Behaviour::Answer(text.to_vec());
    let apply_then = |text: &[u8]| Behaviour::ApplyThenAnswer(text.to_vec());
    let quarantined = Expected::Loading(Some(Duration::from_millis(4200)));
    let rows = [
        (Behaviour::Close, Expected::Disconnected),
        (Behaviour::ApplyThenClose, Expected::Disconnected),
        (Behaviour::ApplyThenCutReply, Expected::Disconnected),
        (answer(b"hello?\r\n"), Expected::Protocol),
        (apply_then(b"\0\xff\xfe\r\n"), Expected::Protocol),
        (answer(b"*0\r\n"), Expected::Protocol),
        (apply_then(b"*1\r\n$2\r\nOK\r\n"), Expected::Protocol),
        (answer(b"$5000000000\r\n"), Expected::Protocol),
        (answer(&b"*1\r\n".repeat(50_000)), Expected::Protocol),
        (Behaviour::Flood(40 << 20), Expected::Protocol),
        (Behaviour::Ignore, Expected::TimedOut),
        (Behaviour::ApplyThenIgnore, Expected::TimedOut),
        (Behaviour::error(errors::LOADING), Expected::Loading(None)),
        (Behaviour::error(errors::QUARANTINE), quarantined),
    ];
    let errors = [
        errors::READONLY,
        errors::OOM,
        errors::MISCONF,
        errors::BUSY,
        errors::MASTERDOWN,
        errors::NOPERM,
        errors::NOAUTH,
        errors::WRONGPASS,
        errors::UNKNOWN,
    ]
    .map(|text| (Behaviour::error(text), Expected::Error(text.trim_end())));
    rows.into_iter().chain(errors).map(|(behaviour, expected)| {
        let name = format!("{behaviour:?}").chars().take(60).collect();
        (name, behaviour, expected)
    })
}

impl Stage {
    /// A client that waits for no node longer than it has to, where it has to wait for one at all.
    fn patient_unless(&self, expected: Expected) -> Redlock {
        match expected {
            Expected::TimedOut => self.impatient(),
            _ => self.redlock(),
        }
    }
}

fn check_causes(error: &Error, expected: Expected, at_least: usize, context: &str) {
    let matching = error
        .nodes()
        .iter()
        .filter(|node| expected.is(&node.cause))
        .count();
    assert!(
        matching >= at_least,
        "{context}: {expected:?} wanted from {at_least}: {error}"
    );
    let text = error.to_string();
    assert!(text.is_ascii() && !text.contains('\n'), "{context}: {text}");
}

#[tokio::test]
async fn a_minority_that_answers_an_acquire_wrongly_does_not_prevent_it() {
    for (context, behaviour, _) in wrong_answers() {
        let (stage, redlock) = Stage::with_client(5).await;
        stage.always([1, 3], Purpose::Acquire, &behaviour);
        let guard = try_acquire(&redlock, "k").await;
        let guard = guard
            .expect(&context)
            .unwrap_or_else(|| panic!("{context}: busy"));
        assert!(guard.is_valid(), "{context}");
        stage.wait_until_held_by_quorum("k", guard.token()).await;
        let released = guard.release().await;
        assert!(released.is_free(), "{context}: {released:?}");
        for honest in [0, 2, 4] {
            stage[honest].wait_until_empty().await;
        }
    }
}

#[tokio::test]
async fn a_majority_that_answers_an_acquire_wrongly_is_no_quorum_and_each_cause_is_named() {
    for (context, behaviour, expected) in wrong_answers() {
        let stage = Stage::of(5).await;
        let redlock = stage.patient_unless(expected);
        stage.always([0, 2, 4], Purpose::Acquire, &behaviour);
        let error = match try_acquire(&redlock, "k").await {
            Err(error) => error,
            Ok(guard) => panic!("{context}: acquired: {}", guard.is_some()),
        };
        assert!(error.is_no_quorum(), "{context}: {error}");
        check_causes(&error, expected, 3, &context);
        for honest in [1, 3] {
            stage[honest].wait_until_empty().await;
        }
    }
}

/// What was applied without an answer is released again: those nodes are told, too.
#[tokio::test]
async fn a_node_that_granted_the_lock_and_did_not_say_so_is_told_to_release_it() {
    for behaviour in [
        Behaviour::ApplyThenClose,
        Behaviour::ApplyThenCutReply,
        Behaviour::ApplyThenAnswer(b"what\r\n".to_vec()),
        Behaviour::ApplyThenAnswer(b"*0\r\n".to_vec()),
    ] {
        for count in [1, 3] {
            let (stage, redlock) = Stage::with_client(5).await;
            for fake in stage.iter().take(count) {
                fake.next(Purpose::Acquire, behaviour.clone());
            }
            match try_acquire(&redlock, "k").await {
                Ok(Some(guard)) => drop(guard.release().await),
                Ok(None) => panic!("{behaviour:?}: busy"),
                Err(error) => assert!(error.is_no_quorum() && count == 3, "{error}"),
            }
            stage.wait_until_empty().await;
        }
    }
}

#[tokio::test]
async fn right_answers_in_odd_shapes_are_right_answers() {
    for behaviour in [Behaviour::ApplyThenTrickle, Behaviour::push_first()] {
        let (stage, redlock) = Stage::with_client(3).await;
        for fake in stage.iter() {
            fake.always(Purpose::Acquire, behaviour.clone());
            fake.always(Purpose::Extend, behaviour.clone());
            fake.always(Purpose::Release, behaviour.clone());
        }
        let guard = try_acquire(&redlock, "k").await;
        let guard = guard
            .unwrap_or_else(|error| panic!("{behaviour:?}: {error}"))
            .expect("nobody else wants it");
        guard.extend(LONG).await.expect("extended");
        let released = guard.release().await;
        assert!(is_let_go(&released), "{behaviour:?}: {released:?}");
        stage.wait_until_empty().await;
    }
}

/// One reply too many must not become the answer to whatever is asked next.
#[tokio::test]
async fn an_answer_that_comes_twice_is_not_the_answer_to_the_next_question() {
    let (stage, redlock) = Stage::with_connected_client(3).await;
    for fake in stage.iter() {
        fake.next(Purpose::Acquire, Behaviour::ApplyThenAnswerTwice);
    }
    // Nobody promises that this one is had: the surplus reply may have taken the votes with it.
    drop(try_acquire(&redlock, "a").await);
    stage.held_by_other("b", 0..3);
    let second = try_acquire(&redlock, "b").await;
    assert!(!matches!(second, Ok(Some(_))), "{second:?}");
    stage[0].wait_for_count("SET", 1).await;
    stage.remove("b");
    stage.wait_until_empty().await;
}

#[tokio::test]
async fn a_minority_that_answers_an_extend_wrongly_does_not_prevent_it() {
    for (context, behaviour, _) in wrong_answers() {
        let (stage, redlock) = Stage::with_client(5).await;
        let request = redlock.lock("k").ttl(LONG / 2);
        let guard = request.acquire().await.expect("a lock");
        stage.wait_until_held("k", guard.token(), 5).await;
        stage.always([0, 4], Purpose::Extend, &behaviour);
        guard.extend(LONG).await.expect(&context);
        assert!(guard.validity() > LONG / 2, "{context}");
        assert!(guard.release().await.is_free(), "{context}");
    }
}

/// The lock is as it was: valid until its validity ends, held on every node, and extended when the nodes are well.
#[tokio::test]
async fn a_majority_that_answers_an_extend_wrongly_leaves_the_lock_as_it_was() {
    for (context, behaviour, expected) in wrong_answers() {
        let stage = Stage::of(5).await;
        let redlock = stage.patient_unless(expected);
        let guard = stage.lock(&redlock, "k").await;
        let before = guard.valid_until();
        stage.always([0, 1, 2], Purpose::Extend, &behaviour);
        let error = guard.extend(LONG * 2).await.expect_err(&context);
        assert!(
            !error.is_lost() && !error.is_expired(),
            "{context}: {error}"
        );
        check_causes(&error, expected, 3, &context);
        assert!(guard.is_valid(), "{context}");
        let moved = guard.valid_until().max(before) - guard.valid_until().min(before);
        assert!(moved < LONG / 2, "{context}: {moved:?}");
        assert_eq!(stage.held("k", guard.token()), 5, "{context}");
        assert_eq!(stage.count(Purpose::Release), 0, "{context}");
        for fake in stage.iter() {
            fake.behave();
            fake.come_back().await;
        }
        extend_when_reconnected(&guard, &context).await;
        stage.release(guard).await;
    }
}

async fn extend_when_reconnected(guard: &redlock_client::Guard, context: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(15);
    while let Err(error) = guard.extend(LONG).await {
        assert!(!error.is_lost(), "{context}: {error}");
        assert!(std::time::Instant::now() < deadline, "{context}: {error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_minority_that_answers_a_release_wrongly_does_not_prevent_it() {
    for (context, behaviour, _) in wrong_answers() {
        let (stage, redlock) = Stage::with_client(5).await;
        let guard = stage.lock(&redlock, "k").await;
        stage.always([2, 3], Purpose::Release, &behaviour);
        let released = guard.release().await;
        assert!(released.is_free(), "{context}: {released:?}");
        for honest in [0, 1, 4] {
            stage[honest].wait_until_empty().await;
        }
        let again = stage.redlock().lock("k").ttl(LONG).try_acquire().await;
        let again = again.expect(&context);
        assert!(again.is_some(), "{context}: three of five are free");
    }
}

#[tokio::test]
async fn a_majority_that_answers_a_release_wrongly_is_reported_node_by_node() {
    for (context, behaviour, expected) in wrong_answers() {
        let stage = Stage::of(5).await;
        let redlock = stage.patient_unless(expected);
        let guard = stage.lock(&redlock, "k").await;
        stage.always([0, 1, 2], Purpose::Release, &behaviour);
        let released = guard.release().await;
        assert!(!released.is_confirmed(), "{context}: {released:?}");
        assert_eq!(released.nodes().len(), 5, "{context}");
        let told = released.confirmed() + released.not_held();
        let told = told + released.unknown() + released.pending();
        assert_eq!(told, 5, "{context}: {released:?}");
        for honest in [3, 4] {
            stage[honest].wait_until_empty().await;
        }
    }
}

/// A script that the server does not know is sent again in full, and that is all that happens.
#[tokio::test]
async fn noscript_is_answered_with_the_script() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    for round in 0..3 {
        guard
            .extend(LONG)
            .await
            .unwrap_or_else(|e| panic!("{round}: {e}"));
        stage.iter().for_each(FakeNode::forget_scripts);
    }
    assert!(is_let_go(&guard.release().await));
    stage.wait_until_empty().await;
}

/// A server that always says NOSCRIPT, even to EVAL, is asked a bounded number of times.
#[tokio::test]
async fn a_node_that_never_learns_a_script_is_given_up() {
    let (stage, redlock) = Stage::with_client(1).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    stage.always([0], "EVALSHA", &Behaviour::error(errors::NOSCRIPT));
    stage.always([0], "EVAL", &Behaviour::error(errors::NOSCRIPT));
    let error = guard.extend(LONG).await.expect_err("no script, no extend");
    assert!(!error.is_lost(), "{error}");
    assert!(stage.count(Purpose::Extend) <= 4, "{}", stage.story());
}

#[tokio::test]
async fn every_flavour_of_server_is_locked_extended_and_released() {
    for flavour in Flavour::USEFUL {
        let stage = Stage::of_flavour(3, flavour).await;
        let redlock = stage.redlock();
        let guard = redlock.lock("k").ttl(LONG / 4).acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("{flavour:?}: {error}"));
        stage.wait_until_held("k", guard.token(), 3).await;
        guard
            .extend(LONG)
            .await
            .unwrap_or_else(|error| panic!("{flavour:?}: {error}"));
        assert!(guard.validity() > LONG / 2, "{flavour:?}");
        let what = format!("{flavour:?}: extended on the first node");
        eventually(&what, || {
            let remaining = stage[0].remaining("k");
            remaining.is_some_and(|remaining| remaining > LONG / 2)
        })
        .await;
        let released = guard.release().await;
        assert!(is_let_go(&released), "{flavour:?}: {released:?}");
        stage.wait_until_empty().await;
    }
}

/// Without scripts and without a command that compares, no release is safe: there is no lock on such a server.
#[tokio::test]
async fn a_server_without_any_safe_release_says_so() {
    let stage = Stage::of_flavour(1, Flavour::Bare).await;
    let redlock = stage.redlock();
    let result = try_acquire(&redlock, "k").await;
    match result {
        Err(error) => assert!(!error.nodes().is_empty(), "{error}"),
        Ok(guard) => {
            let released = guard.expect("nobody else wants it").release().await;
            assert_eq!(released.unknown(), 1, "{released:?}");
        }
    }
}

/// Greetings answered wrongly: the node has no vote, and nothing hangs.
#[tokio::test]
async fn a_node_that_answers_the_greeting_wrongly_has_no_vote() {
    for (context, behaviour, _) in wrong_answers() {
        let (stage, redlock) = Stage::with_client(3).await;
        stage.always([0], locknode_tests::fake_node::On::Anything, &behaviour);
        let guard = try_acquire(&redlock, "k").await;
        let guard = guard.expect(&context);
        let guard = guard.unwrap_or_else(|| panic!("{context}: busy"));
        assert!(guard.release().await.is_free(), "{context}");
        stage[1].wait_until_empty().await;
        stage[2].wait_until_empty().await;
    }
}

impl Stage {
    /// Waits until more than half of the nodes have the key by that token.
    pub(crate) async fn wait_until_held_by_quorum(&self, key: &str, token: impl ToString) {
        let (token, needed) = (token.to_string(), self.len() / 2 + 1);
        let what = format!("a majority holds {key}: {:?}", self.holders(key));
        eventually(&what, || self.held(key, &token) >= needed).await;
    }
}

/// A fake that was told nothing is told nothing here either.
#[tokio::test]
async fn honest_nodes_see_one_request_for_each_step() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    guard.extend(LONG).await.expect("extended");
    stage.release(guard).await;
    let count = |fake: &FakeNode, purpose: Purpose| fake.count(purpose);
    for fake in stage.iter() {
        assert_eq!(count(fake, Purpose::Acquire), 1, "{}", fake.story());
        // One more each where the script had to be sent.
        assert!(count(fake, Purpose::Extend) <= 2, "{}", fake.story());
        assert!(count(fake, Purpose::Release) <= 2, "{}", fake.story());
    }
}
