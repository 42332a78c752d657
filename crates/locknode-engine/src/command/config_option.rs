//! The options that CONFIG knows: those of the table, and facts that Redis shows as options.

use crate::durable::Durability;
use crate::guard::GuardMode;
use crate::options::{Change, ConfigOption, Kind, Options};
use crate::shard::DATABASES;

/// Returns all options.
pub(crate) fn all() -> impl Iterator<Item = &'static ConfigOption> {
    Options::TABLE.iter().chain(FACTS)
}

pub(crate) const fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// Returns which locks are on the log, as `--durability` names it.
pub(crate) const fn durability(mode: GuardMode) -> &'static str {
    match mode {
        GuardMode::Off | GuardMode::Memory => "none",
        GuardMode::Store(Durability::Long) => "long",
        GuardMode::Store(Durability::Always) => "always",
    }
}

const fn fact(name: &'static str, kind: Kind, change: Change) -> ConfigOption {
    ConfigOption {
        name,
        text: &[],
        kind,
        change,
    }
}

/// What is no setting of the engine.
const FACTS: &[ConfigOption] = &[
    fact(
        "appendonly",
        Kind::Only(
            "no",
            "the node has no append-only file, use no; --durability sets which locks are written to disk",
        ),
        Change::Live,
    ),
    fact(
        "bind",
        Kind::Fact(|facts| facts.bind.clone()),
        Change::OnlyAsIs,
    ),
    fact(
        "databases",
        Kind::Fact(|_| DATABASES.to_string()),
        Change::AtStart,
    ),
    fact(
        "dir",
        Kind::Fact(|facts| facts.dir.clone()),
        Change::OnlyAsIs,
    ),
    fact(
        "durability",
        Kind::Fact(|facts| durability(facts.guard).to_owned()),
        Change::AtStart,
    ),
    fact(
        "max-ttl",
        Kind::Fact(|facts| match facts.guard {
            GuardMode::Off => "none".to_owned(),
            GuardMode::Memory | GuardMode::Store(_) => format!("{}ms", facts.max_ttl.as_millis()),
        }),
        Change::AtStart,
    ),
    fact(
        "maxmemory-policy",
        Kind::Only(
            "noeviction",
            "argument(s) must be one of the following: noeviction",
        ),
        Change::Live,
    ),
    fact(
        "port",
        Kind::Fact(|facts| facts.tcp_port.to_string()),
        Change::OnlyAsIs,
    ),
    fact(
        "restart-guard",
        Kind::Fact(|facts| on_off(facts.guard != GuardMode::Off).to_owned()),
        Change::AtStart,
    ),
    fact(
        "save",
        Kind::Only(
            "",
            "Invalid save parameters: the node takes no snapshots while it runs, use \"\"",
        ),
        Change::Live,
    ),
];
