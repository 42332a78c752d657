//! Planted bugs: mistakes that lock services and their clients really made, to see that the checkers catch them.
//!
//! None of them is in the shipped node or client. A bug of the node sits in the simulated driver, where the node's engine,
//! disk and replies meet; a bug of the client sits in a plain Redlock client of the kit's own.

use crate::named::named;

/// Makes [`Bug`] of one row for each: its name, whose it is, how many seeds are sure to find it, and
/// what it is.
macro_rules! bugs {
    ($($name:literal $bug:ident $whose:ident $seeds:literal $what:literal,)+) => {
        named! {
            /// A mistake to plant into a world.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[non_exhaustive]
            pub enum Bug {
                $(#[doc = concat!("`", $name, "`: ", $what, ".")] $bug = $name,)+
            }
        }

        impl Bug {
            /// What it is, for people: part of a sentence.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => $what,)+
                }
            }

            /// How many seeds of [`Swarm::for_bug`](crate::Swarm::for_bug), from 0 on, are enough to find it.
            pub const fn seeds(self) -> u64 {
                match self {
                    $(Self::$bug => $seeds,)+
                }
            }

            /// Whether it is the client's: the world then runs the kit's plain client, which has it.
            pub const fn is_clients(self) -> bool {
                match self {
                    $(Self::$bug => is_clients!($whose),)+
                }
            }
        }
    };
}

macro_rules! is_clients {
    (node) => {
        false
    };
    (client) => {
        true
    };
}

bugs! {
    "quarantine-off" QuarantineOff node 400 "a restarted node serves at once",
    "quarantine-short" QuarantineShort node 400 "a restarted node waits a tenth less than it must",
    "wait-from-config" WaitFromConfig node 400 "a restarted node waits for the longest TTL of its new configuration",
    "state-not-awaited" StateNotAwaited node 400 "a node replies before the horizon or ceiling it needs is durable",
    "log-not-awaited" LogNotAwaited node 400 "a node replies before the log record it needs is durable",
    "marker-kept" MarkerKept node 400 "the mark of a clean stop survives until after a later crash",
    "fence-forgotten" FenceForgotten node 400 "a restart ignores the durable fence ceiling",
    "fence-from-starts" FenceFromStarts node 400 "fence counters start at the number of starts; nothing else is durable",
    "write-back-anyway" WriteBackAnyway node 400 "nodes that no longer hold the lock accept its fencing token",
    "slewed-clock" SlewedClock node 1_000 "the node's time follows only boottime, which NTP slews",
    "wall-clock" WallClock node 400 "the node expires locks by its wall clock",
    "validity-from-reply" ValidityFromReply client 400 "the validity counts from the last reply",
    "drift-added" DriftAdded client 400 "the drift is added to the validity, not subtracted",
    "validity-unchecked" ValidityUnchecked client 400 "the validity is not checked before the lock is handed out",
    "votes-kept" VotesKept client 400 "votes of an earlier round count in a later one",
    "release-without-compare" ReleaseWithoutCompare client 400 "a release deletes the key even if another client holds it",
    "extend-without-compare" ExtendWithoutCompare client 1_000 "an extension renews the key even if another client holds it",
    "shared-token" SharedToken client 400 "all attempts of all clients use one token",
    "token-reused" TokenReused client 400 "a client reuses its token, and a key with it counts as granted",
    "extend-or-set" ExtendOrSet client 4_000 "an extension sets keys that are missing, and counts them",
    "extend-after-end" ExtendAfterEnd client 400 "a lock is extended after its validity has ended",
    "quorum-of-reachable" QuorumOfReachable client 400 "the quorum is a majority of the reachable nodes only",
    "half-is-quorum" HalfIsQuorum client 400 "half of the nodes, rounded down, are a quorum",
    "max-only" MaxOnly client 400 "the highest counter is the fencing token, without a write-back",
    "replies-mixed-up" RepliesMixedUp client 400 "a late reply is taken for the next one",
    "sleepy-clock" SleepyClock client 400 "the client's clock stops while its machine sleeps",
    "reads-not-awaited" ReadsNotAwaited node 400 "a node replies to a read of a lock before the lock is durable",
    "namespace-trusted" NamespaceTrusted node 400 "a time namespace counts as the same because its number is",
    "cut-log-served" CutLogServed node 400 "a node serves a log that has lost its last batch",
    "restless" Restless node 400 "a client asks to be woken at once, again and again",
    "silent-not-synced" SilentNotSynced node 400 "grants without a reply do not wake the disk",
    "hash-ttl-off-guard" HashTtlOffGuard node 400 "a restarted node waits for no TTL of a lock held as a hash",
    "hash-forgotten" HashForgotten node 400 "an orderly restart brings back no lock held as a hash",
    "unwatched" Unwatched client 400 "a transaction that takes a lock watches nothing",
    "inner-release-frees" InnerReleaseFrees client 400 "the release of an inner lock frees the outer one",
    "ceiling-burnt" CeilingBurnt node 400 "each start uses up a large step of the fence counters",
}
