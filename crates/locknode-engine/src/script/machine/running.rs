//! A script that takes long, in a Lua and on a thread of its own.
//!
//! ```text
//!  thread of the script               the connection that sent it, at its next turn
//!  redis.call --words--> Event::Call --------> the command, with all shards locked
//!             <------------ reply ------------
//!  end        ---------> Event::Done --------> commit or undo, then the reply to the client
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use locknode_resp::Protocol;

use super::Sandbox;
use super::watch::{Bounds, Random, Signal};
use crate::script::error::ScriptError;
use crate::script::{Caller, StartThread, Value};

/// The text and the arguments of a script.
pub(super) struct Script {
    source: Arc<[u8]>,
    keys: Box<[Box<[u8]>]>,
    args: Box<[Box<[u8]>]>,
}

/// What a script needs of its connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// The reply to a command.
    Call(Box<[Box<[u8]>]>, Protocol),
    /// Nothing more.
    Done(Result<Value, ScriptError>),
}

/// A handle to a running script, which ends with it.
#[derive(Debug)]
pub(crate) struct Running {
    events: Receiver<Event>,
    replies: Sender<Vec<u8>>,
    signal: Arc<Signal>,
}

/// The commands of a script, which its connection runs.
struct Courier {
    events: Sender<Event>,
    replies: Receiver<Vec<u8>>,
    signal: Arc<Signal>,
    wake: Box<dyn Fn() + Send>,
}

impl Script {
    pub(super) fn new(source: &Arc<[u8]>, keys: &[&[u8]], args: &[&[u8]]) -> Self {
        let own = |texts: &[&[u8]]| texts.iter().map(|text| Box::from(*text)).collect();
        Self {
            source: Arc::clone(source),
            keys: own(keys),
            args: own(args),
        }
    }

    fn run(
        &self,
        bounds: Bounds,
        random: &Arc<Random>,
        courier: &mut Courier,
    ) -> Result<Value, ScriptError> {
        let no_lua = |_| ScriptError::stopped(1, super::NO_LUA);
        let signal = Arc::clone(&courier.signal);
        let mut sandbox = Sandbox::new(Some(signal)).map_err(no_lua)?;
        sandbox.watch.set_bounds(bounds, random);
        let keys: Vec<&[u8]> = self.keys.iter().map(|key| &**key).collect();
        let args: Vec<&[u8]> = self.args.iter().map(|arg| &**arg).collect();
        sandbox.run(&self.source, &keys, &args, courier)
    }
}

impl Running {
    /// Starts the script; `wake` is called when it waits for its connection. `None` when there is no
    /// thread left.
    pub(super) fn start(
        start_thread: StartThread,
        script: Script,
        bounds: Bounds,
        random: Arc<Random>,
        wake: Box<dyn Fn() + Send>,
    ) -> Option<Self> {
        let signal = Arc::<Signal>::default();
        let (event_sender, events) = channel();
        let (replies, reply_receiver) = channel();
        let mut courier = Courier {
            events: event_sender,
            replies: reply_receiver,
            signal: Arc::clone(&signal),
            wake,
        };
        let work = move || {
            let result = script.run(bounds, &random, &mut courier);
            courier.tell(Event::Done(result));
        };
        start_thread(Box::new(work)).then_some(Self {
            events,
            replies,
            signal,
        })
    }

    /// Waits up to so long for what the script needs next.
    pub(crate) fn next_event(&self, timeout: Duration) -> Option<Event> {
        let event = self.events.recv_timeout(timeout).ok()?;
        self.signal.set_event(false);
        Some(event)
    }

    /// Answers the call of the script.
    pub(crate) fn reply(&self, reply: Vec<u8>) {
        // A script that was stopped takes no reply.
        let _ = self.replies.send(reply);
    }

    pub(crate) const fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }
}

impl Drop for Running {
    /// The thread ends at its next look at the limits, or at its next command.
    fn drop(&mut self) {
        self.signal.stop();
    }
}

impl Courier {
    fn tell(&self, event: Event) {
        self.signal.set_event(true);
        // Nobody listens after the connection was closed.
        if self.events.send(event).is_ok() {
            (self.wake)();
        }
    }
}

impl Caller for Courier {
    fn call(&mut self, args: &[&[u8]], protocol: Protocol, reply: &mut Vec<u8>) {
        let words = args.iter().map(|arg| Box::from(*arg)).collect();
        self.tell(Event::Call(words, protocol));
        match self.replies.recv() {
            Ok(bytes) => reply.extend_from_slice(&bytes),
            Err(_) => self.signal.stop(),
        }
    }
}
