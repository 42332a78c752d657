//! The behaviours of known scripts: what each does, and that a Lua script does the same.

use proptest::prelude::*;

use super::reference::scripts;
use super::*;

/// Runs a behaviour on a store, and shows the reply and the keys after it.
fn behave(name: &str, store: &mut Store, keys: &[&str], args: &[&str]) -> String {
    let known = crate::script::behaviours::ALL
        .iter()
        .find(|known| known.name == name)
        .unwrap();
    let reply = outcome(&Program::known(known), store, keys, args);
    format!("{reply} | {}", store.show()).trim_end().to_owned()
}

#[test]
fn behaviours_of_one_key_do_what_their_libraries_expect() {
    check_behaviours(
        &["k"],
        "
        RELEASE: t 900 (t) => 1 |
        RELEASE: o 900 (t) => 0 | k=o 900
        RELEASE: - (t) => 0 |
        RELEASE: t 900 () => 0 | k=t 900
        RELEASE_ABSENT_MINUS_ONE: - (t) => -1 |
        RELEASE_ABSENT_MINUS_ONE: o (t) => 0 | k=o
        RELEASE_GRADED: - (t) => -1 |
        RELEASE_GRADED: o (t) => -2 | k=o
        RELEASE_OR_NIL: t (t) => 1 |
        RELEASE_OR_NIL: o (t) => nil | k=o
        RELEASE_OR_ERROR: - (t) => +OK |
        RELEASE_OR_ERROR: t (t) => 1 |
        RELEASE_OR_ERROR: o (t) => -ERR ERROR | k=o
        RELEASE: t (t) => 1 |
        DELETE_ANY: o () => 1 |
        EXTEND: t 900 (t 50) => 1 | k=t 50
        EXTEND: t (t 50) => 1 | k=t 50
        EXTEND: t 900 (t 0) => 1 |
        EXTEND: o 900 (t 50) => 0 | k=o 900
        EXTEND: o 900 (t x) => 0 | k=o 900
        EXTEND: t 900 (t x) => !ERR value is not an integer or out of range @1 | k=t 900
        EXTEND_OR_NIL: t 900 (t 50) => 1 | k=t 50
        EXTEND_SECONDS_INVERTED: t 900 (t 5) => 0 | k=t 5000
        EXTEND_SECONDS_OR_PERSIST: t 900 (t 5) => 1 | k=t 5000
        EXTEND_SECONDS_OR_PERSIST: t 900 (t 0) => 1 | k=t
        EXTEND_SECONDS_WITH_TTL: t (t 5) => 2 | k=t
        EXTEND_SECONDS_WITH_TTL: o 900 (t 5) => 1 | k=o 900
        EXTEND_LATER_OR_ERROR: o 900 (t 5) => -NOT LOCKED | k=o 900
        EXTEND_AT: t 900 (t 1000070) => 1 | k=t 70
        EXTEND_AT_AND_READ: t 900 (t 1000070) => 1 | k=t 70
        EXTEND_BY_SET: t 900 (t 50) => 1 | k=t 50
        EXTEND_BY_SET_OR_TEXT: o 900 (t 50) => 'ERR' | k=o 900
        EXTEND_OR_ACQUIRE: - (t 50) => 1 | k=t 50
        EXTEND_OR_ACQUIRE: o 900 (t 50) => 0 | k=o 900
        EXTEND_OR_CREATE: - (t 50) => 1 | k=t 50
        EXTEND_OR_CREATE: o 900 (t 50) => -1 | k=o 900
        EXTEND_WITH_TTL: t (t 50) => 0 | k=t
        EXTEND_ADDING: t 900 (t 50) => 1 | k=t 950
        EXTEND_ADDING_OR_REPLACING: t 900 (t 50 0) => 1 | k=t 950
        EXTEND_ADDING_OR_REPLACING: t 900 (t 50 1) => 1 | k=t 50
        EXTEND_ADDING_OR_REPLACING: t (t 50 1) => 0 | k=t
        EXTEND_ENOUGH_LEFT: - (t 5 50) => [-1 -2] |
        EXTEND_ENOUGH_LEFT: t 900 (t 901 50) => [0 900] | k=t 900
        EXTEND_ENOUGH_LEFT: t 900 (t 5 50) => [1 900] | k=t 50
        EXTEND_ENOUGH_LEFT: o 900 (t 5 50) => [-1 900] | k=o 900
        ACQUIRE: - (t 50) => +OK | k=t 50
        ACQUIRE: t 900 (t 50) => nil | k=t 900
        ACQUIRE_AND_READ: - (t 50) => +OK | k=t 50
        ACQUIRE_AT_AND_READ: - (t 1000070) => +OK | k=t 70
        FORCE_AND_READ: o 900 (t 50) => +OK | k=t 50
        FORCE_AT_AND_READ: o 900 (t 1000070) => +OK | k=t 70
        ACQUIRE_OR_EXTEND: t 900 (t 50) => +OK | k=t 50
        ACQUIRE_OR_EXTEND: o 900 (t 50) => nil | k=o 900
        ACQUIRE_IF_ALLOWED_OR_EXTEND: - (t 50 no) => nil |
        ACQUIRE_IF_ALLOWED_OR_EXTEND: - (t 50 yes) => +OK | k=t 50
        ACQUIRE_IF_ALLOWED_OR_EXTEND: t 900 (t 50 no) => +OK | k=t 50
        ACQUIRE_OR_ERROR: o 900 (t 50) => -ERR ERROR | k=o 900
        ACQUIRE_OR_NIL: - (t 50) => 1 | k=t 50
        ACQUIRE_OR_NIL: o 900 (t 50) => nil | k=o 900
        ACQUIRE_OPTIONAL_TTL: - (t '') => 1 | k=t
        ACQUIRE_OPTIONAL_TTL: - (t 50) => 1 | k=t 50
        ACQUIRE_OPTIONAL_TTL: t 900 (t 50) => 0 | k=t 900
        ACQUIRE_REENTRANT: t 900 (t 50) => 1 | k=t 900
        ACQUIRE_REENTRANT: o 900 (t 50) => 0 | k=o 900
        ACQUIRE_FREE: t 900 (t 50) => 0 | k=t 900
        ACQUIRE_FREE_SECONDS: - (t 5) => +OK | k=t 5000
        OBTAIN_ONE: tX 900 (tY 1 50) => +OK | k=tY 50
        OBTAIN_ONE: o 900 (tY 1 50) => nil | k=o 900
        TTL_OR_MINUS_THREE: o 900 (t) => -3 | k=o 900
        TTL_OR_ZERO: t (t) => 0 | k=t
        TTL_OR_ZERO: t 900 (t) => 900 | k=t 900
        TTL_OR_ERROR: - (t) => -ERR ERROR |
        TTL_OR_ERROR: t 900 (t) => 1 | k=t 900
        TOKEN_AND_TTL: - () => [nil -2] |
        TOKEN_AND_TTL_OR_NIL: - () => nil |
        TOKEN_AND_TTL_OR_NIL: t 900 () => ['t' 900] | k=t 900
        TIME_PROBE: - () => 1 | k=1 1
        ",
    );
}

#[test]
fn behaviours_of_several_keys_take_all_or_none() {
    check_behaviours(
        &["k", "k2"],
        "
        ACQUIRE_ALL: - (t 50) => 2 | k=t 50, k2=t 50
        ACQUIRE_ALL: o (t 50) => 0 | k=o
        EXTEND_ALL: t (t 50) => 0 | k=t
        RELEASE_ALL: t (t) => 1 |
        ACQUIRE_EACH: - (a b 50) => [1 2] | k=a 50, k2=b 50
        ACQUIRE_EACH: o (a b 50) => [0 1 'k'] | k=o
        OBTAIN_ALL: - (t 1 50) => +OK | k=t 50, k2=t 50
        OBTAIN_ALL: o (t 1 50) => nil | k=o
        RELEASE_ALL_OR_NONE: t (t) => nil | k=t
        EXTEND_ALL_OR_NONE: t (t 50) => nil | k=t
        SHORTEST_TTL: t (t) => nil | k=t
        FIRST_FREE: o (slot 5 t) => 'slot2' | k=o, k2=t 5000
        ",
    );
}

/// Checks rows `name: what k holds and its TTL (arguments) => reply | keys`. Nothing is `-`, and an
/// empty argument is `''`.
fn check_behaviours(keys: &[&str], table: &str) {
    for (row, want) in rows(table) {
        let (call, args) = row.split_once(" (").unwrap();
        let (name, held) = call.split_once(": ").unwrap();
        let (token, ttl) = held.split_once(' ').unwrap_or((held, ""));
        let token = Some(token).filter(|token| *token != "-");
        let args = args.trim_end_matches(')').split_ascii_whitespace();
        let args: Vec<_> = args.map(|arg| arg.trim_matches('\'')).collect();
        let mut store = Store::with(token, ttl.parse().ok());
        assert_eq!(behave(name, &mut store, keys, &args), want, "{row}");
    }
}

#[test]
fn an_expired_key_is_absent() {
    let mut store = Store::with(Some("t"), Some(900));
    store.now_ms += 900;
    assert_eq!(behave("RELEASE", &mut store, &["k"], &["t"]), "0 |");
    let acquired = behave("ACQUIRE", &mut store, &["k"], &["u", "5"]);
    assert_eq!(acquired, "+OK | k=u 5");
}

#[test]
fn every_behaviour_has_a_reference() {
    let names: Vec<_> = crate::script::behaviours::ALL
        .iter()
        .map(|known| known.name)
        .collect();
    let mut references: Vec<_> = scripts().into_iter().map(|(name, _)| name).collect();
    references.dedup();
    assert_eq!(names, references);
}

/// A key's token and TTL.
fn key() -> impl Strategy<Value = Option<(&'static str, Option<i64>)>> {
    let token = prop::sample::select(&["t", "o", "tX", "tY", "1", ""][..]);
    prop::option::weighted(0.8, (token, prop::option::weighted(0.8, 1..2000_i64)))
}

fn word() -> impl Strategy<Value = &'static str> {
    let words = "t|o|tY|1||0|2|50|-1|1500|1000070|yes|no|x|1.5|99999999999999999999";
    prop::sample::select(words.split('|').collect::<Vec<_>>())
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
        script in prop::sample::select(scripts()),
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
