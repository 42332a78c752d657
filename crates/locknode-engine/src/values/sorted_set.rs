//! Members in the order of their scores, as the queues of fair locks and the holders of semaphores
//! are kept.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::ELEMENT_BYTES;
use super::table::{Scored, Table};

/// A sorted set.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedSet {
    scores: Table<Scored>,
    order: BTreeSet<(Score, Box<[u8]>)>,
}

/// A number that is never NaN, and so has an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score(f64);

impl PartialEq for SortedSet {
    fn eq(&self, other: &Self) -> bool {
        self.scores == other.scores
    }
}

impl Score {
    /// Returns the score; `None` for NaN.
    pub(crate) fn new(score: f64) -> Option<Self> {
        // Negative zero sorts like zero.
        (!score.is_nan()).then_some(Self(score + 0.0))
    }

    pub(crate) const fn get(self) -> f64 {
        self.0
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl SortedSet {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    /// Returns the bytes that the members occupy, about.
    pub(crate) fn bytes(&self) -> usize {
        // Each member is in the order, too.
        self.scores.bytes() * 2
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<Score> {
        self.scores.get(member).map(|it| it.score)
    }

    /// Adds a member, or moves it; returns its score before.
    pub(crate) fn insert(&mut self, member: &[u8], score: Score) -> Option<Score> {
        let member = Box::from(member);
        let scored = Scored { member, score };
        let old = (self.scores.put(scored.clone())).map(|old| old.score);
        if let Some(old) = old {
            self.order.remove(&(old, scored.member.clone()));
        }
        self.order.insert((score, scored.member));
        old
    }

    /// Removes a member; returns whether it was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(Scored { member, score }) = self.scores.remove(member) else {
            return false;
        };
        self.order.remove(&(score, member))
    }

    /// Returns the members and scores in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], Score)> {
        self.order.iter().map(|(score, member)| (&**member, *score))
    }

    /// Returns the members whose scores are within bounds, in order.
    pub(crate) fn within(
        &self,
        min: Bound<Score>,
        max: Bound<Score>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], Score)> {
        // The empty member is before every other one of the same score.
        let start = match min {
            Bound::Included(score) => Bound::Included((score, Box::default())),
            Bound::Excluded(score) => above(score),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match max {
            Bound::Included(score) => above(score),
            Bound::Excluded(score) => Bound::Included((score, Box::default())),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match end {
            Bound::Included(place) => Bound::Excluded(place),
            end => end,
        };
        let is_empty = match (&start, &end) {
            (Bound::Included(start), Bound::Excluded(end)) => start >= end,
            _ => matches!(min, Bound::Excluded(Score(f64::INFINITY))),
        };
        let range = (!is_empty).then(|| self.order.range((start, end)));
        let members = range.into_iter().flatten();
        members.map(|(score, member)| (&**member, *score))
    }
}

/// The place after all members of this score.
fn above(score: Score) -> Bound<(Score, Box<[u8]>)> {
    match score.get() {
        f64::INFINITY => Bound::Unbounded,
        score => Bound::Included((Score(score.next_up() + 0.0), Box::default())),
    }
}

const _: () = assert!(ELEMENT_BYTES >= size_of::<(Score, Box<[u8]>)>());
