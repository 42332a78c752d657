//! Which commands a user may run, and the rules that say so.

use super::names::{ANY, Names};
use super::rule_error::RuleError;

/// See the module docs.
#[derive(Clone, Debug)]
pub(crate) struct CommandSet {
    names: &'static Names,
    /// A bit for each command and subcommand.
    bits: Box<[u64]>,
    /// Whether the rules begin with all commands rather than with none.
    begins_with_all: bool,
    /// What came after that, such as `-keys`, in the order given.
    rules: Vec<String>,
    /// First arguments with which a command is allowed that otherwise is not, such as `select|0`.
    first_words: Vec<(usize, Box<[u8]>)>,
}

impl CommandSet {
    pub(super) fn all(names: &'static Names) -> Self {
        Self::new(names, true)
    }

    pub(super) fn none(names: &'static Names) -> Self {
        Self::new(names, false)
    }

    fn new(names: &'static Names, begins_with_all: bool) -> Self {
        let words = names.all().len().div_ceil(64);
        let mut set = Self {
            names,
            bits: vec![0; words].into(),
            begins_with_all,
            rules: Vec::new(),
            first_words: Vec::new(),
        };
        if begins_with_all {
            (0..names.all().len()).for_each(|number| set.put(number, true));
        }
        set
    }

    /// Applies a rule without its sign, such as `get`, `client|id` or `@read`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it; nothing has changed.
    pub(super) fn apply(&mut self, is_allowed: bool, rule: &[u8]) -> Result<(), RuleError> {
        let text = String::from_utf8_lossy(rule).to_ascii_lowercase();
        let names = self.names;
        if text == ANY {
            *self = Self::new(names, is_allowed);
            return Ok(());
        }
        if rule.first() == Some(&b'@') {
            for number in names.in_category(&text).ok_or(RuleError::Unknown)? {
                self.put(number, is_allowed);
            }
        } else if let Some(number) = names.find(rule) {
            for number in names.family(number) {
                self.put(number, is_allowed);
            }
        } else if is_allowed {
            self.allow_first_word(&text)?;
        } else {
            return Err(RuleError::Unknown);
        }
        self.note(is_allowed, &text);
        Ok(())
    }

    /// Allows a command with one first argument.
    fn allow_first_word(&mut self, text: &str) -> Result<(), RuleError> {
        let (command, word) = text.rsplit_once('|').ok_or(RuleError::Unknown)?;
        let number = self
            .names
            .find(command.as_bytes())
            .ok_or(RuleError::Unknown)?;
        let row = self.names.all().get(number).ok_or(RuleError::Unknown)?;
        if row.is_subcommand() {
            return Err(RuleError::FirstWordOfSubcommand);
        }
        if word.is_empty() {
            return Err(RuleError::Syntax);
        }
        if row.has_subcommands {
            return Err(RuleError::Unknown);
        }
        let allowed = (number, Box::from(word.as_bytes()));
        if !self.first_words.contains(&allowed) {
            self.first_words.push(allowed);
        }
        Ok(())
    }

    /// Keeps a rule, without earlier ones that it overrides: the same, or those of its subcommands.
    fn note(&mut self, is_allowed: bool, text: &str) {
        self.rules.retain(|rule| {
            let after = rule.get(1..).and_then(|rule| rule.strip_prefix(text));
            !after.is_some_and(|after| after.is_empty() || after.starts_with('|'))
        });
        let sign = if is_allowed { '+' } else { '-' };
        self.rules.push(format!("{sign}{text}"));
    }

    /// Returns whether a call is allowed of the command with this number.
    pub(super) fn allows(&self, number: usize, args: &[&[u8]]) -> bool {
        self.has(number)
            || args.get(1).is_some_and(|word| {
                let is_it = |(command, allowed): &(usize, Box<[u8]>)| {
                    *command == number && word.eq_ignore_ascii_case(allowed)
                };
                self.first_words.iter().any(is_it)
            })
    }

    pub(super) const fn names(&self) -> &'static Names {
        self.names
    }

    /// Returns whether a command is allowed, named in lower case.
    pub(super) fn has_name(&self, name: &str) -> bool {
        let number = self.names.find(name.as_bytes());
        number.is_some_and(|number| self.has(number))
    }

    /// Returns the name of the command with this number.
    pub(super) fn name_of(&self, number: usize) -> &str {
        self.names.all().get(number).map_or("", |it| &it.name)
    }

    fn has(&self, number: usize) -> bool {
        let word = self.bits.get(number / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 != 0
    }

    /// Returns whether it has every command.
    pub(super) fn is_everything(&self) -> bool {
        (0..self.names.all().len()).all(|number| self.has(number))
    }

    /// Returns the rules from which it follows.
    pub(super) fn describe(&self) -> String {
        let begin = if self.begins_with_all {
            "+@all"
        } else {
            "-@all"
        };
        let rules = self.rules.iter().map(String::as_str);
        let all: Vec<&str> = std::iter::once(begin).chain(rules).collect();
        all.join(" ")
    }

    fn put(&mut self, number: usize, is_allowed: bool) {
        if let Some(word) = self.bits.get_mut(number / 64) {
            let bit = 1 << (number % 64);
            *word = if is_allowed {
                *word | bit
            } else {
                *word & !bit
            };
        }
        // As in Redis, a rule about the whole command ends what was said of its first argument.
        self.first_words.retain(|(command, _)| *command != number);
    }
}
