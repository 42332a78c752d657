//! Sets: the readers of `DistributedLock`'s read-write lock.

use locknode_resp::Encoder;

use super::super::context::Context;
use super::super::spec::{Flags, Keys, Spec, exact, least, specs};
use super::{added_bytes, len, read, remove, reply_len};
use crate::values::Set;

fn sadd(
    context: &mut Context<'_, '_>,
    [_, key, first]: &[&[u8]; 3],
    others: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let members = || std::iter::once(first).chain(others);
    let entry = context.entry(key);
    entry.grow::<Set>(added_bytes(members().copied()), reply, |set, reply| {
        let mut added = 0;
        for member in members() {
            added += usize::from(set.put((*member).into()).is_none());
        }
        reply_len(reply, added);
        added > 0
    });
}

fn sismember(
    context: &mut Context<'_, '_>,
    [_, key, member]: &[&[u8]; 3],
    reply: &mut Encoder<'_>,
) {
    read(context, key, reply, |set: Option<&Set>, reply| {
        let is_there = set.is_some_and(|set| set.get(member).is_some());
        reply.integer(i64::from(is_there));
    });
}

const READ: Spec = Spec::of(
    exact!(len::<Set>),
    Flags::READONLY.and(Flags::FAST),
    Keys::One,
    "set",
);

const WRITE: Spec = Spec::of(
    least!(sadd),
    Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    Keys::One,
    "set",
);

/// The commands of this family, all sent by `DistributedLock`.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Adds members to a set: a reader takes its lock.
    "sadd" "key member [member ...]" since "1.0.0", ..WRITE;

    /// Removes members of a set: a reader releases its lock.
    "srem" "key member [member ...]" since "1.0.0",
        call: least!(remove, |set: &mut Set, member: &[u8]| set.remove(member).is_some()), flags: Flags::WRITE.and(Flags::FAST), ..WRITE;

    /// Counts the members of a set: a writer looks for readers.
    "scard" "key" since "1.0.0", ..READ;

    /// Checks whether a set has a member: a reader extends its lock.
    "sismember" "key member" since "1.0.0", call: exact!(sismember), ..READ;
};
