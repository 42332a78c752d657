use super::{found, judge, span};
use crate::check::majority::majority;

#[test]
fn a_majority_holds_the_lock_at_each_moment_of_its_window() {
    let believes = "10 c0 holds l0 until 1000; 5 n0,1 grants a0 until 1005";
    let table = "
        two of five                         | | 10..1000
        three of five                       | 5 n2 grants a0 until 1005 |
        one ends as the belief does         | 5 n2 grants a0 until 1000 |
        one ends sooner                     | 5 n2 grants a0 until 999 | 999..1000
        one is granted as the belief begins | 10 n2 grants a0 until 1010 |
        one is granted later                | 11 n2 grants a0 until 1011 | 10..11
        another takes over                  | 5 n2 grants a0 until 500; 500 n3 grants a0 until 1000 |
        another takes over too late         | 5 n2 grants a0 until 500; 501 n3 grants a0 until 1001 | 500..501
        extended in time                    | 5 n2 grants a0 until 500; 499 n2 extends a0 until 1000 |
        one had granted it to another       | 3 n2 grants a1 until 4; 5 n2 grants a0 until 1005 |
        never started                       | 2000 n2 starts |
        the world ends before               | 5 n2 grants a0 until 60001; 900 c0 extends l0 until 70000; \
                                              899 n0,1 extends a0 until 70001 |";
    judge(believes, table, span, majority);
    let table = "
        shortened                           | 499 n2 extends a0 until 800 | 800..1000
        one lets go                         | 400 n2 frees a0 | 400..1000
        one lets go of another's            | 400 n2 frees a1 |
        one grants it to another            | 400 n2 grants a1 until 2000 | 400..1000
        and another takes over              | 400 n2 grants a1 until 2000; 400 n3 grants a0 until 2000 |
        one grants another key to another   | 400 n2 grants a1 k1 to c1 until 2000 |
        one goes down and stays             | 400 n2 dies |
        one forgets                         | 400 n2 dies; 400 n2 starts | 400..1000
        two of five forget                  | 5 n3,4 grants a0 until 1005; 400 n2 dies; 401 n2 starts; 500 n3 dies; 501 n3 starts |
        in quarantine                       | 400 n2 dies; 500 n2 starts quarantined |
        out of quarantine                   | 400 n2 dies; 500 n2 starts quarantined; 900 n2 serves | 900..1000
        as the belief ends                  | 400 n2 dies; 500 n2 starts quarantined; 1000 n2 serves |
        restored                            | 400 n2 dies; 500 n2 starts; 500 n2 restores a0 until 1100 |
        restored for too short a time       | 400 n2 dies; 500 n2 starts; 500 n2 restores a0 until 900 | 900..1000
        down and up at once, with the lock  | 5 n2 dies; 5 n2 starts; 5 n2 restores a0 until 1100 |";
    judge(
        &format!("{believes}; 5 n2 grants a0 until 1005"),
        table,
        span,
        majority,
    );
}

#[test]
fn it_is_told_which_nodes_were_missing() {
    let events = "10 c0 holds l0 until 1000; 5 n0,1,2 grants a0 until 1005; 300 fault reset all; 400 n2 frees a0";
    let found = found(events, majority);
    let text = "400ms..1s majority: client 0 believed to hold `a` with 2 of 5 nodes behind it
  lock 0 of client 0: called for at 9ms, held 10ms..1s
    attempt 0: node 0 granted 5ms; node 1 granted 5ms; node 2 granted 5ms, freed 400ms
  300ms: reset all";
    assert_eq!(found[0].to_string(), text);
    assert_eq!(
        (&*found[0].nodes, &*found[0].clients),
        (&[2, 3, 4][..], &[0][..])
    );
}
