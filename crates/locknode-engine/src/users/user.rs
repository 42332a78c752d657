//! One user: who it is, what it may do, and the rules that say so.

use std::fmt;

use super::access::Access;
use super::command_set::CommandSet;
use super::names::{ANY, Names};
use super::password::Password;
use super::pattern_list::PatternList;
use super::rule_error::RuleError;

/// See the module docs. It is never changed in place: rules make another one.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: Box<[u8]>,
    /// Whether it can log in.
    pub(super) is_on: bool,
    /// Whether it logs in with any password.
    pub(super) is_open: bool,
    /// Kept for those who set it; the node takes no dumps.
    skips_sanitizing: bool,
    passwords: Vec<Password>,
    keys: PatternList,
    channels: PatternList,
    commands: CommandSet,
    /// Whether anything is forbidden to it.
    is_restricted: bool,
    /// See [`User::runs_shapes`].
    runs_shapes: bool,
}

/// What a user is not allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// To run the command with this number.
    Command(usize),
    Key,
    Channel,
}

/// How a command uses the channels that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelUse {
    /// Sends to or receives from the channels.
    Name,
    /// Receives from what matches.
    Pattern,
}

impl User {
    /// A new user, who may do nothing.
    pub(super) fn new(name: &[u8], names: &'static Names) -> Self {
        Self {
            name: name.into(),
            is_on: false,
            is_open: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            keys: PatternList::NONE,
            channels: PatternList::NONE,
            commands: CommandSet::none(names),
            is_restricted: true,
            runs_shapes: false,
        }
    }

    /// The same user, who may do nothing.
    pub(super) fn without_rules(&self) -> Self {
        Self::new(&self.name, self.commands.names())
    }

    /// The user whose connections have not logged in, who may do anything.
    pub(super) fn default_user(names: &'static Names) -> Self {
        Self {
            is_on: true,
            is_open: true,
            keys: PatternList::ALL,
            channels: PatternList::ALL,
            commands: CommandSet::all(names),
            is_restricted: false,
            runs_shapes: true,
            ..Self::new(DEFAULT_USER, names)
        }
    }

    /// Applies one rule, such as `on`, `>password`, `~lock:*` or `+@lock`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it; nothing has changed.
    pub(super) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" | b"clearselectors" => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => (self.is_open, self.passwords) = (true, Vec::new()),
            b"resetpass" => (self.is_open, self.passwords) = (false, Vec::new()),
            b"skip-sanitize-payload" => self.skips_sanitizing = true,
            b"sanitize-payload" => self.skips_sanitizing = false,
            b"allkeys" | b"~*" => self.keys = PatternList::ALL,
            b"resetkeys" => self.keys = PatternList::NONE,
            b"allchannels" | b"&*" => self.channels = PatternList::ALL,
            b"resetchannels" => self.channels = PatternList::NONE,
            b"allcommands" => self.commands.apply(true, ANY.as_bytes())?,
            b"nocommands" => self.commands.apply(false, ANY.as_bytes())?,
            b"reset" => *self = self.without_rules(),
            _ => self.apply_with_value(rule)?,
        }
        self.is_restricted =
            !(self.keys.is_all() && self.channels.is_all() && self.commands.is_everything());
        self.runs_shapes = self.may_run_shapes();
        if self.describe().len() > RULES_LEN_MAX {
            return Err(RuleError::TooLong);
        }
        Ok(())
    }

    fn apply_with_value(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let hash = |text| Password::from_hex(text).ok_or(RuleError::BadHash);
        match rule {
            [b'>', text @ ..] => self.add_password(Password::of(text)),
            [b'#', text @ ..] => self.add_password(hash(text)?),
            [b'<', text @ ..] => return self.remove_password(Password::of(text)),
            [b'!', text @ ..] => return self.remove_password(hash(text)?),
            [b'(', ..] => return Err(RuleError::Selector),
            [b'~' | b'%', ..] => {
                if self.keys.is_all() {
                    return Err(RuleError::KeysAfterAll);
                }
                let (access, pattern) = key_pattern(rule)?;
                self.keys.add(pattern, access);
            }
            [b'&', pattern @ ..] => {
                if self.channels.is_all() {
                    return Err(RuleError::ChannelsAfterAll);
                }
                if has_space(pattern) {
                    return Err(RuleError::Syntax);
                }
                self.channels.add(pattern, Access::BOTH);
            }
            [b'+', rule @ ..] => return self.commands.apply(true, rule),
            [b'-', rule @ ..] => return self.commands.apply(false, rule),
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn add_password(&mut self, password: Password) {
        if !self.passwords.contains(&password) {
            self.passwords.push(password);
        }
        self.is_open = false;
    }

    fn remove_password(&mut self, password: Password) -> Result<(), RuleError> {
        let before = self.passwords.len();
        self.passwords.retain(|it| *it != password);
        if self.passwords.len() == before {
            return Err(RuleError::NoSuchPassword);
        }
        Ok(())
    }

    /// Makes a password the only one; without one, any will do.
    pub(super) fn set_only_password(&mut self, password: Option<Password>) {
        self.is_open = password.is_none();
        self.passwords = password.into_iter().collect();
    }

    /// Returns whether it logs in with this password.
    pub(super) fn accepts(&self, password: Password) -> bool {
        // All of them are compared, so that the time does not tell which one it is.
        let is_known = self
            .passwords
            .iter()
            .fold(false, |found, it| found | it.is(password));
        self.is_on && (self.is_open | is_known)
    }

    /// Returns whether anything is forbidden to it.
    pub(crate) const fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Returns whether the scripts that run as one operation on the table are allowed. What they do to
    /// their keys, EVAL has asked for.
    pub(crate) const fn runs_shapes(&self) -> bool {
        self.runs_shapes
    }

    fn may_run_shapes(&self) -> bool {
        let names = ["get", "del", "expire", "pexpire"];
        names.iter().all(|name| self.commands.has_name(name))
    }

    /// Returns whether it may run the command with this number.
    pub(crate) fn may_run(&self, number: usize, args: &[&[u8]]) -> bool {
        self.commands.allows(number, args)
    }

    /// Returns whether it may do this to a key. To read one is to learn that it has changed, too.
    pub(crate) fn may_access(&self, key: &[u8], access: Access) -> bool {
        self.keys.allows(key, access)
    }

    /// Returns whether it may use a channel, or what matches a pattern. As in Redis, a pattern has to be
    /// one of its own.
    pub(crate) fn may_use_channel(&self, channel_use: ChannelUse, name: &[u8]) -> bool {
        match channel_use {
            ChannelUse::Name => self.channels.allows(name, Access::BOTH),
            ChannelUse::Pattern => self.channels.has(name),
        }
    }

    /// Returns its line in a file, without the end.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut line = b"user ".to_vec();
        line.extend_from_slice(&self.name);
        for flag in self.flags() {
            line.push(b' ');
            line.extend_from_slice(flag.as_bytes());
        }
        for password in &self.passwords {
            line.extend_from_slice(b" #");
            line.extend_from_slice(password.to_hex().as_bytes());
        }
        let mut part = |text: &[u8]| {
            if !text.is_empty() {
                line.push(b' ');
                line.extend_from_slice(text);
            }
        };
        part(&self.key_rules());
        if !self.channels.is_all() {
            part(b"resetchannels");
        }
        part(&self.channel_rules());
        part(self.command_rules().as_bytes());
        line
    }

    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.is_open {
            flags.push("nopass");
        }
        flags.push(match self.skips_sanitizing {
            true => "skip-sanitize-payload",
            false => "sanitize-payload",
        });
        flags
    }

    pub(crate) fn passwords(&self) -> &[Password] {
        &self.passwords
    }

    pub(crate) fn key_rules(&self) -> Vec<u8> {
        let mut rules = Vec::new();
        self.keys.describe(b'~', &mut rules);
        rules
    }

    pub(crate) fn channel_rules(&self) -> Vec<u8> {
        let mut rules = Vec::new();
        self.channels.describe(b'&', &mut rules);
        rules
    }

    pub(crate) fn command_rules(&self) -> String {
        self.commands.describe()
    }
}

impl Denial {
    /// Returns Redis's words for it.
    pub(crate) fn text(self, user: &User) -> String {
        match self {
            Self::Command(number) => {
                let name = user.commands.name_of(number);
                let user = String::from_utf8_lossy(&user.name);
                format!("User {user} has no permissions to run the '{name}' command")
            }
            Self::Key => "No permissions to access a key".to_owned(),
            Self::Channel => "No permissions to access a channel".to_owned(),
        }
    }

    /// Returns Redis's words for a command of a transaction that was allowed when it was queued.
    #[cfg(feature = "compat")]
    pub(crate) const fn since_queued(self) -> &'static str {
        match self {
            Self::Command(_) => "no permission to execute the command or subcommand",
            Self::Key => "no permission to touch the specified keys",
            Self::Channel => {
                "no permission to access one of the channels used as arguments to the command"
            }
        }
    }
}

/// Shows neither passwords nor their hashes.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &String::from_utf8_lossy(&self.name))
            .finish_non_exhaustive()
    }
}

/// Reads `~pattern`, `%R~pattern`, `%W~pattern` or `%RW~pattern`.
fn key_pattern(rule: &[u8]) -> Result<(Access, &[u8]), RuleError> {
    let mut rest = rule;
    let mut access = Access::NONE;
    if let [b'~', pattern @ ..] = rest {
        (access, rest) = (Access::BOTH, pattern);
    } else {
        rest = rest.get(1..).unwrap_or_default();
        while let [letter, after @ ..] = rest {
            rest = after;
            let more = match letter.to_ascii_uppercase() {
                b'R' => Access::READ,
                b'W' => Access::WRITE,
                b'~' => break,
                _ => return Err(RuleError::Syntax),
            };
            if access.has(more) {
                return Err(RuleError::Syntax);
            }
            access = access.and(more);
        }
    }
    if access == Access::NONE || has_space(rest) {
        return Err(RuleError::Syntax);
    }
    Ok((access, rest))
}

/// Returns whether a name or pattern has a byte that would end it in a file.
pub(super) fn has_space(text: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    text.iter().any(ends)
}

/// The user of those who have not logged in.
pub(crate) const DEFAULT_USER: &[u8] = b"default";

/// What a user's line may take: hundreds of patterns or passwords, and ten thousand users fit into
/// memory.
const RULES_LEN_MAX: usize = 16 << 10;
