//! What a user is told who tries what it may not do.

#[cfg(feature = "acl")]
use super::permission;
use super::spec::Spec;
use crate::command_id::CommandId;
use crate::services::Services;
use crate::session::Session;

/// Where a command is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// As a client sends it.
    Alone,
    Script,
    /// In a transaction that was allowed to queue it.
    #[cfg(feature = "compat")]
    Exec,
}

/// Returns why a session's user may not run a command, and counts that; `None` if it may.
#[cfg(feature = "acl")]
pub(crate) fn denial(
    services: &Services,
    session: &Session,
    place: Place,
    (id, spec): (CommandId, &Spec),
    args: &[&[u8]],
) -> Option<Box<str>> {
    let user = session.user.as_ref()?;
    let denial = permission::check(user, id, spec, args).err()?;
    services.counters.note_denial(denial);
    let text = match place {
        Place::Alone => format!("NOPERM {}", denial.text(user)),
        Place::Script => format!("ERR ACL failure in script: {}", denial.text(user)),
        #[cfg(feature = "compat")]
        Place::Exec => format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. \
             This command is no longer allowed for the following reason: {}",
            denial.since_queued()
        ),
    };
    Some(text.into())
}

/// Nobody is forbidden anything.
#[cfg(not(feature = "acl"))]
pub(crate) const fn denial(
    _: &Services,
    _: &Session,
    _: Place,
    _: (CommandId, &Spec),
    _: &[&[u8]],
) -> Option<Box<str>> {
    None
}
