//! SLOWLOG: always empty. No command here takes long enough to be worth a log, and none is timed.

use locknode_resp::Encoder;

use super::integer;
use super::refusal;
use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, Subcommand};
use crate::context::Context;

fn slowlog(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    SLOWLOG.run(context, args, reply);
}

fn entries(_: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_, _] => reply.array(0),
        [_, _, count] if integer::parse(count).is_some_and(|count| count >= -1) => reply.array(0),
        [_, _, _] => reply.error("ERR count should be greater than or equal to -1"),
        _ => refusal::subcommand_syntax(
            reply,
            SLOWLOG.name,
            args.get(1).copied().unwrap_or_default(),
        ),
    }
}

fn count(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.integer(0);
}

fn reset(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.ok();
}

/// SLOWLOG and its subcommands.
pub(crate) const SLOWLOG: Container = Container {
    name: "slowlog",
    subcommands: &[
        Subcommand {
            name: "get",
            arity: -2,
            run: entries,
            syntax: "[<count>]",
            summary: "Tell the slow commands: there are none.",
            since: "2.2.12",
        },
        Subcommand {
            name: "len",
            arity: 2,
            run: count,
            syntax: "",
            summary: "Tell how many entries there are: 0.",
            since: "2.2.12",
        },
        Subcommand {
            name: "reset",
            arity: 2,
            run: reset,
            syntax: "",
            summary: "Forget all entries: there are none.",
            since: "2.2.12",
        },
    ],
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[Spec {
    name: SLOWLOG.name,
    syntax: "",
    arity: -2,
    flags: Flags::ADMIN.and(Flags::LOADING),
    keys: Keys::None,
    run: slowlog,
    summary: "Answers that no slow command was logged; none is.",
    group: "server",
    since: "2.2.12",
}];
