//! Whose command that may take long runs next.
//!
//! A runtime may run some sixty tasks before it looks for input again. So that a client with a short
//! command does not wait for sixty long ones, those run in the order in which they came, and only
//! until they have taken a few milliseconds: then their connections yield, until the runtime has
//! looked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// The turns of a node; see the module docs.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Without a clock, as in a simulation, every command has its turn at once.
    stopwatch: Option<fn() -> Duration>,
    /// How long commands have taken since somebody yielded, in nanoseconds.
    spent: AtomicU64,
    is_awaited: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    next_ticket: u64,
    waiting: BTreeSet<u64>,
    /// How many commands have run that may take long.
    runs: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            // Below it is room for those who go on first.
            next_ticket: u64::MAX / 2,
            waiting: BTreeSet::new(),
            runs: 0,
        }
    }
}

/// A command that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    began: Duration,
    is_short: bool,
}

/// A connection's place in the queue, which it leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    turns: Arc<Turns>,
    ticket: u64,
    /// The runs when the connection last yielded.
    runs: u64,
}

impl Turns {
    pub(crate) fn new(stopwatch: Option<fn() -> Duration>) -> Arc<Self> {
        Arc::new(Self {
            stopwatch,
            spent: AtomicU64::new(0),
            is_awaited: AtomicBool::new(false),
            queue: Mutex::default(),
        })
    }

    /// Begins a command that may take long; `None` when it is not its turn. The connection must then
    /// yield until input on other connections was looked for, and offer the command again.
    pub(crate) fn begin(self: &Arc<Self>, place: &mut Option<Place>) -> Option<Turn> {
        let turn = |began| Turn {
            began,
            is_short: false,
        };
        let Some(now) = self.stopwatch else {
            return Some(turn(Duration::ZERO));
        };
        let is_over = self.spent.load(Ordering::Relaxed) > SPENT_MAX_NS;
        if place.is_none() && !is_over && !self.is_awaited.load(Ordering::Relaxed) {
            return Some(turn(now()));
        }
        let mut queue = self.queue.lock();
        match place {
            Some(place)
                if queue.waiting.first() == Some(&place.ticket)
                    && (!is_over || place.runs == queue.runs) => {}
            Some(place) => {
                place.runs = queue.runs;
                return None;
            }
            None => {
                let (ticket, runs) = (queue.next_ticket, queue.runs);
                queue.next_ticket += 1;
                queue.waiting.insert(ticket);
                self.is_awaited.store(true, Ordering::Relaxed);
                let turns = Arc::clone(self);
                *place = Some(Place {
                    turns,
                    ticket,
                    runs,
                });
                return None;
            }
        }
        if is_over {
            // Nothing has run since this connection yielded.
            self.spent.store(0, Ordering::Relaxed);
        }
        drop(queue);
        *place = None;
        Some(turn(now()))
    }

    /// Begins a short command that may yet take long, because others are told of it; `None` without a
    /// clock.
    pub(crate) fn begin_short(&self) -> Option<Turn> {
        self.stopwatch.map(|now| Turn {
            began: now(),
            is_short: true,
        })
    }

    /// Ends a part of a command whose connection goes on with it as soon as it has yielded: before the others
    /// that wait, so that what it keeps meanwhile is in memory once.
    pub(crate) fn end_part(self: &Arc<Self>, turn: Turn, place: &mut Option<Place>) {
        self.end(turn);
        let mut queue = self.queue.lock();
        let first = queue.waiting.first().copied();
        let ticket = first.unwrap_or(queue.next_ticket).saturating_sub(1);
        queue.waiting.insert(ticket);
        self.is_awaited.store(true, Ordering::Relaxed);
        *place = Some(Place {
            turns: Arc::clone(self),
            ticket,
            runs: queue.runs,
        });
    }

    /// Returns whether commands wait for their turn at all.
    pub(crate) const fn are_taken(&self) -> bool {
        self.stopwatch.is_some()
    }

    /// Ends a command; returns whether its connection had better yield.
    pub(crate) fn end(&self, turn: Turn) -> bool {
        let Some(now) = self.stopwatch else {
            return false;
        };
        if !turn.is_short {
            self.queue.lock().runs += 1;
        }
        let took = u64::try_from((now() - turn.began).as_nanos()).unwrap_or(u64::MAX);
        self.spent.fetch_add(took, Ordering::Relaxed) + took > SPENT_MAX_NS
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queue = self.turns.queue.lock();
        queue.waiting.remove(&self.ticket);
        let is_awaited = !queue.waiting.is_empty();
        self.turns.is_awaited.store(is_awaited, Ordering::Relaxed);
    }
}

/// How long such commands take in all before others are served; the last one of them may take longer.
const SPENT_MAX_NS: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each look at this clock takes 1.5 ms.
    fn slow() -> Duration {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        Duration::from_micros(1_500) * u32::try_from(LOOKS.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    #[test]
    fn long_commands_run_one_by_one_in_their_order() {
        let turns = Turns::new(Some(slow));
        let run = |place: &mut Option<Place>| {
            let turn = turns.begin(place);
            turn.is_some_and(|turn| {
                turns.end(turn);
                true
            })
        };
        let mut places = [None, None, None];
        assert!(run(&mut None) && run(&mut None), "there is time for two");
        // Each round is a look for input: all that are refused have yielded.
        assert!(!places.iter_mut().any(run));
        let mut whose = Vec::new();
        for round in 0..6 {
            for (number, place) in places.iter_mut().enumerate() {
                if place.is_some() && run(place) {
                    whose.push((round, number));
                }
            }
        }
        // After two of them, the third has not yielded yet.
        assert_eq!(whose, [(0, 0), (0, 1), (1, 2)]);
    }

    #[test]
    fn who_leaves_the_queue_holds_up_nobody() {
        let turns = Turns::new(Some(|| Duration::ZERO));
        turns.spent.store(SPENT_MAX_NS + 1, Ordering::Relaxed);
        let (mut first, mut second) = (None, None);
        assert!(turns.begin(&mut first).is_none() && turns.begin(&mut second).is_none());
        drop(first);
        assert!(turns.begin(&mut second).is_some());
        assert!(second.is_none());
    }

    #[test]
    fn a_part_goes_on_before_those_who_wait() {
        let turns = Turns::new(Some(|| Duration::ZERO));
        let (mut first, mut second) = (None, None);
        let turn = turns.begin(&mut first).unwrap();
        turns.end_part(turn, &mut first);
        assert!(turns.begin(&mut second).is_none(), "the first goes on");
        let turn = turns.begin(&mut first).unwrap();
        turns.end_part(turn, &mut first);
        assert!(turns.begin(&mut second).is_none());
        let turn = turns.begin(&mut first).unwrap();
        assert!(first.is_none() && !turns.end(turn));
        assert!(turns.begin(&mut second).is_some());
    }

    #[test]
    fn without_a_clock_everybody_has_a_turn() {
        let turns = Turns::new(None);
        let turn = turns.begin(&mut None).unwrap();
        assert!(!turns.end(turn));
    }
}
