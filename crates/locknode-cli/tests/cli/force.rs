//! Who holds a lock, and a release by force.

use crate::cluster::{Cluster, decided};
use crate::program::{ask, connect, run, serve};
use crate::run::HOLDER;

#[test]
fn a_lock_is_released_by_force_and_its_holder_is_named() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let holder = cluster.job("job", HOLDER);
    let status = ["status", "--nodes", &nodes, "job"];
    let (out, _) = decided(0, || run(status));
    let label = format!(":{}:sh, for ", holder.id());
    assert!(out.contains(&label), "{out}");
    assert!(!out.contains("trap"), "no arguments: {out}");
    let (json, _) = decided(0, || run(["status", "--nodes", &nodes, "--json", "job"]));
    assert!(json.contains(":sh\",\"held_ms\":"), "{json}");

    let (out, err) = decided(0, || run(["release", "--nodes", &nodes, "--force", "job"]));
    assert_eq!(err, "");
    assert_eq!(out.matches("released; it was held by ").count(), 5, "{out}");
    assert!(
        out.contains(&label) && out.contains("\nfencing token "),
        "{out}"
    );
    assert!(cluster.is_free("job"));
    let (out, _) = decided(0, || run(["release", "--nodes", &nodes, "--force", "job"]));
    assert_eq!(out.matches("was free").count(), 5, "{out}");
}

#[test]
fn a_holder_need_not_say_who_it_is() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for (flags, shown) in [
        ("--label=", None),
        ("--label deploy-7", Some("deploy-7, for ")),
    ] {
        let holder = cluster.job(&format!("{flags} job"), HOLDER);
        let (out, _) = decided(0, || run(["status", "--nodes", &nodes, "job"]));
        match shown {
            Some(shown) => assert!(out.contains(shown), "{out}"),
            None => assert!(!out.contains(", for ") && !out.contains("holder"), "{out}"),
        }
        drop(holder);
        decided(0, || run(["release", "--nodes", &nodes, "--force", "job"]));
    }
    let long = "x".repeat(65);
    let (_, err) = decided(64, || {
        run(["lock", "--nodes", &nodes, "--label", &long, "job"])
    });
    assert!(err.contains("a label has at most 64 bytes"), "{err}");
}

#[test]
fn a_command_whose_lock_was_released_by_force_is_ended() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let mut holder = cluster.job("--ttl 3s --grace 500ms --renew job", HOLDER);
    decided(0, || run(["release", "--nodes", &nodes, "--force", "job"]));
    holder.ends(79);
}

#[test]
fn the_log_has_one_line_whatever_the_name_of_the_lock_is() {
    let mut node = serve("--first-start");
    let address = node.address();
    let mut client = connect(address);
    let reply = ask(&mut client, "LOCK.ACQUIRE k t 60000 LABEL host:7:job");
    assert!(reply.starts_with('*'), "{reply}");
    let evil =
        "*4\r\n$12\r\nLOCK.ACQUIRE\r\n$17\r\nevil\nerror: \x1b[31m\r\n$1\r\nt\r\n$5\r\n60000\r\n";
    let mut client = connect(address);
    ask(&mut client, evil.trim_end());
    let force = "*2\r\n$10\r\nLOCK.FORCE\r\n$17\r\nevil\nerror: \x1b[31m";
    let mut client = connect(address);
    ask(&mut client, force);
    let line = node.line_with("was released by force");
    assert!(
        line.contains("the lock evil\\nerror: \\u{1b}[31m was"),
        "{line}"
    );
    let mut client = connect(address);
    ask(&mut client, "LOCK.FORCE k");
    let line = node.line_with("host:7:job, for ");
    assert!(
        line.starts_with("warning: the lock k was released by force from 127.0.0.1:"),
        "{line}"
    );
}
