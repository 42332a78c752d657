//! The commands of a node: one file per family, one table of all.
//!
//! ```text
//!  args --> Commands::find --> Spec --> arity, auth, pause, locks, memory --> Spec::run --> reply bytes
//! ```

mod absent;
#[cfg(feature = "acl")]
mod acl;
mod admin;
mod argument;
mod category;
mod changes;
mod client;
mod client_kill;
mod client_list;
mod client_name;
mod command_entry;
mod condition;
mod config;
mod config_option;
mod connection;
mod context;
mod debug;
pub(crate) mod denial;
mod exists;
mod expiry;
mod flush;
mod get;
mod info;
mod inputs;
mod introspection;
mod journal;
mod keys;
#[cfg_attr(not(feature = "metrics"), path = "no_latency.rs")]
mod latency;
mod lifetime;
mod lock;
#[cfg(feature = "compat")]
mod monitor;
mod multi;
mod number;
#[cfg(feature = "acl")]
pub(crate) mod numbers;
mod option_word;
#[cfg(feature = "acl")]
mod permission;
#[cfg(feature = "compat")]
pub(crate) mod pubsub;
pub(crate) mod refusal;
mod release;
mod scan;
mod script_kill;
mod script_time;
mod script_value;
mod scripting;
pub(crate) mod secrets;
mod seen;
mod set;
mod spec;
pub(crate) mod subcommand;
#[cfg(feature = "compat")]
mod suspended;
mod timeout;
#[cfg(feature = "compat")]
mod tracking;
#[cfg(not(feature = "compat"))]
#[path = "untracked.rs"]
mod tracking;
#[cfg_attr(not(feature = "compat"), path = "no_transaction.rs")]
mod transaction;
#[cfg(feature = "compat")]
mod values;

use std::sync::LazyLock;

use locknode_resp::first_eight;

pub(crate) use context::Context;
pub use context::Flow;
pub(crate) use keys::Keys;
pub(crate) use spec::{MORE_ARGS_MAX, Spec};

use crate::command_id::CommandId;

/// All commands by name, in one table that every engine shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commands {
    specs: &'static [&'static Spec],
    /// Open addressing by the hash of the name, at most half full.
    slots: &'static [Slot; SLOTS],
}

/// The data of [`Commands`].
static TABLE: LazyLock<(Vec<&'static Spec>, Box<[Slot; SLOTS]>)> = LazyLock::new(table);

/// A place in the table of names.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The first eight bytes of the name.
    head: Letters,
    /// The last eight bytes of a longer name; with the first they are all of it.
    tail: Letters,
    len: usize,
    id: CommandId,
    /// `None` in a free place.
    spec: Option<&'static Spec>,
}

/// Eight bytes, of which those that are letters fit in either case.
#[derive(Clone, Copy, Debug, Default)]
struct Letters {
    bytes: u64,
    /// The bits in which the two cases differ.
    case: u64,
}

impl Commands {
    pub(crate) fn new() -> Self {
        let (specs, slots) = &*TABLE;
        Self { specs, slots }
    }

    /// Finds the command of that name, in any case.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<(CommandId, &'static Spec)> {
        let head = first_eight(name);
        let slot = &self.slots[first_place(head)];
        match slot.spec {
            Some(spec) if slot.fits(head, name) => Some((slot.id, spec)),
            _ => self.search(head, name),
        }
    }

    /// Finds a name that is not at its first place.
    #[inline(never)]
    fn search(&self, head: u64, name: &[u8]) -> Option<(CommandId, &'static Spec)> {
        for place in places(head) {
            let slot = &self.slots[place];
            let spec = slot.spec?;
            if slot.fits(head, name) {
                return Some((slot.id, spec));
            }
        }
        None
    }

    /// Returns all commands in table order.
    pub(crate) const fn all(&self) -> &'static [&'static Spec] {
        self.specs
    }
}

impl Slot {
    /// Returns whether the name, which begins with `head`, is the slot's.
    #[inline]
    fn fits(&self, head: u64, name: &[u8]) -> bool {
        self.head.fits(head)
            && name.len() == self.len
            && (self.len <= 8 || self.tail.fits(last_eight(name)))
    }
}

impl Letters {
    const fn of(bytes: u64) -> Self {
        // Letters have both bits of 0x60, and only for them bit 0x20 selects the case.
        let case = bytes & (bytes >> 1) & CASE_BITS;
        Self { bytes, case }
    }

    #[inline]
    const fn fits(self, bytes: u64) -> bool {
        (bytes ^ self.bytes) & !self.case == 0
    }
}

/// Returns the last eight bytes of a name that has as many.
#[inline]
fn last_eight(name: &[u8]) -> u64 {
    name.last_chunk().copied().map_or(0, u64::from_le_bytes)
}

fn table() -> (Vec<&'static Spec>, Box<[Slot; SLOTS]>) {
    let specs: Vec<&'static Spec> = FAMILIES.iter().flat_map(|family| family.iter()).collect();
    debug_assert!(specs.len() <= SLOTS / 2, "the table of names is too small");
    let free = Slot {
        head: Letters::default(),
        tail: Letters::default(),
        len: 0,
        id: CommandId::new(u16::MAX),
        spec: None,
    };
    let mut slots = Box::new([free; SLOTS]);
    for (index, spec) in specs.iter().enumerate() {
        let name = spec.name.as_bytes();
        debug_assert!(name.len() <= 16, "a slot knows sixteen bytes of a name");
        let head = first_eight(name);
        let free = places(head).find(|&place| slots[place].spec.is_none());
        if let (Some(place), Ok(index)) = (free, u16::try_from(index)) {
            slots[place] = Slot {
                head: Letters::of(head),
                tail: Letters::of(last_eight(name)),
                len: name.len(),
                id: CommandId::new(index),
                spec: Some(spec),
            };
        }
    }
    (specs, slots)
}

/// The places where a name that begins with `head` may be in the table, best first, in any case.
fn places(head: u64) -> impl Iterator<Item = usize> {
    (0..SLOTS).map(move |step| (first_place(head) + step) % SLOTS)
}

#[inline]
const fn first_place(head: u64) -> usize {
    ((head | CASE_BITS).wrapping_mul(SPREAD) >> (64 - SLOTS_LOG2)) as usize
}

const CASE_BITS: u64 = 0x2020_2020_2020_2020;

/// Of many odd numbers tried one that leaves every name at its first place.
const SPREAD: u64 = 0xa9f0_94dc_ba86_32d5;

/// Four times the number of commands.
const SLOTS_LOG2: u32 = 9;
const SLOTS: usize = 1 << SLOTS_LOG2;

/// Every family of commands.
const FAMILIES: &[&[Spec]] = &[
    scripting::SPECS,
    set::SPECS,
    get::SPECS,
    number::SPECS,
    multi::SPECS,
    release::SPECS,
    exists::SPECS,
    lock::SPECS,
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
    absent::SPECS,
    #[cfg(feature = "acl")]
    acl::SPECS,
    latency::SPECS,
    transaction::SPECS,
    #[cfg(feature = "compat")]
    values::hash::SPECS,
    #[cfg(feature = "compat")]
    values::list::SPECS,
    #[cfg(feature = "compat")]
    values::set::SPECS,
    #[cfg(feature = "compat")]
    values::sorted_set::SPECS,
    #[cfg(feature = "compat")]
    pubsub::SPECS,
    #[cfg(feature = "compat")]
    monitor::SPECS,
];

#[cfg(test)]
mod tests {
    use super::{Commands, Keys, first_eight, first_place};
    use crate::flags::Flags;

    #[test]
    fn a_name_with_any_byte_changed_is_another_command_or_none() {
        let commands = Commands::new();
        for spec in commands.all() {
            for at in 0..spec.name.len() {
                for byte in 0..=u8::MAX {
                    let mut name = spec.name.as_bytes().to_vec();
                    name[at] = byte;
                    let want = commands
                        .all()
                        .iter()
                        .find(|s| name.eq_ignore_ascii_case(s.name.as_bytes()));
                    let found = commands.find(&name).map(|(_, spec)| spec.name);
                    assert_eq!(found, want.map(|spec| spec.name), "{}", name.escape_ascii());
                }
            }
        }
        assert!(commands.find(b"").is_none());
    }

    /// [G2] PING is the exception, so that health checks see the quarantine. INFO only counts keys, and WATCH answers
    /// nothing about them.
    #[test]
    fn every_command_without_keys_is_served_in_quarantine_except_ping() {
        for spec in Commands::new().all() {
            let is_served = match spec.name {
                "ping" => false,
                "info" | "watch" => true,
                _ => spec.keys == Keys::None,
            };
            assert_eq!(spec.flags.has(Flags::LOADING), is_served, "{}", spec.name);
        }
    }

    #[test]
    fn every_row_has_a_name_a_summary_and_a_version_if_redis_has_it() {
        let commands = Commands::new();
        let rows = commands.all().iter().copied();
        for row in rows.clone().chain(rows.flat_map(|spec| spec.subcommands)) {
            let is_ours = row.name.starts_with("lock.");
            assert!(!row.name.is_empty() && !row.summary.is_empty(), "{row:?}");
            assert_eq!(row.since.is_empty(), is_ours, "{row:?}");
        }
    }

    /// When a new command makes this fail, try other values of `SPREAD`.
    #[test]
    fn nearly_every_name_is_at_its_first_place() {
        let commands = Commands::new();
        let is_elsewhere = |name: &[u8]| {
            let head = first_eight(name);
            !commands.slots[first_place(head)].fits(head, name)
        };
        let names = commands.all().iter().map(|spec| spec.name);
        let elsewhere: Vec<_> = names.filter(|name| is_elsewhere(name.as_bytes())).collect();
        assert!(elsewhere.len() <= 1, "{elsewhere:?}");
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
