//! SLOWLOG and LATENCY: which commands took long, and how long commands take.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::{refusal, subcommand};
use crate::timings::Event;

fn slow_commands(
    context: &mut Context<'_, '_>,
    [container, sub]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let count = match words {
        [] => Some(SLOW_SHOWN),
        [count] => parse_integer(count).filter(|count| *count >= -1),
        _ => return refusal::subcommand_syntax(reply, container, sub),
    };
    let Some(count) = count else {
        return reply.error("ERR count should be greater than or equal to -1");
    };
    // -1 is for all.
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let slow = context.services.timings.slow_log.newest(count);
    reply.array(slow.len());
    for command in slow {
        reply.array(6);
        reply.integer(command.id.cast_signed());
        reply.integer(command.unix_seconds.cast_signed());
        reply.integer(i64::try_from(command.took.as_micros()).unwrap_or(i64::MAX));
        reply.array(command.words.len());
        command.words.iter().for_each(|word| reply.bulk(word));
        reply.bulk(command.addr.as_bytes());
        reply.bulk(&command.name);
    }
}

fn slow_count(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let len = context.services.timings.slow_log.len();
    reply.integer(i64::try_from(len).unwrap_or(i64::MAX));
}

fn forget_slow(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    context.services.timings.slow_log.clear();
    reply.ok();
}

fn latest(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let events = context.services.timings.events.all();
    reply.array(events.len());
    for (event, samples) in events {
        let (second, ms) = samples.samples.back().copied().unwrap_or_default();
        reply.array(4);
        reply.bulk(event.name().as_bytes());
        for number in [second, ms, samples.max_ms] {
            reply.integer(number.cast_signed());
        }
    }
}

fn history(context: &mut Context<'_, '_>, [_, _, name]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    let events = context.services.timings.events.all();
    let found = events.into_iter().find(|(event, _)| is_named(*event, name));
    let samples = found
        .map(|(_, samples)| samples.samples)
        .unwrap_or_default();
    reply.array(samples.len());
    for (second, ms) in samples {
        reply.array(2);
        reply.integer(second.cast_signed());
        reply.integer(ms.cast_signed());
    }
}

/// As in Redis, without names all events are forgotten.
fn forget(context: &mut Context<'_, '_>, _: &[&[u8]; 2], names: &[&[u8]], reply: &mut Encoder<'_>) {
    let is_meant = |event| names.is_empty() || names.iter().any(|name| is_named(event, name));
    let forgotten = context.services.timings.events.forget(is_meant);
    reply.integer(i64::try_from(forgotten).unwrap_or(i64::MAX));
}

/// Lists the samples; Redis draws them.
fn graph(context: &mut Context<'_, '_>, [_, _, name]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    let events = context.services.timings.events.all();
    let Some((event, samples)) = events.into_iter().find(|(event, _)| is_named(*event, name))
    else {
        return refusal::quoting(reply, "ERR No samples available for event '", name, "'");
    };
    let (name, max_ms) = (event.name(), samples.max_ms);
    let mut text = format!("{name} - longest {max_ms} ms; seconds since 1970 and ms:\n");
    for (second, ms) in samples.samples {
        text += &format!("{second} {ms}\n");
    }
    reply.verbatim(*b"txt", text.as_bytes());
}

fn doctor(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let services = context.services;
    let threshold_ms = services
        .settings
        .read(|options| options.latency_monitor_threshold);
    let mut text = match threshold_ms {
        0 => "Latency is not watched: CONFIG SET latency-monitor-threshold 100 keeps what takes 100 ms or more.\n"
            .to_owned(),
        ms => format!("What takes {ms} ms or more is kept.\n"),
    };
    let events = services.timings.events.all();
    if events.is_empty() && threshold_ms > 0 {
        text += "Nothing did.\n";
    }
    for (event, samples) in events {
        let (name, count, max_ms) = (event.name(), samples.samples.len(), samples.max_ms);
        let advice = match event {
            Event::Command => {
                "SLOWLOG GET shows which commands; scripts and commands on all keys take longest"
            }
            Event::FastCommand => {
                "such a command takes microseconds: the machine is busy, or swaps"
            }
            Event::DiskSync => "grants of long locks wait for the disk of --dir",
        };
        text += &format!(
            "{name}: {count} seconds with such an event, the longest took {max_ms} ms. {advice}.\n"
        );
    }
    reply.verbatim(*b"txt", text.as_bytes());
}

/// Replies with the commands that were timed, all or those named: how many calls their times are
/// estimated from, and how many took less than each power of two.
fn histogram(
    context: &mut Context<'_, '_>,
    _: &[&[u8]; 2],
    names: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let timings = &context.services.timings;
    let all = context.commands.all().iter().enumerate();
    let wanted = all.filter(|(_, spec)| {
        let is_it = |name: &&[u8]| name.eq_ignore_ascii_case(spec.name.as_bytes());
        names.is_empty() || names.iter().any(is_it)
    });
    let found: Vec<_> = wanted
        .filter_map(|(index, spec)| Some((spec.name, timings.of(index)?)))
        .collect();
    reply.map(found.len());
    for (name, times) in found {
        let count = times.count();
        let mut before = 0;
        let buckets = times
            .below()
            .filter(|(_, below)| *below > std::mem::replace(&mut before, *below));
        let buckets: Vec<_> = buckets.collect();
        reply.bulk(name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(count.cast_signed());
        reply.bulk(b"histogram_usec");
        reply.map(buckets.len());
        for (bound, below) in buckets {
            reply.integer(bound.cast_signed());
            reply.integer(below.cast_signed());
        }
    }
}

fn is_named(event: Event, name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(event.name().as_bytes())
}

/// As in Redis.
const SLOW_SHOWN: i64 = 10;

const SLOWLOG: Spec = Spec {
    since: "2.2.12",
    ..Spec::of(
        Call::any(-2, subcommand::run),
        Flags::ADMIN.and(Flags::LOADING),
        Keys::None,
        "server",
    )
};

const LATENCY: Spec = Spec {
    since: "2.8.13",
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING),
    ..SLOWLOG
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Reports the commands that took longer than slowlog-log-slower-than.
    "slowlog", subcommands: SLOWLOG_COMMANDS, ..SLOWLOG;

    /// Reports how long commands take, and what took longer than latency-monitor-threshold.
    "latency", subcommands: LATENCY_COMMANDS, ..LATENCY;
};

const SLOWLOG_COMMANDS: &[Spec] = specs! {
    /// List the slowest commands, the newest first.
    "get" "[<count>]", call: least!(slow_commands), ..SLOWLOG;

    /// Return the number of entries.
    "len", call: exact!(slow_count), ..SLOWLOG;

    /// Remove all entries.
    "reset", call: exact!(forget_slow), ..SLOWLOG;
};

const LATENCY_COMMANDS: &[Spec] = specs! {
    /// Report in words what was slow, and what to do.
    "doctor", call: exact!(doctor), ..LATENCY;

    /// List the samples of an event as text.
    "graph" "<event>", call: exact!(graph), ..LATENCY;

    /// Report how long commands take, by powers of two.
    "histogram" "[<command> ...]" since "7.0.0", call: least!(histogram), ..LATENCY;

    /// List the samples of an event.
    "history" "<event>", call: exact!(history), ..LATENCY;

    /// List the latest sample of each event.
    "latest", call: exact!(latest), ..LATENCY;

    /// Remove the samples of some events, or of all.
    "reset" "[<event> ...]", call: least!(forget), ..LATENCY;
};
