use std::time::Duration;

use super::*;

const MS: u64 = 1_000_000;

/// A model of a node with a longest TTL of ten seconds, and a connection to it.
struct ModelNode {
    reference: Reference,
    manner: Manner,
    at: Condition,
}

impl ModelNode {
    fn new(guard: GuardMode) -> Self {
        Self {
            reference: Reference::new(guard, Duration::from_secs(10), 100),
            manner: Manner::default(),
            at: Condition {
                now: 5 * MS,
                is_quarantined: false,
                is_troubled: false,
                has_failed: false,
            },
        }
    }

    fn judge(&mut self, request: &str, reply: &str) -> Judged {
        let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let (mut judged, reply) = (Judged::default(), reply.as_bytes());
        self.reference
            .judge(self.at, &mut self.manner, &args, reply, &mut judged);
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
        let judged = self.judge(request, reply);
        assert!(judged.deviation.is_some(), "{request}: {reply}");
    }
}

#[test]
fn the_model_answers_as_a_node_has_to() {
    let mut node = ModelNode::new(GuardMode::Long);
    node.right("LOCK.ACQUIRE k t 900", "*3\r\n:1\r\n:101\r\n:900\r\n");
    node.at.now += 300 * MS + 1;
    let judged = node.right("LOCK.ACQUIRE k u 900", "*3\r\n:0\r\n:101\r\n:600\r\n");
    assert_eq!(judged.shown.len(), 1, "it tells of the holder's lock");
    node.right("PTTL k", ":600\r\n");
    node.wrong("PTTL k", ":599\r\n");
    node.wrong("GET k", "$1\r\nu\r\n");
    node.right("LOCK.FENCE k t 100 200", ":0\r\n");
    node.right("LOCK.FENCE k t 101 200", ":1\r\n");
    node.right("LOCK.GET k", "*4\r\n$1\r\nt\r\n:600\r\n:101\r\n:200\r\n");
    node.right("LOCK.RELEASE k u", ":0\r\n");
    node.right("LOCK.EXTEND k t 700", ":1\r\n");
    // Alive at exactly its deadline, and gone after it.
    node.at.now += 700 * MS;
    node.right("EXISTS k", ":1\r\n");
    node.at.now += 1;
    node.right("EXISTS k", ":0\r\n");
    node.right("SET k t NX PX 900", "+OK\r\n");
    node.right("SELECT 1", "+OK\r\n");
    node.right("GET k", "$-1\r\n");
    node.right("FLUSHALL", "+OK\r\n");
    node.right("SELECT 0", "+OK\r\n");
    node.right("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n");
}

#[test]
fn a_refusal_has_its_reasons() {
    let mut node = ModelNode::new(GuardMode::Memory);
    node.wrong("SET k t NX PX 900", "-MISCONF no\r\n");
    node.right("SET k t NX", "-ERR no log\r\n");
    node.wrong("SET k t NX", "+OK\r\n");
    node.wrong("GET k", "-ERR no\r\n");
    node.right("EVALSHA b70c 1 k t", "-NOSCRIPT no\r\n");
    let mut node = ModelNode::new(GuardMode::Long);
    node.at.is_quarantined = true;
    node.right("GET k", "-LOADING 5 ms left\r\n");
    node.wrong("GET k", "$-1\r\n");
}

#[test]
fn silent_requests_do_what_they_do() {
    let mut node = ModelNode::new(GuardMode::Long);
    assert_eq!(node.judge("CLIENT REPLY SKIP", "").deviation, None);
    let judged = node.right("SET k t NX PX 900", "");
    assert_eq!(judged.effects.len(), 1);
    node.right("GET k", "$1\r\nt\r\n");
    assert_eq!(node.judge("CLIENT REPLY OFF", "").deviation, None);
    node.right("DEL k", "");
    node.wrong("GET k", "$-1\r\n");
    assert_eq!(node.judge("CLIENT REPLY ON", "+OK\r\n").deviation, None);
    node.right("GET k", "$-1\r\n");
}

/// Whether a node in trouble refused it cannot be seen, and from then on nothing is known but which database is meant.
#[test]
fn what_a_silent_request_did_in_trouble_is_not_known() {
    let mut node = ModelNode::new(GuardMode::Long);
    node.at.is_troubled = true;
    node.judge("CLIENT REPLY OFF", "");
    let judged = node.right("GET k", "");
    assert!(!judged.is_unsure, "it does nothing");
    let judged = node.right("SET k t NX", "");
    assert!(judged.is_unsure && judged.effects.is_empty());
    node.at.is_troubled = false;
    assert!(node.judge("SELECT 1", "").is_unsure);
    assert!(node.judge("CLIENT REPLY ON", "+OK\r\n").effects.is_empty());
    let judged = node.judge("GET k", "$-1\r\n");
    assert!(judged.is_unsure && !judged.is_known);
    assert_eq!(node.manner.db, 1);
}

#[test]
fn a_transaction_takes_a_hash_and_its_counter_rises_once() {
    let mut node = ModelNode::new(GuardMode::Memory);
    let held = "*3\r\n:0\r\n:101\r\n:900\r\n";
    let exec = |node: &mut ModelNode, requests: [&str; 2], reply: &str| {
        node.right("MULTI", "+OK\r\n");
        for request in requests {
            node.right(request, "+QUEUED\r\n");
        }
        node.right("EXEC", reply)
    };
    let take = ["HINCRBY k f 1", "PEXPIRE k 900"];
    node.right("WATCH k", "+OK\r\n");
    node.right("HGETALL k", "*0\r\n");
    let effects = exec(&mut node, take, "*2\r\n:1\r\n:1\r\n").effects;
    assert!(matches!(&effects[..], [Effect::Granted { ttl, .. }] if *ttl == 900 * MS));
    node.right("LOCK.ACQUIRE k t 5", held);
    node.right("GET k", "-WRONGTYPE Operation against a key\r\n");
    node.wrong("GET k", "$-1\r\n");
    exec(&mut node, take, "*2\r\n:2\r\n:1\r\n");
    node.right("LOCK.ACQUIRE k t 5", held);
    node.right("HGETALL k", "*2\r\n$1\r\nf\r\n$1\r\n2\r\n");
    let renew = ["HEXISTS k f", "PEXPIRE k 900"];
    let done = "*2\r\n:1\r\n:1\r\n";
    for (meanwhile, answer, reply) in [
        ("PEXPIRE k 800", ":1\r\n", "*-1\r\n"),
        ("EXISTS none", ":0\r\n", done),
    ] {
        node.right("WATCH k", "+OK\r\n");
        node.right(meanwhile, answer);
        exec(&mut node, renew, reply);
    }
    // It ends while it is watched.
    node.right("WATCH k", "+OK\r\n");
    node.at.now += 901 * MS;
    exec(&mut node, take, "*-1\r\n");
    // A refused command spoils the transaction.
    node.at.is_quarantined = true;
    node.right("MULTI", "+OK\r\n");
    node.right("HINCRBY k f 1", "-LOADING wait\r\n");
    node.right("EXEC", "-EXECABORT because of previous errors\r\n");
    node.at.is_quarantined = false;
    node.right("HGETALL k", "*0\r\n");
}
