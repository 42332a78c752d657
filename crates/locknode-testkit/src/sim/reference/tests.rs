use std::time::Duration;

use super::*;

const MS: u64 = 1_000_000;

/// A model of a node with a longest TTL of ten seconds, and a connection to it.
struct Bench {
    reference: Reference,
    manner: Manner,
    now: u64,
    is_troubled: bool,
}

impl Bench {
    fn new(guard: GuardMode) -> Self {
        Self {
            reference: Reference::new(guard, Duration::from_secs(10), 100),
            manner: Manner::default(),
            now: 5 * MS,
            is_troubled: false,
        }
    }

    fn judge(&mut self, request: &str, reply: &str) -> Judged {
        let at = Condition {
            now: self.now,
            is_quarantined: false,
            is_troubled: self.is_troubled,
            has_failed: false,
        };
        let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let mut judged = Judged::default();
        let reply = reply.as_bytes();
        self.reference
            .judge(at, &mut self.manner, &args, reply, &mut judged);
        judged
    }

    /// The reply is the one that a node has to give, and any other is not.
    #[track_caller]
    fn right(&mut self, request: &str, reply: &str) -> Judged {
        let judged = self.judge(request, reply);
        assert_eq!(judged.deviation, None, "{request}");
        assert!(judged.is_known, "{request}");
        judged
    }

    #[track_caller]
    fn wrong(&mut self, request: &str, reply: &str) {
        assert!(
            self.judge(request, reply).deviation.is_some(),
            "{request}: {reply}"
        );
    }
}

#[test]
fn the_model_answers_as_a_node_has_to() {
    let mut bench = Bench::new(GuardMode::Long);
    bench.right("LOCK.ACQUIRE k t 900", "*3\r\n:1\r\n:101\r\n:900\r\n");
    bench.now += 300 * MS + 1;
    let judged = bench.right("LOCK.ACQUIRE k u 900", "*3\r\n:0\r\n:101\r\n:600\r\n");
    assert_eq!(judged.shown.len(), 1, "it tells of the holder's lock");
    bench.right("PTTL k", ":600\r\n");
    bench.wrong("PTTL k", ":599\r\n");
    bench.wrong("GET k", "$1\r\nu\r\n");
    bench.right("LOCK.FENCE k t 100 200", ":0\r\n");
    bench.right("LOCK.FENCE k t 101 200", ":1\r\n");
    bench.right("LOCK.GET k", "*4\r\n$1\r\nt\r\n:600\r\n:101\r\n:200\r\n");
    bench.right("LOCK.RELEASE k u", ":0\r\n");
    bench.right("LOCK.EXTEND k t 700", ":1\r\n");
    // Alive at exactly its deadline, and gone after it.
    bench.now += 700 * MS;
    bench.right("EXISTS k", ":1\r\n");
    bench.now += 1;
    bench.right("EXISTS k", ":0\r\n");
    bench.right("SET k t NX PX 900", "+OK\r\n");
    bench.right("SELECT 1", "+OK\r\n");
    bench.right("GET k", "$-1\r\n");
    bench.right("FLUSHALL", "+OK\r\n");
    bench.right("SELECT 0", "+OK\r\n");
    bench.right("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n");
}

#[test]
fn a_refusal_has_its_reasons() {
    let mut bench = Bench::new(GuardMode::Memory);
    bench.wrong("SET k t NX PX 900", "-MISCONF no\r\n");
    bench.right("SET k t NX", "-ERR no log\r\n");
    bench.wrong("SET k t NX", "+OK\r\n");
    bench.wrong("GET k", "-ERR no\r\n");
    bench.right("EVALSHA b70c 1 k t", "-NOSCRIPT no\r\n");
    let mut bench = Bench::new(GuardMode::Long);
    let at = Condition {
        now: bench.now,
        is_quarantined: true,
        is_troubled: false,
        has_failed: false,
    };
    let mut judge = |reply: &[u8]| {
        let args: [&[u8]; 2] = [b"GET", b"k"];
        let mut judged = Judged::default();
        bench
            .reference
            .judge(at, &mut bench.manner, &args, reply, &mut judged);
        judged.deviation
    };
    assert_eq!(judge(b"-LOADING 5 ms left\r\n"), None);
    assert!(judge(b"$-1\r\n").is_some(), "it keeps out");
}

#[test]
fn silent_requests_do_what_they_do() {
    let mut bench = Bench::new(GuardMode::Long);
    assert_eq!(bench.judge("CLIENT REPLY SKIP", "").deviation, None);
    let judged = bench.right("SET k t NX PX 900", "");
    assert_eq!(judged.effects.len(), 1);
    bench.right("GET k", "$1\r\nt\r\n");
    assert_eq!(bench.judge("CLIENT REPLY OFF", "").deviation, None);
    bench.right("DEL k", "");
    bench.wrong("GET k", "$-1\r\n");
    assert_eq!(bench.judge("CLIENT REPLY ON", "+OK\r\n").deviation, None);
    bench.right("GET k", "$-1\r\n");
}

/// Whether a node in trouble refused it cannot be seen, and from then on nothing is known but which database is meant.
#[test]
fn what_a_silent_request_did_in_trouble_is_not_known() {
    let mut bench = Bench::new(GuardMode::Long);
    bench.is_troubled = true;
    bench.judge("CLIENT REPLY OFF", "");
    let judged = bench.right("GET k", "");
    assert!(!judged.is_unsure, "it does nothing");
    let judged = bench.right("SET k t NX", "");
    assert!(judged.is_unsure && judged.effects.is_empty());
    bench.is_troubled = false;
    assert!(bench.judge("SELECT 1", "").is_unsure);
    assert!(bench.judge("CLIENT REPLY ON", "+OK\r\n").effects.is_empty());
    let judged = bench.judge("GET k", "$-1\r\n");
    assert!(judged.is_unsure && !judged.is_known);
    assert_eq!(bench.manner.db, 1);
}
