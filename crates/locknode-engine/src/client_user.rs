//! Which user a client is.

#[cfg(feature = "acl")]
use std::sync::Arc;

use crate::client::Client;
#[cfg(all(feature = "acl", feature = "compat"))]
use crate::users::Access;
#[cfg(not(feature = "acl"))]
use crate::users::DEFAULT_USER;
#[cfg(feature = "acl")]
use crate::users::{Account, User};

impl Client {
    /// Returns the account of the user that the client is.
    #[cfg(feature = "acl")]
    pub(crate) fn account(&self) -> Arc<Account> {
        let account = self.account.lock().clone();
        account.unwrap_or_else(|| Arc::clone(self.registry.users.default_account()))
    }

    /// Makes the client another user; `None` for `default`.
    #[cfg(feature = "acl")]
    pub(crate) fn become_user(&self, account: Option<Arc<Account>>) {
        *self.account.lock() = account;
    }

    /// Returns the user that the client is.
    #[cfg(feature = "acl")]
    pub(crate) fn user(&self) -> Arc<User> {
        self.account().user()
    }

    /// Returns whether the client's user may learn that a key has changed.
    #[cfg(feature = "compat")]
    pub(crate) fn may_read(&self, key: &[u8]) -> bool {
        #[cfg(feature = "acl")]
        return !self.registry.users.has_restricted() || self.user().may_access(key, Access::READ);
        #[cfg(not(feature = "acl"))]
        {
            let _ = key;
            true
        }
    }

    /// Returns the name of the user that the client is.
    pub(crate) fn user_name(&self) -> Vec<u8> {
        #[cfg(feature = "acl")]
        return self.user().name.to_vec();
        #[cfg(not(feature = "acl"))]
        DEFAULT_USER.to_vec()
    }
}
