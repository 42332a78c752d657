//! The categories of commands, by which users are given many at once: Redis's, and one of ours.

use super::keys::Keys;
use super::spec::{Flags, Spec};

/// A category of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    Keyspace,
    Read,
    Write,
    Set,
    SortedSet,
    List,
    Hash,
    String,
    Bitmap,
    HyperLogLog,
    Geo,
    Stream,
    Pubsub,
    Admin,
    Fast,
    Slow,
    Blocking,
    Dangerous,
    Connection,
    Transaction,
    Scripting,
    /// Ours: what a client that locks sends.
    Lock,
}

impl Category {
    /// All of them, in Redis's order.
    pub(crate) const ALL: [Self; 22] = [
        Self::Keyspace,
        Self::Read,
        Self::Write,
        Self::Set,
        Self::SortedSet,
        Self::List,
        Self::Hash,
        Self::String,
        Self::Bitmap,
        Self::HyperLogLog,
        Self::Geo,
        Self::Stream,
        Self::Pubsub,
        Self::Admin,
        Self::Fast,
        Self::Slow,
        Self::Blocking,
        Self::Dangerous,
        Self::Connection,
        Self::Transaction,
        Self::Scripting,
        Self::Lock,
    ];

    /// Returns its name with the `@` before it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Keyspace => "@keyspace",
            Self::Read => "@read",
            Self::Write => "@write",
            Self::Set => "@set",
            Self::SortedSet => "@sortedset",
            Self::List => "@list",
            Self::Hash => "@hash",
            Self::String => "@string",
            Self::Bitmap => "@bitmap",
            Self::HyperLogLog => "@hyperloglog",
            Self::Geo => "@geo",
            Self::Stream => "@stream",
            Self::Pubsub => "@pubsub",
            Self::Admin => "@admin",
            Self::Fast => "@fast",
            Self::Slow => "@slow",
            Self::Blocking => "@blocking",
            Self::Dangerous => "@dangerous",
            Self::Connection => "@connection",
            Self::Transaction => "@transaction",
            Self::Scripting => "@scripting",
            Self::Lock => "@lock",
        }
    }

    /// Returns whether a command or subcommand, of this full name, is in it. As in Redis, a container
    /// is in none but `@slow`: its subcommands are.
    pub(crate) fn has(self, name: &str, row: &Spec) -> bool {
        let flags = row.flags;
        let is_command = name.split('|').next() == Some("command");
        if !row.subcommands.is_empty() && !is_command {
            return self == Self::Slow;
        }
        let is_wait = matches!(name, "wait" | "waitaof");
        let is_about_all = row.keys == Keys::All && name != "info";
        match self {
            Self::Keyspace => row.group == "generic" && !is_wait || is_about_all,
            Self::Read => flags.has(Flags::READONLY) && row.group != "scripting",
            // There are no functions, so that flushing them writes nothing.
            Self::Write => flags.has(Flags::WRITE) || name == "function|flush",
            Self::Set => row.group == "set",
            Self::SortedSet => row.group == "sorted-set",
            Self::List => row.group == "list",
            Self::Hash => row.group == "hash",
            Self::String => row.group == "string",
            // The node has none of their commands.
            Self::Bitmap | Self::HyperLogLog | Self::Geo | Self::Stream => false,
            Self::Pubsub => row.group == "pubsub" && name != "pubsub|help",
            Self::Admin => flags.has(Flags::ADMIN),
            Self::Fast => flags.has(Flags::FAST),
            Self::Slow => !flags.has(Flags::FAST),
            Self::Blocking => name == "blpop" || is_wait,
            Self::Dangerous => {
                flags.has(Flags::ADMIN)
                    // They may hold up others, or show much.
                    || matches!(name, "flushall" | "flushdb" | "info" | "keys")
            }
            Self::Connection => row.group == "connection" || is_command || is_wait,
            Self::Transaction => row.group == "transactions",
            Self::Scripting => row.group == "scripting",
            Self::Lock => is_for_locks(name, row) || is_command,
        }
    }
}

/// Returns whether a client that locks may need the command: those on named keys, messages,
/// transactions, scripts and its own connection. INFO is among them, because a client learns from it
/// whether two addresses are one node.
fn is_for_locks(name: &str, row: &Spec) -> bool {
    if row.flags.has(Flags::ADMIN) || row.keys == Keys::All {
        return name == "info";
    }
    match row.group {
        // It is for operators.
        _ if name == "lock.force" => false,
        "string" | "hash" | "list" | "set" | "sorted-set" | "transactions" | "connection" => true,
        "generic" => row.keys != Keys::None,
        "pubsub" => !matches!(name, "pubsub|channels" | "pubsub|shardchannels"),
        "scripting" => row.keys == Keys::Own || matches!(name, "script|load" | "script|exists"),
        _ => matches!(name, "time" | "acl|whoami"),
    }
}
