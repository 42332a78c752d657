//! Clients that speak TLS, and those that should.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locknode::{Node, Options, Tls, TlsClients};
use locknode_tests::certificates::{Authority, Identity, options};
use locknode_tests::patience::in_time;
use locknode_tests::serve_tcp;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ALL_VERSIONS, ClientConfig, ProtocolVersion};

/// A node behind TLS.
struct Served {
    tls: Tls,
    node: Node,
    options: Options,
    address: SocketAddr,
    directory: TempDir,
}

async fn serve(options_in: impl FnOnce(&Path) -> Options) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let options = options_in(directory.path());
    let tls = Tls::load(&options).unwrap();
    let node = Node::builder().restart_guard(false);
    let node = node.options(options.clone()).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (serving, listener) = (node.clone(), tls.listener(listener));
    tokio::spawn(async move { serving.serve(listener, pending()).await });
    Served {
        tls,
        node,
        options,
        address,
        directory,
    }
}

async fn dial(address: SocketAddr, client: &Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::from(address.ip());
    let dialed = TlsConnector::from(Arc::clone(client)).connect(name, stream);
    in_time("a handshake", dialed).await
}

/// Sends PING and wants the reply.
async fn ping(stream: &mut TlsStream<TcpStream>) -> io::Result<()> {
    let mut reply = [0; 7];
    stream.write_all(b"PING\r\n").await?;
    stream.flush().await?;
    in_time("a reply", stream.read_exact(&mut reply)).await?;
    assert_eq!(&reply, b"+PONG\r\n");
    Ok(())
}

/// Connects and asks. With TLS 1.3 a client learns from its first read that it was refused.
async fn try_ping(address: SocketAddr, client: &Arc<ClientConfig>) -> io::Result<()> {
    ping(&mut dial(address, client).await?).await
}

#[tokio::test]
async fn both_versions_of_tls_are_spoken() {
    let ours = Authority::new("ours");
    let served = serve(|path| options(path, &ours.issue(), None)).await;
    for (version, negotiated) in [
        (&TLS12, ProtocolVersion::TLSv1_2),
        (&TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let client = ours.client(None, &[version]);
        let mut stream = dial(served.address, &client).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(negotiated));
        ping(&mut stream).await.unwrap();
    }
}

#[tokio::test]
async fn clients_are_let_in_by_their_certificates_as_configured() {
    use TlsClients::{No, Optional, Yes};
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (good, foreign, expired) = (ours.issue(), theirs.issue(), ours.issue_expired());
    for version in [&TLS12, &TLS13] {
        for (asked, identity, is_served) in [
            (No, None, true),
            (No, Some(&foreign), true),
            (Optional, None, true),
            (Optional, Some(&good), true),
            (Optional, Some(&foreign), false),
            (Optional, Some(&expired), false),
            (Yes, None, false),
            (Yes, Some(&good), true),
            (Yes, Some(&foreign), false),
            (Yes, Some(&expired), false),
        ] {
            let served = serve(|path| {
                let mut options = options(path, &ours.issue(), Some(&ours));
                options.tls_auth_clients = asked;
                options
            });
            let served = served.await;
            let client = ours.client(identity, &[version]);
            let tried = try_ping(served.address, &client).await;
            let row = format!("{asked:?} {} {tried:?}", identity.is_some());
            assert_eq!(tried.is_ok(), is_served, "{row}");
            // Whoever was refused has done nothing.
            assert_eq!(served.node.stats().commands > 0, is_served, "{row}");
        }
    }
}

#[tokio::test]
async fn a_node_that_a_client_does_not_trust_is_left_alone() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let client = ours.client(None, ALL_VERSIONS);
    for (identity, reason) in [
        (theirs.issue(), "UnknownIssuer"),
        (ours.issue_expired(), "expired"),
    ] {
        let served = serve(|path| options(path, &identity, None)).await;
        let error = try_ping(served.address, &client).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn replies_beyond_every_buffer_arrive_in_order() {
    let ours = Authority::new("ours");
    let served = serve(|path| options(path, &ours.issue(), None)).await;
    let mut stream = dial(served.address, &ours.client(None, ALL_VERSIONS))
        .await
        .unwrap();
    // 48 MB of replies to a client that first sends everything: both sides wait for each other now
    // and then.
    let text = vec![b'x'; 16 << 10];
    let mut request = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", text.len()).into_bytes();
    request.extend_from_slice(&text);
    request.extend_from_slice(b"\r\n");
    let mut reply = format!("${}\r\n", text.len()).into_bytes();
    reply.extend_from_slice(&text);
    reply.extend_from_slice(b"\r\n");
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sending = async {
        for _ in 0..3000 {
            writer.write_all(&request).await.unwrap();
        }
        writer.flush().await.unwrap();
    };
    let receiving = async {
        let mut got = vec![0; reply.len()];
        for number in 0..3000 {
            reader.read_exact(&mut got).await.unwrap();
            assert!(got == reply, "reply {number}");
        }
    };
    in_time("all replies", async { tokio::join!(sending, receiving) }).await;
    stream = reader.unsplit(writer);
    ping(&mut stream).await.unwrap();
}

#[tokio::test]
async fn renewed_files_are_for_new_connections_and_bad_ones_for_none() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let served = serve(|path| options(path, &old.issue(), None)).await;
    let (trusts_old, trusts_new) = (
        old.client(None, ALL_VERSIONS),
        new.client(None, ALL_VERSIONS),
    );
    let mut open = dial(served.address, &trusts_old).await.unwrap();
    ping(&mut open).await.unwrap();

    // A key without its certificate, as somebody sees who reads while they are renewed.
    let renewed = new.issue();
    std::fs::write(served.directory.path().join("node.key"), &renewed.key).unwrap();
    let error = served.tls.reload(&served.options).unwrap_err();
    assert!(error.to_string().contains("is not the key of"), "{error}");
    try_ping(served.address, &trusts_old).await.unwrap();

    renewed.write(served.directory.path());
    served.tls.reload(&served.options).unwrap();
    ping(&mut open).await.unwrap();
    try_ping(served.address, &trusts_new).await.unwrap();
    let refused = try_ping(served.address, &trusts_old).await;
    assert!(refused.is_err());
}

/// A client whose certificate is no longer accepted cannot resume the session of an earlier one.
#[tokio::test]
async fn a_session_is_not_resumed_past_a_reload() {
    let (ours, later) = (Authority::new("ours"), Authority::new("later"));
    let served = serve(|path| options(path, &ours.issue(), Some(&ours))).await;
    for version in [&TLS12, &TLS13] {
        let client = ours.client(Some(&ours.issue()), &[version]);
        for is_first in [true, false] {
            let mut stream = dial(served.address, &client).await.unwrap();
            ping(&mut stream).await.unwrap();
            let kind = stream.get_ref().1.handshake_kind().unwrap();
            let is_full = format!("{kind:?}").starts_with("Full");
            assert_eq!(is_full, is_first, "{kind:?}");
        }
        std::fs::write(served.directory.path().join("ca.pem"), later.pem()).unwrap();
        served.tls.reload(&served.options).unwrap();
        assert!(try_ping(served.address, &client).await.is_err());
        std::fs::write(served.directory.path().join("ca.pem"), ours.pem()).unwrap();
        served.tls.reload(&served.options).unwrap();
    }
}

#[tokio::test]
async fn connections_go_on_while_the_files_are_read_again_and_again() {
    let ours = Authority::new("ours");
    let served = serve(|path| options(path, &ours.issue(), None)).await;
    let client = ours.client(None, ALL_VERSIONS);
    let mut open = dial(served.address, &client).await.unwrap();
    let mut pings = 0;
    let load = async {
        loop {
            ping(&mut open).await.unwrap();
            try_ping(served.address, &client).await.unwrap();
            pings += 1;
        }
    };
    let renewal = async {
        for _ in 0..50 {
            ours.issue().write(served.directory.path());
            served.tls.reload(&served.options).unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = load => {}
        () = renewal => {}
    }
    ping(&mut open).await.unwrap();
}

#[tokio::test]
async fn bytes_of_no_tls_are_refused_and_those_of_tls_on_the_plain_port_too() {
    let ours = Authority::new("ours");
    let served = serve(|path| options(path, &ours.issue(), None)).await;
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    plain
        .write_all(b"*1\r\n$4\r\nPING\r\n".repeat(100).as_slice())
        .await
        .unwrap();
    let mut said = Vec::new();
    // An alert, or, if the node closed before it had read everything, a reset.
    let _ = in_time("a refusal", plain.read_to_end(&mut said)).await;
    assert!(!said.starts_with(b"+PONG"), "{said:?}");
    assert_eq!(served.node.stats().commands, 0);

    let (address, _) = serve_tcp(&served.node, pending()).await;
    let error = try_ping(address, &ours.client(None, ALL_VERSIONS)).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    assert_eq!(served.node.stats().commands, 0);
}

/// Peers that connect and say nothing lose their places: one by one after some seconds, and all the
/// sooner when others wait for them.
#[tokio::test(start_paused = true)]
async fn handshakes_are_bounded_in_time_and_number() {
    let ours = Authority::new("ours");
    let served = serve(|path| options(path, &ours.issue(), None)).await;
    let started = tokio::time::Instant::now();
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    let closed = silent.read(&mut [0]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    let waited = started.elapsed();
    assert!(waited >= Duration::from_secs(10), "{waited:?}");
    assert!(waited < Duration::from_secs(12), "{waited:?}");

    let mut crowd = Vec::new();
    for _ in 0..256 {
        crowd.push(TcpStream::connect(served.address).await.unwrap());
    }
    let started = tokio::time::Instant::now();
    let client = ours.client(None, ALL_VERSIONS);
    try_ping(served.address, &client).await.unwrap();
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(3), "{waited:?}");
}

#[tokio::test]
async fn a_full_node_says_so_to_tls_clients() {
    let ours = Authority::new("ours");
    let served = serve(|path| {
        let mut options = options(path, &ours.issue(), None);
        options.maxclients = 1;
        options
    });
    let served = served.await;
    let client = ours.client(None, ALL_VERSIONS);
    let mut first = dial(served.address, &client).await.unwrap();
    ping(&mut first).await.unwrap();
    let mut second = dial(served.address, &client).await.unwrap();
    let mut said = String::new();
    in_time("a refusal", second.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said, "-ERR max number of clients reached\r\n");
    ping(&mut first).await.unwrap();
}

#[tokio::test]
async fn a_node_that_stops_says_goodbye_and_waits_for_no_handshake() {
    let ours = Authority::new("ours");
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path(), &ours.issue(), None);
    let tls = Tls::load(&options).unwrap();
    let node = Node::builder().restart_guard(false).options(options);
    let node = node.drain(Duration::from_secs(600)).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = tls.listener(listener);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving =
        tokio::spawn(async move { node.serve(listener, async { drop(stopped.await) }).await });
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut client = dial(address, &ours.client(None, ALL_VERSIONS))
        .await
        .unwrap();
    ping(&mut client).await.unwrap();
    stop.send(()).unwrap();
    let mut rest = Vec::new();
    // Not an end of the stream without notice, which rustls would report.
    in_time("the end", client.read_to_end(&mut rest))
        .await
        .unwrap();
    drop(client);
    in_time("the end of the node", serving)
        .await
        .unwrap()
        .unwrap();
    let _ = in_time("the end", silent.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_reason() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mine = ours.issue();
    let bad = |certificate: &str, key: &str| Identity {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let rows = [
        (
            bad("", &mine.key),
            "node.pem (tls-cert-file) holds no certificate",
        ),
        (
            bad(&mine.certificate, ""),
            "node.key (tls-key-file) holds no unencrypted",
        ),
        (
            bad(&mine.certificate, &theirs.issue().key),
            "node.key (tls-key-file) is not the key of",
        ),
        (bad(&mine.key, &mine.key), "holds no certificate"),
    ];
    for (identity, reason) in rows {
        let directory = tempfile::tempdir().unwrap();
        let options = options(directory.path(), &identity, None);
        let error = Tls::load(&options).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains("PRIVATE"), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path(), &mine, Some(&ours));
    std::fs::write(&options.tls_ca_cert_file, "nothing").unwrap();
    let error = Tls::load(&options).unwrap_err().to_string();
    assert!(
        error.contains("ca.pem (tls-ca-cert-file) holds no"),
        "{error}"
    );
    options.tls_ca_cert_file.clear();
    let error = Tls::load(&options).unwrap_err().to_string();
    assert!(error.contains("tls-auth-clients to no"), "{error}");
    std::fs::remove_file(&options.tls_key_file).unwrap();
    let error = Tls::load(&options).unwrap_err().to_string();
    assert!(error.contains("cannot read"), "{error}");
    options.tls_cert_file.clear();
    let error = Tls::load(&options).unwrap_err().to_string();
    assert!(error.contains("give tls-cert-file"), "{error}");
}
