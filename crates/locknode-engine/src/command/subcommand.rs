//! Commands that are families of subcommands, such as CLIENT and CONFIG: how one is found, refused and explained.

use locknode_resp::Encoder;

use super::refusal;
use crate::context::Context;

/// The function behind a subcommand. `args[0]` is the container's name, `args[1]` the subcommand's; the arity has
/// been checked.
pub(crate) type RunSubcommand = fn(&mut Context<'_, '_>, &[&[u8]], &mut Encoder<'_>);

/// A command that does nothing itself.
#[derive(Debug)]
pub(crate) struct Container {
    /// Lower case.
    pub(crate) name: &'static str,
    pub(crate) subcommands: &'static [Subcommand],
}

/// One subcommand. HELP is not among them: every container has it.
#[derive(Debug)]
pub(crate) struct Subcommand {
    /// Lower case.
    pub(crate) name: &'static str,
    /// As in [`Spec`](super::Spec): the exact number of arguments, both names included, or minus the least number.
    pub(crate) arity: i32,
    pub(crate) run: RunSubcommand,
    /// Its arguments as HELP writes them.
    pub(crate) syntax: &'static str,
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    /// The Redis (or Valkey) version that introduced it.
    pub(crate) since: &'static str,
}

impl Container {
    /// Runs the subcommand that `args[1]` names, or refuses it.
    pub(crate) fn run(
        &self,
        context: &mut Context<'_, '_>,
        args: &[&[u8]],
        reply: &mut Encoder<'_>,
    ) {
        let Some(&name) = args.get(1) else {
            return refusal::wrong_arity(reply, self.name);
        };
        if name.eq_ignore_ascii_case(HELP.as_bytes()) {
            return self.help(args, reply);
        }
        let Some((index, subcommand)) = self.find(name) else {
            return refusal::unknown_subcommand(reply, self.name, name);
        };
        if !subcommand.accepts(args.len()) {
            return refusal::wrong_arity(reply, &self.full_name(subcommand.name));
        }
        context.session.client.note_subcommand(index);
        (subcommand.run)(context, args, reply);
    }

    /// The subcommand of that name, in any case, and its place.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(usize, &'static Subcommand)> {
        let is_it =
            |(_, each): &(usize, &Subcommand)| each.name.as_bytes().eq_ignore_ascii_case(name);
        self.subcommands.iter().enumerate().find(is_it)
    }

    /// `client|setname`, as Redis writes it in errors, CLIENT LIST and COMMAND.
    pub(crate) fn full_name(&self, subcommand: &str) -> String {
        format!("{}|{subcommand}", self.name)
    }

    fn help(&self, args: &[&[u8]], reply: &mut Encoder<'_>) {
        if args.len() != 2 {
            return refusal::wrong_arity(reply, &self.full_name(HELP));
        }
        let topics = self
            .subcommands
            .iter()
            .map(|each| (each.name, each.syntax, each.summary));
        help(reply, self.name, topics);
    }
}

impl Subcommand {
    /// Whether so many arguments, both names included, are allowed.
    pub(crate) fn accepts(&self, args: usize) -> bool {
        let args = i32::try_from(args).unwrap_or(i32::MAX);
        if self.arity >= 0 {
            args == self.arity
        } else {
            args >= -self.arity
        }
    }
}

/// The reply to HELP in the layout of Redis: a heading, then name, syntax and explanation of each subcommand.
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
