//! Histories to draw: one told by hand, and others from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fault::{Crash, Who};
use crate::history::{Entry, Event, History, Message};
use crate::random::Random;
use crate::span::SimTime;
use crate::timeline::{Headline, Mark};

/// A node forgets what it had granted, comes back too early, and two clients have a majority.
pub(super) fn restart_story() -> (History, Headline, Vec<Mark>) {
    let mut story = Story::new(5, 3, 3_000, &["orders"]);
    for node in 0..5 {
        let (is_quarantined, reason) = (false, "the first start");
        story.at(
            0,
            Event::Started {
                node,
                is_quarantined,
                reason,
            },
        );
        story.at(0, Event::Serving { node });
    }
    story.fault(150, "cut client 0 node 3,4 both");
    story.call(0, 0, 200);
    story.ask(0, &[0, 1, 2], &[3, 4], 200, 0, 2_200);
    story.acquired(0, 0, 0, Some(1), 206, 2_170);
    story.at(
        500,
        Event::Wrote {
            client: 0,
            lock: 0,
            key: 0,
            fencing: Some(1),
            is_accepted: true,
        },
    );
    for node in [0, 1] {
        story.at(
            702,
            Event::Extended {
                node,
                key: 0,
                attempt: 0,
                ends: ms(2_702),
            },
        );
    }
    story.at(
        702,
        Event::Extended {
            node: 2,
            key: 0,
            attempt: 0,
            ends: ms(2_702),
        },
    );
    story.at(
        705,
        Event::Validity {
            client: 0,
            lock: 0,
            valid_until: ms(2_670),
            is_extension: true,
        },
    );
    story.fault(800, "crash node 2 kill");
    let how = Crash::Kill;
    story.at(800, Event::Down { node: 2, how });
    story.fault(1_000, "restart node 2");
    let (is_quarantined, reason) = (false, "the restart guard is off");
    story.at(
        1_000,
        Event::Started {
            node: 2,
            is_quarantined,
            reason,
        },
    );
    story.at(1_000, Event::Serving { node: 2 });
    story.call(2, 1, 1_200);
    story.ask(2, &[2, 3, 4], &[], 1_200, 1, 3_200);
    story.acquired(2, 1, 1, Some(2), 1_206, 3_170);
    story.at(1_310, Event::Checked { client: 0, lock: 0 });
    story.at(
        1_400,
        Event::Wrote {
            client: 2,
            lock: 1,
            key: 0,
            fencing: Some(2),
            is_accepted: true,
        },
    );
    story.at(
        1_620,
        Event::Wrote {
            client: 0,
            lock: 0,
            key: 0,
            fencing: Some(1),
            is_accepted: false,
        },
    );
    story.fault(900, "rate node 1 -200000ppm");
    story.at(
        900,
        Event::Clock {
            who: Who::Node(1),
            shows: ms(900),
            per_million: 800_000,
        },
    );
    let (who, how, until) = (Who::Client(1), "pause", ms(1_700));
    story.fault(1_300, "pause client 1 400ms");
    story.at(1_300, Event::Stopped { who, how, until });
    story.call(1, 2, 1_250);
    story.ask(1, &[], &[0], 1_250, 2, 0);
    let why = "taken";
    story.at(
        1_720,
        Event::Failed {
            client: 1,
            lock: 2,
            why,
        },
    );
    story.at(
        1_900,
        Event::Releases {
            client: 0,
            lock: 0,
            is_left: false,
        },
    );
    for node in [0, 1] {
        story.at(
            1_903,
            Event::Freed {
                node,
                key: 0,
                attempt: 0,
            },
        );
    }
    let how = Crash::PowerLoss;
    story.fault(2_100, "crash node 4 power-loss");
    story.at(2_100, Event::Down { node: 4, how });
    let (is_quarantined, reason) = (true, "a start after a crash");
    story.fault(2_250, "restart node 4");
    story.at(
        2_250,
        Event::Started {
            node: 4,
            is_quarantined,
            reason,
        },
    );
    let why = "LOADING";
    story.at(
        2_500,
        Event::Refused {
            node: 4,
            client: 1,
            why,
        },
    );
    story.at(2_800, Event::Serving { node: 4 });
    let (client, lock, why) = (2, 1, "not-held");
    story.at(2_600, Event::NotExtended { client, lock, why });
    story.at(2_750, Event::ClientDown { client: 0 });
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
    (story.history(), headline, vec![mark])
}

/// Clients that take, extend and release locks on nodes that crash, for so many seconds.
pub(super) fn random_run(seed: u64, nodes: u8, clients: u8, seconds: u64, keys: u16) -> History {
    let mut random = Random::new(seed);
    let names: Vec<String> = (0..keys).map(|key| format!("k{key}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut story = Story::new(nodes, clients, seconds * 1_000, &names);
    for node in 0..nodes {
        let (is_quarantined, reason) = (false, "the first start");
        story.at(
            0,
            Event::Started {
                node,
                is_quarantined,
                reason,
            },
        );
        story.at(0, Event::Serving { node });
    }
    let down = crashes(&mut story, &mut random, seconds * 1_000);
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
        story.call_for(client, lock, key, now);
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
        story.ask_for(client, &up, &lost, now, lock, key, &granting, ends);
        if !has_won {
            let why = "taken";
            story.at(now + 8, Event::Failed { client, lock, why });
            for node in granting {
                story.at(
                    now + 12,
                    Event::Freed {
                        node,
                        key,
                        attempt: lock,
                    },
                );
            }
            if let Some(ready) = ready.get_mut(usize::from(client)) {
                *ready = now + random.between(50, 400);
            }
            continue;
        }
        let fencing = Some(u64::from(lock) + 1);
        story.acquired_for(client, lock, key, fencing, now + 8, now + 1_950);
        if hold > 600 {
            story.at(
                now + 500,
                Event::Wrote {
                    client,
                    lock,
                    key,
                    fencing,
                    is_accepted: random.chance(90),
                },
            );
            let valid_until = ms(now + 2_500);
            story.at(
                now + 550,
                Event::Validity {
                    client,
                    lock,
                    valid_until,
                    is_extension: true,
                },
            );
        }
        let is_left = false;
        story.at(
            now + 8 + hold,
            Event::Releases {
                client,
                lock,
                is_left,
            },
        );
        for node in granting {
            free.insert((node, key), now + hold + 12);
            story.at(
                now + hold + 10,
                Event::Freed {
                    node,
                    key,
                    attempt: lock,
                },
            );
        }
        if let Some(ready) = ready.get_mut(usize::from(client)) {
            *ready = now + hold + random.between(30, 900);
        }
    }
    story.history()
}

/// By node, when it is down or quarantined.
fn crashes(story: &mut Story, random: &mut Random, end: u64) -> Vec<(u8, u64, u64)> {
    let mut down = Vec::new();
    let mut now = random.between(500, 4_000);
    while now + 4_000 < end {
        let node = u8::try_from(random.below(story.0.nodes.into())).expect("small");
        let (away, quarantine) = (random.between(100, 1_500), random.between(500, 2_000));
        if random.chance(25) {
            let (who, how) = (Who::Node(node), "freeze");
            let until = ms(now + away);
            story.fault(now, &format!("freeze node {node} {away}ms"));
            story.at(now, Event::Stopped { who, how, until });
        } else {
            let how = random.index(Crash::ALL.len());
            let how = Crash::ALL.get(how).copied().unwrap_or(Crash::Kill);
            story.fault(now, &format!("crash node {node} {}", how.name()));
            story.at(now, Event::Down { node, how });
            let (is_quarantined, reason) = (true, "a start after a crash");
            story.fault(now + away, &format!("restart node {node}"));
            story.at(
                now + away,
                Event::Started {
                    node,
                    is_quarantined,
                    reason,
                },
            );
            story.at(now + away + quarantine, Event::Serving { node });
            down.push((node, now, now + away + quarantine));
        }
        now += random.between(2_500, 9_000);
    }
    down
}

fn ms(ms: u64) -> SimTime {
    Duration::from_millis(ms).into()
}

/// A history that is being told, not in order of time.
#[derive(Debug)]
struct Story(History);

impl Story {
    fn new(nodes: u8, clients: u8, end_ms: u64, keys: &[&str]) -> Self {
        Self(History {
            nodes,
            clients,
            end: ms(end_ms),
            keys: keys.iter().map(|key| (*key).into()).collect(),
            ..History::default()
        })
    }

    fn history(mut self) -> History {
        self.0.entries.sort_by_key(|entry| entry.at);
        self.0.messages.sort_by_key(|message| message.sent);
        self.0
    }

    fn at(&mut self, at_ms: u64, event: Event) {
        let at = ms(at_ms);
        self.0.entries.push(Entry { at, event });
    }

    fn fault(&mut self, at_ms: u64, text: &str) {
        self.at(at_ms, Event::Fault(text.into()));
    }

    fn call(&mut self, client: u8, lock: u32, at_ms: u64) {
        self.call_for(client, lock, 0, at_ms);
    }

    fn call_for(&mut self, client: u8, lock: u32, key: u16, at_ms: u64) {
        self.at(at_ms, Event::Calls { client, lock, key });
    }

    fn acquired(
        &mut self,
        client: u8,
        lock: u32,
        key: u16,
        fencing: Option<u64>,
        at_ms: u64,
        valid_ms: u64,
    ) {
        let _ = key;
        self.acquired_for(client, lock, 0, fencing, at_ms, valid_ms);
    }

    fn acquired_for(
        &mut self,
        client: u8,
        lock: u32,
        key: u16,
        fencing: Option<u64>,
        at_ms: u64,
        valid_ms: u64,
    ) {
        let (attempt, valid_until) = (lock, ms(valid_ms));
        self.at(
            at_ms,
            Event::Acquired {
                client,
                lock,
                key,
                attempt,
                fencing,
                valid_until,
            },
        );
    }

    fn ask(&mut self, client: u8, grant: &[u8], lost: &[u8], at_ms: u64, attempt: u32, ends: u64) {
        self.ask_for(client, grant, lost, at_ms, attempt, 0, grant, ends);
    }

    #[expect(clippy::too_many_arguments, reason = "a request has these parts")]
    fn ask_for(
        &mut self,
        client: u8,
        up: &[u8],
        lost: &[u8],
        at_ms: u64,
        attempt: u32,
        key: u16,
        grant: &[u8],
        ends_ms: u64,
    ) {
        for node in up.iter().chain(lost) {
            let delay = 2 + u64::from(*node) % 3;
            let arrived = up.contains(node).then(|| ms(at_ms + delay));
            self.message(client, *node, true, at_ms, arrived, "SET k v NX PX 2000");
            if up.contains(node) {
                let text = if grant.contains(node) { "+OK" } else { "$-1" };
                let (sent, arrived) = (at_ms + delay, Some(ms(at_ms + delay + 2)));
                self.message(client, *node, false, sent, arrived, text);
            }
            if grant.contains(node) {
                let (node, counter, ends) = (*node, u64::from(attempt) + 1, ms(ends_ms));
                self.at(
                    at_ms + delay,
                    Event::Granted {
                        node,
                        key,
                        attempt,
                        client,
                        counter,
                        ends,
                    },
                );
            }
        }
    }

    fn message(
        &mut self,
        client: u8,
        node: u8,
        is_request: bool,
        sent_ms: u64,
        arrived: Option<SimTime>,
        text: &str,
    ) {
        self.0.messages.push(Message {
            client,
            node,
            is_request,
            sent: ms(sent_ms),
            arrived,
            text: text.into(),
        });
    }
}
