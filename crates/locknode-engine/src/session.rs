//! The state of one connection that a node keeps between two commands.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "compat")]
use locknode_resp::Encoder;
use locknode_resp::{Protocol, ProtocolError};

use crate::client::Client;
#[cfg(feature = "acl")]
use crate::file_task::FileTask;
use crate::guard::Need;
use crate::holds::Holds;
#[cfg(feature = "compat")]
use crate::holds::LongScript;
use crate::logins::Logins;
#[cfg(feature = "compat")]
use crate::monitors::Monitor;
use crate::search::Search;
#[cfg(feature = "compat")]
use crate::subscriptions::Subscriptions;
use crate::time::Time;
use crate::timings::Began;
#[cfg(feature = "compat")]
use crate::tracking::Tracker;
use crate::transaction::Transaction;
use crate::turns::Place;
use crate::users::Account;
#[cfg(feature = "acl")]
use crate::users::User;
#[cfg(feature = "compat")]
use crate::waiters::Waiter;
#[cfg(feature = "compat")]
use crate::watches::Watching;

/// One connection's state, which the driver keeps and lends to every command.
#[derive(Debug)]
pub struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
    pub(crate) is_authenticated: bool,
    /// The version of the users when it last looked at its own; 0 when it has to look.
    pub(crate) seen_users: u32,
    /// Its user, if anything is forbidden to it.
    #[cfg(feature = "acl")]
    pub(crate) user: Option<Arc<User>>,
    pub(crate) logins: Logins,
    /// What ACL LOAD or SAVE waits for.
    #[cfg(feature = "acl")]
    pub(crate) file_task: Option<Arc<FileTask>>,
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
    /// When the running or suspended command began, if its time is taken.
    pub(crate) began: Option<Began>,
    /// Whether the running command is a script, which stands for no other one.
    pub(crate) is_timed_always: bool,
    /// The wait of BLPOP, until its connection has seen the end.
    #[cfg(feature = "compat")]
    pub(crate) waiter: Option<Arc<Waiter>>,
    waiting: Waiting,
    /// Set while its next command waits for its turn.
    pub(crate) place: Option<Place>,
    /// The connection's script that takes long.
    #[cfg(feature = "compat")]
    pub(crate) script: Option<Box<dyn LongScript>>,
    /// Its KEYS, while others have their turns.
    pub(crate) search: Option<Box<Search>>,
}

/// Since when and for what the next command waits; outdated once a command was run.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    since: Time,
    until: Time,
    /// The number of suspended scripts that had ended when it began to wait for another.
    ended: Option<u64>,
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
            seen_users: 0,
            #[cfg(feature = "acl")]
            user: None,
            logins: Logins::default(),
            #[cfg(feature = "acl")]
            file_task: None,
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
            began: None,
            is_timed_always: false,
            #[cfg(feature = "compat")]
            waiter: None,
            waiting: Waiting::default(),
            place: None,
            #[cfg(feature = "compat")]
            script: None,
            search: None,
        }
    }

    /// Notes that the next command waits.
    pub(crate) fn begin_waiting(&mut self, now: Time) {
        if !self.client.is_waiting() {
            self.waiting.since = now;
            self.client.note_waiting();
        }
        self.waiting.ended = None;
    }

    /// Waits for the end of a suspended script; returns `false` when that has taken `busy_ms`.
    pub(crate) fn wait_for_scripts(
        &mut self,
        holds: &Holds,
        busy_ms: Option<u64>,
        now: Time,
    ) -> bool {
        let until = match busy_ms {
            Some(busy_ms) => self
                .waiting
                .since
                .saturating_add(Duration::from_millis(busy_ms)),
            None => now.saturating_add(AGAIN),
        };
        self.waiting.until = until;
        self.waiting.ended = Some(holds.ended());
        now < until
    }

    /// Returns until when the next command waits for scripts.
    pub(crate) fn script_wait_end(&self, holds: &Holds, now: Time) -> Option<Time> {
        #[cfg(feature = "compat")]
        if let Some(script) = &self.script {
            return script.wait_end(now);
        }
        let is_waiting = self.waiting.ended == Some(holds.ended()) && now < self.waiting.until;
        is_waiting.then_some(self.waiting.until)
    }

    /// Returns until when the next command waits for something of its own.
    pub(crate) fn own_wait_end(&self, now: Time) -> Option<Time> {
        #[cfg(feature = "acl")]
        if self
            .file_task
            .as_ref()
            .is_some_and(|task| task.is_running())
        {
            return Some(now.saturating_add(AGAIN));
        }
        self.logins.wait_end(now)
    }

    /// Makes it a user's, who has given a password.
    #[cfg_attr(
        not(feature = "acl"),
        expect(unused_variables, reason = "there is one user")
    )]
    pub(crate) fn log_in(&mut self, account: Arc<Account>) {
        #[cfg(feature = "acl")]
        self.client.become_user(Some(account));
        self.seen_users = 0;
        self.look_at_user();
    }

    /// Makes it that of the user `default`.
    pub(crate) fn log_out(&mut self) {
        #[cfg(feature = "acl")]
        self.client.become_user(None);
        self.seen_users = 0;
        self.look_at_user();
    }

    /// Notes what its user may do now.
    pub(crate) fn look_at_user(&mut self) {
        #[cfg(feature = "acl")]
        {
            self.user = Some(self.client.user()).filter(|user| user.is_restricted());
        }
        self.note_state();
    }

    /// Returns whether its user may run the scripts that are one operation on the table.
    #[inline]
    pub(crate) fn runs_shapes(&self) -> bool {
        #[cfg(feature = "acl")]
        return self.user.as_ref().is_none_or(|user| user.runs_shapes());
        #[cfg(not(feature = "acl"))]
        true
    }

    /// Returns whether a command that waits may be offered again once the connection has yielded to
    /// others.
    pub const fn is_in_queue(&self) -> bool {
        self.place.is_some()
    }

    /// Leaves the queue of those whose commands may take long, because the connection is not about to
    /// offer one again.
    pub fn leave_queue(&mut self) {
        self.place = None;
    }

    /// Returns whether a script of this connection takes long.
    pub fn has_script(&self) -> bool {
        #[cfg(feature = "compat")]
        return self.script.is_some();
        #[cfg(not(feature = "compat"))]
        false
    }

    /// The time of a command that waits for its turn has not begun, unless a part of it was done.
    pub(crate) fn begin_waiting_for_turn(&mut self) {
        if !self.has_script() && self.search.is_none() {
            self.began = None;
        }
    }

    /// Forgets such a script, or a search, whose command was answered without it.
    pub(crate) fn drop_script(&mut self) {
        self.search = None;
        #[cfg(feature = "acl")]
        {
            self.file_task = None;
        }
        #[cfg(feature = "compat")]
        {
            self.script = None;
        }
    }

    /// Ends such a script, for instance because the node stops.
    pub fn stop_script(&self) {
        #[cfg(feature = "compat")]
        if let Some(script) = &self.script {
            script.stop();
        }
    }

    /// Returns whether a command still waits for its reply; nothing else is executed meanwhile. When
    /// this has become `false`, the reply is in the mailbox.
    pub fn is_waiting(&self) -> bool {
        #[cfg(feature = "compat")]
        if let Some(waiter) = &self.waiter {
            return waiter.is_waiting();
        }
        false
    }

    /// Returns the end of the wait; `None` without one.
    pub fn wait_end(&self) -> Option<Time> {
        #[cfg(feature = "compat")]
        return self.waiter.as_ref().and_then(|waiter| waiter.until);
        #[cfg(not(feature = "compat"))]
        None
    }

    /// Forgets a wait that has ended, and whose reply was taken from the mailbox.
    pub fn forget_wait(&mut self) {
        #[cfg(feature = "compat")]
        {
            self.waiter = None;
        }
    }

    /// Returns what must be durable before what is in the mailbox may be sent.
    pub fn mail_need(&self) -> Need {
        #[cfg(feature = "compat")]
        if let Some(waiter) = &self.waiter {
            return waiter.need();
        }
        Need::NONE
    }

    /// Ends the wait, if it still lasts, with the reply that nothing came.
    pub fn give_up(&mut self, out: &mut Vec<u8>) {
        #[cfg(feature = "compat")]
        if let Some(waiter) = self.waiter.take()
            && waiter.leave()
            && waiter.wants_reply()
        {
            Encoder::new(out, self.protocol).null_array();
        }
        let _ = out;
    }

    /// Answers bytes that are no request, if the client wants replies.
    pub fn refuse(&self, error: &ProtocolError, out: &mut Vec<u8>) {
        if self.reply_mode == ReplyMode::On {
            error.append_reply(out);
        }
    }

    /// Notes that something changed which decides whether commands need more checks than usual. All
    /// of that is in one flag, so that other connections pay for one branch.
    pub(crate) const fn note_state(&mut self) {
        self.is_special = self.transaction.is_some() || self.logins.are_held();
        #[cfg(feature = "acl")]
        {
            self.is_special |= self.user.is_some();
        }
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

    /// Ends what the connection is subscribed to, watches, tracks and waits for.
    pub(crate) fn forget_interests(&mut self) {
        #[cfg(feature = "compat")]
        {
            if let Some(waiter) = self.waiter.take() {
                waiter.leave();
            }
            self.subscriptions = None;
            self.watching = None;
            self.tracker = None;
        }
    }

    /// Tells CLIENT LIST how many commands are queued.
    pub(crate) fn note_queued(&self) {
        let queued = self.transaction.as_ref().map(|it| it.len());
        self.client.note_queued(queued);
    }

    /// Returns about how many bytes the session keeps for its transaction, its search, its subscriptions,
    /// and what it watches or waits for.
    pub fn kept_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |it| it.size());
        let queued = queued + self.search.as_ref().map_or(0, |it| it.size());
        #[cfg(feature = "compat")]
        let queued = queued
            + self.watching.as_ref().map_or(0, |it| it.size())
            + self.subscriptions.as_ref().map_or(0, |it| it.size())
            + self.waiter.as_ref().map_or(0, |it| it.size);
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
            && self.transaction.is_none()
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
        self.forget_interests();
        self.client.leave();
    }
}

/// When a command that waits for a script without a limit looks again; the end of a script wakes it.
const AGAIN: Duration = Duration::from_secs(1);
