//! Runs that count and runs that do not.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::cluster::Absent;
use crate::program::{Program, command, outcome, run};

#[test]
fn every_workload_counts_its_replies_on_a_node_in_the_process() {
    for (workload, requests, operations) in [
        ("ping", 501, 501),
        ("set", 501, 501),
        ("cycle-evalsha", 1002, 501),
        ("cycle-delex", 1002, 501),
        ("cycle-delifeq", 1002, 501),
        ("cycle-lock", 1002, 501),
        ("cycle-lock-floor", 1002, 501),
    ] {
        for (connections, pipeline, threads) in [("1", "1", "1"), ("7", "16", "2")] {
            let (code, out, err) = outcome(&run([
                "bench",
                "--json",
                "--workload",
                workload,
                "--requests",
                &requests.to_string(),
                "--connections",
                connections,
                "--pipeline",
                pipeline,
                "--threads",
                threads,
            ]));
            assert_eq!(code, Some(0), "{workload}: {err}");
            for part in [
                format!("\"commands\":{requests},"),
                format!("\"operations\":{operations},"),
                format!("\"commands_with_warmup\":{requests},"),
                "\"errors\":0,".to_owned(),
                "\"name\":\"locknode\"".to_owned(),
            ] {
                assert!(out.contains(&part), "{workload}: {part} in {out}");
            }
        }
    }
}

#[test]
fn a_timed_run_on_another_process_leaves_no_lock_behind() {
    let mut node = Program::start(command(["serve", "--first-start", "--port", "0"]));
    let address = node.address();
    let (code, out, err) = outcome(&run([
        "bench",
        "--addr",
        &address.to_string(),
        "--duration",
        "200ms",
        "--warmup",
        "50ms",
        "--connections",
        "5",
    ]));
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("acquire") && out.contains("release") && out.contains("p99.9"),
        "{out}"
    );
    let mut client = crate::program::connect(address);
    assert_eq!(crate::program::ask(&mut client, "DBSIZE"), ":0");
}

#[test]
fn a_wrong_reply_makes_the_run_void_and_is_shown() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("an address").to_string();
    // Answers INFO, as a server would, and everything else with an error.
    std::thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut request) {
                    let is_info = request[..len].windows(4).any(|word| word == b"INFO");
                    let reply: &[u8] = if is_info {
                        b"$0\r\n\r\n"
                    } else {
                        b"-ERR out of order\r\n"
                    };
                    if stream.write_all(reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let (code, out, err) = outcome(&run([
        "bench",
        "--addr",
        &address,
        "--workload",
        "set",
        "--requests",
        "10",
        "--json",
    ]));
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("void") && err.contains("-ERR out of order"),
        "{err}"
    );
    assert!(out.contains("\"errors\":1"), "{out}");
}

#[test]
fn a_server_that_is_away_is_exit_code_69() {
    let absent = Absent::new();
    let away: String = absent.nodes().split(',').take(1).collect();
    let (code, _, err) = outcome(&run(["bench", "--addr", &away]));
    assert_eq!(code, Some(69));
    assert!(err.contains(&away), "{err}");
}
