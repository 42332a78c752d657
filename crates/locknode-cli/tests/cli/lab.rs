//! Several nodes in one process.

use std::net::TcpListener;

use rustix::process::Signal;

use crate::program::{Program, ask, connect, outcome_of, shows};

#[test]
fn every_node_of_the_lab_has_locks_of_its_own() {
    for threads in ["1", "2"] {
        let line = format!("lab --nodes 3 --port 0 --threads {threads}");
        let mut lab = Program::of(&line);
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
    let port = port.to_string();
    for (flags, part) in [("", "--port"), ("--faults", "127.0.0.1")] {
        let (code, _, err) = outcome_of(&format!("lab --nodes 1 {flags} --port {port}"));
        assert_eq!(code, Some(69), "{err}");
        shows(&err, &[&port, part]);
    }
}
