//! The background work of a node: giving back the memory of ended locks, and closing idle clients.
//!
//! Nothing here decides whether a lock is alive: an ended lock is invisible the moment its deadline passes. A node
//! that holds no lock with a deadline does no background work.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::shared::Shared;

/// Reclaims ended locks for as long as it is polled. Of several on one node, one works and the others wait to
/// take over.
pub(crate) async fn sweep(node: Arc<Shared>) {
    let _turn = node.sweep_turn.lock().await;
    loop {
        let now = node.clock.now().time;
        match node.engine.next_deadline() {
            None => {
                node.wait_for_commands().await;
                sleep(REST).await;
            }
            Some(deadline) if deadline >= now => {
                sleep(deadline.since(now).clamp(REST, REST_MAX)).await;
            }
            Some(_) => {
                node.engine.sweep(now, SLICE_SLOTS);
                sleep(BREATH).await;
            }
        }
    }
}

/// Closes connections that are idle for longer than `timeout`, for as long as it is polled.
pub(crate) async fn close_idle(node: Arc<Shared>) {
    loop {
        let is_needed = node.engine.options().timeout > 0;
        sleep(if is_needed {
            IDLE_PERIOD
        } else {
            IDLE_PERIOD_OFF
        })
        .await;
        node.engine.close_idle(node.clock.now().time);
    }
}

/// Slots per slice: at most about 0.2 ms of work when every one of them has ended, 5 us when none has.
const SLICE_SLOTS: usize = 1024;

/// Between two slices, so that requests come first. A million ended locks are reclaimed in about two seconds.
const BREATH: Duration = Duration::from_millis(1);

/// Least time between two looks when nothing has ended: memory that waits so long for its return harms nobody.
const REST: Duration = Duration::from_millis(100);

/// Longest sleep: a lock set meanwhile may end before all those known now.
const REST_MAX: Duration = Duration::from_secs(1);

/// Idle connections are closed at most this late.
const IDLE_PERIOD: Duration = Duration::from_secs(1);

/// While `timeout` is off, how late a CONFIG SET that turns it on is noticed.
const IDLE_PERIOD_OFF: Duration = Duration::from_secs(5);
