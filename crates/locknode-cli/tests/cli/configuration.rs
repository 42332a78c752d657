//! Flags, environment, file, and `--print-config`.

use std::io::Read as _;
use std::net::TcpStream;

use crate::program::{Directory, Program, ask, command, connect, outcome, run};

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
    let mut serve = command([
        "serve",
        "--config",
        &file,
        "--port",
        "1003",
        "--print-config",
    ]);
    serve
        .env("LOCKNODE_PORT", "1002")
        .env("LOCKNODE_TIMEOUT", "12");
    let (code, out, err) = outcome(&serve.output().expect("it runs"));
    assert_eq!(code, Some(0), "{err}");
    for (option, value, origin) in [
        ("port", "1003", "flag --port"),
        ("timeout", "12", "environment LOCKNODE_TIMEOUT"),
        ("maxmemory", "\"1mb\"", &format!("{file}:4")),
        ("protected-mode", "\"no\"", &format!("{file}:6")),
        ("bind", "[\"127.0.0.1\", \"::1\"]", &format!("{file}:5")),
        ("maxclients", "10000", "default"),
    ] {
        assert_eq!(
            line(&out, option).join(" "),
            format!("{option} = {value} # {origin}")
        );
    }
    assert_eq!(
        line(&out, "unixsocket").join(" "),
        "# unixsocket = # not set"
    );
    assert!(
        !out.contains("from-the-file"),
        "the password is not shown:\n{out}"
    );
    assert_eq!(
        line(&out, "requirepass")[..4].join(" "),
        "# requirepass = \"********\""
    );
}

#[test]
fn the_printed_configuration_can_be_read_back() {
    let directory = Directory::new("roundtrip");
    let flags = [
        "serve",
        "--port",
        "0",
        "--bind",
        "",
        "--unixsocket",
        "/tmp/a \"b\".sock",
        "--drain",
        "2m",
        "--print-config",
    ];
    let (_, printed, _) = outcome(&run(flags));
    let file = directory.file("printed.toml", &printed);
    let (code, again, err) = outcome(&run(["serve", "--config", &file, "--print-config"]));
    assert_eq!(code, Some(0), "{err}");
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
    let (_, out, err) = outcome(&serve.output().expect("it runs"));
    assert_eq!(line(&out, "port")[2], "1234", "{err}");
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
        let (code, out, err) = outcome(&run(["serve", "--config", &file]));
        assert_eq!((code, out.as_str()), (Some(64), ""), "{text}: {err}");
        assert!(
            err.contains(&format!("{file}{place}")) && err.contains(part),
            "{text}: {err}"
        );
    }
    let (code, _, err) = outcome(&run(["serve", "--config", "/nonexistent.toml"]));
    assert_eq!(code, Some(64));
    assert!(
        err.contains("/nonexistent.toml") && err.contains("--config"),
        "{err}"
    );
}

#[test]
fn a_bad_variable_is_named() {
    let mut serve = command(["serve", "--print-config"]);
    serve.env("LOCKNODE_MAXMEMORY", "plenty");
    let (code, _, err) = outcome(&serve.output().expect("it runs"));
    assert_eq!(code, Some(64));
    assert!(
        err.contains("plenty") && err.contains("LOCKNODE_MAXMEMORY") && err.contains("100mb"),
        "{err}"
    );
}

#[test]
fn the_variables_of_a_kubernetes_service_are_not_taken_for_options() {
    let mut serve = command(["serve", "--print-config"]);
    serve.env("LOCKNODE_PORT", "tcp://10.0.0.1:6379");
    let (code, out, err) = outcome(&serve.output().expect("it runs"));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(line(&out, "port").join(" "), "port = 6379 # default");
}

#[test]
fn wrong_usage_is_exit_code_64_and_says_how() {
    for args in [
        &["serve", "--threads", "0"][..],
        &["serve", "--port", "65536"],
        &["serve", "--protected-mode", "maybe"],
        &["serve", "--no-such-flag"],
        &["no-such-command"],
        &[],
        &["lab", "--nodes", "0"],
        &["lab", "--port", "65535"],
        &["status"],
        &["status", "--nodes", "http://x"],
        &["bench", "--workload", "x"],
        &["bench", "--connections", "10", "--keys", "5"],
    ] {
        let (code, out, err) = outcome(&run(args));
        assert_eq!((code, out.as_str()), (Some(64), ""), "{args:?}: {err}");
        assert!(err.len() > 20, "{args:?}: {err}");
    }
}

/// Values of the options that can also be set while the node runs, and whether they are right.
const VALUES: &[(&str, &str, bool)] = &[
    ("maxclients", "0", false),
    ("maxclients", "1", true),
    ("maxclients", "4294967295", true),
    ("maxclients", "4294967296", false),
    ("maxclients", "1k", false),
    ("maxmemory", "0", true),
    ("maxmemory", "1k", true),
    ("maxmemory", "2GB", true),
    ("maxmemory", "18446744073709551615", true),
    ("maxmemory", "18446744073709551616", false),
    ("maxmemory", "1.5mb", false),
    ("maxmemory", "5%", false),
    ("timeout", "0", true),
    ("timeout", "2147483647", true),
    ("timeout", "2147483648", false),
    ("timeout", "1x", false),
    ("tcp-keepalive", "0", true),
    ("tcp-keepalive", "2147483647", true),
    ("tcp-keepalive", "2147483648", false),
    ("proto-max-bulk-len", "1048575", false),
    ("proto-max-bulk-len", "1mb", true),
    ("proto-max-bulk-len", "1gb", true),
    ("proto-max-bulk-len", "9223372036854775807", true),
    ("proto-max-bulk-len", "9223372036854775808", false),
    ("client-query-buffer-limit", "1048575", false),
    ("client-query-buffer-limit", "1mb", true),
    ("client-query-buffer-limit", "9223372036854775807", true),
    ("client-query-buffer-limit", "9223372036854775808", false),
    ("client-output-buffer-limit", "normal 64mb 0 0", true),
    (
        "client-output-buffer-limit",
        "replica 1 2 3 normal 0 0 0",
        true,
    ),
    ("client-output-buffer-limit", "normal 64mb 32mb 60", false),
    ("client-output-buffer-limit", "normal 64mb", false),
    ("client-output-buffer-limit", "master 1 2 3", false),
    ("protected-mode", "yes", true),
    ("protected-mode", "no", true),
    ("protected-mode", "maybe", false),
];

/// A flag, a line of a file and CONFIG SET take the same values and understand the same by them.
#[test]
fn every_option_has_one_range_however_it_is_set() {
    let directory = Directory::new("one-range");
    let mut node = Program::start(command(["serve", "--first-start", "--port", "0"]));
    let mut client = connect(node.address());
    for &(option, value, is_right) in VALUES {
        let shown = format!("{option} = {value}");
        let flag = format!("--{option}={value}");
        let code = outcome(&run(["serve", &flag, "--print-config"])).0;
        assert_eq!(code == Some(0), is_right, "a flag: {shown}");
        let file = directory.file("one.toml", &format!("{option} = \"{value}\"\n"));
        let code = outcome(&run(["serve", "--config", &file, "--print-config"])).0;
        assert_eq!(code == Some(0), is_right, "a file: {shown}");
        let reply = ask(&mut client, &format!("CONFIG SET {option} \"{value}\""));
        assert_eq!(reply == "+OK", is_right, "CONFIG SET: {shown}: {reply}");
    }
}

/// Every option that CONFIG SET changes is a flag, but for those that have one value only.
#[test]
fn every_option_that_can_be_changed_is_a_flag_with_the_same_default() {
    let mut node = Program::start(command(["serve", "--first-start", "--port", "0"]));
    let mut client = connect(node.address());
    let (_, help, _) = outcome(&run(["serve", "--help"]));
    let (_, printed, _) = outcome(&run(["serve", "--print-config"]));
    let names: Vec<&str> = VALUES.iter().map(|(option, ..)| *option).collect();
    for option in [
        "client-output-buffer-limit",
        "client-query-buffer-limit",
        "maxclients",
        "maxmemory",
        "proto-max-bulk-len",
        "protected-mode",
        "tcp-keepalive",
        "timeout",
    ] {
        assert!(names.contains(&option), "{option} has no values above");
        assert!(help.contains(&format!("--{option} <")), "{option}");
        // What the flag has by default is what the node begins with.
        let default = line(&printed, option)[2].trim_matches('"').to_owned();
        let default = match option {
            "client-output-buffer-limit" => format!("normal {default} 0 0"),
            _ => default,
        };
        let before = value_of(&mut client, option);
        let reply = ask(&mut client, &format!("CONFIG SET {option} \"{default}\""));
        assert_eq!(reply, "+OK", "{option} {default}");
        assert_eq!(value_of(&mut client, option), before, "{option}");
    }
}

/// What CONFIG GET tells.
fn value_of(client: &mut TcpStream, option: &str) -> String {
    assert_eq!(ask(client, &format!("CONFIG GET {option}")), "*2");
    let mut lines = String::new();
    while lines.matches("\r\n").count() < 4 {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the rest of the reply");
        lines.push(char::from(byte[0]));
    }
    lines
}
