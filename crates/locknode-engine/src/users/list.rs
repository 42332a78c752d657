//! The users of a file, one a line, in Redis's format: `user alice on #<hash> ~lock:* +@lock`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use super::names::Names;
use super::rule_error::RuleError;
use super::user::{DEFAULT_USER, User, has_space};

/// Users that were read from a file.
#[derive(Clone, Debug, Default)]
pub struct UserList {
    users: BTreeMap<Box<[u8]>, User>,
}

/// Why a file with users is not usable: everything that is wrong with it, by line. It has no
/// passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserListError {
    text: String,
}

impl UserList {
    /// Reads the users of a file; `file` is its name, for the error.
    ///
    /// # Errors
    ///
    /// Returns what is wrong in which line. A last line without an end is refused, too: the file may have
    /// been cut off there, and what is missing may be what is forbidden.
    pub(crate) fn parse_with(
        names: &'static Names,
        file: &str,
        text: &[u8],
    ) -> Result<Self, UserListError> {
        let mut users = BTreeMap::new();
        let mut errors = Vec::new();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in (1..).zip(lines) {
            if errors.len() >= ERRORS_MAX {
                break;
            }
            if line.last() != Some(&b'\n') {
                errors.push(format!(
                    "{file}:{number}: the line does not end, so the file may have been cut off: end it with a newline."
                ));
                break;
            }
            let words = line.split(u8::is_ascii_whitespace);
            let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
            match words.as_slice() {
                [] => {}
                [b"user", name, rules @ ..] => {
                    let mut user = User::new(name, names);
                    let mut say = |text: &str| errors.push(format!("{file}:{number}: {text}."));
                    if has_space(name) {
                        say("Usernames can't contain spaces or null characters");
                    }
                    for rule in rules {
                        match user.apply(rule) {
                            Ok(()) => {}
                            // Only names of commands are shown: another rule may be a password.
                            Err(error @ RuleError::Unknown) => say(&format!(
                                "Error in applying operation '{}': {}",
                                rule.escape_ascii(),
                                error.text()
                            )),
                            Err(error) => say(error.text()),
                        }
                    }
                    if users.insert(Box::from(*name), user).is_some() {
                        let name = name.escape_ascii();
                        errors.push(format!(
                            "WARNING: Duplicate user '{name}' found on line {number}."
                        ));
                    }
                    if users.len() > USERS_MAX {
                        errors.push(format!(
                            "{file}:{number}: a node has at most {} users.",
                            USERS_MAX
                        ));
                    }
                }
                _ => errors.push(format!(
                    "{file}:{number} should start with user keyword followed by the username."
                )),
            }
        }
        if errors.is_empty() {
            return Ok(Self { users });
        }
        Err(UserListError {
            text: errors.join(" "),
        })
    }

    /// Returns whether the user `default`, whom every connection is before it logs in, needs a
    /// password or is off.
    pub fn needs_login(&self) -> bool {
        let default = self.users.get(DEFAULT_USER);
        default.is_some_and(|user| !(user.is_on && user.is_open))
    }

    pub(super) fn into_users(self) -> BTreeMap<Box<[u8]>, User> {
        self.users
    }
}

impl fmt::Display for UserListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for UserListError {}

/// Who has more mistakes in a file than this sees the rest later.
const ERRORS_MAX: usize = 10;

/// More than the clients of any node: with the longest rules they fit into memory.
pub(super) const USERS_MAX: usize = 10_000;
