//! Histories written as text, for the tests of everything that reads one.
//!
//! One sentence per event, with its time in milliseconds; sentences end at a semicolon or at the end of a line. A node is
//! `n2`, or `n0,1,2` for several at once; a client is `c0`, a lock `l0`, an attempt `a0` and a key `k0`. An attempt that
//! is not named is that of the lock, a key that is not named is `k0`.
//!
//! ```text
//!   20 c0 calls l0                            20 n2 grants a0 until 900 count 7
//!   20 c0 acquires l0 until 900 fence 7       20 n2 extends a0 until 900
//!   20 c0 holds l0 until 900                  20 n2 restores a0 until 900
//!   20 c0 extends l0 until 900                20 n2 shows a0 until 900
//!   20 c0 revalidates l0 until 900            20 n2 frees a0
//!   20 c0 cannot-extend l0 not-held           20 n2 answers a0
//!   20 c0 fails l0 busy                       20 n2 never-answers a0
//!   20 c0 loses l0                            20 n2 refuses c0 LOADING
//!   20 c0 releases l0                         20 n2 starts quarantined because kill
//!   20 c0 released l0 on 3                    20 n2 serves
//!   20 c0 checks l0                           20 n2 dies power-loss
//!   20 c0 writes l0 fence 7 rejected          20 n2 runs-at 800000
//!   20 c0 dies                                20 n2 pauses until 900
//!   20 fault cut client 0 node 1 both         20 n2 forgets-what-it-told a0
//! ```

use std::str::FromStr;
use std::time::Duration;

use crate::fault::{Crash, Who};
use crate::history::{Entry, Event, History, KeyNo};
use crate::span::SimTime;

pub(crate) fn ms(ms: u64) -> SimTime {
    Duration::from_millis(ms).into()
}

/// A minute of five nodes, four clients and two keys in which this happens.
pub(crate) fn story(text: &str) -> History {
    let mut history = empty(5, 4, 60_000, 2);
    history.tell(text);
    history
}

/// A history in which nothing has happened yet. Its keys are `a`, `b` and so on.
pub(crate) fn empty(nodes: u8, clients: u8, end_ms: u64, keys: u8) -> History {
    let name = |key| char::from(b'a' + key).to_string().into();
    History {
        nodes,
        clients,
        end: ms(end_ms),
        keys: (0..keys).map(name).collect(),
        ..History::default()
    }
}

impl History {
    /// Adds events in the order of time; those of one moment stay in the order of the text.
    pub(crate) fn tell(&mut self, text: &str) {
        let sentences = text.split([';', '\n']).map(str::trim);
        for sentence in sentences.filter(|sentence| !sentence.is_empty()) {
            self.entries.extend(Sentence::of(sentence).entries());
        }
        self.entries.sort_by_key(|entry| entry.at);
    }
}

struct Sentence<'t> {
    text: &'t str,
    at_ms: u64,
    subject: &'t str,
    rest: Vec<&'t str>,
}

impl<'t> Sentence<'t> {
    fn of(text: &'t str) -> Self {
        let mut words = text.split_whitespace();
        let at = words.next().and_then(|at| at.parse().ok());
        Self {
            text,
            at_ms: at.unwrap_or_else(|| panic!("a time, at the start of `{text}`")),
            subject: words.next().unwrap_or_default(),
            rest: words.collect(),
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let at = ms(self.at_ms);
        if self.subject == "fault" {
            let event = Event::Fault(self.rest.join(" ").into());
            return vec![Entry { at, event }];
        }
        let mut entries = Vec::new();
        let (kind, numbers) = self.subject.split_at(1);
        for number in numbers.split(',') {
            let number = number.parse().unwrap_or_else(|_| panic!("{}", self.text));
            if kind == "n" {
                let event = self.of_node(number);
                entries.push(Entry { at, event });
                continue;
            }
            if self.rest[0] == "holds" {
                let (client, lock, key) = (number, self.number("l"), self.key());
                let event = Event::Calls { client, lock, key };
                let at = ms(self.at_ms.saturating_sub(1));
                entries.push(Entry { at, event });
            }
            let event = self.of_client(number);
            entries.push(Entry { at, event });
        }
        entries
    }

    fn of_node(&self, node: u8) -> Event {
        let (client, key, attempt) = (self.number("c"), self.key(), self.number("a"));
        let ends = ms(self.after("until").unwrap_or_default());
        match self.rest[0] {
            "grants" => Event::Granted {
                node,
                key,
                attempt,
                client,
                counter: self.after("count").unwrap_or_default(),
                ends,
            },
            "extends" => Event::Extended {
                node,
                key,
                attempt,
                ends,
            },
            "restores" => Event::Restored {
                node,
                key,
                attempt,
                ends,
            },
            "shows" => Event::Shown {
                node,
                client,
                key,
                attempt,
                ends,
            },
            "frees" => Event::Freed { node, key, attempt },
            "forgets-what-it-told" => Event::Unkept {
                node,
                key,
                attempt,
                why: "has told what it forgets".into(),
            },
            "answers" => Event::Answered {
                node,
                client,
                attempt,
                is_late: false,
            },
            "never-answers" => Event::Unanswered {
                node,
                client,
                attempt,
            },
            "refuses" => Event::Refused {
                node,
                client,
                why: self.last(),
            },
            "starts" => Event::Started {
                node,
                is_quarantined: self.rest.get(1) == Some(&"quarantined"),
                reason: self.reason().unwrap_or("start-after-crash"),
            },
            "serves" => Event::Serving { node },
            "dies" => Event::Down {
                node,
                how: Crash::named(self.last()).unwrap_or(Crash::Kill),
            },
            _ => self.of_process(Who::Node(node)),
        }
    }

    fn of_client(&self, client: u8) -> Event {
        let (lock, key) = (self.number("l"), self.key());
        let (valid_until, fencing) = (
            ms(self.after("until").unwrap_or_default()),
            self.after("fence"),
        );
        match self.rest[0] {
            "calls" => Event::Calls { client, lock, key },
            "acquires" | "holds" => Event::Acquired {
                client,
                lock,
                key,
                attempt: lock,
                fencing,
                valid_until,
            },
            verb @ ("extends" | "revalidates") => Event::Validity {
                client,
                lock,
                valid_until,
                is_extension: verb == "extends",
            },
            "cannot-extend" => Event::NotExtended {
                client,
                lock,
                why: self.last(),
            },
            "fails" => Event::Failed {
                client,
                lock,
                why: self.last(),
            },
            "loses" => Event::Lost {
                client,
                lock,
                why: "expired",
            },
            "releases" => Event::Releases {
                client,
                lock,
                is_left: false,
            },
            "released" => Event::Released {
                client,
                lock,
                confirmed: self.after("on").unwrap_or_default(),
            },
            "checks" => Event::Checked { client, lock },
            "writes" => Event::Wrote {
                client,
                lock,
                key,
                fencing,
                is_accepted: self.last() != "rejected",
            },
            "dies" => Event::ClientDown { client },
            _ => self.of_process(Who::Client(client)),
        }
    }

    fn of_process(&self, who: Who) -> Event {
        match self.rest[0] {
            verb @ ("pauses" | "freezes") => Event::Stopped {
                who,
                how: if verb == "pauses" { "pause" } else { "freeze" },
                until: ms(self.after("until").unwrap_or_default()),
            },
            "runs-at" => Event::Clock {
                who,
                shows: ms(self.at_ms),
                per_million: self.after("runs-at").unwrap_or_default(),
            },
            _ => panic!("nobody does this: `{}`", self.text),
        }
    }

    /// The number after a word.
    fn after<N: FromStr>(&self, word: &str) -> Option<N> {
        let place = self.rest.iter().position(|it| *it == word)?;
        self.rest.get(place + 1)?.parse().ok()
    }

    /// The number of what is named by this letter.
    fn number<N: FromStr + Default>(&self, letter: &str) -> N {
        let mut words = self.rest.iter();
        let number = words.find_map(|word| word.strip_prefix(letter)?.parse().ok());
        number.unwrap_or_default()
    }

    fn key(&self) -> KeyNo {
        self.number("k")
    }

    fn last(&self) -> &'static str {
        String::leak((*self.rest.last().unwrap_or(&"")).to_owned())
    }

    fn reason(&self) -> Option<&'static str> {
        let (_, reason) = self.text.split_once(" because ")?;
        Some(String::leak(reason.to_owned()))
    }
}
