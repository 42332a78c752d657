//! The only user of a build without the feature `acl`: `default`, with the password of
//! `requirepass` or none.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::settings::Settings;

/// The only user.
pub(crate) const DEFAULT_USER: &[u8] = b"default";

/// See the module docs.
#[derive(Debug)]
pub(crate) struct Users {
    version: AtomicU32,
    has_password: AtomicBool,
}

/// That of `default`.
#[derive(Debug)]
pub(crate) struct Account;

impl Users {
    pub(crate) const fn new() -> Self {
        Self {
            version: AtomicU32::new(1),
            has_password: AtomicBool::new(false),
        }
    }

    /// Returns a number that changes whenever connections have to look again whether they are welcome.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns whether a connection has to log in before it may do anything.
    pub(crate) fn needs_login(&self) -> bool {
        self.has_password.load(Ordering::Relaxed)
    }

    /// Returns whether there is no password.
    pub(crate) fn is_open(&self) -> bool {
        !self.needs_login()
    }

    /// Returns whether there is such a user.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        name == DEFAULT_USER
    }

    /// Finds a user who may log in.
    #[cfg(feature = "hand-over")]
    pub(crate) fn active(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.has(name).then(|| Arc::new(Account))
    }

    /// Notes whether there is a password.
    pub(crate) fn obey_requirepass(&self, requirepass: &str) {
        let has_password = !requirepass.is_empty();
        self.has_password.store(has_password, Ordering::Relaxed);
        let next = self.version.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.version.store(next, Ordering::Release);
    }

    /// Returns an account if the password is right; without one, every password is.
    pub(crate) fn log_in(
        &self,
        name: &[u8],
        password: &[u8],
        settings: &Settings,
    ) -> Option<Arc<Account>> {
        let is_right = settings.read(|options| {
            let expected = options.requirepass.as_bytes();
            expected.is_empty() || is_secret(password, expected)
        });
        (name == DEFAULT_USER && is_right).then(|| Arc::new(Account))
    }
}

/// Compares in a time that depends only on the length of `given`, so that the time reveals nothing
/// about the secret.
fn is_secret(given: &[u8], secret: &[u8]) -> bool {
    let mut difference = given.len() ^ secret.len();
    for (byte, expected) in given.iter().zip(secret.iter().cycle()) {
        difference |= usize::from(black_box(byte ^ expected));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn only_the_whole_secret_matches() {
        for (given, want) in [
            ("secret", true),
            ("", false),
            ("s", false),
            ("secre", false),
            ("secrets", false),
            ("secretsecret", false),
            ("Secret", false),
        ] {
            assert_eq!(is_secret(given.as_bytes(), b"secret"), want, "{given:?}");
        }
    }
}
