//! The behaviours of known scripts: what each does, and that a Lua script does the same.

use proptest::prelude::*;

use super::reference::SCRIPTS;
use super::*;

/// Runs a behaviour on a store, and shows the reply and the keys after it.
fn behave(name: &str, store: &mut Store, keys: &[&str], args: &[&str]) -> String {
    let known = crate::script::behaviours::ALL
        .iter()
        .find(|known| known.name == name)
        .unwrap();
    let reply = outcome(&Program::known(known), store, keys, args);
    format!("{reply} | {}", store.show())
}

#[test]
fn behaviours_of_one_key_do_what_their_libraries_expect() {
    const OWN: Option<&str> = Some("t");
    const OTHER: Option<&str> = Some("o");
    const TTL: Option<i64> = Some(900);
    type Row<'a> = (
        &'a str,
        Option<&'a str>,
        Option<i64>,
        &'a [&'a str],
        &'a str,
    );
    let rows: &[Row<'_>] = &[
        ("RELEASE", OWN, TTL, &["t"], "1 | "),
        ("RELEASE", OTHER, TTL, &["t"], "0 | k=o 900"),
        ("RELEASE", None, None, &["t"], "0 | "),
        ("RELEASE", OWN, TTL, &[], "0 | k=t 900"),
        ("RELEASE_ABSENT_MINUS_ONE", None, None, &["t"], "-1 | "),
        ("RELEASE_ABSENT_MINUS_ONE", OTHER, None, &["t"], "0 | k=o"),
        ("RELEASE_GRADED", None, None, &["t"], "-1 | "),
        ("RELEASE_GRADED", OTHER, None, &["t"], "-2 | k=o"),
        ("RELEASE_OR_NIL", OWN, None, &["t"], "1 | "),
        ("RELEASE_OR_NIL", OTHER, None, &["t"], "nil | k=o"),
        ("RELEASE_OR_ERROR", None, None, &["t"], "+OK | "),
        ("RELEASE_OR_ERROR", OWN, None, &["t"], "1 | "),
        ("RELEASE_OR_ERROR", OTHER, None, &["t"], "-ERR ERROR | k=o"),
        ("RELEASE", OWN, None, &["t"], "1 | "),
        ("DELETE_ANY", OTHER, None, &[], "1 | "),
        ("EXTEND", OWN, TTL, &["t", "50"], "1 | k=t 50"),
        ("EXTEND", OWN, None, &["t", "50"], "1 | k=t 50"),
        ("EXTEND", OWN, TTL, &["t", "0"], "1 | "),
        ("EXTEND", OTHER, TTL, &["t", "50"], "0 | k=o 900"),
        ("EXTEND", OTHER, TTL, &["t", "x"], "0 | k=o 900"),
        (
            "EXTEND",
            OWN,
            TTL,
            &["t", "x"],
            "!ERR value is not an integer or out of range @1 | k=t 900",
        ),
        ("EXTEND_OR_NIL", OWN, TTL, &["t", "50"], "1 | k=t 50"),
        (
            "EXTEND_SECONDS_INVERTED",
            OWN,
            TTL,
            &["t", "5"],
            "0 | k=t 5000",
        ),
        (
            "EXTEND_SECONDS_OR_PERSIST",
            OWN,
            TTL,
            &["t", "5"],
            "1 | k=t 5000",
        ),
        (
            "EXTEND_SECONDS_OR_PERSIST",
            OWN,
            TTL,
            &["t", "0"],
            "1 | k=t",
        ),
        ("EXTEND_SECONDS_WITH_TTL", OWN, None, &["t", "5"], "2 | k=t"),
        (
            "EXTEND_SECONDS_WITH_TTL",
            OTHER,
            TTL,
            &["t", "5"],
            "1 | k=o 900",
        ),
        (
            "EXTEND_LATER_OR_ERROR",
            OTHER,
            TTL,
            &["t", "5"],
            "-NOT LOCKED | k=o 900",
        ),
        ("EXTEND_AT", OWN, TTL, &["t", "1000070"], "1 | k=t 70"),
        (
            "EXTEND_AT_AND_READ",
            OWN,
            TTL,
            &["t", "1000070"],
            "1 | k=t 70",
        ),
        ("EXTEND_BY_SET", OWN, TTL, &["t", "50"], "1 | k=t 50"),
        (
            "EXTEND_BY_SET_OR_TEXT",
            OTHER,
            TTL,
            &["t", "50"],
            "'ERR' | k=o 900",
        ),
        ("EXTEND_OR_ACQUIRE", None, None, &["t", "50"], "1 | k=t 50"),
        ("EXTEND_OR_ACQUIRE", OTHER, TTL, &["t", "50"], "0 | k=o 900"),
        ("EXTEND_OR_CREATE", None, None, &["t", "50"], "1 | k=t 50"),
        ("EXTEND_OR_CREATE", OTHER, TTL, &["t", "50"], "-1 | k=o 900"),
        ("EXTEND_WITH_TTL", OWN, None, &["t", "50"], "0 | k=t"),
        ("EXTEND_ADDING", OWN, TTL, &["t", "50"], "1 | k=t 950"),
        (
            "EXTEND_ADDING_OR_REPLACING",
            OWN,
            TTL,
            &["t", "50", "0"],
            "1 | k=t 950",
        ),
        (
            "EXTEND_ADDING_OR_REPLACING",
            OWN,
            TTL,
            &["t", "50", "1"],
            "1 | k=t 50",
        ),
        (
            "EXTEND_ADDING_OR_REPLACING",
            OWN,
            None,
            &["t", "50", "1"],
            "0 | k=t",
        ),
        (
            "EXTEND_ENOUGH_LEFT",
            None,
            None,
            &["t", "5", "50"],
            "[-1 -2] | ",
        ),
        (
            "EXTEND_ENOUGH_LEFT",
            OWN,
            TTL,
            &["t", "901", "50"],
            "[0 900] | k=t 900",
        ),
        (
            "EXTEND_ENOUGH_LEFT",
            OWN,
            TTL,
            &["t", "5", "50"],
            "[1 900] | k=t 50",
        ),
        (
            "EXTEND_ENOUGH_LEFT",
            OTHER,
            TTL,
            &["t", "5", "50"],
            "[-1 900] | k=o 900",
        ),
        ("ACQUIRE", None, None, &["t", "50"], "+OK | k=t 50"),
        ("ACQUIRE", OWN, TTL, &["t", "50"], "nil | k=t 900"),
        ("ACQUIRE_AND_READ", None, None, &["t", "50"], "+OK | k=t 50"),
        (
            "ACQUIRE_AT_AND_READ",
            None,
            None,
            &["t", "1000070"],
            "+OK | k=t 70",
        ),
        ("FORCE_AND_READ", OTHER, TTL, &["t", "50"], "+OK | k=t 50"),
        (
            "FORCE_AT_AND_READ",
            OTHER,
            TTL,
            &["t", "1000070"],
            "+OK | k=t 70",
        ),
        ("ACQUIRE_OR_EXTEND", OWN, TTL, &["t", "50"], "+OK | k=t 50"),
        (
            "ACQUIRE_OR_EXTEND",
            OTHER,
            TTL,
            &["t", "50"],
            "nil | k=o 900",
        ),
        (
            "ACQUIRE_IF_ALLOWED_OR_EXTEND",
            None,
            None,
            &["t", "50", "no"],
            "nil | ",
        ),
        (
            "ACQUIRE_IF_ALLOWED_OR_EXTEND",
            None,
            None,
            &["t", "50", "yes"],
            "+OK | k=t 50",
        ),
        (
            "ACQUIRE_IF_ALLOWED_OR_EXTEND",
            OWN,
            TTL,
            &["t", "50", "no"],
            "+OK | k=t 50",
        ),
        (
            "ACQUIRE_OR_ERROR",
            OTHER,
            TTL,
            &["t", "50"],
            "-ERR ERROR | k=o 900",
        ),
        ("ACQUIRE_OR_NIL", None, None, &["t", "50"], "1 | k=t 50"),
        ("ACQUIRE_OR_NIL", OTHER, TTL, &["t", "50"], "nil | k=o 900"),
        ("ACQUIRE_OPTIONAL_TTL", None, None, &["t", ""], "1 | k=t"),
        (
            "ACQUIRE_OPTIONAL_TTL",
            None,
            None,
            &["t", "50"],
            "1 | k=t 50",
        ),
        (
            "ACQUIRE_OPTIONAL_TTL",
            OWN,
            TTL,
            &["t", "50"],
            "0 | k=t 900",
        ),
        ("ACQUIRE_REENTRANT", OWN, TTL, &["t", "50"], "1 | k=t 900"),
        ("ACQUIRE_REENTRANT", OTHER, TTL, &["t", "50"], "0 | k=o 900"),
        ("ACQUIRE_FREE", OWN, TTL, &["t", "50"], "0 | k=t 900"),
        (
            "ACQUIRE_FREE_SECONDS",
            None,
            None,
            &["t", "5"],
            "+OK | k=t 5000",
        ),
        (
            "OBTAIN_ONE",
            Some("tX"),
            TTL,
            &["tY", "1", "50"],
            "+OK | k=tY 50",
        ),
        (
            "OBTAIN_ONE",
            OTHER,
            TTL,
            &["tY", "1", "50"],
            "nil | k=o 900",
        ),
        ("TTL_OR_MINUS_THREE", OTHER, TTL, &["t"], "-3 | k=o 900"),
        ("TTL_OR_ZERO", OWN, None, &["t"], "0 | k=t"),
        ("TTL_OR_ZERO", OWN, TTL, &["t"], "900 | k=t 900"),
        ("TTL_OR_ERROR", None, None, &["t"], "-ERR ERROR | "),
        ("TTL_OR_ERROR", OWN, TTL, &["t"], "1 | k=t 900"),
        ("TOKEN_AND_TTL", None, None, &[], "[nil -2] | "),
        ("TOKEN_AND_TTL_OR_NIL", None, None, &[], "nil | "),
        ("TOKEN_AND_TTL_OR_NIL", OWN, TTL, &[], "['t' 900] | k=t 900"),
        ("TIME_PROBE", None, None, &[], "1 | k=1 1"),
    ];
    for (name, value, ttl, args, want) in rows {
        assert_eq!(
            behave(name, &mut Store::with(*value, *ttl), &["k"], args),
            *want,
            "{name} {value:?} {args:?}"
        );
    }
}

#[test]
fn behaviours_of_several_keys_take_all_or_none() {
    type Row<'a> = (&'a str, Option<&'a str>, &'a [&'a str], &'a str);
    let rows: &[Row<'_>] = &[
        ("ACQUIRE_ALL", None, &["t", "50"], "2 | k=t 50, k2=t 50"),
        ("ACQUIRE_ALL", Some("o"), &["t", "50"], "0 | k=o"),
        ("EXTEND_ALL", Some("t"), &["t", "50"], "0 | k=t"),
        ("RELEASE_ALL", Some("t"), &["t"], "1 | "),
        (
            "ACQUIRE_EACH",
            None,
            &["a", "b", "50"],
            "[1 2] | k=a 50, k2=b 50",
        ),
        (
            "ACQUIRE_EACH",
            Some("o"),
            &["a", "b", "50"],
            "[0 1 'k'] | k=o",
        ),
        (
            "OBTAIN_ALL",
            None,
            &["t", "1", "50"],
            "+OK | k=t 50, k2=t 50",
        ),
        ("OBTAIN_ALL", Some("o"), &["t", "1", "50"], "nil | k=o"),
        ("RELEASE_ALL_OR_NONE", Some("t"), &["t"], "nil | k=t"),
        ("EXTEND_ALL_OR_NONE", Some("t"), &["t", "50"], "nil | k=t"),
        ("SHORTEST_TTL", Some("t"), &["t"], "nil | k=t"),
        (
            "FIRST_FREE",
            Some("o"),
            &["slot", "5", "t"],
            "'slot2' | k=o, k2=t 5000",
        ),
    ];
    for (name, value, args, want) in rows {
        let mut store = Store::with(*value, None);
        let shown = behave(name, &mut store, &["k", "k2"], args);
        assert_eq!(shown, *want, "{name}");
    }
}

#[test]
fn an_expired_key_is_absent() {
    let mut store = Store::with(Some("t"), Some(900));
    store.now_ms += 900;
    assert_eq!(behave("RELEASE", &mut store, &["k"], &["t"]), "0 | ");
    let acquired = behave("ACQUIRE", &mut store, &["k"], &["u", "5"]);
    assert_eq!(acquired, "+OK | k=u 5");
}

#[test]
fn every_behaviour_has_a_reference() {
    let names: Vec<_> = crate::script::behaviours::ALL
        .iter()
        .map(|known| known.name)
        .collect();
    let mut references: Vec<_> = SCRIPTS.iter().map(|(name, _)| *name).collect();
    references.dedup();
    assert_eq!(names, references);
}

/// A key's token and TTL.
fn key() -> impl Strategy<Value = Option<(&'static str, Option<i64>)>> {
    let token = prop::sample::select(&["t", "o", "tX", "tY", "1", ""][..]);
    prop::option::weighted(0.8, (token, prop::option::weighted(0.8, 1..2000_i64)))
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "t",
            "o",
            "tY",
            "1",
            "",
            "0",
            "2",
            "50",
            "-1",
            "1500",
            "1000070",
            "yes",
            "no",
            "x",
            "1.5",
            "99999999999999999999",
        ][..],
    )
}

/// The reply without the place of an error, which is different: the native one has no lines.
fn without_place(reply: &str) -> String {
    let reply = reply.split(" @").next().unwrap_or_default();
    match reply.split_once("user_script:") {
        Some((before, after)) => {
            let what = after.split_once(": ").map_or(after, |(_, what)| what);
            // Which variable it was is the script's own business.
            format!("{before}{}", what.split(" field ").next().unwrap_or(what))
        }
        None => reply.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_native_behaviour_does_what_the_script_does(
        script in prop::sample::select(SCRIPTS),
        held in prop::collection::vec(key(), 3),
        keys in 0..=3_usize,
        args in prop::collection::vec(word(), 1..=4),
    ) {
        let (name, source) = script;
        let names = ["k", "k2", "50"];
        let store = || {
            let mut store = Store::with(None, None);
            for (name, held) in names.iter().zip(&held) {
                if let Some((token, ttl)) = held {
                    let deadline = ttl.map(|ttl| store.now_ms + ttl);
                    store.keys.insert(name.as_bytes().to_vec(), (token.as_bytes().to_vec(), deadline));
                }
            }
            store
        };
        let keys = &names[..keys];
        let (mut native, mut scripted) = (store(), store());
        let known = crate::script::behaviours::ALL.iter().find(|it| it.name == name).unwrap();
        // In Lua, also when it would be recognised.
        let how = How::Lua(MACHINE.compile(source.as_bytes()).unwrap());
        let program = Program { flags: Flags::default(), how };
        let have = outcome(&Program::known(known), &mut native, keys, &args);
        let want = outcome(&program, &mut scripted, keys, &args);
        prop_assert_eq!(without_place(&have), without_place(&want), "{} {:?}", name, args);
        prop_assert_eq!(native.show(), scripted.show(), "{}", name);
    }
}
