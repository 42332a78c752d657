//! Looking at nodes that are there and nodes that are not.

use std::net::TcpListener;

use crate::cluster::Absent;
use crate::program::{Program, command, ended, ends, outcome, run, shows};

#[test]
fn the_exit_code_tells_whether_a_majority_serves() {
    let mut lab = Program::start(command(["lab", "--nodes", "2", "--port", "0"]));
    let (one, two) = (lab.address().to_string(), lab.address().to_string());
    let absent = Absent::new();
    let away = absent.nodes(1);
    for (nodes, code, part) in [
        (&[&*one, &two][..], 0, "all nodes serve"),
        (&[&one, &two, &away], 75, "locks can be acquired"),
        (&[&one, &away], 69, "no lock can be acquired"),
        (&[&away], 69, "connection refused"),
    ] {
        let nodes = nodes.join(",");
        let (out, _) = ends(code, ["status", "--timeout", "10s", "--nodes", &nodes]);
        shows(&out, &[part]);
    }
    let mut status = command(["status", "--json"]);
    status.env("LOCKNODE_NODES", format!("{one},redis://{away}"));
    let (out, _) = ended(69, &status.output().expect("it runs"));
    let parts = [
        "\"state\":\"serving\",\"server\":\"locknode\"",
        "\"state\":\"away\"",
        "\"serving\":1,\"majority\":2",
    ];
    shows(&out, &parts);
}

#[test]
fn a_password_comes_from_the_address_and_is_not_shown() {
    let mut serve = command(["serve", "--first-start", "--port", "0"]);
    serve.env("LOCKNODE_REQUIREPASS", "p@ss");
    let mut node = Program::start(serve);
    let address = node.address();
    for (login, code) in [
        (":p%40ss@", 0),
        ("default:p%40ss@", 0),
        (":wrong@", 69),
        ("", 69),
    ] {
        let nodes = format!("redis://{login}{address}");
        let (out, _) = ends(code, ["status", "--timeout", "10s", "--nodes", &nodes]);
        assert!(!out.contains("ss@") && !out.contains("wrong@"), "{out}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("an address").to_string();
    let (out, _) = ends(69, ["status", "--timeout", "100ms", "--nodes", &address]);
    shows(&out, &["no answer in time"]);
}

/// Every command reads addresses in the same way, and says the same of what is none.
#[test]
fn an_address_is_the_same_for_every_command() {
    let commands: [&[&str]; 4] = [
        &["status"],
        &["status", "name"],
        &["lock", "name"],
        &["run", "name", "--", "true"],
    ];
    let try_all = |address: &str| {
        let each = commands.iter().map(|args| {
            let (first, rest) = args.split_first().expect("a command");
            let args = [&[*first, "--nodes", address], rest].concat();
            outcome(&run(&args))
        });
        each.collect::<Vec<_>>()
    };
    for (address, part) in [
        ("::1:7101", "write an IPv6 address in brackets"),
        ("unix:rel", "must be absolute"),
        ("redis://name@h", "no password"),
        ("redis://h/x", "the database must be a number"),
        ("rediss://h", "TLS"),
    ] {
        for (code, _, err) in try_all(address) {
            if address.starts_with("rediss") && cfg!(feature = "tls") {
                continue;
            }
            assert_eq!(code, Some(64), "{address}: {err}");
            assert!(err.contains(part), "{address}: {err}");
        }
    }
    for address in [
        "::1",
        "[fe80::1%lo]",
        "unix:/nowhere/node.sock",
        "/nowhere/node.sock",
    ] {
        for (code, out, err) in try_all(address) {
            assert_eq!(code, Some(69), "{address}: {out}{err}");
        }
    }
}

#[test]
fn the_database_of_an_address_is_the_one_that_is_asked() {
    let mut lab = Program::start(command(["lab", "--nodes", "1", "--port", "0"]));
    let address = lab.address();
    for (database, code, part) in [(1, 0, "all nodes serve"), (99, 69, "out of range")] {
        let nodes = format!("redis://{address}/{database}");
        let (out, _) = ends(code, ["status", "--timeout", "10s", "--nodes", &nodes]);
        shows(&out, &[part]);
    }
}
