//! The names by which rules know commands: each command and subcommand has a number, so that a set of
//! them is a set of bits.

/// One command or subcommand.
#[derive(Debug)]
pub(crate) struct Name {
    /// `get`, or `client|list`.
    pub(crate) name: String,
    /// A bit for each category, in the order of their names.
    pub(crate) categories: u32,
    pub(crate) has_subcommands: bool,
}

/// Those of a node: each command is followed by its subcommands.
#[derive(Debug)]
pub(crate) struct Names {
    all: Vec<Name>,
    /// Such as `@read`.
    categories: Vec<&'static str>,
}

impl Name {
    pub(super) fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }
}

impl Names {
    pub(crate) const fn new(all: Vec<Name>, categories: Vec<&'static str>) -> Self {
        Self { all, categories }
    }

    /// Returns every command and subcommand.
    pub(super) fn all(&self) -> &[Name] {
        &self.all
    }

    /// Finds the command or subcommand of that full name, in any case.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        let is_it = |it: &Name| it.name.as_bytes().eq_ignore_ascii_case(name);
        self.all.iter().position(is_it)
    }

    /// Returns the numbers of a command and its subcommands, or of a subcommand alone.
    pub(super) fn family(&self, number: usize) -> impl Iterator<Item = usize> {
        let is_command = self.all.get(number).is_some_and(|it| !it.is_subcommand());
        let after = self.all.iter().skip(number + 1);
        let children = after.take_while(|it| is_command && it.is_subcommand());
        number..=number + children.count()
    }

    /// Returns the numbers of a category's commands; `None` without such a category.
    pub(super) fn in_category(&self, name: &str) -> Option<impl Iterator<Item = usize>> {
        let place = self.categories.iter().position(|it| *it == name)?;
        let every = self.all.iter().enumerate();
        let its = every.filter(move |(_, it)| it.categories >> place & 1 != 0);
        Some(its.map(|(number, _)| number))
    }
}

/// Stands for every command where a category is named.
pub(super) const ANY: &str = "@all";
