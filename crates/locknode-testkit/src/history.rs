//! What happened in a world, in true time: what checkers judge and the timeline draws.

pub(crate) mod index;
mod json;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use serde::Serialize;

use crate::fault::Crash;
use crate::fault::Who;
use crate::span::SimTime;

/// Everything that happened, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// How many nodes there were.
    pub nodes: u8,
    /// How many clients there were.
    pub clients: u8,
    /// When the world ended.
    pub end: SimTime,
    /// The names of the keys; events have their places in this list.
    pub keys: Vec<Arc<str>>,
    /// What happened, in order of time.
    pub entries: Vec<Entry>,
    /// Messages, in the order in which they were sent; only when they were recorded.
    pub messages: Vec<Message>,
    /// What is missing because there was too much.
    pub left_out: LeftOut,
}

/// How much of what happened is not in a history: recorders have limits, and what they leave out is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events.
    pub events: u64,
    /// When the first of them was: until then all are there.
    pub since: Option<SimTime>,
    /// Messages, the earliest or the latest; only when they were recorded.
    pub messages: u64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// When.
    pub at: SimTime,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// The place of a key in [`History::keys`]. There are at most 65,535 keys in a world.
pub type KeyNo = u16;

/// One attempt of a client: what a node knows by its token. Counted from 0 over the whole world.
pub type AttemptNo = u32;

/// One lock act of a client, from its call to its end. Counted from 0 over the whole world.
pub type LockNo = u32;

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A fault came.
    #[serde(serialize_with = "json::fault")]
    Fault(Box<str>),
    /// A node's process started.
    Started {
        /// The node.
        node: u8,
        /// Whether it stays out of every lock at first.
        is_quarantined: bool,
        /// Why; the store's word.
        reason: &'static str,
    },
    /// A node serves: its quarantine has ended, or there was none.
    Serving {
        /// The node.
        node: u8,
    },
    /// A node's process ended. All that it had granted in memory is gone.
    Down {
        /// The node.
        node: u8,
        /// How.
        #[serde(serialize_with = "json::text")]
        how: Crash,
    },
    /// A node could not start and stays down.
    StaysDown {
        /// The node.
        node: u8,
        /// What its store said.
        why: Box<str>,
    },
    /// A process or machine stood still, and goes on at `until`.
    Stopped {
        /// Whose.
        #[serde(serialize_with = "json::text")]
        who: Who,
        /// `pause`, `suspend` or `freeze`.
        how: &'static str,
        /// When it goes on.
        until: SimTime,
    },
    /// The clock that a process goes by runs otherwise from now on, or was set. Clocks begin right.
    Clock {
        /// Whose.
        #[serde(serialize_with = "json::text")]
        who: Who,
        /// What it shows now, from the start of the world on; restarts of the process do not count.
        shows: SimTime,
        /// How far it goes in a million nanoseconds of true time: 1,000,000 when it is right, 0 when it stands still.
        per_million: u32,
    },
    /// A node granted a lock.
    Granted {
        /// The node.
        node: u8,
        /// The key.
        key: KeyNo,
        /// Whose attempt.
        attempt: AttemptNo,
        /// The client of the attempt.
        client: u8,
        /// The key's fence counter after it; 0 when the reply does not say.
        counter: u64,
        /// When it ends in true time, if the node's clock goes on as it does.
        ends: SimTime,
    },
    /// A node holds a lock again that an earlier run of it granted.
    Restored {
        /// The node.
        node: u8,
        /// The key.
        key: KeyNo,
        /// Whose attempt.
        attempt: AttemptNo,
        /// When it ends in true time, if the node's clock goes on as it does.
        ends: SimTime,
    },
    /// A node gave a lock a new deadline.
    Extended {
        /// The node.
        node: u8,
        /// The key.
        key: KeyNo,
        /// Whose attempt.
        attempt: AttemptNo,
        /// When it ends in true time now.
        ends: SimTime,
    },
    /// A node deleted a lock because its holder released it.
    Freed {
        /// The node.
        node: u8,
        /// The key.
        key: KeyNo,
        /// Whose attempt it was.
        attempt: AttemptNo,
    },
    /// A node refused a request, without a look at the key.
    Refused {
        /// The node.
        node: u8,
        /// The client.
        client: u8,
        /// The first word of the error: `LOADING`, `MISCONF`, `OOM`, ...
        why: &'static str,
    },
    /// The reply to a grant or an extension left the node, `is_late` when it had waited for the disk.
    Answered {
        /// The node.
        node: u8,
        /// The client.
        client: u8,
        /// Whose grant or extension it reports.
        attempt: AttemptNo,
        /// Whether it had waited for the disk.
        is_late: bool,
    },
    /// The reply to a grant or an extension will never leave the node: its connection has ended.
    Unanswered {
        /// The node.
        node: u8,
        /// The client.
        client: u8,
        /// Whose grant or extension it would have reported.
        attempt: AttemptNo,
    },
    /// A node reported something that its disk would not give back, or came back without something that it had reported, or
    /// with something that it had deleted; or it let its disk rest while something was to become durable, or used up fence counters
    /// for nothing.
    Unkept {
        /// The node.
        node: u8,
        /// The key.
        key: KeyNo,
        /// Whose lock.
        attempt: AttemptNo,
        /// What is wrong, for people.
        why: Box<str>,
    },
    /// A node came back without a lock that it had reported, of a kind that is not promised to come back: one with a TTL above the
    /// longest after a lost disk, or without a data directory. Or it was asked to change the lock, by a thread that wants
    /// no replies or sees too few of them, and whether it did is not known.
    Forgotten {
        /// The node.
        node: u8,
        /// The key.
        key: KeyNo,
        /// Whose lock.
        attempt: AttemptNo,
    },
    /// A node refused to start on files that nothing but itself had touched.
    RefusesItself {
        /// The node.
        node: u8,
        /// What its store said.
        why: Box<str>,
    },
    /// A reply that shows a lock which the node holds for somebody left it: the answer to a read, or a refusal.
    Shown {
        /// The node.
        node: u8,
        /// Who asked.
        client: u8,
        /// The key.
        key: KeyNo,
        /// Whose lock.
        attempt: AttemptNo,
        /// When it ends in true time, as it was when the reply was made.
        ends: SimTime,
    },
    /// A client's request extended or released the lock of another client.
    Robbed {
        /// The node.
        node: u8,
        /// Who asked.
        client: u8,
        /// The key.
        key: KeyNo,
        /// Whose lock.
        attempt: AttemptNo,
    },
    /// A node answered a request otherwise than a node has to.
    Deviated {
        /// The node.
        node: u8,
        /// Who asked.
        client: u8,
        /// What was asked and answered, and what had to be, for people.
        text: Box<str>,
    },
    /// A client said or did something that is not borne out by what it had asked and heard.
    Misbehaved {
        /// The client.
        client: u8,
        /// The key.
        key: KeyNo,
        /// What, for people.
        text: Box<str>,
    },
    /// The world did not get on: somebody does something again and again, and no time passes. Nothing comes after it.
    Stuck,
    /// A client's process started.
    ClientStarted {
        /// The client.
        client: u8,
    },
    /// A client's process ended; it believes nothing any more.
    ClientDown {
        /// The client.
        client: u8,
    },
    /// A client began to acquire a lock.
    Calls {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// The key.
        key: KeyNo,
    },
    /// A client holds a lock from now on.
    Acquired {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// The key.
        key: KeyNo,
        /// The attempt that succeeded.
        attempt: AttemptNo,
        /// The fencing token, if it has one.
        fencing: Option<u64>,
        /// When its clock reaches the end of the validity, in true time.
        valid_until: SimTime,
    },
    /// The validity of a lock that is held is another now.
    Validity {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// When its clock reaches the end, in true time.
        valid_until: SimTime,
        /// Whether an extension succeeded; otherwise a clock changed its pace or the validity was cut.
        is_extension: bool,
    },
    /// A client did not get a lock.
    Failed {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// Why, in a word.
        why: &'static str,
    },
    /// An extension that was asked for did not succeed; the lock is as it was.
    NotExtended {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// Why, in a word.
        why: &'static str,
    },
    /// A client reported that its lock is lost; it stops believing in it now.
    Lost {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// Why, in a word.
        why: &'static str,
    },
    /// A client began to release its lock, or left it to its TTL; it stops believing in it now.
    Releases {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// It was left to its TTL.
        is_left: bool,
    },
    /// A client knows how its release went.
    Released {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// How many nodes had it and deleted it.
        confirmed: u8,
    },
    /// A client knows that its lock, which it has released, stays on a majority of the nodes for a while, as it had wished.
    Kept {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// Until then at the least, in true time.
        until: SimTime,
    },
    /// A client saw that it holds its lock, and is about to write.
    Checked {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
    },
    /// A write came to the resource, which knows the lock's key and fencing token.
    Wrote {
        /// The client.
        client: u8,
        /// The lock.
        lock: LockNo,
        /// The key.
        key: KeyNo,
        /// The fencing token, if the lock has one.
        fencing: Option<u64>,
        /// Whether a resource that checks fencing tokens took it.
        is_accepted: bool,
    },
}

/// Something that a client and a node sent each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename = "message")]
pub struct Message {
    /// The client.
    pub client: u8,
    /// The node.
    pub node: u8,
    /// From client to node; otherwise from node to client.
    pub is_request: bool,
    /// When it was sent.
    pub sent: SimTime,
    /// When it arrived; `None` when it was lost or still under way at the end.
    pub arrived: Option<SimTime>,
    /// Its words, for people.
    pub text: Box<str>,
}

/// The time in which a client believed that it held a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The client.
    pub client: u8,
    /// The lock.
    pub lock: LockNo,
    /// The key.
    pub key: KeyNo,
    /// The attempt that succeeded.
    pub attempt: AttemptNo,
    /// The fencing token, if it has one.
    pub fencing: Option<u64>,
    /// When the client began to acquire.
    pub called: SimTime,
    /// When it acquired the lock.
    pub from: SimTime,
    /// When it stopped believing: by its clock, by the report of a loss, by a release, or by dying. Not included.
    pub until: SimTime,
    /// How often the lock was extended.
    pub extensions: u32,
}

impl History {
    /// The name of a key.
    pub fn key(&self, key: KeyNo) -> &str {
        self.keys.get(usize::from(key)).map_or("?", |name| name)
    }

    /// All times in which a client believed that it held a lock, in the order in which they began.
    pub fn windows(&self) -> Vec<Window> {
        index::Index::of(self).windows
    }
}
