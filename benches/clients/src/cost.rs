//! The first table: what a lock costs each client.

use locknode_peers::rounds::Rounds;
use locknode_peers::server::Server;
use locknode_peers::statistics::ratio;

use crate::contestant::{Contestant, OURS};
use crate::options::Options;
use crate::run::{self, Measured};
use crate::target::{self, Finding};

/// Measures and prints it.
pub(crate) fn measure(
    options: &Options,
    server: &Server,
    contestants: &[Contestant],
    findings: &mut Vec<Finding>,
) -> Result<(), String> {
    println!("\n## Client CPU per lock, all replies awaited");
    let (mut rows, mut order) = (Vec::new(), contestants.iter().collect::<Vec<_>>());
    for in_flight in IN_FLIGHT {
        let load = options.load(in_flight);
        let rounds = Rounds::collect(options.rounds, &mut order, |contestant| {
            run::afresh(contestant, server, load)
        })?;
        rounds.report();
        let ours = contestants.iter().position(Contestant::is_ours);
        for (index, contestant) in contestants.iter().enumerate() {
            let of = |pick: fn(&Measured) -> f64| rounds.median(index, pick);
            let times_ours =
                |ours| rounds.ratios(index, ours, |this, ours| this.cpu_us / ours.cpu_us);
            let ratios = ours.map(times_ours).unwrap_or_default();
            rows.push(format!(
                "| {in_flight} | {} | {:.1} | {} | {:.0} | {:.0} | {:.0} |",
                contestant.name,
                of(|run| run.cpu_us),
                if contestant.is_ours() {
                    String::new()
                } else {
                    ratio(&ratios, 2)
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

const IN_FLIGHT: [u32; 3] = [1, 64, 256];
