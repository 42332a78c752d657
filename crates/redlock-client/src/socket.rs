//! Opens a byte stream to one node over TCP, TLS or a Unix socket, to the master of a Sentinel group,
//! or to a whole Redis Cluster.
//!
//! It knows nothing of the protocol, and has no timeouts: the caller bounds [`connect`].

use std::io;

#[cfg(unix)]
use tokio::net::UnixStream;

use crate::address::{Endpoint, NodeAddress};
use crate::cluster;
use crate::connector::Connection;
use crate::sentinel;
use crate::tcp::connect_tcp;
#[cfg(feature = "tls")]
pub(crate) use crate::tls::Tls;

/// A build without TLS has no TLS settings.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug)]
pub(crate) enum Tls {}

/// Connects, with a TLS handshake if the address requires TLS.
///
/// Tries each address of the host name in the order of the resolver. The error is that of the last
/// one.
///
/// # Errors
///
/// Those of the system; `InvalidInput` for a TLS address without TLS settings, `InvalidData` for a
/// failed TLS handshake, and `NotFound` for a name without an address.
///
/// # Cancel safety
///
/// The half-open connection is closed. A name look-up goes on in its thread and delays nothing.
pub(crate) async fn connect(
    address: &NodeAddress,
    tls: Option<&Tls>,
) -> io::Result<Box<dyn Connection>> {
    match address.endpoint() {
        Endpoint::Tcp { host, port } if address.is_tls() => connect_tls(host, *port, tls).await,
        Endpoint::Tcp { host, port } => Ok(Box::new(connect_tcp(host, *port).await?)),
        Endpoint::Cluster { seeds } => Ok(Box::new(cluster::connect(seeds, &address.login).await?)),
        Endpoint::Sentinel { sentinels, group } => {
            Ok(Box::new(sentinel::connect(sentinels, group).await?))
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        #[cfg(not(unix))]
        Endpoint::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(feature = "tls")]
async fn connect_tls(host: &str, port: u16, tls: Option<&Tls>) -> io::Result<Box<dyn Connection>> {
    let tls = tls.ok_or_else(|| missing("no TLS settings were given"))?;
    let name = tls.server_name(host)?;
    let stream = connect_tcp(host, port).await?;
    Ok(Box::new(tls.connector().connect(name, stream).await?))
}

#[cfg(not(feature = "tls"))]
async fn connect_tls(_: &str, _: u16, _: Option<&Tls>) -> io::Result<Box<dyn Connection>> {
    Err(missing("this build has no TLS; enable the feature \"tls\""))
}

fn missing(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::thread;

    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::tcp::{LookUp, resolve};

    fn address(text: &str) -> NodeAddress {
        NodeAddress::parse(text).unwrap()
    }

    /// Sends "ab" in two slices and wants them back.
    async fn check_echo(mut socket: Box<dyn Connection>) {
        let slices = [IoSlice::new(b"a"), IoSlice::new(b"b")];
        assert!(socket.is_write_vectored());
        assert_eq!(socket.write_vectored(&slices).await.unwrap(), 2);
        socket.flush().await.unwrap();
        let mut back = [0; 2];
        socket.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"ab");
        socket.shutdown().await.unwrap();
        assert_eq!(socket.read(&mut back).await.unwrap(), 0);
    }

    async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut bytes = [0; 64];
        while let Ok(length @ 1..) = stream.read(&mut bytes).await {
            stream.write_all(&bytes[..length]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn bytes_go_both_ways_over_tcp_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
        let stream = connect_tcp("127.0.0.1", port).await.unwrap();
        assert!(stream.nodelay().unwrap());
        check_echo(Box::new(stream)).await;
    }

    #[tokio::test]
    async fn a_host_name_is_tried_at_each_of_its_addresses() {
        // Where localhost stands for ::1 too, that address refuses and the next one answers.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
        check_echo(
            connect(&address(&format!("localhost:{port}")), None)
                .await
                .unwrap(),
        )
        .await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn bytes_go_both_ways_over_a_unix_socket() {
        let folder = std::env::temp_dir().join(format!("redlock-socket-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("node.sock");
        let _ = std::fs::remove_file(&path);
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
        let socket = connect(&address(path.to_str().unwrap()), None)
            .await
            .unwrap();
        check_echo(socket).await;
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A program that ends does not wait for a resolver that hangs, and neither does its runtime.
    #[test]
    fn a_resolver_that_hangs_delays_neither_a_caller_nor_the_end_of_the_runtime() {
        let hangs: LookUp = |_, _| loop {
            thread::park();
        };
        let (done, ended) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let resolving = resolve("a-name", 1, hangs);
                let soon = std::time::Duration::from_millis(1);
                assert!(tokio::time::timeout(soon, resolving).await.is_err());
            });
            drop(runtime);
            done.send(()).unwrap();
        });
        let patience = std::time::Duration::from_secs(20);
        ended.recv_timeout(patience).unwrap();
    }

    #[tokio::test]
    async fn a_connection_that_cannot_be_made_is_an_error() {
        // Bound, so that nobody else gets the port, and not listening.
        let deaf = tokio::net::TcpSocket::new_v4().unwrap();
        deaf.bind((std::net::Ipv4Addr::LOCALHOST, 0).into())
            .unwrap();
        let port = deaf.local_addr().unwrap().port();
        let error = connect(&address(&format!("127.0.0.1:{port}")), None)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        // Longer than a label may be, so no resolver is asked outside of this machine.
        let error = connect(&address(&"h".repeat(64)), None).await.unwrap_err();
        assert!(!error.to_string().is_empty());
        #[cfg(unix)]
        {
            let error = connect(&address("/nowhere/node.sock"), None)
                .await
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }

    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn a_tls_address_without_settings_sends_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = connect(&address(&format!("rediss://127.0.0.1:{port}")), None)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        // The first connection that arrives is this one, so there was none before.
        let probe = tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from, probe.local_addr().unwrap());
    }
}
