//! CONFIG: reads and changes the node's options while it runs.

use locknode_resp::Encoder;

use super::config_option;
use super::context::Context;
use super::info::totals;
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, specs};
use super::subcommand;
use crate::glob;
use crate::options::{Change, ConfigOption, Options};

fn show(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let asked: Vec<_> = args.iter().skip(2).take(PATTERNS_MAX).copied().collect();
    let named = |option: &'static ConfigOption| {
        let name = asked.iter().find_map(|name| name_as_asked(option, name))?;
        Some((option, name))
    };
    let found: Vec<_> = config_option::all().filter_map(named).collect();
    let (options, facts) = (
        context.services.settings.options(),
        context.services.facts(),
    );
    reply.map(found.len());
    for (option, name) in found {
        reply.bulk(name);
        reply.bulk(option.show(&options, &facts).as_bytes());
    }
}

/// Returns the name to reply for an option that the client requested as `asked`; `None` if `asked`
/// names another option. As in Redis, case does not matter, and a literal name is echoed as the
/// client wrote it.
fn name_as_asked<'a>(option: &'static ConfigOption, asked: &'a [u8]) -> Option<&'a [u8]> {
    let name = option.name.as_bytes();
    let is_pattern = asked.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
    if is_pattern && asked.len() <= ASKED_MAX {
        return glob::matches(&asked.to_ascii_lowercase(), name).then_some(name);
    }
    asked.eq_ignore_ascii_case(name).then_some(asked)
}

/// The longest pattern for names of options; to read a longer one, again for each option, takes long.
const ASKED_MAX: usize = 1024;

/// Sets all of the pairs or none: names are checked before the first value, and values are tried on
/// a copy.
fn set(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let pairs = args.get(2..).unwrap_or_default().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return refusal::syntax(reply);
    }
    let mut changes: Vec<(&ConfigOption, &[u8])> = Vec::new();
    for pair in pairs {
        let &[name, value] = pair else { continue };
        let named = |option: &&ConfigOption| option.name.as_bytes().eq_ignore_ascii_case(name);
        let Some(option) = config_option::all().find(named) else {
            let text = "ERR Unknown option or number of arguments for CONFIG SET - '";
            return refusal::quoting(reply, text, name, "'");
        };
        if is_fixed(context, option, value) {
            return refuse(reply, option, "can't set immutable config");
        }
        if changes.iter().any(|(other, _)| other.name == option.name) {
            return refuse(reply, option, "duplicate parameter");
        }
        changes.push((option, value));
    }
    let outcome = context.services.settings.change(|options| {
        let mut changed = options.clone();
        apply(&mut changed, &changes)?;
        *options = changed;
        Ok(())
    });
    match outcome {
        Ok(()) => {
            let now = context.moment.time;
            // The record of the calling client is updated when its batch ends, and it is not idle.
            context.session.client.note(now, 0);
            context.services.clients.enforce_limits(now);
            context.services.obey_options();
            reply.ok();
        }
        Err((option, reason)) => refuse(reply, option, &reason),
    }
}

/// Returns whether the option cannot have that value, however the value is written.
fn is_fixed(context: &Context<'_, '_>, option: &ConfigOption, value: &[u8]) -> bool {
    match option.change {
        Change::Live => false,
        Change::AtStart => true,
        Change::OnlyAsIs => {
            let options = context.services.settings.options();
            option.show(&options, &context.services.facts()).as_bytes() != value
        }
    }
}

fn apply<'o>(
    options: &mut Options,
    changes: &[(&'o ConfigOption, &[u8])],
) -> Result<(), (&'o ConfigOption, String)> {
    for &(option, value) in changes {
        option
            .set(options, value)
            .map_err(|reason| (option, reason))?;
    }
    Ok(())
}

fn refuse(reply: &mut Encoder<'_>, option: &ConfigOption, reason: &str) {
    let name = option.name;
    reply.error(&format!(
        "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    ));
}

fn reset_statistics(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    // CONFIG itself concerns no key, so nothing is locked yet.
    context.space.lock_all();
    let totals = totals(context, &context.services.facts());
    context.services.counters.reset(totals, context.moment.time);
    context.services.timings.reset();
    reply.ok();
}

/// The node never writes its configuration: changes by CONFIG SET last until the process ends.
fn rewrite(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let text = if context.services.facts().config_file.is_empty() {
        "ERR The server is running without a config file"
    } else {
        "ERR the node does not write its configuration file"
    };
    reply.error(text);
}

/// The patterns that one CONFIG GET checks; more are not worth the time. There are fewer options.
const PATTERNS_MAX: usize = 64;

const CONFIG: Spec = Spec::of(
    Call::any(-2, subcommand::run),
    Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING),
    Keys::None,
    "server",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Reads and changes options.
    "config" since "2.0.0", subcommands: SUBCOMMANDS, ..CONFIG;
};

const SUBCOMMANDS: &[Spec] = specs! {
    /// Return the options whose names match a pattern.
    "get" "<pattern> [<pattern> ...]" since "2.0.0", call: Call::any(-3, show), ..CONFIG;

    /// Reset the counters of INFO.
    "resetstat" since "2.0.0", call: exact!(reset_statistics), ..CONFIG;

    /// Refused: the node does not write its configuration file.
    "rewrite" since "2.8.0", call: exact!(rewrite), ..CONFIG;

    /// Change options: all of them or none.
    "set" "<option> <value> [<option> <value> ...]" since "2.0.0",
        call: Call::any(-4, set), ..CONFIG;
};
