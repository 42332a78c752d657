use super::*;

/// A story of clients and nodes that do what they are asked.
impl Wire {
    /// A request is sent to some nodes at a time, and each answers a millisecond later.
    fn asks(&mut self, ms: u64, client: u8, nodes: &[u8], request: &str, reply: &str) -> &mut Self {
        for reply in self.loses(ms, client, nodes, request, reply) {
            self.arrived(at(ms + 1), &reply);
        }
        self
    }

    /// The same, and no reply arrives.
    fn loses(
        &mut self,
        ms: u64,
        client: u8,
        nodes: &[u8],
        line: &str,
        reply: &str,
    ) -> Vec<LockReply> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
        let reply = format!("{reply}\r\n");
        let learned = nodes.iter().filter_map(|node| {
            let link = LinkId {
                client,
                node: *node,
            };
            self.sent(at(ms), link, &words);
            self.answered(link, words.clone(), at(ms), reply.as_bytes())
        });
        learned.collect()
    }

    /// Token, from and until, in milliseconds.
    fn rows(&self) -> Vec<(String, u64, u64)> {
        let ms = |at: SimTime| at.as_nanos() / 1_000_000;
        let token = |held: &Held| String::from_utf8_lossy(&held.token).into_owned();
        let held = self.held.iter();
        held.map(|held| (token(held), ms(held.from), ms(held.until())))
            .collect()
    }
}

fn at(ms: u64) -> SimTime {
    Duration::from_millis(ms).into()
}

fn row(token: &str, from: u64, until: u64) -> (String, u64, u64) {
    (token.to_owned(), from, until)
}

#[test]
fn a_majority_holds_until_its_ttl_less_drift() {
    let mut story = Wire::new(5);
    story.asks(100, 0, &[0, 1], "SET k a NX PX 1000", "+OK");
    assert_eq!(story.rows(), []);
    story.asks(120, 0, &[2], "SET k a NX PX 1000", "+OK");
    // From the third grant on; the two nodes that were asked first are needed for a majority.
    assert_eq!(story.rows(), [row("a", 121, 1088)]);
    story.asks(150, 0, &[3, 4], "SET k a NX PX 1000", "$-1");
    assert_eq!(story.rows().len(), 1);
}

#[test]
fn a_reply_that_never_arrives_tells_nobody() {
    let mut story = Wire::new(3);
    story.asks(0, 0, &[0], "SET k a NX PX 1000", "+OK");
    story.loses(0, 0, &[1, 2], "SET k a NX PX 1000", "+OK");
    assert_eq!(story.rows(), []);
}

#[test]
fn a_release_ends_it_when_it_is_sent_and_late_grants_change_nothing() {
    for release in [
        "DEL k",
        "DELEX k IFEQ a",
        "DELIFEQ k a",
        "LOCK.RELEASE k a",
        "EVALSHA 5f 1 k a",
    ] {
        let mut story = Wire::new(3);
        story.asks(0, 0, &[0, 1], "SET k a NX PX 1000", "+OK");
        let late = story.loses(0, 0, &[2], "SET k a NX PX 1000", "+OK");
        // That the reply is lost changes nothing.
        story.loses(300, 0, &[0], release, ":1");
        story.arrived(at(400), &late[0]);
        assert_eq!(story.rows(), [row("a", 1, 300)], "{release}");
        // The same token again is another lock.
        story.asks(500, 0, &[0, 1], "SET k a NX PX 100", "+OK");
        assert_eq!(story.rows()[1], row("a", 501, 597), "{release}");
    }
}

#[test]
fn a_look_at_a_lock_is_no_release() {
    let mut story = Wire::new(1);
    story.asks(0, 0, &[0], "SET k a NX PX 1000", "+OK");
    story.asks(300, 0, &[0], "EVALSHA 5f 1 k a", ":700");
    assert_eq!(story.rows(), [row("a", 1, 988)]);
    story.asks(400, 0, &[0], "EVALSHA 5f 1 k a", ":1");
    assert_eq!(story.rows(), [row("a", 1, 400)]);
}

#[test]
fn an_extension_counts_when_a_majority_has_told_it() {
    for extend in [
        "PEXPIRE k 2000",
        "EVALSHA 5f 1 k a 2000",
        "SET k a IFEQ a PX 2000",
    ] {
        let mut story = Wire::new(3);
        let reply = if extend.starts_with("SET") {
            "+OK"
        } else {
            ":1"
        };
        story.asks(0, 0, &[0, 1, 2], "SET k a NX PX 1000", "+OK");
        story.asks(500, 0, &[0], extend, reply);
        assert_eq!(story.rows(), [row("a", 1, 988)], "{extend}");
        story.asks(510, 0, &[1], extend, reply);
        assert_eq!(story.rows(), [row("a", 1, 2478)], "{extend}");
    }
    let mut story = Wire::new(1);
    story.asks(0, 0, &[0], "SET k a NX PX 1000", "+OK");
    story.asks(10, 0, &[0], "EVALSHA 5f 1 k a 1000 0", ":1");
    assert_eq!(story.rows(), [row("a", 1, 1976)]);
}

#[test]
fn a_lock_without_a_ttl_is_held_until_it_is_released() {
    let mut story = Wire::new(1);
    story.asks(0, 0, &[0], "SET k a NX", "+OK");
    assert_eq!(story.held[0].until(), SimTime::NEVER);
    story.asks(77, 0, &[0], "EVAL redis.call('del',KEYS[1]) 1 k a", ":1");
    assert_eq!(story.rows(), [row("a", 1, 77)]);
}

#[test]
fn nodes_that_forget_make_two_holders_and_nodes_that_do_not_make_one() {
    let mut story = Wire::new(3);
    story.asks(0, 0, &[0, 1], "SET k a NX PX 1000", "+OK");
    // Node 1 has crashed and forgotten it.
    story.asks(200, 0, &[1, 2], "SET k b NX PX 1000", "+OK");
    assert_eq!(story.rows(), [row("a", 1, 988), row("b", 201, 1188)]);
    // Another client's release of all that it holds is not this one's.
    story.asks(300, 1, &[0], "DEL k", ":1");
    assert_eq!(story.rows(), [row("a", 1, 988), row("b", 201, 1188)]);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut story = Wire::new(1);
    story.asks(0, 0, &[0], "EVAL x 1 k t u v", ":1");
    story.asks(0, 0, &[0], "EVAL x 1 k t u v", "-ERR no");
    story.asks(0, 0, &[0], "PING", "+PONG");
    let counts = story.counts;
    assert_eq!((counts.requests, counts.unread, counts.grants), (2, 1, 0));
}
