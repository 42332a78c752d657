//! The commands of a node: one file per family, one table of all.
//!
//! ```text
//!  args --> Commands::find --> Spec --> arity, auth, pause, locks, memory --> Spec::run --> reply bytes
//! ```

mod admin;
mod byte_size;
mod client;
mod client_kill;
mod client_list;
mod client_tracking;
mod cluster;
mod command_entry;
mod condition;
mod config;
mod config_option;
mod connection;
mod debug;
mod expiry;
mod flush;
mod function;
mod get;
mod glob;
mod info;
mod integer;
mod introspection;
mod latency;
mod lifetime;
mod multi;
mod number;
mod option_word;
pub(crate) mod refusal;
mod release;
mod scan;
mod scripting;
mod set;
mod slowlog;
mod spec;
mod subcommand;
mod version;

use hashbrown::HashTable;

pub(crate) use spec::{Flags, Keys, Spec};

/// The number of a command: its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandId(u16);

/// All commands, found by name.
#[derive(Debug)]
pub(crate) struct Commands {
    specs: Vec<&'static Spec>,
    by_name: HashTable<CommandId>,
}

impl CommandId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn number(self) -> u32 {
        u32::from(self.0)
    }
}

impl Commands {
    pub(crate) fn new() -> Self {
        let specs: Vec<&'static Spec> = FAMILIES.iter().flat_map(|family| family.iter()).collect();
        let mut by_name = HashTable::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let Ok(index) = u16::try_from(index) else {
                break;
            };
            by_name.insert_unique(
                hash_name(spec.name.as_bytes()),
                CommandId(index),
                |id: &CommandId| hash_name(specs[id.index()].name.as_bytes()),
            );
        }
        Self { specs, by_name }
    }

    /// The command of that name, in any case.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<(CommandId, &'static Spec)> {
        let is_it = |id: &CommandId| is_same_name(name, self.specs[id.index()].name.as_bytes());
        let id = *self.by_name.find(hash_name(name), is_it)?;
        Some((id, self.specs[id.index()]))
    }

    /// All commands in table order.
    pub(crate) fn all(&self) -> &[&'static Spec] {
        &self.specs
    }
}

/// Hashes a name without regard to case: its first eight bytes folded, its last byte and its length.
#[inline]
fn hash_name(name: &[u8]) -> u64 {
    let last = u64::from(name.last().copied().unwrap_or(0) | 0x20);
    let folded = head(name) | 0x2020_2020_2020_2020;
    (folded ^ (last << 56) ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether a name is the lower-case one, in any case.
#[inline]
fn is_same_name(name: &[u8], lower: &[u8]) -> bool {
    if name.len() != lower.len() || name.len() > 8 {
        return name.eq_ignore_ascii_case(lower);
    }
    // The bit that tells the cases apart counts in every byte but letters, which have both bits of 0x60.
    let lower = head(lower);
    let letters = lower & (lower >> 1) & 0x2020_2020_2020_2020;
    (head(name) ^ lower) & !letters == 0
}

/// The first eight bytes as a number, zeros after the end; by loads of fixed sizes, which cost less than a copy of
/// any length.
#[inline]
fn head(name: &[u8]) -> u64 {
    if let Some(eight) = name.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        let shift = (name.len() - 4) * 8;
        return u64::from(u32::from_le_bytes(*first))
            | u64::from(u32::from_le_bytes(*last)) << shift;
    }
    let byte = |at: usize| name.get(at).map_or(0, |&byte| u64::from(byte) << (at * 8));
    byte(0) | byte(1) | byte(2)
}

/// Every family of commands.
const FAMILIES: &[&[Spec]] = &[
    scripting::SPECS,
    set::SPECS,
    get::SPECS,
    number::SPECS,
    multi::SPECS,
    release::SPECS,
    expiry::SPECS,
    scan::SPECS,
    flush::SPECS,
    connection::SPECS,
    client::SPECS,
    config::SPECS,
    info::SPECS,
    introspection::SPECS,
    admin::SPECS,
    debug::SPECS,
    cluster::SPECS,
    slowlog::SPECS,
    latency::SPECS,
    function::SPECS,
];

#[cfg(test)]
mod tests {
    use super::{Commands, is_same_name};

    #[test]
    fn names_are_compared_in_any_case_and_exactly_otherwise() {
        for name in [
            "ttl",
            "get",
            "eval_ro",
            "delifeq",
            "getrange",
            "evalsha_ro",
            "a",
            "ab",
            "",
        ] {
            assert!(is_same_name(
                name.to_ascii_uppercase().as_bytes(),
                name.as_bytes()
            ));
            for at in 0..name.len() {
                for byte in 0..=u8::MAX {
                    let mut other = name.as_bytes().to_vec();
                    other[at] = byte;
                    let want = other.eq_ignore_ascii_case(name.as_bytes());
                    assert_eq!(
                        is_same_name(&other, name.as_bytes()),
                        want,
                        "{name} with {byte} at {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        let commands = Commands::new();
        for spec in commands.all() {
            for name in [spec.name.to_owned(), spec.name.to_ascii_uppercase()] {
                let found = commands.find(name.as_bytes()).map(|(_, spec)| spec.name);
                assert_eq!(found, Some(spec.name));
            }
        }
    }
}
