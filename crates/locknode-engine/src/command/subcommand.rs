//! Commands with subcommands, such as CLIENT and CONFIG: how a subcommand is found, refused and
//! explained.

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use super::spec::Spec;

/// Runs the subcommand named by `args[1]`, or refuses it.
pub(super) fn run(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let &[container, name, ..] = args else {
        return refusal::unknown_command(reply, args);
    };
    let Some((_, container)) = context.commands.find(container) else {
        return refusal::unknown_command(reply, args);
    };
    if is_refused(container, args, reply) {
        return;
    }
    let Some((index, subcommand)) = container.subcommand(name) else {
        let topics = container.subcommands.iter();
        let topics = topics.map(|each| (each.name, each.syntax, each.summary));
        return help(reply, container.name, topics);
    };
    context.session.client.note_subcommand(index);
    (subcommand.call.run)(context, args, reply);
}

/// Refuses a subcommand that does not exist or takes another number of arguments, and returns
/// whether it did.
pub(crate) fn is_refused(container: &Spec, args: &[&[u8]], reply: &mut Encoder<'_>) -> bool {
    let Some(&name) = args.get(1) else {
        return false;
    };
    let (name, accepts) = if name.eq_ignore_ascii_case(HELP.as_bytes()) {
        (HELP, args.len() == 2)
    } else if let Some((_, subcommand)) = container.subcommand(name) {
        (subcommand.name, subcommand.accepts(args.len()))
    } else {
        refusal::unknown_subcommand(reply, container.name, name);
        return true;
    };
    if !accepts {
        refusal::wrong_arity(reply, &container.full_name(name));
    }
    !accepts
}

/// Writes the reply to HELP in Redis's layout: a heading, then the name, syntax and explanation of
/// each subcommand.
pub(crate) fn help<'a>(
    reply: &mut Encoder<'_>,
    container: &str,
    topics: impl ExactSizeIterator<Item = (&'a str, &'a str, &'a str)>,
) {
    reply.array(1 + 2 * topics.len() + 2);
    let container = container.to_ascii_uppercase();
    reply.simple(&format!(
        "{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    ));
    for (name, syntax, summary) in topics {
        reply.simple(format!("{} {syntax}", name.to_ascii_uppercase()).trim_end());
        reply.simple(&format!("    {summary}"));
    }
    reply.simple("HELP");
    reply.simple("    Print this help.");
}

/// The subcommand that every container has.
pub(crate) const HELP: &str = "help";
