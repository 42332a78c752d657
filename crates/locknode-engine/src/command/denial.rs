//! What a user is told whose script or transaction does what it may not.

use super::context::Context;
#[cfg(feature = "acl")]
use super::permission;
use super::spec::Spec;
use crate::command_id::CommandId;

impl Context<'_, '_> {
    /// Returns why the user may not do this in a script, or `None` if it may.
    pub(crate) fn denial_in_script(
        &self,
        id: CommandId,
        spec: &Spec,
        args: &[&[u8]],
    ) -> Option<String> {
        #[cfg(feature = "acl")]
        if let Some(user) = &self.session.user
            && let Err(denial) = permission::check(user, id, spec, args)
        {
            self.services.counters.note_denial(denial);
            let text = denial.text(user);
            return Some(format!("ERR ACL failure in script: {text}"));
        }
        let _ = (id, spec, args);
        None
    }

    /// Returns why the user may not do any more what a transaction has queued, or `None` if it may.
    #[cfg(feature = "compat")]
    pub(crate) fn denial_since_queued(
        &self,
        id: CommandId,
        spec: &Spec,
        args: &[&[u8]],
    ) -> Option<String> {
        #[cfg(feature = "acl")]
        if let Some(user) = &self.session.user
            && let Err(denial) = permission::check(user, id, spec, args)
        {
            self.services.counters.note_denial(denial);
            return Some(format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. \
                 This command is no longer allowed for the following reason: {}",
                denial.since_queued()
            ));
        }
        let _ = (id, spec, args);
        None
    }
}
