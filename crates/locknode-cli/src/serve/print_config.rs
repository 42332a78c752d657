//! `--print-config`: the configuration in effect, with where each value comes from.
//!
//! The output is a configuration file: given to `--config` it sets the same options. Only the password is not
//! shown; its line is a comment.

use std::fmt::Write as _;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::config_file::{ConfigFile, key_of};
use crate::json;

/// Writes the configuration as TOML. `given` are the flags and environment without the file, `merged` with it.
pub(super) fn render(
    flags: &Command,
    given: &ArgMatches,
    merged: &ArgMatches,
    file: Option<(&Path, &ConfigFile)>,
) -> String {
    let mut text = format!(
        "# Configuration of locknode {}\n",
        env!("CARGO_PKG_VERSION")
    );
    let options = flags
        .get_arguments()
        .filter_map(|arg| Some((arg, key_of(arg)?)));
    for (arg, key) in options {
        let origin = origin(arg, key, given, file);
        let line = match merged.get_raw(arg.get_id().as_str()) {
            None => format!("# {key} ="),
            Some(_) if key == SECRET => format!("# {key} = \"********\""),
            Some(values) => {
                let values: Vec<String> = values
                    .map(|value| literal(&value.to_string_lossy()))
                    .collect();
                match arg.get_action() {
                    ArgAction::Append => format!("{key} = [{}]", list(&values)),
                    _ => format!("{key} = {}", values.join(" ")),
                }
            }
        };
        let _ = writeln!(text, "{line:<WIDTH$}  # {origin}");
    }
    text
}

fn origin(arg: &Arg, key: &str, given: &ArgMatches, file: Option<(&Path, &ConfigFile)>) -> String {
    match given.value_source(arg.get_id().as_str()) {
        Some(ValueSource::CommandLine) => return format!("flag --{key}"),
        Some(ValueSource::EnvVariable) => {
            let name = arg.get_env().unwrap_or_default();
            return format!("environment {}", name.to_string_lossy());
        }
        _ => {}
    }
    match file.and_then(|(path, file)| file.line_of_key(key).map(|line| (path, line))) {
        Some((path, line)) => printable(&format!("{}:{line}", path.display())),
        None if arg.get_default_values().is_empty() => "not set".to_owned(),
        None => "default".to_owned(),
    }
}

/// An empty list is written as a list without items, not as one with an empty address.
fn list(values: &[String]) -> String {
    if values == ["\"\""] {
        String::new()
    } else {
        values.join(", ")
    }
}

/// A value as TOML: a number as it is, everything else as a string, which is written as in JSON.
fn literal(value: &str) -> String {
    let is_number = value
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == value);
    if is_number {
        return value.to_owned();
    }
    json::quoted(value)
}

/// TOML allows no control characters in comments.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// The option whose value is not shown.
const SECRET: &str = "requirepass";

/// Where the comments start, if the value is short.
const WIDTH: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_toml_wants_them() {
        for (value, expected) in [
            ("6379", "6379"),
            ("-1", "-1"),
            ("0770", "\"0770\""),
            ("100mb", "\"100mb\""),
            ("", "\"\""),
            ("a\"b\\c\n", "\"a\\\"b\\\\c\\u000a\""),
        ] {
            assert_eq!(literal(value), expected);
        }
    }
}
