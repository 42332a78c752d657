//! The options that CONFIG knows: how each is shown and how each is set.

use super::byte_size;
use super::integer;
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
    /// Its value as CONFIG GET tells it.
    pub(crate) show: fn(&Options, &HostFacts) -> String,
    pub(crate) change: Change,
}

/// How CONFIG SET changes an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Not at all: it is given at the start.
    Never,
    /// Not at all, though Redis can; setting it to what it is succeeds.
    OnlyAsIs,
    /// By a text; the error says what is wrong with it.
    By(fn(&mut Options, &[u8]) -> Result<(), String>),
}

/// The option of that name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static ConfigOption> {
    OPTIONS
        .iter()
        .find(|option| option.name.as_bytes().eq_ignore_ascii_case(name))
}

fn parse_integer(text: &[u8], least: i64, most: i64) -> Result<u64, String> {
    let number = integer::parse(text).ok_or("argument couldn't be parsed into an integer")?;
    let outside = || format!("argument must be between {least} and {most} inclusive");
    let inside = (least..=most)
        .contains(&number)
        .then_some(number)
        .ok_or_else(outside)?;
    u64::try_from(inside).map_err(|_| outside())
}

fn parse_size(text: &[u8], least: u64, most: u64) -> Result<u64, String> {
    let size = byte_size::parse(text).ok_or("argument must be a memory value")?;
    let outside = || format!("argument must be between {least} and {most} inclusive");
    (least..=most)
        .contains(&size)
        .then_some(size)
        .ok_or_else(outside)
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

/// Which locks are on the log, as `--durability` names it.
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

/// Groups of `class hard soft seconds`. Only the hard limit of class `normal` means something here: there are no
/// replicas and no subscribers, and replies are not kept long enough for a soft limit.
fn set_output_limit(options: &mut Options, text: &[u8]) -> Result<(), String> {
    let words: Vec<&[u8]> = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let groups = words.chunks_exact(4);
    if !groups.remainder().is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut normal = None;
    for group in groups {
        let &[class, hard, soft, seconds] = group else {
            continue;
        };
        let is_normal = class.eq_ignore_ascii_case(b"normal");
        let others: [&[u8]; 3] = [b"slave", b"replica", b"pubsub"];
        if !is_normal && !others.iter().any(|other| class.eq_ignore_ascii_case(other)) {
            return Err("Invalid client class specified in buffer limit configuration.".to_owned());
        }
        let limits = (
            byte_size::parse(hard),
            byte_size::parse(soft),
            integer::parse(seconds),
        );
        let (Some(hard), Some(soft), Some(seconds @ 0..)) = limits else {
            let text = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
            return Err(text.to_owned());
        };
        if is_normal && soft != 0 && seconds != 0 {
            return Err("Soft limits are not supported, give 0 0.".to_owned());
        }
        if is_normal {
            normal = Some(hard);
        }
    }
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
    Err("Invalid save parameters: the node takes no snapshots while it runs, give \"\"".to_owned())
}

fn set_append_only(_: &mut Options, text: &[u8]) -> Result<(), String> {
    if parse_switch(text)? {
        return Err("the node has no append-only file, give no; locks are written to disk with --durability".to_owned());
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
            options.client_query_buffer_limit = parse_size(text, SIZE_MIN, SIZE_MAX)?;
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
            options.maxclients = parse_integer(text, 1, i64::from(u32::MAX))?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "maxmemory",
        show: |options, _| options.maxmemory.to_string(),
        change: Change::By(|options, text| {
            options.maxmemory = parse_size(text, 0, u64::MAX)?;
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
            options.proto_max_bulk_len = parse_size(text, SIZE_MIN, SIZE_MAX)?;
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
            options.tcp_keepalive = parse_integer(text, 0, i64::from(i32::MAX))?;
            Ok(())
        }),
    },
    ConfigOption {
        name: "timeout",
        show: |options, _| options.timeout.to_string(),
        change: Change::By(|options, text| {
            options.timeout = parse_integer(text, 0, i64::from(i32::MAX))?;
            Ok(())
        }),
    },
];

/// Redis' bounds of `proto-max-bulk-len` and `client-query-buffer-limit`: less than 1 MiB would refuse ordinary
/// requests.
const SIZE_MIN: u64 = 1 << 20;
const SIZE_MAX: u64 = i64::MAX.cast_unsigned();
