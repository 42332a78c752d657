//! Checking whether keys are held: EXISTS, TOUCH and TYPE.

use locknode_resp::Encoder;

use super::context::Context;
use super::spec::{Call, Flags, Keys, Spec, exact, specs};

fn exists(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let mut found = 0;
    for key in args.iter().skip(1) {
        found += i64::from(context.entry_to_read(key).is_live());
    }
    reply.integer(found);
}

fn key_type(context: &mut Context<'_, '_>, [_, key]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let entry = context.entry_to_read(key);
    reply.simple(entry.shard.type_name(entry.probe));
}

const CHECK: Spec = Spec::of(
    Call::any(-2, exists),
    Flags::READONLY.and(Flags::FAST),
    Keys::Each { step: 1 },
    "generic",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Counts the keys that are held.
    "exists" "key [key ...]" since "1.0.0", ..CHECK;

    /// Counts the keys that are held; nothing is evicted, so this has no other effect.
    "touch" "key [key ...]" since "3.2.1", ..CHECK;

    /// Returns what a key holds: `string`, `hash`, `list`, `set`, `zset` or `none`.
    "type" "key" since "1.0.0", call: exact!(key_type), keys: Keys::One, ..CHECK;
};
