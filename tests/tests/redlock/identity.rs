//! Which node is which: one server by two addresses, passwords.

use std::time::Duration;

use locknode_tests::fake_node::{FakeNode, Purpose};
use redlock_client::{Cause, Error, Redlock};

use crate::stage::{
    AMPLE, LONG, Stage, acquire, finds_no_quorum, held_key, is_let_go, try_acquire,
};

/// The second address of a server has no vote: of three configured nodes two are one, and one alone is no majority.
#[tokio::test]
async fn a_server_by_two_addresses_votes_once() {
    let (twin, other) = (FakeNode::start().await, FakeNode::start().await);
    let door = twin.open_another_door();
    let urls = [twin.url(), format!("redis://{door}"), other.url()];
    let redlock = Redlock::builder().nodes(&urls).build().unwrap();
    let guard = acquire(&redlock, "k").await.expect("two servers of three");
    drop(guard.release().await);
    other.go_down().await;
    let error = finds_no_quorum(&redlock, "k").await;
    let duplicate = |cause: &Cause| matches!(cause, Cause::Duplicate { .. });
    assert!(
        error.nodes().iter().any(|node| duplicate(&node.cause)),
        "{error}"
    );
    twin.wait_until_empty().await;
    let nodes = redlock.nodes().await.expect("a list");
    let duplicates = nodes
        .iter()
        .filter(|node| node.state.as_ref().is_err_and(duplicate));
    assert_eq!(duplicates.count(), 1, "{nodes:?}");
}

/// The same when both addresses are asked at the very same time, again and again.
#[tokio::test]
async fn two_addresses_of_one_server_never_make_a_majority() {
    for _ in 0..20 {
        let twin = FakeNode::start().await;
        let door = twin.open_another_door();
        let gone = FakeNode::start().await;
        gone.go_down().await;
        let urls = [twin.url(), format!("redis://{door}"), gone.url()];
        let redlock = Redlock::builder().nodes(&urls).build().unwrap();
        let attempts = (0..4).map(|key| try_acquire(&redlock, &format!("k{key}")));
        let attempts: Vec<_> = attempts.map(tokio::spawn).collect();
        for attempt in attempts {
            let result = attempt.await.expect("no panic");
            assert!(result.is_err(), "a majority of one: {result:?}");
        }
    }
}

/// The node is another one after a restart, and no twin of what it was before.
#[tokio::test]
async fn a_restarted_server_is_not_a_duplicate_of_itself() {
    let (stage, redlock) = Stage::with_client(3).await;
    for round in 0..3 {
        let guard = redlock
            .lock("k")
            .ttl(LONG)
            .wait_for(Duration::from_secs(15))
            .acquire()
            .await;
        let guard = guard.unwrap_or_else(|error| panic!("{round}: {error}"));
        drop(guard.release().await);
        stage[round].crash().await;
        stage[round].come_back().await;
    }
}

fn mentions(error: &Error, text: &str) -> bool {
    error.to_string().contains(text)
}

#[tokio::test]
async fn a_wrong_password_is_the_cause_that_is_named() {
    let fake = FakeNode::start_with_password("right").await;
    let address = fake.address();
    let rows = [
        (format!("redis://:wrong@{address}"), "WRONGPASS"),
        (format!("redis://someone:right@{address}"), "WRONGPASS"),
        (format!("redis://{address}"), "NOAUTH"),
    ];
    for (url, code) in rows {
        let builder = Redlock::builder().node(&url).node_timeout(AMPLE);
        let redlock = builder.build().unwrap();
        let error = try_acquire(&redlock, "k").await.expect_err("a stranger");
        assert!(error.is_no_quorum(), "{url}: {error}");
        assert!(mentions(&error, code), "{url}: {error}");
        assert!(!mentions(&error, "wrong@"), "{error}");
        let nodes = redlock.nodes().await.expect("a list");
        assert!(format!("{:?}", nodes[0].state).contains(code), "{nodes:?}");
    }
    assert_eq!(fake.count(Purpose::Acquire), 0, "{}", fake.story());
}

#[tokio::test]
async fn the_right_password_opens_the_node_by_url_and_by_credentials() {
    let fake = FakeNode::start_with_password("ri:gh@t/").await;
    let address = fake.address();
    let plain = format!("redis://{address}");
    let builders = [
        Redlock::builder().node(format!("redis://:ri%3Agh%40t%2F@{address}")),
        Redlock::builder().node(format!("redis://default:ri%3Agh%40t%2F@{address}")),
        Redlock::builder()
            .node(&plain)
            .credentials(None, "ri:gh@t/"),
        Redlock::builder()
            .node(&plain)
            .credentials(Some("default"), "ri:gh@t/"),
    ];
    for builder in builders {
        let redlock = builder.build().unwrap();
        let guard = acquire(&redlock, "k").await.expect("let in");
        assert!(is_let_go(&guard.release().await));
    }
    fake.wait_until_empty().await;
}

/// A key prefix is part of the key on the node and not of the guard's key.
#[tokio::test]
async fn a_prefix_is_put_before_every_key() {
    let stage = Stage::of(1).await;
    let redlock = stage.builder().key_prefix("app:").build().unwrap();
    let guard = acquire(&redlock, "k").await.expect("a lock");
    assert_eq!(stage[0].holder("app:k"), Some(guard.token().to_string()));
    let views = redlock.inspect("k").await.expect("a view");
    let held = held_key(&views[0]);
    assert_eq!(held.token, *guard.token());
    stage.release(guard).await;
}
