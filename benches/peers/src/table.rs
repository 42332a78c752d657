//! The table of results.

use locknode_peers::server::Server;
use locknode_peers::statistics::{median, spread};

use crate::options::Case;
use crate::run::Measured;

/// One round's results, in the order of the servers; `None` where a server lacks the command.
type Round = Vec<Option<Measured>>;

/// The column names.
pub(crate) fn print_header() {
    println!(
        "{:<34} {:<10} {:>11} {:>18} {:>10} {:>9} {:>9} {:>6}",
        "case", "server", "cost/op", "times ours", "ops/s", "p50 us", "p99 us", "user"
    );
}

/// One row for each server of a case; ratios are taken within each round.
pub(crate) fn print_case(case: &Case, servers: &[Server], rounds: &[Round], voided: usize) {
    for (index, server) in servers.iter().enumerate() {
        let of = |pick: fn(&Measured) -> f64| -> Vec<f64> {
            rounds
                .iter()
                .filter_map(|round| round.get(index)?.as_ref().map(pick))
                .collect()
        };
        if of(|m| m.cost).is_empty() {
            println!(
                "{:<34} {:<10} has no such command",
                case.name(),
                server.name
            );
            continue;
        }
        let ratios: Vec<f64> = rounds
            .iter()
            .filter_map(|round| {
                Some(round.get(index)?.as_ref()?.cost / round.first()?.as_ref()?.cost)
            })
            .collect();
        let unit = if case.is_memory { "B" } else { "ns" };
        let ratio = if server.is_ours() {
            String::new()
        } else {
            let (low, high) = spread(&ratios);
            format!("{:.2} [{low:.2}-{high:.2}]", median(&ratios))
        };
        println!(
            "{:<34} {:<10} {:>8.0} {unit:<2} {ratio:>18} {:>10.0} {:>9.0} {:>9.0} {:>5.0}%",
            case.name(),
            server.name,
            median(&of(|m| m.cost)),
            median(&of(|m| m.operations_per_second)),
            median(&of(|m| m.p50_us)),
            median(&of(|m| m.p99_us)),
            median(&of(|m| m.user_share)) * 100.0,
        );
    }
    if voided > 0 {
        println!("{:<34} {voided} disturbed rounds repeated", case.name());
    }
}
