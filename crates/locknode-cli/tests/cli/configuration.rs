//! Flags, environment, file, and `--print-config`.

use std::io::Read as _;
use std::net::TcpStream;

use crate::program::{
    Directory, Program, ask, command, connect, ended, ends, outcome, run, serve, shows,
};

/// The line of an option in the printed configuration, with single spaces.
fn line<'t>(printed: &'t str, option: &str) -> Vec<&'t str> {
    let mut lines = printed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.first() == Some(&option) || words.get(1) == Some(&option));
    found.unwrap_or_else(|| panic!("no {option} in:\n{printed}"))
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let directory = Directory::new("precedence");
    let file = directory.file(
        "locknode.toml",
        "# A comment\nport = 1001\ntimeout = 11\nmaxmemory = \"1mb\"\nbind = [\"127.0.0.1\", \"::1\"]\n\
         protected-mode = false\nrequirepass = \"from-the-file\"\n",
    );
    let line_of_flags = format!("serve --config {file} --port 1003 --print-config");
    let mut serve = command(line_of_flags.split(' '));
    serve
        .env("LOCKNODE_PORT", "1002")
        .env("LOCKNODE_TIMEOUT", "12");
    let (out, _) = ended(0, &serve.output().expect("it runs"));
    for (option, value, origin) in [
        ("port", "1003", "flag --port"),
        ("timeout", "12", "environment LOCKNODE_TIMEOUT"),
        ("maxmemory", "\"1mb\"", &format!("{file}:4")),
        ("protected-mode", "\"no\"", &format!("{file}:6")),
        ("bind", "[\"127.0.0.1\", \"::1\"]", &format!("{file}:5")),
        ("maxclients", "10000", "default"),
    ] {
        let shown = format!("{option} = {value} # {origin}");
        assert_eq!(line(&out, option).join(" "), shown);
    }
    let unset = line(&out, "unixsocket").join(" ");
    assert_eq!(unset, "# unixsocket = # not set");
    assert!(
        !out.contains("from-the-file"),
        "a password is shown:\n{out}"
    );
    let hidden = line(&out, "requirepass")[..4].join(" ");
    assert_eq!(hidden, "# requirepass = \"********\"");
}

#[test]
fn the_printed_configuration_can_be_read_back() {
    let directory = Directory::new("roundtrip");
    let flags = "serve --port 0 --bind= --drain 2m --print-config --unixsocket".split(' ');
    let (printed, _) = ends(0, flags.chain(["/tmp/a \"b\".sock"]));
    let file = directory.file("printed.toml", &printed);
    let (again, _) = ends(0, ["serve", "--config", &file, "--print-config"]);
    let values = |text: &str| -> Vec<String> {
        let values = text.lines().filter_map(|line| line.rsplit_once("  #"));
        values
            .map(|(value, _)| value.trim_end().to_owned())
            .collect()
    };
    assert_eq!(values(&again), values(&printed));
    assert!(values(&again).contains(&"bind = []".to_owned()), "{again}");
}

#[test]
fn the_file_may_be_named_by_the_environment() {
    let directory = Directory::new("by-environment");
    let file = directory.file("locknode.toml", "port = 1234\n");
    let mut serve = command(["serve", "--print-config"]);
    serve.env("LOCKNODE_CONFIG", file);
    let (out, _) = ended(0, &serve.output().expect("it runs"));
    assert_eq!(line(&out, "port")[2], "1234");
}

#[test]
fn errors_in_the_file_name_file_line_and_key() {
    let directory = Directory::new("errors");
    for (text, place, part) in [
        ("port = 1\n\nmaxclient = 5\n", ":3:", "\"maxclients\""),
        ("tcp_keepalive = 5\n", ":1:", "\"tcp-keepalive\""),
        ("port = 1\nport = 99999\n", ":2:", "duplicate key"),
        ("port = 99999\n", ":1:", "--port"),
        ("port = \n", ":1:", ""),
        ("print-config = true\n", ":1:", "unknown key"),
    ] {
        let file = directory.file("bad.toml", text);
        let (out, err) = ends(64, ["serve", "--config", &file]);
        assert_eq!(out, "", "{text}");
        shows(&err, &[&format!("{file}{place}"), part]);
    }
    let (_, err) = ends(64, ["serve", "--config", "/nonexistent.toml"]);
    shows(&err, &["/nonexistent.toml", "--config"]);
}

#[test]
fn a_bad_variable_is_named() {
    let mut serve = command(["serve", "--print-config"]);
    serve.env("LOCKNODE_MAXMEMORY", "plenty");
    let (_, err) = ended(64, &serve.output().expect("it runs"));
    shows(&err, &["plenty", "LOCKNODE_MAXMEMORY", "100mb"]);
}

#[test]
fn the_variables_of_a_kubernetes_service_are_not_taken_for_options() {
    let mut serve = command(["serve", "--print-config"]);
    serve.env("LOCKNODE_PORT", "tcp://10.0.0.1:6379");
    let (out, _) = ended(0, &serve.output().expect("it runs"));
    assert_eq!(line(&out, "port").join(" "), "port = 6379 # default");
}

#[test]
fn wrong_usage_is_exit_code_64_and_says_how() {
    for line in [
        "serve --threads 0",
        "serve --port 65536",
        "serve --protected-mode maybe",
        "serve --no-such-flag",
        "no-such-command",
        "",
        "lab --nodes 0",
        "lab --port 65535",
        "status",
        "status --nodes http://x",
        "bench --workload x",
        "bench --connections 10 --keys 5",
    ] {
        let (code, out, err) = outcome(&run(line.split_whitespace()));
        assert_eq!((code, out.as_str()), (Some(64), ""), "{line}: {err}");
        assert!(err.len() > 20, "{line}: {err}");
    }
}

/// What CONFIG shows and the engine does not decide: these have flags of their own, or one value.
const FACTS: &str = "appendonly bind databases lua-time-limit dir durability max-ttl maxmemory-policy port restart-guard save tls-port";

/// Values of every kind, right and wrong, at and beyond the ends of every range, with a comma between them.
const TEXTS: &str = ",0,1,-1,007, 1,yes,YES,true,1k,1KiB,2GB,1.5mb,5%,101%,5m,1048575,1048576,2147483647,2147483648,\
    4294967295,4294967296,9223372036854775807,9223372036854775808,18446744073709551615,18446744073709551616,64mb,\
    normal 64mb 0 0,normal 64mb 32mb 60,replica 1 2 3 normal 0 0 0,master 1 2 3,notice,NOTHING,info";

/// The options that CONFIG GET shows and the engine obeys.
fn options(client: &mut TcpStream) -> Vec<(String, String)> {
    let mut options = config_get(client, "*");
    options.retain(|(name, _)| !FACTS.split(' ').any(|fact| fact == name));
    assert!(options.len() > 5, "{options:?}");
    options
}

#[test]
fn a_flag_and_config_set_accept_the_same_values_of_every_option() {
    let mut node = serve("--first-start");
    let mut client = connect(node.address());
    for (option, _) in options(&mut client) {
        let (mut right, mut wrong) = (0, 0);
        // All flags first: a timeout of a second must not close the connection meanwhile.
        let flags = TEXTS.split(',').map(|text| format!("--{option}={text}"));
        let started: Vec<_> = flags
            .map(|flag| (outcome(&run(["serve", &flag, "--print-config"])), flag))
            .collect();
        for (((code, _, err), flag), text) in started.into_iter().zip(TEXTS.split(',')) {
            let reply = ask(&mut client, &format!("CONFIG SET {option} \"{text}\""));
            if reply.ends_with("can't set immutable config") {
                continue;
            }
            if reply == "+OK" {
                right += 1;
                assert_eq!(code, Some(0), "{flag}: {err}");
            } else {
                wrong += 1;
                let (_, reason) = reply.split_once("') - ").expect("a reason");
                assert_eq!(code, Some(64), "{flag}: {reply}");
                assert!(err.contains(reason), "{flag}: {err}: {reply}");
            }
        }
        let at_start = ["aclfile", "enable-debug-command"];
        let is_at_start = at_start.contains(&option.as_str()) || option.starts_with("tls-");
        assert!(right > 0 || is_at_start, "{option}");
        let takes_anything = is_at_start || option == "requirepass";
        assert!(wrong > 0 || takes_anything, "{option}");
    }
}

#[test]
fn every_option_that_config_shows_is_a_flag_with_the_same_default() {
    let mut node = serve("--first-start");
    let mut client = connect(node.address());
    let (printed, _) = ends(0, ["serve", "--print-config"]);
    let directory = Directory::new("defaults");
    let file = directory.file("printed.toml", &printed);
    let mut again = command(["serve", "--first-start", "--config", &file]);
    again.env("LOCKNODE_PORT", "0");
    let mut again = Program::start(again);
    let mut same = connect(again.address());
    assert_eq!(options(&mut same), options(&mut client));
    let page = include_str!("../../../../docs/options.md");
    for (option, _) in options(&mut client) {
        let words = line(&printed, &option);
        let value = words.iter().skip_while(|word| **word != "=").skip(1);
        let default = value.take_while(|word| **word != "#").copied();
        let default = default.collect::<Vec<_>>().join(" ");
        let default = Some(default.trim_matches('"')).filter(|it| !it.is_empty());
        let row = format!("| `{option}` | {} |", default.unwrap_or("none"));
        assert!(page.contains(&row), "docs/options.md has no {row}");
    }
}

/// What CONFIG GET replies: names and values.
fn config_get(client: &mut TcpStream, pattern: &str) -> Vec<(String, String)> {
    let count = ask(client, &format!("CONFIG GET {pattern}"));
    let count: usize = count[1..].parse().expect("an array");
    let mut text = || {
        let len: usize = read_line(client)[1..].parse().expect("a length");
        let mut text = vec![0; len + 2];
        client.read_exact(&mut text).expect("the text");
        String::from_utf8(text).expect("text").trim_end().to_owned()
    };
    (0..count / 2).map(|_| (text(), text())).collect()
}

fn read_line(client: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the rest of the line");
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("text").trim_end().to_owned()
}
