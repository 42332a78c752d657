//! What is drawn when there is too much: what is nearest to the most important moment.

use std::collections::BTreeSet;

use crate::span::{SimTime, nanos};
use crate::timeline::scale::Scale;

/// Chooses what is drawn when there is too much.
#[derive(Debug)]
pub(crate) struct Selection<'n> {
    pub(crate) scale: Scale,
    /// The most important moment.
    pub(crate) focus: SimTime,
    /// Where it is noted what is missing.
    pub(crate) notes: &'n mut Vec<String>,
}

impl Selection<'_> {
    /// Of all that is in the shown time, the nearest to the focus.
    pub(crate) fn only<T>(
        &mut self,
        items: &mut Vec<T>,
        count_max: usize,
        what: &str,
        span: impl Fn(&T) -> (SimTime, SimTime),
    ) {
        items.retain(|item| {
            let (from, until) = span(item);
            self.scale.shows(from, until)
        });
        if items.len() <= count_max {
            return;
        }
        let distance = |item: &T| {
            let (from, until) = span(item);
            nanos(from.since(self.focus)).max(nanos(self.focus.since(until)))
        };
        let mut near: Vec<(u64, usize)> = items.iter().map(distance).zip(0..).collect();
        near.sort_unstable();
        near.truncate(count_max);
        let near: BTreeSet<usize> = near.into_iter().map(|(_, place)| place).collect();
        self.notes.push(format!(
            "Of {} {what}, only the {count_max} nearest to {} are drawn. Show a shorter time to see the others.",
            items.len(),
            self.focus
        ));
        let mut place = 0..;
        items.retain(|_| place.next().is_some_and(|place| near.contains(&place)));
    }
}
