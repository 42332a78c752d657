//! A user as connections refer to it: rules that change, and the end of the user, reach all of them.

use std::sync::Arc;

use parking_lot::RwLock;

use super::user::User;

/// See the module docs.
#[derive(Debug)]
pub(crate) struct Account {
    user: RwLock<Arc<User>>,
}

impl Account {
    pub(super) fn new(user: User) -> Arc<Self> {
        Arc::new(Self {
            user: RwLock::new(Arc::new(user)),
        })
    }

    /// Returns the user as it is now.
    pub(crate) fn user(&self) -> Arc<User> {
        Arc::clone(&self.user.read())
    }

    /// Replaces the user's rules.
    pub(super) fn replace(&self, user: User) {
        *self.user.write() = Arc::new(user);
    }
}
