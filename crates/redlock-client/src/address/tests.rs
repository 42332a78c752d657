use super::*;

struct Expected {
    endpoint: Endpoint,
    username: Option<&'static str>,
    password: Option<&'static str>,
    database: u32,
}

fn at(host: &str, port: u16) -> Expected {
    let endpoint = Endpoint::Tcp {
        host: host.to_owned(),
        port,
    };
    Expected {
        endpoint,
        username: None,
        password: None,
        database: 0,
    }
}

fn path(path: &str) -> Expected {
    let endpoint = Endpoint::Unix(PathBuf::from(path));
    Expected {
        endpoint,
        username: None,
        password: None,
        database: 0,
    }
}

impl Expected {
    fn login(self, username: Option<&'static str>, password: Option<&'static str>) -> Self {
        Self {
            username,
            password,
            ..self
        }
    }

    fn database(self, database: u32) -> Self {
        Self { database, ..self }
    }
}

fn check(rows: Vec<(&str, Expected)>) {
    for (text, expected) in rows {
        let address = NodeAddress::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(address.endpoint(), &expected.endpoint, "{text}");
        assert_eq!(address.username(), expected.username, "{text}");
        assert_eq!(address.password(), expected.password, "{text}");
        assert_eq!(address.database(), expected.database, "{text}");
        assert!(!address.is_tls(), "{text}");
        let again = NodeAddress::parse(&address.to_string()).unwrap();
        assert_eq!(again.endpoint(), address.endpoint(), "{address}");
        assert_eq!(again.database(), address.database(), "{address}");
        assert_eq!(again.password(), None, "{address}");
    }
}

#[test]
fn tcp_addresses_of_every_form_are_read() {
    check(vec![
        ("host", at("host", 6379)),
        ("host:1", at("host", 1)),
        ("host:65535", at("host", 65535)),
        ("127.0.0.1:7000", at("127.0.0.1", 7000)),
        ("LocalHost", at("localhost", 6379)),
        ("node_1.example.", at("node_1.example.", 6379)),
        ("[::1]", at("::1", 6379)),
        ("[::1]:7000", at("::1", 7000)),
        ("[0:0::0001]:7000", at("::1", 7000)),
        ("[FE80::1%25eth0]:7000", at("fe80::1%eth0", 7000)),
        ("[fe80::1%eth0]", at("fe80::1%eth0", 6379)),
        ("::1", at("::1", 6379)),
        ("fe80::1%eth0", at("fe80::1%eth0", 6379)),
        ("redis://2001:db8::5/1", at("2001:db8::5", 6379).database(1)),
        ("host:7000/2", at("host", 7000).database(2)),
        ("redis://host", at("host", 6379)),
        ("redis://host/", at("host", 6379)),
        ("redis://host?", at("host", 6379)),
        ("redis://host/?", at("host", 6379)),
        ("REDIS://HOST:7000", at("host", 7000)),
        ("valkey://host:7000", at("host", 7000)),
        ("redis://host/0", at("host", 6379)),
        ("redis://host:7000/15", at("host", 7000).database(15)),
        (
            "redis://host/2147483647",
            at("host", 6379).database(2_147_483_647),
        ),
        ("redis://host?db=3", at("host", 6379).database(3)),
        ("redis://host/?db=3", at("host", 6379).database(3)),
        ("redis://[::1]:7000/1", at("::1", 7000).database(1)),
    ]);
}

#[test]
fn credentials_of_every_form_are_read() {
    let alice = |expected: Expected| expected.login(Some("alice"), Some("secret"));
    check(vec![
        ("redis://alice:secret@host", alice(at("host", 6379))),
        ("alice:secret@host:1/2", alice(at("host", 1).database(2))),
        (
            "redis://:secret@host",
            at("host", 6379).login(None, Some("secret")),
        ),
        (
            "redis://alice@host",
            at("host", 6379).login(Some("alice"), None),
        ),
        (
            "redis://alice:@host",
            at("host", 6379).login(Some("alice"), Some("")),
        ),
        ("redis://:@host", at("host", 6379)),
        ("redis://@host", at("host", 6379)),
        (
            "redis://a%40b:p%2Fq%3F%23%25@host",
            at("host", 6379).login(Some("a@b"), Some("p/q?#%")),
        ),
        (
            "redis://alice:p@ss@host",
            at("host", 6379).login(Some("alice"), Some("p@ss")),
        ),
        (
            "redis://alice:a:b@host",
            at("host", 6379).login(Some("alice"), Some("a:b")),
        ),
        (
            "redis://:a+b%00@host",
            at("host", 6379).login(None, Some("a+b\0")),
        ),
        (
            "redis://:p\u{e4}ss@host",
            at("host", 6379).login(None, Some("p\u{e4}ss")),
        ),
        (
            "redis://:p%C3%A4ss@host",
            at("host", 6379).login(None, Some("p\u{e4}ss")),
        ),
        (
            "redis://host?user=alice&password=secret",
            alice(at("host", 6379)),
        ),
        (
            "redis://host/4?username=alice&pass=secret",
            alice(at("host", 6379).database(4)),
        ),
        (
            "redis://alice@host?password=secret",
            alice(at("host", 6379)),
        ),
        (
            "redis://host?password=p@ss%2B",
            at("host", 6379).login(None, Some("p@ss+")),
        ),
        ("redis://host?password=", at("host", 6379)),
        (
            "redis://host?user=alice&password=",
            at("host", 6379).login(Some("alice"), Some("")),
        ),
        (
            "redis://host?password=a=b",
            at("host", 6379).login(None, Some("a=b")),
        ),
    ]);
}

#[cfg(unix)]
#[test]
fn unix_addresses_of_every_form_are_read() {
    let alice = |expected: Expected| expected.login(Some("alice"), Some("secret"));
    check(vec![
        ("/run/node.sock", path("/run/node.sock")),
        ("/run/100%.sock", path("/run/100%.sock")),
        ("unix:///run/node.sock", path("/run/node.sock")),
        ("unix:/run/node.sock", path("/run/node.sock")),
        ("UNIX:///run/Node.sock", path("/run/Node.sock")),
        ("redis+unix:///run/node.sock", path("/run/node.sock")),
        ("valkey+unix:///run/node.sock", path("/run/node.sock")),
        ("redis+socket:///run/node.sock", path("/run/node.sock")),
        ("unix:///run/my%20node%3f.sock", path("/run/my node?.sock")),
        (
            "unix:///run/node.sock?db=3",
            path("/run/node.sock").database(3),
        ),
        (
            "unix:///s?db=1&user=alice&password=secret",
            alice(path("/s").database(1)),
        ),
        ("unix://alice:secret@/s?db=1", alice(path("/s").database(1))),
        ("unix://alice@/s?pass=secret", alice(path("/s"))),
        (
            "unix:///s?password=secret",
            path("/s").login(None, Some("secret")),
        ),
        ("unix:///run/a@b.sock", path("/run/a@b.sock")),
    ]);
}

#[test]
fn bad_addresses_are_refused_with_the_reason() {
    let host_254 = format!("redis://{}", "h".repeat(254));
    let long = format!("redis://:{}@host", "p".repeat(ADDRESS_BYTES_MAX));
    let rows: Vec<(&str, Problem)> = vec![
        ("", Problem::Empty),
        (&long, Problem::TooLong),
        (" ", Problem::Blank),
        (" host", Problem::Blank),
        ("host\n", Problem::Blank),
        ("ho\0st", Problem::Blank),
        ("redis://host name", Problem::Blank),
        ("/run/my node.sock", Problem::Blank),
        ("redis://host\u{a0}", Problem::Blank),
        ("redis://host#1", Problem::Fragment),
        ("redis://:se#cret@host", Problem::Fragment),
        ("http://host", Problem::UnknownScheme),
        ("://host", Problem::UnknownScheme),
        ("redis ://host", Problem::Blank),
        ("redis:///", Problem::HostMissing),
        ("redis://", Problem::HostMissing),
        ("redis://:6379", Problem::HostMissing),
        (":6379", Problem::HostMissing),
        ("redis://:secret@", Problem::HostMissing),
        ("redis://:secret@:6379", Problem::HostMissing),
        (&host_254, Problem::HostTooLong),
        ("redis://h\u{f6}st", Problem::HostInvalid),
        ("redis://ho%73t", Problem::HostInvalid),
        ("redis://host,other", Problem::HostInvalid),
        ("redis://ho\\st", Problem::HostInvalid),
        ("redis://.host", Problem::HostInvalid),
        ("redis://a..b", Problem::HostInvalid),
        ("127.0.0.256", Problem::HostInvalid),
        ("127.0.0.01", Problem::HostInvalid),
        ("127.1", Problem::HostInvalid),
        ("6379", Problem::HostInvalid),
        ("::1:6379", Problem::Ipv6Bare),
        ("redis://2001:db8::1:7101/1", Problem::Ipv6Bare),
        ("host:1:2", Problem::Ipv6Bare),
        ("[::1", Problem::Ipv6Invalid),
        ("[]:1", Problem::Ipv6Invalid),
        ("[host]:1", Problem::Ipv6Invalid),
        ("[127.0.0.1]:1", Problem::Ipv6Invalid),
        ("[fe80::1%]", Problem::Ipv6Invalid),
        ("[fe80::1%25e%25]", Problem::Ipv6Invalid),
        ("[::1]6379", Problem::PortInvalid),
        ("[::1]:", Problem::PortInvalid),
        ("host:0", Problem::PortInvalid),
        ("host:65536", Problem::PortInvalid),
        ("host:99999999999999999999", Problem::PortInvalid),
        ("host:+1", Problem::PortInvalid),
        ("host:-1", Problem::PortInvalid),
        ("host:", Problem::PortInvalid),
        ("host:port", Problem::PortInvalid),
        ("redis://host/-1", Problem::DatabaseInvalid),
        ("redis://host/+1", Problem::DatabaseInvalid),
        ("redis://host/1/2", Problem::DatabaseInvalid),
        ("redis://host//1", Problem::DatabaseInvalid),
        ("redis://host/one", Problem::DatabaseInvalid),
        ("redis://host/2147483648", Problem::DatabaseInvalid),
        (
            "redis://host/99999999999999999999",
            Problem::DatabaseInvalid,
        ),
        ("redis://host?db=", Problem::DatabaseInvalid),
        ("redis://host?db=-1", Problem::DatabaseInvalid),
        ("redis://host?db", Problem::QueryNotPairs),
        ("redis://host?password=a+b", Problem::QueryPlus),
        (
            "redis://host?timeout=5",
            Problem::QueryUnknown(Some("timeout".into())),
        ),
        (
            "redis://host?DB=5",
            Problem::QueryUnknown(Some("DB".into())),
        ),
        ("redis://host?=5", Problem::QueryUnknown(None)),
        ("redis://host?p%61ss=5", Problem::QueryUnknown(None)),
        ("redis://host/1?db=1", Problem::GivenTwice("database")),
        ("redis://host?db=1&db=1", Problem::GivenTwice("database")),
        (
            "redis://:a@host?password=a",
            Problem::GivenTwice("password"),
        ),
        (
            "redis://host?password=a&pass=a",
            Problem::GivenTwice("password"),
        ),
        (
            "redis://alice:a@host?user=alice",
            Problem::GivenTwice("user"),
        ),
        ("redis://:100%@host", Problem::BadPercent),
        ("redis://:%zz@host", Problem::BadPercent),
        ("redis://host?password=%2", Problem::BadPercent),
        ("redis://:%ff@host", Problem::NotUtf8),
        ("redis://:pa/ss@host", Problem::UnescapedCredentials),
        ("redis://alice:pa?ss@host", Problem::UnescapedCredentials),
        ("redis://alice:1/ss@host", Problem::UnescapedCredentials),
        ("redis://host:1?se=cret@host", Problem::QueryUnknown(None)),
        ("unix://run/node.sock", Problem::PathRelative),
        ("unix:run/node.sock", Problem::PathRelative),
        ("unix:node.sock", Problem::PathRelative),
        ("unix://node.sock", Problem::PathRelative),
        ("unix://", Problem::PathRelative),
        ("unix://alice:secret@", Problem::PathRelative),
        (
            "unix:///run/node.sock?timeout=5",
            Problem::QueryUnknown(Some("timeout".into())),
        ),
        ("unix://alice:pa/ss@/run", Problem::UnescapedCredentials),
    ];
    for (text, problem) in rows {
        match NodeAddress::parse(text) {
            Ok(address) => panic!("{text:?} was read as {address:?}"),
            Err(error) => assert_eq!(error.problem(), &problem, "{text:?}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_no_unix_socket_can_have_is_refused() {
    for text in [
        format!("/{}", "p".repeat(108)),
        format!("unix:///{}", "%70".repeat(108)),
        "unix:///run/%00.sock".to_owned(),
    ] {
        let error = NodeAddress::parse(&text).unwrap_err();
        assert_eq!(error.problem(), &Problem::PathInvalid, "{text}");
    }
}

#[test]
fn no_error_repeats_a_credential() {
    let rows = [
        "redis://alice:hunter2@",
        "redis://alice:hunter2",
        "redis://alice:hunter2@host:0",
        "redis://:hunter2@host?x=hunter2",
        "redis://host?password=hunter2&x=1",
        "redis://host?password=hunter2+",
        "redis://host?hunter2@x",
        "redis://host?a=hunter2&b",
        "redis://:a/hunter2@host",
        "redis://:hunter2/b@host",
        "redis://:a?hunter2@host",
        "redis://host:1?hunter2=1@host",
        "redis://:hunter2#@host",
        "redis://:hunter2%@host",
        "redis://:hunter2 @host",
        "http://alice:hunter2@host",
        "alice:hunter2",
        "hunter2:alice:hunter2@h@host:x",
        "unix://:hunter2@",
        "unix://a:x/hunter2@/s",
        "unix:///s?password=hunter2&y=1",
        "unix:///s?y=hunter2",
    ];
    for text in rows {
        let error = NodeAddress::parse(text).unwrap_err();
        for shown in [
            error.to_string(),
            format!("{error:?}"),
            format!("{error:#?}"),
        ] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}

#[test]
fn an_address_shows_neither_user_nor_password() {
    for text in [
        "redis://hunter1:hunter2@host/1",
        "redis://hunter1@host",
        "redis://host?user=hunter1&password=hunter2",
    ] {
        let address = NodeAddress::parse(text).unwrap();
        for shown in [
            address.to_string(),
            format!("{address:?}"),
            format!("{address:#?}"),
        ] {
            assert!(!shown.contains("hunter"), "{shown}");
        }
    }
}

#[test]
fn an_error_names_the_address_and_what_to_write() {
    let rows = [
        (
            "redis://:secret@Node-1:99999/0",
            "\"redis://Node-1:99999/0\": the port must be a number",
        ),
        (
            ":6379",
            "\":6379\": the host is missing; write for example redis://localhost:6379",
        ),
        (
            "::1:7101",
            "write an IPv6 address in brackets, as in [::1]:6379",
        ),
        (
            "unix://a.sock",
            "write three slashes, as in unix:///run/node.sock",
        ),
        (
            "redis://h?ttl=5",
            "the query key \"ttl\" is unknown; remove it",
        ),
        (
            "redis://ho\u{1b}[31mst",
            "\"redis://ho?[31mst\": holds a space or a control character",
        ),
    ];
    for (text, part) in rows {
        let shown = NodeAddress::parse(text).unwrap_err().to_string();
        assert!(shown.contains(part), "{shown}");
        assert!(shown.is_ascii(), "{shown}");
    }
    let long = NodeAddress::parse(&"h".repeat(100_000))
        .unwrap_err()
        .to_string();
    assert!(long.len() < 200, "{long}");
}

#[test]
fn equal_endpoints_are_found_whatever_way_they_are_written() {
    let rows = [
        ("localhost", "redis://LOCALHOST:6379/3", true),
        ("redis://a:b@host", "host:6379", true),
        ("[::1]", "[0:0:0:0:0:0:0:1]:6379", true),
        ("host:1", "host:2", false),
        ("localhost", "127.0.0.1", false),
    ];
    for (a, b, equal) in rows {
        let [a, b] = [a, b].map(|text| NodeAddress::parse(text).unwrap());
        assert_eq!(a.endpoint() == b.endpoint(), equal, "{a} {b}");
    }
    #[cfg(unix)]
    {
        let a = NodeAddress::parse("unix:///run//node.sock").unwrap();
        let b = NodeAddress::parse("/run/./node.sock").unwrap();
        assert_eq!(a.endpoint(), b.endpoint());
    }
}

#[test]
fn credentials_fill_only_what_is_missing() {
    let rows = [
        ("host", Some("bob"), Some("bob"), "pw"),
        ("host", None, None, "pw"),
        ("redis://alice@host", Some("bob"), Some("alice"), "pw"),
        ("redis://alice@host", None, Some("alice"), "pw"),
        ("redis://:own@host", Some("bob"), None, "own"),
        ("redis://alice:own@host", Some("bob"), Some("alice"), "own"),
        ("redis://alice:@host", Some("bob"), Some("alice"), ""),
    ];
    for (text, username, expected_username, expected_password) in rows {
        let address = NodeAddress::parse(text)
            .unwrap()
            .with_credentials(username, "pw");
        assert_eq!(address.username(), expected_username, "{text}");
        assert_eq!(address.password(), Some(expected_password), "{text}");
        assert_eq!(address.check_credentials(), Ok(()), "{text}");
    }
}

#[test]
fn a_user_without_a_password_is_refused_and_not_shown() {
    let address = NodeAddress::parse("redis://hunter2@host").unwrap();
    let error = address.check_credentials().unwrap_err();
    assert_eq!(error.problem(), &Problem::UserWithoutPassword);
    assert!(!error.to_string().contains("hunter2"));
    assert_eq!(
        NodeAddress::parse("host").unwrap().check_credentials(),
        Ok(())
    );
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_is_refused_by_a_build_without_it() {
    for text in ["rediss://host", "valkeys://host"] {
        let error = NodeAddress::parse(text).unwrap_err();
        assert_eq!(error.problem(), &Problem::NoTls);
        assert!(
            error.to_string().contains("enable its feature \"tls\""),
            "{error}"
        );
    }
}

#[cfg(feature = "tls")]
#[test]
fn tls_addresses_are_read() {
    for text in ["rediss://host", "VALKEYS://host"] {
        let address = NodeAddress::parse(text).unwrap();
        assert!(address.is_tls());
        assert_eq!(address.to_string(), "rediss://host:6379");
    }
}

/// A cheap generator of hostile text: every piece that means something, in every order.
#[test]
fn no_mixture_of_pieces_panics_or_shows_its_password() {
    const PIECES: [&str; 24] = [
        "redis",
        "unix",
        ":",
        "//",
        "/",
        "@",
        "?",
        "#",
        "&",
        "=",
        "%",
        "%4",
        "%41",
        "[",
        "]",
        "::1",
        "hunter2",
        "host",
        "db",
        "6379",
        "-1",
        "\0",
        "\u{fe0f}",
        "password=",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut text = String::from("redis://:hunter2@");
        for _ in 0..state % 9 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(PIECES[usize::try_from(state % 24).unwrap()]);
        }
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let shown = match NodeAddress::parse(&text) {
            Ok(address) => format!("{address} {address:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        // Where the text says "hunter2" as a host, showing it is right.
        let as_host = text
            .rsplit('@')
            .next()
            .is_some_and(|place| place.contains("hunter2"));
        assert!(as_host || !shown.contains("hunter2"), "{text:?}: {shown}");
    }
}
