//! Runs that count and runs that do not, and comparisons of servers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::cluster::Absent;
use crate::program::{Directory, Program, command, outcome, run, text_of};

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
        ("extend", 5010, 501),
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
    for (workload, rows) in [
        ("cycle-evalsha", &["acquire", "release", "all"][..]),
        ("mixed", &["acquire", "refused", "extend", "release", "all"]),
    ] {
        let (code, out, err) = outcome(&run([
            "bench",
            "--addr",
            &address.to_string(),
            "--workload",
            workload,
            "--duration",
            "200ms",
            "--warmup",
            "50ms",
            "--connections",
            "5",
        ]));
        assert_eq!(code, Some(0), "{err}");
        let names = out.lines().filter_map(|line| line.split(' ').next());
        let names: Vec<&str> = names.filter(|name| rows.contains(name)).collect();
        assert_eq!(names, rows, "{out}");
        let mut client = crate::program::connect(address);
        assert_eq!(crate::program::ask(&mut client, "DBSIZE"), ":0");
    }
}

#[test]
fn a_mixed_load_asks_again_for_a_tenth_of_its_locks() {
    let mixed = [
        "bench",
        "--json",
        "--workload",
        "mixed",
        "--connections",
        "1",
    ];
    let load = ["--requests", "310", "--keys", "8"];
    let (code, out, err) = outcome(&run([&mixed[..], &load].concat()));
    assert_eq!(code, Some(0), "{err}");
    for (name, count) in [
        ("acquire", 100),
        ("refused", 10),
        ("extend", 100),
        ("release", 100),
        ("all", 310),
    ] {
        let part = format!("\"{name}\":{{\"count\":{count},");
        assert!(out.contains(&part), "{part}: {out}");
    }
    let (code, _, err) = outcome(&run(
        [&mixed[..], &["--pipeline", "3", "--keys", "11"]].concat()
    ));
    assert_eq!(code, Some(64));
    assert!(err.contains("use --keys 12 or more"), "{err}");
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
            let args = ["bench", flag, &address, "--workload", "set", "--requests"];
            let (code, out, err) = outcome(&run([&args[..], &["10", "--json"]].concat()));
            assert_eq!(code, Some(1), "{err}");
            for part in ["void", &address, part] {
                assert!(err.contains(part), "{part}: {err}");
            }
            assert!(out.contains("\"errors\":1"), "{out}");
        }
    }
}

#[test]
fn servers_are_compared_in_rounds_and_drawn() {
    let mut node = Program::start(command(["serve", "--first-start", "--port", "0"]));
    let address = node.address().to_string();
    let directory = Directory::new("bench");
    let picture = text_of(&directory.path.join("bench.svg"));
    let load = ["--rounds", "3", "--duration", "60ms", "--connections", "5"];
    let both = ["bench", "--against", &address, "--svg", &picture];
    let (code, out, err) = outcome(&run([&both[..], &load].concat()));
    assert_eq!(code, Some(0), "{err}");
    for part in [
        "cycle-evalsha: 3 rounds of 0.06 s each, 5 connections, pipeline 1, ",
        "us CPU/command",
        &format!("on {address}, as a multiple of locknode "),
        "  commands per second   ",
        "  p99 latency           ",
        "Every reply was checked.",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert_eq!(svg.matches(" curve\"").count(), 2, "{svg}");

    let given = ["bench", "--json", "--addr", &address, "--against"];
    let third = imposter("-ERR unknown command 'INFO'\r\n", "+PONG\r\n");
    let workload = [&third, "--workload", "ping"];
    let (code, out, err) = outcome(&run([&given[..], &workload, &load].concat()));
    assert_eq!(code, Some(0), "{err}");
    for part in [
        "\"rounds\":3,\"errors\":0,\"servers\":[{\"name\":\"locknode\"",
        "\"name\":\"unknown\",\"version\":\"\"",
        "\"times_the_first\":{\"commands_per_second\":{\"median\":",
        &format!("unknown on {third}: no CPU time, for it does not give its process id by INFO"),
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    #[cfg(target_os = "linux")]
    assert!(out.contains("\"cpu_us_per_command\":{\"median\":"), "{out}");
}

#[test]
fn a_server_elsewhere_is_compared_without_cpu_time() {
    let elsewhere = "$35\r\nredis_version:7\r\nprocess_id:4194999\r\n\r\n";
    let address = imposter(elsewhere, "+PONG\r\n");
    let load = ["--workload", "ping", "--requests", "50", "--rounds", "2"];
    let (code, out, err) = outcome(&run([&["bench", "--against", &address][..], &load].concat()));
    assert_eq!(code, Some(0), "{err}");
    let note =
        format!("Redis 7 on {address}: no CPU time, for this machine has no process 4194999");
    for part in [
        &note,
        "Only its throughput and latency are compared",
        "  p99 latency",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("  CPU per command"), "{out}");
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_sent() {
    let mut node = Program::start(command(["serve", "--first-start", "--port", "0"]));
    let port = node.address().port();
    let (address, name) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    let mut quarantined = Program::start(command(["serve", "--port", "0"]));
    let quarantined = quarantined.address().to_string();
    let password = imposter("-NOAUTH Authentication required.\r\n", "+OK\r\n");
    let loading = imposter("$11\r\nloading:1\r\n\r\n", "+OK\r\n");
    let without = imposter("$0\r\n\r\n", "-ERR unknown command\r\n");
    let absent = Absent::new();
    let away: String = absent.nodes().split(',').take(1).collect();
    let many = ["--against"; 8];
    let many: Vec<&str> = many.iter().flat_map(|flag| [*flag, &address]).collect();
    for (args, code, part) in [
        (&["--against", &name][..], 64, "are the same server"),
        (&["--against", "10.0.0.1:x"], 64, "--against: "),
        (&many, 64, "--against takes 7 servers at most"),
        (&["--rounds", "3"], 64, "--against"),
        (&["--svg", "x.svg"], 64, "--against"),
        (&["--against", &away], 69, "nothing listens there"),
        (&["--against", &quarantined], 69, "restart quarantine"),
        (&["--against", &password], 69, "it wants a password"),
        (&["--against", &loading], 69, "it is loading its data"),
        (&["--against", &without], 69, "choose another --workload"),
    ] {
        let args = [&["bench", "--addr", &address][..], args].concat();
        let (ended, out, err) = outcome(&run(&args));
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{args:?}: {err}");
        assert!(err.contains(part), "{part}: {err}");
    }
    let other = imposter("$0\r\n\r\n", "+PONG\r\n");
    let args = ["bench", "--addr", &address, "--against", &other];
    let drawn = [
        &args[..],
        &["--workload", "ping", "--svg", "/no/such/x.svg"],
    ]
    .concat();
    let (code, _, err) = outcome(&run(&drawn));
    assert_eq!(code, Some(69), "{err}");
    assert!(err.contains("cannot write /no/such/x.svg"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_node_of_a_run_ends_with_it() {
    let mut bench = Program::start(command(["bench", "--duration", "1h"]));
    let id = bench.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let node = eventually(|| {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        children.trim().parse::<u32>().ok()
    });
    // It has answered INFO: the load threads are there.
    eventually(|| (std::fs::read_dir(format!("/proc/{id}/task")).ok()?.count() > 1).then_some(()));
    bench.signal(rustix::process::Signal::KILL);
    bench.wait();
    eventually(|| {
        let stat = std::fs::read_to_string(format!("/proc/{node}/stat")).unwrap_or_default();
        // The process that adopts it need not collect it.
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

/// What a question gives once it gives something.
#[cfg(target_os = "linux")]
fn eventually<T>(ask: impl Fn() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + crate::program::PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(std::time::Instant::now() < deadline, "it did not happen");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_is_away_is_exit_code_69() {
    let absent = Absent::new();
    let away: String = absent.nodes().split(',').take(1).collect();
    let (code, _, err) = outcome(&run(["bench", "--addr", &away]));
    assert_eq!(code, Some(69));
    assert!(err.contains(&away), "{err}");
}
