//! What a node says about its restart and its disk, and waiting for the end of its quarantine.

use std::path::Path;
use std::time::Duration;

use locknode::{GuardReport, GuardState, Node, StartReason};
use tokio::time::sleep;

use super::condition::because;
use super::restart::{Durability, Quarantine, RestartFlags};
use super::service_manager::ServiceManager;
use crate::failure::Failure;
use crate::log::Log;
use crate::serving::Serving;

/// Says what the node begins with, why, and what would have made a wait shorter.
pub(super) fn announce(node: &Node, flags: &RestartFlags, log: &Log) {
    let report = node.guard();
    if !flags.is_guarded() {
        log.warn(
            "the restart guard is off: after a restart this node is empty and grants locks that others may still hold, like Redis without persistence",
        );
        return;
    }
    match &flags.dir {
        Some(dir) => log.info(format_args!(
            "data directory {}, run {}, durability {}",
            dir.display(),
            report.incarnation,
            flags.durability.name(),
        )),
        None => log.info(format_args!(
            "locks live in memory only, and a TTL above {}, or none, is refused: that needs a data directory (--dir)",
            seconds(flags.max_ttl)
        )),
    }
    if flags.first_start && flags.dir.is_none() {
        log.warn(
            "--first-start counts at every start: remove it before the next one, or the node grants locks that others may still hold",
        );
    }
    if report.state != GuardState::Quarantine {
        let locks = node.stats().keys;
        log.info(format_args!(
            "serving, {locks} {}: {}",
            if locks == 1 { "lock" } else { "locks" },
            because(report.reason)
        ));
        return;
    }
    log.warn(format_args!(
        "refusing locks for {}, {}: {}",
        seconds(report.quarantine_left),
        until(&report),
        because(report.reason)
    ));
    let advice = report.reason.advice();
    if !advice.is_empty() {
        log.info(format_args!("tip: {advice}"));
    }
}

/// With `--quarantine refuse`: waits for the end of the quarantine, and says how long it still is. Returns whether
/// the node is to serve; a signal ends the wait.
pub(super) fn sit_out(
    node: &Node,
    flags: &RestartFlags,
    serving: &mut Serving,
    manager: &ServiceManager,
    log: &Log,
) -> bool {
    if flags.quarantine == Quarantine::Answer || left(node).is_none() {
        return true;
    }
    log.info("not listening until the quarantine is over (--quarantine refuse)");
    let wait = async {
        while let Some(left) = left(node) {
            manager.not_yet(node, 3 * PROGRESS);
            sleep(left.min(PROGRESS)).await;
            if let Some(left) = self::left(node) {
                log.info(format_args!("in quarantine, {} left", seconds(left)));
            }
        }
    };
    match serving.wait(wait) {
        None => {
            log.info(OVER);
            true
        }
        Some(signal) => {
            log.info(format_args!("{signal}: stopping in quarantine"));
            false
        }
    }
}

/// Reports when the quarantine of a serving node ends, when its disk gets into trouble, and when it works again.
pub(super) async fn report_changes(node: Node, log: &Log) -> Result<(), Failure> {
    // No other state has been reported by now.
    let mut reported = match left(&node) {
        Some(_) => GuardState::Quarantine,
        None => GuardState::Serving,
    };
    loop {
        let guard = node.guard_changed(reported).await;
        match guard.state {
            GuardState::Serving if reported == GuardState::Quarantine => log.info(OVER),
            GuardState::Serving => {
                log.info("the data directory can be written again: granting all locks");
            }
            GuardState::Full => log.warn(format_args!(
                "the disk takes no writes ({}): locks that need it are refused with -MISCONF; free some space, the node retries every second",
                guard.error
            )),
            GuardState::Failed => log.warn(format_args!(
                "cannot write to the data directory ({}): no locks are granted any more; repair the disk, then restart the node",
                guard.error
            )),
            GuardState::Quarantine | GuardState::Closed => {}
        }
        reported = guard.state;
    }
}

/// What is left of the quarantine. The node's time decides; the runtime's timers, which stand still while the machine
/// sleeps, only say when to look again.
fn left(node: &Node) -> Option<Duration> {
    let guard = node.guard();
    (guard.state == GuardState::Quarantine).then_some(guard.quarantine_left)
}

/// Ends the node in order: what it holds is written for the next start.
///
/// # Errors
///
/// When it cannot be written. The next start then waits, as after a crash.
pub(super) fn close(node: &Node, dir: Option<&Path>, log: &Log) -> Result<(), Failure> {
    let Some(dir) = dir else {
        return Ok(());
    };
    let dir = dir.display();
    let waits = "the next start waits as after a crash";
    match node.close() {
        Ok(Some(locks)) => log.info(format_args!("locks written to {dir}: {locks}")),
        Ok(None) => log.info(format_args!("no locks written to {dir}: {waits}")),
        Err(error) => {
            let problem = format!("cannot write the locks to {dir}: {error}; {waits}");
            return Err(Failure::internal(problem));
        }
    }
    Ok(())
}

/// What a node waits for, and what it cannot wait for `[G3]`.
fn until(report: &GuardReport) -> String {
    let (ttl, lost) = match report.reason {
        StartReason::Empty => (
            report.max_ttl,
            "locks with a longer TTL or none are lost with the disk",
        ),
        StartReason::DroppedBatch => (
            report.ttl_in_use,
            "locks in that batch with a longer TTL or none are lost",
        ),
        StartReason::NoDirectory => (
            report.max_ttl,
            "a run with a longer --max-ttl may have granted longer ones",
        ),
        _ => return "until every lock this node may have granted has expired".to_owned(),
    };
    let ttl = seconds(ttl);
    format!("until every lock with a TTL up to {ttl} has expired; {lost}")
}

/// A time in seconds, rounded up to milliseconds.
fn seconds(time: Duration) -> String {
    let ms = time.as_nanos().div_ceil(1_000_000);
    match ms % 1000 {
        0 => format!("{} s", ms / 1000),
        rest => format!("{}.{rest:03} s", ms / 1000),
    }
}

impl Durability {
    const fn name(self) -> &'static str {
        match self {
            Self::Long => "long",
            Self::Always => "always",
        }
    }
}

const OVER: &str = "the quarantine is over: granting locks";

/// How often the rest of the wait is checked and reported.
const PROGRESS: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_to_milliseconds() {
        for (nanos, expected) in [
            (0, "0 s"),
            (1, "0.001 s"),
            (60_602_000_000, "60.602 s"),
            (60_602_000_001, "60.603 s"),
            (3_000_000_000, "3 s"),
        ] {
            assert_eq!(seconds(Duration::from_nanos(nanos)), expected);
        }
    }
}
