//! The users of a node: who may log in, and what each may do (feature `acl`; without it
//! `no_users.rs` knows the user `default` alone).
//!
//! ```text
//!  ACL SETUSER, a file --> User --> Account <-- Client (who it is) <-- AUTH
//!                                     |
//!  the version has changed -----------+--> Session::user, if anything is forbidden to it
//! ```
//!
//! A session looks at its user again when [`Users::version`] has changed, so that rules are in force
//! at once and cost a connection whose user may do anything nothing.

mod access;
mod account;
mod command_set;
mod list;
mod names;
mod password;
mod pattern_list;
mod rule_error;
mod user;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};

pub(crate) use access::Access;
pub(crate) use account::Account;
pub use list::{UserList, UserListError};
pub(crate) use names::{Name, Names};
pub(crate) use rule_error::RuleError;
pub(crate) use user::{ChannelUse, DEFAULT_USER, Denial, User};

use list::USERS_MAX;
use password::Password;

use crate::settings::Settings;

/// See the module docs.
#[derive(Debug)]
pub(crate) struct Users {
    version: AtomicU32,
    needs_login: AtomicBool,
    is_open: AtomicBool,
    has_restricted: AtomicBool,
    accounts: RwLock<BTreeMap<Box<[u8]>, Arc<Account>>>,
    /// The user of connections that have not logged in.
    default: Arc<Account>,
    names: &'static Names,
    /// The last value of `requirepass` that was obeyed.
    requirepass: Mutex<Password>,
}

/// What ACL SETUSER could not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetUserRefusal {
    Name,
    TooManyUsers,
    /// A rule is wrong.
    Rule(Box<[u8]>, RuleError),
}

impl Users {
    /// Begins with the user `default`, who may do anything, and those of a list.
    pub(crate) fn new(list: Option<UserList>, names: &'static Names) -> Self {
        let default = Account::new(User::default_user(names));
        let accounts = BTreeMap::from([(Box::from(DEFAULT_USER), Arc::clone(&default))]);
        let users = Self {
            version: AtomicU32::new(1),
            needs_login: AtomicBool::new(false),
            is_open: AtomicBool::new(true),
            has_restricted: AtomicBool::new(false),
            accounts: RwLock::new(accounts),
            default,
            names,
            requirepass: Mutex::new(Password::of(b"")),
        };
        if let Some(list) = list {
            users.replace_all(list);
        }
        users
    }

    /// Returns a number that changes whenever users do; never 0.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns whether a connection has to log in before it may do anything.
    pub(crate) fn needs_login(&self) -> bool {
        self.needs_login.load(Ordering::Relaxed)
    }

    /// Returns whether the user `default` needs no password.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Returns whether anything is forbidden to any user.
    #[cfg(feature = "compat")]
    pub(crate) fn has_restricted(&self) -> bool {
        self.has_restricted.load(Ordering::Relaxed)
    }

    /// Makes the value of `requirepass` the password of `default`, if it is another than before.
    pub(crate) fn obey_requirepass(&self, requirepass: &str) {
        let password = Password::of(requirepass.as_bytes());
        let mut before = self.requirepass.lock();
        if password == *before {
            return;
        }
        *before = password;
        let mut user = User::clone(&self.default.user());
        user.set_only_password((!requirepass.is_empty()).then_some(password));
        let accounts = self.accounts.write();
        self.default.replace(user);
        self.settle(&accounts);
    }

    /// Returns the account of a user who logs in; `None` if name or password are wrong, or the user is
    /// off. It takes as long for a name that nobody has.
    pub(crate) fn log_in(
        &self,
        name: &[u8],
        password: &[u8],
        _: &Settings,
    ) -> Option<Arc<Account>> {
        let password = Password::of(password);
        let account = self.find(name);
        let user = account.as_ref().unwrap_or(&self.default).user();
        let is_right = user.accepts(password);
        account.filter(|_| is_right)
    }

    /// Finds a user.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.accounts.read().get(name).cloned()
    }

    /// Finds a user who may log in.
    #[cfg(feature = "hand-over")]
    pub(crate) fn active(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.find(name).filter(|account| account.user().is_on)
    }

    /// Returns whether there is such a user.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.accounts.read().contains_key(name)
    }

    /// Returns the account of a client that has not logged in.
    pub(crate) const fn default_account(&self) -> &Arc<Account> {
        &self.default
    }

    /// Returns all users by name.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        let accounts = self.accounts.read();
        accounts.values().map(|account| account.user()).collect()
    }

    /// Creates or changes a user by rules, by all of them or none, and returns its account.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the name or a rule.
    pub(crate) fn set(&self, name: &[u8], rules: &[&[u8]]) -> Result<Arc<Account>, SetUserRefusal> {
        if name.is_empty() || user::has_space(name) {
            return Err(SetUserRefusal::Name);
        }
        let mut accounts = self.accounts.write();
        let known = accounts.get(name).cloned();
        let mut user = match &known {
            Some(account) => User::clone(&account.user()),
            None if accounts.len() >= USERS_MAX => return Err(SetUserRefusal::TooManyUsers),
            None => User::new(name, self.names),
        };
        for rule in rules {
            let applied = user.apply(rule);
            applied.map_err(|error| SetUserRefusal::Rule(Box::from(*rule), error))?;
        }
        let account = match known {
            Some(account) => {
                account.replace(user);
                account
            }
            None => {
                let account = Account::new(user);
                accounts.insert(name.into(), Arc::clone(&account));
                account
            }
        };
        self.settle(&accounts);
        Ok(account)
    }

    /// Removes a user, who may do nothing from now on; returns its account for those who have to close
    /// its connections. `default` stays.
    pub(crate) fn remove(&self, name: &[u8]) -> Option<Arc<Account>> {
        let mut accounts = self.accounts.write();
        if name == DEFAULT_USER {
            return None;
        }
        let account = accounts.remove(name)?;
        account.replace(account.user().without_rules());
        self.settle(&accounts);
        Some(account)
    }

    /// Replaces all users by those of a list; returns the accounts that are gone.
    pub(crate) fn replace_all(&self, list: UserList) -> Vec<Arc<Account>> {
        let mut accounts = self.accounts.write();
        let mut before = std::mem::take(&mut *accounts);
        let mut users = list.into_users();
        users
            .entry(DEFAULT_USER.into())
            .or_insert_with(|| User::default_user(self.names));
        for (name, user) in users {
            let account = match before.remove(&name) {
                Some(account) => {
                    account.replace(user);
                    account
                }
                None => Account::new(user),
            };
            accounts.insert(name, account);
        }
        for account in before.values() {
            account.replace(account.user().without_rules());
        }
        self.settle(&accounts);
        before.into_values().collect()
    }

    /// Returns all users as a file has them.
    pub(crate) fn to_file(&self) -> Vec<u8> {
        let line = |user: Arc<User>| [user.describe(), b"\n".to_vec()].concat();
        self.all().into_iter().flat_map(line).collect()
    }

    /// Notes that something has changed.
    fn settle(&self, accounts: &BTreeMap<Box<[u8]>, Arc<Account>>) {
        let is_restricted = |account: &Arc<Account>| account.user().is_restricted();
        let has_restricted = accounts.values().any(is_restricted);
        self.has_restricted.store(has_restricted, Ordering::Relaxed);
        let default = self.default.user();
        self.is_open.store(default.is_open, Ordering::Relaxed);
        let needs_login = !(default.is_open && default.is_on);
        self.needs_login.store(needs_login, Ordering::Relaxed);
        let next = self.version.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.version.store(next, Ordering::Release);
    }
}
