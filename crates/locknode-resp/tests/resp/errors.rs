//! Every row's bytes were sent to Redis 7.0.15 and 8.0.6, which answered the same unless a comment says otherwise.

use locknode_resp::{Decoder, Limits, ProtocolError, ProtocolErrorKind};

use crate::corpus::{feed, feed_every_way};

fn check(rows: &[(&[u8], &str)], limits: &Limits, authenticated: bool) {
    for (input, text) in rows {
        let outcome = feed_every_way(input, limits, authenticated);
        let reply = outcome
            .last_words
            .map(|reply| reply.escape_ascii().to_string());
        let expected = match *text {
            "" => String::new(),
            text => format!("-ERR Protocol error: {text}\\r\\n"),
        };
        assert_eq!(reply, Some(expected), "{}", input.escape_ascii());
    }
}

#[test]
fn malformed_requests_get_the_texts_of_redis() {
    let rows: &[(&[u8], &str)] = &[
        (b"*abc\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"* 1\r\n", "invalid multibulk length"),
        (b"*1 \r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*00\r\n", "invalid multibulk length"),
        (b"*-0\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*9223372036854775808\r\n", "invalid multibulk length"),
        (b"*-9223372036854775809\r\n", "invalid multibulk length"),
        (b"*1\n$4\nPING\n\r\n", "invalid multibulk length"),
        (b"*1\r\n!\r\n", r"expected \'$\', got \'!\'"),
        (b"*1\r\n\r\n", r"expected \'$\', got \' \'"),
        (b"*1\r\n\n\r\n", r"expected \'$\', got \' \'"),
        (b"*1\r\n\xff\r\n", r"expected \'$\', got \'\xff\'"),
        (b"*1\r\nPING\r\n", r"expected \'$\', got \'P\'"),
        (b"*1\r\n $4\r\n", r"expected \'$\', got \' \'"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", r"expected \'$\', got \'*\'"),
        (b"*2\r\n$3\r\nGET\r\n:1\r\n", r"expected \'$\', got \':\'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$-0\r\n", "invalid bulk length"),
        (b"*1\r\n$+4\r\n", "invalid bulk length"),
        (b"*1\r\n$00\r\n", "invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$ 4\r\n", "invalid bulk length"),
        (b"*1\r\n$4 \r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$abc\r\n", "invalid bulk length"),
        (b"*1\r\n$9223372036854775808\r\n", "invalid bulk length"),
        (b"ECHO \"a b\r\n", "unbalanced quotes in request"),
        (b"ECHO 'a b\r\n", "unbalanced quotes in request"),
        (b"ECHO \"a\"b\r\n", "unbalanced quotes in request"),
        (b"ECHO 'a'b\r\n", "unbalanced quotes in request"),
        (b"ECHO a\"b\"c\r\n", "unbalanced quotes in request"),
        (b"ECHO \"a\\\r\n", "unbalanced quotes in request"),
        (b"ECHO \"a\\\"\r\n", "unbalanced quotes in request"),
        (b"ECHO '\\\\'\r\n", "unbalanced quotes in request"),
        (b"ECHO '\\'\r\n", "unbalanced quotes in request"),
        (b"ECHO \"a\r\nb\"\r\n", "unbalanced quotes in request"),
        // Redis waits for 64 KiB of a length line with a NUL, Valkey 9.1 answers at once.
        (b"*1\0\r\n", "invalid multibulk length"),
        (b"*1\r\n$4\0\r\n", "invalid bulk length"),
        (b"*1\r\n\0\r\n", r"expected \'$\', got \'\x00\'"),
    ];
    check(rows, &Limits::default(), true);
}

#[test]
fn a_line_may_have_64_kib_and_not_a_byte_more() {
    let filler = |byte: u8, len: usize| vec![byte; len];
    let limits = Limits::default();
    let rows: &[(Vec<u8>, &str)] = &[
        (filler(b'A', 65_537), "too big inline request"),
        (filler(0, 65_537), "too big inline request"),
        (
            [&b"A\0\n"[..], &filler(b'A', 65_534)].concat(),
            "too big inline request",
        ),
        (
            [&b"*"[..], &filler(b'1', 65_536)].concat(),
            "too big mbulk count string",
        ),
        (
            [&b"*1\r\n$"[..], &filler(b'1', 65_536)].concat(),
            "too big bulk count string",
        ),
        (
            [&b"*1\r\n"[..], &filler(b'x', 65_537)].concat(),
            "too big bulk count string",
        ),
        // Redis takes a longer line when its end arrives in the same read; here it never depends on that.
        (
            [filler(b'A', 65_537), b"\n".to_vec()].concat(),
            "too big inline request",
        ),
        (
            [filler(b'A', 70_000), b"\n".to_vec()].concat(),
            "too big inline request",
        ),
    ];
    for (input, text) in rows {
        check(&[(input, text)], &limits, true);
        let shorter = feed(&input[..input.len().min(65_537) - 1], &[], &limits, true);
        assert_eq!(shorter.last_words, None, "{text}");
    }
    let longest = [filler(b'A', 65_536), b"\n".to_vec()].concat();
    assert_eq!(
        feed_every_way(&longest, &limits, true).commands(),
        [[filler(b'A', 65_536)]]
    );
    let digits = [&b"*"[..], &filler(b'1', 65_535), b"\r\n"].concat();
    check(&[(&digits, "invalid multibulk length")], &limits, true);
}

#[test]
fn strangers_may_send_little() {
    let limits = Limits::default();
    let rows: &[(&[u8], &str)] = &[
        (b"*11\r\n", "unauthenticated multibulk length"),
        (b"*1048576\r\n", "unauthenticated multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n$16385\r\n", "unauthenticated bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
    ];
    check(rows, &limits, false);
    for fine in [&b"*10\r\n"[..], b"*-11\r\n", b"*1\r\n$16384\r\n"] {
        assert_eq!(feed_every_way(fine, &limits, false).last_words, None);
    }
    let inline = [&b"PING"[..], &b" a".repeat(20), b"\r\n"].concat();
    assert_eq!(
        feed_every_way(&inline, &limits, false).commands()[0].len(),
        21
    );
}

#[test]
fn each_limit_is_enforced_at_its_number() {
    let limits = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    let all = Limits::default();
    let bulk = limits(|limits| limits.bulk_len_max = 3);
    let args = limits(|limits| limits.args_max = 3);
    let boundless = limits(|limits| limits.args_max = usize::MAX);
    let line = limits(|limits| limits.inline_len_max = 4);
    // 14 bytes in all; a longer one is refused as soon as that is certain.
    let request = limits(|limits| limits.request_len_max = 14);
    let refused: &[(Limits, &[u8], &str)] = &[
        (bulk, b"*1\r\n$4\r\nPING\r\n", "invalid bulk length"),
        (all, b"*1\r\n$1048577\r\n", "invalid bulk length"),
        (args, b"*4\r\n", "invalid multibulk length"),
        (all, b"*1048577\r\n", "invalid multibulk length"),
        (boundless, b"*2147483648\r\n", "invalid multibulk length"),
        (line, b"PINGS", "too big inline request"),
        (line, b"*1234", "too big mbulk count string"),
        (line, b"*1\r\n$1234", "too big bulk count string"),
    ];
    for (limits, input, text) in refused {
        check(&[(input, text)], limits, true);
    }
    let decoded: &[(Limits, &[u8], usize)] = &[
        (bulk, b"*1\r\n$3\r\nGET\r\n", 1),
        (args, b"*3\r\n", 0),
        (line, b"PING\n", 1),
        (request, b"*1\r\n$4\r\nPING\r\nPING\r\n", 2),
    ];
    for (limits, input, commands) in decoded {
        let outcome = feed_every_way(input, limits, true);
        let found = (outcome.commands().len(), outcome.last_words);
        assert_eq!(found, (*commands, None), "{}", input.escape_ascii());
    }
    let rows: &[(&[u8], &str)] = &[
        (b"*1\r\n$5\r\n", ""),
        (b"*1\r\n$1048576\r\n", ""),
        (b"*2\r\n$1\r\nx\r\n$1\r\n", ""),
        (b"*2\r\n$3\r\nGET\r\n$", ""),
    ];
    check(rows, &request, true);
}

#[test]
fn numbers_at_the_edge_of_the_machine_overflow_nothing() {
    let limits = Limits {
        bulk_len_max: usize::MAX,
        args_max: usize::MAX,
        inline_len_max: usize::MAX,
        request_len_max: usize::MAX,
    };
    let rows: &[(&[u8], &str)] = &[
        (b"*1\r\n$9223372036854775807\r\n", ""),
        (b"*1\r\n$4294967295\r\n", ""),
    ];
    check(rows, &limits, true);
    assert_eq!(
        feed_every_way(b"*2147483647\r\n$4294967000\r\nx", &limits, true).last_words,
        None
    );
}

#[test]
fn browsers_get_no_reply() {
    let rows: &[(&[u8], &str)] = &[
        (b"POST / HTTP/1.1\r\n", ""),
        (b"post\r\n", ""),
        (b"\"post\"\r\n", ""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", ""),
        (b"HOST:\r\n", ""),
        (b"*1\r\n$4\r\nPoSt\r\n", ""),
        (b"*2\r\n$5\r\nhost:\r\n$1\r\nx\r\n", ""),
        (b"*1\r\n$5\r\npost\0\r\n", ""),
        (b"*1\r\n$6\r\nhost:\0\r\n", ""),
    ];
    check(rows, &Limits::default(), true);
}

#[test]
fn commands_before_an_error_are_not_lost() {
    let input = b"*1\r\n$4\r\nPING\r\nPING\r\n*x\r\nPING\r\n";
    let outcome = feed_every_way(input, &Limits::default(), true);
    assert_eq!(outcome.commands().len(), 2);
    assert_eq!(
        outcome.last_words.as_deref(),
        Some(&b"-ERR Protocol error: invalid multibulk length\r\n"[..])
    );
}

fn error(input: &[u8]) -> ProtocolError {
    Decoder::new()
        .decode(input, &Limits::default(), true)
        .unwrap_err()
}

#[test]
fn an_error_says_what_it_is() {
    let bulk = error(b"*1\r\n$-1\r\n");
    assert_eq!(bulk.kind(), ProtocolErrorKind::InvalidBulkLength);
    assert_eq!(bulk.message(), "Protocol error: invalid bulk length");
    assert_eq!(bulk.to_string(), bulk.message());
    assert!(!bulk.is_silent());

    let dollar = error(b"*1\r\nx\r\n");
    assert_eq!(dollar.kind(), ProtocolErrorKind::ExpectedDollar);
    assert_eq!(dollar.message(), "Protocol error: expected '$', got 'x'");
    assert_eq!(
        error(b"*1\r\n\xff\r\n").message(),
        "Protocol error: expected '$', got '\u{fffd}'"
    );

    let http = error(b"POST /\r\n");
    assert_eq!(http.kind(), ProtocolErrorKind::HttpAttack);
    assert!(http.is_silent());
    assert!(!http.message().is_empty());
}
