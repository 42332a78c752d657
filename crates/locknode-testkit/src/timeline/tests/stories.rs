//! Histories to draw: one told by hand, and others from a seed.

use std::collections::BTreeMap;

use crate::fault::Crash;
use crate::history::tests::{empty, ms};
use crate::history::{AttemptNo, History, KeyNo, Message};
use crate::random::Random;
use crate::timeline::{Headline, Mark};

/// A node forgets what it had granted, comes back too early, and two clients have a majority.
pub(super) fn restart_story() -> (History, Headline, Vec<Mark>) {
    let mut story = empty(5, 3, 3_000, 1);
    story.keys = vec!["orders".into()];
    story.tell(
        "0 n0,1,2,3,4 starts because the first start; 0 n0,1,2,3,4 serves
        150 fault cut client 0 node 3,4 both
        200 c0 calls l0
        206 c0 acquires l0 until 2170 fence 1
        500 c0 writes l0 fence 1
        702 n0,1,2 extends a0 until 2702
        705 c0 extends l0 until 2670
        800 fault crash node 2 kill; 800 n2 dies kill
        900 fault rate node 1 -200000ppm; 900 n1 runs-at 800000
        1000 fault restart node 2; 1000 n2 starts because the restart guard is off; 1000 n2 serves
        1200 c2 calls l1
        1206 c2 acquires l1 until 3170 fence 2
        1250 c1 calls l2
        1300 fault pause client 1 400ms; 1300 c1 pauses until 1700
        1310 c0 checks l0
        1400 c2 writes l1 fence 2
        1620 c0 writes l0 fence 1 rejected
        1720 c1 fails l2 taken
        1900 c0 releases l0
        1903 n0,1 frees a0
        2100 fault crash node 4 power-loss; 2100 n4 dies power-loss
        2250 fault restart node 4; 2250 n4 starts quarantined because a start after a crash
        2500 n4 refuses c1 LOADING
        2600 c2 cannot-extend l1 not-held
        2750 c0 dies
        2800 n4 serves",
    );
    let ask = |client, attempt, at_ms, ends_ms| Ask {
        client,
        attempt,
        key: 0,
        at_ms,
        ends_ms,
    };
    let grants = [
        ask(0, 0, 200, 2_200).of(&mut story, &[0, 1, 2], &[3, 4], &[0, 1, 2]),
        ask(2, 1, 1_200, 3_200).of(&mut story, &[2, 3, 4], &[], &[2, 3, 4]),
        ask(1, 2, 1_250, 0).of(&mut story, &[], &[0], &[]),
    ];
    story.tell(&grants.concat());
    let mark = Mark {
        from: ms(1_206),
        until: ms(1_900),
        clients: vec![0, 2],
        nodes: Vec::new(),
        text: "exclusion: client 0 and client 2 hold \"orders\"".to_owned(),
    };
    let headline = Headline {
        title: "restart story: a node comes back without its locks".to_owned(),
        verdict_is_bad: true,
        verdict: "1 violation: mutual exclusion".to_owned(),
        replay: Some("kit --seed 7 --scenario restart.txt".to_owned()),
    };
    (story, headline, vec![mark])
}

/// Clients that take, extend and release locks on nodes that crash, for a number of seconds.
pub(super) fn random_run(seed: u64, nodes: u8, clients: u8, seconds: u64, keys: u16) -> History {
    let mut random = Random::new(seed);
    let mut story = empty(nodes, clients, seconds * 1_000, 0);
    story.keys = (0..keys).map(|key| format!("k{key}").into()).collect();
    let mut events = (0..nodes)
        .map(|node| format!("0 n{node} starts because the first start; 0 n{node} serves;"))
        .collect::<String>();
    let down = crashes(nodes, &mut events, &mut random, seconds * 1_000);
    let mut free: BTreeMap<(u8, u16), u64> = BTreeMap::new();
    let mut ready: Vec<u64> = (0..clients).map(|_| random.below(2_000)).collect();
    for lock in 0.. {
        let Some((client, now)) = (0..clients).zip(ready.clone()).min_by_key(|(_, at)| *at) else {
            break;
        };
        if now + 3_000 >= seconds * 1_000 {
            break;
        }
        let key = u16::try_from(random.below(keys.into())).expect("small");
        let hold = random.between(100, 1_500);
        events += &format!("{now} c{client} calls l{lock} k{key};");
        let is_up = |node: u8| {
            !down
                .iter()
                .any(|(which, from, until)| *which == node && (*from..*until).contains(&now))
        };
        let (up, lost): (Vec<u8>, Vec<u8>) = (0..nodes).partition(|node| is_up(*node));
        let is_free = |node: &u8| free.get(&(*node, key)).is_none_or(|until| *until < now);
        let granting: Vec<u8> = up.iter().copied().filter(is_free).collect();
        let has_won = granting.len() > usize::from(nodes / 2);
        let ends = now + if has_won { 2_000 } else { 40 };
        let ask = Ask {
            client,
            attempt: lock,
            key,
            at_ms: now,
            ends_ms: ends,
        };
        events += &ask.of(&mut story, &up, &lost, &granting);
        let frees = |at: u64| {
            let free = |node| format!("{at} n{node} frees a{lock} k{key};");
            granting.iter().map(free).collect::<String>()
        };
        if !has_won {
            events += &format!("{} c{client} fails l{lock} taken;", now + 8);
            events += &frees(now + 12);
            if let Some(ready) = ready.get_mut(usize::from(client)) {
                *ready = now + random.between(50, 400);
            }
            continue;
        }
        let (held, fence) = (now + 8, lock + 1);
        let until = now + 1_950;
        events += &format!("{held} c{client} acquires l{lock} k{key} until {until} fence {fence};");
        if hold > 600 {
            let (wrote, extended, until) = (now + 500, now + 550, now + 2_500);
            let result = if random.chance(90) { "" } else { "rejected" };
            events += &format!(
                "{wrote} c{client} writes l{lock} k{key} fence {fence} {result};
                {extended} c{client} extends l{lock} until {until};"
            );
        }
        events += &format!("{} c{client} releases l{lock};", held + hold);
        events += &frees(now + hold + 10);
        for node in granting {
            free.insert((node, key), now + hold + 12);
        }
        if let Some(ready) = ready.get_mut(usize::from(client)) {
            *ready = now + hold + random.between(30, 900);
        }
    }
    story.tell(&events);
    story
}

/// By node, when it is down or quarantined.
fn crashes(nodes: u8, events: &mut String, random: &mut Random, end: u64) -> Vec<(u8, u64, u64)> {
    let mut down = Vec::new();
    let mut now = random.between(500, 4_000);
    while now + 4_000 < end {
        let node = u8::try_from(random.below(nodes.into())).expect("small");
        let (away, quarantine) = (random.between(100, 1_500), random.between(500, 2_000));
        let back = now + away;
        if random.chance(25) {
            *events += &format!(
                "{now} fault freeze node {node} {away}ms; {now} n{node} freezes until {back};"
            );
        } else {
            let how = Crash::ALL[random.index(Crash::ALL.len())];
            let serves = back + quarantine;
            *events += &format!(
                "{now} fault crash node {node} {how}; {now} n{node} dies {how}
                {back} fault restart node {node}
                {back} n{node} starts quarantined because a start after a crash; {serves} n{node} serves;"
            );
            down.push((node, now, serves));
        }
        now += random.between(2_500, 9_000);
    }
    down
}

/// A request for a lock.
struct Ask {
    client: u8,
    attempt: AttemptNo,
    key: KeyNo,
    at_ms: u64,
    ends_ms: u64,
}

impl Ask {
    /// Adds the messages of a request to nodes that are up and to others that it does not reach. Returns the grants.
    fn of(&self, story: &mut History, up: &[u8], lost: &[u8], granting: &[u8]) -> String {
        let mut grants = String::new();
        let &Self {
            client,
            attempt,
            key,
            ..
        } = self;
        let message = |node, is_request, sent, arrived, text: &str| Message {
            client,
            node,
            is_request,
            sent: ms(sent),
            arrived,
            text: text.into(),
        };
        for node in up.iter().chain(lost).copied() {
            let (sent, is_up) = (self.at_ms, up.contains(&node));
            let answered = sent + 2 + u64::from(node) % 3;
            let arrived = is_up.then(|| ms(answered));
            story
                .messages
                .push(message(node, true, sent, arrived, "SET k v NX PX 2000"));
            let is_granted = granting.contains(&node);
            if is_up {
                let text = if is_granted { "+OK" } else { "$-1" };
                let arrived = Some(ms(answered + 2));
                story
                    .messages
                    .push(message(node, false, answered, arrived, text));
            }
            if is_granted {
                let (until, count) = (self.ends_ms, attempt + 1);
                grants += &format!(
                    "{answered} n{node} grants a{attempt} k{key} to c{client} until {until} count {count};"
                );
            }
        }
        story.messages.sort_by_key(|message| message.sent);
        grants
    }
}
