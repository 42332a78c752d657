//! The result of a run, as text and JSON.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use locknode_testkit::{Report, Span};

use super::coverage::Reach;
use super::evidence::{self, Evidence};
use super::exploration::{Exploration, Explored};
use super::figures::{counted, grouped, per_second, simulated};
use super::inspection::Trouble;
use super::{SimFlags, coverage, interrupt, violations};
use crate::failure::{Exit, Failure};
use crate::json::Object;
use crate::output;

/// Runs the worlds of an exploration and prints the result.
///
/// # Errors
///
/// If a file cannot be written or the operating system fails.
pub(super) fn explore(flags: &SimFlags, exploration: &Exploration) -> Result<Exit, Failure> {
    let is_interrupted = interrupt::flag()?;
    let explored = exploration.explore(&is_interrupted)?;
    let mut verdict = Verdict {
        flags,
        exploration,
        explored: &explored,
        found: None,
    };
    let first = explored.tally.lowest.first_key_value();
    if !flags.json {
        output::write(&verdict.head())?;
    }
    match first {
        Some((seed, Trouble::Broken(_))) => {
            let scenario = exploration.swarm.scenario(*seed);
            let evidence = Evidence::gather(&scenario, flags, &is_interrupted)?;
            verdict.found = Some(Found::Broken(Box::new(evidence)));
        }
        Some((seed, Trouble::Differs(difference))) => {
            let file = flags.out.join(format!("locknode-sim-{seed}.txt"));
            evidence::create(&flags.out)?;
            evidence::write(&file, &exploration.swarm.scenario(*seed).to_string())?;
            verdict.found = Some(Found::Differs(*seed, difference.clone(), file));
        }
        None if flags.timeline.is_some() || flags.history.is_some() => {
            let seed = exploration.seeds.first;
            let report = flags.report(&exploration.swarm.scenario(seed));
            let timeline = flags.timeline.as_deref();
            flags.write_files(&report, timeline, &flags.swarm.again(seed))?;
        }
        None => {}
    }
    output::write(&if flags.json {
        verdict.json()
    } else {
        verdict.tail()
    })?;
    Ok(verdict.outcome().1)
}

/// The result of an exploration.
struct Verdict<'v> {
    flags: &'v SimFlags,
    exploration: &'v Exploration,
    explored: &'v Explored,
    /// The failure of the lowest seed.
    found: Option<Found>,
}

enum Found {
    Broken(Box<Evidence>),
    /// The seed, where its two runs differ, and the file with its scenario.
    Differs(u64, String, PathBuf),
}

impl Verdict<'_> {
    /// The verdict in a word, and the exit code.
    fn outcome(&self) -> (&'static str, Exit) {
        match (&self.found, self.flags.swarm.bug) {
            // A planted bug must be found.
            (Some(Found::Broken(_)), Some(_)) => ("found", Exit::Success),
            (Some(Found::Broken(_)), None) => ("broken", Exit::Broken),
            (Some(Found::Differs(..)), _) => ("differs", Exit::Differs),
            (None, _) if self.explored.is_interrupted => ("interrupted", Exit::Interrupted),
            (None, Some(_)) => ("not-found", Exit::Broken),
            (None, None) => ("kept", Exit::Success),
        }
    }

    /// The number of worlds, and whether any failed.
    fn head(&self) -> String {
        let tally = &self.explored.tally;
        let mut text = String::new();
        if self.explored.is_interrupted {
            let _ = writeln!(
                text,
                "ended by Ctrl-C: {} of {} worlds were run",
                tally.worlds,
                self.exploration.seeds.count()
            );
        }
        let _ = write!(
            text,
            "{}, {} simulated: ",
            counted(tally.worlds, "world"),
            simulated(self.exploration.run_for, tally.worlds)
        );
        let failed = match tally.failing {
            1 if !self.flags.keep_going => "one failed".to_owned(),
            failing => format!("{failing} failed"),
        };
        text.push_str(&match (tally.failing, self.flags.swarm.bug) {
            (0, None) => "every promise kept\n".to_owned(),
            (0, Some(bug)) => {
                let seeds = tally.worlds;
                format!("the bug {bug} was not found within {seeds} seeds\n")
            }
            (_, None) => format!("{failed}\n"),
            (_, Some(bug)) => format!("the bug {bug} was found: {failed}\n"),
        });
        let elapsed = self.explored.elapsed;
        let below_ms = Duration::from_nanos((elapsed.subsec_nanos() % 1_000_000).into());
        let threads = self.exploration.threads;
        let _ = writeln!(
            text,
            "{} with {}: {} worlds/s, {} events/s per thread",
            Span(elapsed.saturating_sub(below_ms)),
            counted(threads, "thread"),
            per_second(tally.worlds, elapsed),
            grouped(per_second(tally.events, elapsed) / u128::from(threads.max(1))),
        );
        if self.flags.check_determinism && tally.failing == 0 {
            text.push_str("each world ran twice and was the same, event by event\n");
        }
        if tally.unpromised > 0 {
            let _ = writeln!(
                text,
                "in {} of them the faults or the guard permit two holders; two clients held a lock in {}",
                tally.unpromised, tally.unpromised_overlaps
            );
        }
        text.push_str(&self.seeds_that_fail());
        text
    }

    /// With `--keep-going`, a summary of the failed worlds.
    fn seeds_that_fail(&self) -> String {
        let tally = &self.explored.tally;
        let mut text = String::new();
        if !self.flags.keep_going || tally.failing == 0 {
            return text;
        }
        for (kind, count) in &tally.broken {
            let _ = writeln!(text, "  {kind:<18} broken in {count}");
        }
        let seeds: Vec<String> = tally.lowest.keys().map(u64::to_string).collect();
        let more = if u64::try_from(seeds.len()).is_ok_and(|shown| shown < tally.failing) {
            " ..."
        } else {
            ""
        };
        let _ = writeln!(text, "  seeds {}{more}", seeds.join(" "));
        text
    }

    /// The failure, and where its files are.
    fn tail(&self) -> String {
        let mut text = match &self.found {
            None => self.flags.file_lines(self.flags.timeline.as_deref()),
            Some(Found::Differs(seed, difference, file)) => format!(
                "\nseed {seed} gave another world when it ran again, which must never happen: {difference}\n\
                 please report this, with {}\n",
                file.display()
            ),
            Some(Found::Broken(evidence)) => self.broken(evidence),
        };
        if self.flags.coverage {
            let counters = &self.explored.tally.counters;
            text.push_str(&coverage::text(counters, Some(self.reach())));
        }
        text
    }

    fn broken(&self, evidence: &Evidence) -> String {
        let (whole, short) = (&evidence.whole, &evidence.short);
        let mut text = format!("\nseed {} broke a promise:\n", evidence.seed);
        text.push_str(&violations::text(whole, 1));
        let _ = match evidence.runs {
            0 => writeln!(text, "\nnot shrunk, because of Ctrl-C:"),
            runs => writeln!(
                text,
                "\nshrunk from {} steps and {} to {} steps and {}, in {runs} runs:",
                whole.scenario().steps.len(),
                Span(whole.scenario().setup.run_for),
                short.scenario().steps.len(),
                Span(short.scenario().setup.run_for),
            ),
        };
        let steps = &short.scenario().steps;
        for step in steps.iter().take(STEPS_SHOWN_MAX) {
            let _ = writeln!(text, "  {step}");
        }
        if steps.len() > STEPS_SHOWN_MAX {
            let _ = writeln!(text, "  ... {} more", steps.len() - STEPS_SHOWN_MAX);
        }
        text.push_str(match evidence.runs {
            0 => "broken promises:\n",
            _ => "still broken:\n",
        });
        text.push_str(&violations::text(short, usize::MAX));
        let _ = write!(
            text,
            "\nscenario  {}\n{}replay    {}\nunshrunk  {}\n",
            evidence.scenario_file.display(),
            self.flags.file_lines(Some(&evidence.timeline_file)),
            evidence.replay(),
            self.flags.swarm.again(evidence.seed)
        );
        text
    }

    fn json(&self) -> String {
        let tally = &self.explored.tally;
        let elapsed = self.explored.elapsed;
        let run_for_ms = self.exploration.run_for.as_millis();
        let simulated_s = run_for_ms * u128::from(tally.worlds) / 1000;
        let mut object = Object::default()
            .text("verdict", self.outcome().0)
            .text("seeds", &self.exploration.seeds.to_string())
            .number("worlds", tally.worlds)
            .number("failing_worlds", tally.failing)
            .number("events", tally.events)
            .number("simulated_seconds", simulated_s)
            .decimal("elapsed_seconds", elapsed.as_secs_f64())
            .number("threads", self.exploration.threads)
            .number("worlds_per_second", per_second(tally.worlds, elapsed))
            .number("events_per_second", per_second(tally.events, elapsed))
            .number("unpromised_worlds", tally.unpromised)
            .number("unpromised_overlaps", tally.unpromised_overlaps);
        if let Some(bug) = self.flags.swarm.bug {
            object = object.text("bug", bug.name());
        }
        let broken = tally.broken.iter();
        let broken = broken.fold(Object::default(), |object, (kind, count)| {
            object.number(kind.name(), *count)
        });
        object = object.object("broken", broken);
        match &self.found {
            Some(Found::Broken(evidence)) => {
                object = object.object("first_failure", failure_object(evidence));
            }
            Some(Found::Differs(seed, difference, file)) => {
                let failure = Object::default()
                    .number("seed", *seed)
                    .text("difference", difference)
                    .text("scenario_file", &file.display().to_string());
                object = object.object("first_failure", failure);
            }
            None => {}
        }
        if self.flags.coverage {
            object = object.object("coverage", coverage::object(&tally.counters));
            let missing = coverage::missing(&tally.counters, self.reach());
            object = object.text("never_happened", &missing.join(","));
        }
        object.finish() + "\n"
    }

    fn reach(&self) -> Reach {
        Reach {
            faults: self.exploration.swarm.kinds(),
            guard: self.flags.swarm.guard,
        }
    }
}

fn failure_object(evidence: &Evidence) -> Object {
    let path = |path: &Path| path.display().to_string();
    let steps = |report: &Report| report.scenario().steps.len();
    Object::default()
        .number("seed", evidence.seed)
        .list("violations", violations::objects(&evidence.whole))
        .number("steps", steps(&evidence.whole))
        .number("steps_shrunk", steps(&evidence.short))
        .list("violations_shrunk", violations::objects(&evidence.short))
        .text("hash_shrunk", &format!("{:016x}", evidence.short.hash()))
        .text("scenario_file", &path(&evidence.scenario_file))
        .text("timeline_file", &path(&evidence.timeline_file))
        .text("replay", &evidence.replay())
}

/// About a screen; the file has all steps.
const STEPS_SHOWN_MAX: usize = 24;
