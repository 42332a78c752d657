//! The background work of a node: freeing the memory of expired locks, and closing idle clients.
//!
//! Nothing here decides whether a lock is alive: an expired lock is invisible the moment its
//! deadline passes. A node without deadlines does no background work.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::shared::Shared;

/// Reclaims expired locks for as long as it is polled. One sweeper per node works, and the others
/// wait to take over.
///
/// While somebody is told when a lock expires, each is reclaimed on time.
pub(crate) async fn sweep(node: Arc<Shared>) -> Infallible {
    let _turn = node.sweep_turn.lock().await;
    loop {
        let now = node.clock.now().time;
        let next = node.engine.next_deadline();
        let is_on_time = node.engine.is_observed();
        match next {
            Some(deadline) if deadline < now => {
                node.engine.sweep(now, SLICE_SLOTS);
                if is_on_time {
                    tokio::task::yield_now().await;
                } else {
                    sleep(SLICE_PAUSE).await;
                }
            }
            _ => {
                let left = next.map_or(LOOK_PERIOD_IDLE, |deadline| deadline.since(now));
                let wait = match (next, is_on_time) {
                    (Some(_), false) => left.clamp(LOOK_PERIOD_MIN, LOOK_PERIOD_MAX),
                    _ => left,
                };
                let came = node.wait_for_commands(next, wait).await;
                let pause = if node.engine.is_observed() {
                    LOOK_PERIOD_ON_TIME.min(left)
                } else {
                    LOOK_PERIOD_MIN
                };
                if came {
                    sleep(pause).await;
                }
            }
        }
    }
}

/// Closes the connections that the options no longer allow, for as long as it is polled.
pub(crate) async fn close_clients(node: Arc<Shared>) -> Infallible {
    loop {
        let is_off = node.engine.options().timeout == 0;
        let period = if is_off { IDLE_PERIOD_OFF } else { IDLE_PERIOD };
        sleep(period).await;
        node.engine.enforce_client_limits(node.clock.now().time);
    }
}

/// Slots per slice: about 0.2 ms of work when all of them have expired, 5 us when none has.
const SLICE_SLOTS: usize = 1024;

/// The pause between two slices, so that requests come first. A million expired locks are reclaimed
/// in about two seconds.
const SLICE_PAUSE: Duration = Duration::from_millis(1);

/// The least time between two checks when nothing has expired: holding memory this long harms
/// nobody.
const LOOK_PERIOD_MIN: Duration = Duration::from_millis(100);

/// The least time between two checks while somebody is told when locks expire, who learns of a lock
/// with a shorter TTL this late, and by as much as timers are: they have a resolution of a
/// millisecond.
const LOOK_PERIOD_ON_TIME: Duration = Duration::from_millis(2);

/// The longest sleep while no lock has a deadline: the first one ends it.
const LOOK_PERIOD_IDLE: Duration = Duration::from_secs(3600);

/// The longest sleep: a lock set in the meantime may expire before all those known now.
const LOOK_PERIOD_MAX: Duration = Duration::from_secs(1);

/// Idle connections are closed at most this late.
const IDLE_PERIOD: Duration = Duration::from_secs(1);

/// While `timeout` is off: a CONFIG SET that turns it on closes those that are idle by then itself.
const IDLE_PERIOD_OFF: Duration = Duration::from_secs(5);
