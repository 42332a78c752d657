//! The table of results.

use locknode_peers::rounds::Rounds;
use locknode_peers::statistics::median;

use crate::case::{Case, FLOOR, Figure, Measured};

/// The column names.
pub(crate) fn print_header() {
    println!(
        "{:<34} {:<16} {:>11} {:>18} {:>18} {:>10} {:>18} {:>9} {:>9} {:>6} {:>8}",
        "case",
        "server",
        "cost/op",
        "x first",
        "x floor",
        "ops/s",
        "x first",
        "p50 us",
        "p99 us",
        "user",
        "syncs/s"
    );
}

/// One line for each contestant of a case; ratios are taken within each round.
pub(crate) fn print_case(case: &Case<'_>, rounds: &Rounds<Measured>) {
    // A row that asks about hundredths shows thousandths.
    let digits = if case.section == "guard" { 3 } else { 2 };
    let unit = if case.figure == Figure::Memory {
        "B"
    } else {
        "ns"
    };
    let floor = (case.contestants.iter()).position(|contestant| contestant.label == FLOOR);
    for (index, contestant) in case.contestants.iter().enumerate() {
        let head = format!("{:<34} {:<16}", case.name, contestant.label);
        if rounds.of(index).next().is_none() {
            println!("{head} has no such command");
            continue;
        }
        let of = |pick: fn(&Measured) -> f64| rounds.median(index, pick);
        let against_first = |against: fn(&Measured, &Measured) -> f64| match index {
            0 => String::new(),
            _ => rounds.ratio(index, 0, digits, against),
        };
        let syncs = rounds.of(index).filter_map(|m| m.syncs_per_second);
        let syncs: Vec<f64> = syncs.collect();
        println!(
            "{head} {:>8.0} {unit:<2} {:>18} {:>18} {:>10.0} {:>18} {:>9.0} {:>9.0} {:>5.0}% {:>8}",
            of(|m| m.cost),
            against_first(|this, first| this.cost / first.cost),
            match floor {
                Some(floor) if floor != index => {
                    rounds.ratio(index, floor, digits, |this, floor| this.cost / floor.cost)
                }
                _ => String::new(),
            },
            of(|m| m.operations_per_second),
            against_first(|this, first| first.operations_per_second / this.operations_per_second),
            of(|m| m.p50_us),
            of(|m| m.p99_us),
            of(|m| m.user_share) * 100.0,
            if syncs.is_empty() {
                String::new()
            } else {
                format!("{:.1}", median(&syncs))
            },
        );
    }
    if rounds.disturbed > 0 {
        println!(
            "{:<34} {} disturbed rounds repeated",
            case.name, rounds.disturbed
        );
    }
}
