//! Random commands, time steps and sweeps on the engine and on a model whose code is obvious.
//!
//! After each step both have replied the same and show the same keys with the same values; a lock whose deadline has
//! passed is therefore never seen again, whether it was swept or not.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::node::{NOON_MS, Node};

#[derive(Clone, Debug)]
enum Step {
    AdvanceNanos(u64),
    Sweep(usize),
    Run(Op),
}

#[derive(Clone, Debug)]
enum Op {
    Set(Key, Value, When, Life, Get),
    GetEx(Key, Life),
    GetDel(Key),
    GetSet(Key, Value),
    DelEx(Key, When),
    DelIfEq(Key, Value),
    Del(Vec<Key>),
    Exists(Vec<Key>),
    Expire(Key, Life, &'static str),
    Persist(Key),
    Ttl(&'static str, Key),
    IncrBy(Key, i64),
    MSet(Vec<(Key, Value)>),
    MSetNx(Vec<(Key, Value)>),
    MSetEx(Vec<(Key, Value)>, When, Life),
    FlushDb,
    Select(u8),
}

/// Few keys, so that they meet.
type Key = u8;
type Value = String;
/// Whether SET replies with the value before it.
type Get = bool;

#[derive(Clone, Debug)]
enum When {
    Always,
    Missing,
    Present,
    Is(Value),
    IsNot(Value),
}

#[derive(Clone, Debug)]
enum Life {
    Unspecified,
    Keep,
    Persist,
    Millis(i64),
    /// Milliseconds relative to the wall clock at the start.
    At(i64),
}

#[derive(Default)]
struct Model {
    now_ns: i128,
    db: u8,
    locks: BTreeMap<(u8, Key), (Value, Option<i128>)>,
}

impl Model {
    fn find(&mut self, key: Key) -> Option<(Value, Option<i128>)> {
        let now = self.now_ns;
        self.locks
            .retain(|_, (_, deadline)| deadline.is_none_or(|deadline| now <= deadline));
        self.locks.get(&(self.db, key)).cloned()
    }

    fn put(&mut self, key: Key, value: &str, deadline: Option<i128>) {
        self.locks
            .insert((self.db, key), (value.to_owned(), deadline));
        self.find(key);
    }

    fn remove(&mut self, key: Key) -> bool {
        let was_there = self.find(key).is_some();
        self.locks.remove(&(self.db, key));
        was_there
    }

    fn deadline(&self, life: &Life, old: Option<i128>) -> Option<i128> {
        match *life {
            Life::Unspecified | Life::Persist => None,
            Life::Keep => old,
            Life::Millis(ms) => Some(self.now_ns + i128::from(ms) * MILLI),
            // Redis ends a key at once when its timestamp is the present millisecond.
            Life::At(ms) if i128::from(ms) <= (self.now_ns - START_NS).div_euclid(MILLI) => {
                Some(PAST)
            }
            Life::At(ms) => Some(START_NS + i128::from(ms) * MILLI),
        }
    }

    fn allows(&mut self, key: Key, when: &When) -> bool {
        let value = self.find(key).map(|(value, _)| value);
        match when {
            When::Always => true,
            When::Missing => value.is_none(),
            When::Present => value.is_some(),
            When::Is(wanted) => value.is_some_and(|value| value == *wanted),
            When::IsNot(unwanted) => value.is_none_or(|value| value != *unwanted),
        }
    }

    fn apply(&mut self, op: &Op) -> String {
        match op {
            Op::Set(key, value, when, life, get) => {
                let old = self.find(*key);
                let is_allowed = self.allows(*key, when);
                if is_allowed {
                    let deadline =
                        self.deadline(life, old.clone().and_then(|(_, deadline)| deadline));
                    self.put(*key, value, deadline);
                }
                match (get, is_allowed) {
                    (true, _) => bulk(old.map(|(value, _)| value)),
                    (false, true) => "+OK".to_owned(),
                    (false, false) => bulk(None),
                }
            }
            Op::GetEx(key, life) => {
                let Some((value, old)) = self.find(*key) else {
                    return bulk(None);
                };
                let deadline = match life {
                    Life::Unspecified => old,
                    life => self.deadline(life, old),
                };
                self.put(*key, &value, deadline);
                bulk(Some(value))
            }
            Op::GetDel(key) => {
                let value = self.find(*key).map(|(value, _)| value);
                self.remove(*key);
                bulk(value)
            }
            Op::GetSet(key, value) => {
                let old = self.find(*key).map(|(value, _)| value);
                self.put(*key, value, None);
                bulk(old)
            }
            Op::DelEx(key, when) => integer(i64::from(
                self.find(*key).is_some() && self.allows(*key, when) && self.remove(*key),
            )),
            Op::DelIfEq(key, value) => integer(i64::from(
                self.allows(*key, &When::Is(value.clone())) && self.remove(*key),
            )),
            Op::Del(keys) => integer(keys.iter().map(|&key| i64::from(self.remove(key))).sum()),
            Op::Exists(keys) => {
                let found = keys.iter().filter(|&&key| self.find(key).is_some());
                integer(i64::try_from(found.count()).expect("a few keys"))
            }
            Op::Expire(key, life, option) => {
                let Some((value, old)) = self.find(*key) else {
                    return integer(0);
                };
                let new = self.deadline(life, None).unwrap_or(i128::MAX);
                // Timestamps compare as the milliseconds that PEXPIRETIME shows.
                let shown = |deadline: i128| match life {
                    Life::At(_) => (deadline - START_NS + MILLI / 2).div_euclid(MILLI),
                    _ => deadline,
                };
                let is_later = |old| shown(new) > shown(old);
                let is_earlier = |old| shown(new) < shown(old);
                let is_allowed = match *option {
                    "NX" => old.is_none(),
                    "XX" => old.is_some(),
                    "GT" => old.is_some_and(is_later),
                    "LT" => old.is_none_or(is_earlier),
                    _ => true,
                };
                if is_allowed {
                    let is_past = matches!(life, Life::Millis(..=0));
                    self.put(*key, &value, Some(if is_past { PAST } else { new }));
                }
                integer(i64::from(is_allowed))
            }
            Op::Persist(key) => {
                let Some((value, Some(_))) = self.find(*key) else {
                    return integer(0);
                };
                self.put(*key, &value, None);
                integer(1)
            }
            Op::Ttl(name, key) => integer(match self.find(*key) {
                None => -2,
                Some((_, None)) => -1,
                Some((_, Some(deadline))) => {
                    let left_ms = (deadline - self.now_ns + MILLI - 1).div_euclid(MILLI);
                    let unix_ms =
                        i128::from(NOON_MS) + (deadline - START_NS + MILLI / 2).div_euclid(MILLI);
                    let shown = match *name {
                        "PTTL" => left_ms,
                        "TTL" => (left_ms + 500) / 1000,
                        "PEXPIRETIME" => unix_ms,
                        _ => (unix_ms + 500) / 1000,
                    };
                    i64::try_from(shown).expect("a TTL of 64 bits")
                }
            }),
            Op::IncrBy(key, by) => {
                let (value, deadline) = self.find(*key).unwrap_or(("0".to_owned(), None));
                let Ok(old) = value.parse::<i64>() else {
                    return "-ERR value is not an integer or out of range".to_owned();
                };
                let Some(new) = old.checked_add(*by) else {
                    return "-ERR increment or decrement would overflow".to_owned();
                };
                self.put(*key, &new.to_string(), deadline);
                integer(new)
            }
            Op::MSet(pairs) => {
                let pairs = pairs.iter();
                pairs.for_each(|(key, value)| self.put(*key, value, None));
                "+OK".to_owned()
            }
            Op::MSetNx(pairs) => {
                self.apply(&Op::MSetEx(pairs.clone(), When::Missing, Life::Unspecified))
            }
            Op::MSetEx(pairs, when, life) => {
                let is_allowed = pairs.iter().all(|(key, _)| self.allows(*key, when));
                for (key, value) in pairs.iter().filter(|_| is_allowed) {
                    let old = self.find(*key).and_then(|(_, deadline)| deadline);
                    let deadline = self.deadline(life, old);
                    self.put(*key, value, deadline);
                }
                integer(i64::from(is_allowed))
            }
            Op::FlushDb => {
                let db = self.db;
                self.locks.retain(|(of, _), _| *of != db);
                "+OK".to_owned()
            }
            Op::Select(db) => {
                self.db = *db;
                "+OK".to_owned()
            }
        }
    }

    /// Keys and values of the current database.
    fn view(&mut self) -> Vec<(String, String)> {
        self.find(0);
        let of_db = self.locks.iter().filter(|((db, _), _)| *db == self.db);
        let mut view: Vec<_> = of_db
            .map(|((_, key), (value, _))| (name(*key), value.clone()))
            .collect();
        view.sort();
        view
    }
}

impl Op {
    fn words(&self) -> String {
        match self {
            Self::Set(key, value, when, life, get) => {
                let get = if *get { " GET" } else { "" };
                let (life, when) = (life.words(), when.words());
                format!("SET {} {value}{get}{life}{when}", name(*key))
            }
            Self::GetEx(key, life) => format!("GETEX {}{}", name(*key), life.words()),
            Self::GetDel(key) => format!("GETDEL {}", name(*key)),
            Self::GetSet(key, value) => format!("GETSET {} {value}", name(*key)),
            Self::DelEx(key, when) => format!("DELEX {}{}", name(*key), when.words()),
            Self::DelIfEq(key, value) => format!("DELIFEQ {} {value}", name(*key)),
            Self::Del(list) => format!("DEL{}", keys(list)),
            Self::Exists(list) => format!("EXISTS{}", keys(list)),
            Self::Expire(key, Life::At(ms), option) => {
                format!("PEXPIREAT {} {} {option}", name(*key), unix_ms(*ms))
            }
            Self::Expire(key, Life::Millis(ms), option) => {
                format!("PEXPIRE {} {ms} {option}", name(*key))
            }
            Self::Expire(..) => unreachable!("EXPIRE has a number"),
            Self::Persist(key) => format!("PERSIST {}", name(*key)),
            Self::Ttl(command, key) => format!("{command} {}", name(*key)),
            Self::IncrBy(key, by) => format!("INCRBY {} {by}", name(*key)),
            Self::MSet(list) => format!("MSET{}", words(list)),
            Self::MSetNx(list) => format!("MSETNX{}", words(list)),
            Self::MSetEx(list, when, life) => {
                let (pairs, when, life) = (words(list), when.words(), life.words());
                format!("MSETEX {}{pairs}{when}{life}", list.len())
            }
            Self::FlushDb => "FLUSHDB".to_owned(),
            Self::Select(db) => format!("SELECT {db}"),
        }
    }
}

impl When {
    fn words(&self) -> String {
        match self {
            Self::Always => String::new(),
            Self::Missing => " NX".to_owned(),
            Self::Present => " XX".to_owned(),
            Self::Is(value) => format!(" IFEQ {value}"),
            Self::IsNot(value) => format!(" IFNE {value}"),
        }
    }
}

impl Life {
    fn words(&self) -> String {
        match self {
            Self::Unspecified => String::new(),
            Self::Keep => " KEEPTTL".to_owned(),
            Self::Persist => " PERSIST".to_owned(),
            Self::Millis(ms) => format!(" PX {ms}"),
            Self::At(ms) => format!(" PXAT {}", unix_ms(*ms)),
        }
    }
}

fn name(key: Key) -> String {
    format!("key:{key}")
}

fn keys(list: &[Key]) -> String {
    list.iter().map(|&key| format!(" {}", name(key))).collect()
}

fn words(pairs: &[(Key, Value)]) -> String {
    let pair = |(key, value): &(Key, Value)| format!(" {} {value}", name(*key));
    pairs.iter().map(pair).collect()
}

fn unix_ms(ms: i64) -> i64 {
    i64::try_from(NOON_MS).expect("a date") + ms
}

fn bulk(value: Option<String>) -> String {
    match value {
        Some(value) => format!("${} {value}", value.len()),
        None => "$-1".to_owned(),
    }
}

fn integer(number: i64) -> String {
    format!(":{number}")
}

const MILLI: i128 = 1_000_000;

/// Before every instant of a test.
const PAST: i128 = -1_000_000_000 * MILLI;

/// What `Node` starts at.
const START_NS: i128 = 1_000 * MILLI;

fn key() -> impl Strategy<Value = Key> {
    0..6_u8
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("7".to_owned()),
        Just(i64::MAX.to_string()),
        // Of several size classes of the slab, and beyond them.
        (1..2_000_usize).prop_map(|len| "x".repeat(len)),
    ]
}

fn pairs() -> impl Strategy<Value = Vec<(Key, Value)>> {
    prop::collection::vec((key(), value()), 1..4)
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        Just(When::Always),
        Just(When::Missing),
        Just(When::Present),
        value().prop_map(When::Is),
        value().prop_map(When::IsNot),
    ]
}

fn times() -> impl Strategy<Value = Life> {
    prop_oneof![
        (1..40_i64).prop_map(Life::Millis),
        (-20..80_i64).prop_map(Life::At)
    ]
}

fn life() -> impl Strategy<Value = Life> {
    prop_oneof![1 => Just(Life::Unspecified), 1 => Just(Life::Keep), 3 => times()]
}

fn op() -> impl Strategy<Value = Op> {
    let set = (key(), value(), when(), life(), any::<bool>());
    let new_life = prop_oneof![Just(Life::Unspecified), Just(Life::Persist), times()];
    let expire_times = prop_oneof![
        (-5..40_i64).prop_map(Life::Millis),
        (-20..80_i64).prop_map(Life::At)
    ];
    let option = prop::sample::select(vec!["", "NX", "XX", "GT", "LT"]);
    let ttl = (
        prop::sample::select(vec!["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]),
        key(),
    );
    let group = prop_oneof![Just(When::Always), Just(When::Missing), Just(When::Present)];
    let delex = prop_oneof![
        value().prop_map(When::Is),
        value().prop_map(When::IsNot),
        Just(When::Always)
    ];
    prop_oneof![
        8 => set.prop_map(|(key, value, when, life, get)| Op::Set(key, value, when, life, get)),
        3 => (key(), new_life).prop_map(|(key, life)| Op::GetEx(key, life)),
        2 => key().prop_map(Op::GetDel),
        1 => (key(), value()).prop_map(|(key, value)| Op::GetSet(key, value)),
        3 => (key(), delex).prop_map(|(key, when)| Op::DelEx(key, when)),
        2 => (key(), value()).prop_map(|(key, value)| Op::DelIfEq(key, value)),
        2 => prop::collection::vec(key(), 1..4).prop_map(Op::Del),
        2 => prop::collection::vec(key(), 1..4).prop_map(Op::Exists),
        5 => (key(), expire_times, option).prop_map(|(key, life, option)| Op::Expire(key, life, option)),
        1 => key().prop_map(Op::Persist),
        3 => ttl.prop_map(|(name, key)| Op::Ttl(name, key)),
        2 => (key(), prop_oneof![Just(1), -9..9_i64, Just(i64::MAX)]).prop_map(|(key, by)| Op::IncrBy(key, by)),
        1 => pairs().prop_map(Op::MSet),
        1 => pairs().prop_map(Op::MSetNx),
        3 => (pairs(), group, life()).prop_map(|(pairs, when, life)| Op::MSetEx(pairs, when, life)),
        1 => Just(Op::FlushDb),
        2 => prop_oneof![Just(0), Just(0), Just(3)].prop_map(Op::Select),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => op().prop_map(Step::Run),
        2 => prop_oneof![1..3_000_000_u64, (1..30_u64).prop_map(|ms| ms * 1_000_000)].prop_map(Step::AdvanceNanos),
        1 => (64..1_000_usize).prop_map(Step::Sweep),
    ]
}

/// Keys and values of the current database, as the engine shows them to a client.
fn view(node: &mut Node) -> Vec<(String, String)> {
    let reply = node.run("KEYS *");
    let words = reply.split(' ');
    let mut keys: Vec<_> = words.filter(|word| word.starts_with("key:")).collect();
    keys.sort_unstable();
    let mut get = |key: &str| {
        let reply = node.run(&format!("GET {key}"));
        let (_, value) = reply.split_once(' ').unwrap_or_default();
        (key.to_owned(), value.to_owned())
    };
    keys.into_iter().map(&mut get).collect()
}

fn run(shards: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut node = Node::with_shards(shards);
    let mut model = Model {
        now_ns: START_NS,
        ..Model::default()
    };
    for step in steps {
        match step {
            Step::AdvanceNanos(nanos) => {
                node.advance_nanos(*nanos);
                model.now_ns += i128::from(*nanos);
            }
            Step::Sweep(budget) => {
                node.engine.sweep(node.moment.time, *budget);
            }
            Step::Run(op) => {
                let words = op.words();
                prop_assert_eq!(node.run(&words), model.apply(op), "reply to {}", words);
            }
        }
        prop_assert_eq!(view(&mut node), model.view(), "keys after {:?}", step);
    }
    let left = model.locks.values().filter_map(|(_, deadline)| *deadline);
    let left = left.min();
    let next = node.engine.next_deadline();
    let next = next.map(|time| i128::from(time.as_nanos()));
    prop_assert!(
        left.is_none_or(|left| next.is_some_and(|next| next <= left)),
        "{next:?} is after {left:?}"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_shard_does_what_the_model_does(steps in prop::collection::vec(step(), 1..80)) {
        run(1, &steps)?;
    }

    #[test]
    fn eight_shards_do_what_the_model_does(steps in prop::collection::vec(step(), 1..80)) {
        run(8, &steps)?;
    }
}
