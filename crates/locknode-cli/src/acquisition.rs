//! Acquires a lock with the flags of the command line.

use std::time::{Duration, SystemTime};

use redlock_client::{Error, ErrorKind, Guard, LockRequest, RetryPolicy};

use crate::cluster;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::json::Object;

/// How to acquire a lock.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AcquisitionFlags {
    /// Time until the lock expires unless it is renewed
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_ttl)]
    pub(crate) ttl: Duration,

    /// How long to wait while another client holds the lock: 0, a duration, or forever
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_wait)]
    wait: Wait,

    /// Do not wait for the lock, as --wait 0
    #[arg(short = 'n', long = "no-wait", conflicts_with = "wait")]
    no_wait: bool,

    /// Exit code if another client holds the lock
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = BUSY)]
    busy_exit_code: u8,

    /// What status NAME shows of the holder; empty for nothing [default: host:process id:program]
    #[arg(long, value_name = "TEXT", env = "LOCKNODE_LABEL")]
    pub(crate) label: Option<String>,
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    No,
    For(Duration),
    Forever,
}

impl AcquisitionFlags {
    /// Acquires the lock. A wait without end calls `waiting` with its reason, once for each kind.
    ///
    /// # Errors
    ///
    /// If another client holds the lock until the wait ends, or no majority of the nodes replies.
    ///
    /// # Cancel safety
    ///
    /// Some nodes may have granted the lock; the client releases it there.
    pub(crate) async fn acquire(
        &self,
        request: LockRequest,
        waiting: impl Fn(&Error),
    ) -> Result<Guard, Failure> {
        let request = request.ttl(self.ttl);
        let request = match &self.label {
            Some(label) => request.label(label),
            None => request,
        };
        let busy = Exit::Code(self.busy_exit_code);
        match self.wait() {
            Wait::No => once(request, busy).await,
            Wait::For(wait) => match request.clone().wait_for(wait).acquire().await {
                Ok(guard) => Ok(guard),
                // The end of the wait cut the last round short. A whole one shows whether another client
                // holds the lock or the nodes do not reply.
                Err(error) if error.kind() == ErrorKind::Timeout => once(request, busy).await,
                Err(error) => Err(cluster::failure(&error, busy)),
            },
            Wait::Forever => {
                let mut reported = None;
                loop {
                    let step = reported.map_or(FOREVER_STEP_FIRST, |_| FOREVER_STEP);
                    let request = request.clone().wait_for(step);
                    match request.acquire().await {
                        Ok(guard) => return Ok(guard),
                        Err(error) if error.kind() == ErrorKind::Config => {
                            return Err(cluster::failure(&error, busy));
                        }
                        Err(error) => {
                            if reported != Some(error.kind()) {
                                reported = Some(error.kind());
                                waiting(&error);
                            }
                        }
                    }
                }
            }
        }
    }

    const fn wait(&self) -> Wait {
        if self.no_wait { Wait::No } else { self.wait }
    }
}

/// Tries once.
async fn once(request: LockRequest, busy: Exit) -> Result<Guard, Failure> {
    // Unlike `try_acquire`, this has each node's reply if the lock is held.
    let acquired = request.retry(RetryPolicy::tries(1)).acquire().await;
    acquired.map_err(|error| cluster::failure(&error, busy))
}

/// How long a lock is valid, and when that ends by the wall clock, for people and other programs.
/// Decisions use the validity itself, because this clock may be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validity {
    left: Duration,
    ends: SystemTime,
}

impl Validity {
    /// Reads the wall clock, then what is left: a pause in between makes the end too early, never too late.
    pub(crate) fn read(left: impl FnOnce() -> Duration) -> Self {
        let now = SystemTime::now();
        let left = left();
        Self {
            left,
            ends: now + left,
        }
    }

    /// The end in milliseconds since 1970.
    pub(crate) fn unix_millis_at_end(self) -> u128 {
        let end = self.ends.duration_since(SystemTime::UNIX_EPOCH);
        end.unwrap_or_default().as_millis()
    }

    /// Adds both to a JSON object.
    pub(crate) fn describe(self, object: Object) -> Object {
        object
            .number("valid_ms", self.left.as_millis())
            .number("valid_until_unix_ms", self.unix_millis_at_end())
    }
}

/// Reads the `--ttl` of a lock.
///
/// # Errors
///
/// A message that shows how to write one.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration::parse(text)?;
    if ttl.is_zero() {
        return Err("a TTL must be more than zero".to_owned());
    }
    Ok(ttl)
}

fn parse_wait(text: &str) -> Result<Wait, String> {
    if text == "forever" {
        return Ok(Wait::Forever);
    }
    if text == "0" {
        return Ok(Wait::No);
    }
    let wait = duration::parse(text)
        .map_err(|_| "0, forever, or a number with its unit: 250ms, 30s, 5m or 1h".to_owned())?;
    match wait {
        Duration::ZERO => Ok(Wait::No),
        wait if wait > WAIT_MAX => Err("at most 24h, or forever".to_owned()),
        wait => Ok(Wait::For(wait)),
    }
}

/// `EX_TEMPFAIL`: try again later.
const BUSY: u8 = 75;

/// A wait without end reports its reason after this time.
const FOREVER_STEP_FIRST: Duration = Duration::from_secs(1);

/// It checks for a new reason this often.
const FOREVER_STEP: Duration = Duration::from_secs(10);

/// The longest wait that is not `forever`.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_zero_a_duration_or_forever() {
        for (text, expected) in [
            ("0", Some(Wait::No)),
            ("0s", Some(Wait::No)),
            ("250ms", Some(Wait::For(Duration::from_millis(250)))),
            ("24h", Some(Wait::For(WAIT_MAX))),
            ("forever", Some(Wait::Forever)),
            ("25h", None),
            ("5", None),
            ("-1s", None),
            ("", None),
            ("ever", None),
        ] {
            assert_eq!(parse_wait(text).ok(), expected, "{text:?}");
        }
        assert!(parse_ttl("0s").is_err());
    }

    #[test]
    fn an_end_by_the_wall_clock_is_never_too_late() {
        let mut read = SystemTime::UNIX_EPOCH;
        let left = Duration::from_secs(2);
        let validity = Validity::read(|| {
            read = SystemTime::now();
            left
        });
        assert!(validity.ends <= read + left);
    }
}
