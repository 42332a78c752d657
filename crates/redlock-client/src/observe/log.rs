//! The client's events as structured `tracing` events.

use std::fmt;
use std::time::Duration;

use redlock_proto::FencingToken;
use tracing::{debug, info, warn};

use crate::error::{Error, Failures};
use crate::observer::{Event, Observer};
use crate::released::Released;

/// Writes the client's events as `tracing` events, target `redlock_client`.
///
/// | event | level | fields |
/// |---|---|---|
/// | a lock is acquired | debug | `took_ms`, `validity_ms`, `tries`, `fencing` if there is one |
/// | it is not, because another client holds it | debug | `took_ms`, `kind`, `nodes` |
/// | it is not, for another reason | warn | `took_ms`, `kind`, `nodes` |
/// | a lock is renewed | debug | `validity_ms` |
/// | a renewal fails | warn | `kind`, `nodes` |
/// | a lock is lost or expires | warn | `kind`, `nodes` |
/// | its holder releases, drops or leaks it | debug | `confirmed`, if the caller waited for the release |
/// | a node accepts requests | info | `node`, `server`, `version` |
/// | a node does not, or no longer | warn | `node`, `kind`, `cause` |
/// | a node had no vote in a failed attempt or extension | debug | `node`, `kind`, `cause` |
///
/// `nodes` has the failure of each node. Tokens are never written; keys only after
/// [`with_keys`](Self::with_keys), as the field `key`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use redlock_client::{Redlock, TracingObserver};
///
/// let redlock = Redlock::builder()
///     .nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
///     .observer(Arc::new(TracingObserver::new().with_keys()))
///     .build()?;
/// # Ok::<(), redlock_client::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingObserver {
    keys: bool,
}

impl TracingObserver {
    /// An observer that writes no keys, which often have names of customers or orders.
    #[must_use]
    pub const fn new() -> Self {
        Self { keys: false }
    }

    /// Writes keys too. Bytes that are not printable ASCII are escaped.
    #[must_use]
    pub const fn with_keys(self) -> Self {
        Self { keys: true }
    }

    fn shown<'a>(&self, key: &'a [u8]) -> Option<tracing::field::DisplayValue<Key<'a>>> {
        self.keys.then(|| tracing::field::display(Key(key)))
    }

    fn warn(&self, key: &[u8], took: Option<Duration>, error: &Error, message: &str) {
        warn!(
            target: TARGET,
            key = self.shown(key),
            took_ms = took.map(millis),
            kind = error.kind().name(),
            nodes = %Failures(error.nodes()),
            "{message}"
        );
    }
}

impl Observer for TracingObserver {
    fn on_event(&self, event: &Event<'_>) {
        match *event {
            Event::Acquired {
                key,
                took,
                validity,
                tries,
                fencing,
            } => debug!(
                target: TARGET,
                key = self.shown(key),
                took_ms = millis(took),
                validity_ms = millis(validity),
                tries,
                fencing = fencing.map(FencingToken::get),
                "lock acquired"
            ),
            Event::AcquireFailed { key, took, error } if error.is_busy() => debug!(
                target: TARGET,
                key = self.shown(key),
                took_ms = millis(took),
                kind = error.kind().name(),
                nodes = %Failures(error.nodes()),
                "lock held by another client"
            ),
            Event::AcquireFailed { key, took, error } => {
                self.warn(key, Some(took), error, "lock not acquired");
            }
            Event::Renewed { key, validity } => debug!(
                target: TARGET,
                key = self.shown(key),
                validity_ms = millis(validity),
                "lock renewed"
            ),
            Event::RenewFailed { key, error } => self.warn(key, None, error, "lock not renewed"),
            Event::Lost { key, error } => self.warn(key, None, error, "lock lost"),
            Event::Released { key, released } => debug!(
                target: TARGET,
                key = self.shown(key),
                confirmed = released.map(Released::confirmed),
                "lock released"
            ),
            Event::NodeUp { address, server } => info!(
                target: TARGET,
                node = address,
                server = %server.name,
                version = %server.version,
                "node up"
            ),
            Event::NodeDown { address, cause } => warn!(
                target: TARGET,
                node = address,
                kind = cause.name(),
                cause = %cause,
                "node down"
            ),
            Event::NodeFailed { address, cause } => debug!(
                target: TARGET,
                node = address,
                kind = cause.name(),
                cause = %cause,
                "node had no vote"
            ),
        }
    }
}

/// A key as text.
struct Key<'a>(&'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

const TARGET: &str = "redlock_client";

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span;
    use tracing::subscriber::with_default;

    use super::*;
    use crate::observe::tests::show;

    /// Keeps every event as one line: level, target and fields.
    #[derive(Clone, Default)]
    struct Capture(Arc<Mutex<Vec<String>>>);

    impl tracing::Subscriber for Capture {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
            let mut line = Line(format!("span {}", attributes.metadata().name()));
            attributes.record(&mut line);
            self.0.lock().unwrap().push(line.0);
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, values: &span::Record<'_>) {
            let mut line = Line("in span".to_owned());
            values.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let metadata = event.metadata();
            let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }

    #[test]
    fn an_acquire_has_a_span_with_its_outcome() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let capture = Capture::default();
        with_default(capture.clone(), || {
            let redlock = crate::Redlock::builder().node("127.0.0.1").build().unwrap();
            let request = redlock.lock("secret name").ttl(Duration::from_millis(1));
            assert!(runtime.block_on(request.acquire()).unwrap_err().is_config());
        });
        let lines = capture.0.lock().unwrap();
        let expected = ["span acquire ttl=1ms", "in span error=Config"];
        assert_eq!(lines[..], expected, "and neither key nor token");
    }

    fn lines(observer: TracingObserver) -> Vec<String> {
        let capture = Capture::default();
        with_default(capture.clone(), || show(&observer));
        let lines = capture.0.lock().unwrap();
        lines.clone()
    }

    const NODES: &str = "nodes=a:1: no reply in time; b:1: replied -OOM";

    #[test]
    fn each_event_has_its_level_and_fields_and_no_key() {
        let no_vote = "DEBUG redlock_client message=node had no vote node=\"a:1\" kind=\"timed_out\" \
                       cause=no reply in time";
        let expected = [
            "DEBUG redlock_client message=lock acquired took_ms=1.953125 validity_ms=9000.0 tries=2 fencing=41",
            &format!(
                "DEBUG redlock_client message=lock held by another client took_ms=1.953125 kind=\"busy\" {NODES}"
            ),
            &format!(
                "WARN redlock_client message=lock not acquired took_ms=1.953125 kind=\"no_quorum\" {NODES}"
            ),
            "DEBUG redlock_client message=lock renewed validity_ms=9000.0",
            &format!("WARN redlock_client message=lock not renewed kind=\"no_quorum\" {NODES}"),
            &format!("WARN redlock_client message=lock lost kind=\"lost\" {NODES}"),
            "DEBUG redlock_client message=lock released confirmed=3",
            "DEBUG redlock_client message=lock released",
            "INFO redlock_client message=node up node=\"a:1\" server=valkey version=9.1.2",
            "WARN redlock_client message=node down node=\"b:1\" kind=\"disconnected\" \
             cause=connection lost before the reply",
            no_vote,
            no_vote,
        ];
        assert_eq!(lines(TracingObserver::new()), expected);
    }

    #[test]
    fn keys_are_written_only_on_request_and_cannot_break_a_line() {
        for line in lines(TracingObserver::new().with_keys()) {
            let about_lock = line.contains("message=lock");
            assert_eq!(line.contains(r" key=k\xff\n"), about_lock, "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
