//! The Rust that README and docs/ show, compiled and run; and a test that this is what they show.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, Folder};
use redlock_client::{Redlock, Shards};
use tokio::sync::oneshot;

/// What the documents show, and what stands for it here.
const OWN: [(&str, &str); 7] = [
    (r#"["10.0.0.1", "10.0.0.2", "10.0.0.3"]"#, "nodes"),
    (r#"["10.0.1.1", "10.0.1.2", "10.0.1.3"]"#, "blue"),
    (r#"["10.0.2.1", "10.0.2.2", "10.0.2.3"]"#, "green"),
    ("127.0.0.1:7101", "127.0.0.1:0"),
    (r#""/var/lib/locknode""#, "directory"),
    (
        r#"let is_first = std::env::args().any(|arg| arg == "--first-start");"#,
        "",
    ),
    ("tokio::signal::ctrl_c()", "shutdown"),
];

/// README: embedded. Sends how long the node refuses locks.
async fn embedded(
    directory: &Path,
    is_first: bool,
    shutdown: oneshot::Receiver<()>,
    wait: oneshot::Sender<Option<Duration>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let builder = locknode::Node::builder().first_start(is_first);
    let node = builder.open(directory)?;
    wait.send(node.quarantine_left()).unwrap();
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
    let (wait, waits) = oneshot::channel();
    let stopped = async {
        let left = waits.await.unwrap();
        stop.send(()).unwrap();
        left
    };
    let (result, left) = tokio::join!(embedded(directory, is_first, shutdown, wait), stopped);
    result.unwrap();
    left
}

#[tokio::test]
async fn an_embedded_node_serves_at_its_first_start_and_after_a_stop() {
    let folder = Folder::temporary().unwrap();
    assert_eq!(run(&folder.of_node(0), true).await, None);
    assert_eq!(run(&folder.of_node(0), false).await, None);
    // A directory that was lost.
    assert!(run(&folder.of_node(1), false).await.is_some());
}

/// README: the Rust client.
async fn client(nodes: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let send_invoice = || std::future::ready(());
    let redlock = Redlock::builder().nodes(nodes).build()?;
    let guard = redlock
        .lock("invoice/42")
        .ttl(Duration::from_secs(10))
        .acquire()
        .await?;
    tokio::select! {
        () = send_invoice() => {}
        error = guard.lost() => eprintln!("given up: {error}"),
    }
    let _ = guard.release().await;
    Ok(())
}

/// docs/fencing.md.
async fn fenced(redlock: &Redlock) -> Result<u64, Box<dyn std::error::Error>> {
    let guard = redlock.lock("invoice/42").acquire().await?;
    let fencing = guard.fencing();
    Ok(fencing.ok_or("no token")?.get())
}

#[tokio::test]
async fn the_client_acquires_and_releases_and_its_tokens_rise() {
    let cluster = Cluster::builder().nodes(3).build().await.unwrap();
    client(cluster.urls_for(0).unwrap()).await.unwrap();
    let redlock = cluster.redlock(0).unwrap().build().unwrap();
    let first = fenced(&redlock).await.unwrap();
    assert!(fenced(&redlock).await.unwrap() > first);
}

/// docs/shards.md. Returns whether the lock can be acquired meanwhile.
async fn spread(blue: Vec<String>, green: Vec<String>) -> Result<bool, Box<dyn std::error::Error>> {
    let shards = Shards::new([
        ("blue", Redlock::builder().nodes(blue).build()?),
        ("green", Redlock::builder().nodes(green).build()?),
    ])?;
    let guard = shards.lock("invoice/42").acquire().await?;
    let second = shards.lock("invoice/42").try_acquire().await?;
    drop(guard);
    Ok(second.is_some())
}

#[tokio::test]
async fn a_key_of_several_clusters_is_held_once() {
    let blue = Cluster::builder().nodes(3).build().await.unwrap();
    let green = Cluster::builder().nodes(3).build().await.unwrap();
    let nodes = [&blue, &green].map(|cluster| cluster.urls_for(0).unwrap());
    let [blue, green] = nodes;
    assert!(!spread(blue, green).await.unwrap());
}

mod swarm {
    use locknode_testkit::Swarm;

    #[test]
    fn nobody_ever_holds_a_lock_twice() {
        for seed in 0..100 {
            Swarm::default().nodes(5).clients(3).run(seed).assert_safe();
        }
    }
}

mod cluster {
    use locknode_testkit::cluster::Cluster;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_lock_outlives_a_crash() -> Result<(), Box<dyn std::error::Error>> {
        let cluster = Cluster::builder().nodes(5).in_memory().build().await?;
        let redlock = cluster.redlock(0)?.build()?;
        let lock = redlock.lock("invoice/42").acquire().await?;
        cluster.crash(2).await?; // also restart, partition, drop_replies, delay, pause, clocks, or any Fault
        lock.extend(Duration::from_secs(10)).await?;
        Ok(())
    }
}

mod testing {
    use locknode_testkit::cluster::Cluster;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_holder_is_told_that_its_lock_has_expired() -> Result<(), Box<dyn std::error::Error>>
    {
        let cluster = Cluster::builder().nodes(3).in_memory().build().await?;
        let redlock = cluster.redlock(0)?.build()?;
        let lock = redlock
            .lock("invoice/42")
            .ttl(Duration::from_secs(10))
            .acquire()
            .await?;
        cluster.crash(0).await?;
        cluster.crash(1).await?; // no majority is left, so no extension succeeds
        assert!(lock.extend(Duration::from_secs(10)).await.is_err());
        assert!(lock.lost().await.is_expired());
        Ok(())
    }
}

/// README and the pages of docs/.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    docs.chain([root.join("README.md")]).collect()
}

/// Code without its comments and its layout.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("// ") {
        Some((code, _)) => code,
        None => line,
    });
    lines.flat_map(str::split_whitespace).collect()
}

#[test]
fn every_rust_block_of_the_documents_is_run_here() {
    let here = code(include_str!("documents.rs"));
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```rust\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("```").next()) {
            let own = OWN.iter().fold(block.to_owned(), |block, (shown, own)| {
                block.replace(shown, own)
            });
            let mut rest = here.as_str();
            // `use` lines are in rustfmt's order here.
            let (uses, lines): (Vec<_>, Vec<_>) =
                own.lines().partition(|line| line.starts_with("use "));
            for line in uses {
                assert!(rest.contains(&code(line)), "{}: {line}", page.display());
            }
            for line in lines {
                let line = code(line);
                let Some(at) = rest.find(&line) else {
                    panic!("not run here: {}: {line}", page.display());
                };
                rest = rest.split_at(at + line.len()).1;
            }
            count += 1;
        }
    }
    assert_eq!(count, 8, "a block more or less");
}
