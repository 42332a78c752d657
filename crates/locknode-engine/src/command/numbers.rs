//! Which number a command has where rules name it.

use std::sync::LazyLock;

use super::Commands;
use super::category::Category;
use super::command_entry::Entry;
use super::spec::Spec;
use super::subcommand::HELP;
use crate::command_id::CommandId;
use crate::users::{Name, Names};

struct Table {
    names: Names,
    /// The number of each command, by its place in the table of commands.
    first: Vec<usize>,
}

/// The last subcommand is HELP.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let (mut all, mut first) = (Vec::new(), Vec::new());
    for spec in Commands::new().all() {
        first.push(all.len());
        for entry in Entry::with_subcommands(spec) {
            let categories = Category::ALL.into_iter().enumerate();
            let is_in = categories.filter(|(_, it)| it.has(&entry.name, &entry.spec));
            all.push(Name {
                categories: is_in.map(|(place, _)| 1 << place).sum(),
                has_subcommands: !entry.spec.subcommands.is_empty(),
                name: entry.name,
            });
        }
    }
    let categories = Category::ALL.map(Category::name).to_vec();
    let names = Names::new(all, categories);
    Table { names, first }
});

/// Returns the names by which rules know commands.
pub(crate) fn names() -> &'static Names {
    &TABLE.names
}

/// Returns the number of what a client has called; `None` for a subcommand that does not exist or
/// takes another number of arguments, which the command refuses itself.
pub(super) fn of_call(id: CommandId, spec: &Spec, args: &[&[u8]]) -> Option<usize> {
    let first = TABLE.first.get(id.index()).copied()?;
    let Some(word) = args.get(1).filter(|_| !spec.subcommands.is_empty()) else {
        return Some(first);
    };
    let (place, is_accepted) = match spec.subcommand(word) {
        Some((place, row)) => (place, row.accepts(args.len())),
        None if word.eq_ignore_ascii_case(HELP.as_bytes()) => {
            (spec.subcommands.len(), args.len() == 2)
        }
        None => return None,
    };
    is_accepted.then_some(first + 1 + place)
}
