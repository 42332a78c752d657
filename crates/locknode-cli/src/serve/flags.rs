//! The options of `locknode serve`. Redis' options have Redis' names; each can also be an environment variable or a
//! key of the configuration file.

use std::path::PathBuf;

use crate::duration;
use crate::listening::Bind;
use crate::log::LogLevel;
use crate::serve::node_flags::NodeFlags;
use crate::serve::restart::RestartFlags;

/// The flags of `locknode serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeFlags {
    /// Read options from a TOML file whose keys are the names of these flags
    #[arg(long, value_name = "FILE", env = "LOCKNODE_CONFIG")]
    #[arg(
        long_help = "Read options from a TOML file whose keys are the names of these flags.\n\n\
        A flag overrides its environment variable, which overrides the file, which overrides the\n\
        default. An unknown key is an error."
    )]
    pub(super) config: Option<PathBuf>,

    /// Print the configuration in effect and where each value comes from, as TOML, and exit
    #[arg(long)]
    pub(super) print_config: bool,

    /// Addresses to listen on; may be repeated or a list
    #[arg(
        long,
        value_name = "ADDR",
        env = "LOCKNODE_BIND",
        default_value = "127.0.0.1"
    )]
    #[arg(value_parser = Bind::parse_list, allow_hyphen_values = true)]
    #[arg(
        long_help = "Addresses to listen on; may be repeated, or a list with commas or spaces.\n\n\
        * is every IPv4 address, ::* every IPv6 address; an address that starts with - is skipped\n\
        if this machine does not have it. An empty value turns TCP off (see --unixsocket). Anyone who\n\
        reaches the node can acquire and release every lock: beyond loopback use --requirepass."
    )]
    pub(super) bind: Vec<BindList>,

    /// TCP port; 0 picks a free one and prints it
    #[arg(long, env = "LOCKNODE_PORT", default_value_t = 6379)]
    pub(super) port: u16,

    /// Also listen on a Unix socket at this path
    #[arg(long, value_name = "PATH", env = "LOCKNODE_UNIXSOCKET")]
    #[arg(long_help = "Also listen on a Unix socket at this path.\n\n\
        For clients on the same machine it costs about a third less CPU per operation than TCP.\n\
        A socket file that no process listens on any more is replaced.")]
    pub(super) unixsocket: Option<PathBuf>,

    /// Permissions of the Unix socket, octal, such as 770
    #[arg(long, value_name = "MODE", env = "LOCKNODE_UNIXSOCKETPERM", value_parser = parse_mode)]
    pub(super) unixsocketperm: Option<u32>,

    /// Connections that may wait to be accepted
    #[arg(
        long,
        value_name = "N",
        env = "LOCKNODE_TCP_BACKLOG",
        default_value_t = 511
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    #[arg(
        long_help = "Connections that may wait to be accepted, per listening socket.\n\n\
        The system's own limit (net.core.somaxconn on Linux) still holds."
    )]
    pub(super) tcp_backlog: u16,

    #[command(flatten)]
    pub(super) node: NodeFlags,

    /// Threads that serve connections
    #[arg(long, value_name = "N", env = "LOCKNODE_THREADS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX))]
    #[arg(long_help = "Threads that serve connections, 1 to 256.\n\n\
        One is enough for hundreds of thousands of locks per second and wastes no time on waiting\n\
        for others; more help when that one is busy all the time.")]
    pub(super) threads: u16,

    /// How much to say on standard error
    #[arg(
        long,
        value_name = "LEVEL",
        env = "LOCKNODE_LOG_LEVEL",
        default_value = "info"
    )]
    pub(super) log_level: LogLevel,

    /// How long SIGTERM waits for clients to take their replies
    #[arg(
        long,
        value_name = "SECONDS",
        env = "LOCKNODE_DRAIN",
        default_value = "5"
    )]
    #[arg(value_parser = parse_drain)]
    #[arg(
        long_help = "How long SIGTERM or SIGINT waits for clients to take their replies: seconds, or 5m.\n\n\
        At the first signal the node accepts no more connections, answers every command it has\n\
        received, and closes; at a second one it stops at once."
    )]
    pub(super) drain: u64,

    #[command(flatten)]
    pub(super) restart: RestartFlags,
}

/// One value of `--bind`.
pub(super) type BindList = Vec<Bind>;

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "permissions are three octal digits, such as 700 or 770".to_owned())
}

fn parse_drain(text: &str) -> Result<u64, String> {
    let seconds = duration::parse_seconds(text)?;
    if seconds <= DRAIN_MAX {
        return Ok(seconds);
    }
    Err("must be at most one hour".to_owned())
}

/// More than the cores of any machine on which one node makes sense.
const THREADS_MAX: i64 = 256;

/// Nobody waits longer for a server to stop; init systems kill it after a minute or two.
const DRAIN_MAX: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drain_is_at_most_an_hour() {
        for (text, expected) in [("5", Some(5)), ("1h", Some(3600)), ("2h", None)] {
            assert_eq!(parse_drain(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn permissions_are_octal() {
        for (text, expected) in [
            ("700", Some(0o700)),
            ("0770", Some(0o770)),
            ("888", None),
            ("7777", None),
            ("", None),
        ] {
            assert_eq!(parse_mode(text).ok(), expected, "{text:?}");
        }
    }
}
