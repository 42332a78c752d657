//! The ends of a client's connection to a cluster.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::net::TcpStream;

use super::incarnation::PIPE_BYTES;

/// A client's end of a connection to a node in memory; see [`Cluster::connect`](super::Cluster::connect).
///
/// A connection that breaks, because the node crashed or the link was reset, gives
/// [`ConnectionReset`](io::ErrorKind::ConnectionReset), as a socket does; one that the node closed ends.
#[derive(Debug)]
pub struct ClientStream {
    stream: DuplexStream,
    is_broken: Arc<AtomicBool>,
}

/// The cluster's end of it.
#[derive(Debug)]
pub(crate) struct FarStream {
    stream: DuplexStream,
    is_broken: Arc<AtomicBool>,
}

/// A connection that can be broken so that its other end notices.
pub(crate) trait Breakable {
    /// Breaks when it is dropped, instead of ending in order.
    fn break_off(&self);
}

impl ClientStream {
    pub(crate) fn pair() -> (Self, FarStream) {
        let (near, far) = duplex(PIPE_BYTES);
        let is_broken = Arc::<AtomicBool>::default();
        let near = Self {
            stream: near,
            is_broken: Arc::clone(&is_broken),
        };
        let far = FarStream {
            stream: far,
            is_broken,
        };
        (near, far)
    }

    fn check(&self) -> io::Result<()> {
        match self.is_broken.load(Ordering::Acquire) {
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => Ok(()),
        }
    }
}

impl Breakable for FarStream {
    fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
    }
}

impl Breakable for TcpStream {
    fn break_off(&self) {
        // If the system refuses, the connection ends instead of breaking.
        let _ = self.set_zero_linger();
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        // What had arrived before is read first, as from a socket.
        if buffer.filled().len() == before {
            self.check()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for FarStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for FarStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
