//! `loglevel`: how much the program around a node says.

/// The levels of Redis, from most to least said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Also details for finding a fault.
    Debug,
    /// As notice.
    Verbose,
    /// Also starting, stopping and quarantines.
    #[default]
    Notice,
    /// What is risky.
    Warning,
    /// Nothing; why the node could not go on is said all the same.
    Nothing,
}

impl LogLevel {
    /// Every level.
    pub const ALL: [Self; 5] = [
        Self::Debug,
        Self::Verbose,
        Self::Notice,
        Self::Warning,
        Self::Nothing,
    ];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Verbose => "verbose",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Nothing => "nothing",
        }
    }

    /// Returns the level of that name, in any case.
    pub fn parse(name: &[u8]) -> Option<Self> {
        let is_it = |level: &Self| name.eq_ignore_ascii_case(level.name().as_bytes());
        Self::ALL.into_iter().find(is_it)
    }
}
