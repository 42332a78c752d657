//! CLUSTER and its relatives: what a Redis without cluster mode answers. Clients ask to find that out.

use locknode_resp::Encoder;

use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, Subcommand};
use crate::context::Context;

fn cluster(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    // Even HELP is refused without cluster mode.
    match args {
        [_, sub] if sub.eq_ignore_ascii_case(b"help") => disabled(context, args, reply),
        _ => CLUSTER.run(context, args, reply),
    }
}

fn disabled(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.error("ERR This instance has cluster support disabled");
}

const fn refused(name: &'static str, arity: i32, since: &'static str) -> Subcommand {
    Subcommand {
        name,
        arity,
        run: disabled,
        syntax: "",
        summary: SUMMARY,
        since,
    }
}

const SUMMARY: &str = "Refused: there is no cluster mode.";

/// CLUSTER and those of its subcommands that clients send.
pub(crate) const CLUSTER: Container = Container {
    name: "cluster",
    subcommands: &[
        refused("countkeysinslot", 3, "3.0.0"),
        refused("getkeysinslot", 4, "3.0.0"),
        refused("info", 2, "3.0.0"),
        refused("keyslot", 3, "3.0.0"),
        refused("links", 2, "7.0.0"),
        refused("meet", -4, "3.0.0"),
        refused("myid", 2, "3.0.0"),
        refused("myshardid", 2, "7.2.0"),
        refused("nodes", 2, "3.0.0"),
        refused("replicas", 3, "5.0.0"),
        refused("reset", -2, "3.0.0"),
        refused("shards", 2, "7.0.0"),
        refused("slaves", 3, "3.0.0"),
        refused("slots", 2, "3.0.0"),
    ],
};

const READONLY: Spec = Spec {
    name: "readonly",
    syntax: "",
    arity: 1,
    flags: Flags::FAST.and(Flags::LOADING),
    keys: Keys::None,
    run: disabled,
    summary: SUMMARY,
    group: "connection",
    since: "3.0.0",
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = &[
    READONLY,
    Spec {
        name: "readwrite",
        syntax: "",
        ..READONLY
    },
    Spec {
        name: "asking",
        syntax: "",
        flags: Flags::FAST.and(Flags::LOADING),
        ..READONLY
    },
    Spec {
        name: CLUSTER.name,
        syntax: "",
        arity: -2,
        flags: Flags::LOADING,
        run: cluster,
        group: "server",
        ..READONLY
    },
];
