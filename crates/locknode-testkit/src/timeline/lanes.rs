//! Where each client and node has its lane, and where in it each bar has its row.

use std::collections::BTreeMap;

use crate::fault::Who;
use crate::history::KeyNo;
use crate::span::SimTime;

/// What is to be given a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The number of the client or node.
    pub(crate) lane: u8,
    pub(crate) key: KeyNo,
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
    /// It may stand over others, and needs no row for itself.
    pub(crate) is_ghost: bool,
}

/// The lanes of all clients or of all nodes.
#[derive(Debug)]
pub(crate) struct Rows {
    /// By lane, how many rows it has.
    pub(crate) counts: Vec<u32>,
    /// By place, its row in its lane; in the order of the places.
    pub(crate) rows: Vec<u32>,
    /// The rows that begin a key, when each key has its own: by lane, row and key.
    pub(crate) keys: Vec<(u8, u32, KeyNo)>,
}

/// One lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) y: u32,
    pub(crate) height: u32,
}

/// All lanes, in pixels from the top.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub(crate) clients: Vec<Lane>,
    pub(crate) nodes: Vec<Lane>,
    pub(crate) row_height: u32,
    /// Where clients end and nodes begin.
    pub(crate) strip: Lane,
    pub(crate) top: u32,
    pub(crate) bottom: u32,
}

impl Rows {
    /// Rows for all places, which come in the order in which they begin. With `keys`, each of them has its own rows.
    pub(crate) fn of(lanes: u8, places: &[Place], keys: Option<&[KeyNo]>) -> Self {
        let group = |place: &Place| keys.map_or(0, |_| place.key);
        let rows_max = keys.map_or(ROWS_MAX, |_| ROWS_PER_KEY_MAX);
        // By lane and key: when the last bar of each row ends.
        let mut ends: BTreeMap<(u8, KeyNo), Vec<SimTime>> = BTreeMap::new();
        for lane in 0..lanes {
            for key in keys.unwrap_or(&[0]) {
                ends.insert((lane, *key), vec![SimTime::ZERO]);
            }
        }
        let subs: Vec<usize> = places
            .iter()
            .map(|place| {
                let rows = ends.entry((place.lane, group(place))).or_default();
                if place.is_ghost && keys.is_some() {
                    return 0;
                }
                let free = rows.iter().position(|until| *until <= place.from);
                let row = free.unwrap_or_else(|| rows.len().min(rows_max - 1));
                match rows.get_mut(row) {
                    Some(until) => *until = place.until.max(*until),
                    None => rows.push(place.until),
                }
                row
            })
            .collect();
        Self::stacked(lanes, places, &subs, &ends, keys.is_some())
    }

    fn stacked(
        lanes: u8,
        places: &[Place],
        subs: &[usize],
        ends: &BTreeMap<(u8, KeyNo), Vec<SimTime>>,
        is_by_key: bool,
    ) -> Self {
        let mut counts = vec![0_u32; lanes.into()];
        let mut starts = BTreeMap::new();
        let mut keys = Vec::new();
        for ((lane, key), rows) in ends {
            let Some(count) = counts.get_mut(usize::from(*lane)) else {
                continue;
            };
            starts.insert((*lane, *key), *count);
            if is_by_key {
                keys.push((*lane, *count, *key));
            }
            *count += u32::try_from(rows.len()).unwrap_or(1);
        }
        let row = |(place, sub): (&Place, &usize)| {
            let key = if is_by_key { place.key } else { 0 };
            let start = starts.get(&(place.lane, key)).copied().unwrap_or(0);
            start + u32::try_from(*sub).unwrap_or(0)
        };
        let rows = places.iter().zip(subs).map(row).collect();
        Self { counts, rows, keys }
    }
}

impl Lanes {
    /// All lanes below `top`, with `strip` pixels between clients and nodes.
    pub(crate) fn new(top: u32, clients: &Rows, nodes: &Rows, strip: u32) -> Self {
        let rows: u32 = clients.counts.iter().chain(&nodes.counts).sum();
        let row_height = match rows {
            ..=12 => 22,
            13..=20 => 18,
            21..=32 => 15,
            _ => 14,
        };
        let lanes = |rows: &Rows, y: &mut u32| {
            let lane = |count: &u32| {
                let height = (*count).max(1) * row_height + 2 * LANE_PAD;
                let lane = Lane { y: *y, height };
                *y += height + LANE_GAP;
                lane
            };
            rows.counts.iter().map(lane).collect::<Vec<Lane>>()
        };
        let mut y = top;
        let clients = lanes(clients, &mut y);
        let middle = Lane {
            y,
            height: strip.saturating_sub(LANE_GAP),
        };
        y += strip;
        Self {
            clients,
            nodes: lanes(nodes, &mut y),
            row_height,
            strip: middle,
            top,
            bottom: y,
        }
    }

    pub(crate) fn of(&self, who: Who) -> Option<Lane> {
        match who {
            Who::Node(node) => self.node(node),
            Who::Client(client) => self.client(client),
        }
    }

    pub(crate) fn client(&self, client: u8) -> Option<Lane> {
        self.clients.get(usize::from(client)).copied()
    }

    pub(crate) fn node(&self, node: u8) -> Option<Lane> {
        self.nodes.get(usize::from(node)).copied()
    }
}

impl Lane {
    /// The top of a row.
    pub(crate) const fn row(self, row: u32, row_height: u32) -> u32 {
        self.y + LANE_PAD + row * row_height
    }

    pub(crate) const fn bottom(self) -> u32 {
        self.y + self.height
    }
}

/// Room at the edges of a lane, where arrows end and signs stand out.
pub(crate) const LANE_PAD: u32 = 4;

const LANE_GAP: u32 = 5;

/// As many bars at one time in one lane are told apart; more stand over each other in the last row, for a lane has to stay
/// one.
const ROWS_MAX: usize = 6;

/// The same where each key has rows of its own.
const ROWS_PER_KEY_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn places(places: &[(u8, KeyNo, u64, u64)]) -> Vec<Place> {
        let place = |(lane, key, from, until): &(u8, KeyNo, u64, u64)| Place {
            lane: *lane,
            key: *key,
            from: SimTime::from_nanos(*from),
            until: SimTime::from_nanos(*until),
            is_ghost: false,
        };
        places.iter().map(place).collect()
    }

    #[test]
    fn bars_of_one_time_have_different_rows() {
        let bars = places(&[
            (0, 0, 0, 10),
            (0, 1, 5, 15),
            (0, 0, 10, 20),
            (1, 0, 12, 13),
            (0, 0, 14, 20),
        ]);
        let packed = Rows::of(2, &bars, None);
        assert_eq!(
            (packed.counts, packed.rows),
            (vec![3, 1], vec![0, 1, 0, 0, 2])
        );
        let by_key = Rows::of(2, &bars, Some(&[0, 1]));
        assert_eq!(
            (by_key.counts, by_key.rows),
            (vec![3, 2], vec![0, 2, 0, 0, 1])
        );
        assert_eq!(by_key.keys, [(0, 0, 0), (0, 2, 1), (1, 0, 0), (1, 1, 1)]);
    }

    #[test]
    fn a_lane_does_not_grow_without_end() {
        let bars: Vec<Place> = (0..100).flat_map(|_| places(&[(0, 0, 0, 10)])).collect();
        assert_eq!(Rows::of(1, &bars, None).counts, [6]);
        assert_eq!(Rows::of(1, &bars, Some(&[0])).counts, [3]);
        // Lanes of nobody are empty, and what belongs to no lane harms nothing.
        let strangers = places(&[(9, 4, 0, 10)]);
        assert_eq!(Rows::of(2, &strangers, None).counts, [1, 1]);
        assert_eq!(Rows::of(2, &strangers, Some(&[4])).counts, [1, 1]);
    }

    #[test]
    fn lanes_stand_below_each_other() {
        let rows = |counts: &[u32]| Rows {
            counts: counts.to_vec(),
            rows: Vec::new(),
            keys: Vec::new(),
        };
        let lanes = Lanes::new(50, &rows(&[1, 2]), &rows(&[1, 0, 3]), 30);
        let all: Vec<&Lane> = lanes.clients.iter().chain(&lanes.nodes).collect();
        assert!(all.windows(2).all(|pair| pair[0].bottom() < pair[1].y));
        assert!(lanes.strip.y >= lanes.clients[1].bottom());
        assert!(lanes.strip.y + lanes.strip.height < lanes.nodes[0].y);
        assert!(lanes.bottom >= lanes.nodes[2].bottom());
        assert_eq!((lanes.client(2), lanes.node(3)), (None, None));
    }
}
