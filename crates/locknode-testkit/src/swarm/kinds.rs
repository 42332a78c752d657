//! Kinds of faults, by name: what a swarm may do.

use std::fmt::{Display, Formatter, Result as FmtResult};

use crate::parse_error::ParseError;

/// A kind of fault of a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A node's process dies and starts again.
    Crash,
    /// A node's machine loses power, unsynced writes with it, and boots.
    PowerLoss,
    /// A node is stopped in order, which takes time and may be cut short, and started again.
    CleanStop,
    /// A node's disk is lost; it starts on an empty one.
    DiskLost,
    /// A node's disk is put into another machine.
    Moved,
    /// Disks are slow, stall, are full or fail.
    Disk,
    /// Links between clients and nodes are cut, both ways.
    Partition,
    /// Links are cut one way.
    OneWay,
    /// Links get slower.
    Delay,
    /// What is sent on a link is held back and let go later.
    Hold,
    /// Single requests or replies are lost.
    Drop,
    /// Single requests or replies come late.
    Late,
    /// Single requests arrive twice.
    Duplicate,
    /// Connections break.
    Reset,
    /// Processes stand still.
    Pause,
    /// Machines sleep.
    Suspend,
    /// Clocks run fast or slow, by less than the drift allows.
    Drift,
    /// Boottime is slewed by up to a twelfth.
    Slew,
    /// Readings of clocks are a little late.
    Noise,
    /// Wall clocks are set.
    Wall,
    /// Clients die.
    ClientCrash,
    /// A node's longest TTL is another after its next start.
    MaxTtl,
    /// Clients want the same locks; otherwise each has its own.
    Rivalry,
    /// Holders work longer than their locks are valid.
    Overrun,
    /// Machines are stopped with all their clocks: breaks exclusion, not fencing.
    Freeze,
    /// Clocks run faster or slower than the drift allows: breaks exclusion, not fencing.
    BadClock,
    /// A node's disk is taken back to an earlier state: breaks both.
    Rollback,
    /// Other threads of the clients read locks, and have keys of their own.
    Asides,
    /// They lay hands on the locks as well: breaks exclusion, not fencing.
    Meddling,
    /// Nodes end in the middle of a start, of a compaction, of an orderly stop.
    Inside,
    /// Files at rest lose a bit or their end.
    Rot,
    /// A node comes into a container with clocks of its own; its machine's clocks go back.
    Machine,
}

/// A set of kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultKinds(u64);

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 32] = [
        Self::Crash,
        Self::PowerLoss,
        Self::CleanStop,
        Self::DiskLost,
        Self::Moved,
        Self::Disk,
        Self::Partition,
        Self::OneWay,
        Self::Delay,
        Self::Hold,
        Self::Drop,
        Self::Late,
        Self::Duplicate,
        Self::Reset,
        Self::Pause,
        Self::Suspend,
        Self::Drift,
        Self::Slew,
        Self::Noise,
        Self::Wall,
        Self::ClientCrash,
        Self::MaxTtl,
        Self::Rivalry,
        Self::Overrun,
        Self::Freeze,
        Self::BadClock,
        Self::Rollback,
        Self::Asides,
        Self::Meddling,
        Self::Inside,
        Self::Rot,
        Self::Machine,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::PowerLoss => "power-loss",
            Self::CleanStop => "clean-stop",
            Self::DiskLost => "disk-lost",
            Self::Moved => "moved",
            Self::Disk => "disk",
            Self::Partition => "partition",
            Self::OneWay => "one-way",
            Self::Delay => "delay",
            Self::Hold => "hold",
            Self::Drop => "drop",
            Self::Late => "late",
            Self::Duplicate => "duplicate",
            Self::Reset => "reset",
            Self::Pause => "pause",
            Self::Suspend => "suspend",
            Self::Drift => "drift",
            Self::Slew => "slew",
            Self::Noise => "noise",
            Self::Wall => "wall",
            Self::ClientCrash => "client-crash",
            Self::MaxTtl => "max-ttl",
            Self::Rivalry => "rivalry",
            Self::Overrun => "overrun",
            Self::Freeze => "freeze",
            Self::BadClock => "bad-clock",
            Self::Rollback => "rollback",
            Self::Asides => "asides",
            Self::Meddling => "meddling",
            Self::Inside => "inside",
            Self::Rot => "rot",
            Self::Machine => "machine",
        }
    }

    /// Whether it is in what clients do, and no step of its own.
    pub(crate) const fn is_of_work(self) -> bool {
        matches!(
            self,
            Self::Rivalry | Self::Overrun | Self::Asides | Self::Meddling
        )
    }

    const fn bit(self) -> u64 {
        1 << self as u32
    }
}

impl FaultKinds {
    /// None.
    pub const NONE: Self = Self(0);

    /// Every kind.
    pub const ALL: Self = Self((1 << FaultKind::ALL.len()) - 1);

    /// Those under which locks are promised to be exclusive.
    pub const PROMISED: Self = Self(
        Self::ALL.0
            & !(FaultKind::Freeze.bit()
                | FaultKind::BadClock.bit()
                | FaultKind::Rollback.bit()
                | FaultKind::Meddling.bit()),
    );

    /// Those under which fencing tokens are promised to be in order.
    pub const FENCED: Self = Self(Self::ALL.0 & !FaultKind::Rollback.bit());

    /// The same and one more.
    #[must_use]
    pub const fn with(self, kind: FaultKind) -> Self {
        Self(self.0 | kind.bit())
    }

    /// The same without one.
    #[must_use]
    pub const fn without(self, kind: FaultKind) -> Self {
        Self(self.0 & !kind.bit())
    }

    /// Whether a kind is among them.
    pub const fn has(self, kind: FaultKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// The kinds, in their order.
    pub fn iter(self) -> impl Iterator<Item = FaultKind> {
        FaultKind::ALL
            .into_iter()
            .filter(move |kind| self.has(*kind))
    }

    /// Reads `none`, `promised`, `fenced`, `all`, or names with commas between; one with a minus before it is left out of
    /// `promised` or of what stands before it.
    ///
    /// # Errors
    ///
    /// Which word is no kind, and which there are.
    ///
    /// ```
    /// use locknode_testkit::{FaultKind, FaultKinds};
    ///
    /// let kinds = FaultKinds::parse("crash,partition")?;
    /// assert!(kinds.has(FaultKind::Crash) && !kinds.has(FaultKind::Pause));
    /// assert!(!FaultKinds::parse("-pause")?.has(FaultKind::Pause));
    /// # Ok::<(), locknode_testkit::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut kinds = match text.starts_with('-') {
            true => Self::PROMISED,
            false => Self::NONE,
        };
        for word in text.split(',').map(str::trim) {
            let (is_without, name) = match word.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, word),
            };
            let set = match name {
                "none" => Self::NONE,
                "promised" => Self::PROMISED,
                "fenced" => Self::FENCED,
                "all" => Self::ALL,
                _ => {
                    let found = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
                    let kind =
                        found.ok_or_else(|| ParseError::unexpected(&Self::names(), name, text))?;
                    Self::NONE.with(kind)
                }
            };
            kinds = match is_without {
                true => Self(kinds.0 & !set.0),
                false => Self(kinds.0 | set.0),
            };
        }
        Ok(kinds)
    }

    /// What [`FaultKinds::parse`] knows, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("none, promised, fenced, all or some of {}", names.join(","))
    }
}

impl Display for FaultKinds {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let known = [
            (Self::NONE, "none"),
            (Self::PROMISED, "promised"),
            (Self::FENCED, "fenced"),
            (Self::ALL, "all"),
        ];
        if let Some((_, name)) = known.iter().find(|(set, _)| set == self) {
            return f.write_str(name);
        }
        let names: Vec<&str> = self.iter().map(FaultKind::name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_kinds_are_read_as_they_were_written() {
        let sets = [
            FaultKinds::NONE,
            FaultKinds::PROMISED,
            FaultKinds::FENCED,
            FaultKinds::ALL,
            FaultKinds::NONE
                .with(FaultKind::Crash)
                .with(FaultKind::Wall),
        ];
        for set in sets {
            assert_eq!(FaultKinds::parse(&set.to_string()), Ok(set), "{set}");
        }
        let less = FaultKinds::parse("all,-crash").expect("known");
        assert_eq!(less, FaultKinds::ALL.without(FaultKind::Crash));
        let error = FaultKinds::parse("crash,explosions")
            .expect_err("unknown")
            .to_string();
        assert!(
            error.contains("power-loss") && error.contains("explosions"),
            "{error}"
        );
    }
}
