//! Rounds: which ones count, and when to give up.

use crate::options::Options;
use crate::run::{Measured, Run};

/// What a round came to.
#[derive(Debug)]
pub(crate) enum Round<T> {
    Counted(T),
    /// Other processes were busy.
    Disturbed,
    /// A client failed, and how.
    Void(String),
}

/// Runs rounds until enough of them count; `round` is told whether to go through the clients in reverse.
pub(crate) fn collect<T>(
    options: &Options,
    mut round: impl FnMut(bool) -> Result<Round<T>, String>,
) -> Result<Vec<T>, String> {
    let mut rounds = Vec::new();
    let (mut disturbed, mut void) = (0, 0);
    while rounds.len() < options.rounds {
        match round(rounds.len() % 2 == 1)? {
            Round::Counted(counted) => rounds.push(counted),
            Round::Disturbed if disturbed < DISTURBED_MAX => disturbed += 1,
            Round::Disturbed => {
                return Err(format!(
                    "{DISTURBED_MAX} rounds disturbed by other processes; try when it is quiet"
                ));
            }
            Round::Void(reason) if void < VOID_MAX => {
                eprintln!("void round: {reason}");
                void += 1;
            }
            Round::Void(reason) => return Err(format!("too many void rounds: {reason}")),
        }
    }
    if disturbed + void > 0 {
        println!("\n{disturbed} disturbed and {void} void rounds were repeated.");
    }
    Ok(rounds)
}

/// A run in which every lock has to be granted and released.
pub(crate) fn flawless(name: &str, run: Run) -> Round<Measured> {
    match run {
        Run::Done(measured) if measured.failures > 0.0 || measured.locks < 1.0 => {
            let (failures, locks) = (measured.failures, measured.locks);
            Round::Void(format!("{name}: {failures} failures beside {locks} locks"))
        }
        Run::Done(measured) => Round::Counted(measured),
        Run::Disturbed(_) => Round::Disturbed,
        Run::Stuck => Round::Void(format!("{name} does not come to an end")),
    }
}

/// Disturbed rounds per case after which the machine is too busy to measure on.
const DISTURBED_MAX: u32 = 40;
/// A client that fails in more rounds than this does not work on these nodes.
const VOID_MAX: u32 = 3;
