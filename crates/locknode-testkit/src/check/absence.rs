//! When nodes took part in no lock: down, or in quarantine.

use crate::history::{Event, History};
use crate::span::SimTime;

/// The absences of each node, in order and apart from each other.
#[derive(Debug)]
pub(crate) struct Absences {
    nodes: Vec<Vec<Absence>>,
}

/// A time in which a node took part in no lock. The end is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
}

impl Absences {
    /// A node of which the first thing to be heard is its start was not there before; another was there from the
    /// beginning.
    pub(crate) fn of(history: &History) -> Self {
        let mut nodes = vec![Vec::new(); usize::from(history.nodes)];
        let mut since: Vec<Option<SimTime>> = vec![None; nodes.len()];
        let mut is_known = vec![false; nodes.len()];
        for entry in &history.entries {
            let (node, is_away) = match entry.event {
                Event::Started {
                    node,
                    is_quarantined,
                    ..
                } => (node, is_quarantined),
                Event::Serving { node } => (node, false),
                Event::Down { node, .. } | Event::StaysDown { node, .. } => (node, true),
                _ => continue,
            };
            let node = usize::from(node);
            let (Some(absences), Some(since), Some(is_known)) = (
                nodes.get_mut(node),
                since.get_mut(node),
                is_known.get_mut(node),
            ) else {
                continue;
            };
            let is_first_start = !*is_known && matches!(entry.event, Event::Started { .. });
            *is_known = true;
            if is_first_start {
                *since = Some(SimTime::ZERO);
            }
            match (*since, is_away) {
                (None, true) => *since = Some(entry.at),
                (Some(from), false) => {
                    *since = None;
                    absences.push(Absence {
                        from,
                        until: entry.at,
                    });
                }
                _ => {}
            }
        }
        for (absences, since) in nodes.iter_mut().zip(since) {
            absences.extend(since.map(|from| Absence {
                from,
                until: SimTime::NEVER,
            }));
        }
        Self { nodes }
    }

    /// The absences of a node that have any moment in common with this time.
    pub(crate) fn within(&self, node: usize, from: SimTime, until: SimTime) -> &[Absence] {
        let Some(absences) = self.nodes.get(node) else {
            return &[];
        };
        let first = absences.partition_point(|absence| absence.until <= from);
        let last = absences.partition_point(|absence| absence.from < until);
        absences.get(first..last).unwrap_or_default()
    }
}
