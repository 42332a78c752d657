//! The third table: our nodes and client against five Redis servers and the Rust client that is there for them.

use locknode_peers::rounds::Rounds;
use locknode_peers::statistics::ratio;

use crate::contestant::{Contestant, RSLOCK};
use crate::options::{self, Options};
use crate::run::{self, Measured};
use crate::target::{self, Finding};

/// Measures and prints it, if both clients are among the contestants.
pub(crate) fn measure(
    options: &Options,
    contestants: &[Contestant],
    findings: &mut Vec<Finding>,
) -> Result<(), String> {
    let ours = contestants.iter().find(|contestant| contestant.is_ours());
    let mut peers = contestants.iter();
    let peer = peers.find(|contestant| contestant.name == RSLOCK);
    let (Some(ours), Some(peer)) = (ours, peer) else {
        return Ok(());
    };
    println!("\n## End to end, {IN_FLIGHT} in flight");
    let mut sides = [(options.locknode()?, ours), (options::redis()?, peer)];
    let load = options.load(IN_FLIGHT);
    let rounds = Rounds::collect(options.rounds, &mut sides, |(server, contestant)| {
        run::afresh(contestant, server, load)
    })?;
    rounds.report();
    let ratios = rounds.ratios(0, 1, |ours, peer| {
        ours.locks_per_second / peer.locks_per_second
    });
    println!("\n| nodes | client | locks/s | ratio | p50 of acquire, us | p99, us |");
    println!("|---|---|---|---|---|---|");
    for (index, (server, contestant)) in sides.iter().enumerate() {
        let of = |pick: fn(&Measured) -> f64| rounds.median(index, pick);
        println!(
            "| five {} | {} | {:.0} | {} | {:.0} | {:.0} |",
            server.name,
            contestant.name,
            of(|run| run.locks_per_second),
            if contestant.is_ours() {
                ratio(&ratios, 2)
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

const IN_FLIGHT: u32 = 64;
