//! What callers think better of: they give up what they have begun, do not wait for what comes of a release, release a lock that
//! another client left, and look who holds a key.

use std::time::Duration;

use crate::random::Random;
use crate::scenario::{Action, ClientAction, Ending, Scenario, Trigger};

/// Changes some of the locks of a scenario, in three worlds of ten. `random` is a stream of its own.
pub(crate) fn add(scenario: &mut Scenario, random: &mut Random) {
    if scenario.setup.is_plain() || !random.chance(30) {
        return;
    }
    let clients = scenario.setup.clients.max(1);
    let mut more = Vec::new();
    for step in &mut scenario.steps {
        let (&Trigger::At(at), &mut Action::Client(client, ClientAction::Lock(ref mut act))) =
            (&step.when, &mut step.what)
        else {
            continue;
        };
        let hold = act.hold.unwrap_or_default();
        // While it is wanted, or soon after.
        let most = random.pick(&[10, 50, 1_000]);
        let soon = Duration::from_millis(random.between(1, most));
        let mut then = |client, after, act| more.push((at + after, client, act));
        let key = act.key.clone();
        let is_released = act.ending == Ending::Release;
        match random.below(12) {
            0 if is_released => act.ending = Ending::Drop,
            1 if is_released && act.at_least.is_none() => act.ending = Ending::ReleaseByNext,
            2..=4 => then(client, soon, ClientAction::GiveUp { key }),
            // While it is released, or taken over.
            5 => then(client, hold + soon, ClientAction::GiveUp { key }),
            6 => then(
                (client + 1) % clients,
                hold + soon,
                ClientAction::GiveUp { key },
            ),
            7 | 8 => then(client, soon, ClientAction::Look { key }),
            _ => {}
        }
    }
    for (at, client, act) in more {
        scenario.add(Trigger::At(at), Action::Client(client, act));
    }
}
