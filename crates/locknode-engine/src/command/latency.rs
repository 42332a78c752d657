//! LATENCY: always empty. The node does not sample its own latency; measure it where it counts, at the client.

use locknode_resp::Encoder;

use super::refusal;
use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, Subcommand};
use crate::context::Context;

fn latency(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    LATENCY.run(context, args, reply);
}

fn events(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.array(0);
}

fn histogram(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.map(0);
}

fn reset(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.integer(0);
}

fn graph(_: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let event = args.get(2).copied().unwrap_or_default();
    refusal::quoting(reply, "ERR No samples available for event '", event, "'");
}

fn doctor(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.verbatim(*b"txt", b"This node does not sample its latency.\n");
}

/// LATENCY and its subcommands.
pub(crate) const LATENCY: Container = Container {
    name: "latency",
    subcommands: &[
        Subcommand {
            name: "doctor",
            arity: 2,
            run: doctor,
            syntax: "",
            summary: "Tell that latency is not sampled.",
            since: "2.8.13",
        },
        Subcommand {
            name: "graph",
            arity: 3,
            run: graph,
            syntax: "<event>",
            summary: "Refused: there are no samples.",
            since: "2.8.13",
        },
        Subcommand {
            name: "histogram",
            arity: -2,
            run: histogram,
            syntax: "[<command> ...]",
            summary: "Tell the latencies of commands: none is timed.",
            since: "7.0.0",
        },
        Subcommand {
            name: "history",
            arity: 3,
            run: events,
            syntax: "<event>",
            summary: "Tell the samples of an event: there are none.",
            since: "2.8.13",
        },
        Subcommand {
            name: "latest",
            arity: 2,
            run: events,
            syntax: "",
            summary: "Tell the latest samples: there are none.",
            since: "2.8.13",
        },
        Subcommand {
            name: "reset",
            arity: -2,
            run: reset,
            syntax: "[<event> ...]",
            summary: "Forget samples: there are none.",
            since: "2.8.13",
        },
    ],
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[Spec {
    name: LATENCY.name,
    syntax: "",
    arity: -2,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING),
    keys: Keys::None,
    run: latency,
    summary: "Answers that there are no latency samples; none are taken.",
    group: "server",
    since: "2.8.13",
}];
