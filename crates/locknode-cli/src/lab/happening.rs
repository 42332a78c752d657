//! A lab in which things go wrong: builds the nodes behind their faulty links and runs whatever was asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, ClusterBuilder, ClusterError, DeskRequest, Recorder};
use locknode_testkit::{Guarding, Scenario, Setup, Span, Swarm};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::closing::Closing;
use super::desk::Desk;
use super::flags::LabFlags;
use super::show::Show;
use super::tally::counted;
use super::view::{News, View, Watched};
use super::{introduction, locks};
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::serving::Serving;

/// Runs the lab until Ctrl-C, or until what was to be shown is over.
///
/// # Errors
///
/// When a port is taken, a flag or a file makes no sense, or the operating system fails.
pub(super) fn run(flags: &LabFlags) -> Result<Exit, Failure> {
    let show = show(flags)?;
    let (builder, (nodes, clients)) = builder(flags, show.as_ref())?;
    let room = descriptors_for(nodes, clients);
    descriptors::make_room(room, u16::from(nodes) * u16::from(clients));
    let mut serving = Serving::prepare()?;
    let recorder = Arc::new(Recorder::new(nodes, clients));
    let builder = builder.record(Arc::clone(&recorder));
    let (sender, requests) = unbounded_channel();
    let builder = match flags.faults {
        true => builder.desk("FAULT", sender),
        false => builder,
    };
    let Some(cluster) = until(&mut serving, builder.build())? else {
        return Ok(Exit::Success);
    };
    let cluster = cluster.map_err(|error| failed(&error))?;
    let exit = match show {
        Some(show) => perform(&mut serving, flags, &cluster, &show, recorder, requests),
        None => stand_by(&mut serving, flags, &cluster, &recorder, requests),
    };
    until(&mut serving, cluster.shutdown())?;
    exit
}

/// Nodes for others' clients, until Ctrl-C.
fn stand_by(
    serving: &mut Serving,
    flags: &LabFlags,
    cluster: &Cluster,
    recorder: &Arc<Recorder>,
    requests: UnboundedReceiver<DeskRequest>,
) -> Result<Exit, Failure> {
    let closing = closing(flags, cluster);
    closing.prepare()?;
    output::write(&introduce(flags, cluster))?;
    let news = News::default();
    let watched = (0..).zip(cluster.addresses());
    let watched = watched.map(|(node, addr)| Watched::member(addr, cluster.clone(), node));
    let view = View::new(watched.collect(), news.clone());
    let desk = Desk::new(cluster.clone(), news, requests);
    let shown = until(serving, async {
        tokio::select! {
            shown = view.show() => shown,
            () = desk.serve() => Ok(()),
        }
    })?;
    shown.unwrap_or(Ok(()))?;
    closing.conclude(recorder, false)
}

/// How a lab ends whose clients are all others'.
fn closing(flags: &LabFlags, cluster: &Cluster) -> Closing {
    let (nodes, clients) = (cluster.nodes(), cluster.clients());
    let guard = if flags.is_unguarded() {
        ", without restart guard"
    } else {
        ""
    };
    Closing {
        title: format!("{} under faults{guard}", counted(nodes, "node")),
        scenario: Scenario::new(Setup {
            nodes,
            clients,
            guard: guarding(flags),
            max_ttl: flags.max_ttl,
            ..Setup::default()
        }),
        timeline: flags.timeline.clone(),
        history: flags.history.clone(),
        again: None,
    }
}

/// The guard of nodes for others' clients.
fn guarding(flags: &LabFlags) -> Guarding {
    match flags.is_unguarded() {
        true => Guarding::Off,
        false => Guarding::Long,
    }
}

/// A piece with clients of the lab's own.
fn perform(
    serving: &mut Serving,
    flags: &LabFlags,
    cluster: &Cluster,
    show: &Show,
    recorder: Arc<Recorder>,
    requests: UnboundedReceiver<DeskRequest>,
) -> Result<Exit, Failure> {
    show.prepare(cluster)?;
    if flags.chaos.is_some() {
        output::write(&foreword(&show.scenario.setup))?;
    }
    if flags.faults || flags.script.is_some() {
        output::write(&introduce_ports(cluster))?;
    }
    let desk = Desk::new(cluster.clone(), News::default(), requests);
    let has_desk = flags.faults;
    let played = until(serving, async {
        tokio::select! {
            played = show.play(cluster, &recorder) => played,
            () = desk.serve(), if has_desk => Ok(()),
        }
    })?;
    match played {
        Some(Err(failure)) => Err(failure),
        Some(Ok(())) => show.closing().conclude(&recorder, false),
        None => show.closing().conclude(&recorder, true),
    }
}

/// What is to be shown, if anything.
fn show(flags: &LabFlags) -> Result<Option<Show>, Failure> {
    let (scenario, title, name, again) = match (flags.chaos, &flags.script) {
        (Some(seed), _) => {
            let swarm = Swarm::chaos(flags.ttl).nodes(few(flags.nodes)?);
            let clients = flags.clients.unwrap_or(CHAOS_CLIENTS);
            let guard = flags.guard().unwrap_or(Guarding::Memory);
            let swarm = swarm.clients(clients).run_for(flags.run_for);
            let scenario = swarm.guard(guard).scenario(seed);
            let again = again(&scenario.setup);
            let title = format!("chaos of seed {seed}: one lock, ");
            (scenario, title, format!("chaos-{seed}"), again)
        }
        (None, Some(path)) => {
            let scenario = read(path, flags.guard())?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let mut again = format!("locknode lab --script {}", path.display());
            if let Some(guard) = flags.guard() {
                again.push_str(" --restart-guard ");
                again.push_str(if guard == Guarding::Off { "off" } else { "on" });
            }
            (scenario, format!("{file}: "), stem.into_owned(), again)
        }
        (None, None) => return Ok(None),
    };
    let Setup {
        nodes,
        clients,
        guard,
        ..
    } = scenario.setup;
    // One sees the difference in two pictures side by side.
    let (mark, without) = match guard {
        Guarding::Off => ("-guard-off", ", without restart guard"),
        _ => ("", ""),
    };
    let default = || PathBuf::from(format!("locknode-{name}{mark}.html"));
    Ok(Some(Show {
        title: format!(
            "{title}{}, {}{without}",
            counted(clients, "client"),
            counted(nodes, "node")
        ),
        scenario,
        timeline: flags.timeline.clone().unwrap_or_else(default),
        history: flags.history.clone(),
        again,
    }))
}

/// A builder for what was asked for, and how many nodes and clients it makes.
fn builder(flags: &LabFlags, show: Option<&Show>) -> Result<(ClusterBuilder, (u8, u8)), Failure> {
    let builder = Cluster::builder().first_port(flags.first_port());
    if let Some(show) = show {
        let setup = &show.scenario.setup;
        return Ok((builder.setup(setup), (setup.nodes, setup.clients)));
    }
    let (nodes, clients) = (few(flags.nodes)?, flags.clients.unwrap_or(1));
    let builder = builder.nodes(nodes).clients(clients);
    let builder = builder.guard(guarding(flags)).max_ttl(flags.max_ttl);
    Ok((builder, (nodes, clients)))
}

fn few(nodes: u16) -> Result<u8, Failure> {
    let few = u8::try_from(nodes).ok().filter(|nodes| *nodes <= 16);
    few.ok_or_else(|| {
        Failure::usage(format!(
            "--nodes {nodes}: with faults there can be 16 at most"
        ))
    })
}

/// The scenario of a file.
fn read(path: &Path, guard: Option<Guarding>) -> Result<Scenario, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::unavailable(format!("cannot read {shown}: {error}")))?;
    let mut scenario =
        Scenario::parse(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    scenario.setup.guard = guarded(scenario.setup.guard, guard);
    Ok(scenario)
}

/// How the nodes of a scenario guard their restarts, when something else was asked for: guards with a disk are guards too.
fn guarded(scenario: Guarding, asked: Option<Guarding>) -> Guarding {
    match (scenario, asked) {
        (_, Some(Guarding::Off)) => Guarding::Off,
        (Guarding::Off, Some(guard)) => guard,
        (guard, _) => guard,
    }
}

/// How many descriptors the nodes may need: as many connections as they take, what clients that have left leave behind, and
/// the other ends of those of our own clients.
fn descriptors_for(nodes: u8, clients: u8) -> u64 {
    let of = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let links = u64::from(nodes) * u64::from(clients);
    u64::from(nodes) * of(Cluster::CONNECTIONS_MAX)
        + links * (of(Cluster::ORPHANS_MAX) + LINK_DESCRIPTORS)
}

/// The line that does a chaos again.
fn again(setup: &Setup) -> String {
    let mut line = format!(
        "locknode lab --chaos {} --clients {} --for {}",
        setup.seed,
        setup.clients,
        written(setup.run_for)
    );
    if setup.nodes != NODES {
        line.push_str(&format!(" --nodes {}", setup.nodes));
    }
    if setup.max_ttl != Duration::from_secs(1) {
        line.push_str(&format!(" --ttl {}", written(setup.max_ttl)));
    }
    if setup.guard == Guarding::Off {
        line.push_str(" --restart-guard off");
    }
    line
}

/// As the command line reads it.
fn written(span: Duration) -> String {
    match span.subsec_millis() {
        0 => format!("{}s", span.as_secs()),
        _ => format!("{}ms", span.as_millis()),
    }
}

/// What is about to be seen.
fn foreword(setup: &Setup) -> String {
    let guard = match setup.guard {
        Guarding::Off => {
            "The nodes run without their restart guard: one that crashes has forgotten its\n\
             locks when it is back, and serves at once."
        }
        _ => {
            "A node that crashes stays out of every lock after it is back, until all that\n\
             it had granted must have ended."
        }
    };
    format!(
        "{} of this process want one lock, with a TTL of {}, from {} behind\n\
         real sockets. For {} nodes are killed, links cut, replies lost and processes\n\
         stopped, as seed {} decides.\n\
         {guard}\n\
         Does it ever happen that two clients hold the lock at the same time?\n\n",
        counted(setup.clients, "client"),
        Span(setup.max_ttl),
        counted(setup.nodes, "node"),
        Span(setup.run_for),
        setup.seed,
    )
}

fn introduce(flags: &LabFlags, cluster: &Cluster) -> String {
    let addrs = cluster.addresses();
    let port = addrs.first().map_or(0, std::net::SocketAddr::port);
    let mut more = format!(
        "\nFaults, from any client; all of them: FAULT HELP\n  \
           redis-cli -p {port} FAULT CRASH FOR 5s\n  \
           redis-cli -p {port} FAULT DROP REPLIES 2\n  \
           redis-cli -p {port} FAULT CUT NODE 1,2\n  \
           redis-cli -p {port} FAULT RESTART NODE 3\n  \
           redis-cli -p {port} FAULT STATUS\n"
    );
    if cluster.clients() > 1 {
        more.push_str(
            "\nEach client has ports of its own, for node 0 and the following in order, and faults of its own\n\
             (FAULT CUT CLIENT 1):\n",
        );
        more.push_str(&ports_of_clients(cluster));
    }
    introduction(&addrs, &locks(flags), &more)
}

fn introduce_ports(cluster: &Cluster) -> String {
    format!(
        "{}, which other programs can use too, by the ports of any client; from node 0 on:\n{}\n",
        counted(cluster.nodes(), "node"),
        ports_of_clients(cluster)
    )
}

fn ports_of_clients(cluster: &Cluster) -> String {
    let line = |client| {
        let addrs = cluster.addresses_for(client).unwrap_or_default();
        let addrs: Vec<String> = addrs.iter().map(ToString::to_string).collect();
        format!("  client {client}: {}\n", addrs.join(","))
    };
    (0..cluster.clients()).map(line).collect()
}

/// What is wrong with a cluster as the end of the command.
pub(super) fn failed(error: &ClusterError) -> Failure {
    match error {
        ClusterError::Io(..) | ClusterError::Port(..) | ClusterError::Open(..) => {
            Failure::unavailable(error.to_string())
        }
        _ => Failure::usage(error.to_string()),
    }
}

/// Does something, unless a signal comes before it is done.
fn until<T>(serving: &mut Serving, work: impl Future<Output = T>) -> Result<Option<T>, Failure> {
    let mut done = None;
    let signal = serving.wait(async { done = Some(work.await) });
    match (done, signal) {
        (Some(done), _) => Ok(Some(done)),
        (None, Some(_)) => Ok(None),
        (None, None) => Err(Failure::internal("a task ended unexpectedly")),
    }
}

/// As many as make the lock worth waiting for.
const CHAOS_CLIENTS: u8 = 8;

/// As `--nodes` has it.
const NODES: u8 = 5;

/// Of a client of our own: both ends, and as much again while a connection takes the place of another.
const LINK_DESCRIPTORS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_is_asked_for_takes_no_better_one_away() {
        use Guarding::{Always, Long, Memory, Off};
        for (scenario, asked, want) in [
            (Off, None, Off),
            (Off, Some(Memory), Memory),
            (Memory, Some(Memory), Memory),
            (Long, Some(Memory), Long),
            (Always, Some(Memory), Always),
            (Always, None, Always),
            (Always, Some(Off), Off),
        ] {
            assert_eq!(guarded(scenario, asked), want, "{scenario:?} {asked:?}");
        }
    }

    #[test]
    fn there_are_descriptors_for_all_that_the_nodes_take() {
        for (nodes, clients, at_least) in [(1, 1, 512 + 64), (5, 8, 5 * 512 + 40 * 64)] {
            assert!(descriptors_for(nodes, clients) >= at_least);
        }
    }
}
