//! The configuration file: a flat TOML table whose keys are the names of the flags.
//!
//! A value is handed to the same parser as the flag's, so that both accept the same and say the same. Every error
//! names the file, the line and the key.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use toml::de::{DeTable, DeValue};

use super::flags::OF_ONE_START;
use crate::failure::Failure;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    entries: Vec<Entry>,
}

/// One key of a file.
#[derive(Debug)]
pub(super) struct Entry {
    /// The name of the flag.
    pub(super) key: String,
    /// The values as they would be written behind the flag; several for a list.
    values: Vec<String>,
    /// The line, from 1.
    pub(super) line: usize,
}

impl ConfigFile {
    /// Reads the file; `flags` are the options it may have.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no TOML, has an unknown key or a value that its flag would refuse.
    pub(super) fn read(path: &Path, flags: &Command) -> Result<Self, Failure> {
        let shown = path.display();
        let mut text = String::new();
        // Read through a limit: the path may lead to something endless.
        let read =
            File::open(path).and_then(|file| file.take(LEN_MAX + 1).read_to_string(&mut text));
        let problem = match read {
            Ok(len) if len as u64 > LEN_MAX => {
                format!("{shown} is longer than {LEN_MAX} bytes (--config)")
            }
            Err(error) => format!("cannot read {shown} (--config): {error}"),
            Ok(_) => match Self::parse(&text, flags) {
                Ok(file) => return Ok(file),
                Err((line, problem)) => format!("{shown}:{line}: {problem}"),
            },
        };
        Err(Failure::usage(problem))
    }

    fn parse(text: &str, flags: &Command) -> Result<Self, (usize, String)> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            (line, error.message().to_owned())
        })?;
        let mut entries = Vec::new();
        for (key, value) in table.get_ref() {
            let line = line_of(text, key.span().start);
            let entry = Entry::new(key.get_ref(), value.get_ref(), line, flags);
            entries.push(entry.map_err(|problem| (line, problem))?);
        }
        Ok(Self { entries })
    }

    /// The flags to put in front of the given ones: those of the file that neither a flag nor the environment sets.
    pub(super) fn flags_beside(&self, given: &ArgMatches, flags: &Command) -> Vec<OsString> {
        let unset = self
            .entries
            .iter()
            .filter(|entry| !is_set(given, flags, &entry.key));
        unset.flat_map(Entry::flags).map(OsString::from).collect()
    }

    /// The line that sets an option, for people.
    pub(super) fn line_of_key(&self, key: &str) -> Option<usize> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.line)
    }
}

impl Entry {
    fn new(key: &str, value: &DeValue<'_>, line: usize, flags: &Command) -> Result<Self, String> {
        if key == "first-start" {
            // In a file it would be believed after every crash.
            return Err(
                "first-start is true of one start only: give it as a flag, once".to_owned(),
            );
        }
        if !flags.get_arguments().any(|arg| key_of(arg) == Some(key)) {
            return Err(unknown_key(key, flags));
        }
        let values = match value {
            DeValue::Array(items) if key == LIST_KEY && items.is_empty() => vec![String::new()],
            DeValue::Array(items) if key == LIST_KEY => {
                let values = items.iter().map(|item| scalar(item.get_ref()));
                values.collect::<Result<_, _>>()?
            }
            single => vec![scalar(single)?],
        };
        let entry = Self {
            key: key.to_owned(),
            values,
            line,
        };
        entry.check(flags)?;
        Ok(entry)
    }

    /// Asks the flag's own parser.
    fn check(&self, flags: &Command) -> Result<(), String> {
        let read = flags.clone().try_get_matches_from(self.flags());
        read.map(drop).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        })
    }

    fn flags(&self) -> impl Iterator<Item = String> {
        self.values
            .iter()
            .map(|value| format!("--{}={value}", self.key))
    }
}

/// Whether a flag or the environment sets the option.
fn is_set(given: &ArgMatches, flags: &Command, key: &str) -> bool {
    use clap::parser::ValueSource::{CommandLine, EnvVariable};
    let arg = flags
        .get_arguments()
        .find(|arg| arg.get_long() == Some(key));
    let source = arg.and_then(|arg| given.value_source(arg.get_id().as_str()));
    matches!(source, Some(CommandLine | EnvVariable))
}

fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(is_on) => Ok(if *is_on { "yes" } else { "no" }.to_owned()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            decimal
                .map(|number| number.to_string())
                .map_err(|_| "the number is too large".to_owned())
        }
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Array(_) => Err("takes one value, not a list".to_owned()),
        DeValue::Table(_) => Err("must not be a table: the file has plain keys only".to_owned()),
        DeValue::Datetime(_) => Err("takes a string, a number, true or false".to_owned()),
    }
}

fn unknown_key(key: &str, flags: &Command) -> String {
    let word = key.replace('_', "-").to_lowercase();
    let word: String = word.chars().take(KEY_LEN_MAX).collect();
    let known = flags.get_arguments().filter_map(key_of);
    let nearest = known.min_by_key(|name| strsim::levenshtein(&word, name));
    format!(
        "unknown key {key:?}: the nearest known one is {:?} (keys are the flags of locknode serve --help)",
        nearest.unwrap_or_default()
    )
}

/// The key of an option in the file: the name of its flag.
pub(super) fn key_of(option: &Arg) -> Option<&str> {
    let name = option.get_long()?;
    (name != "config" && !OF_ONE_START.contains(&name)).then_some(name)
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The option that takes a list.
const LIST_KEY: &str = "bind";

/// A hundred times what a file with every option and long comments needs.
const LEN_MAX: u64 = 1 << 20;

/// Longer than every key; what comes after does not make a key nearer.
const KEY_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::serve::flags::ServeFlags;

    fn flags() -> Command {
        ServeFlags::augment_args(Command::new("serve").no_binary_name(true))
    }

    #[test]
    fn values_become_what_is_written_behind_a_flag() {
        for (text, expected) in [
            ("port = 7000", &["--port=7000"][..]),
            ("port = 0x10", &["--port=16"]),
            ("port = \"7000\"", &["--port=7000"]),
            ("maxmemory = \"100mb\"", &["--maxmemory=100mb"]),
            ("protected-mode = false", &["--protected-mode=no"]),
            ("protected-mode = \"no\"", &["--protected-mode=no"]),
            (
                "bind = [\"127.0.0.1\", \"-::1\"]",
                &["--bind=127.0.0.1", "--bind=-::1"],
            ),
            ("bind = []", &["--bind="]),
            ("bind = \"127.0.0.1 ::1\"", &["--bind=127.0.0.1 ::1"]),
            ("requirepass = \"--help\"", &["--requirepass=--help"]),
            ("restart-guard = false", &["--restart-guard=no"]),
            ("max-ttl = \"5m\"", &["--max-ttl=5m"]),
            ("dir = \"/var/lib/locknode\"", &["--dir=/var/lib/locknode"]),
            ("# nothing\n", &[]),
        ] {
            let file = ConfigFile::parse(text, &flags()).expect(text);
            let found: Vec<String> = file.entries.iter().flat_map(Entry::flags).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn errors_name_the_line_and_what_is_wrong() {
        for (text, line, part) in [
            ("port = 1\nmaxclient = 5", 2, "\"maxclients\""),
            ("\n\ntcp_keepalive = 5", 3, "\"tcp-keepalive\""),
            ("config = \"x\"", 1, "unknown key"),
            ("first-start = true", 1, "give it as a flag"),
            ("max-ttl = 0", 1, "at least 1ms"),
            ("max-ttl = 60", 1, "with its unit"),
            ("durability = \"never\"", 1, "'--durability <long|always>'"),
            ("port = 70000", 1, "70000 is not in 0..=65535"),
            ("\nmaxmemory = \"lots\"", 2, "100mb"),
            ("[server]\nport = 1", 1, "unknown key \"server\""),
            ("[port]\nx = 1", 1, "must not be a table"),
            ("port = [1, 2]", 1, "not a list"),
            ("port = 1979-05-27", 1, "takes a string"),
            ("port = 99999999999999999999", 1, "too large"),
            ("port = 1\nport = 2", 2, "duplicate key"),
            ("port = ", 1, ""),
        ] {
            let (found, problem) = ConfigFile::parse(text, &flags()).expect_err(text);
            assert_eq!(found, line, "{text}: {problem}");
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
