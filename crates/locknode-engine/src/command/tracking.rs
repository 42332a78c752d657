//! CLIENT TRACKING and its relatives: invalidations for clients that cache what they read.
//!
//! rueidis and valkey-go turn it on when they connect, and rueidislock waits by it.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::refusal;
use super::spec::{Call, exact, least};
use crate::tracking::{Choice, PrefixRefusal, Tracker, TrackingMode};

fn tracking(
    context: &mut Context<'_, '_>,
    [_, _, word]: &[&[u8]; 3],
    mut options: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let (mut mode, mut prefixes) = (TrackingMode::default(), Vec::new());
    let (mut is_opt_in, mut is_opt_out) = (false, false);
    while let [option, rest @ ..] = options {
        options = match (option.to_ascii_lowercase().as_slice(), rest) {
            (b"redirect", [_, ..]) if mode.redirect != 0 => {
                return reply.error("ERR A client can only redirect to a single other client");
            }
            (b"redirect", [id, rest @ ..]) => {
                let Some(id) = parse_integer(id) else {
                    return reply.error(refusal::NOT_AN_INTEGER);
                };
                let client = u64::try_from(id).ok();
                let client = client.and_then(|id| context.services.clients.find(id));
                let Some(client) = client else {
                    return reply.error("ERR The client ID you want redirect to does not exist");
                };
                mode.redirect = client.id();
                rest
            }
            (b"prefix", [prefix, rest @ ..]) => {
                prefixes.push(*prefix);
                rest
            }
            (b"bcast", _) => set(&mut mode.is_broadcast, rest),
            (b"noloop", _) => set(&mut mode.is_no_loop, rest),
            (b"optin", _) => set(&mut is_opt_in, rest),
            (b"optout", _) => set(&mut is_opt_out, rest),
            _ => return refusal::syntax(reply),
        };
    }
    if word.eq_ignore_ascii_case(b"off") {
        context.session.tracker = None;
        return reply.ok();
    }
    if !word.eq_ignore_ascii_case(b"on") {
        return refusal::syntax(reply);
    }
    mode.choice = match (is_opt_in, is_opt_out) {
        (true, _) => Choice::OptIn,
        (false, true) => Choice::OptOut,
        (false, false) => Choice::All,
    };
    let before = context.session.tracker.as_ref().map(|tracker| tracker.mode);
    if !mode.is_broadcast && !prefixes.is_empty() {
        return reply.error("ERR PREFIX option requires BCAST mode to be enabled");
    }
    if before.is_some_and(|before| before.is_broadcast != mode.is_broadcast) {
        return reply.error(NO_SWITCH_OF_BROADCAST);
    }
    if mode.is_broadcast && (is_opt_in || is_opt_out) {
        return reply.error("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if is_opt_in && is_opt_out {
        return reply.error("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    let is_switch = |before: TrackingMode| {
        let both = [before.choice, mode.choice];
        both.contains(&Choice::OptIn) && both.contains(&Choice::OptOut)
    };
    if before.is_some_and(is_switch) {
        return reply.error(NO_SWITCH_OF_CHOICE);
    }
    let (services, client) = (context.services, &context.session.client);
    let tracking = &services.observers.tracking;
    if let Some(refusal) = tracking.prefix_refusal(client.id(), &prefixes) {
        return refuse_prefix(&refusal, reply);
    }
    Tracker::start(
        &mut context.session.tracker,
        &services.observers,
        client,
        mode,
        &prefixes,
    );
    reply.ok();
}

const fn set<'r, 'a>(flag: &mut bool, rest: &'r [&'a [u8]]) -> &'r [&'a [u8]] {
    *flag = true;
    rest
}

fn refuse_prefix(refusal: &PrefixRefusal, reply: &mut Encoder<'_>) {
    let (prefix, kind, other) = match refusal {
        PrefixRefusal::OverlapsExisting(prefix, other) => (prefix, "an existing", other),
        PrefixRefusal::OverlapsGiven(prefix, other) => (prefix, "another provided", other),
        PrefixRefusal::TooMany => {
            return reply.error("ERR a client can track at most 1000 prefixes");
        }
    };
    let quote = |text| refusal::quoted(text, usize::MAX);
    reply.error_bytes(
        &[
            b"ERR Prefix '",
            quote(prefix),
            b"' overlaps with ",
            kind.as_bytes(),
            b" prefix '",
            quote(other),
            b"'. Prefixes for a single client must not overlap.",
        ]
        .concat(),
    );
}

fn caching(context: &mut Context<'_, '_>, [_, _, word]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    let Some(tracker) = &mut context.session.tracker else {
        return reply.error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode \
             enabled",
        );
    };
    let (choice, refusal) = if word.eq_ignore_ascii_case(b"yes") {
        (
            Choice::OptIn,
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        )
    } else if word.eq_ignore_ascii_case(b"no") {
        (
            Choice::OptOut,
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        )
    } else {
        return refusal::syntax(reply);
    };
    if tracker.mode.choice != choice {
        return reply.error(refusal);
    }
    tracker.is_chosen = true;
    reply.ok();
}

fn redirection(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.integer(redirect(context));
}

/// Returns whom the client's invalidations go to: 0 for itself, -1 without tracking.
fn redirect(context: &Context<'_, '_>) -> i64 {
    let tracker = context.session.tracker.as_ref();
    tracker.map_or(-1, |tracker| {
        i64::try_from(tracker.mode.redirect).unwrap_or(i64::MAX)
    })
}

fn tracking_info(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let id = context.session.client.id();
    let tracking = &context.services.observers.tracking;
    let mut flags = Vec::new();
    match &context.session.tracker {
        None => flags.push("off"),
        Some(tracker) => {
            let (mode, is_chosen) = (tracker.mode, tracker.is_chosen);
            let is_opt_in = mode.choice == Choice::OptIn;
            let is_opt_out = mode.choice == Choice::OptOut;
            let is_broken = tracking.of(id).is_some_and(|tracked| tracked.is_broken);
            let all = [
                ("on", true),
                ("bcast", mode.is_broadcast),
                ("optin", is_opt_in),
                ("caching-yes", is_opt_in && is_chosen),
                ("optout", is_opt_out),
                ("caching-no", is_opt_out && is_chosen),
                ("noloop", mode.is_no_loop),
                ("broken_redirect", is_broken),
            ];
            flags.extend(
                all.iter()
                    .filter(|(_, is_set)| *is_set)
                    .map(|(name, _)| *name),
            );
        }
    }
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect(context));
    reply.bulk(b"prefixes");
    let prefixes = tracking.prefixes_of(id);
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
}

/// CLIENT's subcommands about client-side caching.
pub(super) const CACHING: Call = exact!(caching);
pub(super) const REDIRECTION: Call = exact!(redirection);
pub(super) const TRACKING: Call = least!(tracking);
pub(super) const TRACKING_INFO: Call = exact!(tracking_info);

const NO_SWITCH_OF_BROADCAST: &str = "ERR You can't switch BCAST mode on/off before disabling tracking for this \
    client, and then re-enabling it with a different mode.";

const NO_SWITCH_OF_CHOICE: &str = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this \
    client, and then re-enabling it with a different mode.";
