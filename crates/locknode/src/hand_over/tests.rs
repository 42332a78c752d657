use std::time::Duration;

use locknode_engine::GuardState;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

async fn ask(stream: &mut TcpStream, line: &str, reply: &str) {
    stream.write_all(line.as_bytes()).await.expect("sent");
    stream.write_all(b"\r\n").await.expect("sent");
    let mut found = vec![0; reply.len()];
    stream.read_exact(&mut found).await.expect("a reply");
    assert_eq!(String::from_utf8_lossy(&found), reply, "{line}");
}

/// As another process gets it.
fn carried(
    legacy: &Legacy,
    connections: Vec<CarriedConnection>,
) -> (Legacy, Vec<CarriedConnection>) {
    let mut bytes = Vec::new();
    legacy.encode(&mut bytes);
    assert_eq!(Legacy::decode(&bytes[..bytes.len() - 1]), None);
    let legacy = Legacy::decode(&bytes).expect("whole");
    let connections = connections.into_iter().map(|connection| {
        bytes.clear();
        connection.encode(&mut bytes);
        CarriedConnection::decode(&bytes, connection.socket).expect("whole")
    });
    (legacy, connections.collect())
}

/// Locks, their fences, scripts and connections go on; the old node grants nothing more.
#[tokio::test]
async fn a_node_goes_on_elsewhere() {
    let old = Node::builder().first_start(true).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let kept = listener.into_std().expect("a socket");
    let listener = TcpListener::from_std(kept.try_clone().expect("another")).expect("a socket");
    let serving = tokio::spawn({
        let old = old.clone();
        async move { old.serve(listener, std::future::pending()).await }
    });
    let mut plain = TcpStream::connect(address).await.expect("served");
    ask(&mut plain, "SET k token NX PX 60000", "+OK\r\n").await;
    ask(&mut plain, "SELECT 3", "+OK\r\n").await;
    let mut busy = TcpStream::connect(address).await.expect("served");
    ask(&mut busy, "CLIENT REPLY ON", "+OK\r\n").await;
    let mut half = TcpStream::connect(address).await.expect("served");
    ask(&mut half, "PING", "+PONG\r\n").await;
    half.write_all(b"GET ").await.expect("sent");
    #[cfg(feature = "compat")]
    ask(&mut busy, "MULTI", "+OK\r\n").await;
    old.begin_hand_over();
    serving.await.expect("it ends").expect("it ends well");
    let fence = old.shared.engine.fence_max();
    let (legacy, connections) = old.hand_over().expect("nothing fails in memory");
    assert_eq!(old.guard().state, GuardState::Closed);
    let (legacy, connections) = carried(&legacy, connections);
    assert_eq!(
        connections.len(),
        if cfg!(feature = "compat") { 2 } else { 3 }
    );

    let new = Node::builder().take_over(legacy).build();
    assert_eq!(new.quarantine_left(), None);
    assert_eq!(new.stats().keys, 1);
    assert_eq!(new.shared.engine.run_id(), old.shared.engine.run_id());
    assert!(new.shared.engine.fence_max() >= fence);
    let listener = Resuming::new(TcpListener::from_std(kept).expect("a socket"), connections);
    tokio::spawn(async move { new.serve(listener, std::future::pending()).await });
    ask(&mut plain, "SELECT 0", "+OK\r\n").await;
    ask(&mut half, "k", "$5\r\ntoken\r\n").await;
    let mut fresh = TcpStream::connect(address).await.expect("served");
    ask(&mut fresh, "SET k other NX PX 60000", "$-1\r\n").await;
    // One whose session is more than that sees its connection end, as at every stop.
    #[cfg(feature = "compat")]
    assert_eq!(busy.read(&mut [0]).await.expect("closed in order"), 0);
}

/// A node in quarantine leaves nothing that would end the wait of another.
#[tokio::test]
async fn a_quarantine_is_not_lost_on_the_way() {
    let old = Node::builder().build();
    old.begin_hand_over();
    let (legacy, _) = old.hand_over().expect("nothing fails in memory");
    let new = Node::builder().take_over(legacy).build();
    let left = new.quarantine_left().expect("it waits");
    assert!(left > Duration::from_secs(59), "{left:?}");
}

#[test]
fn what_is_no_legacy_is_none() {
    assert_eq!(Legacy::decode(&[]), None);
    assert_eq!(Legacy::decode(&[255; 16]), None);
    let garbage = Legacy {
        files: [("state".to_owned(), vec![1; 100])].into(),
        ..Legacy::default()
    };
    let new = Node::builder().take_over(garbage).build();
    assert!(new.quarantine_left().is_some());
}
