//! The second table: what a node that takes connections and never answers does to the slowest acquires.

use locknode_peers::rounds::{Rounds, Turn};
use locknode_peers::server::Server;
use locknode_peers::statistics::ratio;

use crate::cluster::{BlackHole, Cluster};
use crate::contestant::Contestant;
use crate::options::Options;
use crate::run::{self, Load, Run};
use crate::target::{self, Finding};

/// When the fifth node falls silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// Before the client connects: a listener that never answers stands in for it.
    AtTheStart,
    /// After the warm-up, with every client's connections open.
    MidRun,
}

/// What one client has shown so far with one kind of silence.
#[derive(Debug)]
struct Row<'a> {
    contestant: &'a Contestant,
    silence: Silence,
    load: Load,
    /// Why there is no figure, or not only a figure.
    trouble: Option<String>,
    /// It did not end, and would use up another round's patience.
    is_stuck: bool,
}

/// p99 of acquire, with all nodes up and with one silent.
#[derive(Clone, Copy, Debug)]
struct Pair {
    all_up_us: f64,
    silent_us: f64,
}

/// Measures and prints it.
pub(crate) fn measure(
    options: &Options,
    server: &Server,
    contestants: &[Contestant],
    findings: &mut Vec<Finding>,
) -> Result<(), String> {
    println!("\n## p99 of acquire with one node of five silent, against all five up");
    let hole = BlackHole::open()?;
    let mut printed = Vec::new();
    for in_flight in IN_FLIGHT {
        for silence in [Silence::AtTheStart, Silence::MidRun] {
            let load = options.load(in_flight);
            let mut rows: Vec<Row<'_>> = contestants
                .iter()
                .map(|contestant| Row {
                    contestant,
                    silence,
                    load,
                    trouble: None,
                    is_stuck: false,
                })
                .collect();
            let rounds = Rounds::collect(options.rounds, &mut rows, |row| row.turn(server, &hole))?;
            rounds.report();
            for (index, row) in rows.iter().enumerate() {
                printed.push(row.report(index, &rounds, findings));
            }
        }
    }
    println!(
        "\n| in flight | silent | client | p99 all up, us | p99 one silent, us | ratio | trouble |"
    );
    println!("|---|---|---|---|---|---|---|");
    println!("{}", printed.join("\n"));
    Ok(())
}

impl Row<'_> {
    /// Both runs; a client that cannot do with a silent node has no pair and remembers its trouble.
    fn turn(&mut self, server: &Server, hole: &BlackHole) -> Result<Turn<Pair>, String> {
        if self.is_stuck {
            return Ok(Turn::Unable);
        }
        let cluster = Cluster::start(server)?;
        let addresses = cluster.addresses();
        let run = run::run(self.contestant, &cluster, &addresses, self.load, || Ok(()))?;
        let all_up_us = match run::flawless(self.contestant.name, run) {
            Turn::Counted(measured) => measured.p99_us,
            Turn::Unable => return Ok(Turn::Unable),
            Turn::Disturbed => return Ok(Turn::Disturbed),
            Turn::Void(reason) => return Ok(Turn::Void(reason)),
        };
        let run = match self.silence {
            Silence::AtTheStart => {
                let addresses = cluster.addresses_with(hole);
                run::run(self.contestant, &cluster, &addresses, self.load, || Ok(()))?
            }
            Silence::MidRun => {
                let freeze = || cluster.freeze_last();
                run::run(self.contestant, &cluster, &addresses, self.load, freeze)?
            }
        };
        let measured = match run {
            Run::Done(measured) => measured,
            Run::Disturbed(_) => return Ok(Turn::Disturbed),
            Run::Stuck => {
                self.is_stuck = true;
                self.trouble = Some(format!(
                    "not done after {:.0} s",
                    run::limit(self.load).as_secs_f64()
                ));
                return Ok(Turn::Unable);
            }
        };
        if measured.failures > 0.0 {
            let (failures, locks) = (measured.failures, measured.locks);
            self.trouble = Some(format!("{failures} failures beside {locks} locks"));
        }
        if measured.locks < 1.0 {
            return Ok(Turn::Unable);
        }
        Ok(Turn::Counted(Pair {
            all_up_us,
            silent_us: measured.p99_us,
        }))
    }

    fn report(&self, index: usize, rounds: &Rounds<Pair>, findings: &mut Vec<Finding>) -> String {
        let of = |pick: fn(&Pair) -> f64| rounds.median(index, pick);
        let ratios = rounds.ratios(index, index, |pair, _| pair.silent_us / pair.all_up_us);
        let when = match self.silence {
            Silence::AtTheStart => "from the start",
            Silence::MidRun => "in mid-run",
        };
        let in_flight = self.load.in_flight;
        let figures = if ratios.is_empty() {
            " | ".to_owned()
        } else {
            format!(
                "{:.0} | {:.0}",
                of(|it| it.all_up_us),
                of(|it| it.silent_us)
            )
        };
        let row = format!(
            "| {in_flight} | {when} | {} | {figures} | {} | {} |",
            self.contestant.name,
            ratio(&ratios, 2),
            self.trouble.as_deref().unwrap_or_default(),
        );
        if self.contestant.is_ours() {
            let label = format!(
                "p99 of acquire, {in_flight} in flight, one node silent {when}, against all up"
            );
            // A client in trouble misses its target, whatever the locks it did get looked like.
            let ratios = if self.trouble.is_some() {
                vec![f64::NAN]
            } else {
                ratios
            };
            findings.push(Finding::new(label, ratios, target::SILENCE));
        }
        row
    }
}

/// One shows the wait itself, 64 whether it spreads.
const IN_FLIGHT: [u32; 2] = [1, 64];
