//! Why a rule of a user is refused, in Redis's words.

/// See the module docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleError {
    Syntax,
    /// There is no such command or category.
    Unknown,
    KeysAfterAll,
    ChannelsAfterAll,
    NoSuchPassword,
    BadHash,
    FirstWordOfSubcommand,
    /// Redis has selectors, this node has not.
    Selector,
    TooLong,
}

impl RuleError {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Syntax => "Syntax error",
            Self::Unknown => "Unknown command or category name in ACL",
            Self::KeysAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::ChannelsAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Self::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            Self::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Self::FirstWordOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            Self::Selector => "this node has no selectors: put all rules of the user side by side",
            Self::TooLong => "the rules of a user take at most 16384 bytes",
        }
    }
}
