//! The table of results.

use locknode_peers::statistics::{median, spread};

use crate::case::{Case, Figure};
use crate::run::Measured;

/// One round's results, in the order of the contestants; `None` where a server lacks the command.
type Round = Vec<Option<Measured>>;

/// The column names.
pub(crate) fn print_header() {
    println!(
        "{:<34} {:<16} {:>11} {:>18} {:>10} {:>18} {:>9} {:>9} {:>6} {:>8}",
        "case",
        "server",
        "cost/op",
        "x first",
        "ops/s",
        "x first",
        "p50 us",
        "p99 us",
        "user",
        "syncs/s"
    );
}

/// One line for each contestant of a case; ratios are taken within each round.
pub(crate) fn print_case(case: &Case<'_>, rounds: &[Round], voided: usize) {
    for (index, contestant) in case.contestants.iter().enumerate() {
        let of = |pick: fn(&Measured) -> f64| -> Vec<f64> {
            rounds
                .iter()
                .filter_map(|round| round.get(index)?.as_ref().map(pick))
                .collect()
        };
        if of(|m| m.cost).is_empty() {
            println!(
                "{:<34} {:<16} has no such command",
                case.name, contestant.label
            );
            continue;
        }
        let against_first = |ratio: fn(&Measured, &Measured) -> f64| {
            let ratios: Vec<f64> = rounds
                .iter()
                .filter_map(|round| {
                    Some(ratio(round.get(index)?.as_ref()?, round.first()?.as_ref()?))
                })
                .collect();
            if index == 0 {
                String::new()
            } else {
                brackets(&ratios, digits(case))
            }
        };
        let syncs: Vec<f64> = rounds
            .iter()
            .filter_map(|round| round.get(index)?.as_ref()?.syncs_per_second)
            .collect();
        println!(
            "{:<34} {:<16} {:>8.0} {:<2} {:>18} {:>10.0} {:>18} {:>9.0} {:>9.0} {:>5.0}% {:>8}",
            case.name,
            contestant.label,
            median(&of(|m| m.cost)),
            if case.figure == Figure::Memory {
                "B"
            } else {
                "ns"
            },
            against_first(|this, first| this.cost / first.cost),
            median(&of(|m| m.operations_per_second)),
            against_first(|this, first| {
                first.operations_per_second / this.operations_per_second
            }),
            median(&of(|m| m.p50_us)),
            median(&of(|m| m.p99_us)),
            median(&of(|m| m.user_share)) * 100.0,
            if syncs.is_empty() {
                String::new()
            } else {
                format!("{:.1}", median(&syncs))
            },
        );
    }
    if voided > 0 {
        println!("{:<34} {voided} disturbed rounds repeated", case.name);
    }
}

/// The median of ratios, and their spread.
pub(crate) fn brackets(ratios: &[f64], digits: usize) -> String {
    let (low, high) = spread(ratios);
    format!(
        "{:.digits$} [{low:.digits$}-{high:.digits$}]",
        median(ratios)
    )
}

/// A row that asks about hundredths shows thousandths.
fn digits(case: &Case<'_>) -> usize {
    if case.section == "guard" { 3 } else { 2 }
}
