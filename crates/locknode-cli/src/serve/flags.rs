//! The options of `locknode serve`. Redis' options have Redis' names; each can also be an environment variable or a
//! key of the configuration file.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::ValueEnum;
use locknode::Options;

use crate::duration;
use crate::listening::Bind;
use crate::log::LogLevel;
use crate::serve::restart::RestartFlags;
use crate::size;

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

    /// Password that clients must give (AUTH)
    #[arg(long, value_name = "PASSWORD", env = "LOCKNODE_REQUIREPASS")]
    #[arg(long_help = "Password that clients must give (AUTH).\n\n\
        Protects the locks from anyone who reaches the port. A flag is visible in the process list:\n\
        the environment variable and the file keep it to this user.")]
    pub(super) requirepass: Option<String>,

    /// Most connections at a time; further ones get an error
    #[arg(
        long,
        value_name = "N",
        env = "LOCKNODE_MAXCLIENTS",
        default_value_t = 10_000
    )]
    #[arg(value_parser = parse_clients)]
    #[arg(
        long_help = "Most connections at a time; further ones get an error.\n\n\
        Each needs a file descriptor: where the system allows fewer, the number is lowered and a\n\
        warning says so."
    )]
    pub(super) maxclients: u64,

    /// Most memory for locks, such as 100mb; 0 for no limit
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOCKNODE_MAXMEMORY",
        default_value = "0"
    )]
    #[arg(value_parser = size::parse)]
    #[arg(
        long_help = "Most memory for locks, such as 100mb; 0 for no limit.\n\n\
        Protects the machine. Beyond it new locks are refused (-OOM); locks are still released,\n\
        extended and expired, and no lock is ever evicted."
    )]
    pub(super) maxmemory: u64,

    /// Close connections that are idle for this many seconds; 0 for never
    #[arg(
        long,
        value_name = "SECONDS",
        env = "LOCKNODE_TIMEOUT",
        default_value = "0"
    )]
    #[arg(value_parser = parse_seconds)]
    pub(super) timeout: u64,

    /// Probe silent peers after this many seconds, to find dead ones; 0 for never
    #[arg(
        long,
        value_name = "SECONDS",
        env = "LOCKNODE_TCP_KEEPALIVE",
        default_value = "300"
    )]
    #[arg(value_parser = parse_seconds)]
    pub(super) tcp_keepalive: u64,

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

    /// Without a password, serve only clients that connect by loopback or by the Unix socket
    #[arg(
        long,
        value_name = "yes|no",
        env = "LOCKNODE_PROTECTED_MODE",
        default_value = "yes"
    )]
    #[arg(
        long_help = "Without a password, serve only clients that connect by loopback (127.0.0.1, ::1) or by the\n\
        Unix socket. A client on this machine that connects to another of its addresses is refused\n\
        like one from elsewhere, as in Redis."
    )]
    pub(super) protected_mode: Switch,

    /// Longest argument of a command (key, token, script)
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOCKNODE_PROTO_MAX_BULK_LEN",
        default_value = "1mb"
    )]
    #[arg(value_parser = parse_request_len)]
    #[arg(
        long_help = "Longest argument of a command (key, token, script), 1mb or more.\n\n\
        Protects memory: a client that announces more gets an error and is disconnected."
    )]
    pub(super) proto_max_bulk_len: u64,

    /// Longest command that is still being received
    #[arg(long, value_name = "SIZE", env = "LOCKNODE_CLIENT_QUERY_BUFFER_LIMIT")]
    #[arg(default_value = "64mb", value_parser = parse_request_len)]
    #[arg(
        long_help = "Longest command that is still being received, 1mb or more.\n\n\
        Protects memory: a client that exceeds it is disconnected."
    )]
    pub(super) client_query_buffer_limit: u64,

    /// Longest reply; 0 for no limit
    #[arg(long, value_name = "SIZE", env = "LOCKNODE_CLIENT_OUTPUT_BUFFER_LIMIT")]
    #[arg(default_value = "64mb", value_parser = parse_output_limit)]
    #[arg(
        long_help = "Longest reply; 0 for no limit. Redis's form \"normal 64mb 0 0\" works too: its hard\n\
        limit counts.\n\n\
        Protects memory from clients that ask for much and read nothing."
    )]
    pub(super) client_output_buffer_limit: u64,

    /// Allow DEBUG, for tests
    #[arg(
        long,
        value_name = "yes|no",
        env = "LOCKNODE_ENABLE_DEBUG_COMMAND",
        default_value = "no"
    )]
    pub(super) enable_debug_command: Switch,

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
        long_help = "How long SIGTERM or SIGINT waits for clients to take their replies.\n\n\
        At the first signal the node accepts no more connections, answers every command it has\n\
        received, and closes; at a second one it stops at once."
    )]
    pub(super) drain: u64,

    #[command(flatten)]
    pub(super) restart: RestartFlags,
}

/// One value of `--bind`.
pub(super) type BindList = Vec<Bind>;

/// `yes` or `no`, as Redis writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    #[value(alias = "true", alias = "on")]
    Yes,
    #[value(alias = "false", alias = "off")]
    No,
}

impl Switch {
    pub(super) fn is_on(self) -> bool {
        self == Self::Yes
    }
}

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "permissions are three octal digits, such as 700 or 770".to_owned())
}

fn parse_clients(text: &str) -> Result<u64, String> {
    let clients = text.parse().map_err(|_| "a whole number, such as 10000")?;
    within(clients, Options::MAXCLIENTS)
}

fn parse_seconds(text: &str) -> Result<u64, String> {
    within(duration::parse_seconds(text)?, Options::SECONDS)
}

fn parse_request_len(text: &str) -> Result<u64, String> {
    within(size::parse(text)?, Options::REQUEST_LEN)
}

/// The number, if CONFIG SET would take it, too.
fn within(number: u64, range: RangeInclusive<u64>) -> Result<u64, String> {
    if range.contains(&number) {
        return Ok(number);
    }
    Err(format!(
        "must be between {} and {}",
        range.start(),
        range.end()
    ))
}

fn parse_output_limit(text: &str) -> Result<u64, String> {
    if let Ok(limit) = size::parse(text) {
        return Ok(limit);
    }
    let help = "a size such as 64mb, or \"normal 64mb 0 0\"";
    match Options::parse_output_limit(text) {
        Ok(Some(limit)) => Ok(limit),
        Ok(None) => Err(help.to_owned()),
        Err(problem) => Err(format!("{problem} Give {help}")),
    }
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
    fn limits_are_checked_and_written_as_in_redis() {
        type Parser = fn(&str) -> Result<u64, String>;
        let rows: &[(Parser, &str, Option<u64>)] = &[
            (parse_request_len, "1mb", Some(1 << 20)),
            (parse_request_len, "1000000", None),
            (parse_request_len, "1gb", Some(1 << 30)),
            (parse_output_limit, "0", Some(0)),
            (parse_output_limit, "64mb", Some(64 << 20)),
            (parse_output_limit, "normal 1mb 0 0", Some(1 << 20)),
            (
                parse_output_limit,
                "replica 1 0 0 normal 5kb 0 0",
                Some(5 << 10),
            ),
            (parse_output_limit, "normal 1mb 1mb 60", None),
            (parse_output_limit, "replica 1mb 0 0", None),
            (parse_output_limit, "", None),
            (parse_drain, "5", Some(5)),
            (parse_drain, "1h", Some(3600)),
            (parse_drain, "2h", None),
        ];
        for (parse, text, expected) in rows {
            assert_eq!(parse(text).ok(), *expected, "{text:?}");
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
