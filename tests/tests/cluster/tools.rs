//! What tools built upon the cluster use: commands of their own, and histories.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use locknode_resp::Reply;
use locknode_testkit::cluster::{Cluster, Recorder, TappedCommand};
use locknode_testkit::history::Event;
use locknode_testkit::{Fault, Links, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::mpsc::unbounded_channel;

use crate::wire::{Wire, bulk, count, inject, ok};

on_both!(
    commands_of_the_owners_pass_whatever_is_wrong_with_the_link,
    what_nodes_do_is_written_down,
);

async fn commands_of_the_owners_pass_whatever_is_wrong_with_the_link(wire: Wire) {
    let (sender, mut requests) = unbounded_channel::<TappedCommand>();
    let builder = Cluster::builder().nodes(2).tap("FAULT", sender);
    let cluster = wire.build(builder).await;
    let owner = cluster.clone();
    tokio::spawn(async move {
        while let Some(request) = requests.recv().await {
            let words: Vec<_> = request.args.iter().map(Vec::as_slice).collect();
            match words.as_slice() {
                [_, b"heal"] => inject(&owner, Fault::Heal(Links::ALL)).await,
                [_, b"where"] => {
                    let place = format!("+{} {}\r\n", request.client, request.node);
                    request.answer(place);
                    continue;
                }
                _ => continue,
            }
            request.answer("+HEALED\r\n");
        }
    });
    let mut client = wire.dial(&cluster, 1, 1).await.unwrap();
    for line in ["ECHO a", "fault where", "ECHO b"] {
        client.say(line).await;
    }
    assert_eq!(client.hear().await.unwrap(), bulk("a"));
    let mut rest = [client.hear().await.unwrap(), client.hear().await.unwrap()];
    rest.sort_by_key(|reply| matches!(reply, Reply::Bulk(_)));
    let place = Reply::Simple(b"1 1".to_vec());
    assert_eq!(rest, [place, bulk("b")]);

    inject(&cluster, Fault::Cut(Links::ALL, Way::Both)).await;
    client.say("SET k t NX PX 1000").await;
    assert!(wire.is_silent(client.hear()).await);
    client.say("FAULT heal").await;
    let mut both = [client.hear().await.unwrap(), client.hear().await.unwrap()];
    both.sort_by_key(|reply| *reply == ok());
    assert_eq!(both, [Reply::Simple(b"HEALED".to_vec()), ok()]);
    // What is not answered costs its client a reply, and nobody anything else.
    client.say("FAULT what").await;
    client.take("j").await;
}

async fn what_nodes_do_is_written_down(wire: Wire) {
    let recorder = Arc::new(Recorder::new(2, 3));
    let builder = Cluster::builder().nodes(2).record(Arc::clone(&recorder));
    let cluster = wire.build(builder).await;
    let mut client = wire.dial(&cluster, 1, 0).await.unwrap();
    client.take("k").await;
    client.take("k").await;
    cluster.crash(0).await.unwrap();
    cluster.restart(0).await.unwrap();
    let history = recorder.history();
    let granted = |it: &Event| {
        matches!(
            it,
            Event::Granted {
                node: 0,
                client: 1,
                ..
            }
        )
    };
    let counts = [
        count(&history, |it| matches!(it, Event::Started { node: 0, .. })),
        count(&history, |it| matches!(it, Event::Started { node: 1, .. })),
        count(&history, |it| matches!(it, Event::Down { node: 0, .. })),
        count(&history, granted),
    ];
    assert_eq!(counts, [2, 1, 1, 1]);
    let arrived = history.messages.iter().filter(|it| it.arrived.is_some());
    assert_eq!((arrived.count(), history.messages.len()), (4, 4));
}

/// A system may give two connections to different nodes the same address.
#[tokio::test]
async fn a_client_that_notes_itself_is_told_from_another_one_at_its_address() {
    let recorder = Arc::new(Recorder::new(2, 1));
    let builder = Cluster::builder().nodes(2).clients(1);
    let cluster = builder.record(Arc::clone(&recorder)).build().await.unwrap();
    let nodes = cluster.addresses();
    let connect = async |from: SocketAddr, to| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(from).unwrap();
        socket.connect(to).await.unwrap()
    };
    let mut own = connect(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), nodes[0]).await;
    let address = own.local_addr().unwrap();
    recorder.notes_itself(address, nodes[0]);
    let mut other = connect(address, nodes[1]).await;
    for stream in [&mut own, &mut other] {
        let request = b"SET k t NX PX 30000\r\n";
        stream.write_all(request).await.unwrap();
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!(&reply, b"+OK\r\n");
    }
    assert_eq!(recorder.wire_history().counts.requests, 1);
}

/// No span is so long that it could do harm.
#[tokio::test(start_paused = true)]
async fn spans_without_end_are_taken() {
    let cluster = Wire::Memory.build(Cluster::builder().nodes(2)).await;
    let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    let link = Links::between(0, 0);
    cluster.delay(link, Duration::MAX).unwrap();
    inject(&cluster, Fault::Late(link, Way::Both, 1, Duration::MAX)).await;
    cluster.pause(1, Duration::MAX).unwrap();
    assert!(Wire::Memory.is_silent(client.take("k")).await);
    assert!(Wire::Memory.is_silent(cluster.connect(0, 0)).await);
    cluster.crash(0).await.unwrap();
}
