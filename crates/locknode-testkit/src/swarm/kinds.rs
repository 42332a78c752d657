//! Kinds of faults: what a swarm may do, and how it does it.

use std::fmt::{Display, Formatter, Result as FmtResult};

use crate::fault::{Crash, Fault, Refusal, Way, last};
use crate::named::named;
use crate::parse_error::ParseError;
use crate::scenario::{Hook, Scenario};
use crate::swarm::faults::FaultMaker;

/// What there is to say of a kind.
struct Row {
    what: &'static str,
    breaks: Breaks,
    /// What is counted when it comes.
    counts: &'static [&'static str],
    /// Without a data directory it does not come.
    is_of_disks: bool,
    /// How often it comes at most, out of focus.
    most: u64,
    /// Draws one of it.
    make: fn(&mut FaultMaker, &mut Scenario),
}

/// What is not promised where it may come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Nothing,
    Exclusion,
    Fencing,
}

/// Makes [`FaultKind`] of one row for each: what it is, what it breaks if anything, what of it is counted (`on disk` if it needs
/// one), how often it comes at most, and how one is drawn. One without the last two is in what clients do, and no step of its
/// own. A seed plays the same world for as long as the rows keep their order.
macro_rules! kinds {
    ($(
        $name:literal $kind:ident $what:literal,
        $(breaks $breaks:ident,)?
        $(counts $counts:expr,)?
        $(on disk $disk_counts:expr,)?
        $(most $most:literal: |$maker:ident, $scenario:ident| $make:expr,)?
    )+) => {
        named! {
            /// A kind of fault of a swarm.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum FaultKind {
                $(#[doc = concat!("`", $name, "`: ", $what, ".")] $kind = $name,)+
            }
        }

        impl FaultKind {
            const ROWS: &[Row] = &[$(Row {
                what: $what,
                breaks: last!(Breaks::Nothing $(, Breaks::$breaks)?),
                counts: last!(&[] $(, &$counts)? $(, &$disk_counts)?),
                is_of_disks: last!(false $(, { let _: &[&str] = &$disk_counts; true })?),
                most: last!(0 $(, $most)?),
                make: last!(|_, _| {} $(, |$maker, $scenario| $make)?),
            }),+];
        }
    };
}

kinds! {
    "crash" Crash "a node's process dies and starts again",
        counts ["kill", "restart"],
        most 5: |it, scenario| it.crash(scenario, &[Crash::Kill]),
    "power-loss" PowerLoss "a node's machine loses power, and with it what was not yet durable",
        counts ["power-loss", "power-loss-all", "torn-write", "restart"],
        most 5: |it, scenario| {
            it.crash(scenario, &[Crash::PowerLoss, Crash::PowerLossAll, Crash::TornWrite]);
        },
    "clean-stop" CleanStop "a node is stopped in order, which takes time and may be cut short, and started again",
        counts ["clean-stop", "restart"],
        most 5: |it, scenario| it.crash(scenario, &[Crash::CleanStop]),
    "disk-lost" DiskLost "a node starts on an empty disk",
        counts ["disk-lost", "restart"],
        most 2: |it, scenario| it.crash(scenario, &[Crash::DiskLost]),
    "moved" Moved "a node's disk is put into another machine",
        counts ["moved", "restart"],
        most 2: |it, scenario| it.crash(scenario, &[Crash::Moved]),
    "disk" Disk "a node's disk is slow, stalls, is full or fails",
        on disk [
            "sync-error", "sync-full", "write-error", "write-full", "disk-full", "disk-room", "disk-slow", "disk-stall", "disk-go",
        ],
        most 4: |it, scenario| it.disk(scenario),
    "partition" Partition "links are cut, both ways",
        counts ["partition", "heal"],
        most 4: |it, scenario| it.cut(scenario, Way::Both),
    "one-way" OneWay "links are cut one way",
        counts ["one-way-partition", "heal"],
        most 4: |it, scenario| {
            let way = it.way();
            it.cut(scenario, way);
        },
    "delay" Delay "links get slower",
        counts ["delay"],
        most 6: |it, scenario| {
            let fault = Fault::Delay(it.links(), it.span(5, 200));
            it.with_repair(scenario, fault, 5_000);
        },
    "hold" Hold "what is sent on a link is held back and let go later",
        counts ["hold", "release-held"],
        most 4: |it, scenario| {
            let fault = Fault::Hold(it.links(), it.way());
            it.with_repair(scenario, fault, 3_000);
        },
    "drop" Drop "single requests or replies are lost",
        counts ["drop-requests", "drop-replies"],
        most 6: |it, scenario| {
            let fault = Fault::Drop(it.links(), it.way(), it.count());
            it.any_time(scenario, fault);
        },
    "late" Late "single requests or replies come late",
        counts ["late"],
        most 6: |it, scenario| it.late(scenario),
    "duplicate" Duplicate "single requests arrive twice",
        counts ["duplicate"],
        most 6: |it, scenario| {
            let fault = Fault::Duplicate(it.links(), it.count());
            it.any_time(scenario, fault);
        },
    "reset" Reset "connections break",
        counts ["reset"],
        most 6: |it, scenario| {
            let fault = Fault::Reset(it.links());
            it.any_time(scenario, fault);
        },
    "pause" Pause "processes stand still",
        counts ["node-pause", "client-pause"],
        most 6: |it, scenario| it.stop(scenario, Fault::Pause),
    "suspend" Suspend "machines sleep",
        counts ["node-suspend", "client-suspend"],
        most 6: |it, scenario| it.stop(scenario, Fault::Suspend),
    "drift" Drift "clocks run fast or slow, within what clients allow for",
        counts ["clock-rate"],
        most 6: |it, scenario| it.rate(scenario, DRIFT_PPM),
    "slew" Slew "boottime is slewed by up to a twelfth",
        counts ["clock-slew"],
        most 8: |it, scenario| it.slew(scenario),
    "noise" Noise "readings of clocks are a little late",
        counts ["clock-noise"],
        most 6: |it, scenario| it.noise(scenario),
    "wall" Wall "wall clocks are set",
        counts ["wall-jump"],
        most 6: |it, scenario| it.wall(scenario),
    "client-crash" ClientCrash "clients die",
        counts ["client-crash"],
        most 6: |it, scenario| {
            let client = it.client();
            let hooks = [Hook::Acquired(client), Hook::Calls(client), Hook::Releases(client)];
            it.any_time_or_on(scenario, &hooks, Fault::CrashClient(client));
        },
    "max-ttl" MaxTtl "a node's longest TTL is another after its next start",
        counts ["max-ttl", "restart"],
        most 2: |it, scenario| it.max_ttl(scenario),
    "rivalry" Rivalry "clients want the same locks; otherwise each has its own",
    "overrun" Overrun "holders work longer than their locks are valid",
    "freeze" Freeze "machines stop with all their clocks, as when a hypervisor stops them",
        breaks Exclusion,
        counts ["node-freeze", "client-freeze"],
        most 6: |it, scenario| it.stop(scenario, Fault::Freeze),
    "bad-clock" BadClock "clocks run fast or slow, beyond what clients allow for",
        breaks Exclusion,
        counts ["clock-rate"],
        most 6: |it, scenario| it.rate(scenario, BAD_PPM),
    "rollback" Rollback "a node's disk is taken back to an earlier state",
        breaks Fencing,
        counts ["rollback", "restart"],
        most 2: |it, scenario| it.crash(scenario, &[Crash::Rollback]),
    "asides" Asides "clients read locks on single nodes, and have keys of their own",
    "meddling" Meddling "clients overwrite, move or delete the locks of others",
        breaks Exclusion,
    "inside" Inside "nodes end in the middle of a start, of a compaction, of an orderly stop",
        on disk ["crash-in-open", "crash-in-compact", "crash-in-close"],
        most 6: |it, scenario| it.inside(scenario),
    "rot" Rot "files at rest lose a bit or their end",
        on disk ["disk-rot", "disk-cut"],
        most 2: |it, scenario| it.rot(scenario),
    "machine" Machine "a node comes into a container with clocks of its own, or its machine's clocks go back",
        counts ["contained", "clocks-back", "restart"],
        most 6: |it, scenario| it.crash(scenario, &[Crash::Contained, Crash::ClocksBack]),
    "refuse" Refuse "nodes refuse single requests with an error",
        counts ["refuse"],
        most 6: |it, scenario| {
            let refusal = it.random.pick(&Refusal::ALL);
            let fault = Fault::Refuse(it.links(), refusal, it.count());
            it.any_time(scenario, fault);
        },
}

/// A node and a client may differ by twice as much, which is within the 1 % that clients allow for.
const DRIFT_PPM: i32 = 4_500;

/// Far more than clients allow for.
const BAD_PPM: i32 = 400_000;

/// A set of kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultKinds(u64);

impl FaultKind {
    /// What it is.
    pub const fn what(self) -> &'static str {
        self.row().what
    }

    /// What is counted in worlds that have it.
    pub const fn counts(self) -> &'static [&'static str] {
        self.row().counts
    }

    /// Whether it does not come where nodes have no data directory.
    pub const fn is_of_disks(self) -> bool {
        self.row().is_of_disks
    }

    /// Whether it is in what clients do, and no step of its own.
    pub(crate) const fn is_of_work(self) -> bool {
        self.most() == 0
    }

    /// How often it comes at most.
    pub(crate) const fn most(self) -> u64 {
        self.row().most
    }

    /// Draws one.
    pub(crate) fn make(self, maker: &mut FaultMaker, scenario: &mut Scenario) {
        (self.row().make)(maker, scenario);
    }

    const fn row(self) -> &'static Row {
        &Self::ROWS[self as usize]
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
    pub const PROMISED: Self = Self::without_breakers_of(Breaks::Exclusion).and(Self::FENCED);

    /// Those under which fencing tokens are promised to be in order.
    pub const FENCED: Self = Self::without_breakers_of(Breaks::Fencing);

    const fn without_breakers_of(promise: Breaks) -> Self {
        let (mut kinds, mut place) = (Self::ALL, 0);
        while place < FaultKind::ALL.len() {
            let kind = FaultKind::ALL[place];
            if kind.row().breaks as u8 == promise as u8 {
                kinds = kinds.without(kind);
            }
            place += 1;
        }
        kinds
    }

    const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

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
        let all = FaultKind::ALL.into_iter();
        all.filter(move |kind| self.has(*kind))
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
        let mut kinds = if text.starts_with('-') {
            Self::PROMISED
        } else {
            Self::NONE
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
                    let unknown = || ParseError::unexpected(&Self::names(), name, text);
                    Self::NONE.with(FaultKind::named(name).ok_or_else(unknown)?)
                }
            };
            kinds = if is_without {
                Self(kinds.0 & !set.0)
            } else {
                Self(kinds.0 | set.0)
            };
        }
        Ok(kinds)
    }

    /// What [`FaultKinds::parse`] knows, for messages.
    pub fn names() -> String {
        let names = FaultKind::ALL.map(FaultKind::name).join(",");
        format!("none, promised, fenced, all or some of {names}")
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
