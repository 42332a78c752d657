//! The client's events as metrics of the `metrics` facade.

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::observer::{Event, Observer};

/// Counts and times the client's events, for the recorder that the program has installed.
///
/// | metric | kind | labels | meaning |
/// |---|---|---|---|
/// | `redlock_client_acquire_seconds` | histogram | | time of an acquire, from call to result |
/// | `redlock_client_acquire_total` | counter | `result` | acquires by their result |
/// | `redlock_client_node_errors_total` | counter | `node`, `kind` | failures of a node |
/// | `redlock_client_held` | gauge | | locks that are held now |
/// | `redlock_client_lost_total` | counter | | locks that were lost or expired while held |
///
/// `result` is `acquired`, `busy`, `no_quorum`, `timeout`, `expired`, `lost` or `cancelled`. `kind`
/// is `timed_out`, `unreachable`, `disconnected`, `unresponsive`, `quarantined`, `server_error`,
/// `protocol` or `duplicate`; a refusal because another client holds the key is not a failure. Keys
/// are not labels, so there are at most nodes times kinds series.
///
/// Install the recorder before you create the observer, or the descriptions will be missing.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use redlock_client::{MetricsObserver, Redlock};
///
/// let redlock = Redlock::builder()
///     .nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
///     .observer(Arc::new(MetricsObserver::new()))
///     .build()?;
/// # Ok::<(), redlock_client::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MetricsObserver {
    _described: (),
}

impl MetricsObserver {
    /// Describes the metrics to the recorder.
    #[must_use]
    pub fn new() -> Self {
        describe_histogram!(
            ACQUIRE_SECONDS,
            Unit::Seconds,
            "Time from the call to its result."
        );
        describe_counter!(ACQUIRE_TOTAL, Unit::Count, "Acquires by their result.");
        describe_counter!(
            NODE_ERRORS_TOTAL,
            Unit::Count,
            "Failures of a node by their kind."
        );
        describe_gauge!(HELD, Unit::Count, "Locks that are held now.");
        describe_counter!(
            LOST_TOTAL,
            Unit::Count,
            "Locks lost or expired while they were held."
        );
        Self { _described: () }
    }
}

impl Default for MetricsObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for MetricsObserver {
    fn on_event(&self, event: &Event<'_>) {
        match *event {
            Event::Acquired { took, .. } => {
                histogram!(ACQUIRE_SECONDS).record(took);
                counter!(ACQUIRE_TOTAL, "result" => "acquired").increment(1);
                gauge!(HELD).increment(1.0);
            }
            Event::AcquireFailed { took, error, .. } => {
                histogram!(ACQUIRE_SECONDS).record(took);
                counter!(ACQUIRE_TOTAL, "result" => error.kind().name()).increment(1);
            }
            Event::Lost { .. } => counter!(LOST_TOTAL).increment(1),
            Event::Released { .. } => gauge!(HELD).decrement(1.0),
            Event::NodeDown { address, cause } | Event::NodeFailed { address, cause } => {
                let (node, kind) = (address.to_owned(), cause.name());
                counter!(NODE_ERRORS_TOTAL, "node" => node, "kind" => kind).increment(1);
            }
            Event::Renewed { .. } | Event::RenewFailed { .. } | Event::NodeUp { .. } => {}
        }
    }
}

const ACQUIRE_SECONDS: &str = "redlock_client_acquire_seconds";
const ACQUIRE_TOTAL: &str = "redlock_client_acquire_total";
const NODE_ERRORS_TOTAL: &str = "redlock_client_node_errors_total";
const HELD: &str = "redlock_client_held";
const LOST_TOTAL: &str = "redlock_client_lost_total";

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata,
        Recorder, SharedString, with_local_recorder,
    };

    use super::*;
    use crate::observe::tests::show;

    /// Keeps the sum of each series.
    #[derive(Default)]
    struct Sums {
        described: Mutex<BTreeSet<String>>,
        sums: Arc<Mutex<BTreeMap<String, f64>>>,
    }

    struct Series {
        name: String,
        sums: Arc<Mutex<BTreeMap<String, f64>>>,
    }

    impl Sums {
        fn series(&self, key: &Key) -> Arc<Series> {
            let labels = key
                .labels()
                .map(|label| format!(" {}={}", label.key(), label.value()));
            let name = labels.fold(key.name().to_owned(), |name, label| name + &label);
            Arc::new(Series {
                name,
                sums: Arc::clone(&self.sums),
            })
        }

        fn describe(&self, name: &KeyName) {
            self.described
                .lock()
                .unwrap()
                .insert(name.as_str().to_owned());
        }
    }

    impl Series {
        fn add(&self, value: f64) {
            *self
                .sums
                .lock()
                .unwrap()
                .entry(self.name.clone())
                .or_default() += value;
        }
    }

    impl CounterFn for Series {
        fn increment(&self, value: u64) {
            self.add(f64::from(u32::try_from(value).unwrap()));
        }

        fn absolute(&self, _: u64) {}
    }

    impl GaugeFn for Series {
        fn increment(&self, value: f64) {
            self.add(value);
        }

        fn decrement(&self, value: f64) {
            self.add(-value);
        }

        fn set(&self, _: f64) {}
    }

    impl HistogramFn for Series {
        fn record(&self, value: f64) {
            self.add(value);
        }
    }

    impl Recorder for Sums {
        fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
            self.describe(&name);
        }

        fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
            self.describe(&name);
        }

        fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
            self.describe(&name);
        }

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.series(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.series(key))
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.series(key))
        }
    }

    #[test]
    fn each_event_goes_into_its_series() {
        let recorder = Sums::default();
        with_local_recorder(&recorder, || {
            let observer = MetricsObserver::new();
            show(&observer);
            show(&observer);
        });
        let sums: Vec<_> = recorder.sums.lock().unwrap().clone().into_iter().collect();
        let expected = [
            ("acquire_seconds", 6.0 / 512.0),
            ("acquire_total result=acquired", 2.0),
            ("acquire_total result=busy", 2.0),
            ("acquire_total result=no_quorum", 2.0),
            ("held", 2.0 - 4.0),
            ("lost_total", 2.0),
            ("node_errors_total node=a:1 kind=timed_out", 4.0),
            ("node_errors_total node=b:1 kind=disconnected", 2.0),
        ];
        let expected = expected.map(|(name, sum)| (format!("redlock_client_{name}"), sum));
        assert_eq!(sums, expected);
        let used = sums
            .iter()
            .map(|(name, _)| name.split(' ').next().unwrap().to_owned());
        assert_eq!(*recorder.described.lock().unwrap(), used.collect());
    }
}
