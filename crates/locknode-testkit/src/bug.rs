//! Planted bugs: mistakes that lock services and their clients really made, to see that the checkers catch them.
//!
//! None of them is in the shipped node or client. A bug of the node sits in the simulated driver, where the node's engine,
//! disk and replies meet; a bug of the client sits in a plain Redlock client of the kit's own.

use std::fmt::{Display, Formatter, Result as FmtResult};

/// A mistake to plant into a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Bug {
    /// A restarted node serves at once.
    QuarantineOff,
    /// A restarted node waits for a tenth less than it has to.
    QuarantineShort,
    /// A restarted node waits for the longest TTL that is configured now, not for the one that was in use.
    WaitFromConfig,
    /// A reply leaves before the horizon or ceiling that it rests on is durable.
    StateNotAwaited,
    /// A reply leaves before the log record that it rests on is durable.
    LogNotAwaited,
    /// The mark of a clean stop is found again after a later crash.
    MarkerKept,
    /// The durable fence ceiling is forgotten at a restart.
    FenceForgotten,
    /// Fence counters begin at the number of starts times 2^20, and nothing else is durable.
    FenceFromStarts,
    /// Tokens are accepted by nodes that do not hold the lock any more.
    WriteBackAnyway,
    /// The node's time follows boottime alone, which NTP slews.
    SlewedClock,
    /// The node ends locks by its wall clock.
    WallClock,
    /// The validity counts from the last reply.
    ValidityFromReply,
    /// The drift is added to the validity.
    DriftAdded,
    /// The validity is not looked at before the lock is handed out.
    ValidityUnchecked,
    /// Votes of an earlier round count in a later one.
    VotesKept,
    /// A release deletes the key whoever holds it.
    ReleaseWithoutCompare,
    /// An extension renews the key whoever holds it.
    ExtendWithoutCompare,
    /// All attempts of all clients use one token.
    SharedToken,
    /// A client uses its token again for the next attempt, and a key that has it already counts as granted.
    TokenReused,
    /// An extension sets keys that are gone, and counts them.
    ExtendOrSet,
    /// A lock is extended after its validity has ended.
    ExtendAfterEnd,
    /// The majority is one of the nodes that can be reached.
    QuorumOfReachable,
    /// Half of the nodes are a majority.
    HalfIsQuorum,
    /// The highest counter is the fencing token; no node is told.
    MaxOnly,
    /// A reply that comes too late is taken for the reply to the next request.
    RepliesMixedUp,
    /// The client's clock stands still while its machine sleeps.
    SleepyClock,
    /// A reply that merely tells of a lock leaves before the lock is durable.
    ReadsNotAwaited,
    /// A time namespace is taken for the same again because its number is.
    NamespaceTrusted,
    /// A log that has lost its last batch is served as if it had not.
    CutLogServed,
    /// A client with something to do asks to be woken at once, again and again.
    Restless,
    /// Nobody wakes the disk for what is granted without a reply.
    SilentNotSynced,
    /// Each start uses up a large step of the fence counters, whether anything was granted or not.
    CeilingBurnt,
}

impl Bug {
    /// Every bug.
    pub const ALL: [Self; 32] = [
        Self::QuarantineOff,
        Self::QuarantineShort,
        Self::WaitFromConfig,
        Self::StateNotAwaited,
        Self::LogNotAwaited,
        Self::MarkerKept,
        Self::FenceForgotten,
        Self::FenceFromStarts,
        Self::WriteBackAnyway,
        Self::SlewedClock,
        Self::WallClock,
        Self::ValidityFromReply,
        Self::DriftAdded,
        Self::ValidityUnchecked,
        Self::VotesKept,
        Self::ReleaseWithoutCompare,
        Self::ExtendWithoutCompare,
        Self::SharedToken,
        Self::TokenReused,
        Self::ExtendOrSet,
        Self::ExtendAfterEnd,
        Self::QuorumOfReachable,
        Self::HalfIsQuorum,
        Self::MaxOnly,
        Self::RepliesMixedUp,
        Self::SleepyClock,
        Self::ReadsNotAwaited,
        Self::NamespaceTrusted,
        Self::CutLogServed,
        Self::Restless,
        Self::SilentNotSynced,
        Self::CeilingBurnt,
    ];

    /// As it is written on a command line and in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QuarantineOff => "quarantine-off",
            Self::QuarantineShort => "quarantine-short",
            Self::WaitFromConfig => "wait-from-config",
            Self::StateNotAwaited => "state-not-awaited",
            Self::LogNotAwaited => "log-not-awaited",
            Self::MarkerKept => "marker-kept",
            Self::FenceForgotten => "fence-forgotten",
            Self::FenceFromStarts => "fence-from-starts",
            Self::WriteBackAnyway => "write-back-anyway",
            Self::SlewedClock => "slewed-clock",
            Self::WallClock => "wall-clock",
            Self::ValidityFromReply => "validity-from-reply",
            Self::DriftAdded => "drift-added",
            Self::ValidityUnchecked => "validity-unchecked",
            Self::VotesKept => "votes-kept",
            Self::ReleaseWithoutCompare => "release-without-compare",
            Self::ExtendWithoutCompare => "extend-without-compare",
            Self::SharedToken => "shared-token",
            Self::TokenReused => "token-reused",
            Self::ExtendOrSet => "extend-or-set",
            Self::ExtendAfterEnd => "extend-after-end",
            Self::QuorumOfReachable => "quorum-of-reachable",
            Self::HalfIsQuorum => "half-is-quorum",
            Self::MaxOnly => "max-only",
            Self::RepliesMixedUp => "replies-mixed-up",
            Self::SleepyClock => "sleepy-clock",
            Self::ReadsNotAwaited => "reads-not-awaited",
            Self::NamespaceTrusted => "namespace-trusted",
            Self::CutLogServed => "cut-log-served",
            Self::Restless => "restless",
            Self::SilentNotSynced => "silent-not-synced",
            Self::CeilingBurnt => "ceiling-burnt",
        }
    }

    /// The bug with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }

    /// So many seeds of [`Swarm::for_bug`](crate::Swarm::for_bug), from 0 on, are enough to find it.
    pub const fn seeds(self) -> u64 {
        match self {
            Self::SlewedClock | Self::ExtendWithoutCompare => 1_000,
            Self::ExtendOrSet => 4_000,
            _ => 400,
        }
    }

    /// Whether it is the client's: the world then runs the kit's plain client, which has it.
    pub const fn is_clients(self) -> bool {
        match self {
            Self::QuarantineOff
            | Self::QuarantineShort
            | Self::WaitFromConfig
            | Self::StateNotAwaited
            | Self::LogNotAwaited
            | Self::MarkerKept
            | Self::FenceForgotten
            | Self::FenceFromStarts
            | Self::WriteBackAnyway
            | Self::SlewedClock
            | Self::WallClock
            | Self::ReadsNotAwaited
            | Self::NamespaceTrusted
            | Self::CutLogServed
            | Self::Restless
            | Self::SilentNotSynced
            | Self::CeilingBurnt => false,
            Self::ValidityFromReply
            | Self::DriftAdded
            | Self::ValidityUnchecked
            | Self::VotesKept
            | Self::ReleaseWithoutCompare
            | Self::ExtendWithoutCompare
            | Self::SharedToken
            | Self::TokenReused
            | Self::ExtendOrSet
            | Self::ExtendAfterEnd
            | Self::QuorumOfReachable
            | Self::HalfIsQuorum
            | Self::MaxOnly
            | Self::RepliesMixedUp
            | Self::SleepyClock => true,
        }
    }
}

impl Display for Bug {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        for bug in Bug::ALL {
            assert_eq!(Bug::named(bug.name()), Some(bug));
        }
        assert_eq!(Bug::named("none"), None);
    }
}
