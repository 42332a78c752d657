//! COMMAND: the table of commands as clients and redis-cli read it.

use locknode_resp::Encoder;

use super::client::CLIENT;
use super::cluster::CLUSTER;
use super::command_entry::{Entry, key_positions};
use super::config::CONFIG;
use super::function::FUNCTION;
use super::glob::Pattern;
use super::integer;
use super::latency::LATENCY;
use super::refusal;
use super::scripting::SCRIPT;
use super::slowlog::SLOWLOG;
use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, HELP, Subcommand};
use crate::context::Context;

/// The container of that name, in lower case.
pub(crate) fn container(name: &str) -> Option<&'static Container> {
    CONTAINERS
        .iter()
        .copied()
        .find(|container| container.name == name)
}

fn command(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_] => {
            let specs = context.engine.commands.all();
            reply.array(specs.len());
            for spec in specs {
                Entry::of(spec).write_info(reply);
            }
        }
        // COMMAND without a subcommand means something, and so it is not an ordinary container.
        _ => COMMAND.run(context, args, reply),
    }
}

fn count(context: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.integer(i64::try_from(context.engine.commands.all().len()).unwrap_or(i64::MAX));
}

fn info(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let names = args.get(2..).unwrap_or_default();
    if names.is_empty() {
        return command(context, &args[..1], reply);
    }
    let (mark, output_max) = (reply.out_len(), context.engine.settings.output_max());
    reply.array(names.len());
    for name in names {
        match entry(context, name) {
            Some(entry) => entry.write_info(reply),
            None => reply.null(),
        }
        if reply.out_len() - mark > output_max {
            return refusal::reply_too_long(reply, mark);
        }
    }
}

fn docs(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let names = args.get(2..).unwrap_or_default();
    let entries: Vec<Entry> = if names.is_empty() {
        context
            .engine
            .commands
            .all()
            .iter()
            .map(|spec| Entry::of(spec))
            .collect()
    } else {
        names
            .iter()
            .filter_map(|name| entry(context, name))
            .collect()
    };
    let (mark, output_max) = (reply.out_len(), context.engine.settings.output_max());
    reply.map(entries.len());
    for entry in entries {
        reply.bulk(entry.name.as_bytes());
        entry.write_docs(reply);
        if reply.out_len() - mark > output_max {
            return refusal::reply_too_long(reply, mark);
        }
    }
}

/// The command, or the subcommand written as `client|list`.
fn entry(context: &Context<'_, '_>, name: &[u8]) -> Option<Entry> {
    let mut parts = name.splitn(2, |&byte| byte == b'|');
    let (_, spec) = context.engine.commands.find(parts.next()?)?;
    match parts.next() {
        None => Some(Entry::of(spec)),
        Some(sub) => {
            let container = container(spec.name)?;
            if sub.eq_ignore_ascii_case(HELP.as_bytes()) {
                return Some(Entry::of_help(spec, container));
            }
            let (_, subcommand) = container.find(sub)?;
            Some(Entry::of_subcommand(spec, container, subcommand))
        }
    }
}

fn list(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let specs = context.engine.commands.all();
    let every = specs.iter().flat_map(|spec| Entry::with_subcommands(spec));
    let names: Vec<String> = match args {
        [_, _] => every.map(|entry| entry.name).collect(),
        [_, _, by, kind, value] if by.eq_ignore_ascii_case(b"filterby") => {
            let value = value.to_ascii_lowercase();
            let pattern = Pattern::of(&value);
            let passes: &dyn Fn(&Entry) -> bool = match kind.to_ascii_lowercase().as_slice() {
                b"pattern" => &|entry| pattern.matches(entry.name.as_bytes()),
                b"aclcat" => &|entry| entry.is_in_category(&value),
                b"module" => &|_| false,
                _ => return refusal::syntax(reply),
            };
            every.filter(passes).map(|entry| entry.name).collect()
        }
        _ => return refusal::syntax(reply),
    };
    reply.array(names.len());
    for name in names {
        reply.bulk(name.as_bytes());
    }
}

fn keys(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let command = args.get(2..).unwrap_or_default();
    let found = command
        .first()
        .and_then(|name| context.engine.commands.find(name));
    let Some((_, spec)) = found else {
        return reply.error("ERR Invalid command specified");
    };
    let has_unknown_subcommand =
        container(spec.name)
            .zip(command.get(1))
            .is_some_and(|(container, sub)| {
                container.find(sub).is_none() && !sub.eq_ignore_ascii_case(HELP.as_bytes())
            });
    if has_unknown_subcommand {
        return reply.error("ERR Invalid command specified");
    }
    let positions = key_positions(spec);
    if matches!(positions, Keys::None | Keys::All) {
        return reply.error("ERR The command has no key arguments");
    }
    if !spec.accepts(command.len()) {
        return reply.error("ERR Invalid number of arguments specified for command");
    }
    // A count of more keys than there are gives none, as in Redis.
    let keys: Vec<&[u8]> = if counts_too_many(positions, command) {
        Vec::new()
    } else {
        positions.of(command).collect()
    };
    reply.array(keys.len());
    for key in keys {
        reply.bulk(key);
    }
}

fn counts_too_many(positions: Keys, command: &[&[u8]]) -> bool {
    let Keys::Counted { at, step } = positions else {
        return false;
    };
    let count = command
        .get(at)
        .and_then(|count| integer::parse(count))
        .unwrap_or(0);
    let groups = usize::try_from(count).unwrap_or(0);
    groups.saturating_mul(step) > command.len().saturating_sub(at + 1)
}

/// COMMAND and its subcommands.
const COMMAND: Container = Container {
    name: "command",
    subcommands: SUBCOMMANDS,
};

const CONTAINERS: &[&Container] = &[
    &CLIENT, &CLUSTER, &COMMAND, &CONFIG, &FUNCTION, &LATENCY, &SCRIPT, &SLOWLOG,
];

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[Spec {
    name: COMMAND.name,
    syntax: "",
    arity: -1,
    flags: Flags::LOADING,
    keys: Keys::None,
    run: command,
    summary: "Tells about the commands.",
    group: "server",
    since: "2.8.13",
}];

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "count",
        arity: 2,
        run: count,
        syntax: "",
        summary: "Tell how many commands there are.",
        since: "2.8.13",
    },
    Subcommand {
        name: "docs",
        arity: -2,
        run: docs,
        syntax: "[<name> ...]",
        summary: "Tell what all commands do, or those named.",
        since: "7.0.0",
    },
    Subcommand {
        name: "getkeys",
        arity: -3,
        run: keys,
        syntax: "<name> [<arg> ...]",
        summary: "Tell the keys among the arguments of a command.",
        since: "2.8.13",
    },
    Subcommand {
        name: "info",
        arity: -2,
        run: info,
        syntax: "[<name> ...]",
        summary: "Tell arity, flags and key positions of all commands, or of those named.",
        since: "2.8.13",
    },
    Subcommand {
        name: "list",
        arity: -2,
        run: list,
        syntax: "[FILTERBY (MODULE|ACLCAT|PATTERN) <value>]",
        summary: "Tell the names of the commands.",
        since: "7.0.0",
    },
];
