//! The options of `locknode serve`. Redis' options have Redis' names; each can also be an environment variable or a
//! key of the configuration file.

use std::path::PathBuf;

use clap::Command;

use crate::duration;
use crate::listening::Bind;
use crate::log::LogFormat;
use crate::serve::EXAMPLES;
use crate::serve::hand_over::HandOverFlags;
use crate::serve::monitoring::MonitoringFlags;
use crate::serve::node_flags::NodeFlags;
use crate::serve::restart::RestartFlags;

/// Run one lock node
///
/// Every option can be a flag, an environment variable or a key of the file given with --config; a
/// flag wins over the environment, that over the file. Options shared with Redis use Redis's names.
/// Sizes are bytes or written as 100mb (1mb = 1024 * 1024). Flags, the file and CONFIG SET accept the
/// same values.
///
/// After an unclean stop the node waits --max-ttl, because clients may still hold locks from before.
/// After a clean stop with --dir it serves at once, and so does a very first start with
/// --first-start. Logs go to standard error.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct ServeFlags {
    /// Read options from a TOML file whose keys are the names of these flags
    ///
    /// A flag overrides its environment variable, which overrides the file, which overrides the
    /// default. An unknown key is an error.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub(super) config: Option<PathBuf>,

    /// Print the configuration in effect and where each value comes from, as TOML, and exit
    #[arg(long)]
    pub(super) print_config: bool,

    /// Addresses to listen on, separated by commas or spaces; may be repeated
    ///
    /// Every IPv4 address is *, every IPv6 address ::*; an address that starts with - is skipped if
    /// this machine does not have it. An empty value turns TCP off (see --unixsocket). Anyone who
    /// reaches the node can acquire and release every lock: beyond loopback use --requirepass.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    #[arg(value_parser = Bind::parse_list, allow_hyphen_values = true, verbatim_doc_comment)]
    pub(super) bind: Vec<BindList>,

    /// TCP port; 0 picks a free one and prints it, or, with --tls-port, turns it off
    #[arg(long, default_value_t = 6379)]
    pub(super) port: u16,

    /// TCP port for clients that speak TLS; 0 for none
    ///
    /// It needs --tls-cert-file and --tls-key-file, and, unless --tls-auth-clients is no,
    /// --tls-ca-cert-file.
    #[cfg(feature = "tls")]
    #[arg(long, default_value_t = 0, verbatim_doc_comment)]
    pub(super) tls_port: u16,

    /// Also listen on a Unix socket at this path
    ///
    /// For clients on the same machine it costs about a third less CPU per operation than TCP.
    /// A socket file that no process listens on any more is replaced.
    #[arg(long, value_name = "PATH", verbatim_doc_comment)]
    pub(super) unixsocket: Option<PathBuf>,

    /// Permissions of the Unix socket, octal, such as 770
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub(super) unixsocketperm: Option<u32>,

    /// Connections that may wait to be accepted, per listening socket
    ///
    /// The system's own limit (net.core.somaxconn on Linux) still holds.
    #[arg(long, value_name = "N", default_value_t = 511, verbatim_doc_comment)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) tcp_backlog: u16,

    #[command(flatten)]
    pub(super) node: NodeFlags,

    /// Threads that serve connections, 1 to 256
    ///
    /// One is enough for hundreds of thousands of locks per second and wastes no time on waiting
    /// for others; more help when that one is busy all the time.
    #[arg(long, value_name = "N", default_value_t = 1, verbatim_doc_comment)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX))]
    pub(super) threads: u16,

    #[command(flatten)]
    pub(super) monitoring: MonitoringFlags,

    /// How lines on standard error are written: text for people, or json, an object to a line
    #[arg(long, value_name = "text|json", default_value = "text")]
    pub(super) log_format: LogFormat,

    /// How long SIGTERM or SIGINT waits for clients to take their replies: seconds, or 5m
    ///
    /// At the first signal the node accepts no more connections, answers every command it has
    /// received, and closes; at a second one it stops at once.
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    #[arg(value_parser = parse_drain, verbatim_doc_comment)]
    pub(super) drain: u64,

    #[command(flatten)]
    pub(super) restart: RestartFlags,

    #[command(flatten)]
    pub(super) hand_over: HandOverFlags,
}

impl ServeFlags {
    /// Gives each option of `command` an environment variable with its name.
    pub(crate) fn with_variables(command: Command) -> Command {
        command.mut_args(|arg| {
            let Some(name) = arg.get_long().filter(|name| !OF_ONE_START.contains(name)) else {
                return arg;
            };
            let variable = format!("LOCKNODE_{}", name.replace('-', "_").to_uppercase());
            if name == "port" && is_service_link(&variable) {
                return arg;
            }
            arg.env(variable)
        })
    }
}

/// Kubernetes sets `LOCKNODE_PORT=tcp://10.0.0.1:6379` in every pod beside a service named `locknode`. That is not
/// our option, and must not keep a node from starting.
fn is_service_link(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value.contains("://"))
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

/// Flags that are no settings of a node: what every start should do is not for them.
pub(super) const OF_ONE_START: &[&str] = &["first-start", "help", "print-config"];

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
