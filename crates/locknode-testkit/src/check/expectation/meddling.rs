//! Whether somebody lays hands on the locks of others.

use std::collections::BTreeSet;

use crate::scenario::{ClientAction, Scenario};

/// Whether a request beside the clients overwrites, moves or deletes keys that are locks, without a comparison.
pub(super) fn is_meddled_with(scenario: &Scenario) -> bool {
    let locks = scenario.acts().filter_map(|act| match act {
        ClientAction::Lock(lock) => Some(&*lock.key),
        _ => None,
    });
    let locks: BTreeSet<&str> = locks.collect();
    let mut requests = scenario.acts().filter_map(|act| match act {
        ClientAction::Ask { words, .. } => Some(words),
        _ => None,
    });
    requests.any(|words| words.split(" ; ").any(|request| meddles(request, &locks)))
}

fn meddles(request: &str, locks: &BTreeSet<&str>) -> bool {
    let mut words = request.split_ascii_whitespace();
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    let keys: Vec<&str> = words.collect();
    match &*name {
        "flushall" => true,
        "del" | "unlink" => keys.iter().any(|key| locks.contains(key)),
        "getdel" | "expire" | "pexpire" | "persist" => {
            keys.first().is_some_and(|key| locks.contains(key))
        }
        "set" => {
            let is_new = keys.iter().any(|word| word.eq_ignore_ascii_case("nx"));
            !is_new && keys.first().is_some_and(|key| locks.contains(key))
        }
        _ => false,
    }
}
