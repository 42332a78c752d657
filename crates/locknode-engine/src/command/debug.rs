//! DEBUG, for tests, where `enable-debug-command` allows it.

use std::time::Duration;

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use super::spec::{Flags, Keys, Spec, least, specs};
use super::subcommand::help;

fn debug(
    context: &mut Context<'_, '_>,
    [container, name]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    match (name.to_ascii_lowercase().as_slice(), words) {
        (b"help", []) => help(reply, "debug", TOPICS.iter().copied()),
        (b"sleep", [value]) => {
            sleep(context, value);
            reply.ok();
        }
        (b"set-active-expire", [value]) => {
            context.services.settings.set_sweeping(is_truthy(value));
            reply.ok();
        }
        _ => refusal::subcommand_syntax(reply, container, name),
    }
}

/// An engine cannot sleep. It holds back every command for that time, which looks the same to all
/// clients except the caller, whose reply comes at once; only its next command waits.
fn sleep(context: &Context<'_, '_>, value: &[u8]) {
    // Redis reads anything but a number as zero.
    let seconds = str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or(0.0);
    if seconds > 0.0 {
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        context
            .services
            .pause
            .begin(context.moment.time.saturating_add(time), true);
    }
}

/// Returns whether C's `atoi` reads it as anything but zero.
fn is_truthy(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .any(|&byte| byte != b'0')
}

const TOPICS: [(&str, &str, &str); 2] = [
    (
        "set-active-expire",
        "(0|1)",
        "Stop or start reclaiming expired locks in the background.",
    ),
    ("sleep", "<seconds>", "Hold back all commands for a time."),
];

const DEBUG: Spec = Spec::of(
    least!(debug),
    Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::LOADING)
        .and(Flags::PROTECTED),
    Keys::None,
    "server",
);

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Supports tests.
    "debug" "subcommand [arg ...]" since "1.0.0", ..DEBUG;
};
