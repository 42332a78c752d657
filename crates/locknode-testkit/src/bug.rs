//! Planted bugs: mistakes that lock services and their clients really made, to see that the checkers catch them.
//!
//! None of them is in the shipped node or client. A bug of the node sits in the simulated driver, where the node's engine,
//! disk and replies meet; a bug of the client sits in a plain Redlock client of the kit's own.

use crate::named::named;

named! {
    /// A mistake to plant into a world.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Bug {
        /// A restarted node serves at once.
        QuarantineOff = "quarantine-off",
        /// A restarted node waits for a tenth less than it has to.
        QuarantineShort = "quarantine-short",
        /// A restarted node waits for the longest TTL that is configured now, not for the one that was in use.
        WaitFromConfig = "wait-from-config",
        /// A reply leaves before the horizon or ceiling that it rests on is durable.
        StateNotAwaited = "state-not-awaited",
        /// A reply leaves before the log record that it rests on is durable.
        LogNotAwaited = "log-not-awaited",
        /// The mark of a clean stop is found again after a later crash.
        MarkerKept = "marker-kept",
        /// The durable fence ceiling is forgotten at a restart.
        FenceForgotten = "fence-forgotten",
        /// Fence counters begin at the number of starts times 2^20, and nothing else is durable.
        FenceFromStarts = "fence-from-starts",
        /// Tokens are accepted by nodes that do not hold the lock any more.
        WriteBackAnyway = "write-back-anyway",
        /// The node's time follows boottime alone, which NTP slews.
        SlewedClock = "slewed-clock",
        /// The node ends locks by its wall clock.
        WallClock = "wall-clock",
        /// The validity counts from the last reply.
        ValidityFromReply = "validity-from-reply",
        /// The drift is added to the validity.
        DriftAdded = "drift-added",
        /// The validity is not looked at before the lock is handed out.
        ValidityUnchecked = "validity-unchecked",
        /// Votes of an earlier round count in a later one.
        VotesKept = "votes-kept",
        /// A release deletes the key whoever holds it.
        ReleaseWithoutCompare = "release-without-compare",
        /// An extension renews the key whoever holds it.
        ExtendWithoutCompare = "extend-without-compare",
        /// All attempts of all clients use one token.
        SharedToken = "shared-token",
        /// A client uses its token again for the next attempt, and a key that has it already counts as granted.
        TokenReused = "token-reused",
        /// An extension sets keys that are gone, and counts them.
        ExtendOrSet = "extend-or-set",
        /// A lock is extended after its validity has ended.
        ExtendAfterEnd = "extend-after-end",
        /// The majority is one of the nodes that can be reached.
        QuorumOfReachable = "quorum-of-reachable",
        /// Half of the nodes are a majority.
        HalfIsQuorum = "half-is-quorum",
        /// The highest counter is the fencing token; no node is told.
        MaxOnly = "max-only",
        /// A reply that comes too late is taken for the reply to the next request.
        RepliesMixedUp = "replies-mixed-up",
        /// The client's clock stands still while its machine sleeps.
        SleepyClock = "sleepy-clock",
        /// A reply that merely tells of a lock leaves before the lock is durable.
        ReadsNotAwaited = "reads-not-awaited",
        /// A time namespace is taken for the same again because its number is.
        NamespaceTrusted = "namespace-trusted",
        /// A log that has lost its last batch is served as if it had not.
        CutLogServed = "cut-log-served",
        /// A client with something to do asks to be woken at once, again and again.
        Restless = "restless",
        /// Nobody wakes the disk for what is granted without a reply.
        SilentNotSynced = "silent-not-synced",
        /// Each start uses up a large step of the fence counters, whether anything was granted or not.
        CeilingBurnt = "ceiling-burnt",
    }
}

impl Bug {
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
        matches!(
            self,
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
                | Self::SleepyClock
        )
    }
}
