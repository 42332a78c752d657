//! FUNCTION: there are no functions. Test suites flush them between tests, and flushing none succeeds.

use locknode_resp::Encoder;

use super::refusal;
use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, Subcommand};
use crate::context::Context;

fn function(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    FUNCTION.run(context, args, reply);
}

fn flush(_: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_, _] => reply.ok(),
        [_, _, mode] if mode.eq_ignore_ascii_case(b"sync") => reply.ok(),
        [_, _, mode] if mode.eq_ignore_ascii_case(b"async") => reply.ok(),
        [_, _, _] => reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"),
        _ => {
            let sub = args.get(1).copied().unwrap_or_default();
            refusal::subcommand_syntax(reply, FUNCTION.name, sub);
        }
    }
}

fn list(_: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let mut words = args.get(2..).unwrap_or_default();
    while let Some((word, rest)) = words.split_first() {
        words = match rest {
            _ if word.eq_ignore_ascii_case(b"withcode") => rest,
            [_, rest @ ..] if word.eq_ignore_ascii_case(b"libraryname") => rest,
            [] if word.eq_ignore_ascii_case(b"libraryname") => {
                return reply.error("ERR library name argument was not given");
            }
            _ => return refusal::quoting(reply, "ERR Unknown argument ", word, ""),
        };
    }
    reply.array(0);
}

/// FUNCTION and those of its subcommands that make sense without functions.
pub(crate) const FUNCTION: Container = Container {
    name: "function",
    subcommands: &[
        Subcommand {
            name: "flush",
            arity: -2,
            run: flush,
            syntax: "[ASYNC|SYNC]",
            summary: "Forget all functions: there are none.",
            since: "7.0.0",
        },
        Subcommand {
            name: "list",
            arity: -2,
            run: list,
            syntax: "[LIBRARYNAME <pattern>] [WITHCODE]",
            summary: "Tell the functions: there are none.",
            since: "7.0.0",
        },
    ],
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[Spec {
    name: FUNCTION.name,
    syntax: "",
    arity: -2,
    flags: Flags::NOSCRIPT.and(Flags::LOADING),
    keys: Keys::None,
    run: function,
    summary: "Answers that there are no functions; scripts are called by EVAL.",
    group: "scripting",
    since: "7.0.0",
}];
