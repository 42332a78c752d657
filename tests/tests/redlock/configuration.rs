//! Bad input is refused with a clear error before a byte is sent: the node sees no connection.

use std::time::Duration;

use locknode_tests::fake_node::FakeNode;
use redlock_client::{Drift, Error, LockRequest, Redlock, RenewPolicy, RetryPolicy, Token};

use crate::stage::Stage;

/// What a builder must not be given: what is wrong, and the addresses.
const BAD_LISTS: [&str; 17] = [
    "no nodes",
    "the same node twice: redis://127.0.0.1:7001, redis://127.0.0.1:7001",
    "the same node, written otherwise: 127.0.0.1:7001, redis://127.0.0.1:7001/",
    "the same node, default port: redis://localhost, localhost:6379",
    "the same node, two passwords: redis://:a@h:1, redis://:b@h:1",
    "the same node, two databases: redis://h:1/0, redis://h:1/1",
    "the same socket twice: unix:///tmp/a.sock, unix:///tmp/a.sock",
    "an empty address: ",
    "nothing but a scheme: redis://",
    "a scheme of something else: http://127.0.0.1:7001",
    "a port beyond 65535: redis://127.0.0.1:65536",
    "a port of zero: redis://127.0.0.1:0",
    "a port that is no number: redis://127.0.0.1:abc",
    "a database that is no number: redis://127.0.0.1:7001/jobs",
    "white space: redis://127.0.0.1: 7001",
    "a line end: redis://127.0.0.1:7001\r\nFLUSHALL",
    "one good and one bad: redis://127.0.0.1:7001, redis://:::",
];

#[tokio::test]
async fn a_bad_list_of_nodes_is_refused() {
    for list in BAD_LISTS {
        let urls = list.split_once(": ").map(|(_, urls)| urls.split(", "));
        match Redlock::builder().nodes(urls.into_iter().flatten()).build() {
            Err(error) => check(&error, list),
            Ok(_) => panic!("accepted: {list}"),
        }
    }
    let many: Vec<String> = (7001..=7017)
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let error = Redlock::builder().nodes(&many).build().unwrap_err();
    check(&error, "17 nodes");
    assert!(Redlock::builder().nodes(&many[..16]).build().is_ok());
}

#[tokio::test]
async fn bad_settings_of_a_client_are_refused() {
    let fake = FakeNode::start().await;
    let builder = Redlock::builder().node(fake.url());
    let builder = builder.retry(RetryPolicy::wait_for(Duration::ZERO));
    check(&builder.build().unwrap_err(), "a wait of zero");
    assert_eq!(fake.connections(), 0);
}

/// A password is not for logs.
#[tokio::test]
async fn an_error_about_an_address_does_not_show_its_password() {
    for url in [
        "redis://:hunter2@127.0.0.1:99999",
        "redis://u:hunter2@h:1/x",
        "http://u:hunter2@h",
    ] {
        let error = Redlock::builder().node(url).build().unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn a_bad_request_is_refused_before_a_byte_is_sent() {
    let fake = FakeNode::start().await;
    let redlock = Redlock::builder().node(fake.url()).build().unwrap();
    let lock = || redlock.lock("k");
    let ms = Duration::from_millis;
    let too_long = vec![b'k'; (64 << 10) + 1];
    let rows: Vec<(&str, LockRequest)> = vec![
        ("a TTL of zero", lock().ttl(Duration::ZERO)),
        (
            "a TTL below a millisecond",
            lock().ttl(Duration::from_micros(999)),
        ),
        ("a TTL within the drift", lock().ttl(ms(2))),
        ("a TTL over 2^53-1 ms", lock().ttl(ms(1 << 53))),
        ("a TTL without end", lock().ttl(Duration::MAX)),
        ("a wait of zero", lock().wait_for(Duration::ZERO)),
        (
            "a retry of zero",
            lock().retry(RetryPolicy::wait_for(Duration::ZERO)),
        ),
        (
            "a renewal too late",
            lock()
                .ttl(ms(900))
                .renew(RenewPolicy::times(3).every(ms(800))),
        ),
        (
            "a renewal all the time",
            lock().renew(RenewPolicy::times(3).every(Duration::ZERO)),
        ),
        (
            "a renewal until zero",
            lock().renew(RenewPolicy::until(Duration::ZERO)),
        ),
        ("a key too long", redlock.lock(&too_long)),
        ("an empty key", redlock.lock("")),
    ];
    for (name, request) in rows {
        for result in [
            request.clone().acquire().await.map(Some),
            request.try_acquire().await,
        ] {
            // A wait says nothing about a single try.
            if matches!(name, "a wait of zero" | "a retry of zero") && result.is_ok() {
                continue;
            }
            match result {
                Err(error) => check(&error, name),
                Ok(_) => panic!("accepted: {name}"),
            }
        }
    }
}

#[tokio::test]
async fn a_refused_request_opens_no_connection() {
    let fake = FakeNode::start().await;
    let redlock = Redlock::builder().node(fake.url()).build().unwrap();
    let request = redlock.lock("k").ttl(Duration::ZERO);
    let error = request.acquire().await.unwrap_err();
    check(&error, "a TTL of zero");
    let request = redlock.lock("k").wait_for(Duration::ZERO);
    let error = request.acquire().await.unwrap_err();
    check(&error, "a wait of zero");
    let none: [&str; 0] = [];
    let error = redlock.lock_all(none).acquire().await.unwrap_err();
    check(&error, "no keys");
    assert_eq!(fake.connections(), 0);
    assert!(fake.received().is_empty());
}

#[tokio::test]
async fn the_largest_and_the_smallest_of_everything_is_accepted() {
    let (stage, redlock) = Stage::with_client(1).await;
    let longest = Duration::from_millis((1 << 53) - 1);
    let request = redlock.lock("k").ttl(longest);
    let guard = request.acquire().await.expect("a long lock");
    let century = Duration::from_secs(100 * 365 * 86_400);
    assert!(guard.validity() > century, "{:?}", guard.validity());
    drop(guard.release().await);
    let builder = stage.builder().drift(Drift::new(0, Duration::ZERO));
    let no_drift = builder.build().unwrap();
    let ttl = Duration::from_millis(1);
    // Whether a lock of a millisecond is had in time is luck; that it is not refused is not.
    if let Err(error) = no_drift.lock("s").ttl(ttl).try_acquire().await {
        assert!(!error.is_config(), "{error}");
    }
    let binary = [0, b'\r', b'\n', 0xff, b' '];
    let request = redlock.lock(binary);
    let guard = request.acquire().await.expect("any bytes are a key");
    assert_eq!(guard.key(), binary);
    drop(guard.release().await);
}

#[tokio::test]
async fn an_extend_of_a_bad_ttl_is_refused_and_leaves_the_lock() {
    let stage = Stage::of(1).await;
    let guard = stage.redlock().lock("k").acquire().await.expect("a lock");
    for ttl in [
        Duration::ZERO,
        Duration::from_millis(2),
        Duration::from_millis(1 << 53),
    ] {
        let error = guard.extend(ttl).await.expect_err("a bad TTL");
        check(&error, "extend");
        assert!(guard.is_valid());
    }
    assert_eq!(stage.count(locknode_tests::fake_node::Purpose::Extend), 0);
    drop(guard.release().await);
}

#[test]
fn a_token_is_one_to_sixty_four_bytes() {
    for (len, is_ok) in [(0, false), (1, true), (64, true), (65, false)] {
        let token = Token::new(vec![7; len]);
        assert_eq!(token.is_ok(), is_ok, "{len}");
        if let Err(error) = token {
            check(&error.into(), "a token");
        }
    }
}

fn check(error: &Error, context: &str) {
    assert!(error.is_config(), "{context}: {error}");
    assert!(!error.is_retryable(), "{context}: {error}");
    let text = error.to_string();
    assert!(
        text.len() > 10 && text.chars().next().is_some_and(|c| !c.is_uppercase()),
        "{context}: {text}"
    );
    assert!(
        !text.contains('\n') && !text.contains('\r'),
        "{context}: {text}"
    );
}
