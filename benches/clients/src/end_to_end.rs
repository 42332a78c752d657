//! The third table: our nodes and client against five Redis servers and the Rust client that is there for them.

use locknode_peers::server::Server;
use locknode_peers::statistics::median;

use crate::cluster::Cluster;
use crate::contestant::{Contestant, RSLOCK};
use crate::options::{self, Options};
use crate::rounds::{self, Round};
use crate::run::{self, Load, Measured};
use crate::target::{self, Finding, ratio};

/// Measures and prints it, if both clients are among the contestants.
pub(crate) fn measure(
    options: &Options,
    contestants: &[Contestant],
    findings: &mut Vec<Finding>,
) -> Result<(), String> {
    let ours = contestants.iter().find(|contestant| contestant.is_ours());
    let peer = contestants
        .iter()
        .find(|contestant| contestant.name == RSLOCK);
    let (Some(ours), Some(peer)) = (ours, peer) else {
        return Ok(());
    };
    println!("\n## End to end, {IN_FLIGHT} in flight");
    let sides = [(options.locknode()?, ours), (options::redis()?, peer)];
    let load = options.load(IN_FLIGHT);
    let rounds = rounds::collect(options, |is_reversed| round(&sides, load, is_reversed))?;
    let ratios: Vec<f64> = rounds
        .iter()
        .map(|[ours, peer]| ours.locks_per_second / peer.locks_per_second)
        .collect();
    println!("\n| nodes | client | locks/s | ratio | p50 of acquire, us | p99, us |");
    println!("|---|---|---|---|---|---|");
    for (index, (server, contestant)) in sides.iter().enumerate() {
        let of = |pick: fn(&Measured) -> f64| {
            let values = rounds.iter().filter_map(|round| round.get(index).map(pick));
            median(&values.collect::<Vec<_>>())
        };
        println!(
            "| five {} | {} | {:.0} | {} | {:.0} | {:.0} |",
            server.name,
            contestant.name,
            of(|run| run.locks_per_second),
            if contestant.is_ours() {
                ratio(&ratios)
            } else {
                String::new()
            },
            of(|run| run.p50_us),
            of(|run| run.p99_us),
        );
    }
    let label =
        format!("locks/s end to end, {IN_FLIGHT} in flight, against five Redis and {RSLOCK}");
    findings.push(Finding::new(label, ratios, target::END_TO_END));
    Ok(())
}

/// Both sides once, each on its own five nodes.
fn round(
    sides: &[(Server, &Contestant); 2],
    load: Load,
    is_reversed: bool,
) -> Result<Round<[Measured; 2]>, String> {
    let one = |(server, contestant): &(Server, &Contestant)| {
        let cluster = Cluster::start(server)?;
        let run = run::run(contestant, &cluster, &cluster.addresses(), load, || Ok(()))?;
        Ok::<_, String>(rounds::flawless(contestant.name, run))
    };
    let [ours, peer] = sides;
    let (ours, peer) = if is_reversed {
        let peer = one(peer)?;
        (one(ours)?, peer)
    } else {
        (one(ours)?, one(peer)?)
    };
    Ok(match (ours, peer) {
        (Round::Counted(ours), Round::Counted(peer)) => Round::Counted([ours, peer]),
        (Round::Void(reason), _) | (_, Round::Void(reason)) => Round::Void(reason),
        (Round::Disturbed, _) | (_, Round::Disturbed) => Round::Disturbed,
    })
}

const IN_FLIGHT: u32 = 64;
