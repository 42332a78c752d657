//! The socket of one node, open or being opened.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

use redlock_proto::{Cause, NodeId, Unreachable};

use crate::connector::{Connecting, Connection};
use crate::inbox::Config;
use crate::socket::connect;

/// The connection to one node.
pub(crate) enum Port {
    Closed,
    Opening(Connecting),
    Open {
        socket: Box<dyn Connection>,
        /// Whether all written bytes have left the socket's buffer.
        is_flushed: bool,
    },
}

/// An event of a port.
#[derive(Debug)]
pub(crate) enum PortEvent {
    Opened,
    /// This many bytes are in the buffer.
    Received(usize),
    Closed(Cause),
}

impl Port {
    /// Begins to connect to a node.
    pub(crate) fn open(config: &Arc<Config>, node: NodeId) -> Self {
        let config = Arc::clone(config);
        let index = node.index();
        Self::Opening(Box::pin(async move {
            match (config.addresses.get(index), &config.connector) {
                (Some(address), None) => connect(address, config.tls.as_ref()).await,
                (Some(address), Some(connector)) => connector.connect(node, address).await,
                (None, _) => Err(io::ErrorKind::NotFound.into()),
            }
        }))
    }

    /// The next event.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<PortEvent> {
        let event = match self {
            Self::Closed => return Poll::Pending,
            Self::Opening(opening) => match opening.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(socket)) => {
                    *self = Self::Open {
                        socket,
                        is_flushed: true,
                    };
                    PortEvent::Opened
                }
                Poll::Ready(Err(error)) => {
                    PortEvent::Closed(Cause::Unreachable(Unreachable::new(error)))
                }
            },
            Self::Open { socket, .. } => {
                let mut read = ReadBuf::new(buffer);
                match Pin::new(socket).poll_read(context, &mut read) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) if read.filled().is_empty() => {
                        PortEvent::Closed(Cause::Disconnected)
                    }
                    Poll::Ready(Ok(())) => PortEvent::Received(read.filled().len()),
                    Poll::Ready(Err(_)) => PortEvent::Closed(Cause::Disconnected),
                }
            }
        };
        if let PortEvent::Closed(_) = event {
            *self = Self::Closed;
        }
        Poll::Ready(event)
    }

    /// Writes as much of `out` as the socket takes, and removes it from `out`.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let Self::Open { socket, is_flushed } = self else {
            return Ok(());
        };
        let mut socket = Pin::new(socket);
        let mut written = 0;
        while let Some(rest) = out.get(written..).filter(|rest| !rest.is_empty()) {
            match socket.as_mut().poll_write(context, rest) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(len)) => {
                    written += len;
                    *is_flushed = false;
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        if written == out.len() {
            out.clear();
        } else {
            out.drain(..written);
        }
        if !*is_flushed {
            match socket.poll_flush(context) {
                Poll::Pending => {}
                Poll::Ready(flushed) => {
                    flushed?;
                    *is_flushed = true;
                }
            }
        }
        Ok(())
    }

    /// Whether nothing is left to flush.
    pub(crate) fn is_quiet(&self) -> bool {
        match self {
            Self::Closed | Self::Opening(_) => true,
            Self::Open { is_flushed, .. } => *is_flushed,
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "Closed",
            Self::Opening(_) => "Opening",
            Self::Open { .. } => "Open",
        })
    }
}
