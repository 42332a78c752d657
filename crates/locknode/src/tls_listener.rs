//! Connections whose peers speak TLS.
//!
//! The handshake is part of reading and writing, in the connection's own task, so that a peer that
//! takes its time keeps nobody from being accepted:
//!
//! ```text
//!  accept --> Handshaking --done--> Open
//!                 +------failed, took too long, node stops--> Closed
//! ```

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_rustls::{Accept, TlsAcceptor, server};

use crate::listener::{Accepted, Listener};
use crate::tls::Tls;

/// A listener whose clients speak TLS. Made by [`Tls::listener`].
#[derive(Debug)]
pub struct TlsListener<L> {
    inner: L,
    tls: Tls,
}

/// A connection whose peer speaks TLS.
#[derive(Debug)]
pub struct TlsStream<S> {
    state: State<S>,
}

#[expect(clippy::large_enum_variant, reason = "nearly every stream is open")]
#[derive(Debug)]
enum State<S> {
    /// On the heap, because it is larger and soon gone.
    Handshaking(Box<Handshake<S>>),
    Open(server::TlsStream<S>),
    Closed,
}

struct Handshake<S> {
    accept: Accept<S>,
    /// How often it may still be given more time.
    extensions: u32,
    timer: Pin<Box<Sleep>>,
    /// All places for handshakes, and its own.
    places: Arc<Semaphore>,
    _place: OwnedSemaphorePermit,
}

impl Tls {
    /// Has the clients of another listener speak TLS.
    pub fn listener<L: Listener + Sync>(&self, listener: L) -> TlsListener<L> {
        TlsListener {
            inner: listener,
            tls: self.clone(),
        }
    }
}

impl<L: Listener + Sync> Listener for TlsListener<L> {
    type Stream = TlsStream<L::Stream>;

    async fn accept(&self) -> io::Result<Accepted<Self::Stream>> {
        let places = self.tls.handshakes();
        let place = Arc::clone(&places).acquire_owned().await;
        let place = place.map_err(io::Error::other)?;
        let Accepted {
            stream,
            peer,
            is_local,
        } = self.inner.accept().await?;
        let handshake = Handshake {
            accept: TlsAcceptor::from(self.tls.config()).accept(stream),
            extensions: EXTENSIONS,
            timer: Box::pin(sleep(HASTE)),
            places,
            _place: place,
        };
        let state = State::Handshaking(Box::new(handshake));
        Ok(Accepted {
            stream: TlsStream { state },
            peer,
            is_local,
        })
    }

    fn set_keepalive(&self, stream: &Self::Stream, seconds: u64) {
        let inner = match &stream.state {
            State::Handshaking(handshake) => handshake.accept.get_ref(),
            State::Open(stream) => Some(stream.get_ref().0),
            State::Closed => None,
        };
        if let Some(inner) = inner {
            self.inner.set_keepalive(inner, seconds);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Handshake<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<server::TlsStream<S>>> {
        if let Poll::Ready(done) = Pin::new(&mut self.accept).poll(cx) {
            return Poll::Ready(done);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.extensions == 0 || self.places.available_permits() == 0 {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.extensions -= 1;
            self.timer.set(sleep(HASTE));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Goes on with the handshake until the stream is open.
    fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut server::TlsStream<S>>>> {
        if let State::Handshaking(handshake) = &mut self.state {
            self.state = match ready!(handshake.poll(cx)) {
                Ok(stream) => State::Open(stream),
                Err(error) => {
                    self.state = State::Closed;
                    return Poll::Ready(Err(error));
                }
            };
        }
        Poll::Ready(match &mut self.state {
            State::Open(stream) => Ok(Pin::new(stream)),
            State::Handshaking(_) | State::Closed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_open(cx))?.poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_open(cx))?.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().state {
            State::Open(stream) => Pin::new(stream).poll_flush(cx),
            // Nothing has been written.
            State::Handshaking(_) | State::Closed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if let State::Open(stream) = &mut stream.state {
            return Pin::new(stream).poll_shutdown(cx);
        }
        stream.state = State::Closed;
        Poll::Ready(Ok(()))
    }
}

impl<S> std::fmt::Debug for Handshake<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

/// How long a handshake may take while all places are taken, so that peers who say nothing keep
/// nobody out.
const HASTE: Duration = Duration::from_secs(1);

/// How often it may take as long again while there are places: ten round trips of a second in all.
const EXTENSIONS: u32 = 9;
