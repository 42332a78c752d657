//! What is known of keys whose counters differ from node to node.
//!
//! A loser's grant raises one node's counter alone, and a node that restarted counts from a higher base. The next holder
//! then needs a second round trip, unless all nodes are asked to count from the highest number that any of them
//! reported: the floor. Then they report the same. A client that learnt of different counters, as a loser too, remembers the highest
//! for the key and sends it with its next attempt; once they are even it forgets it, so nothing is sent in steady state.
//!
//! A floor is a hint. It makes a counter skip numbers, which is harmless whatever it is; what makes the tokens an order
//! does not rest on it. So the table may be small, and forget: a key takes the place of the one that was there.

use crate::fencing_token::FencingToken;
use crate::round::WRITABLE_MAX;

/// Floors of a few keys. Most clients never have any, and pay for none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floors {
    places: Vec<Option<Place>>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The key's hash. Two keys that share it share a floor.
    key: u64,
    floor: FencingToken,
}

impl Floors {
    /// Where the nodes are to count from for this key.
    pub(crate) fn of(&self, key: &[u8]) -> Option<FencingToken> {
        if self.len == 0 {
            return None;
        }
        let hash = hash(key);
        let place = self.places.get(index(hash)).copied().flatten()?;
        (place.key == hash).then_some(place.floor)
    }

    /// An attempt ended: the highest counter that nodes reported, if they reported different ones.
    pub(crate) fn learn(&mut self, key: &[u8], uneven: Option<FencingToken>) {
        let hash = hash(key);
        // A node refuses what is out of range.
        let floor = uneven.filter(|floor| *floor <= WRITABLE_MAX);
        if self.places.is_empty() && floor.is_some() {
            self.places = vec![None; PLACES];
        }
        let Some(place) = self.places.get_mut(index(hash)) else {
            return;
        };
        let is_other = place.is_some_and(|place| place.key != hash);
        if is_other && floor.is_none() {
            return;
        }
        self.len -= usize::from(place.is_some());
        *place = floor.map(|floor| Place { key: hash, floor });
        self.len += usize::from(place.is_some());
    }
}

/// FNV-1a. Somebody who finds keys that meet has made a client forget hints.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn index(hash: u64) -> usize {
    // The last bytes of a key reach the upper bits only by another multiplication.
    let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    usize::from(spread.to_le_bytes()[0])
}

/// As many as an index of one byte can name: 6 KiB. Only keys whose counters differ right now need one.
const PLACES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn token(n: u64) -> Option<FencingToken> {
        FencingToken::new(n)
    }

    /// `[F8]`
    #[test]
    fn a_floor_is_remembered_until_the_counters_are_even() {
        let mut floors = Floors::default();
        floors.learn(b"a", None);
        assert_eq!(floors.of(b"a"), None);
        assert!(floors.places.is_empty(), "costs nothing");
        for n in [7, 9, 8] {
            floors.learn(b"a", token(n));
            assert_eq!(
                (floors.of(b"a"), floors.len),
                (token(n), 1),
                "the last word counts"
            );
        }
        assert_eq!(floors.of(b"b"), None, "of another key");
        floors.learn(b"a", token((1 << 53) - 1));
        assert_eq!(
            (floors.of(b"a"), floors.len),
            (None, 0),
            "no node would take it"
        );
        floors.learn(b"a", token(7));
        floors.learn(b"a", None);
        assert_eq!((floors.of(b"a"), floors.len), (None, 0));
    }

    #[test]
    fn the_table_is_as_large_as_it_is_and_the_last_key_has_the_place() {
        let mut floors = Floors::default();
        let keys: Vec<String> = (0..5_000).map(|n| format!("key-{n}")).collect();
        for key in &keys {
            floors.learn(key.as_bytes(), token(3));
            assert_eq!(floors.of(key.as_bytes()), token(3));
        }
        assert_eq!((floors.places.len(), floors.len), (256, 256));
        let first = keys[0].as_bytes();
        assert_eq!(floors.of(first), None, "another has its place");
        floors.learn(first, None);
        assert_eq!(floors.len, 256, "and keeps it");
    }
}
