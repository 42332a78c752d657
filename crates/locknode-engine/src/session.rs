//! The state of one connection that a node keeps between two commands.

use std::sync::Arc;

use locknode_resp::Protocol;

use crate::client::Client;
#[cfg(feature = "compat")]
use crate::monitors::Monitor;
#[cfg(feature = "compat")]
use crate::subscriptions::Subscriptions;
#[cfg(feature = "compat")]
use crate::tracking::Tracker;
use crate::transaction::Transaction;
#[cfg(feature = "compat")]
use crate::watches::Watching;

/// One connection's state, which the driver keeps and lends to every command.
#[derive(Debug)]
pub struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
    pub(crate) is_authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// Commands need more checks than usual; see [`Session::note_state`].
    pub(crate) is_special: bool,
    /// What MULTI began, until EXEC or DISCARD.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// What WATCH watches, until EXEC, DISCARD or UNWATCH.
    #[cfg(feature = "compat")]
    pub(crate) watching: Option<Box<Watching>>,
    /// `None` without any.
    #[cfg(feature = "compat")]
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// Set after MONITOR.
    #[cfg(feature = "compat")]
    pub(crate) monitor: Option<Box<Monitor>>,
    /// Set while the client caches what it reads.
    #[cfg(feature = "compat")]
    pub(crate) tracker: Option<Box<Tracker>>,
    /// Steps that the connection's scripts have taken since it last yielded.
    pub(crate) script_steps: usize,
}

/// Which replies a client wants, as set by CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None until CLIENT REPLY ON.
    Off,
    /// CLIENT REPLY SKIP is running; the reply of the next command will be dropped.
    Armed,
    /// The reply of this command is dropped.
    SkipNext,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, is_authenticated: bool) -> Self {
        Self {
            client,
            protocol: Protocol::Resp2,
            db: 0,
            is_authenticated,
            reply_mode: ReplyMode::On,
            is_special: false,
            transaction: None,
            #[cfg(feature = "compat")]
            watching: None,
            #[cfg(feature = "compat")]
            subscriptions: None,
            #[cfg(feature = "compat")]
            monitor: None,
            #[cfg(feature = "compat")]
            tracker: None,
            script_steps: 0,
        }
    }

    /// Notes that something changed which decides whether commands need more checks than usual. All
    /// of that is in one flag, so that other connections pay for one branch.
    pub(crate) const fn note_state(&mut self) {
        self.is_special = self.transaction.is_some();
        #[cfg(feature = "compat")]
        {
            self.is_special |= self.subscriptions.is_some();
        }
    }

    /// Begins or ends a transaction, and returns the one before.
    pub(crate) fn set_transaction(
        &mut self,
        transaction: Option<Box<Transaction>>,
    ) -> Option<Box<Transaction>> {
        let before = std::mem::replace(&mut self.transaction, transaction);
        self.note_state();
        self.note_queued();
        before
    }

    /// Ends the transaction, if any, and forgets the watched keys.
    pub(crate) fn discard(&mut self) {
        self.set_transaction(None);
        #[cfg(feature = "compat")]
        {
            self.watching = None;
        }
    }

    /// Tells CLIENT LIST how many commands are queued.
    pub(crate) fn note_queued(&self) {
        let queued = self.transaction.as_ref().map(|it| it.len());
        self.client.note_queued(queued);
    }

    /// Returns about how many bytes the session keeps for its transaction, what it watches and its
    /// subscriptions.
    pub fn kept_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |it| it.size());
        #[cfg(feature = "compat")]
        let queued = queued
            + self.watching.as_ref().map_or(0, |it| it.size())
            + self.subscriptions.as_ref().map_or(0, |it| it.size());
        queued
    }

    /// Returns whether the client's reads are to be remembered.
    #[cfg(feature = "compat")]
    #[inline]
    pub(crate) fn tracks_reads(&self) -> bool {
        self.tracker.as_ref().is_some_and(|it| it.tracks_reads())
    }

    /// Ends what CLIENT CACHING said about the command, or the transaction, that just ended.
    #[inline]
    pub(crate) fn end_caching(&mut self, command: &str) {
        #[cfg(feature = "compat")]
        if let Some(tracker) = &mut self.tracker
            && command != "client"
        {
            tracker.is_chosen = false;
        }
        let _ = command;
    }

    /// Returns whether the client has sent the password, or needs none. Before that, the decoder
    /// allows less.
    pub const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// Returns the protocol of the replies.
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the registry's record of this connection.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        #[cfg(feature = "compat")]
        drop(self.subscriptions.take());
        self.client.leave();
    }
}
