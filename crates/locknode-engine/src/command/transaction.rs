//! Transactions: MULTI, EXEC, DISCARD, WATCH and UNWATCH.
//!
//! ```text
//!  MULTI --> Transaction in the session <-- each command is checked and queued
//!  EXEC  --> all shards locked, watched keys unchanged? --> each command in turn --> Journal::end
//! ```
//!
//! Every driver's pipeline may be a transaction; StackExchange.Redis, redis-plus-plus, suo, mlanett
//! and dramatiq lock with WATCH.

use std::sync::atomic::Ordering;

use locknode_resp::Encoder;

use super::changes::Journal;
use super::context::Context;
use super::denial::{Place, denial};
use super::refusal;
use super::scripting::note_steps;
use super::spec::{Call, Flags, Keys, Spec, exact, specs};
use crate::command_id::CommandId;
use crate::guard::Denial;
use crate::transaction::Transaction;
use crate::watches::{WATCH_MAX, Watching};

fn multi(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    if context.session.transaction.is_some() {
        return reply.error("ERR MULTI calls can not be nested");
    }
    context.session.set_transaction(Some(Box::default()));
    reply.ok();
}

fn exec(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    let Some(transaction) = context.session.set_transaction(None) else {
        return reply.error("ERR EXEC without MULTI");
    };
    context.space.lock_all();
    let needs_memory = transaction.flags().has(Flags::DENYOOM);
    let watching = context.session.watching.take();
    let is_touched = watching.is_some_and(|watching| is_touched(context, &watching));
    if needs_memory && context.services.is_out_of_memory(context.space) {
        reply.error(&format!("{}{}", refusal::ABORTED_BECAUSE, refusal::OOM));
    } else if transaction.is_aborted() {
        reply.error("EXECABORT Transaction discarded because of previous errors.");
    } else if is_touched {
        reply.null_array();
    } else {
        run(context, &transaction, reply);
    }
}

/// Returns whether a watched key has changed or expired.
fn is_touched(context: &mut Context<'_, '_>, watching: &Watching) -> bool {
    let session_db = context.session.db;
    let has_come_or_gone = watching.keys().iter().any(|watched| {
        context.session.db = watched.db;
        context.entry(&watched.key).is_live() != watched.existed
    });
    context.session.db = session_db;
    has_come_or_gone || context.session.client.is_touched.load(Ordering::Relaxed)
}

/// Runs the commands of a transaction; all shards are locked.
fn run(context: &mut Context<'_, '_>, transaction: &Transaction, reply: &mut Encoder<'_>) {
    let start = reply.out_len();
    let mut one = Vec::new();
    reply.array(transaction.len());
    Journal::begin(context);
    let done = transaction.try_each(|id, args| {
        let Some(&spec) = context.commands.all().get(id.index()) else {
            return Ok(());
        };
        if matches!(spec.keys, Keys::Own | Keys::All) && Journal::steps(context) > STEPS_MAX {
            return Err(Stop::TooSlow);
        }
        if spec.keys == Keys::All && spec.flags.has(Flags::WRITE) {
            // Clearing a database cannot be undone, so what came before is committed.
            Journal::end(context, true).map_err(Stop::Denied)?;
            Journal::begin(context);
        }
        one.clear();
        run_one(context, (id, spec), args, &mut one)?;
        reply.raw(&one);
        let len_max = context.services.settings.output_max().min(REPLY_LEN_MAX);
        let is_too_long = reply.out_len() - start > len_max;
        if is_too_long {
            Err(Stop::TooLong)
        } else {
            Ok(())
        }
    });
    note_steps(context, transaction.len() * COMMAND_STEPS);
    let ended = Journal::end(context, done.is_ok());
    let Err(stop) = done.and(ended.map_err(Stop::Denied)) else {
        return;
    };
    reply.truncate(start);
    match stop {
        Stop::Denied(denial) => denial.refuse(reply),
        Stop::Overfull => refusal::unsupported(reply, OVERFULL),
        Stop::TooSlow => refusal::unsupported(reply, TOO_SLOW),
        Stop::TooLong => refusal::reply_too_long(reply, start),
    }
}

/// Runs one command of a transaction, as Batch::run does for others.
fn run_one(
    context: &mut Context<'_, '_>,
    (id, spec): (CommandId, &'static Spec),
    args: &[&[u8]],
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    // HELLO may have changed the protocol.
    let mut reply = Encoder::new(out, context.session.protocol);
    if spec.keys == Keys::All {
        let key_count = context.space.key_count(context.session.db);
        Journal::note_steps(
            context,
            usize::try_from(key_count / KEYS_PER_STEP).unwrap_or(0),
        );
    }
    let (services, session) = (context.services, &*context.session);
    if let Some(text) = denial(services, session, Place::Exec, (id, spec), args) {
        reply.error(&text);
    } else if !Journal::run(context, spec, args, &mut reply) {
        return Err(Stop::Overfull);
    }
    if context.services.observers.are_there() {
        context.show(spec, args);
    }
    let has_failed = out.first() == Some(&b'-');
    let counters = &context.services.counters;
    counters.note_call(id, has_failed);
    if has_failed {
        counters.note_error(out);
    }
    Ok(())
}

/// Why a transaction was stopped and undone.
enum Stop {
    /// The restart guard refuses what it would leave.
    Denied(Denial),
    /// It changes more than a journal holds.
    Overfull,
    /// Its reply is too long.
    TooLong,
    /// It has more scripts or searches of all keys than other connections can wait for.
    TooSlow,
}

fn discard(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    if context.session.transaction.is_none() {
        return reply.error("ERR DISCARD without MULTI");
    }
    context.session.discard();
    reply.ok();
}

fn watch(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    if context.session.transaction.is_some() {
        return reply.error("ERR WATCH inside MULTI is not allowed");
    }
    let keys = args.get(1..).unwrap_or_default();
    if keys.iter().map(|key| key.len()).sum::<usize>() > WATCH_MAX {
        return too_many_watched(reply);
    }
    let existed: Vec<bool> = keys
        .iter()
        .map(|key| context.entry(key).is_live())
        .collect();
    // A key that had expired is gone now, which is not a change of what is watched from here on.
    context.report_changes("watch");
    let observers = &context.services.observers;
    let session = &mut *context.session;
    let (db, client) = (session.db, &session.client);
    let watching = session
        .watching
        .get_or_insert_with(|| Box::new(Watching::new(observers, client)));
    for (key, existed) in keys.iter().zip(existed) {
        if !watching.add(db, key, existed) {
            return too_many_watched(reply);
        }
    }
    reply.ok();
}

fn too_many_watched(reply: &mut Encoder<'_>) {
    reply.error(&format!(
        "ERR a connection watches at most {WATCH_MAX} bytes of keys"
    ));
}

fn unwatch(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    context.session.watching = None;
    reply.ok();
}

const OVERFULL: &str = "a transaction that changes more than 16777216 bytes of keys and values, or whose \
    keyspace events are sent more than 200000 times: split it";

const TOO_SLOW: &str = "a transaction with so many long scripts or searches of all keys: \
    send some of them outside of it";

/// No script and no search begins after this many instructions: with scripts that their limits stop,
/// that is 20 ms.
const STEPS_MAX: usize = 40_000;

/// The longest reply of a transaction, which is in memory before any of it is sent.
const REPLY_LEN_MAX: usize = 16 << 20;

/// How many keys are looked at in the time of an instruction of a script, roughly.
const KEYS_PER_STEP: u64 = 4;

/// What a command counts as, in instructions of a script: see [`note_steps`].
const COMMAND_STEPS: usize = 10;

const TRANSACTION: Spec = Spec {
    since: "1.2.0",
    ..Spec::of(
        exact!(multi),
        Flags::FAST
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::TRANSACTION),
        Keys::None,
        "transactions",
    )
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Begins a transaction: what follows is queued until EXEC.
    "multi", ..TRANSACTION;

    /// Runs the queued commands as one, unless a watched key has changed.
    "exec", call: exact!(exec),
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::TRANSACTION), ..TRANSACTION;

    /// Forgets the queued commands and the watched keys.
    "discard" since "2.0.0", call: exact!(discard), ..TRANSACTION;

    /// Watches keys: the next EXEC runs nothing if one of them changes before it.
    "watch" "key [key ...]" since "2.2.0",
        call: Call::any(-2, watch), keys: Keys::Each { step: 1 }, ..TRANSACTION;

    /// Forgets the watched keys.
    "unwatch" since "2.2.0",
        call: exact!(unwatch),
        flags: Flags::FAST.and(Flags::NOSCRIPT).and(Flags::LOADING), ..TRANSACTION;
};
