//! What a server keeps, as its command line says it.

use std::path::Path;

use crate::server::Kind;

/// What a server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Nothing: no restart guard, no snapshots, no append-only file.
    Nothing,
    /// Nothing, and the restart guard on (a lock node only).
    GuardInMemory,
    /// The state of the restart guard and a snapshot at a clean stop; of a Redis the snapshot only.
    Guard,
    /// Every change, on disk before it is answered.
    Always,
    /// Every change, on disk within a second (a Redis only).
    EverySecond,
}

/// Whether the server has kept something before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Not yet.
    First,
    /// It has.
    Later,
}

impl Setup {
    /// Whether a directory is needed.
    #[must_use]
    pub fn needs_directory(self) -> bool {
        !matches!(self, Self::Nothing | Self::GuardInMemory)
    }

    /// The arguments. Locks with a TTL up to `max_ttl` ride on a lock node's restart guard.
    #[must_use]
    pub fn args(self, kind: Kind, directory: &Path, run: Run, max_ttl: &str) -> Vec<String> {
        let directory = directory.to_string_lossy();
        let mut args = match kind {
            Kind::Locknode => match self {
                Self::Nothing => words(&["--restart-guard", "off"]),
                Self::GuardInMemory => words(&["--max-ttl", max_ttl]),
                Self::Guard | Self::EverySecond => {
                    words(&["--max-ttl", max_ttl, "--dir", &directory])
                }
                Self::Always => words(&["--durability", "always", "--dir", &directory]),
            },
            Kind::Redis => match self {
                Self::Nothing | Self::GuardInMemory => words(&["--appendonly", "no"]),
                Self::Guard => words(&["--appendonly", "no", "--dir", &directory]),
                Self::Always => append_only("always", &directory),
                Self::EverySecond => append_only("everysec", &directory),
            },
        };
        if kind == Kind::Locknode && self != Self::Nothing && run == Run::First {
            args.push("--first-start".to_owned());
        }
        args
    }
}

/// Without rewrites of the file while it is measured: they are a process of their own, whose CPU time would be
/// somebody else's. That favours the peer.
fn append_only(sync: &str, directory: &str) -> Vec<String> {
    let kept = ["--appendonly", "yes", "--appendfsync", sync];
    let rewrites = ["--auto-aof-rewrite-percentage", "0", "--dir", directory];
    words(&[kept, rewrites].concat())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
