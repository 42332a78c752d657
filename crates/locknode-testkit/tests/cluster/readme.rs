//! The Rust that README shows, compiled and run; and that it is what README shows.

use std::path::Path;
use std::time::Duration;

use locknode_testkit::cluster::Cluster;
use tokio::sync::oneshot;

const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));

/// As README has it, with a directory and an end of a test's own. Tells how long the node stays out of every lock.
async fn embedded(
    directory: &Path,
    is_first: bool,
    shutdown: oneshot::Receiver<()>,
    told: oneshot::Sender<Option<Duration>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let builder = locknode::Node::builder().first_start(is_first);
    let node = builder.open(directory)?;
    told.send(node.quarantine_left()).unwrap();
    node.serve(listener, async {
        shutdown.await.ok();
    })
    .await?;
    node.close()?;
    Ok(())
}

/// Runs it until it serves, and stops it.
async fn run(directory: &Path, is_first: bool) -> Option<Duration> {
    let (stop, shutdown) = oneshot::channel();
    let (told, left) = oneshot::channel();
    let stopped = async {
        let left = left.await.unwrap();
        stop.send(()).unwrap();
        left
    };
    let (ended, left) = tokio::join!(embedded(directory, is_first, shutdown, told), stopped);
    ended.unwrap();
    left
}

#[tokio::test]
async fn an_embedded_node_serves_at_its_first_start_and_after_a_stop() {
    let folder = locknode_testkit::cluster::Folder::temporary().unwrap();
    assert_eq!(run(&folder.of_node(0), true).await, None);
    assert_eq!(run(&folder.of_node(0), false).await, None);
    // A directory that was lost.
    assert!(run(&folder.of_node(1), false).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lock_outlives_a_crash() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::builder().nodes(5).in_memory().build().await?;
    let redlock = cluster.redlock(0)?.build()?;
    let lock = redlock.lock("invoice/42").acquire().await?;
    cluster.crash(2).await?; // also restart, partition, drop_replies, delay, pause, clocks, or any Fault
    lock.extend(Duration::from_secs(10)).await?;
    Ok(())
}

/// The block of README with this in it.
fn block(with: &str) -> &'static str {
    let blocks = README.split("```rust\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains(with));
    block.unwrap_or_else(|| panic!("README has no block with {with}"))
}

/// Code without its comments and its layout.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" //") {
        Some((code, _)) => code,
        None => line,
    });
    lines.flat_map(str::split_whitespace).collect()
}

#[test]
fn readme_shows_what_is_run_here() {
    let here = code(include_str!("readme.rs"));
    // The address, the directory, the flag and the signal are the test's own.
    let shown = block("Node::builder()")
        .replace("127.0.0.1:7101", "127.0.0.1:0")
        .replace("\"/var/lib/locknode\"", "directory")
        .replace("tokio::signal::ctrl_c()", "shutdown");
    let of_flag = "std::env::args().any(|arg| arg == \"--first-start\")";
    assert!(shown.contains(of_flag), "{shown}");
    for line in shown.lines().filter(|line| !line.contains(of_flag)) {
        assert!(here.contains(&code(line)), "{line}");
    }
    let shown = code(block("start_paused"));
    let (_, shown) = shown.split_once("usestd::time::Duration;").unwrap();
    let (_, shown) = shown
        .split_once("uselocknode_testkit::cluster::Cluster;")
        .unwrap();
    assert!(here.contains(shown), "{shown}");
}
