//! Where connections come from.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
#[cfg(feature = "hand-over")]
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use locknode_engine::Peer;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A source of connections; implemented for TCP and Unix sockets.
pub trait Listener: Send {
    /// A connection's byte stream.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    ///
    /// # Errors
    ///
    /// Fails as the operating system reports. The caller retries errors that concern one connection
    /// or pass by themselves, such as running out of descriptors.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has accepted nothing.
    fn accept(&self) -> impl Future<Output = io::Result<Accepted<Self::Stream>>> + Send;

    /// Has a silent peer probed after `seconds`, unless that is 0. Streams that cannot do so need not.
    fn set_keepalive(&self, _stream: &Self::Stream, _seconds: u64) {}

    /// Returns another descriptor of a stream's socket, for another process; `None` if it has none that stands for all
    /// of the stream.
    #[cfg(feature = "hand-over")]
    fn duplicate(_stream: &Self::Stream) -> Option<OwnedFd> {
        None
    }

    /// Makes a stream of a socket that another process accepted; `None` if it cannot.
    #[cfg(feature = "hand-over")]
    fn adopt(&self, _socket: OwnedFd) -> Option<Accepted<Self::Stream>> {
        None
    }

    /// Returns a connection that another process began; `None` when there is none left.
    #[cfg(feature = "hand-over")]
    fn resume(&self) -> Option<crate::hand_over::Resumed<Self::Stream>> {
        None
    }
}

/// A connection just accepted.
#[derive(Debug)]
pub struct Accepted<S> {
    /// The byte stream.
    pub stream: S,
    /// The addresses of both ends, for CLIENT LIST.
    pub peer: Peer,
    /// Whether the peer is on this machine, which protected mode requires.
    pub is_local: bool,
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<Accepted<TcpStream>> {
        let (stream, addr) = Self::accept(self).await?;
        accepted_tcp(stream, addr)
    }

    fn set_keepalive(&self, stream: &TcpStream, seconds: u64) {
        if seconds == 0 {
            return;
        }
        // As Redis sets it: the first probe after the given time, then three more at a third of it.
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(seconds))
            .with_interval(Duration::from_secs((seconds / 3).max(1)))
            .with_retries(3);
        // A socket without keep-alive still works; `timeout` then catches a silent peer.
        let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
    }

    #[cfg(feature = "hand-over")]
    fn duplicate(stream: &TcpStream) -> Option<OwnedFd> {
        stream.as_fd().try_clone_to_owned().ok()
    }

    #[cfg(feature = "hand-over")]
    fn adopt(&self, socket: OwnedFd) -> Option<Accepted<TcpStream>> {
        let stream = TcpStream::from_std(socket.into()).ok()?;
        let addr = stream.peer_addr().ok()?;
        accepted_tcp(stream, addr).ok()
    }
}

fn accepted_tcp(stream: TcpStream, addr: SocketAddr) -> io::Result<Accepted<TcpStream>> {
    // Replies are written as whole batches: waiting for more would only add latency.
    stream.set_nodelay(true)?;
    let laddr = stream.local_addr().map(|laddr| laddr.to_string());
    let peer = Peer {
        addr: addr.to_string(),
        laddr: laddr.unwrap_or_default(),
        fd: descriptor(&stream),
    };
    Ok(Accepted {
        stream,
        peer,
        is_local: addr.ip().to_canonical().is_loopback(),
    })
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<Accepted<UnixStream>> {
        let (stream, _) = Self::accept(self).await?;
        accepted_unix(self, stream)
    }

    #[cfg(feature = "hand-over")]
    fn duplicate(stream: &UnixStream) -> Option<OwnedFd> {
        stream.as_fd().try_clone_to_owned().ok()
    }

    #[cfg(feature = "hand-over")]
    fn adopt(&self, socket: OwnedFd) -> Option<Accepted<UnixStream>> {
        let stream = UnixStream::from_std(socket.into()).ok()?;
        accepted_unix(self, stream).ok()
    }
}

fn accepted_unix(listener: &UnixListener, stream: UnixStream) -> io::Result<Accepted<UnixStream>> {
    let address = listener.local_addr()?;
    let path = address.as_pathname().unwrap_or(Path::new(""));
    let laddr = format!("{}:0", path.display());
    let peer = Peer {
        addr: laddr.clone(),
        laddr,
        fd: descriptor(&stream),
    };
    Ok(Accepted {
        stream,
        peer,
        is_local: true,
    })
}

fn descriptor(stream: &impl std::os::fd::AsRawFd) -> u32 {
    u32::try_from(stream.as_raw_fd()).unwrap_or(0)
}
