//! `locknode serve`: one node, until a signal ends it.
//!
//! ```text
//!  flags > environment > file > defaults --> Setup --> sockets, threads --> Serving::run
//! ```

mod condition;
mod config_file;
mod flags;
#[cfg_attr(not(feature = "metrics"), path = "unmonitored.rs")]
mod monitoring;
mod node_flags;
mod print_config;
mod quarantine;
mod restart;
#[cfg_attr(not(feature = "systemd"), path = "no_service_manager.rs")]
mod service_manager;
#[cfg(feature = "tls")]
mod tls_port;
#[cfg(not(feature = "tls"))]
#[path = "no_tls_port.rs"]
mod tls_port;
mod unix_socket;

use std::convert::Infallible;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches as _};
use locknode::Node;
use tokio::signal::unix::Signal;

pub(crate) use self::flags::ServeFlags;

use self::config_file::ConfigFile;
use self::monitoring::Monitoring;
use self::restart::Quarantine;
use self::service_manager::ServiceManager;
use self::tls_port::TlsPort;
use self::unix_socket::SocketFile;
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::listening;
use crate::log::Log;
use crate::output;
use crate::pulse::Pulse;
use crate::serving::{Service, Serving, Socket};

/// Runs a node. `flags` defines the options, `given` is what the command line and the environment set, `args` is what
/// stands behind `serve`.
///
/// # Errors
///
/// When the configuration is wrong, an address cannot be listened on or the operating system fails.
pub(crate) fn run(flags: Command, given: &ArgMatches, args: &[OsString]) -> Result<Exit, Failure> {
    let internal = |error: clap::Error| Failure::internal(error.to_string());
    let mut setup = ServeFlags::from_arg_matches(given).map_err(internal)?;
    let config = setup.config.clone();
    let mut merged = given.clone();
    let mut file = None;
    if let Some(path) = &config {
        let found = ConfigFile::read(path, &flags)?;
        let mut all = found.flags_beside(given, &flags);
        all.extend_from_slice(args);
        merged = flags.clone().try_get_matches_from(all).map_err(internal)?;
        setup = ServeFlags::from_arg_matches(&merged).map_err(internal)?;
        file = Some((path.as_path(), found));
    }
    if setup.print_config {
        let file = file.as_ref().map(|(path, file)| (*path, file));
        output::write(&print_config::render(&flags, given, &merged, file))?;
        return Ok(Exit::Success);
    }
    serve(&setup)
}

fn serve(setup: &ServeFlags) -> Result<Exit, Failure> {
    setup.restart.check()?;
    let log = &Log::new(setup.node.options.loglevel, setup.log_format);
    let maxclients = descriptors::make_room(setup.node.options.maxclients, setup.threads);
    let serving = Serving::prepare()?;
    let hang_ups = serving.hang_ups()?;
    let manager = ServiceManager::of_environment(log);
    let tls = TlsPort::of(setup)?;
    // Before the node, because a node that has opened its directory has begun a run, which a taken port would waste.
    let sockets = match setup.restart.quarantine {
        Quarantine::Answer => Some(open_sockets(setup, tls.as_ref())?),
        Quarantine::Refuse => None,
    };
    let monitoring = Monitoring::open(&setup.monitoring)?;
    let node = open(setup, maxclients)?;
    log.follow(&node);
    log.info(format_args!(
        "locknode {}, process {}",
        env!("CARGO_PKG_VERSION"),
        std::process::id()
    ));
    let beats = monitoring.beat().into_iter().chain(manager.beat());
    let pulse = beats
        .min()
        .map(|every| Pulse::of(setup.threads.into(), every));
    manager.watch(pulse.as_ref())?;
    let monitored = monitoring.start(&node, pulse.as_ref(), log)?;
    let process = Process {
        serving,
        hang_ups,
        manager,
        pulse,
    };
    let served = serve_node(setup, &node, sockets, tls, process, monitored, log);
    let closed = quarantine::close(&node, setup.restart.dir.as_deref(), log);
    served.and(closed)?;
    log.info("ended");
    Ok(Exit::Success)
}

/// How the process runs: what it listens to, and who wants to know how it is.
struct Process {
    serving: Serving,
    hang_ups: Signal,
    manager: ServiceManager,
    pulse: Option<Pulse>,
}

/// Tells the manager, when it is dropped, that the node stops.
struct StopNotice<'m>(&'m ServiceManager);

impl Drop for StopNotice<'_> {
    fn drop(&mut self) {
        self.0.stopping();
    }
}

/// Serves an open node to its end.
fn serve_node(
    setup: &ServeFlags,
    node: &Node,
    sockets: Option<Sockets>,
    tls: Option<TlsPort>,
    process: Process,
    monitored: impl Future<Output = Infallible>,
    log: &Log,
) -> Result<(), Failure> {
    let Process {
        mut serving,
        mut hang_ups,
        manager,
        pulse,
    } = process;
    let notice = StopNotice(&manager);
    let sockets = match sockets {
        Some(sockets) => {
            sockets.announce(node, setup, log);
            quarantine::announce(node, &setup.restart, log);
            sockets
        }
        None => {
            quarantine::announce(node, &setup.restart, log);
            if !quarantine::sit_out(node, &setup.restart, &mut serving, &manager, log) {
                return Ok(());
            }
            let sockets = open_sockets(setup, tls.as_ref())?;
            sockets.announce(node, setup, log);
            sockets
        }
    };
    warn_of_risks(setup, node.options().maxclients, &sockets, log);
    log.debug(format_args!(
        "threads {}, maxmemory {} bytes",
        setup.threads, setup.node.options.maxmemory
    ));

    // Bound until the end of the function, where the file is removed.
    let _file = sockets.file;
    let threads = sockets.threads.into_iter().map(|sockets| {
        let service = |socket| Service {
            node: node.clone(),
            socket,
            ended: Default::default(),
        };
        sockets.into_iter().map(service).collect()
    });
    manager.ready(node);
    let beside = async {
        let _notice = notice;
        let reload = async {
            while hang_ups.recv().await.is_some() {
                let reload = || tls.iter().for_each(|tls| tls.reload(log));
                manager.reloading(reload);
            }
        };
        let told = async {
            tokio::join!(reload, manager.follow(node));
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            failed = quarantine::report_changes(node.clone(), log) => failed,
            never = told => match never {},
            never = monitored => match never {},
        }
    };
    serving.run(threads.collect(), log, pulse.as_ref(), beside)
}

/// The open sockets of a node.
struct Sockets {
    tcp: Vec<SocketAddr>,
    tls: Vec<SocketAddr>,
    /// Whether somebody without a password needs a certificate on the latter.
    checks_certificates: bool,
    /// What each thread accepts from.
    threads: Vec<Vec<Socket>>,
    /// Removes the Unix socket's file at the end.
    file: Option<SocketFile>,
}

impl Sockets {
    /// Reports where the node listens, in INFO and on standard error.
    fn announce(&self, node: &Node, setup: &ServeFlags, log: &Log) {
        for address in &self.tcp {
            node.listens_on(*address);
            log.info(format_args!("listening on {address}"));
        }
        for address in &self.tls {
            tls_port::announce(node, *address);
            log.info(format_args!("listening on {address} with TLS"));
        }
        if let Some(path) = &setup.unixsocket {
            log.info(format_args!("listening on unix:{}", path.display()));
        }
    }

    /// Opens a port on every address, for each thread; returns the addresses.
    fn open_tcp(
        &mut self,
        setup: &ServeFlags,
        mut port: u16,
        flag: &str,
        socket: impl Fn(TcpListener) -> Socket,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let mut addresses = Vec::new();
        // With port 0 the first address gets a free port, and the others the same.
        for bind in setup.bind.iter().flatten() {
            let addr = match bind.resolve(port) {
                Err(_) if bind.is_optional => continue,
                resolved => resolved?,
            };
            let backlog = i32::from(setup.tcp_backlog);
            let opened = match listening::listen(addr, backlog, self.threads.len()) {
                Err(error) if bind.is_optional && is_absent(&error) => continue,
                opened => opened.map_err(|error| listening::explain(addr, flag, &error))?,
            };
            if let Some(Ok(actual)) = opened.first().map(TcpListener::local_addr) {
                port = actual.port();
                addresses.push(actual);
            }
            for (thread, opened) in self.threads.iter_mut().zip(opened) {
                thread.push(socket(opened));
            }
        }
        Ok(addresses)
    }
}

fn open_sockets(setup: &ServeFlags, tls: Option<&TlsPort>) -> Result<Sockets, Failure> {
    let mut sockets = Sockets {
        tcp: Vec::new(),
        tls: Vec::new(),
        checks_certificates: tls.is_some_and(TlsPort::checks_certificates),
        threads: Vec::new(),
        file: None,
    };
    sockets
        .threads
        .resize_with(usize::from(setup.threads), Vec::new);
    if setup.port != 0 || tls.is_none() {
        sockets.tcp = sockets.open_tcp(setup, setup.port, "--port", Socket::Tcp)?;
    }
    if let Some(tls) = tls {
        sockets.tls =
            sockets.open_tcp(setup, tls.port(), "--tls-port", |opened| tls.socket(opened))?;
    }
    if let Some(path) = &setup.unixsocket {
        let (socket, file) =
            unix_socket::listen(path, setup.unixsocketperm, setup.tcp_backlog.into())?;
        sockets.file = Some(file);
        for thread in &mut sockets.threads {
            // A path has one socket: the threads share it, and the one that is free first accepts.
            let socket = socket.try_clone();
            let shared = socket
                .map_err(|error| Failure::internal(format!("cannot share a socket: {error}")))?;
            thread.push(Socket::Unix(shared));
        }
    }
    if sockets.threads.iter().all(Vec::is_empty) {
        return Err(Failure::usage(
            "nothing to listen on: give an address with --bind or a path with --unixsocket",
        ));
    }
    Ok(sockets)
}

/// Whether the machine does not have the address, or not that kind of address.
fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
    ) || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

fn open(setup: &ServeFlags, maxclients: u64) -> Result<Node, Failure> {
    let mut options = setup.node.options.clone();
    options.maxclients = maxclients;
    let config_file = setup.config.as_ref().map(|path| path.display().to_string());
    let builder = Node::builder()
        .options(options)
        .shards(if setup.threads == 1 { 1 } else { SHARDS })
        .drain(Duration::from_secs(setup.drain))
        .config_file(config_file.unwrap_or_default());
    setup.restart.open(builder)
}

fn warn_of_risks(setup: &ServeFlags, maxclients: u64, sockets: &Sockets, log: &Log) {
    let options = &setup.node.options;
    if maxclients < options.maxclients {
        log.warn(format_args!(
            "maxclients is {maxclients} instead of {}: the system allows no more file descriptors (raise it with \
             ulimit -n or LimitNOFILE=)",
            options.maxclients
        ));
    }
    let is_open = |addresses: &[SocketAddr]| addresses.iter().any(|addr| !addr.ip().is_loopback());
    let (tcp, tls) = (is_open(&sockets.tcp), is_open(&sockets.tls));
    match (options.requirepass.is_empty(), options.protected_mode) {
        (true, true) if tcp || tls => log.warn(
            "protected mode: without a password, only loopback clients are served (set --requirepass, or --protected-mode no on a trusted network)",
        ),
        (true, false) if tcp || tls && !sockets.checks_certificates => {
            log.warn("no password: anyone who reaches the port can acquire and release every lock");
        }
        _ => {}
    }
}

/// What the engine recommends for several threads.
const SHARDS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  locknode serve --first-start                     on 127.0.0.1:6379, for this machine
  locknode serve --dir /var/lib/locknode           keeps what a restart needs
  locknode serve --port 0                          on any free port, which is printed
  LOCKNODE_REQUIREPASS=secret locknode serve --bind '*' --maxmemory 100mb
  locknode serve --unixsocket /run/locknode.sock --unixsocketperm 770 --bind ''
  locknode serve --port 0 --tls-port 6380 --tls-cert-file node.pem --tls-key-file node.key --tls-ca-cert-file ca.pem
  locknode serve --config locknode.toml --print-config

A file for --config:
  bind = [\"10.0.0.5\", \"127.0.0.1\"]
  maxmemory = \"100mb\"
  dir = \"/var/lib/locknode\"

Signals: SIGTERM and SIGINT stop the node as soon as its clients have their replies, and after
--drain at the latest; a second one stops it at once. With --dir, the node then writes every lock
to it. SIGHUP has the files of TLS read again; connections go on.

Exit codes: 0 stopped cleanly, 64 wrong usage, 69 an address or the directory cannot be used, 70
the operating system failed.";
