//! Which cluster a key belongs to, and every course of a move between two layouts.

use std::collections::{HashSet, VecDeque};

use super::*;

fn cluster(number: usize) -> Redlock {
    let nodes = (0..3).map(|node| format!("10.0.{number}.{node}"));
    Redlock::builder().nodes(nodes).build().unwrap()
}

fn shards(names: &[&str]) -> Shards {
    let number = |name: &str| usize::from(name.as_bytes()[0]);
    Shards::new(names.iter().map(|name| (*name, cluster(number(name))))).unwrap()
}

/// Other implementations may copy these.
#[test]
fn scores_never_change() {
    let rows = [
        ("blue", "invoice/42", 0x6c10_aa0e_475d_f40c),
        ("green", "invoice/42", 0x904a_f947_c9ae_6434),
        ("", "", 0x1bbd_5c81_3c69_a8d7),
    ];
    for (name, key, expected) in rows {
        let found = score(name.as_bytes(), key.as_bytes());
        assert_eq!(found, expected, "{name} {key}: {found:#x}");
    }
}

#[test]
fn keys_are_spread_evenly_and_few_move_when_a_cluster_comes() {
    let (three, four) = (shards(&["a", "b", "c"]), shards(&["a", "b", "c", "d"]));
    let (mut counts, mut moved) = ([0; 3], 0);
    for n in 0..9_000 {
        let key = format!("key {n}");
        let (before, after) = (three.name_of(&key), four.name_of(&key));
        counts[usize::from(before.as_bytes()[0] - b'a')] += 1;
        moved += usize::from(before != after);
        assert!(
            before == after || after == "d",
            "{key}: {before} to {after}"
        );
    }
    assert!(
        counts.iter().all(|count| (2_800..3_200).contains(count)),
        "{counts:?}"
    );
    assert!((2_000..2_500).contains(&moved), "{moved}");
}

#[test]
fn the_order_of_the_clusters_does_not_matter() {
    let (one, other) = (shards(&["a", "b", "c"]), shards(&["c", "a", "b"]));
    for n in 0..100 {
        let key = format!("key {n}");
        assert_eq!(one.name_of(&key), other.name_of(&key));
    }
}

#[test]
fn layouts_that_cannot_work_are_refused() {
    let config = |shards: Result<Shards, Error>| shards.unwrap_err().to_string();
    let none: [(&str, Redlock); 0] = [];
    assert!(config(Shards::new(none)).contains("at least one"));
    for names in [["a", "a"], ["a", ""]] {
        let shards = Shards::new(names.map(|name| (name, cluster(name.len()))));
        assert!(config(shards).contains("a name of its own"));
    }
    let shared = Shards::new([("a", cluster(1)), ("b", cluster(1))]);
    assert!(config(shared).contains("is a node of the clusters a and b"));
    let prefixed = Redlock::builder().node("10.0.0.9").key_prefix("x:").build();
    let mixed = Shards::new([("a", cluster(1)), ("b", prefixed.unwrap())]);
    assert!(config(mixed).contains("prefixes"));
    // The same nodes under another name would refuse their own client.
    let renamed = Shards::new([("b", cluster(usize::from(b'a')))]).unwrap();
    assert!(
        config(shards(&["a"]).moving_to(renamed)).contains("is a node of the clusters a and b")
    );
    let other = Shards::new([("a", cluster(7))]).unwrap();
    assert!(config(shards(&["a"]).moving_to(other)).contains("has other nodes"));
    let moving = shards(&["a"]).moving_to(shards(&["a", "b"])).unwrap();
    assert!(config(moving.moving_to(shards(&["a"]))).contains("finish one first"));
}

#[test]
fn a_key_is_locked_once_where_its_cluster_stays() {
    let moving = shards(&["a", "b"])
        .moving_to(shards(&["a", "b", "c"]))
        .unwrap();
    let mut twice = 0;
    for n in 0..300 {
        let key = format!("key {n}");
        let (old, new) = (shards(&["a", "b"]), shards(&["a", "b", "c"]));
        let stays = old.name_of(&key) == new.name_of(&key);
        let route = moving.route(key.as_bytes());
        assert_eq!(route.len(), if stays { 1 } else { 2 });
        twice += usize::from(!stays);
    }
    assert!((60..140).contains(&twice), "{twice}");
}

/// Which layouts a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Uses {
    Old,
    Both,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Client {
    uses: Uses,
    /// How many clusters of its route have granted it the lock.
    held: usize,
}

/// Who holds one key in each of the two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Nobody,
    Client(usize),
    /// A client that is gone, or has given up: the lock expires at some time.
    Gone,
}

type State = ([Client; CLIENTS], [Holder; 2]);

const CLIENTS: usize = 3;

/// Explores every course of three clients that acquire, release, crash and move on, and returns a state
/// in which two hold the lock, if there is one. `waits` says whether the rule of the move is kept.
fn find_two_holders(waits: bool) -> Option<State> {
    let key = (0..)
        .map(|n| format!("key {n}"))
        .find(|key| shards(&["a", "b"]).name_of(key) == "a" && shards(&["b"]).name_of(key) == "b");
    let key = key.unwrap();
    let (old, new) = (|| shards(&["a"]), || shards(&["b"]));
    let both = old().moving_to(new()).unwrap();
    let first_node = |redlock: &&Redlock| redlock.config().names[0].to_string();
    let place =
        |redlock: &&Redlock| usize::from(first_node(redlock) != first_node(&&old().layout[0].1));
    let route = |shards: &Shards| -> Vec<usize> {
        shards.route(key.as_bytes()).iter().map(place).collect()
    };
    let routes = [route(&old()), route(&both), route(&new())];
    assert_eq!(routes, [vec![0], vec![0, 1], vec![1]]);

    let client = Client {
        uses: Uses::Old,
        held: 0,
    };
    let start: State = ([client; CLIENTS], [Holder::Nobody; 2]);
    let (mut seen, mut queue) = (HashSet::from([start]), VecDeque::from([start]));
    while let Some(state @ (clients, holders)) = queue.pop_front() {
        let holds = |client: &&Client| client.held == routes[client.uses as usize].len();
        if clients.iter().filter(holds).count() > 1 {
            return Some(state);
        }
        let mut next = Vec::new();
        for (place, holder) in holders.iter().enumerate() {
            if *holder == Holder::Gone {
                let mut state = state;
                state.1[place] = Holder::Nobody;
                next.push(state);
            }
        }
        for (index, client) in clients.iter().enumerate() {
            let route = &routes[client.uses as usize];
            // It ends, or gives up: what it holds is released now or expires later.
            for left in [Holder::Nobody, Holder::Gone] {
                let mut state = state;
                state.0[index].held = 0;
                for holder in &mut state.1 {
                    if *holder == Holder::Client(index) {
                        *holder = left;
                    }
                }
                next.push(state);
            }
            if let Some(&place) = route.get(client.held)
                && holders[place] == Holder::Nobody
            {
                let mut state = state;
                state.0[index].held += 1;
                state.1[place] = Holder::Client(index);
                next.push(state);
            }
            // It starts anew with other layouts.
            let is_alone = clients.iter().all(|client| client.uses != Uses::Old);
            let moved = match client.uses {
                Uses::Old => Some(Uses::Both),
                Uses::Both if is_alone || !waits => Some(Uses::New),
                _ => None,
            };
            if let Some(uses) = moved.filter(|_| client.held == 0) {
                let mut state = state;
                state.0[index].uses = uses;
                next.push(state);
            }
        }
        next.retain(|state| seen.insert(*state));
        queue.extend(next);
    }
    assert!(seen.len() > 150, "{}", seen.len());
    None
}

#[test]
fn no_course_of_a_move_lets_two_clients_hold_one_lock() {
    assert_eq!(find_two_holders(true), None);
}

#[test]
fn a_client_that_skips_a_step_of_the_move_can_hold_what_another_holds() {
    assert!(find_two_holders(false).is_some());
}
