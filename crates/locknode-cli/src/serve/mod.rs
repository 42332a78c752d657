//! `locknode serve`: one node, until a signal ends it.
//!
//! ```text
//!  flags > environment > file > defaults --> Setup --> sockets, threads --> Serving::run
//! ```

mod condition;
mod config_file;
mod flags;
#[cfg_attr(
    not(all(feature = "hand-over", target_os = "linux")),
    path = "no_hand_over.rs"
)]
mod hand_over;
#[cfg_attr(not(feature = "metrics"), path = "unmonitored.rs")]
mod monitoring;
mod node_flags;
mod print_config;
mod quarantine;
mod restart;
#[cfg_attr(not(feature = "systemd"), path = "no_service_manager.rs")]
mod service_manager;
mod sockets;
#[cfg(feature = "tls")]
mod tls_port;
#[cfg(not(feature = "tls"))]
#[path = "no_tls_port.rs"]
mod tls_port;
mod unix_socket;
#[cfg_attr(not(feature = "acl"), path = "no_users.rs")]
mod users;

use std::convert::Infallible;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches as _};
use locknode::Node;
use tokio::signal::unix::Signal;

pub(crate) use self::flags::ServeFlags;

use self::config_file::ConfigFile;
use self::hand_over::{Inheritance, Offer, Passed, Waiting};
use self::monitoring::Monitoring;
use self::restart::Quarantine;
use self::service_manager::ServiceManager;
use self::sockets::Sockets;
use self::tls_port::TlsPort;
use self::users::UsersFile;
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::log::Log;
use crate::output;
use crate::pulse::Pulse;
use crate::serving::{Service, Serving};

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
    let users = users::read(setup)?;
    let log = &Log::new(setup.node.options.loglevel, setup.log_format);
    let maxclients = descriptors::make_room(setup.node.options.maxclients, setup.threads);
    let serving = Serving::prepare()?;
    let hang_ups = serving.hang_ups()?;
    let manager = ServiceManager::of_environment(log);
    let tls = TlsPort::of(setup)?;
    let prepared = prepare(setup, tls.as_ref(), log)?;
    let Prepared {
        sockets,
        monitoring,
        mut inheritance,
    } = prepared;
    let node = open(setup, users, maxclients, &mut inheritance)?;
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
    let passed = monitoring.passed()?;
    let monitored = monitoring.start(&node, pulse.as_ref(), log)?;
    let process = Process {
        serving,
        hang_ups,
        manager: manager.clone(),
        pulse,
        inheritance,
        passed,
    };
    let served = serve_node(setup, &node, sockets, tls, process, monitored, log);
    let (waiting, served) = match served {
        Ok(waiting) => (waiting, Ok(())),
        Err(failure) => (None, Err(failure)),
    };
    let closed = match waiting.and_then(Waiting::successor) {
        Some(successor) => {
            manager.goes_on_in(successor.id());
            successor.inherit(&node, log)
        }
        None => quarantine::close(&node, setup.restart.dir.as_deref(), log),
    };
    served.and(closed)?;
    log.info("ended");
    Ok(Exit::Success)
}

/// What is there before the node is.
struct Prepared {
    /// None yet, when the node does not listen in quarantine.
    sockets: Option<Sockets>,
    monitoring: Monitoring,
    inheritance: Inheritance,
}

/// Opens what the node needs, before the node: one that has opened its directory has begun a run, which a taken port
/// would waste. If another process is there to hand over, it serves until all of this is done, and then stops.
fn prepare(setup: &ServeFlags, tls: Option<&TlsPort>, log: &Log) -> Result<Prepared, Failure> {
    let open = |offer: &mut Offer| {
        let sockets = match setup.restart.quarantine {
            Quarantine::Refuse if !offer.is_there() => None,
            _ => Some(sockets::open(setup, tls, offer)?),
        };
        Ok((sockets, Monitoring::open(&setup.monitoring, offer)?))
    };
    let mut offer = Offer::ask(&setup.hand_over, &setup.restart, log)?;
    let was_there = offer.is_there();
    let (mut sockets, mut monitoring) = open(&mut offer)?;
    let inheritance = match offer.accept(log) {
        Some(inheritance) => inheritance,
        None => {
            // The other process may still end. What it gave is of no use: only a port that the system gives to this
            // process shows that nobody else serves there.
            drop((sockets, monitoring));
            (sockets, monitoring) = hand_over::insist(|| open(&mut Offer::default()))?;
            Inheritance::default()
        }
    };
    debug_assert!(was_there || !inheritance.is_some());
    Ok(Prepared {
        sockets,
        monitoring,
        inheritance,
    })
}

/// How the process runs: what it listens to, and who wants to know how it is.
struct Process {
    serving: Serving,
    hang_ups: Signal,
    manager: ServiceManager,
    pulse: Option<Pulse>,
    inheritance: Inheritance,
    /// The socket for metrics, for another process.
    passed: Option<Passed>,
}

/// Tells the manager, when it is dropped, that the node stops, unless it goes on in another process.
struct StopNotice<'m>(&'m ServiceManager, Option<&'m Waiting>);

impl Drop for StopNotice<'_> {
    fn drop(&mut self) {
        if !self.1.is_some_and(Waiting::is_over) {
            self.0.stopping();
        }
    }
}

/// Serves an open node to its end. Returns where another process is, if one has come to go on.
fn serve_node(
    setup: &ServeFlags,
    node: &Node,
    sockets: Option<Sockets>,
    tls: Option<TlsPort>,
    process: Process,
    monitored: impl Future<Output = Infallible>,
    log: &Log,
) -> Result<Option<Waiting>, Failure> {
    let Process {
        mut serving,
        mut hang_ups,
        manager,
        pulse,
        inheritance,
        passed,
    } = process;
    let sockets = match sockets {
        Some(sockets) => {
            sockets.announce(node, setup, log);
            quarantine::announce(node, &setup.restart, log);
            sockets
        }
        None => {
            quarantine::announce(node, &setup.restart, log);
            if !quarantine::sit_out(node, &setup.restart, &mut serving, &manager, log) {
                manager.stopping();
                return Ok(None);
            }
            let sockets = sockets::open(setup, tls.as_ref(), &mut Offer::default())?;
            sockets.announce(node, setup, log);
            sockets
        }
    };
    warn_of_risks(setup, node, &sockets, log);
    log.debug(format_args!(
        "threads {}, maxmemory {} bytes",
        setup.threads, setup.node.options.maxmemory
    ));

    let passed = sockets.passed()?.into_iter().chain(passed);
    let drain = Duration::from_secs(setup.drain);
    let waiting = hand_over::wait(&setup.hand_over, &setup.restart, drain, node, passed, log)?;
    let file = sockets.file;
    let threads = sockets.threads.into_iter().map(|sockets| {
        let service = |socket| Service {
            node: node.clone(),
            socket,
            ended: Default::default(),
            #[cfg(feature = "hand-over")]
            carried: Vec::new(),
        };
        sockets.into_iter().map(service).collect()
    });
    let mut threads: Vec<_> = threads.collect();
    inheritance.announce(log);
    inheritance.spread(&mut threads);
    let mut again = hand_over::Again::listen(&setup.hand_over, &serving)?;
    manager.ready(node);
    let notice = StopNotice(&manager, waiting.as_ref());
    let beside = async {
        let _notice = notice;
        let reload = async {
            while hang_ups.recv().await.is_some() {
                let reload = || tls.iter().for_each(|tls| tls.reload(log));
                manager.reloading(reload);
            }
        };
        let told = async {
            tokio::join!(reload, manager.follow(node), again.start(log));
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            failed = quarantine::report_changes(node.clone(), log) => failed,
            never = told => match never {},
            never = monitored => match never {},
            never = write_notes(node, log) => match never {},
        }
    };
    let served = serving.run(threads, log, pulse.as_ref(), beside);
    if let (Some(file), true) = (file, waiting.as_ref().is_some_and(Waiting::is_over)) {
        // It belongs to the process that goes on.
        file.leave();
    }
    served.map(|()| waiting)
}

/// Writes what operators did through commands to the log.
async fn write_notes(node: &Node, log: &Log) -> Infallible {
    loop {
        log.warn(node.note().await);
    }
}

fn open(
    setup: &ServeFlags,
    users: Option<UsersFile>,
    maxclients: u64,
    inheritance: &mut Inheritance,
) -> Result<Node, Failure> {
    let mut options = setup.node.options.clone();
    options.maxclients = maxclients;
    let config_file = setup.config.as_ref().map(|path| path.display().to_string());
    let builder = Node::builder()
        .options(options)
        .shards(if setup.threads == 1 { 1 } else { SHARDS })
        .drain(Duration::from_secs(setup.drain))
        .config_file(config_file.unwrap_or_default());
    let builder = users::give(inheritance.left_to(builder), users);
    setup.restart.open(builder, inheritance.is_some())
}

fn warn_of_risks(setup: &ServeFlags, node: &Node, sockets: &Sockets, log: &Log) {
    let options = &setup.node.options;
    let maxclients = node.options().maxclients;
    if maxclients < options.maxclients {
        log.warn(format_args!(
            "maxclients is {maxclients} instead of {}: the system allows no more file descriptors (raise it with \
             ulimit -n or LimitNOFILE=)",
            options.maxclients
        ));
    }
    let is_open = |addresses: &[SocketAddr]| addresses.iter().any(|addr| !addr.ip().is_loopback());
    let (tcp, tls) = (is_open(&sockets.tcp), is_open(&sockets.tls));
    match (node.is_open(), options.protected_mode) {
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
