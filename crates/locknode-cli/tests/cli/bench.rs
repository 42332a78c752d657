//! Runs that count and runs that do not, and comparisons of servers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::cluster::Absent;
use crate::processes::{is_alive, wait_until};
use crate::program::{Directory, Program, ask, command, connect, ends, serve, shows};

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
        ("cycle-redisson", 1503, 501),
        ("extend", 5010, 501),
    ] {
        for load in [
            "--connections 1 --pipeline 1 --threads 1",
            "--connections 7 --pipeline 16 --threads 2",
        ] {
            let line = format!("bench --json --workload {workload} --requests {requests} {load}");
            let (out, _) = ends(0, line.split(' '));
            let parts = [
                &*format!("\"workload\":\"{workload}\""),
                &format!("\"commands\":{requests},"),
                &format!("\"operations\":{operations},"),
                &format!("\"commands_with_warmup\":{requests},"),
                "\"errors\":0,",
                "\"name\":\"locknode\"",
            ];
            shows(&out, &parts);
        }
    }
}

#[test]
fn a_timed_run_on_another_process_leaves_no_lock_behind() {
    let mut node = serve("--first-start");
    let address = node.address();
    for (workload, rows) in [
        ("cycle-evalsha", &["acquire", "release", "all"][..]),
        ("mixed", &["acquire", "refused", "extend", "release", "all"]),
    ] {
        let load = "--duration 200ms --warmup 50ms --connections 5";
        let line = format!("bench --addr {address} --workload {workload} {load}");
        let (out, _) = ends(0, line.split(' '));
        let names = out.lines().filter_map(|line| line.split(' ').next());
        let names: Vec<&str> = names.filter(|name| rows.contains(name)).collect();
        assert_eq!(names, rows, "{out}");
        assert_eq!(ask(&mut connect(address), "DBSIZE"), ":0");
    }
}

#[test]
fn a_mixed_load_asks_again_for_a_tenth_of_its_locks() {
    let mixed = "bench --json --workload mixed --connections 1";
    let line = format!("{mixed} --requests 310 --keys 8");
    let (out, _) = ends(0, line.split(' '));
    for (name, count) in [
        ("acquire", 100),
        ("refused", 10),
        ("extend", 100),
        ("release", 100),
        ("all", 310),
    ] {
        shows(&out, &[&format!("\"{name}\":{{\"count\":{count},")]);
    }
    let (_, err) = ends(64, format!("{mixed} --pipeline 3 --keys 11").split(' '));
    shows(&err, &["use --keys 12 or more"]);
}

/// Where a server listens that answers INFO with one reply and everything else with another.
fn imposter(info: &'static str, other: &'static str) -> String {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut request) {
                    let is_info = request[..len].windows(4).any(|word| word == b"INFO");
                    let reply = if is_info { info } else { other };
                    if stream.write_all(reply.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_wrong_reply_makes_the_run_void_and_is_shown() {
    for (reply, part) in [
        ("-ERR out of order\r\n", "-ERR out of order"),
        ("-MOVED 1 10.0.0.1:1\r\n", "a node of a Redis Cluster"),
        ("-LOADING wait\r\n", "wait until it serves"),
    ] {
        let address = imposter("$0\r\n\r\n", reply);
        for flag in ["--addr", "--against"] {
            let line = format!("bench {flag} {address} --workload set --requests 10 --json");
            let (out, err) = ends(1, line.split(' '));
            shows(&err, &["void", &address, part]);
            shows(&out, &["\"errors\":1"]);
        }
    }
}

#[test]
fn servers_are_compared_in_rounds_and_drawn() {
    let mut node = serve("--first-start");
    let address = node.address().to_string();
    let directory = Directory::new("bench");
    let picture = directory.path_of("bench.svg");
    let load = "--rounds 3 --duration 60ms --connections 5";
    let line = format!("bench --against {address} --svg {picture} {load}");
    let (out, _) = ends(0, line.split(' '));
    let parts = [
        "cycle-evalsha: 3 rounds of 0.06 s each, 5 connections, pipeline 1, ",
        "us CPU/command",
        &format!("on {address}, as a multiple of locknode "),
        "  commands per second   ",
        "  p99 latency           ",
        "Every reply was checked.",
    ];
    shows(&out, &parts);
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    let is_whole = svg.starts_with("<svg ") && svg.ends_with("</svg>\n");
    assert!(is_whole, "{svg}");
    assert_eq!(svg.matches(" curve\"").count(), 2, "{svg}");

    let third = imposter("-ERR unknown command 'INFO'\r\n", "+PONG\r\n");
    let line = format!("bench --json --addr {address} --against {third} --workload ping {load}");
    let (out, _) = ends(0, line.split(' '));
    let parts = [
        "\"rounds\":3,\"errors\":0,\"servers\":[{\"name\":\"locknode\"",
        "\"name\":\"unknown\",\"version\":\"\"",
        "\"times_the_first\":{\"commands_per_second\":{\"median\":",
        &format!("unknown on {third}: no CPU time, for it does not give its process id by INFO"),
    ];
    shows(&out, &parts);
    #[cfg(target_os = "linux")]
    shows(&out, &["\"cpu_us_per_command\":{\"median\":"]);
}

#[test]
fn a_server_elsewhere_is_compared_without_cpu_time() {
    let elsewhere = "$35\r\nredis_version:7\r\nprocess_id:4194999\r\n\r\n";
    let address = imposter(elsewhere, "+PONG\r\n");
    let line = format!("bench --against {address} --workload ping --requests 50 --rounds 2");
    let (out, _) = ends(0, line.split(' '));
    let note =
        format!("Redis 7 on {address}: no CPU time, for this machine has no process 4194999");
    let only = "Only its throughput and latency are compared";
    shows(&out, &[&note, only, "  p99 latency"]);
    assert!(!out.contains("  CPU per command"), "{out}");
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_sent() {
    let mut node = serve("--first-start");
    let port = node.address().port();
    let (address, name) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    let mut quarantined = serve("");
    let quarantined = quarantined.address().to_string();
    let password = imposter("-NOAUTH Authentication required.\r\n", "+OK\r\n");
    let loading = imposter("$11\r\nloading:1\r\n\r\n", "+OK\r\n");
    let without = imposter("$0\r\n\r\n", "-ERR unknown command\r\n");
    let other = imposter("$0\r\n\r\n", "+PONG\r\n");
    let drawn = format!("{other} --workload ping --svg /no/such/x.svg");
    let absent = Absent::new();
    let many = [&*address; 8].join(" --against ");
    for (against, code, part) in [
        (&*name, 64, "are the same server"),
        ("10.0.0.1:x", 64, "--against: "),
        (&many, 64, "--against takes 7 servers at most"),
        (&absent.nodes(1), 69, "nothing listens there"),
        (&quarantined, 69, "restart quarantine"),
        (&password, 69, "it wants a password"),
        (&loading, 69, "it is loading its data"),
        (&without, 69, "choose another --workload"),
        (&drawn, 69, "cannot write /no/such/x.svg"),
    ] {
        let line = format!("bench --addr {address} --against {against}");
        let (out, err) = ends(code, line.split(' '));
        assert_eq!(out, "", "{line}: {err}");
        shows(&err, &[part]);
    }
    for flag in ["--rounds 3", "--svg x.svg"] {
        let (_, err) = ends(64, format!("bench --addr {address} {flag}").split(' '));
        shows(&err, &["--against"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_node_of_a_run_ends_with_it() {
    let mut bench = Program::start(command(["bench", "--duration", "1h"]));
    let id = bench.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let mut node = None;
    wait_until("the node is there", || {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        node = children.trim().parse::<u32>().ok();
        node.is_some()
    });
    // It has answered INFO: the load threads are there.
    wait_until("the load threads are there", || {
        let threads = std::fs::read_dir(format!("/proc/{id}/task"));
        threads.is_ok_and(|threads| threads.count() > 1)
    });
    bench.end(rustix::process::Signal::KILL);
    // The process that adopts it need not collect it.
    let node = node.expect("a node");
    wait_until("the node ends", || !is_alive(node));
}

#[test]
fn a_server_that_is_away_is_exit_code_69() {
    let absent = Absent::new();
    let away = absent.nodes(1);
    let (_, err) = ends(69, ["bench", "--addr", &away]);
    shows(&err, &[&away]);
}
