//! A client's connection to a cluster, in memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

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

impl ClientStream {
    /// The client's end and the cluster's.
    pub(crate) fn pair() -> (Self, Self) {
        let is_broken = Arc::<AtomicBool>::default();
        let (near, far) = duplex(PIPE_BYTES);
        let end = |stream| Self {
            stream,
            is_broken: Arc::clone(&is_broken),
        };
        (end(near), end(far))
    }

    /// Breaks the connection when this end is dropped, instead of ending it in order.
    pub(crate) fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
    }

    fn check(&self) -> io::Result<()> {
        if self.is_broken.load(Ordering::Acquire) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
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
