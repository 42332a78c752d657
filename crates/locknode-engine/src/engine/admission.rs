//! The checks before a command runs, in Redis's order, and the refusals.

use std::time::Duration;

use locknode_resp::Encoder;

use super::Engine;
use crate::command::denial::{Place, denial};
#[cfg(feature = "compat")]
use crate::command::pubsub::{is_answered_by_pushes, is_for_subscribers};
#[cfg(feature = "compat")]
use crate::command::subcommand::HELP;
use crate::command::{MORE_ARGS_MAX, Spec, refusal};
use crate::command_id::CommandId;
use crate::flags::Flags;
use crate::session::{ReplyMode, Session};
use crate::time::Time;

/// Why a command was not run.
#[derive(Debug)]
pub(super) enum Refusal {
    Unknown,
    Arity(CommandId, &'static Spec),
    Protected(CommandId),
    Unauthenticated(CommandId),
    NotInTransaction(CommandId),
    /// The user may not do it, in words.
    NoPermission(CommandId, Box<str>),
    Queued(CommandId, &'static Spec),
    #[cfg(feature = "compat")]
    Subscribed(CommandId, &'static Spec),
    Quarantined(CommandId, Duration),
    Paused,
}

impl Engine {
    /// Makes every check that precedes the command's keys, in Redis's order.
    #[inline]
    pub(super) fn admit(
        &self,
        session: &mut Session,
        name: &[u8],
        args: &[&[u8]],
        now: Time,
    ) -> Result<(CommandId, &'static Spec), Refusal> {
        let (id, spec) = self.commands.find(name).ok_or(Refusal::Unknown)?;
        if !spec.accepts(args.len()) {
            return Err(Refusal::Arity(id, spec));
        }
        if spec.flags.has(Flags::PROTECTED)
            && !self.services.settings.read(|o| o.enable_debug_command)
        {
            return Err(Refusal::Protected(id));
        }
        if session.seen_users != self.services.users.version() {
            self.look_at_user(session, id, spec.flags)?;
        }
        if session.is_special {
            self.admit_special(session, (id, spec), args, now)?;
        } else {
            self.admit_now(id, spec.flags, now)?;
        }
        Ok((id, spec))
    }

    /// Finds out whether a connection is welcome, and what its user may do, after users have changed or
    /// before it has logged in.
    #[cold]
    fn look_at_user(
        &self,
        session: &mut Session,
        id: CommandId,
        flags: Flags,
    ) -> Result<(), Refusal> {
        let version = self.services.users.version();
        if !session.is_authenticated && self.services.users.needs_login() {
            if flags.has(Flags::NO_AUTH) {
                return Ok(());
            }
            return Err(Refusal::Unauthenticated(id));
        }
        session.look_at_user();
        session.seen_users = version;
        Ok(())
    }

    /// Makes the checks that depend on the state of the node.
    #[inline]
    fn admit_now(&self, id: CommandId, flags: Flags, now: Time) -> Result<(), Refusal> {
        if let Some(left) = self.services.guard.quarantine_left(now)
            && !flags.has(Flags::LOADING)
        {
            return Err(Refusal::Quarantined(id, left));
        }
        if self.services.pause.holds(now, flags) {
            return Err(Refusal::Paused);
        }
        Ok(())
    }

    /// Makes the checks for a connection that is in a special state, and those of
    /// [`Engine::admit_now`] at their place among them.
    #[cold]
    fn admit_special(
        &self,
        session: &mut Session,
        (id, spec): (CommandId, &'static Spec),
        args: &[&[u8]],
        now: Time,
    ) -> Result<(), Refusal> {
        if session.logins.wait_end(now).is_some() {
            return Err(Refusal::Paused);
        }
        session.logins.settle(now);
        session.note_state();
        if session.transaction.is_some() && spec.flags.has(Flags::NO_MULTI) {
            return Err(Refusal::NotInTransaction(id));
        }
        if let Some(text) = denial(&self.services, session, Place::Alone, (id, spec), args) {
            return Err(Refusal::NoPermission(id, text));
        }
        #[cfg(feature = "compat")]
        if session.is_only_subscriber() && !is_for_subscribers(spec) {
            return Err(Refusal::Subscribed(id, spec));
        }
        let Some(transaction) = &session.transaction else {
            return self.admit_now(id, spec.flags, now);
        };
        // A pause of writes holds back an EXEC of writes.
        let flags = match spec.name {
            "exec" => spec.flags.and(transaction.flags()),
            _ => spec.flags,
        };
        self.admit_now(id, flags, now)?;
        if spec.flags.has(Flags::TRANSACTION) {
            Ok(())
        } else {
            Err(Refusal::Queued(id, spec))
        }
    }

    /// Drops replies that the client does not want: all after CLIENT REPLY OFF, the next one after
    /// SKIP.
    #[cold]
    pub(super) fn drop_unwanted(
        &self,
        before: ReplyMode,
        session: &mut Session,
        name: &[u8],
        start: usize,
        out: &mut Vec<u8>,
    ) {
        match (before, session.reply_mode) {
            // CLIENT REPLY ON does reply, and so does RESET, unless it was to be skipped.
            (ReplyMode::SkipNext, ReplyMode::On) if name.eq_ignore_ascii_case(b"reset") => {}
            (_, ReplyMode::On) => return,
            (_, ReplyMode::Armed) => session.reply_mode = ReplyMode::SkipNext,
            (ReplyMode::SkipNext, ReplyMode::SkipNext) => session.reply_mode = ReplyMode::On,
            (_, ReplyMode::Off | ReplyMode::SkipNext) => {}
        }
        #[cfg(feature = "compat")]
        if let Some((_, spec)) = self.commands.find(name)
            && is_answered_by_pushes(spec)
            && session.transaction.is_none()
        {
            return;
        }
        let _ = name;
        out.truncate(start);
    }

    #[cold]
    pub(super) fn refuse(&self, refusal: &Refusal, args: &[&[u8]], reply: &mut Encoder<'_>) {
        let id = match refusal {
            Refusal::Paused | Refusal::Queued(..) => return,
            Refusal::Unknown => return refusal::unknown_command(reply, args),
            Refusal::Arity(id, spec) if spec.is_too_long(args.len()) => {
                too_many_arguments(reply, spec.name);
                id
            }
            Refusal::Arity(id, spec) => {
                refusal::wrong_arity(reply, spec.name);
                id
            }
            Refusal::Protected(id) => {
                reply.error(refusal::DEBUG_DISABLED);
                id
            }
            Refusal::Unauthenticated(id) => {
                reply.error(refusal::NO_AUTH);
                id
            }
            Refusal::NotInTransaction(id) => {
                reply.error("ERR Command not allowed inside a transaction");
                id
            }
            Refusal::NoPermission(id, text) => {
                reply.error(text);
                id
            }
            #[cfg(feature = "compat")]
            Refusal::Subscribed(id, spec) => {
                only_subscriber(reply, spec, args);
                id
            }
            Refusal::Quarantined(id, left) => {
                refusal::quarantined(reply, *left);
                id
            }
        };
        self.services.counters.note_rejected(*id);
    }
}

/// Refuses a command of a RESP2 connection that is subscribed to something.
#[cfg(feature = "compat")]
#[cold]
fn only_subscriber(reply: &mut Encoder<'_>, spec: &Spec, args: &[&[u8]]) {
    let word = args.get(1).copied().unwrap_or_default();
    let name = match spec.subcommand(word) {
        _ if spec.subcommands.is_empty() => spec.name.to_owned(),
        Some((_, subcommand)) if subcommand.accepts(args.len()) => spec.full_name(subcommand.name),
        Some((_, subcommand)) => {
            return refusal::wrong_arity(reply, &spec.full_name(subcommand.name));
        }
        None if word.eq_ignore_ascii_case(HELP.as_bytes()) => spec.full_name(HELP),
        None => return refusal::unknown_subcommand(reply, spec.name, word),
    };
    reply.error(&format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    ));
}

/// Refuses a command with more arguments than others can wait for.
#[cold]
fn too_many_arguments(reply: &mut Encoder<'_>, name: &str) {
    refusal::unsupported(
        reply,
        &format!("'{name}' with more than {MORE_ARGS_MAX} keys and arguments: send several"),
    );
}
