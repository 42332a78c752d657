//! What nodes were and held, as stretches of time: the bars of the node lanes.

use std::collections::BTreeMap;

use crate::fault::Crash;
use crate::history::{AttemptNo, Entry, Event, History, KeyNo};
use crate::span::SimTime;

/// A time in which a node held a key for an attempt, or would have if it had not forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) node: u8,
    pub(crate) key: KeyNo,
    pub(crate) attempt: AttemptNo,
    /// `None` when no grant of the attempt is in the history.
    pub(crate) client: Option<u8>,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
    /// The node had gone down, and does not know of it any more.
    pub(crate) is_forgotten: bool,
    /// It was read from the log at a start.
    pub(crate) is_restored: bool,
    /// Its deadline as last set.
    pub(crate) ends: SimTime,
    /// When it was extended.
    pub(crate) extended: Vec<SimTime>,
    /// What ended it, for people.
    pub(crate) ending: &'static str,
}

/// A time in which a node was in one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spell {
    pub(crate) node: u8,
    pub(crate) condition: Condition,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
    /// Why, for people.
    pub(crate) why: String,
}

/// What a node can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Serving,
    Quarantined,
    Down,
}

/// All that nodes were and held.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    pub(crate) spells: Vec<Spell>,
    pub(crate) holdings: Vec<Holding>,
    now: BTreeMap<u8, Spell>,
    held: BTreeMap<(u8, KeyNo), Holding>,
    forgotten: BTreeMap<(u8, KeyNo), Holding>,
    clients: BTreeMap<AttemptNo, u8>,
}

impl Ownership {
    pub(crate) fn of(history: &History) -> Self {
        let mut ownership = Self::default();
        for node in 0..history.nodes {
            // A node whose first news is another than its start was there from the beginning.
            let first = history
                .entries
                .iter()
                .find(|entry| tells_of(&entry.event, node));
            let is_start = |entry: &Entry| matches!(entry.event, Event::Started { .. });
            let (condition, why) = match first.is_some_and(is_start) {
                true => (Condition::Down, "it has not started yet"),
                false => (Condition::Serving, ""),
            };
            ownership.becomes(node, condition, SimTime::ZERO, why.to_owned());
        }
        for entry in &history.entries {
            ownership.take(entry);
        }
        ownership.finish(history.end);
        ownership
    }

    fn take(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.event {
            Event::Started {
                node,
                is_quarantined,
                reason,
            } => {
                let (condition, why) = match is_quarantined {
                    true => (Condition::Quarantined, (*reason).to_owned()),
                    false => (Condition::Serving, format!("started: {reason}")),
                };
                self.becomes(*node, condition, at, why);
            }
            Event::Serving { node } => self.serves(*node, at),
            Event::Down { node, how } => self.goes_down(*node, *how, at),
            Event::StaysDown { node, why } => {
                let why = format!("it could not start: {why}");
                self.becomes(*node, Condition::Down, at, why);
            }
            Event::Granted {
                node,
                key,
                attempt,
                client,
                ends,
                ..
            } => {
                self.clients.insert(*attempt, *client);
                self.holds(*node, *key, *attempt, at, *ends, false);
            }
            Event::Restored {
                node,
                key,
                attempt,
                ends,
            } => self.holds(*node, *key, *attempt, at, *ends, true),
            Event::Extended {
                node,
                key,
                attempt,
                ends,
            } => {
                let held = self.held.get_mut(&(*node, *key));
                if let Some(held) = held.filter(|held| held.attempt == *attempt) {
                    held.ends = *ends;
                    held.extended.push(at);
                }
            }
            Event::Freed { node, key, .. } => {
                self.lets_go(*node, *key, at, "it was released");
            }
            _ => {}
        }
    }

    fn becomes(&mut self, node: u8, condition: Condition, at: SimTime, why: String) {
        let next = Spell {
            node,
            condition,
            from: at,
            until: SimTime::NEVER,
            why,
        };
        if let Some(mut spell) = self.now.insert(node, next)
            && spell.from < at
        {
            spell.until = at;
            self.spells.push(spell);
        }
    }

    fn serves(&mut self, node: u8, at: SimTime) {
        let serving = |spell: &Spell| spell.condition == Condition::Serving;
        if !self.now.get(&node).is_some_and(serving) {
            self.becomes(node, Condition::Serving, at, String::new());
        }
    }

    fn goes_down(&mut self, node: u8, how: Crash, at: SimTime) {
        self.becomes(node, Condition::Down, at, how.name().to_owned());
        let keys: Vec<KeyNo> = self.keys_of(node);
        for key in keys {
            let Some(held) = self.lets_go(node, key, at, "the node went down") else {
                continue;
            };
            if held.ends > at {
                let forgotten = Holding {
                    from: at,
                    until: held.ends,
                    is_forgotten: true,
                    is_restored: false,
                    extended: Vec::new(),
                    ending: "its deadline passed",
                    ..held
                };
                self.forgotten.insert((node, key), forgotten);
            }
        }
    }

    fn keys_of(&self, node: u8) -> Vec<KeyNo> {
        let held = self.held.range((node, KeyNo::MIN)..=(node, KeyNo::MAX));
        held.map(|((_, key), _)| *key).collect()
    }

    fn holds(
        &mut self,
        node: u8,
        key: KeyNo,
        attempt: AttemptNo,
        at: SimTime,
        ends: SimTime,
        is_restored: bool,
    ) {
        self.lets_go(node, key, at, "the node gave the key to another attempt");
        if is_restored && let Some(mut forgotten) = self.forgotten.remove(&(node, key)) {
            forgotten.ending = "the node read it from its log again";
            self.ended(forgotten, at);
        }
        let holding = Holding {
            node,
            key,
            attempt,
            client: self.clients.get(&attempt).copied(),
            from: at,
            until: ends,
            is_forgotten: false,
            is_restored,
            ends,
            extended: Vec::new(),
            ending: "its deadline passed",
        };
        self.held.insert((node, key), holding);
    }

    /// The holding that ended, if one had not ended by itself before.
    fn lets_go(
        &mut self,
        node: u8,
        key: KeyNo,
        at: SimTime,
        ending: &'static str,
    ) -> Option<Holding> {
        let mut held = self.held.remove(&(node, key))?;
        if at < held.ends {
            held.ending = ending;
        }
        self.ended(held.clone(), at);
        Some(held)
    }

    fn ended(&mut self, mut holding: Holding, at: SimTime) {
        holding.until = at.min(holding.ends).max(holding.from);
        self.holdings.push(holding);
    }

    fn finish(&mut self, end: SimTime) {
        let open = [
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.forgotten),
        ];
        for mut holding in open.into_iter().flat_map(BTreeMap::into_values) {
            if holding.ends > end {
                holding.ending = "the run ended";
            }
            self.ended(holding, end);
        }
        for mut spell in std::mem::take(&mut self.now).into_values() {
            spell.until = end;
            if spell.from < end {
                self.spells.push(spell);
            }
        }
        self.holdings.sort_by_key(|held| (held.from, held.node));
        self.spells.sort_by_key(|spell| (spell.from, spell.node));
    }
}

/// Whether this is news of what the node is or holds.
fn tells_of(event: &Event, of: u8) -> bool {
    match event {
        Event::Started { node, .. }
        | Event::Serving { node }
        | Event::Down { node, .. }
        | Event::StaysDown { node, .. }
        | Event::Granted { node, .. }
        | Event::Restored { node, .. }
        | Event::Extended { node, .. }
        | Event::Freed { node, .. } => *node == of,
        _ => false,
    }
}
