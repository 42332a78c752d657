//! Whether a user may run a command: the command itself, with its keys and its channels.

use super::command_entry::key_positions;
use super::numbers;
use super::spec::{Flags, Spec};
use crate::command_id::CommandId;
use crate::users::{Access, ChannelUse, Denial, User};

/// Checks a command.
///
/// # Errors
///
/// Returns what the user is not allowed to do.
pub(crate) fn check(user: &User, id: CommandId, spec: &Spec, args: &[&[u8]]) -> Result<(), Denial> {
    let Some(number) = numbers::of_call(id, spec, args) else {
        return Ok(());
    };
    if !spec.flags.has(Flags::NO_AUTH) && !user.may_run(number, args) {
        return Err(Denial::Command(number));
    }
    let access = access(spec, args);
    if !key_positions(spec)
        .of(args)
        .all(|key| user.may_access(key, access))
    {
        return Err(Denial::Key);
    }
    if let Some((channel_use, channels)) = channels(spec, args)
        && !channels
            .iter()
            .all(|it| user.may_use_channel(channel_use, it))
    {
        return Err(Denial::Channel);
    }
    Ok(())
}

/// Returns what a command with these arguments does to its keys, as Redis has it.
fn access(spec: &Spec, args: &[&[u8]]) -> Access {
    match spec.name {
        "exists" | "hexists" | "hlen" | "llen" | "scard" | "sismember" | "strlen" | "touch"
        | "type" | "watch" | "zcard" => Access::NONE,
        "blpop" | "decr" | "decrby" | "eval" | "evalsha" | "getdel" | "getex" | "getset"
        | "hincrby" | "incr" | "incrby" | "lock.force" | "lpop" | "zincrby" => Access::BOTH,
        "set" => {
            let options = args.get(3..).unwrap_or_default();
            let reads = options.iter().any(|it| it.eq_ignore_ascii_case(b"get"));
            if reads { Access::BOTH } else { Access::WRITE }
        }
        _ if spec.flags.has(Flags::READONLY) => Access::READ,
        _ => Access::WRITE,
    }
}

/// Returns the channels that a command names, if it uses them. To end a subscription needs no right.
fn channels<'a, 'b>(spec: &Spec, args: &'a [&'b [u8]]) -> Option<(ChannelUse, &'a [&'b [u8]])> {
    let all = args.get(1..)?;
    match spec.name {
        "publish" | "spublish" => Some((ChannelUse::Name, all.get(..1)?)),
        "subscribe" | "ssubscribe" => Some((ChannelUse::Name, all)),
        "psubscribe" => Some((ChannelUse::Pattern, all)),
        _ => None,
    }
}
