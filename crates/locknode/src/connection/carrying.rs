//! A connection that another process begins, or goes on with.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Connection, State};
use crate::hand_over::CarriedConnection;
use crate::sync_waiters::lock;

/// What makes another descriptor of a stream's socket.
pub(super) type Duplicate<S> = fn(&S) -> Option<OwnedFd>;

impl<S> Connection<S> {
    /// Lets it be carried to another process.
    pub(crate) fn may_be_carried(&mut self, duplicate: Duplicate<S>) {
        self.duplicate = Some(duplicate);
    }

    /// Begins with input that another process has received, and with replies that the peer has not taken.
    pub(crate) fn begin_with(&mut self, unread: Vec<u8>, unsent: Vec<u8>) {
        if !unread.is_empty() {
            self.state = State::Backlogged;
        }
        (self.unread, self.unsent) = (unread, unsent);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Gives up its socket between two commands, if connections are to, and nothing but bytes is left of it: what the
    /// peer sends from here on waits in the socket.
    pub(super) fn gives_up_socket(&mut self, cx: &mut Context<'_>) -> bool {
        if !matches!(self.state, State::Open | State::Backlogged) || !self.need.is_none() {
            return false;
        }
        let node = Arc::clone(&self.node);
        let mut carried = lock(&node.carried);
        let (Some(carried), Some(duplicate)) = (&mut *carried, self.duplicate) else {
            return false;
        };
        let Some(session) = self.session.carried() else {
            return false;
        };
        // What the peer takes now does not wait for the other process.
        if let Poll::Ready(None) = self.poll_send_unsent(cx) {
            return true;
        }
        let Some(socket) = duplicate(&self.stream) else {
            return false;
        };
        let unread = std::mem::take(&mut self.unread);
        let unsent = self.unsent.split_off(self.sent.min(self.unsent.len()));
        carried.push(CarriedConnection::new(socket, session, unread, unsent));
        true
    }
}
