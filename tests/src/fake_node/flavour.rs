//! Which server a fake takes itself for.

/// A kind of server, by what it can do for a lock client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// EVAL and EVALSHA, scripts known once they were sent.
    Redis7,
    /// As Redis 7, and DELEX and SET with IFEQ.
    Redis8,
    /// As Redis 7, and DELIFEQ and SET with IFEQ.
    Valkey9,
    /// Everything a locknode has; scripts of lock libraries are known from the start.
    Locknode,
    /// Neither scripts nor compare-and-delete: nothing that a lock could be released with safely.
    Bare,
}

impl Flavour {
    /// Every flavour that a lock can live on.
    pub const USEFUL: [Self; 4] = [Self::Redis7, Self::Redis8, Self::Valkey9, Self::Locknode];

    /// Whether it has the command.
    pub(super) fn has(self, name: &str) -> bool {
        let missing: &[&str] = match self {
            Self::Redis7 => &["DELEX", "DELIFEQ"],
            Self::Redis8 => &["DELIFEQ"],
            Self::Valkey9 => &["DELEX"],
            Self::Locknode => &[],
            Self::Bare => &[
                "DELEX", "DELIFEQ", "EVAL", "EVALSHA", "SCRIPT", "WATCH", "MULTI",
            ],
        };
        let is_own = name.starts_with("LOCK.");
        !missing.contains(&name) && (self == Self::Locknode || !is_own)
    }

    /// Whether SET takes IFEQ.
    pub(super) fn has_ifeq(self) -> bool {
        !matches!(self, Self::Redis7 | Self::Bare)
    }

    /// Whether EVALSHA of a script that nobody has sent is refused.
    pub(super) fn forgets_scripts(self) -> bool {
        self != Self::Locknode
    }

    /// What INFO says; `None` for the engine's own.
    pub(super) fn info(self, run_id: &str) -> Option<String> {
        let server = match self {
            Self::Redis7 | Self::Bare => "redis_version:7.0.15\r\n",
            Self::Redis8 => "redis_version:8.4.0\r\n",
            Self::Valkey9 => {
                "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\n"
            }
            Self::Locknode => return None,
        };
        Some(format!(
            "# Server\r\n{server}redis_mode:standalone\r\nrun_id:{run_id}\r\nloading:0\r\nrole:master\r\n"
        ))
    }
}
