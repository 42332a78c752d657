use super::parse::ADDRESS_BYTES_MAX;
use super::*;

/// An address, its canonical form, and the login as `user:password`; without `:` there is no password.
type Row<'a> = (&'a str, &'a str, &'a str);

#[track_caller]
fn check(rows: &[Row<'_>]) {
    for &(text, canonical, login) in rows {
        let address = NodeAddress::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let (username, password) = match login.split_once(':') {
            Some((username, password)) => (username, Some(password)),
            None => (login, None),
        };
        let username = Some(username).filter(|username| !username.is_empty());
        assert_eq!(address.to_string(), canonical, "{text}");
        assert_eq!(address.username(), username, "{text}");
        assert_eq!(address.password(), password, "{text}");
        assert!(!address.is_tls(), "{text}");
        let again = NodeAddress::parse(canonical).unwrap();
        assert_eq!(again.endpoint(), address.endpoint(), "{address}");
        assert_eq!(again.database(), address.database(), "{address}");
        assert_eq!(again.password(), None, "{address}");
    }
}

#[test]
fn tcp_addresses_of_every_form_are_read() {
    for (text, host, port, database) in [
        ("host", "host", 6379, 0),
        ("host:1", "host", 1, 0),
        ("host:65535", "host", 65535, 0),
        ("127.0.0.1:7000", "127.0.0.1", 7000, 0),
        ("LocalHost", "localhost", 6379, 0),
        ("node_1.example.", "node_1.example.", 6379, 0),
        ("[::1]", "::1", 6379, 0),
        ("[::1]:7000", "::1", 7000, 0),
        ("[0:0::0001]:7000", "::1", 7000, 0),
        ("[FE80::1%25eth0]:7000", "fe80::1%eth0", 7000, 0),
        ("[fe80::1%eth0]", "fe80::1%eth0", 6379, 0),
        ("::1", "::1", 6379, 0),
        ("fe80::1%eth0", "fe80::1%eth0", 6379, 0),
        ("redis://2001:db8::5/1", "2001:db8::5", 6379, 1),
        ("host:7000/2", "host", 7000, 2),
        ("redis://host", "host", 6379, 0),
        ("redis://host/", "host", 6379, 0),
        ("redis://host?", "host", 6379, 0),
        ("redis://host/?", "host", 6379, 0),
        ("REDIS://HOST:7000", "host", 7000, 0),
        ("valkey://host:7000", "host", 7000, 0),
        ("redis://host/0", "host", 6379, 0),
        ("redis://host:7000/15", "host", 7000, 15),
        ("redis://host/2147483647", "host", 6379, 2_147_483_647),
        ("redis://host?db=3", "host", 6379, 3),
        ("redis://host/?db=3", "host", 6379, 3),
        ("redis://[::1]:7000/1", "::1", 7000, 1),
        (&"h".repeat(253), &"h".repeat(253), 6379, 0),
    ] {
        let address = NodeAddress::parse(text).unwrap();
        let host = host.to_owned();
        assert_eq!(address.endpoint(), &Endpoint::Tcp { host, port }, "{text}");
        assert_eq!(address.database(), database, "{text}");
        check(&[(text, &address.to_string(), "")]);
    }
}

#[test]
fn credentials_of_every_form_are_read() {
    let (host, secret) = ("redis://host:6379", "alice:secret");
    check(&[
        ("redis://alice:secret@host", host, secret),
        ("alice:secret@host:1/2", "redis://host:1/2", secret),
        ("redis://:secret@host", host, ":secret"),
        ("redis://alice@host", host, "alice"),
        ("redis://alice:@host", host, "alice:"),
        ("redis://:@host", host, ""),
        ("redis://@host", host, ""),
        ("redis://a%40b:p%2Fq%3f%23%25@host", host, "a@b:p/q?#%"),
        ("redis://alice:p@ss@host", host, "alice:p@ss"),
        ("redis://alice:a:b@host", host, "alice:a:b"),
        ("redis://:a+b%00@host", host, ":a+b\0"),
        ("redis://:p\u{e4}ss@host", host, ":p\u{e4}ss"),
        ("redis://:p%C3%A4ss@host", host, ":p\u{e4}ss"),
        ("redis://host?user=alice&password=secret", host, secret),
        ("redis://host/4?username=alice&pass=secret", "redis://host:6379/4", secret),
        ("redis://alice@host?password=secret", host, secret),
        ("redis://host?password=p@ss%2B", host, ":p@ss+"),
        ("redis://host?password=", host, ""),
        ("redis://host?user=alice&password=", host, "alice:"),
        ("redis://host?password=a=b", host, ":a=b"),
    ]);
}

#[cfg(unix)]
#[test]
fn unix_addresses_of_every_form_are_read() {
    let (node, secret) = ("unix:///run/node.sock", "alice:secret");
    check(&[
        ("/run/node.sock", node, ""),
        ("/run/100%.sock", "unix:///run/100%25.sock", ""),
        ("unix:///run/node.sock", node, ""),
        ("unix:/run/node.sock", node, ""),
        ("UNIX:///run/Node.sock", "unix:///run/Node.sock", ""),
        ("redis+unix:///run/node.sock", node, ""),
        ("valkey+unix:///run/node.sock", node, ""),
        ("redis+socket:///run/node.sock", node, ""),
        ("unix:///my%20n%3f%7f%ff", "unix:///my%20n%3F%7F%FF", ""),
        ("unix:///node.sock?db=3", "unix:///node.sock?db=3", ""),
        ("unix:///s?db=1&user=alice&password=secret", "unix:///s?db=1", secret),
        ("unix://alice:secret@/s?db=1", "unix:///s?db=1", secret),
        ("unix://alice@/s?pass=secret", "unix:///s", secret),
        ("unix:///s?password=secret", "unix:///s", ":secret"),
        ("unix:///run/a@b.sock", "unix:///run/a%40b.sock", ""),
    ]);
    let path = NodeAddress::parse("unix:///run/my%20node%3f.sock").unwrap();
    assert_eq!(path.endpoint(), &Endpoint::Unix("/run/my node?.sock".into()));
}

/// Reasons, each followed by the addresses that are refused for it.
const REFUSED: &str = "
the host is missing
    :6379 redis:/// redis:// redis://:6379 redis://:secret@ redis://:secret@:6379
holds a '#'; write it as %23
    redis://host#1 redis://:se#cret@host
the scheme is not one of redis://
    http://host ://host
the host may hold only letters
    redis://h\u{f6}st redis://ho%73t redis://host,other redis://ho\\st redis://.host redis://a..b
an IPv4 address has four numbers
    127.0.0.256 127.0.0.01 127.1 6379
more than one ':'
    ::1:6379 redis://2001:db8::1:7101/1 host:1:2
not an IPv6 address
    [::1 []:1 [host]:1 [127.0.0.1]:1 [fe80::1%] [fe80::1%25e%25]
the port must be a number
    [::1]6379 [::1]: host:0 host:65536 host:+1 host:-1 host: host:port host:99999999999999999999
the database must be a number from 0 to 2147483647
    redis://host/-1 redis://host/+1 redis://host/1/2 redis://host//1 redis://host/one
    redis://host/2147483648 redis://host/99999999999999999999 redis://host?db= redis://host?db=-1
the query must be key=value pairs
    redis://host?db
a '+' in the query
    redis://host?password=a+b
the query key \"timeout\" is unknown
    redis://host?timeout=5 unix:///s?timeout=5
the query key \"DB\" is unknown
    redis://host?DB=5
a query key is unknown
    redis://host?=5 redis://host?p%61ss=5 redis://host:1?se=cret@host
the database is given twice
    redis://host/1?db=1 redis://host?db=1&db=1
the password is given twice
    redis://:a@host?password=a redis://host?password=a&pass=a
the user is given twice
    redis://alice:a@host?user=alice
two hexadecimal digits
    redis://:100%@host redis://:%zz@host redis://:%4@host redis://:%%41@host redis://:%+1@host
    redis://:%4\u{e4}@host redis://host?password=%2
not UTF-8
    redis://:%ff@host
before the '@'
    redis://:pa/ss@host redis://alice:pa?ss@host redis://alice:1/ss@host unix://alice:pa/ss@/run
must be absolute
    unix://run/node.sock unix:run/node.sock unix:node.sock
    unix://node.sock unix:// unix://alice:secret@
";

#[track_caller]
fn refused(text: &str, problem: &str) {
    match NodeAddress::parse(text) {
        Ok(address) => panic!("{text:?} was read as {address:?}"),
        Err(error) => assert!(error.to_string().contains(problem), "{text:?}: {error}"),
    }
}

#[test]
fn bad_addresses_are_refused_with_the_reason() {
    let mut problem = "";
    for line in REFUSED.trim().lines() {
        match line.strip_prefix("    ") {
            Some(addresses) => addresses.split(' ').for_each(|text| refused(text, problem)),
            None => problem = line,
        }
    }
    refused("", "the host is missing");
    refused(&"p".repeat(ADDRESS_BYTES_MAX + 1), "is longer than 8192 bytes");
    refused(&"h".repeat(254), "the host may hold only letters");
    for text in [
        " ",
        " host",
        "host\n",
        "ho\0st",
        "redis://host name",
        "/run/my node.sock",
        "redis://host\u{a0}",
        "redis ://host",
    ] {
        refused(text, "holds a space or a control character");
    }
    #[cfg(unix)]
    {
        refused(&"/p".repeat(54), "the path is too long");
        refused(&format!("unix:///{}", "%70".repeat(108)), "the path is too long");
        refused("unix:///run/%00.sock", "holds a NUL byte");
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
    assert!(
        error.to_string().contains("a user but no password"),
        "{error}"
    );
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert_eq!(
        NodeAddress::parse("host").unwrap().check_credentials(),
        Ok(())
    );
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_is_refused_by_a_build_without_it() {
    for text in ["rediss://host", "valkeys://host"] {
        refused(text, "enable its feature \"tls\"");
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
    let pieces = "redis unix : // / @ ? # & = % %4 %41 [ ] ::1 hunter2 host db 6379 -1 \0 \u{fe0f} password=";
    let pieces: Vec<&str> = pieces.split(' ').collect();
    assert_eq!(pieces.len(), 24);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut text = String::from("redis://:hunter2@");
        for _ in 0..state % 9 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(pieces[usize::try_from(state % 24).unwrap()]);
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
