//! Values against naive models, and their bytes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use proptest::prelude::*;

use super::{Element, End, Field, Hash, Kind, List, Score, SortedSet, Value, Values, decode};

/// A change of a value; what it means is the type's.
#[derive(Clone, Debug)]
struct Change {
    /// One of a few.
    key: u8,
    /// Longer or shorter.
    content: u8,
    is_removal: bool,
    is_right: bool,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    // Up to some more keys than a row holds.
    let change = (0_u8..70, 0_u8..12, prop::bool::weighted(0.3), any::<bool>());
    let change = change.prop_map(|(key, content, is_removal, is_right)| Change {
        key,
        content,
        is_removal,
        is_right,
    });
    prop::collection::vec(change, 0..300)
}

impl Change {
    fn key(&self) -> Vec<u8> {
        vec![b'k'; usize::from(self.key)]
    }

    fn content(&self) -> Vec<u8> {
        vec![self.content; usize::from(self.content)]
    }

    fn score(&self) -> Score {
        let scores = [
            f64::NEG_INFINITY,
            -1.5,
            0.0,
            -0.0,
            1.0,
            2.0,
            1e300,
            f64::INFINITY,
        ];
        Score::new(scores[usize::from(self.content) % scores.len()]).expect("a number")
    }
}

/// The value reads back from its bytes, and what it says of its size does not depend on its past.
fn check_bytes(value: &Value) {
    if value.is_empty() {
        assert_eq!(value.bytes(), 0);
        assert_eq!(decode(&value.encode()), None, "no key holds an empty value");
        return;
    }
    let bytes = value.encode();
    let read = decode(&bytes).expect("a whole value");
    assert_eq!(&read, value);
    assert_eq!(read.bytes(), value.bytes());
    for end in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        assert_ne!(decode(&bytes[..end]).as_ref(), Some(value), "cut at {end}");
    }
}

proptest! {
    #[test]
    fn a_hash_is_a_map(changes in changes()) {
        let (mut hash, mut model) = (Hash::default(), BTreeMap::new());
        for change in changes {
            let (key, content) = (change.key(), change.content());
            if change.is_removal {
                let old = hash.remove(&key).map(|it| it.value().to_vec());
                prop_assert_eq!(old, model.remove(&key));
            } else {
                let old = hash.put(Field::new(&key, &content)).map(|it| it.value().to_vec());
                prop_assert_eq!(old, model.insert(key, content));
            }
            prop_assert_eq!(hash.len(), model.len());
        }
        let mut pairs: Vec<_> = hash.iter().map(|it| (it.key().to_vec(), it.value().to_vec())).collect();
        pairs.sort();
        prop_assert_eq!(pairs, model.into_iter().collect::<Vec<_>>());
        check_bytes(&hash.into_value());
    }

    #[test]
    fn a_sorted_set_is_in_order(changes in changes()) {
        let (mut set, mut model) = (SortedSet::default(), BTreeMap::new());
        for change in changes {
            let key = change.key();
            if change.is_removal {
                prop_assert_eq!(set.remove(&key), model.remove(&key).is_some());
            } else {
                let old = set.insert(&key, change.score());
                prop_assert_eq!(old, model.insert(key, change.score()));
            }
        }
        let mut want: Vec<_> = model.into_iter().map(|(key, score)| (score, key)).collect();
        want.sort();
        let found = |members: &mut dyn Iterator<Item = (&[u8], Score)>| {
            members.map(|(key, score)| (score, key.to_vec())).collect::<Vec<_>>()
        };
        prop_assert_eq!(found(&mut set.iter()), want.clone());
        for min in bounds() {
            for max in bounds() {
                let is_within = |score: &Score| {
                    (match min {
                        Bound::Included(min) => *score >= min,
                        Bound::Excluded(min) => *score > min,
                        Bound::Unbounded => true,
                    }) && (match max {
                        Bound::Included(max) => *score <= max,
                        Bound::Excluded(max) => *score < max,
                        Bound::Unbounded => true,
                    })
                };
                let within: Vec<_> = want.iter().filter(|(score, _)| is_within(score)).cloned().collect();
                prop_assert_eq!(found(&mut set.within(min, max)), within, "{:?} to {:?}", min, max);
            }
        }
        check_bytes(&set.into_value());
    }

    #[test]
    fn a_list_is_a_row(changes in changes()) {
        let (mut list, mut model) = (List::default(), VecDeque::new());
        for change in changes {
            let content = change.content();
            let end = if change.is_right { End::Right } else { End::Left };
            match (change.is_removal, change.key % 4, change.is_right) {
                (true, 0, _) => {
                    let count = 1 + usize::from(change.key / 20);
                    let mut removed = 0;
                    while removed < count
                        && let Some(at) = match end {
                            End::Left => model.iter().position(|it| *it == content),
                            End::Right => model.iter().rposition(|it| *it == content),
                        }
                    {
                        model.remove(at);
                        removed += 1;
                    }
                    prop_assert_eq!(list.remove(&content, end, count), removed);
                }
                (true, _, false) => prop_assert_eq!(list.pop(end).map(Vec::from), model.pop_front()),
                (true, _, true) => prop_assert_eq!(list.pop(end).map(Vec::from), model.pop_back()),
                (false, _, false) => {
                    list.push(end, &content);
                    model.push_front(content);
                }
                (false, _, true) => {
                    list.push(end, &content);
                    model.push_back(content);
                }
            }
            prop_assert_eq!(list.len(), model.len());
        }
        let elements: Vec<_> = list.range(0..list.len()).map(<[u8]>::to_vec).collect();
        prop_assert_eq!(elements, Vec::from(model));
        check_bytes(&list.into_value());
    }

    /// The numbers of live values differ, and the sum of their bytes is right at any time.
    #[test]
    fn a_table_gives_each_value_a_number(changes in changes()) {
        let (mut values, mut model) = (Values::default(), BTreeMap::<u8, (u32, usize)>::new());
        for change in changes {
            let mut hash = Hash::default();
            hash.put(Field::new(b"f", &change.content()));
            match model.get_mut(&change.key) {
                Some((number, _)) if change.is_removal => {
                    values.free(*number);
                    model.remove(&change.key);
                }
                Some((number, bytes)) => {
                    values.change(*number, |value| *value = hash.clone().into_value());
                    *bytes = hash.bytes();
                }
                None => {
                    let bytes = hash.bytes();
                    let number = values.store(hash.into_value());
                    prop_assert!(model.values().all(|(other, _)| *other != number));
                    model.insert(change.key, (number, bytes));
                }
            }
            let cells = model.len() * values.cell_bytes();
            let bytes: usize = model.values().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(values.bytes(), (bytes + cells) as u64);
        }
    }
}

/// A lock that is a hash with its holder and a count: two allocations less than a table of fields.
#[test]
fn a_hash_with_one_field_takes_little_beside_its_bytes() {
    let (mut values, mut hash) = (Values::default(), Hash::default());
    hash.put(Field::new(b"8743c9c0-0795-4907-87fd-6c719a6b4586:52", b"1"));
    let number = values.store(hash.into_value());
    let (place, name_len, share_of_allocator) = (24, 4, 16);
    let one = place + name_len + 39 + 1 + share_of_allocator;
    assert_eq!(values.bytes(), one);

    let other = Field::new(b"mode", b"read");
    values.change(number, |value| {
        Hash::of_mut(value).expect("a hash").put(other);
    });
    assert!(values.bytes() > one);
    values.change(number, |value| {
        Hash::of_mut(value).expect("a hash").remove(b"mode");
    });
    assert_eq!(values.bytes(), one, "as if it never had another field");
}

fn bounds() -> impl Iterator<Item = Bound<Score>> {
    let scores = [f64::NEG_INFINITY, -1.5, 0.0, 0.5, 2.0, f64::INFINITY];
    let scores = scores.into_iter().filter_map(Score::new);
    scores.flat_map(|score| [Bound::Included(score), Bound::Excluded(score)])
}
