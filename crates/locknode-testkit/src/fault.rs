//! Faults as data: what can be done to nodes, clients, links, clocks and disks.
//!
//! A fault says nothing of when it comes; see [`Trigger`](crate::Trigger). Each has one line of text, which a replay file
//! keeps; see [`Fault::parse`]. And each has one row in the table below, from which all that is said of it comes; what it
//! does to nodes, clients and clocks is in `sim` and in `cluster`, what it does to links is in its row.

pub(crate) mod link_state;
mod links;
mod sentence;
pub(crate) mod text;

use std::fmt::{Formatter, Result as FmtResult};
use std::time::Duration;

use self::link_state::LinkState;
pub use self::links::{Links, Members};
use self::sentence::{Ends, percent};
use self::text::{Words, Written};
use crate::named::named;
use crate::parse_error::ParseError;
use crate::span::Span;

/// A node or a client: something with a process and clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// A node, by number from 0.
    Node(u8),
    /// A client, by number from 0.
    Client(u8),
}

named! {
    /// A direction of a connection, or both.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Way {
        /// From client to node.
        Requests = "requests",
        /// From node to client.
        Replies = "replies",
        /// Both.
        Both = "both",
    }
}

named! {
    /// How a node's process ends.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Crash {
        /// The process dies and the machine goes on: all that was written can be read again.
        #[default]
        Kill = "kill",
        /// The machine loses power and boots: of what was not synced, any part is kept.
        PowerLoss = "power-loss",
        /// As [`Crash::PowerLoss`], and of what was not synced nothing is kept.
        PowerLossAll = "power-loss-all",
        /// As [`Crash::PowerLoss`], in the middle of a write to the disk, if one is under way.
        TornWrite = "torn-write",
        /// The disk is gone: the node starts on a new and empty one.
        DiskLost = "disk-lost",
        /// The disk is taken back to what it held when the node was stopped in order last, as when a virtual machine is restored.
        Rollback = "rollback",
        /// The disk is put into another machine.
        Moved = "moved",
        /// The process is asked to end, and does so in order, which lasts as long as its clients and its disk take. Asked again, it
        /// waits for its clients no longer. Any other end may come meanwhile.
        CleanStop = "clean-stop",
        /// The process dies, and starts again in a container of the same machine: in a time namespace whose number is that of the
        /// last one, and whose clocks are not.
        Contained = "contained",
        /// The process dies, and the clocks of its machine are put back within the same boot.
        ClocksBack = "clocks-back",
    }
}

named! {
    /// Something that a node does with its files in one go, and may be in the middle of when it ends.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Phase {
        /// Its start.
        #[default]
        Open = "open",
        /// A step of the compaction of its log.
        Compact = "compact",
        /// The last snapshot of an orderly stop.
        Close = "close",
    }
}

/// What a disk does from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DiskFault {
    /// Its next sync fails, and what that should have kept is not.
    #[default]
    SyncError,
    /// The same, and it says that there is no room.
    SyncFull,
    /// Its next write fails in the middle.
    WriteError,
    /// The same, and it says that there is no room.
    WriteFull,
    /// A bit of a file is another when the node has ended next.
    Rot,
    /// The end of a file is missing when the node has ended next.
    Cut,
    /// It is full.
    Full,
    /// It has room again.
    Room,
    /// Each piece of work takes this long.
    Slow(Duration),
    /// Nothing comes back from it until [`DiskFault::Go`].
    Stall,
    /// It goes on, at its usual speed.
    Go,
}

named! {
    /// The error with which a node refuses a request, in the words of Redis.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Refusal {
        /// It is a replica.
        #[default]
        ReadOnly = "readonly",
        /// It has no memory left.
        Oom = "oom",
        /// It cannot save to its disk.
        Misconf = "misconf",
        /// It has too few replicas.
        NoReplicas = "noreplicas",
        /// A script keeps it busy.
        Busy = "busy",
    }
}

/// How a fault is written, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form {
    /// How its line begins: one word, or two.
    pub name: &'static str,
    /// What follows, in order, by name: `node`, `client`, `who`, `links`, `way`, `count`, `time` and so on.
    pub parts: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
    /// Why real nodes cannot have it, if they cannot.
    pub why_simulated: Option<&'static str>,
}

/// Makes [`Fault`] of one row for each:
///
/// ```text
/// "how its line begins" Name(what follows, by the method of `Words` that reads it) "what it does",
///     kind: the name under which it is counted, if not how its line begins,
///     told: what people read when it happens, if not its line,
///     link: what it does to each of its links,
///     undo: the fault that takes it back, if there is one,
///     simulated: why real nodes cannot have it, if they cannot,
/// ```
macro_rules! faults {
    ($(
        $name:literal $fault:ident $(($($part:ident: $type:ty),+))? $what:literal,
        $(kind: $kind:expr,)?
        $(told: |$ends:ident| $told:expr,)?
        $(link: |$link:ident| $effect:expr,)?
        $(undo: $undo:expr,)?
        $(simulated: $why:literal,)?
    )+) => {
        /// One thing that goes wrong, or is put right.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault {
            $(#[doc = $what] $fault $(($($type),+))?,)+
        }

        #[allow(unused_variables, reason = "no column needs all parts of a row")]
        impl Fault {
            /// How each is written, and what it does.
            pub const FORMS: &[Form] = &[$(Form {
                name: $name,
                parts: &[$($(stringify!($part)),+)?],
                what: $what,
                why_simulated: last!(None $(, Some($why))?),
            }),+];

            /// How it is written.
            pub fn form(&self) -> &'static Form {
                enum Row { $($fault),+ }
                let row = match self {
                    $(Self::$fault { .. } => Row::$fault,)+
                };
                &Self::FORMS[row as usize]
            }

            /// The node or client that it strikes; `None` for links and for all at once.
            pub fn who(&self) -> Option<Who> {
                match self {
                    $(Self::$fault $(($($part),+))? => None $($(.or(who!($part $part)))+)?,)+
                }
            }

            /// The links that it strikes.
            pub fn links(&self) -> Option<Links> {
                match self {
                    $(Self::$fault $(($($part),+))? => None $($(.or(links!($part $part)))+)?,)+
                }
            }

            /// What kind of fault it is, in one word: the name under which it is counted.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$fault $(($($part),+))? => last!($name $(, $kind)?),)+
                }
            }

            /// What happens, in words, among `nodes` nodes and `clients` clients.
            pub fn sentence(&self, nodes: u8, clients: u8) -> String {
                let all = Ends { nodes, clients };
                match self {
                    $(Self::$fault $(($($part),+))? => {
                        last!(self.to_string() $(, { let $ends = all; $told })?)
                    })+
                }
            }

            /// What takes it back, if it lasts and something does.
            pub fn undo(&self) -> Option<Self> {
                match self {
                    $(Self::$fault $(($($part),+))? => last!(None $(, $undo)?),)+
                }
            }

            /// Does to one of its links what it does to each.
            pub(crate) fn strike(&self, link: &mut LinkState) {
                match self {
                    $(Self::$fault $(($($part),+))? => {
                        $(let $link = link; $effect;)?
                    })+
                }
            }

            pub(crate) fn parse_words(words: &mut Words<'_>) -> Result<Self, ParseError> {
                $(if words.take($name) {
                    return Ok(Self::$fault $(($(words.$part()?),+))?);
                })+
                Err(words.no_fault())
            }

            fn write(&self, f: &mut Formatter<'_>) -> FmtResult {
                match self {
                    $(Self::$fault $(($($part),+))? => {
                        f.write_str($name)?;
                        $($(write!(f, " {}", $part.written())?;)+)?
                    })+
                }
                Ok(())
            }
        }
    };
}

/// What a row says, or what holds where it says nothing.
macro_rules! last {
    ($default:expr) => {
        $default
    };
    ($default:expr, $said:expr) => {
        $said
    };
}

pub(crate) use last;

/// Who is struck, by the name of the part that says so.
macro_rules! who {
    (node $node:ident) => {
        Some(Who::Node(*$node))
    };
    (client $client:ident) => {
        Some(Who::Client(*$client))
    };
    (who $who:ident) => {
        Some(*$who)
    };
    ($part:ident $other:ident) => {
        None
    };
}

macro_rules! links {
    (links $links:ident) => {
        Some(*$links)
    };
    ($part:ident $other:ident) => {
        None
    };
}

faults! {
    "crash node" Crash(node: u8, how: Crash) "The node's process ends, and everything in its memory is lost.",
        kind: how.name(),
        told: |_ends| match how {
            Crash::Kill => format!("node {node} is killed"),
            Crash::CleanStop => format!("node {node} is stopped in order"),
            Crash::DiskLost => format!("node {node} is killed and its disk is lost"),
            how => format!("node {node} is killed ({})", how.name()),
        },
        undo: Some(Self::Restart(*node)),
    "crash client" CrashClient(client: u8) "The client's process ends without releasing its locks.",
        kind: "client-crash",
        told: |_ends| format!("client {client} dies and releases nothing"),
    "crash-in node" CrashIn(node: u8, phase: Phase, after: u16, how: Crash)
        "The process ends in this phase, just before the disk operation that follows `after` others.",
        kind: match phase {
            Phase::Open => "crash-in-open",
            Phase::Compact => "crash-in-compact",
            Phase::Close => "crash-in-close",
        },
        simulated: "a process of this machine ends wherever it happens to be",
    "restart node" Restart(node: u8) "Starts the node if it is down, or once it is down if it is stopping.",
        kind: "restart",
        told: |_ends| format!("node {node} starts again"),
    "promote node" Promote(node: u8)
        "The node is lost, and its asynchronous replica takes its place with what had reached it, if there is one.",
        kind: "promote",
    "pause" Pause(who: Who, time: Duration) "The process stands still while its clocks go on.",
        kind: who.pick("node-pause", "client-pause"),
        told: |_ends| format!("{who} stands still for {}", Span(*time)),
    "suspend" Suspend(who: Who, time: Duration) "The machine sleeps: only its boottime and its wall clock go on.",
        kind: who.pick("node-suspend", "client-suspend"),
    "freeze" Freeze(who: Who, time: Duration) "The machine stops with all its clocks, and nothing in it can notice.",
        kind: who.pick("node-freeze", "client-freeze"),
    "cut" Cut(links: Links, way: Way) "Nothing passes any more; it arrives when the link is healed.",
        kind: if *way == Way::Both { "partition" } else { "one-way-partition" },
        told: |ends| match way {
            Way::Both => format!("cut: {}", ends.between(*links)),
            way => format!("cut: {}", ends.along(*links, *way, "requests", "replies")),
        },
        link: |link| link.each(*way, |lane| lane.is_cut = true),
        undo: Some(Self::Heal(*links)),
    "heal" Heal(links: Links) "Reconnects what was cut.",
        told: |ends| if *links == Links::ALL {
            "healed: every link".to_owned()
        } else {
            format!("healed: {}", ends.between(*links))
        },
        link: |link| link.each(Way::Both, |lane| lane.is_cut = false),
    "delay" Delay(links: Links, time: Duration) "Every message takes this much longer, each way.",
        told: |ends| {
            let messages = ends.between(*links);
            if time.is_zero() {
                format!("on time again: messages {messages}")
            } else {
                format!("{} later: messages {messages}", Span(*time))
            }
        },
        link: |link| link.delay = *time,
        undo: Some(Self::Delay(*links, Duration::ZERO)),
    "hold" Hold(links: Links, way: Way) "Messages are held back.",
        told: |ends| format!("held back: {}", ends.along(*links, *way, "requests", "replies")),
        link: |link| link.each(*way, |lane| lane.is_held = true),
        undo: Some(Self::Release(*links, *way)),
    "release" Release(links: Links, way: Way) "Delivers the messages that were held back.",
        kind: "release-held",
        told: |ends| format!("delivered: held {}", ends.along(*links, *way, "requests", "replies")),
        link: |link| link.each(*way, |lane| lane.is_held = false),
    "drop" Drop(links: Links, way: Way, count: u8)
        "Drops the next messages. Each takes its connection down with it, and neither end notices at once.",
        kind: if *way == Way::Requests { "drop-requests" } else { "drop-replies" },
        told: |ends| {
            let (request, reply) = match count {
                1 => ("request", "reply"),
                _ => ("requests", "replies"),
            };
            format!("lost: the next {count} {}", ends.along(*links, *way, request, reply))
        },
        link: |link| link.each(*way, |lane| lane.losses = *count),
    "late" Late(links: Links, way: Way, count: u8, time: Duration)
        "Delays the next messages by this much, and whatever follows them on their connections.",
        told: |ends| {
            let what = ends.along(*links, *way, "requests", "replies");
            format!("{} later: the next {count} {what}", Span(*time))
        },
        link: |link| link.each(*way, |lane| (lane.lates, lane.late_by) = (*count, *time)),
    "duplicate" Duplicate(links: Links, count: u8)
        "The next requests arrive twice, the second time through a connection whose replies nobody reads.",
        told: |ends| format!("doubled: the next {count} requests {}", ends.between(*links)),
        link: |link| link.doubles = *count,
    "refuse" Refuse(links: Links, refusal: Refusal, count: u8)
        "The node refuses the next requests for locks with this error, and executes none of them.",
        told: |ends| format!(
            "refused ({}): the next {count} requests {}", refusal.name(), ends.between(*links)
        ),
        link: |link| link.refusals = (*count > 0).then_some((*count, *refusal)),
        undo: Some(Self::Refuse(*links, *refusal, 0)),
    "reset" Reset(links: Links) "The connections break, and both ends notice.",
        told: |ends| format!("broken: connections {}", ends.between(*links)),
    "rate" Rate(who: Who, ppm: i32) "The monotonic clocks run fast or slow by this many millionths.",
        kind: "clock-rate",
        told: |_ends| match ppm {
            0 => format!("the clock of {who} runs right again"),
            1.. => format!("the clock of {who} runs {} too fast", percent(*ppm)),
            _ => format!("the clock of {who} runs {} too slow", percent(*ppm)),
        },
        undo: Some(Self::Rate(*who, 0)),
    "slew" Slew(who: Who, ppm: i32) "Only boottime runs fast or slow, as when NTP slews it.",
        kind: "clock-slew",
        undo: Some(Self::Slew(*who, 0)),
    "noise" Noise(who: Who, time: Duration)
        "Each clock reading is late by up to this much; time never runs backwards.",
        kind: "clock-noise",
        undo: Some(Self::Noise(*who, Duration::ZERO)),
    "wall" WallJump(who: Who, jump: i64) "Sets the wall clock forward or back.",
        kind: "wall-jump",
        told: |_ends| {
            let way = if *jump < 0 { "back" } else { "ahead" };
            let span = Span(Duration::from_millis(jump.unsigned_abs()));
            format!("the calendar of {who} is set {way} by {span}")
        },
    "disk node" Disk(node: u8, disk: DiskFault) "What the node's disk does from now on.",
        kind: disk.kind(),
        undo: match disk {
            DiskFault::Full => Some(Self::Disk(*node, DiskFault::Room)),
            DiskFault::Slow(_) | DiskFault::Stall => Some(Self::Disk(*node, DiskFault::Go)),
            _ => None,
        },
        simulated: "the nodes' disks, where they have one, are directories of this machine",
    "max-ttl node" MaxTtl(node: u8, time: Duration)
        "From its next start on: the longest TTL that rides on the restart guard, and the wait after a lost disk.",
        kind: "max-ttl",
    "calm" Calm "Repairs everything: links, disks and clocks work again, and nodes that are down start.",
        told: |_ends| "everything is put right, and nodes that are down start".to_owned(),
}

impl Way {
    /// Whether requests are meant.
    pub const fn has_requests(self) -> bool {
        matches!(self, Self::Requests | Self::Both)
    }

    /// Whether replies are meant.
    pub const fn has_replies(self) -> bool {
        matches!(self, Self::Replies | Self::Both)
    }
}

impl Who {
    const fn pick<T: Copy>(self, of_node: T, of_client: T) -> T {
        match self {
            Self::Node(_) => of_node,
            Self::Client(_) => of_client,
        }
    }
}

impl Refusal {
    /// The reply.
    pub(crate) const fn reply(self) -> &'static [u8] {
        match self {
            Self::ReadOnly => b"-READONLY You can't write against a read only replica.\r\n",
            Self::Oom => b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
            Self::Misconf => {
                b"-MISCONF Redis is configured to save RDB snapshots, but cannot persist on disk.\r\n"
            }
            Self::NoReplicas => b"-NOREPLICAS Not enough good replicas to write.\r\n",
            Self::Busy => {
                b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
            }
        }
    }
}

impl DiskFault {
    /// Every kind.
    pub(crate) const ALL: [Self; 11] = [
        Self::SyncError,
        Self::SyncFull,
        Self::WriteError,
        Self::WriteFull,
        Self::Rot,
        Self::Cut,
        Self::Full,
        Self::Room,
        Self::Stall,
        Self::Go,
        Self::Slow(Duration::ZERO),
    ];

    /// As it is written, without the time of a slow one.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SyncError => "sync-error",
            Self::SyncFull => "sync-full",
            Self::WriteError => "write-error",
            Self::WriteFull => "write-full",
            Self::Rot => "rot",
            Self::Cut => "cut",
            Self::Full => "full",
            Self::Room => "room",
            Self::Slow(_) => "slow",
            Self::Stall => "stall",
            Self::Go => "go",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Rot => "disk-rot",
            Self::Cut => "disk-cut",
            Self::Full => "disk-full",
            Self::Room => "disk-room",
            Self::Slow(_) => "disk-slow",
            Self::Stall => "disk-stall",
            Self::Go => "disk-go",
            other => other.name(),
        }
    }
}

impl Phase {
    /// The name under which it is counted that a process has ended in the middle of it.
    pub(crate) const fn cut_short(self) -> &'static str {
        match self {
            Self::Open => "open-cut-short",
            Self::Compact => "compact-cut-short",
            Self::Close => "close-cut-short",
        }
    }
}

#[cfg(test)]
mod tests;
