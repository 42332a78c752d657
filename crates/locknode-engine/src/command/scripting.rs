//! EVAL, EVALSHA and SCRIPT.
//!
//! The release and extend scripts that nearly every lock library sends run as one table operation.
//! Other scripts run with all shards locked, so that a script is atomic, as in Redis.

#[cfg(feature = "compat")]
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use locknode_resp::{Encoder, Protocol, parse_integer};

use super::changes::Journal;
use super::context::{Context, Flow};
use super::denial::{Place, denial};
use super::flush::is_flush_mode;
use super::inputs::{Inputs, split};
use super::journal::{BYTES_MAX, SUSPENDED_BYTES_MAX};
use super::refusal;
use super::script_kill::kill;
use super::script_value::write_value;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::subcommand;
#[cfg(feature = "compat")]
use super::suspended::Suspended;
use crate::command_id::CommandId;
use crate::holds::Hold;
use crate::script::{Answer, Caller, ScriptError, Shape, Unit, Value, Write};
use crate::scripts::{Script, Sha};
use crate::time::Deadline;

#[inline]
fn by_sha(
    context: &mut Context<'_, '_>,
    is_read_only: bool,
    [_, sha, count]: &[&[u8]; 3],
    rest: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let services = context.services;
    // As in Redis, an invalid SHA1 is refused before the number of keys is checked.
    if !Sha::has_length(sha) {
        return reply.error(NO_SCRIPT);
    }
    let Some(call) = split(count, rest, reply) else {
        return;
    };
    if !is_read_only
        && let Some(shape) = services.scripts.known_shape(sha)
        && run_shape(context, shape, &call, reply)
    {
        return;
    }
    by_any_sha(context, is_read_only, sha, &call, reply);
}

/// Runs a script that is not a known one written in lower case, or a call of one that is unusual.
#[inline(never)]
fn by_any_sha(
    context: &mut Context<'_, '_>,
    is_read_only: bool,
    sha: &[u8],
    call: &Inputs<'_, '_>,
    reply: &mut Encoder<'_>,
) {
    let services = context.services;
    if !context.session.has_script()
        && !is_read_only
        && let Some(shape) = services.scripts.shape_by_sha(sha)
        && run_shape(context, &shape, call, reply)
    {
        return;
    }
    let script = services.scripts.by_sha(sha);
    if let Some(script) = native(context, script.as_ref()) {
        return run_timed(context, script, call, is_read_only, reply);
    }
    context.in_turn(|context| {
        if go_on(context, reply) {
            return;
        }
        match &script {
            Some(script) => run_timed(context, script, call, is_read_only, reply),
            None => reply.error(NO_SCRIPT),
        }
    });
}

#[inline]
fn by_text(
    context: &mut Context<'_, '_>,
    is_read_only: bool,
    [_, text, count]: &[&[u8]; 3],
    rest: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let Some(call) = split(count, rest, reply) else {
        return;
    };
    let services = context.services;
    if !context.session.has_script()
        && !is_read_only
        && let Some(shape) = services.scripts.shape_by_text(text)
        && run_shape(context, &shape, &call, reply)
    {
        return;
    }
    let known = services.scripts.find_text(text);
    if let Some(script) = native(context, known.as_ref()) {
        return run_timed(context, script, &call, is_read_only, reply);
    }
    context.in_turn(|context| {
        if go_on(context, reply) {
            return;
        }
        let script = match known {
            Some(script) => Ok(script),
            None => {
                note_steps(context, text.len());
                services.scripts.by_text(text)
            }
        };
        match script {
            Ok(script) => run_timed(context, &script, &call, is_read_only, reply),
            Err(error) => reply.error_bytes(&error),
        }
    });
}

/// Runs a shape as one table operation. Returns `false` when the call is unusual (too few
/// arguments, a TTL that is not a positive number, a key of another type), so that its commands have to run one by one.
#[inline(always)]
fn run_shape(
    context: &mut Context<'_, '_>,
    shape: &Shape,
    call: &Inputs<'_, '_>,
    reply: &mut Encoder<'_>,
) -> bool {
    if !context.session.runs_shapes() {
        return false;
    }
    let (Some(key), Some(token)) = (call.keys.first(), call.argv.first()) else {
        return false;
    };
    match shape.write {
        Write::Delete => {
            let entry = context.lock_entry(key);
            if entry.is_collection() {
                return not_a_string(context);
            }
            let outcome = match entry.value() {
                Some(value) if value == *token => {
                    if !entry.may_remove(reply) {
                        return true;
                    }
                    entry.remove();
                    &shape.held
                }
                Some(_) => entry.foreign_release(&shape.mismatch),
                None => &shape.absent,
            };
            answer(outcome, reply);
        }
        Write::Expire(unit) => {
            let Some(ttl_ms) = call.argv.get(1).and_then(|ttl| ttl_millis(unit, ttl)) else {
                return false;
            };
            let deadline = Deadline::after_millis(context.moment.time, ttl_ms);
            let mut entry = context.lock_entry(key);
            if entry.is_collection() {
                return not_a_string(context);
            }
            let outcome = match entry.value() {
                Some(value) if value == *token => {
                    let Some(permit) = entry.permit(deadline, reply) else {
                        return true;
                    };
                    entry.extend(permit);
                    &shape.held
                }
                Some(_) => entry.foreign_extension(&shape.mismatch),
                None => &shape.absent,
            };
            answer(outcome, reply);
        }
    }
    true
}

/// Leaves a call on a key of another type to the commands of the script, of which one fails.
#[cold]
fn not_a_string(context: &mut Context<'_, '_>) -> bool {
    context.key_hash = None;
    context.space.unlock_one();
    false
}

/// Returns a TTL that is positive and far from overflow.
#[inline]
fn ttl_millis(unit: Unit, ttl: &[u8]) -> Option<i64> {
    let ttl = parse_integer(ttl).filter(|ttl| (1..=PLAIN_TTL_MAX).contains(ttl))?;
    Some(match unit {
        Unit::Millis => ttl,
        Unit::Seconds => ttl * 1000,
    })
}

#[inline]
fn answer(answer: &Answer, reply: &mut Encoder<'_>) {
    match answer {
        Answer::Integer(n) => reply.integer(*n),
        Answer::Nil => reply.null(),
    }
}

/// Returns the script if it takes little time, so that renewals wait for nobody's turn.
fn native<'s>(
    context: &Context<'_, '_>,
    script: Option<&'s Arc<Script>>,
) -> Option<&'s Arc<Script>> {
    script.filter(|script| !context.session.has_script() && script.program.is_native())
}

/// Gives the connection's suspended script, if any, its next turn: the command is the one that began
/// it, whether or not the cache still has the script.
fn go_on(context: &mut Context<'_, '_>, reply: &mut Encoder<'_>) -> bool {
    #[cfg(feature = "compat")]
    if let Some(script) = context.session.script.take()
        && let Ok(suspended) = (script as Box<dyn Any>).downcast::<Suspended>()
    {
        suspended.go_on(context, reply);
        return true;
    }
    let _ = (context, reply);
    false
}

fn run_timed(
    context: &mut Context<'_, '_>,
    script: &Arc<Script>,
    call: &Inputs<'_, '_>,
    is_read_only: bool,
    reply: &mut Encoder<'_>,
) {
    context.timed(script.sha, call.keys, call.argv, |context| {
        run(context, script, call, is_read_only, reply);
    });
}

/// Runs a script. Its changes are committed or undone when it ends: see [`Journal`].
fn run(
    context: &mut Context<'_, '_>,
    script: &Arc<Script>,
    call: &Inputs<'_, '_>,
    is_read_only: bool,
    reply: &mut Encoder<'_>,
) {
    debug_assert!(!context.session.has_script(), "it goes on, or has ended");
    context.space.lock_all();
    // Without a `#!` line, a script is refused only when one of its commands needs memory; with a
    // `#!` line but without allow-oom, it is refused at once.
    if script.needs_memory_first() && context.services.is_out_of_memory(context.space) {
        return reply.error(refusal::OOM);
    }
    let mut work = Work::new(
        context.session.db,
        is_read_only || script.program.flags.no_writes,
    );
    Journal::begin(context);
    let machine = context.services.scripts.machine();
    let result = work.with(context, |caller| {
        let program = &script.program;
        program.run(machine, call.keys, call.argv, caller)
    });
    #[cfg(feature = "compat")]
    if result.as_ref().is_err_and(ScriptError::is_slow) && !work.is_blocked {
        undo(context);
        if Suspended::begin(context, script, call, work) {
            return;
        }
        let why = "it takes long, and it is in a transaction or no thread is left for it";
        let error = ScriptError::stopped(1, why);
        return reply.error_bytes(&error.reply(&script.sha.to_hex()));
    }
    conclude(context, script.sha, &work, result, reply);
}

/// Commits or undoes what a script has done, and replies.
pub(super) fn conclude(
    context: &mut Context<'_, '_>,
    sha: Sha,
    work: &Work,
    result: Result<Value, ScriptError>,
    reply: &mut Encoder<'_>,
) {
    if work.is_blocked {
        return wait(context, reply);
    }
    let result = if work.is_overfull {
        Err(ScriptError::stopped(1, &overfull(work)))
    } else {
        result
    };
    let stays = !result.as_ref().is_err_and(ScriptError::was_stopped);
    if let Err(denial) = Journal::end(context, stays) {
        return denial.refuse(reply);
    }
    match result {
        Ok(value) => write_value(&value, reply),
        Err(error) => reply.error_bytes(&error.reply(&sha.to_hex())),
    }
}

/// Undoes a script that needs a key of another one, which is suspended, and runs it again when that
/// has ended.
#[cold]
pub(super) fn wait(context: &mut Context<'_, '_>, reply: &mut Encoder<'_>) {
    undo(context);
    if context.journal.is_some() {
        return reply.error(refusal::BUSY);
    }
    let (services, now) = (context.services, context.moment.time);
    context.session.begin_waiting(now);
    context.session.wait_for_scripts(&services.holds, None, now);
    context.flow = Flow::Paused;
}

/// Undoes all of a script.
fn undo(context: &mut Context<'_, '_>) {
    // Only a commit may be refused.
    let _ = Journal::end(context, false);
}

/// Yields to other connections when this one's scripts have taken long.
pub(super) fn note_steps(context: &mut Context<'_, '_>, steps: usize) {
    Journal::note_steps(context, steps);
    let session = &mut *context.session;
    session.script_steps = session.script_steps.saturating_add(steps);
    if session.script_steps >= YIELD_STEPS {
        session.script_steps = 0;
        if context.flow == Flow::Continue {
            context.flow = Flow::Yield;
        }
    }
}

/// What a script has done so far.
#[derive(Debug)]
pub(super) struct Work {
    /// The database that it has selected. As in Redis, SELECT in a script is for the rest of it.
    db: u8,
    is_read_only: bool,
    /// Whether the script has changed more than the journal holds.
    is_overfull: bool,
    /// Whether it needs a key of a suspended script.
    pub(super) is_blocked: bool,
    /// The keys that it keeps from others, once it is suspended.
    pub(super) hold: Option<Arc<Hold>>,
}

impl Work {
    fn new(db: u8, is_read_only: bool) -> Self {
        Self {
            db,
            is_read_only,
            is_overfull: false,
            is_blocked: false,
            hold: None,
        }
    }

    /// Begins again, suspended.
    #[cfg(feature = "compat")]
    pub(super) fn restart(self, db: u8, hold: Arc<Hold>) -> Self {
        Self {
            hold: Some(hold),
            ..Self::new(db, self.is_read_only)
        }
    }

    /// Runs commands of the script, whose journal is the context's.
    pub(super) fn with<T>(
        &mut self,
        context: &mut Context<'_, '_>,
        run: impl FnOnce(&mut ScriptCaller<'_, '_, '_>) -> T,
    ) -> T {
        let db = std::mem::replace(&mut context.session.db, self.db);
        let result = run(&mut ScriptCaller {
            context,
            work: self,
        });
        self.db = std::mem::replace(&mut context.session.db, db);
        result
    }
}

fn overfull(work: &Work) -> String {
    let max = match work.hold {
        Some(_) => SUSPENDED_BYTES_MAX,
        None => BYTES_MAX,
    };
    format!(
        "it changed more than {max} bytes of keys and tokens, or its keyspace events are sent more \
         than 200000 times"
    )
}

/// Commands as a script calls them.
pub(super) struct ScriptCaller<'x, 'c, 'k> {
    context: &'x mut Context<'c, 'k>,
    work: &'x mut Work,
}

impl Caller for ScriptCaller<'_, '_, '_> {
    fn call(&mut self, args: &[&[u8]], protocol: Protocol, reply: &mut Vec<u8>) {
        let commands = self.context.commands;
        let mut encoder = Encoder::new(reply, protocol);
        let found = args.first().and_then(|name| commands.find(name));
        let Some((id, spec, row)) = found.and_then(|(id, spec)| Some((id, spec, spec.row(args)?)))
        else {
            return encoder.error("ERR Unknown Redis command called from script");
        };
        if let Some(refusal) = self.refusal((id, spec), row, args) {
            return encoder.error(&refusal);
        }
        if self.context.services.holds.are_there() && !self.take_keys(spec, args) {
            return encoder.error(refusal::BUSY);
        }
        self.work.is_overfull |= !Journal::run(self.context, spec, args, &mut encoder);
        if self.work.is_overfull {
            encoder.error(&format!("UNSUPPORTED {}", overfull(self.work)));
        }
    }

    fn note_steps(&mut self, steps: usize) {
        note_steps(self.context, steps);
    }
}

impl ScriptCaller<'_, '_, '_> {
    /// Returns why a command is not executed, if it is not.
    fn refusal(
        &self,
        (id, container): (CommandId, &Spec),
        spec: &Spec,
        args: &[&[u8]],
    ) -> Option<Cow<'static, str>> {
        let text = if !spec.accepts(args.len()) {
            "ERR Wrong number of args calling Redis command from script"
        } else if spec.flags.has(Flags::NOSCRIPT) {
            "ERR This Redis command is not allowed from script"
        } else if let Some(text) = denial(
            self.context.services,
            self.context.session,
            Place::Script,
            (id, container),
            args,
        ) {
            return Some(text.into_string().into());
        } else if self.work.is_read_only && spec.flags.has_any(Flags::WRITE.and(Flags::MAY_WRITE)) {
            "ERR Write commands are not allowed from read-only scripts."
        } else if spec.keys == Keys::All && spec.flags.has(Flags::WRITE) {
            "UNSUPPORTED a command that removes all keys in a script: send it outside"
        } else if spec.flags.has(Flags::DENYOOM)
            // A script that has begun to write must end: it may be releasing a lock. One that takes
            // long could fill the memory.
            && (self.work.hold.is_some() || !Journal::has_begun(self.context))
            && self.context.services.is_out_of_memory(self.context.space)
        {
            refusal::OOM
        } else {
            return None;
        };
        Some(text.into())
    }

    /// Keeps the keys of a suspended script from others; returns `false` when another one has them.
    #[cold]
    fn take_keys(&mut self, spec: &Spec, args: &[&[u8]]) -> bool {
        let (client, db) = (self.context.session.client.id, self.context.session.db);
        let holds = &self.context.services.holds;
        self.work.is_blocked |= spec.keys.of(args).any(|key| holds.has(client, db, key));
        if let Some(hold) = &self.work.hold {
            spec.keys.of(args).for_each(|key| hold.take(db, key));
            if spec.flags.has(Flags::WRITE) {
                hold.note_write();
            }
        }
        !self.work.is_blocked
    }
}

fn load(context: &mut Context<'_, '_>, [_, _, text]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    note_steps(context, text.len());
    match context.services.scripts.load(text) {
        Ok(sha) => reply.bulk(&sha.to_hex()),
        Err(error) => reply.error_bytes(&error),
    }
}

fn exists(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let shas = args.get(2..).unwrap_or_default();
    reply.array(shas.len());
    for sha in shas {
        let script = context.services.scripts.by_sha(sha);
        reply.integer(i64::from(script.is_some()));
    }
}

fn flush(context: &mut Context<'_, '_>, _: &[&[u8]; 2], words: &[&[u8]], reply: &mut Encoder<'_>) {
    if !is_flush_mode(words) {
        return reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    }
    context.services.scripts.flush();
    reply.ok();
}

fn debug(_: &mut Context<'_, '_>, [_, _, mode]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    match mode.to_ascii_lowercase().as_slice() {
        b"no" => reply.ok(),
        b"yes" | b"sync" => refusal::unsupported(reply, "the script debugger"),
        _ => reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO"),
    }
}

/// After this many instructions of its scripts a connection yields to others: a millisecond or less.
const YIELD_STEPS: usize = 10_000;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// TTLs up to here, in either unit, take the fast path: 2^43 ms is 278 years.
const PLAIN_TTL_MAX: i64 = 1 << 43;

const SCRIPT: Spec = Spec::of(
    Call::any(-2, subcommand::run),
    Flags::NOSCRIPT.and(Flags::LOADING),
    Keys::None,
    "scripting",
);

/// Its functions lock the keys.
const EVAL: Spec = Spec {
    flags: Flags::NOSCRIPT.and(Flags::MAY_WRITE).and(Flags::QUICK),
    keys: Keys::Own,
    ..SCRIPT
};

const EVAL_RO: Spec = Spec {
    flags: Flags::NOSCRIPT.and(Flags::READONLY).and(Flags::QUICK),
    ..EVAL
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Runs a lock script from its text.
    "eval" "script numkeys [key ...] [arg ...]" since "2.6.0", call: least!(by_text, false), ..EVAL;

    /// Runs a lock script by its SHA1.
    "evalsha" "sha1 numkeys [key ...] [arg ...]" since "2.6.0", call: least!(by_sha, false), ..EVAL;

    /// Runs a read-only script from its text.
    "eval_ro" "script numkeys [key ...] [arg ...]" since "7.0.0",
        call: least!(by_text, true), ..EVAL_RO;

    /// Runs a read-only script by its SHA1.
    "evalsha_ro" "sha1 numkeys [key ...] [arg ...]" since "7.0.0",
        call: least!(by_sha, true), ..EVAL_RO;

    /// Loads, finds and removes scripts.
    "script" since "2.6.0", subcommands: SUBCOMMANDS, ..SCRIPT;
};

const SUBCOMMANDS: &[Spec] = specs! {
    /// Refused except for NO: there is no debugger.
    "debug" "(YES|SYNC|NO)" since "3.2.0", call: exact!(debug), ..SCRIPT;

    /// Return which scripts the node can run by SHA1.
    "exists" "<sha1> [<sha1> ...]" since "2.6.0", call: Call::any(-3, exists), ..SCRIPT;

    /// Remove the scripts that clients sent. Scripts of known lock libraries stay.
    "flush" "[ASYNC|SYNC]" since "2.6.0", call: least!(flush), ..SCRIPT;

    /// End a script that takes long and has not written.
    "kill" since "2.6.0", call: exact!(kill), ..SCRIPT;

    /// Store a script and return its SHA1.
    "load" "<script>" since "2.6.0", call: exact!(load), ..SCRIPT;
};
