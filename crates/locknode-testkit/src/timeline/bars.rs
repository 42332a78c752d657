//! What takes time, as bars: conditions of nodes, what they hold, what clients believe, and who stands still.

use crate::history::index::{Absence, Call, Holding, Index, Outcome, Standstill};
use crate::history::{Event, Window};
use crate::span::SimTime;
use crate::timeline::lanes::Lane;
use crate::timeline::markup::{Pixels, Tag, clipped, key_name};
use crate::timeline::moment::fencing_token;
use crate::timeline::picture::Picture;
use crate::timeline::scale::WIDTH;

impl Picture<'_> {
    /// The ground of each lane; what is down stands out of it.
    pub(crate) fn grounds(&mut self) {
        for lane in self.lanes.clients.iter().chain(&self.lanes.nodes) {
            let ground = Tag::new(&mut self.out, "rect").set("class", "ln-ground");
            let ground = ground.set("x", 0).set("y", lane.y);
            ground
                .set("width", WIDTH)
                .set("height", lane.height)
                .set("data-fixed", 1)
                .end();
        }
    }

    pub(crate) fn absences(&mut self, absences: &[Absence]) {
        for absence in absences {
            let who = absence.who;
            let Some(lane) = self.lanes.of(who) else {
                continue;
            };
            let span = (absence.from, absence.until);
            let title = |what: &str| format!("{who} is {what} from {} to {}", span.0, span.1);
            match self.why_absent(absence) {
                why if absence.is_quarantined => {
                    let title = title("up but quarantined");
                    self.bar("ln-quarantine", span, lane.y, lane.height)
                        .titled(&format!(
                            "{title}: it stays out of every lock, for it may have forgotten some that still run ({why})"
                        ));
                    self.condition_name(lane, span, &["quarantine"]);
                }
                why if why.is_empty() => {
                    self.gap(lane, span, &title("down"));
                    self.condition_name(lane, span, &["down"]);
                }
                why => {
                    self.gap(lane, span, &format!("{}: {why}", title("down")));
                    self.condition_name(lane, span, &[&format!("down: {why}"), "down"]);
                }
            }
        }
    }

    fn why_absent(&self, absence: &Absence) -> String {
        let Some(place) = absence.place else {
            return "it has not started yet".to_owned();
        };
        match self.history.entries.get(place).map(|entry| &entry.event) {
            Some(Event::Started { reason, .. }) => (*reason).to_owned(),
            Some(Event::Down { how, .. }) => how.name().to_owned(),
            Some(Event::StaysDown { why, .. }) => format!("it could not start: {why}"),
            _ => String::new(),
        }
    }

    /// A hole in the lane, with a dark edge where it begins.
    fn gap(&mut self, lane: Lane, span: (SimTime, SimTime), title: &str) {
        self.bar("ln-down", span, lane.y, lane.height).titled(title);
        if span.0 > SimTime::ZERO {
            let x = Pixels(self.scale.x(span.0));
            let edge = Tag::new(&mut self.out, "line").set("class", "ln-fall");
            let edge = edge.set("x1", x).set("x2", x);
            edge.set("y1", lane.y)
                .set("y2", lane.bottom())
                .titled(title);
        }
    }

    fn condition_name(&mut self, lane: Lane, span: (SimTime, SimTime), names: &[&str]) {
        // Within the first row; what is forgotten stands there as an outline.
        let y = lane.row(0, self.lanes.row_height) + self.lanes.row_height / 2 + 4;
        let names: Vec<String> = names.iter().copied().map(str::to_owned).collect();
        self.label(span, y, &names);
    }

    pub(crate) fn holdings(&mut self, holdings: &[Holding], rows: &[u32]) {
        for (held, row) in holdings.iter().zip(rows) {
            let Some(lane) = self.lanes.node(held.node) else {
                continue;
            };
            let height = self.lanes.row_height;
            let y = lane.row(*row, height);
            let span = (held.from, held.until);
            let title = self.holding_title(held);
            let color = self.class(held.client, held.attempt);
            if held.is_forgotten {
                let class = format!("{color} ln-gone");
                self.bar(&class, span, y + 2, height - 4).titled(&title);
                continue;
            }
            self.bar(&color, span, y + 1, height - 2).titled(&title);
            for at in &held.extended {
                if self.scale.shows(*at, *at) {
                    self.sign("extended", *at, y + 1).titled(&format!(
                        "at {at} node {} extended the lock; its deadline was {} in the end",
                        held.node, held.ends
                    ));
                }
            }
            let key = key_name(self.history, held.key);
            let names = match held.client {
                Some(client) if self.has_key_rows => vec![
                    format!("client {client} {key}"),
                    format!("client {client}"),
                    format!("c{client}"),
                ],
                // The colour shows the client.
                Some(client) => vec![format!("client {client} {key}"), key],
                None => vec![key],
            };
            self.label(span, y + height / 2 + 4, &names);
        }
    }

    fn holding_title(&self, held: &Holding) -> String {
        let key = key_name(self.history, held.key);
        let node = held.node;
        let whose = match held.client {
            Some(client) => format!("client {client} (attempt {})", held.attempt),
            None => format!("attempt {}", held.attempt),
        };
        if held.is_forgotten {
            return format!(
                "node {node} had granted {key} to {whose} until {}, went down at {} and did not know of it until {}",
                held.ends, held.from, held.until
            );
        }
        let restored = if held.is_restored {
            ", read from its log"
        } else {
            ""
        };
        let extended = extensions(held.extended.len() as u64);
        let success = if self.shades.contains_key(&held.attempt) {
            "Its client acquired the lock by it"
        } else {
            "No client is known to have acquired the lock by it"
        };
        format!(
            "node {node} held {key} for {whose} from {} to {}, when {}{restored}; {extended}. {success}.",
            held.from, held.until, held.ending
        )
    }

    pub(crate) fn calls(&mut self, index: &Index, rows: &[u32]) {
        for (call, row) in index.calls.iter().zip(rows) {
            let Some(lane) = self.lanes.client(call.client) else {
                continue;
            };
            let height = self.lanes.row_height;
            let y = lane.row(*row, height);
            let key = key_name(self.history, call.key);
            let window = call.window.and_then(|place| index.windows.get(place));
            let attempt = window.map_or(u32::MAX, |window| window.attempt);
            let color = self.class(Some(call.client), attempt);
            let result = match call.outcome {
                Outcome::Acquired => "got it".to_owned(),
                Outcome::Failed(why) => format!("did not get it: {why}"),
                Outcome::Died => "did not get it: its process ended".to_owned(),
                Outcome::Open => "had no answer when the run ended".to_owned(),
            };
            let calling = (call.called, call.decided.min(self.history.end));
            let title = format!(
                "client {} asked for {key} from {} to {} and {result}",
                call.client, calling.0, calling.1
            );
            let class = format!("{color} ln-call");
            self.bar(&class, calling, y + height / 2 - 2, 5)
                .titled(&title);
            let Some(window) = window else { continue };
            let span = (window.from, window.until);
            let token = fencing_token(window.fencing);
            let short = window.fencing.map(short_token).unwrap_or_default();
            let ending = self.belief_ending(call, window);
            let title = format!(
                "client {} believed that it held {key} from {} to {} ({token}, attempt {}, {}): {ending}",
                call.client,
                window.from,
                window.until,
                window.attempt,
                extensions(window.extensions)
            );
            let class = format!("{color} ln-held");
            self.bar(&class, span, y + 1, height - 2).titled(&title);
            let long = format!("holds {key} {short}");
            let middle = format!("{key} {short}");
            let names = if self.has_key_rows {
                vec![long, middle, short]
            } else {
                vec![long, middle, clipped(&key, 8)]
            };
            self.label(span, y + height / 2 + 4, &names);
        }
    }

    /// What ended the belief in a lock.
    fn belief_ending(&self, call: &Call, window: &Window) -> String {
        if window.until > self.history.end {
            return "the run ended before that".to_owned();
        }
        let let_go = call.let_go.filter(|(at, _)| *at < call.valid_until);
        let entry = let_go.and_then(|(_, place)| self.history.entries.get(place));
        match entry.map(|entry| &entry.event) {
            Some(Event::Releases { is_left: true, .. }) => {
                "it then left the lock to its TTL".to_owned()
            }
            Some(Event::Releases { .. }) => "it then began to release".to_owned(),
            Some(Event::Lost { why, .. }) => {
                format!("it was then told that the lock is lost ({why})")
            }
            Some(_) => "its process then ended".to_owned(),
            None => "its clock then said that the validity was over".to_owned(),
        }
    }

    /// Who stands still, over all that is in the lane.
    pub(crate) fn stops(&mut self, stops: &[Standstill]) {
        for stop in stops {
            let (who, how, from, until) = (stop.who, stop.how, stop.from, stop.until);
            let Some(lane) = self.lanes.of(who) else {
                continue;
            };
            let title = format!(
                "{who} stands still from {from} to {until}: {how} ({})",
                what_stops(how)
            );
            self.bar("ln-stop", (from, until), lane.y, lane.height)
                .titled(&title);
            let y = lane.bottom() - 3;
            self.label((from, until), y, &[how.to_owned()]);
        }
    }
}

fn extensions(count: impl Into<u64>) -> String {
    match count.into() {
        0 => "not extended".to_owned(),
        1 => "extended once".to_owned(),
        count => format!("extended {count} times"),
    }
}

/// The number, or its last digits when it is long: tokens of nodes that lost a disk begin with a time.
fn short_token(token: u64) -> String {
    match token {
        ..1_000_000 => format!("#{token}"),
        _ => format!("#..{:06}", token % 1_000_000),
    }
}

fn what_stops(how: &str) -> &'static str {
    match how {
        "pause" => "the process does nothing, its clocks go on",
        "suspend" => "the machine sleeps, and of its clocks only boottime and the wall clock go on",
        "freeze" => "the machine stands still with all its clocks, and cannot notice",
        _ => "it does nothing",
    }
}

#[cfg(test)]
mod tests {
    use crate::history::tests::empty;
    use crate::history::{History, LeftOut};
    use crate::timeline::Timeline;

    fn standstills(count: u64) -> History {
        let mut history = empty(1, 1, count * 10, 0);
        let stop = |n| format!("{} n0 pauses until {};", n * 10, n * 10 + 5);
        history.tell(&(0..count).map(stop).collect::<String>());
        history
    }

    #[test]
    fn of_too_many_standstills_the_nearest_are_drawn_and_the_others_told_of() {
        for (count, drawn, is_told) in [(500, 500, false), (700, 500, true)] {
            let page = Timeline::new(&standstills(count)).svg();
            let shown = page.matches("\"ln-stop\"").count();
            assert_eq!(shown, drawn + 1, "with the one of the legend");
            let note = "Of 700 standstills, only the 500 nearest to 0s are drawn.";
            assert_eq!(page.contains(note), is_told);
        }
    }

    #[test]
    fn a_picture_says_that_messages_are_missing() {
        let mut history = standstills(1);
        let note = "12 messages were not kept";
        assert!(!Timeline::new(&history).svg().contains("not kept"));
        history.left_out = LeftOut {
            messages: 12,
            ..LeftOut::default()
        };
        assert!(Timeline::new(&history).svg().contains(note));
    }
}
