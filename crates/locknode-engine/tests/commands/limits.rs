use crate::node::Node;

/// One byte more than a key may have.
const TOO_LONG: usize = 1 << 24;

#[test]
fn a_key_longer_than_any_is_refused_by_writers_and_missing_for_readers() {
    let key = vec![b'k'; TOO_LONG];
    let mut node = Node::with_shards(1);
    // A key of database 1 whose header would look the same.
    assert_eq!(node.run("SET '' x"), "+OK");
    let refusal =
        b"-ERR a key is at most 16777215 bytes long and a value at most 4294967294 bytes\r\n";
    for words in [
        &[&b"SET"[..], &key, b"v"][..],
        &[b"SET", &key, b"v", b"NX", b"PX", b"10", b"GET"],
        &[b"SETNX", &key, b"v"],
        &[b"SETEX", &key, b"10", b"v"],
        &[b"GETSET", &key, b"v"],
        &[b"INCR", &key],
        &[b"MSET", b"a", b"1", &key, b"v"],
        &[b"MSETNX", b"a", b"1", &key, b"v"],
        &[b"MSETEX", b"2", b"a", b"1", &key, b"v"],
    ] {
        assert_eq!(
            node.bytes(words),
            refusal,
            "{:?}",
            words[0].escape_ascii().to_string()
        );
    }
    for (name, want) in [
        ("GET", "$-1\r\n"),
        ("DEL", ":0\r\n"),
        ("EXISTS", ":0\r\n"),
        ("PTTL", ":-2\r\n"),
    ] {
        assert_eq!(node.bytes(&[name.as_bytes(), &key]), want.as_bytes());
    }
    assert_eq!(node.run("DBSIZE"), ":1");
}

#[test]
fn the_longest_key_is_held() {
    let key = vec![b'k'; TOO_LONG - 1];
    let mut node = Node::with_shards(1);
    assert_eq!(node.bytes(&[b"SET", &key, b"v", b"NX"]), b"+OK\r\n");
    assert_eq!(node.bytes(&[b"GET", &key]), b"$1\r\nv\r\n");
    assert_eq!(node.bytes(&[b"DEL", &key]), b":1\r\n");
}

#[test]
fn a_reply_beyond_the_limit_is_an_error_and_nothing_else() {
    let mut node = Node::with_options(|options| options.client_output_buffer_limit.normal = 100);
    let too_long = "-ERR the reply is longer than client-output-buffer-limit";
    assert_eq!(node.run(&format!("SET a {}", "x".repeat(40))), "+OK");
    assert!(node.run("MGET a a").starts_with("*2 $40 xxx"));
    assert_eq!(node.run("MGET a a a"), too_long);
    for key in 0..9 {
        assert_eq!(node.run(&format!("SET key:{key} 1")), "+OK");
    }
    assert_eq!(node.run("KEYS *"), too_long);
    assert!(node.run("KEYS key:*").starts_with("*9 "));
    // SCAN gives what fits and goes on.
    let (mut cursor, mut found) = ("0".to_owned(), 0);
    loop {
        let reply = node.run(&format!("SCAN {cursor} COUNT 1000 MATCH key:*"));
        found += reply.matches("key:").count();
        cursor = reply.split(' ').nth(2).expect("a cursor").to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found, 9);
}

#[test]
fn writes_are_refused_when_memory_is_used_up_and_releases_go_on() {
    let mut node = Node::with_options(|options| options.maxmemory = 1);
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
    for request in "SET a 1,SETNX a 1,SETEX a 1 1,PSETEX a 1 1,GETSET a 1,INCR a,INCRBY a 1,DECR a,\
        DECRBY a 1,MSET a 1,MSETNX a 1,MSETEX 1 a 1"
        .split(',')
    {
        assert_eq!(node.run(request), oom, "{request}");
    }
    for request in "DEL a,UNLINK a,DELEX a,DELIFEQ a 1,PEXPIRE a 1,PERSIST a,EXISTS a".split(',') {
        assert_eq!(node.run(request), ":0", "{request}");
    }
}

/// Everything that such a command does is done while others wait.
#[test]
fn a_command_takes_so_many_arguments_and_is_refused_with_more() {
    const MORE: usize = 32_768;
    for (named, name) in [
        (3, "MSET"),
        (2, "DEL"),
        #[cfg(feature = "compat")]
        (2, "SUBSCRIBE"),
        #[cfg(feature = "compat")]
        (3, "EVAL"),
        (3, "NOSUCH"),
    ] {
        let mut node = Node::new();
        let mut args = vec![name.as_bytes()];
        args.extend(["return 1", "0"].map(str::as_bytes));
        args.resize(named + MORE, b"a");
        let reply = node.bytes(&args);
        assert!(!reply.starts_with(b"-UNSUPPORTED"), "{name}");
        node.run("UNSUBSCRIBE");
        node.run("FLUSHALL");
        args.resize(named + MORE + 2, b"a");
        let reply = String::from_utf8(node.bytes(&args)).unwrap();
        let refusal = format!(
            "-UNSUPPORTED '{}' with more than 32768 keys and arguments: send several\r\n",
            name.to_lowercase()
        );
        if name == "NOSUCH" {
            assert!(reply.starts_with("-ERR unknown command"), "{reply}");
        } else {
            assert_eq!(reply, refusal);
        }
        assert_eq!(node.run("DBSIZE"), ":0", "{name}");
    }
}
