//! Looking at nodes that are there and nodes that are not.

use std::net::TcpListener;

use crate::cluster::Absent;
use crate::program::{Program, command, outcome, run};

#[test]
fn the_exit_code_tells_whether_a_majority_serves() {
    let mut lab = Program::start(command(&["lab", "--nodes", "2", "--port", "0"]));
    let (one, two) = (lab.address().to_string(), lab.address().to_string());
    let absent = Absent::new();
    let away: String = absent.nodes().split(',').take(1).collect();
    for (nodes, code, part) in [
        (vec![&one, &two], 0, "all nodes serve"),
        (vec![&one, &two, &away], 75, "locks can be taken"),
        (vec![&one, &away], 69, "no lock can be taken"),
        (vec![&away], 69, "connection refused"),
    ] {
        let nodes: Vec<&str> = nodes.into_iter().map(String::as_str).collect();
        let (found, out, err) = outcome(&run(&[
            "status",
            "--timeout",
            "10s",
            "--nodes",
            &nodes.join(","),
        ]));
        assert_eq!(found, Some(code), "{out}{err}");
        assert!(out.contains(part), "{out}");
    }
    let mut status = command(&["status", "--json"]);
    status.env("LOCKNODE_NODES", format!("{one},redis://{away}"));
    let (code, out, err) = outcome(&status.output().expect("it runs"));
    assert_eq!(code, Some(69), "{err}");
    for part in [
        "\"state\":\"serving\",\"server\":\"locknode\"",
        "\"state\":\"away\"",
        "\"serving\":1,\"majority\":2",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
}

#[test]
fn a_password_comes_from_the_address_and_is_not_shown() {
    let mut serve = command(&["serve", "--first-start", "--port", "0"]);
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
        let (found, out, err) = outcome(&run(&["status", "--timeout", "10s", "--nodes", &nodes]));
        assert_eq!(found, Some(code), "{login}: {out}{err}");
        assert!(!out.contains("ss@") && !out.contains("wrong@"), "{out}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("an address").to_string();
    let (code, out, _) = outcome(&run(&["status", "--timeout", "100ms", "--nodes", &address]));
    assert_eq!(code, Some(69));
    assert!(out.contains("no answer in time"), "{out}");
}
