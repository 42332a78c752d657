//! Events of every kind, for the tests of the observers.

#![cfg(any(feature = "tracing", feature = "metrics"))]

use std::time::Duration;

use redlock_proto::{Cause, Dialect, ErrorKind, FencingToken, Quorum, ServerInfo};

use crate::error::{Error, NodeFailure};
use crate::observer::{Event, Observer};
use crate::released::Released;

/// Shows the observer every kind of event, some of them twice.
pub(super) fn show(observer: &impl Observer) {
    let failure = |kind| {
        let timed_out = NodeFailure::new("a:1", Cause::TimedOut);
        let refused = NodeFailure::new("b:1", Cause::ServerError("OOM".into()));
        Error::new(kind, "the error's own message").with_nodes(vec![timed_out, refused])
    };
    let (busy, lost) = (failure(ErrorKind::Busy), failure(ErrorKind::Lost));
    let no_quorum = failure(ErrorKind::NoQuorum);
    let quorum = Quorum::of(3).unwrap();
    let released = Released {
        confirmed: quorum.all(),
        ..Released::nothing_sent(quorum)
    };
    let server = ServerInfo::new("valkey", "9.1.2", Dialect::DelIfEq);
    // A power of two of a second, whose sums are exact.
    let (took, validity) = (Duration::from_nanos(1_953_125), Duration::from_secs(9));
    let (key, address) = (b"k\xff\n", "a:1");
    let acquired = Event::Acquired {
        key,
        took,
        validity,
        tries: 2,
        fencing: FencingToken::new(41),
    };
    let acquire_failed = |error| Event::AcquireFailed { key, took, error };
    let (error, cause) = (&no_quorum, &Cause::TimedOut);
    for event in [
        acquired,
        acquire_failed(&busy),
        acquire_failed(&no_quorum),
        Event::Renewed { key, validity },
        Event::RenewFailed { key, error },
        Event::Lost { key, error: &lost },
        Event::Released {
            key,
            released: Some(&released),
        },
        Event::Released {
            key,
            released: None,
        },
        Event::NodeUp {
            address,
            server: &server,
        },
        Event::NodeDown {
            address: "b:1",
            cause: &Cause::Disconnected,
        },
        Event::NodeFailed { address, cause },
        Event::NodeFailed { address, cause },
    ] {
        observer.on_event(&event);
    }
}
