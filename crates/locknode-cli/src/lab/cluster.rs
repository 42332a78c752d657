//! A lab with faults: nodes behind faulty links, a console for the command `FAULT`, and the scenario that is played, if any.

use std::sync::Arc;

use locknode_testkit::cluster::{Cluster, ClusterError, Recorder, TappedCommand};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::dashboard::Dashboard;
use super::describe;
use super::fault_console::FaultConsole;
use super::flags::LabFlags;
use super::run::Run;
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::serving::Serving;

/// Runs the lab until Ctrl-C, or until the scenario ends.
///
/// # Errors
///
/// When a port is taken, a flag or a file makes no sense, or the operating system fails.
pub(super) fn run(flags: &LabFlags) -> Result<Exit, Failure> {
    let run = Run::of(flags)?;
    let setup = &run.scenario.setup;
    let (nodes, clients) = (setup.nodes, setup.clients);
    let room = descriptors_for(nodes, clients);
    descriptors::make_room(room, u16::from(nodes) * u16::from(clients));
    let mut serving = Serving::prepare()?;
    let recorder = Arc::new(Recorder::new(nodes, clients));
    let builder = Cluster::builder()
        .setup(setup)
        .first_port(flags.first_port());
    let mut builder = builder.record(Arc::clone(&recorder));
    let (sender, commands) = unbounded_channel();
    if flags.faults {
        builder = builder.tap("FAULT", sender);
    }
    let Some(cluster) = until(&mut serving, builder.build())? else {
        return Ok(Exit::Success);
    };
    let cluster = cluster.map_err(|error| failed(&error))?;
    let exit = play(&mut serving, flags, &run, &cluster, &recorder, commands);
    until(&mut serving, cluster.shutdown())?;
    exit
}

fn play(
    serving: &mut Serving,
    flags: &LabFlags,
    run: &Run,
    cluster: &Cluster,
    recorder: &Arc<Recorder>,
    commands: UnboundedReceiver<TappedCommand>,
) -> Result<Exit, Failure> {
    let checked = cluster.check_run(&run.scenario);
    checked.map_err(|error| match (&error, &flags.script) {
        (ClusterError::NotHere(_), Some(path)) => {
            let path = path.display();
            Failure::usage(format!(
                "{path}: {error}; locknode sim --replay {path} plays it on simulated nodes"
            ))
        }
        _ => failed(&error),
    })?;
    run.prepare()?;
    output::write(&describe::run(flags, run, cluster))?;
    let plays = run.again.is_some();
    let played = plays.then(|| (run.title.clone(), run.scenario.setup.run_for));
    let dashboard = Dashboard::of_cluster(cluster, recorder, played);
    let console = FaultConsole::new(cluster.clone(), dashboard.clone());
    let ended = until(serving, async {
        tokio::select! {
            played = cluster.run(&run.scenario), if plays => played.map_err(|error| failed(&error)),
            shown = dashboard.show() => shown,
            () = console.serve(commands), if flags.faults => Ok(()),
        }
    })?;
    match ended {
        Some(Err(failure)) => Err(failure),
        ended => run.conclude(recorder, plays && ended.is_none()),
    }
}

/// How many descriptors the nodes may need: for the connections that they accept, for what clients that have left leave
/// behind, and for the other ends of our own clients.
fn descriptors_for(nodes: u8, clients: u8) -> u64 {
    let of = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let links = u64::from(nodes) * u64::from(clients);
    u64::from(nodes) * of(Cluster::CONNECTIONS_MAX)
        + links * (of(Cluster::ORPHANS_MAX) + LINK_DESCRIPTORS)
}

/// An error of the cluster as the end of the command.
fn failed(error: &ClusterError) -> Failure {
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

/// Of a client of our own: both ends, and as much again while a connection takes the place of another.
const LINK_DESCRIPTORS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_descriptors_for_all_that_the_nodes_accept() {
        for (nodes, clients, at_least) in [(1, 1, 512 + 64), (5, 8, 5 * 512 + 40 * 64)] {
            assert!(descriptors_for(nodes, clients) >= at_least);
        }
    }
}
