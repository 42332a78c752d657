//! What happened, in a few sentences: who held what, and who held it at the same time as another.

use crate::history::index::{by_key, overlaps};
use crate::history::{Event, History, Window};
use crate::span::{SimTime, nanos};
use crate::timeline::markup::key_name;
use crate::timeline::scale::Scale;

/// Sentences on what the picture shows.
pub(crate) fn sentences(history: &History, windows: &[Window], scale: Scale) -> Vec<String> {
    if history.nodes == 0 && history.clients == 0 {
        return vec!["Nothing happened: there are no nodes and no clients.".to_owned()];
    }
    let shown = shown(windows, scale);
    let mut sentences = vec![who_held(history, &shown)];
    sentences.extend(rejections(history, scale));
    sentences
}

/// How much the picture shows.
pub(crate) fn numbers(history: &History, windows: &[Window], scale: Scale) -> String {
    let calls = count(history, scale, |event| matches!(event, Event::Calls { .. }));
    let faults = count(history, scale, |event| matches!(event, Event::Fault(_)));
    format!(
        "Shown: {} to {} of true time; {}, {}, {}, {} to acquire a lock, {}.",
        scale.from(),
        scale.until(),
        counted(history.nodes.into(), "node"),
        counted(history.clients.into(), "client"),
        counted(faults, "fault"),
        counted(calls, "call"),
        counted(shown(windows, scale).len(), "lock held"),
    )
}

fn shown(windows: &[Window], scale: Scale) -> Vec<Window> {
    let is_shown = |window: &&Window| scale.shows(window.from, window.until);
    windows.iter().filter(is_shown).copied().collect()
}

fn who_held(history: &History, shown: &[Window]) -> String {
    let mut overlaps: Vec<_> = by_key(shown)
        .into_values()
        .flat_map(|windows| overlaps(windows, |window| window.until))
        .collect();
    overlaps.sort_by_key(|(_, later)| (later.from, later.lock));
    let Some((earlier, later)) = overlaps.first() else {
        return if shown.is_empty() {
            "Nobody held a lock.".to_owned()
        } else {
            "No two clients ever held the same lock at the same time.".to_owned()
        };
    };
    let (one, other) = (earlier.client, later.client);
    let who = if one == other {
        format!("Client {one} believed twice at once that it held")
    } else {
        format!("Client {one} and client {other} both believed they held")
    };
    let key = key_name(history, later.key);
    let until = earlier.until.min(later.until).min(history.end);
    let more = match overlaps.len() - 1 {
        0 => String::new(),
        1 => ", and there is one more such time".to_owned(),
        more => format!(", and there are {more} more such times"),
    };
    let (from, until) = rounded(later.from, until);
    format!("{who} \"{key}\" from {from} to {until}{more}.")
}

/// Both moments without the digits that say nothing when one looks at the time between them.
fn rounded(from: SimTime, until: SimTime) -> (SimTime, SimTime) {
    let between = nanos(until.since(from));
    let mut step: u64 = 1;
    while step <= between / 1000 {
        step *= 10;
    }
    let round = |at: SimTime| SimTime::from_nanos(at.as_nanos() / step * step);
    (round(from), round(until))
}

fn rejections(history: &History, scale: Scale) -> Option<String> {
    let is_rejected = |event: &Event| {
        matches!(
            event,
            Event::Wrote {
                is_accepted: false,
                ..
            }
        )
    };
    match count(history, scale, is_rejected) {
        0 => None,
        1 => Some(
            "The resource rejected a write, for a higher fencing token had come before.".into(),
        ),
        many => Some(format!(
            "The resource rejected {many} writes, for higher fencing tokens had come before."
        )),
    }
}

fn count(history: &History, scale: Scale, is_meant: impl Fn(&Event) -> bool) -> usize {
    let shown = |at: SimTime| scale.shows(at, at);
    let meant = history
        .entries
        .iter()
        .filter(|entry| is_meant(&entry.event));
    meant.filter(|entry| shown(entry.at)).count()
}

/// `1 node`, `2 nodes`; of several words, the first is the one that is counted.
fn counted(number: usize, what: &str) -> String {
    let (noun, rest) = what.split_once(' ').unwrap_or((what, ""));
    let space = if rest.is_empty() { "" } else { " " };
    match number {
        0 => format!("no {noun}s{space}{rest}"),
        1 => format!("1 {noun}{space}{rest}"),
        _ => format!("{number} {noun}s{space}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::KeyNo;

    #[test]
    fn the_sentence_says_who_held_what_at_the_same_time() {
        let both = "both believed they held";
        // Client, key, from and until.
        type Row = (u8, KeyNo, u64, u64);
        let rows: [(&[Row], &str); 7] = [
            (&[], "Nobody held a lock."),
            (
                &[(0, 0, 1, 5), (1, 0, 5, 9), (2, 1, 2, 8)],
                "No two clients ever held the same lock at the same time.",
            ),
            (
                &[(0, 0, 100, 500), (1, 0, 400, 900)],
                &format!("Client 0 and client 1 {both} \"k\" from 400ns to 500ns."),
            ),
            (
                &[(2, 1, 100, 900), (2, 1, 300, 400)],
                "Client 2 believed twice at once that it held \"l\" from 300ns to 400ns.",
            ),
            // The long one is still held when the third begins.
            (
                &[(0, 0, 0, 90), (1, 0, 10, 20), (2, 0, 30, 40)],
                &format!(
                    "Client 0 and client 1 {both} \"k\" from 10ns to 20ns, and there is one more such time."
                ),
            ),
            // A client that acquired it when it had expired never held it.
            (
                &[(0, 0, 0, 90), (1, 0, 10, 10)],
                "No two clients ever held the same lock at the same time.",
            ),
            // Digits that say nothing are left out.
            (
                &[
                    (0, 0, 0, 9_000_000_123),
                    (1, 0, 8_000_000_077, 9_900_000_000),
                ],
                &format!("Client 0 and client 1 {both} \"k\" from 8s to 9s."),
            ),
        ];
        for (windows, sentence) in rows {
            let window = |(client, key, from, until): &Row| Window {
                client: *client,
                lock: 0,
                key: *key,
                attempt: 0,
                fencing: None,
                called: SimTime::ZERO,
                from: SimTime::from_nanos(*from),
                until: SimTime::from_nanos(*until),
                extensions: 0,
            };
            let windows: Vec<Window> = windows.iter().map(window).collect();
            let history = History {
                clients: 3,
                end: SimTime::NEVER,
                keys: vec!["k".into(), "l".into()],
                ..History::default()
            };
            let scale = Scale::new(SimTime::ZERO, SimTime::from_nanos(10_000_000_000));
            assert_eq!(sentences(&history, &windows, scale), [sentence]);
        }
    }
}
