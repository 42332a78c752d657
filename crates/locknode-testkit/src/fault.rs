//! Faults as data: what can be done to nodes, clients, links, clocks and disks.
//!
//! A fault says nothing of when it comes; see [`Trigger`](crate::Trigger). Each has one line of text, which a replay file
//! keeps; see [`Fault::parse`].

pub(crate) mod text;

use std::time::Duration;

/// A set of nodes or of clients, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members(u16);

/// A node or a client: something with a process and clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// A node, by number from 0.
    Node(u8),
    /// A client, by number from 0.
    Client(u8),
}

/// The connections between clients and nodes; nodes do not talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Links {
    /// Their clients.
    pub clients: Members,
    /// Their nodes.
    pub nodes: Members,
}

/// A direction of a connection, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From client to node.
    Requests,
    /// From node to client.
    Replies,
    /// Both.
    Both,
}

/// How a node's process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crash {
    /// The process dies and the machine goes on: all that was written can be read again.
    Kill,
    /// The machine loses power and boots: of what was not synced, any part is kept.
    PowerLoss,
    /// As [`Crash::PowerLoss`], and of what was not synced nothing is kept.
    PowerLossAll,
    /// As [`Crash::PowerLoss`], in the middle of a write to the disk, if one is under way.
    TornWrite,
    /// The disk is gone: the node starts on a new and empty one.
    DiskLost,
    /// The disk is taken back to what it held when the node was stopped in order last, as when a virtual machine is restored.
    Rollback,
    /// The disk is put into another machine.
    Moved,
    /// The process is asked to end, and does so in order, which lasts as long as its clients and its disk take. Asked again, it
    /// waits for its clients no longer. Any other end may come meanwhile.
    CleanStop,
    /// The process dies, and starts again in a container of the same machine: in a time namespace whose number is that of the
    /// last one, and whose clocks are not.
    Contained,
    /// The process dies, and the clocks of its machine are put back within the same boot.
    ClocksBack,
}

/// Something that a node does with its files in one go, and may be in the middle of when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Its start.
    Open,
    /// A step of the compaction of its log.
    Compact,
    /// The last snapshot of an orderly stop.
    Close,
}

/// What a disk does from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskFault {
    /// Its next sync fails, and what that should have kept is not.
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
    /// Each piece of work takes so long.
    Slow(Duration),
    /// Nothing comes back from it until [`DiskFault::Go`].
    Stall,
    /// It goes on, at its usual speed.
    Go,
}

/// One thing that goes wrong, or is put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A node's process ends.
    Crash(u8, Crash),
    /// A node's process ends when it has done so many more operations on its disk in this phase, and is about to do another.
    CrashIn(u8, Phase, u16, Crash),
    /// A node that is down starts; one that ends in order starts when it is down.
    Restart(u8),
    /// A node is lost, and its asynchronous replica takes its place with what had reached it. Where nodes have no replica, the
    /// node is lost and stays down.
    Promote(u8),
    /// A client's process ends; it holds nothing any more and says nothing.
    CrashClient(u8),
    /// The process stands still: its clocks go on.
    Pause(Who, Duration),
    /// The machine sleeps: of its clocks only boottime and the wall clock go on.
    Suspend(Who, Duration),
    /// The hypervisor stops the machine: all its clocks stand still, and nothing in it can notice.
    Freeze(Who, Duration),
    /// Nothing passes any more: it is sent again and again, and arrives when the links are healed.
    Cut(Links, Way),
    /// What was cut is whole again.
    Heal(Links),
    /// All passes so much later from now on.
    Delay(Links, Duration),
    /// What is sent is held back.
    Hold(Links, Way),
    /// What was held back is let go.
    Release(Links, Way),
    /// The next so many messages are lost, and with each its connection, which nobody notices at once.
    Drop(Links, Way, u8),
    /// The next so many messages come so much later, and so does what follows them on the connection.
    Late(Links, Way, u8, Duration),
    /// The next so many requests arrive twice, the second time through a connection whose replies nobody reads.
    Duplicate(Links, u8),
    /// The connections break; both ends notice.
    Reset(Links),
    /// The monotonic clocks run so many millionths too fast from now on, or too slow.
    Rate(Who, i32),
    /// Boottime alone does, as when NTP slews it.
    Slew(Who, i32),
    /// Each reading is off by up to this much, later than the true one; time never runs back.
    Noise(Who, Duration),
    /// The wall clock is set ahead by so many milliseconds, or back.
    WallJump(Who, i64),
    /// The disk of a node.
    Disk(u8, DiskFault),
    /// The longest TTL that rides on the restart guard is another from the node's next start on.
    MaxTtl(u8, Duration),
    /// All links are healed and let go, disks work, clocks run right, and nodes that are down start.
    Calm,
}

impl Members {
    /// Everybody.
    pub const ALL: Self = Self(u16::MAX);

    /// Nobody.
    pub const NONE: Self = Self(0);

    /// One; nobody when the number is above 15.
    pub const fn one(number: u8) -> Self {
        match number < 16 {
            true => Self(1 << number),
            false => Self(0),
        }
    }

    /// Whether the one with this number is among them.
    pub const fn has(self, number: u8) -> bool {
        number < 16 && self.0 & (1 << number) != 0
    }

    /// The same and one more.
    #[must_use]
    pub const fn with(self, number: u8) -> Self {
        Self(self.0 | Self::one(number).0)
    }

    /// The numbers, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |number| self.has(*number))
    }
}

impl FromIterator<u8> for Members {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        numbers.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<const N: usize> From<[u8; N]> for Members {
    fn from(numbers: [u8; N]) -> Self {
        numbers.into_iter().collect()
    }
}

impl From<u8> for Members {
    fn from(number: u8) -> Self {
        Self::one(number)
    }
}

impl Links {
    /// Every link.
    pub const ALL: Self = Self {
        clients: Members::ALL,
        nodes: Members::ALL,
    };

    /// The links between these clients and these nodes.
    pub fn between(clients: impl Into<Members>, nodes: impl Into<Members>) -> Self {
        Self {
            clients: clients.into(),
            nodes: nodes.into(),
        }
    }

    /// Whether the link between this client and this node is one of them.
    pub const fn has(self, client: u8, node: u8) -> bool {
        self.clients.has(client) && self.nodes.has(node)
    }
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

impl Fault {
    /// The node or client that it strikes; `None` for links and for all at once.
    pub const fn who(&self) -> Option<Who> {
        match *self {
            Self::Crash(node, _)
            | Self::CrashIn(node, ..)
            | Self::Restart(node)
            | Self::Promote(node)
            | Self::Disk(node, _)
            | Self::MaxTtl(node, _) => Some(Who::Node(node)),
            Self::CrashClient(client) => Some(Who::Client(client)),
            Self::Pause(who, _)
            | Self::Suspend(who, _)
            | Self::Freeze(who, _)
            | Self::Rate(who, _)
            | Self::Slew(who, _)
            | Self::Noise(who, _)
            | Self::WallJump(who, _) => Some(who),
            Self::Cut(..)
            | Self::Heal(_)
            | Self::Delay(..)
            | Self::Hold(..)
            | Self::Release(..)
            | Self::Drop(..)
            | Self::Late(..)
            | Self::Duplicate(..)
            | Self::Reset(_)
            | Self::Calm => None,
        }
    }

    /// What kind of fault it is, in one word: the name under which it is counted.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Crash(_, how) => how.name(),
            Self::CrashIn(_, Phase::Open, ..) => "crash-in-open",
            Self::CrashIn(_, Phase::Compact, ..) => "crash-in-compact",
            Self::CrashIn(_, Phase::Close, ..) => "crash-in-close",
            Self::Restart(_) => "restart",
            Self::Promote(_) => "promote",
            Self::CrashClient(_) => "client-crash",
            Self::Pause(Who::Node(_), _) => "node-pause",
            Self::Pause(Who::Client(_), _) => "client-pause",
            Self::Suspend(Who::Node(_), _) => "node-suspend",
            Self::Suspend(Who::Client(_), _) => "client-suspend",
            Self::Freeze(Who::Node(_), _) => "node-freeze",
            Self::Freeze(Who::Client(_), _) => "client-freeze",
            Self::Cut(_, Way::Both) => "partition",
            Self::Cut(..) => "one-way-partition",
            Self::Heal(_) => "heal",
            Self::Delay(..) => "delay",
            Self::Hold(..) => "hold",
            Self::Release(..) => "release-held",
            Self::Drop(_, Way::Requests, _) => "drop-requests",
            Self::Drop(..) => "drop-replies",
            Self::Late(..) => "late",
            Self::Duplicate(..) => "duplicate",
            Self::Reset(_) => "reset",
            Self::Rate(..) => "clock-rate",
            Self::Slew(..) => "clock-slew",
            Self::Noise(..) => "clock-noise",
            Self::WallJump(..) => "wall-jump",
            Self::Disk(_, DiskFault::SyncError) => "sync-error",
            Self::Disk(_, DiskFault::SyncFull) => "sync-full",
            Self::Disk(_, DiskFault::WriteError) => "write-error",
            Self::Disk(_, DiskFault::WriteFull) => "write-full",
            Self::Disk(_, DiskFault::Rot) => "disk-rot",
            Self::Disk(_, DiskFault::Cut) => "disk-cut",
            Self::Disk(_, DiskFault::Full) => "disk-full",
            Self::Disk(_, DiskFault::Room) => "disk-room",
            Self::Disk(_, DiskFault::Slow(_)) => "disk-slow",
            Self::Disk(_, DiskFault::Stall) => "disk-stall",
            Self::Disk(_, DiskFault::Go) => "disk-go",
            Self::MaxTtl(..) => "max-ttl",
            Self::Calm => "calm",
        }
    }
}

impl Crash {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Kill,
        Self::PowerLoss,
        Self::PowerLossAll,
        Self::TornWrite,
        Self::DiskLost,
        Self::Rollback,
        Self::Moved,
        Self::CleanStop,
        Self::Contained,
        Self::ClocksBack,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::PowerLoss => "power-loss",
            Self::PowerLossAll => "power-loss-all",
            Self::TornWrite => "torn-write",
            Self::DiskLost => "disk-lost",
            Self::Rollback => "rollback",
            Self::Moved => "moved",
            Self::CleanStop => "clean-stop",
            Self::Contained => "contained",
            Self::ClocksBack => "clocks-back",
        }
    }
}

impl Phase {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Open, Self::Compact, Self::Close];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Compact => "compact",
            Self::Close => "close",
        }
    }

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
