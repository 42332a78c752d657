//! The options that CONFIG knows: how each is shown and set.

use std::ops::RangeInclusive;

use locknode_resp::parse_integer;

use super::byte_size;
use super::output_limit;
use crate::durable::Durability;
use crate::guard::GuardMode;
use crate::host::HostFacts;
use crate::settings::Options;
use crate::shard::DATABASES;

/// One option.
#[derive(Debug)]
pub(crate) struct ConfigOption {
    /// Redis' name for it.
    pub(crate) name: &'static str,
    /// Its value as CONFIG GET shows it.
    pub(crate) show: fn(&Options, &HostFacts) -> String,
    pub(crate) change: Change,
}

/// How CONFIG SET changes an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Not at all: it is set at the start.
    Never,
    /// Not at all, although Redis can; setting it to its current value succeeds.
    OnlyAsIs,
    /// From a text; the error says what is wrong with it.
    By(fn(&mut Options, &[u8]) -> Result<(), String>),
}

/// Finds the option of that name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static ConfigOption> {
    OPTIONS
        .iter()
        .find(|option| option.name.as_bytes().eq_ignore_ascii_case(name))
}

fn integer_within(text: &[u8], range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = parse_integer(text).ok_or("argument couldn't be parsed into an integer")?;
    within(u64::try_from(number).ok(), range)
}

fn parse_size(text: &[u8], range: RangeInclusive<u64>) -> Result<u64, String> {
    let size = byte_size::parse(text).ok_or("argument must be a memory value")?;
    within(Some(size), range)
}

/// Returns the number if the option can have it; `None` stands for a number below zero.
fn within(number: Option<u64>, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!(
            "argument must be between {} and {} inclusive",
            range.start(),
            range.end()
        )
    })
}

fn parse_switch(text: &[u8]) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(true),
        b"no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

fn switch(is_on: bool) -> String {
    if is_on { "yes" } else { "no" }.to_owned()
}

pub(crate) const fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// Returns which locks are on the log, as `--durability` names it.
pub(crate) const fn durability(mode: GuardMode) -> &'static str {
    match mode {
        GuardMode::Off | GuardMode::Memory => "none",
        GuardMode::Store(Durability::Long) => "long",
        GuardMode::Store(Durability::Always) => "always",
    }
}

fn set_password(options: &mut Options, text: &[u8]) -> Result<(), String> {
    options.requirepass = str::from_utf8(text)
        .map_err(|_| "argument must be valid UTF-8")?
        .to_owned();
    Ok(())
}

fn set_output_limit(options: &mut Options, text: &[u8]) -> Result<(), String> {
    let normal = output_limit::parse(text)?;
    options.client_output_buffer_limit = normal.unwrap_or(options.client_output_buffer_limit);
    Ok(())
}

fn set_policy(_: &mut Options, text: &[u8]) -> Result<(), String> {
    if text.eq_ignore_ascii_case(b"noeviction") {
        return Ok(());
    }
    Err("argument(s) must be one of the following: noeviction".to_owned())
}

fn set_save(_: &mut Options, text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    Err("Invalid save parameters: the node takes no snapshots while it runs, use \"\"".to_owned())
}

fn set_append_only(_: &mut Options, text: &[u8]) -> Result<(), String> {
    if parse_switch(text)? {
        return Err("the node has no append-only file, use no; --durability sets which locks are written to disk".to_owned());
    }
    Ok(())
}

/// All options, by name.
pub(crate) const OPTIONS: &[ConfigOption] = &[
    ConfigOption {
        name: "appendonly",
        show: |_, _| switch(false),
        change: Change::By(set_append_only),
    },
    ConfigOption {
        name: "bind",
        show: |_, facts| facts.bind.clone(),
        change: Change::OnlyAsIs,
    },
    ConfigOption {
        name: "client-output-buffer-limit",
        show: |options, _| format!("normal {} 0 0", options.client_output_buffer_limit),
        change: Change::By(set_output_limit),
    },
    ConfigOption {
        name: "client-query-buffer-limit",
        show: |options, _| options.client_query_buffer_limit.to_string(),
        change: Change::By(|options, text| {
            options.client_query_buffer_limit = parse_size(text, Options::REQUEST_LEN)?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "databases",
        show: |_, _| DATABASES.to_string(),
        change: Change::Never,
    },
    ConfigOption {
        name: "dir",
        show: |_, facts| facts.dir.clone(),
        change: Change::OnlyAsIs,
    },
    ConfigOption {
        name: "durability",
        show: |_, facts| durability(facts.guard).to_owned(),
        change: Change::Never,
    },
    ConfigOption {
        name: "enable-debug-command",
        show: |options, _| switch(options.enable_debug_command),
        change: Change::Never,
    },
    ConfigOption {
        name: "max-ttl",
        show: |_, facts| match facts.guard {
            GuardMode::Off => "none".to_owned(),
            GuardMode::Memory | GuardMode::Store(_) => format!("{}ms", facts.max_ttl.as_millis()),
        },
        change: Change::Never,
    },
    ConfigOption {
        name: "maxclients",
        show: |options, _| options.maxclients.to_string(),
        change: Change::By(|options, text| {
            options.maxclients = integer_within(text, Options::MAXCLIENTS)?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "maxmemory",
        show: |options, _| options.maxmemory.to_string(),
        change: Change::By(|options, text| {
            options.maxmemory = parse_size(text, Options::MAXMEMORY)?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "maxmemory-policy",
        show: |_, _| "noeviction".to_owned(),
        change: Change::By(set_policy),
    },
    ConfigOption {
        name: "port",
        show: |_, facts| facts.tcp_port.to_string(),
        change: Change::OnlyAsIs,
    },
    ConfigOption {
        name: "proto-max-bulk-len",
        show: |options, _| options.proto_max_bulk_len.to_string(),
        change: Change::By(|options, text| {
            options.proto_max_bulk_len = parse_size(text, Options::REQUEST_LEN)?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "protected-mode",
        show: |options, _| switch(options.protected_mode),
        change: Change::By(|options, text| {
            options.protected_mode = parse_switch(text)?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "requirepass",
        show: |options, _| options.requirepass.clone(),
        change: Change::By(set_password),
    },
    ConfigOption {
        name: "restart-guard",
        show: |_, facts| on_off(facts.guard != GuardMode::Off).to_owned(),
        change: Change::Never,
    },
    ConfigOption {
        name: "save",
        show: |_, _| String::new(),
        change: Change::By(set_save),
    },
    ConfigOption {
        name: "tcp-keepalive",
        show: |options, _| options.tcp_keepalive.to_string(),
        change: Change::By(|options, text| {
            options.tcp_keepalive = integer_within(text, Options::SECONDS)?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "timeout",
        show: |options, _| options.timeout.to_string(),
        change: Change::By(|options, text| {
            options.timeout = integer_within(text, Options::SECONDS)?;
            Ok(())
        }),
    },
];
