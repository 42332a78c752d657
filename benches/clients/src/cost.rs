//! The first table: what a lock costs each client.

use locknode_peers::server::Server;
use locknode_peers::statistics::median;

use crate::cluster::Cluster;
use crate::contestant::{Contestant, OURS};
use crate::options::Options;
use crate::rounds::{self, Round};
use crate::run::{self, Load, Measured};
use crate::target::{self, Finding, ratio};

/// Measures and prints it.
pub(crate) fn measure(
    options: &Options,
    server: &Server,
    contestants: &[Contestant],
    findings: &mut Vec<Finding>,
) -> Result<(), String> {
    println!("\n## Client CPU per lock, all replies awaited");
    let mut rows = Vec::new();
    for in_flight in IN_FLIGHT {
        let load = options.load(in_flight);
        let rounds = rounds::collect(options, |is_reversed| {
            round(server, contestants, load, is_reversed)
        })?;
        let ours = contestants.iter().position(Contestant::is_ours);
        for (index, contestant) in contestants.iter().enumerate() {
            let of = |pick: fn(&Measured) -> f64| {
                let values = rounds.iter().filter_map(|round| round.get(index).map(pick));
                median(&values.collect::<Vec<_>>())
            };
            let ratios: Vec<f64> = rounds
                .iter()
                .filter_map(|round| Some(round.get(index)?.cpu_us / round.get(ours?)?.cpu_us))
                .collect();
            rows.push(format!(
                "| {in_flight} | {} | {:.1} | {} | {:.0} | {:.0} | {:.0} |",
                contestant.name,
                of(|run| run.cpu_us),
                if contestant.is_ours() {
                    String::new()
                } else {
                    ratio(&ratios)
                },
                of(|run| run.locks_per_second),
                of(|run| run.p50_us),
                of(|run| run.p99_us),
            ));
            if let Some(bound) = target::cost(contestant.name, in_flight) {
                let label = format!(
                    "client CPU per lock, {in_flight} in flight, of {} against {OURS}",
                    contestant.name
                );
                findings.push(Finding::new(label, ratios, bound));
            }
        }
    }
    println!(
        "\n| in flight | client | CPU per lock, us | times ours | locks/s | p50 of acquire, us | p99, us |"
    );
    println!("|---|---|---|---|---|---|---|");
    println!("{}", rows.join("\n"));
    Ok(())
}

/// Every client once on the same five nodes, in the order of the clients.
fn round(
    server: &Server,
    contestants: &[Contestant],
    load: Load,
    is_reversed: bool,
) -> Result<Round<Vec<Measured>>, String> {
    let cluster = Cluster::start(server)?;
    let mut order: Vec<_> = contestants.iter().collect();
    if is_reversed {
        order.reverse();
    }
    let mut done = Vec::new();
    for contestant in order {
        let run = run::run(contestant, &cluster, &cluster.addresses(), load, || Ok(()))?;
        match rounds::flawless(contestant.name, run) {
            Round::Counted(measured) => done.push(measured),
            Round::Disturbed => return Ok(Round::Disturbed),
            Round::Void(reason) => return Ok(Round::Void(reason)),
        }
    }
    if is_reversed {
        done.reverse();
    }
    Ok(Round::Counted(done))
}

const IN_FLIGHT: [u32; 3] = [1, 64, 256];
