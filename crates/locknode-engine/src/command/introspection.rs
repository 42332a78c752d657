//! COMMAND: the table of commands as clients and redis-cli read it.

use locknode_resp::Encoder;

use super::command_entry::{Entry, key_positions};
use super::context::Context;
use super::keys::counted;
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::subcommand::{self, HELP};
use crate::glob::Pattern;

fn command(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    // COMMAND without a subcommand is valid, so it is not an ordinary container.
    match args {
        [_] => info_of_all(context, reply),
        _ => subcommand::run(context, args, reply),
    }
}

fn info_of_all(context: &Context<'_, '_>, reply: &mut Encoder<'_>) {
    let specs = context.commands.all();
    reply.array(specs.len());
    for spec in specs {
        Entry::of(spec).write_info(reply);
    }
}

fn count(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.integer(i64::try_from(context.commands.all().len()).unwrap_or(i64::MAX));
}

fn info(context: &mut Context<'_, '_>, _: &[&[u8]; 2], names: &[&[u8]], reply: &mut Encoder<'_>) {
    if names.is_empty() {
        return info_of_all(context, reply);
    }
    let (mark, output_max) = (reply.out_len(), context.services.settings.output_max());
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

fn docs(context: &mut Context<'_, '_>, _: &[&[u8]; 2], names: &[&[u8]], reply: &mut Encoder<'_>) {
    let entries: Vec<Entry> = if names.is_empty() {
        context
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
    let (mark, output_max) = (reply.out_len(), context.services.settings.output_max());
    reply.map(entries.len());
    for entry in entries {
        reply.bulk(entry.name.as_bytes());
        entry.write_docs(reply);
        if reply.out_len() - mark > output_max {
            return refusal::reply_too_long(reply, mark);
        }
    }
}

/// Finds a command, or a subcommand written as `client|list`.
fn entry(context: &Context<'_, '_>, name: &[u8]) -> Option<Entry> {
    let command = name.split(|&byte| byte == b'|').next()?;
    let (_, spec) = context.commands.find(command)?;
    let is_it = |entry: &Entry| entry.name.as_bytes().eq_ignore_ascii_case(name);
    Entry::with_subcommands(spec).find(is_it)
}

fn list(context: &mut Context<'_, '_>, _: &[&[u8]; 2], words: &[&[u8]], reply: &mut Encoder<'_>) {
    let specs = context.commands.all();
    let every = specs.iter().flat_map(|spec| Entry::with_subcommands(spec));
    let names: Vec<String> = match words {
        [] => every.map(|entry| entry.name).collect(),
        [by, kind, value] if by.eq_ignore_ascii_case(b"filterby") => {
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
    let found = command.first().and_then(|name| context.commands.find(name));
    let Some((_, spec)) = found else {
        return reply.error("ERR Invalid command specified");
    };
    let is_unknown =
        |sub: &&[u8]| spec.subcommand(sub).is_none() && !sub.eq_ignore_ascii_case(HELP.as_bytes());
    if !spec.subcommands.is_empty() && command.get(1).is_some_and(is_unknown) {
        return reply.error("ERR Invalid command specified");
    }
    let positions = key_positions(spec);
    if matches!(positions, Keys::None | Keys::All) {
        return reply.error("ERR The command has no key arguments");
    }
    if !spec.accepts(command.len()) {
        return reply.error("ERR Invalid number of arguments specified for command");
    }
    // A count of more keys than there are returns none, as in Redis.
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
    let groups = counted(command, at);
    groups.saturating_mul(step) > command.len().saturating_sub(at + 1)
}

const COMMAND: Spec = Spec::of(Call::any(-1, command), Flags::LOADING, Keys::None, "server");

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Describes the commands.
    "command" since "2.8.13", subcommands: SUBCOMMANDS, ..COMMAND;
};

const SUBCOMMANDS: &[Spec] = specs! {
    /// Return the number of commands.
    "count" since "2.8.13", call: exact!(count), ..COMMAND;

    /// Describe all commands, or the named ones.
    "docs" "[<name> ...]" since "7.0.0", call: least!(docs), ..COMMAND;

    /// Return the keys among the arguments of a command.
    "getkeys" "<name> [<arg> ...]" since "2.8.13", call: Call::any(-3, keys), ..COMMAND;

    /// Return arity, flags and key positions of all commands, or of the named ones.
    "info" "[<name> ...]" since "2.8.13", call: least!(info), ..COMMAND;

    /// Return the names of the commands.
    "list" "[FILTERBY (MODULE|ACLCAT|PATTERN) <value>]" since "7.0.0",
        call: least!(list), ..COMMAND;
};
