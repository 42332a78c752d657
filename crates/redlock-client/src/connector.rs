//! Connections to nodes by other means than the network.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use redlock_proto::NodeId;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::address::NodeAddress;

/// Opens connections for the client: to nodes in a test's own process, through a proxy, or over a
/// transport that this crate does not know. See [`Builder::connector`](crate::Builder::connector).
///
/// The client drops the future after its connect timeout. It opens one connection per node at a time.
///
/// ```
/// use redlock_client::{Connecting, Connector, NodeAddress, NodeId};
///
/// /// Nodes behind one machine.
/// #[derive(Debug)]
/// struct Gateway(std::net::SocketAddr);
///
/// impl Connector for Gateway {
///     fn connect(&self, _: NodeId, _: &NodeAddress) -> Connecting {
///         let gateway = self.0;
///         Box::pin(async move {
///             let stream = tokio::net::TcpStream::connect(gateway).await?;
///             Ok(Box::new(stream) as Box<dyn redlock_client::Connection>)
///         })
///     }
/// }
/// ```
pub trait Connector: fmt::Debug + Send + Sync {
    /// Opens a connection to a node of the client's list. Encryption, if the address requires it, is up
    /// to the connector; the client logs in by itself.
    fn connect(&self, node: NodeId, address: &NodeAddress) -> Connecting;
}

/// A byte stream to a node. Dropping it closes it.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// A connection being opened. Dropping it cancels that.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send>>;

impl fmt::Debug for dyn Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;
    use crate::{Clock, Redlock, Time};

    /// In-memory nodes that grant everything, and one that refuses connections.
    #[derive(Debug, Default)]
    struct Granting {
        connected: Mutex<Vec<(usize, String)>>,
    }

    impl Connector for Granting {
        fn connect(&self, node: NodeId, address: &NodeAddress) -> Connecting {
            self.connected
                .lock()
                .push((node.index(), address.to_string()));
            let is_refused = node.index() == 2;
            Box::pin(async move {
                if is_refused {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                let (near, far) = duplex(1024);
                drop(tokio::spawn(grant(far)));
                Ok(Box::new(near) as Box<dyn Connection>)
            })
        }
    }

    async fn grant(mut stream: DuplexStream) {
        let mut bytes = [0; 1024];
        while let Ok(len @ 1..) = stream.read(&mut bytes).await {
            for part in bytes[..len].split(|byte| *byte == b'*').skip(1) {
                let has = |name: &[u8]| part.windows(name.len()).any(|window| window == name);
                // An old server, which knows only the plain commands.
                let reply: &[u8] = match () {
                    () if has(b"HELLO") || has(b"SETINFO") || has(b"COMMAND") || has(b"INFO") => {
                        b"-ERR unknown command\r\n"
                    }
                    () if has(b"EVAL") => b":1\r\n",
                    () => b"+OK\r\n",
                };
                stream.write_all(reply).await.unwrap();
            }
        }
    }

    /// The runtime's time, which a test can pause.
    #[derive(Debug)]
    struct Paused(Instant);

    impl Clock for Paused {
        fn now(&self) -> Time {
            Time::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_works_over_streams_of_the_callers_in_paused_time() {
        let connector = Arc::new(Granting::default());
        let redlock = Redlock::builder()
            .nodes(["a", "b", "c"])
            .connector(connector.clone())
            .clock(Arc::new(Paused(Instant::now())))
            .build()
            .unwrap();
        let lock = redlock.lock("k").ttl(Duration::from_secs(3600));
        let guard = lock.acquire().await.unwrap();
        let mut connected = connector.connected.lock().clone();
        connected.sort();
        connected.dedup();
        let want = [0, 1, 2].map(|node| (node, format!("redis://{}:6379", ["a", "b", "c"][node])));
        assert_eq!(connected, want);
        // An hour of the runtime's time passes at once.
        assert!(guard.is_valid());
        assert!(guard.lost().await.is_expired());
        assert!(!guard.is_valid());
    }
}
