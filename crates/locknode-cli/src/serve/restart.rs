//! What a restart means: the options of the restart guard and of the data directory.
//!
//! The guard itself is the node's. Here its options are read, and combinations that promise what they cannot keep are
//! refused.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use locknode::{Node, NodeBuilder, OpenErrorKind};

use crate::duration;
use crate::failure::{Exit, Failure};

/// The flags about restarts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Restart")]
pub(super) struct RestartFlags {
    /// Directory for what must survive a restart; created if it is missing
    ///
    /// With it the node serves at once after a clean stop, waits only until the last lock has
    /// expired after a crash, and grants locks with a long TTL or none. One directory per node, on
    /// a local disk.
    #[arg(long, value_name = "DIR", verbatim_doc_comment)]
    pub(super) dir: Option<PathBuf>,

    /// Longest TTL that is granted without the disk; also the longest wait after a crash
    ///
    /// Locks with a TTL up to this cost no disk access: after a crash the node waits until all of
    /// them must have expired. Longer ones are written to the log in --dir before they are
    /// granted, and refused without --dir. 1ms to 24h.
    ///
    /// Without --dir nothing is known of earlier runs: lowering --max-ttl shortens the wait for
    /// locks that an earlier run granted. With --dir it does not; the price is a disk.
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    #[arg(value_parser = parse_max_ttl, verbatim_doc_comment)]
    pub(super) max_ttl: Duration,

    /// After a crash, refuse locks until every lock granted before has expired
    ///
    /// Without it, a node that restarts after a crash grants locks that others still hold. off is
    /// for nodes whose locks may break: no wait, no limit on TTLs, nothing kept, like Redis
    /// without persistence.
    #[arg(long, value_name = "on|off", default_value = "on")]
    #[arg(verbatim_doc_comment)]
    pub(super) restart_guard: Guard,

    /// Locks that are on disk before they are granted: long ones, or all (needs --dir)
    ///
    /// long: those with a TTL above --max-ttl, or without one; the others cost no disk access, and
    /// a crash costs a wait. always: every grant waits for the disk, and a crash costs no wait.
    #[arg(long, value_name = "long|always", default_value = "long")]
    #[arg(verbatim_doc_comment)]
    pub(super) durability: Durability,

    /// What clients see while the node waits: an error, or no listener at all
    ///
    /// answer: commands on locks get -LOADING with the time left, and INFO works. refuse: the
    /// node does not listen until the wait is over, for clients and load balancers that expect a
    /// node that listens to serve.
    #[arg(long, value_name = "answer|refuse", default_value = "answer")]
    #[arg(verbatim_doc_comment)]
    pub(super) quarantine: Quarantine,

    /// What to do when --dir holds no state: wait --max-ttl, or refuse to start
    ///
    /// wait: after losing its disk the node waits until every lock with a TTL up to --max-ttl has
    /// expired; locks with a longer TTL or none are lost with the disk. refuse: it does not
    /// start, and no lock is lost. The price: somebody has to find out when every long lock has
    /// expired, and then start the node once with wait.
    #[arg(long, value_name = "wait|refuse", default_value = "wait")]
    #[arg(verbatim_doc_comment)]
    pub(super) empty_dir: EmptyDir,

    /// No node in this place of the clients' list has ever granted a lock: serve at once
    ///
    /// A node that finds no state cannot tell a first start from a lost disk, and waits. A node on
    /// a new machine that takes the place of another is not a first start: clients may still hold
    /// locks that the other one granted. Refused where there is state. Not for unit files and
    /// images, which start the node again after a crash: that is why it is neither a variable nor
    /// a key of the file.
    #[arg(long, verbatim_doc_comment)]
    pub(super) first_start: bool,
}

/// Whether restarts are guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Guard {
    #[value(alias = "yes", alias = "true")]
    On,
    #[value(alias = "no", alias = "false")]
    Off,
}

/// Which locks wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Durability {
    Long,
    Always,
}

/// What a start does that finds no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum EmptyDir {
    Wait,
    Refuse,
}

/// What a node does in its quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Quarantine {
    Answer,
    Refuse,
}

impl RestartFlags {
    /// Refuses options that promise what the others take away.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let is_off = self.restart_guard == Guard::Off;
        let is_always = self.durability == Durability::Always;
        let problem = match () {
            () if is_off && self.dir.is_some() => {
                "--restart-guard off keeps nothing, so --dir would hold nothing: leave one of them out"
            }
            () if is_off && is_always => {
                "--restart-guard off keeps nothing, --durability always keeps everything: leave one of them out"
            }
            () if is_off && self.first_start => {
                "--restart-guard off never waits, so --first-start has no use: leave one of them out"
            }
            () if self.empty_dir == EmptyDir::Refuse && self.dir.is_none() => {
                "--empty-dir refuse is about what is found in a data directory: give one with --dir"
            }
            () if is_always && self.dir.is_none() => {
                "--durability always needs a place for the log: give a directory with --dir"
            }
            () => return Ok(()),
        };
        Err(Failure::usage(problem))
    }

    /// Whether a restart is guarded at all.
    pub(super) fn is_guarded(&self) -> bool {
        self.restart_guard == Guard::On
    }

    /// The node, with what it finds in its directory, or goes on with.
    ///
    /// # Errors
    ///
    /// When the directory cannot be used. Nothing in it is overwritten.
    pub(super) fn open(&self, builder: NodeBuilder, is_taken_over: bool) -> Result<Node, Failure> {
        let builder = builder
            .restart_guard(self.is_guarded())
            .max_ttl(self.max_ttl)
            // Nor is it one that goes on from another process.
            .first_start(self.first_start && !is_taken_over)
            .require_state(self.empty_dir == EmptyDir::Refuse)
            .durability(match self.durability {
                Durability::Long => locknode::Durability::Long,
                Durability::Always => locknode::Durability::Always,
            });
        let Some(dir) = &self.dir else {
            return Ok(builder.build());
        };
        builder.open(dir).map_err(|error| {
            let (exit, place) = match error.kind() {
                Some(OpenErrorKind::StateExists) => (Exit::Usage, format!("{}/", dir.display())),
                // The message begins with the name of the file.
                Some(_) => (Exit::Unavailable, format!("{}/", dir.display())),
                None => (Exit::Unavailable, String::new()),
            };
            Failure::new(exit, format!("{place}{error} (--dir)"))
        })
    }
}

fn parse_max_ttl(text: &str) -> Result<Duration, String> {
    let is_bare_zero = !text.is_empty() && text.bytes().all(|digit| digit == b'0');
    let ttl = if is_bare_zero {
        Duration::ZERO
    } else {
        duration::parse(text)?
    };
    if ttl.is_zero() {
        return Err(NO_TTL.to_owned());
    }
    if ttl > NodeBuilder::MAX_TTL_MAX {
        return Err(
            "must be at most 24h, because the node may have to wait that long after a crash; longer locks are what \
             --dir is for"
                .to_owned(),
        );
    }
    Ok(ttl)
}

const NO_TTL: &str = "must be at least 1ms: no lock could be granted without the disk (for no limit and no wait, and \
    locks that a crash breaks, there is --restart-guard off)";

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn flags(args: &[&str]) -> RestartFlags {
        let command = RestartFlags::augment_args(Command::new("serve").no_binary_name(true));
        let matches = command.try_get_matches_from(args).expect("valid flags");
        RestartFlags::from_arg_matches(&matches).expect("valid flags")
    }

    #[test]
    fn the_longest_ttl_is_within_reason() {
        for (text, expected) in [
            ("60s", Ok(60_000)),
            ("1ms", Ok(1)),
            ("24h", Ok(86_400_000)),
            ("0", Err("at least 1ms")),
            ("0s", Err("at least 1ms")),
            ("25h", Err("--dir")),
            ("60", Err("with its unit")),
            ("", Err("with its unit")),
        ] {
            match (parse_max_ttl(text), expected) {
                (Ok(ttl), Ok(ms)) => assert_eq!(ttl, Duration::from_millis(ms), "{text:?}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{text:?}: {error}"),
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
    }

    /// `[G15]`
    #[test]
    fn contradictions_say_what_to_do() {
        for (args, part) in [
            (&[][..], None),
            (&["--restart-guard", "off"], None),
            (&["--restart-guard", "off", "--durability", "long"], None),
            (&["--dir", "d", "--durability", "always"], None),
            (
                &["--restart-guard", "off", "--dir", "d"],
                Some("leave one of them out"),
            ),
            (
                &["--restart-guard", "off", "--durability", "always"],
                Some("leave one of them out"),
            ),
            (
                &["--restart-guard", "off", "--first-start"],
                Some("leave one of them out"),
            ),
            (&["--durability", "always"], Some("with --dir")),
            (&["--empty-dir", "refuse"], Some("with --dir")),
            (&["--empty-dir", "refuse", "--dir", "d"], None),
            (
                &["--empty-dir", "refuse", "--dir", "d", "--first-start"],
                None,
            ),
        ] {
            let found = flags(args).check().map_err(|failure| failure.to_string());
            match (&found, part) {
                (Ok(()), None) => {}
                (Err(message), Some(part)) => assert!(message.contains(part), "{message}"),
                _ => panic!("{args:?}: {found:?}"),
            }
        }
    }
}
