//! Several nodes in one process.

use std::net::TcpListener;

use rustix::process::Signal;

use crate::program::{Program, ask, command, connect, outcome, run};

#[test]
fn every_node_of_the_lab_has_locks_of_its_own() {
    for threads in ["1", "2"] {
        let mut lab = Program::start(command([
            "lab",
            "--nodes",
            "3",
            "--port",
            "0",
            "--threads",
            threads,
        ]));
        let addresses = [lab.address(), lab.address(), lab.address()];
        lab.line_with("redis-cli -p");
        for address in addresses {
            let mut client = connect(address);
            assert_eq!(ask(&mut client, "SET invoice:7 token NX PX 30000"), "+OK");
            assert_eq!(ask(&mut client, "SET invoice:7 other NX PX 30000"), "$-1");
        }
        lab.signal(Signal::INT);
        assert_eq!(lab.wait().code(), Some(0));
    }
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port();
    let (code, _, err) = outcome(&run(["lab", "--nodes", "1", "--port", &port.to_string()]));
    assert_eq!(code, Some(69), "{err}");
    assert!(
        err.contains(&port.to_string()) && err.contains("--port"),
        "{err}"
    );
}
