//! What takes no time, as signs: messages, faults, what happened in a moment; and the bands of violations.

use std::collections::BTreeMap;

use crate::fault::Who;
use crate::history::index::Call;
use crate::history::{LockNo, Message};
use crate::span::SimTime;
use crate::timeline::Mark;
use crate::timeline::lanes::LANE_PAD;
use crate::timeline::markup::{Pixels, Tag, clipped};
use crate::timeline::moment::{Moment, Sign};
use crate::timeline::picture::{
    COLORS, FLAG_HEAD, FLAG_ROW, MARK_ROW, MARK_ROWS_MAX, POLES_MAX, Picture, flag_places,
    text_width,
};
use crate::timeline::scale::WIDTH;

impl Picture<'_> {
    /// Messages as arrows between the lanes; hidden when they are too many to be told apart.
    pub(crate) fn messages(&mut self, messages: &[Message], is_crowded: bool) {
        let group = Tag::new(&mut self.out, "g").set("id", "ln-messages");
        if is_crowded {
            group.set("display", "none").open()
        } else {
            group.open()
        }
        for message in messages {
            let lanes = (
                self.lanes.client(message.client),
                self.lanes.node(message.node),
            );
            let (Some(client), Some(node)) = lanes else {
                continue;
            };
            let client = (Who::Client(message.client), client.bottom());
            let node = (Who::Node(message.node), node.y + LANE_PAD);
            let ((from, y1), (to, y2)) = if message.is_request {
                (client, node)
            } else {
                (node, client)
            };
            let text = clipped(&message.text, MESSAGE_CHARS_MAX);
            let arrived = message.arrived.map_or_else(
                || "did not arrive".to_owned(),
                |at| format!("arrived at {at}"),
            );
            let title = format!(
                "{from} to {to}: {text} (sent at {}, {arrived})",
                message.sent
            );
            let color = usize::from(message.client) % COLORS;
            let is_lost = message.arrived.is_none();
            // What is lost ends on its way.
            let y2 = if is_lost { (y1 + 2 * y2) / 3 } else { y2 };
            let x1 = self.scale.x(message.sent);
            let x2 = self.scale.x(message.arrived.unwrap_or(message.sent));
            let line = Tag::new(&mut self.out, "line");
            let line = line.set("class", format_args!("ln-message m{color}"));
            let line = line.set("x1", Pixels(x1)).set("y1", y1);
            let line = line.set("x2", Pixels(x2)).set("y2", y2);
            if is_lost {
                line.titled(&title);
                self.sign("lost-message", message.sent, y2).titled(&title);
            } else {
                line.set("marker-end", "url(#ln-head)").titled(&title);
            }
        }
        self.out.push_str("</g>\n");
    }

    /// How many messages there were, in small steps of time, between clients and nodes.
    pub(crate) fn density(&mut self, messages: &[Message]) {
        if messages.is_empty() {
            return;
        }
        const STEP: u64 = 5_000;
        let mut counts =
            vec![(0_u32, 0_u32); usize::try_from(WIDTH * 1000 / STEP).unwrap_or(0) + 1];
        for message in messages {
            if !self.scale.shows(message.sent, message.sent) {
                continue;
            }
            let place = usize::try_from(self.scale.x(message.sent) / STEP).unwrap_or(0);
            if let Some((sent, lost)) = counts.get_mut(place) {
                *sent += 1;
                *lost += u32::from(message.arrived.is_none());
            }
        }
        let most = counts.iter().map(|(sent, _)| *sent).max();
        let most = most.unwrap_or(0).max(1);
        let strip = self.lanes.strip;
        Tag::new(&mut self.out, "g").set("id", "ln-density").open();
        for (place, (sent, lost)) in counts.into_iter().enumerate() {
            if sent == 0 {
                continue;
            }
            let x = place as u64 * STEP;
            let title = format!("{sent} messages in this time, {lost} of them did not arrive");
            for (class, count) in [("ln-density", sent), ("ln-density ln-lost", lost)] {
                let height = (count * strip.height).div_ceil(most);
                if height > 0 {
                    let bar = Tag::new(&mut self.out, "rect").set("class", class);
                    let bar = bar.set("x", Pixels(x)).set("width", Pixels(STEP - 1_000));
                    let bar = bar.set("y", strip.y + strip.height - height);
                    bar.set("height", height).titled(&title);
                }
            }
        }
        self.out.push_str("</g>\n");
    }

    pub(crate) fn moments(&mut self, moments: &[Moment], calls: &[Call], rows: &[u32]) {
        let locks = calls.iter().map(|call| call.lock);
        let rows: BTreeMap<LockNo, u32> = locks.zip(rows.iter().copied()).collect();
        for moment in moments {
            let Some(lane) = self.lanes.of(moment.who) else {
                continue;
            };
            let height = self.lanes.row_height;
            let row = moment.lock.and_then(|lock| rows.get(&lock).copied());
            let row = row.unwrap_or(0);
            let top = lane.row(row, height);
            let (id, y) = match moment.sign {
                Sign::Extended => ("extended", top + 1),
                Sign::NotExtended => ("not-extended", top + 1),
                Sign::Written => ("written", top + height - 1),
                Sign::WriteRejected => ("rejected", top + height - 2),
                Sign::Lost => ("lost", top + height / 2),
                Sign::Failed => ("failed", top + height / 2),
                Sign::Refused => ("refused", lane.y + lane.height - 4),
            };
            if let Some(since) = moment.since
                && self.scale.shows(since, moment.at)
            {
                let (x1, x2) = (self.scale.x(since), self.scale.x(moment.at));
                let line = Tag::new(&mut self.out, "line").set("class", "ln-write");
                let line = line.set("x1", Pixels(x1)).set("x2", Pixels(x2));
                line.set("y1", y).set("y2", y).end();
            }
            self.sign(id, moment.at, y).titled(&moment.text);
        }
    }

    /// A flag for each fault, whose pole goes through all lanes.
    pub(crate) fn flags(&mut self, faults: &[(SimTime, String)], y: u32) {
        let places = flag_places(faults, self.scale);
        let pole_end = match faults.len() {
            ..=POLES_MAX => self.lanes.bottom,
            _ => y + (self.flag_rows + 1) * FLAG_ROW,
        };
        self.out.push_str("<g id=\"ln-flags\">\n");
        for ((at, text), place) in faults.iter().zip(&places) {
            let x = self.scale.x(*at);
            let row_y = y + place.unwrap_or(self.flag_rows) * FLAG_ROW + 2;
            let title = format!("fault at {at}: {text}");
            let pole = Tag::new(&mut self.out, "line").set("class", "ln-pole");
            let pole = pole.set("x1", Pixels(x)).set("x2", Pixels(x));
            pole.set("y1", row_y).set("y2", pole_end).end();
            self.sign("flag", *at, row_y).titled(&title);
            let width = text_width(text) + FLAG_HEAD;
            let is_late = x + width > WIDTH * 1000;
            let text_x = if is_late {
                x.saturating_sub(3_000)
            } else {
                x + FLAG_HEAD
            };
            let name = Tag::new(&mut self.out, "text").set("class", "ln-flag");
            let name = name.set("text-anchor", if is_late { "end" } else { "start" });
            let name = name.set("x", Pixels(text_x)).set("y", row_y + 9);
            let name = name.set("data-w", Pixels(width)).set("data-x", Pixels(x));
            if place.is_some() {
                name.text(text);
            } else {
                name.set("display", "none").text(text);
            }
        }
        self.out.push_str("</g>\n");
    }

    /// The ground of each violation, behind all that happened in it.
    pub(crate) fn bands(&mut self, marks: &[&Mark], y: u32) {
        // The first is the most important one, and lies over the others.
        for (place, mark) in marks.iter().enumerate().rev() {
            let span = (mark.from, mark.until.max(mark.from));
            let (top, bottom) = (mark_y(y, place) + 15, self.lanes.bottom);
            let class = if place == 0 {
                "ln-band"
            } else {
                "ln-band ln-minor"
            };
            self.visible_bar(class, span, top, bottom - top).end();
        }
    }

    /// The edges of each violation, with a bracket and its text above the lanes.
    pub(crate) fn marks(&mut self, marks: &[&Mark], y: u32) {
        for (place, mark) in marks.iter().enumerate() {
            let span = (mark.from, mark.until.max(mark.from));
            let row_y = mark_y(y, place);
            let bottom = self.lanes.bottom;
            self.visible_bar("ln-edge", span, row_y + 15, bottom - row_y - 15)
                .end();
            let clients = mark.clients.iter().map(|client| Who::Client(*client));
            let all = clients.chain(mark.nodes.iter().map(|node| Who::Node(*node)));
            let lanes: Vec<_> = all.filter_map(|who| self.lanes.of(who)).collect();
            for lane in lanes.into_iter().take(LANES_PER_MARK_MAX) {
                let class = if place == 0 {
                    "ln-culprit"
                } else {
                    "ln-culprit ln-minor"
                };
                self.visible_bar(class, span, lane.y, lane.height).end();
            }
            let title = format!("{} to {}: {}", span.0, span.1, mark.text);
            self.visible_bar("ln-bracket", span, row_y + 14, 5)
                .titled(&title);
            // Those that share a row have brackets only.
            if place >= MARK_ROWS_MAX {
                continue;
            }
            let text = clipped(mark.text.lines().next().unwrap_or(""), MARK_CHARS_MAX);
            let width = text.chars().count() as u64 * MARK_CHAR_WIDTH;
            let x = self
                .scale
                .x(span.0)
                .min((WIDTH * 1000).saturating_sub(width));
            let line = Tag::new(&mut self.out, "text").set("class", "ln-mark");
            let line = line.set("x", Pixels(x)).set("y", row_y + 11);
            let line = line.set("data-w", Pixels(width));
            line.set("data-x", Pixels(self.scale.x(span.0))).text(&text);
        }
    }
}

/// The first ones have rows of their own.
fn mark_y(y: u32, place: usize) -> u32 {
    y + u32::try_from(place.min(MARK_ROWS_MAX - 1)).unwrap_or(0) * MARK_ROW
}

/// The words of a request fit.
const MESSAGE_CHARS_MAX: usize = 120;

/// The usual width of a character of a violation's text, which is large and bold.
const MARK_CHAR_WIDTH: u64 = 7_700;

/// The picture's width.
const MARK_CHARS_MAX: usize = 166;

const _: () = assert!(MARK_CHARS_MAX as u64 * MARK_CHAR_WIDTH <= WIDTH * 1000);

const LANES_PER_MARK_MAX: usize = 16;
