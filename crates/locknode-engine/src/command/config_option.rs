//! The options that CONFIG knows: those of the table, and facts that Redis shows as options.

use crate::durable::Durability;
use crate::guard::GuardMode;
use crate::host::HostFacts;
use crate::key_hash::DATABASES;
use crate::options::{Change, ConfigOption, Kind, LUA_TIME_LIMIT, Options};

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

const fn option(name: &'static str, kind: Kind, change: Change) -> ConfigOption {
    ConfigOption {
        name,
        text: &[],
        kind,
        change,
    }
}

/// What the node decided at its start.
const fn fixed(name: &'static str, show: fn(&HostFacts) -> String) -> ConfigOption {
    option(name, Kind::Fact(show), Change::AtStart)
}

/// The same, where Redis could change it.
const fn as_is(name: &'static str, show: fn(&HostFacts) -> String) -> ConfigOption {
    option(name, Kind::Fact(show), Change::OnlyAsIs)
}

/// An option of one value; any other gets the refusal.
const fn only(name: &'static str, value: &'static str, refusal: &'static str) -> ConfigOption {
    option(name, Kind::Only(value, refusal), Change::Live)
}

fn max_ttl(facts: &HostFacts) -> String {
    match facts.guard {
        GuardMode::Off => "none".to_owned(),
        GuardMode::Memory | GuardMode::Store(_) => format!("{}ms", facts.max_ttl.as_millis()),
    }
}

fn restart_guard(facts: &HostFacts) -> String {
    on_off(facts.guard != GuardMode::Off).to_owned()
}

const APPEND_ONLY: &str =
    "the node has no append-only file, use no; --durability sets which locks are written to disk";
const EVICTION: &str = "argument(s) must be one of the following: noeviction";
const SAVE: &str = "Invalid save parameters: the node takes no snapshots while it runs, use \"\"";

/// The options that are not settings of the engine.
const FACTS: &[ConfigOption] = &[
    only("appendonly", "no", APPEND_ONLY),
    as_is("bind", |facts| facts.bind.clone()),
    fixed("databases", |_| DATABASES.to_string()),
    as_is("dir", |facts| facts.dir.clone()),
    fixed("durability", |facts| durability(facts.guard).to_owned()),
    LUA_TIME_LIMIT,
    fixed("max-ttl", max_ttl),
    only("maxmemory-policy", "noeviction", EVICTION),
    as_is("port", |facts| facts.tcp_port.to_string()),
    fixed("restart-guard", restart_guard),
    only("save", "", SAVE),
    as_is("tls-port", |facts| facts.tls_port.to_string()),
];
