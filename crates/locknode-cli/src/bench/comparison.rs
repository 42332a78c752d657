//! Several servers under the same load, in rounds: each is measured once in each round, in reverse in every second one.
//!
//! A machine has good and bad moments, and they last longer than a round. So figures of two servers are compared within
//! a round, and of these ratios the median and the quartiles count.

use std::collections::BTreeSet;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::flags::BenchFlags;
use super::load::{Load, Measured};
use super::process::{self, CpuTime};
use super::recorder::{empty_histogram, exact};
use super::statistics::Spread;
use super::target::Target;
use crate::failure::Failure;

/// What was measured, and under which load.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) flags: BenchFlags,
    /// The load in words.
    pub(super) load: String,
    pub(super) machine: String,
    /// The first is what the others are compared with.
    pub(super) contestants: Vec<Contestant>,
    /// The processors that the load generator may run on.
    pub(super) load_cores: Option<String>,
}

/// A server and its figures.
#[derive(Debug)]
pub(super) struct Contestant {
    pub(super) target: Target,
    /// One for each round.
    pub(super) turns: Vec<Turn>,
    /// Latencies of all rounds in nanoseconds.
    pub(super) latencies: Histogram<u64>,
    /// The processors that the server may run on.
    pub(super) cores: Option<String>,
}

/// The figures of one server in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Turn {
    /// CPU time of the server per command in microseconds.
    pub(super) cpu_us: Option<f64>,
    /// The CPU time of the server in the whole round.
    pub(super) cpu: Option<CpuTime>,
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// How much of a core each thread of the load generator took.
    pub(super) load_share: Option<f64>,
    /// How much of a core everything else on this machine took, as far as that is known.
    pub(super) others_share: Option<f64>,
}

/// A figure by which servers are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    /// In JSON.
    pub(super) field: &'static str,
    pub(super) of: fn(&Turn) -> Option<f64>,
}

/// All of them, the most telling one first.
pub(super) const FIGURES: [Figure; 4] = [
    Figure::new("CPU per command", "cpu_us_per_command", |turn| turn.cpu_us),
    Figure::new("commands per second", "commands_per_second", |turn| {
        Some(turn.per_second)
    }),
    Figure::new("median latency", "p50_us", |turn| Some(turn.p50_us)),
    Figure::new("p99 latency", "p99_us", |turn| Some(turn.p99_us)),
];

impl Figure {
    const fn new(name: &'static str, field: &'static str, of: fn(&Turn) -> Option<f64>) -> Self {
        Self { name, field, of }
    }
}

impl Comparison {
    /// Runs the rounds.
    ///
    /// # Errors
    ///
    /// When a server fails or gives a wrong reply: then nothing counts.
    pub(super) fn measure(flags: &BenchFlags, targets: Vec<Target>) -> Result<Self, Failure> {
        let server_count = u32::try_from(targets.len()).unwrap_or(u32::MAX);
        let turns = flags.rounds.saturating_mul(server_count).max(1);
        let duration = flags
            .duration
            .unwrap_or_else(|| (TIME_MAX / turns).clamp(TURN_MIN, TURN_MAX) * MEASURED_TENTHS / 10);
        let warm_up = duration * (10 - MEASURED_TENTHS) / MEASURED_TENTHS;
        let contestants = targets.into_iter().map(Contestant::new);
        let mut contestants = contestants.collect::<Result<Vec<_>, _>>()?;
        for round in 0..flags.rounds {
            let mut order: Vec<&mut Contestant> = contestants.iter_mut().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for contestant in order {
                let load = Load::new(flags, &contestant.target, warm_up, duration);
                contestant.note(&load.conduct()?, flags.load_threads())?;
            }
        }
        let extent = match flags.requests {
            Some(requests) => format!("{requests} commands"),
            None => format!("{:.2} s", duration.as_secs_f64()),
        };
        let (rounds, load) = (flags.rounds, flags.describe());
        Ok(Self {
            flags: flags.clone(),
            load: format!("{rounds} rounds of {extent} each, {load}"),
            machine: process::describe_machine(),
            contestants,
            load_cores: process::Process::own().and_then(|own| own.cores()),
        })
    }

    /// A server's figure as a multiple of the first server's, in each round.
    pub(super) fn ratio(&self, index: usize, figure: Figure) -> Option<Spread> {
        let first = self.contestants.first()?.turns.iter();
        let pairs = self.contestants.get(index)?.turns.iter().zip(first);
        Spread::of(pairs.map(|(turn, first)| Some((figure.of)(turn)? / (figure.of)(first)?)))
    }

    /// What is to be known of these figures before they are believed.
    pub(super) fn notes(&self) -> Vec<String> {
        let without_cpu = self.contestants.iter().filter_map(|contestant| {
            Some(format!(
                "{}: no CPU time, for {}. Only its throughput and latency are compared.",
                contestant.target.title(),
                contestant.without_cpu()?
            ))
        });
        let mut notes: Vec<String> = without_cpu.collect();
        if let Some(cores) = self.shared_cores() {
            notes.push(format!(
                "Load generator and servers share the processors {cores}: trust CPU per command. Throughput and latency \
                 show the scheduler too, unless each has its own: taskset -c 0 SERVER, taskset -c 1 locknode bench."
            ));
        }
        // Of the rounds in which it is known.
        let median = |of: fn(&Turn) -> Option<f64>| {
            let turns = self.contestants.iter().flat_map(|it| &it.turns);
            Spread::of(turns.map(of).filter(Option::is_some)).map(|it| it.median)
        };
        if let Some(share) = median(|turn| turn.load_share).filter(|share| *share > LOAD_SHARE_MAX)
        {
            notes.push(format!(
                "The load generator is {:.0} % busy and limits the throughput: servers differ more than throughput and \
                 latency show. Trust CPU per command, or use more --threads if there are processors for them.",
                share * 100.0
            ));
        }
        if let Some(share) =
            median(|turn| turn.others_share).filter(|share| *share > OTHERS_SHARE_MAX)
        {
            notes.push(format!(
                "Other processes take {share:.1} of a processor: repeat it on a quiet machine before you trust it."
            ));
        }
        notes
    }

    /// The processors that the load generator and a server on this machine may both run on, if the scheduler has to put
    /// both onto one of them now and then.
    fn shared_cores(&self) -> Option<String> {
        let load_cores = self.load_cores.as_deref()?;
        let load = process::core_numbers(load_cores);
        let servers = (self.contestants.iter()).filter_map(|it| it.cores.as_deref());
        let mut shared = BTreeSet::new();
        for cores in servers {
            shared.extend(process::core_numbers(cores).intersection(&load).copied());
        }
        let is_tight =
            u64::try_from(shared.len()).is_ok_and(|len| len <= self.flags.load_threads() + 1);
        let names: Vec<String> = shared.iter().map(u32::to_string).collect();
        (is_tight && !names.is_empty()).then(|| names.join(","))
    }
}

impl Contestant {
    fn new(target: Target) -> Result<Self, Failure> {
        let process = target.process.as_ref().ok();
        Ok(Self {
            cores: process.and_then(process::Process::cores),
            target,
            turns: Vec::new(),
            latencies: empty_histogram()?,
        })
    }

    fn note(&mut self, measured: &Measured, threads: u64) -> Result<(), Failure> {
        let latencies = measured.recorder.all()?;
        let commands = exact(latencies.len());
        let elapsed = measured.recorder.elapsed.as_secs_f64();
        let seconds = elapsed.max(f64::MIN_POSITIVE);
        let used = measured.used;
        let others = || {
            let known = used.server?.all + used.load?.all;
            Some((used.machine_seconds? - known).max(0.0) / seconds)
        };
        let quantile = |quantile| exact(latencies.value_at_quantile(quantile)) / 1e3;
        self.turns.push(Turn {
            cpu_us: (used.server).map(|cpu| cpu.all * 1e6 / commands),
            cpu: used.server,
            per_second: commands / seconds,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            load_share: (used.load).map(|load| load.all / seconds / exact(threads.max(1))),
            others_share: others(),
        });
        // Both have the same bounds, so nothing is out of range.
        let _ = self.latencies.add(latencies);
        Ok(())
    }

    pub(super) fn spread(&self, of: fn(&Turn) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.turns.iter().map(of))
    }

    /// The part of its CPU time per command outside of the kernel, in microseconds.
    pub(super) fn user_us(&self) -> Option<f64> {
        let cpu: CpuTime = self.turns.iter().filter_map(|turn| turn.cpu).sum();
        Some(self.spread(|turn| turn.cpu_us)?.median * cpu.user_share()?)
    }

    /// Why there is no CPU time of it.
    pub(super) fn without_cpu(&self) -> Option<&str> {
        match &self.target.process {
            Err(reason) => Some(reason),
            Ok(_) if self.spread(|turn| turn.cpu_us).is_none() => Some("its process has ended"),
            Ok(_) => None,
        }
    }
}

/// Measuring two servers, or eight, and waiting for the answer.
const TIME_MAX: Duration = Duration::from_secs(40);

/// Shorter ones are mostly the time that it takes to begin.
const TURN_MIN: Duration = Duration::from_millis(100);

/// Two servers are measured in half a minute.
const TURN_MAX: Duration = Duration::from_secs(1);

/// The rest warms up.
const MEASURED_TENTHS: u32 = 9;

/// A busier load generator would have sent more, had it been able to.
const LOAD_SHARE_MAX: f64 = 0.9;

/// What `scripts/bench-peers` discards a round for.
const OTHERS_SHARE_MAX: f64 = 0.25;

#[cfg(test)]
mod tests {
    use redlock_client::NodeAddress;

    use super::*;
    use crate::server_address::ServerAddress;
    use crate::server_info::ServerInfo;

    fn turn(cpu_us: Option<f64>, per_second: f64) -> Turn {
        Turn {
            cpu_us,
            cpu: None,
            per_second,
            p50_us: 1.0,
            p99_us: 1.0,
            load_share: Some(0.5),
            others_share: Some(0.1),
        }
    }

    fn comparison(turns: [Vec<Turn>; 2], cores: [Option<&str>; 2]) -> Comparison {
        let contestants = turns.into_iter().map(|turns| {
            let address = NodeAddress::parse("10.0.0.1").expect("an address");
            let elsewhere = Err("it runs elsewhere".to_owned());
            Contestant {
                target: Target::new(
                    &ServerInfo::parse(b""),
                    ServerAddress::plain(address),
                    elsewhere,
                ),
                turns,
                latencies: empty_histogram().expect("bounds that fit"),
                cores: cores[1].map(str::to_owned),
            }
        });
        Comparison {
            flags: BenchFlags::of(""),
            load: String::new(),
            machine: String::new(),
            contestants: contestants.collect(),
            load_cores: cores[0].map(str::to_owned),
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // Both are twice as slow in the second round, and their ratio stays.
        let first = vec![turn(Some(1.0), 100.0), turn(Some(2.0), 50.0)];
        let second = vec![turn(Some(3.0), 50.0), turn(Some(6.0), 25.0)];
        let both = comparison([first.clone(), second], [None, None]);
        for (figure, expected) in FIGURES.into_iter().zip([3.0, 0.5, 1.0, 1.0]) {
            let ratio = both.ratio(1, figure).expect("figures");
            assert_eq!((ratio.least, ratio.most), (expected, expected));
        }
        let without = vec![turn(None, 50.0), turn(None, 25.0)];
        let both = comparison([first, without], [None, None]);
        assert_eq!(both.ratio(1, FIGURES[0]), None);
        assert!(both.ratio(1, FIGURES[1]).is_some());
    }

    #[test]
    fn shared_processors_and_busy_ones_are_said() {
        let quiet = || [vec![turn(Some(1.0), 1.0)], vec![turn(Some(1.0), 1.0)]];
        for (cores, expected) in [
            ([Some("0-1"), Some("0-1")], Some("0,1")),
            ([Some("0"), Some("0-7")], Some("0")),
            ([Some("0"), Some("1")], None),
            // The scheduler can keep them apart.
            ([Some("0-7"), Some("0-7")], None),
            ([Some("0-1"), None], None),
        ] {
            assert_eq!(
                comparison(quiet(), cores).shared_cores().as_deref(),
                expected
            );
        }
        let notes = |load_share, others_share| {
            let busy = Turn {
                load_share: Some(load_share),
                others_share: Some(others_share),
                ..turn(Some(1.0), 1.0)
            };
            let both = comparison([vec![busy], vec![busy]], [None, None]);
            // The first two say that there is no process.
            both.notes().split_off(2).concat()
        };
        assert_eq!(notes(0.5, 0.1), "");
        assert!(notes(0.97, 0.1).contains("97 % busy"));
        assert!(notes(0.5, 0.6).contains("take 0.6 of a processor"));
    }
}
