//! The picture: what stands where, and in which order it is painted.
//!
//! Whatever moves when somebody zooms is inside the element `plot` and has its place in the attributes `x`, `width`,
//! `x1` and `x2` alone, so that the page's script can move it without knowing what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::fault::{Fault, Who};
use crate::history::index::{Call, Holding, Index};
use crate::history::{AttemptNo, Event, History, KeyNo, Message, Window};
use crate::span::SimTime;
use crate::timeline::Mark;
use crate::timeline::lanes::{Lanes, Place, Rows};
use crate::timeline::legend;
use crate::timeline::markup::{Pixels, Tag, clipped};
use crate::timeline::moment::{self, Moment};
use crate::timeline::scale::{Scale, WIDTH};
use crate::timeline::selection::Selection;

/// A picture that is being painted.
#[derive(Debug)]
pub(crate) struct Picture<'h> {
    pub(crate) history: &'h History,
    pub(crate) scale: Scale,
    pub(crate) lanes: Lanes,
    pub(crate) out: String,
    /// The names of bars, which stand over all signs.
    labels: String,
    /// Class names of the attempts that succeeded.
    pub(crate) shades: BTreeMap<AttemptNo, u8>,
    /// Whether every row of a lane is of one key only, so that its bars need not name it.
    pub(crate) has_key_rows: bool,
    /// What is not in the picture.
    notes: Vec<String>,
    /// Where the texts of violations begin.
    marks_y: u32,
    /// Rows of flags with names; the others share one more.
    pub(crate) flag_rows: u32,
}

/// What is known before anything is painted.
#[derive(Debug)]
struct Subject {
    index: Index,
    moments: Vec<Moment>,
    messages: Vec<Message>,
    message_count: usize,
    faults: Vec<(SimTime, String)>,
    client_rows: Rows,
    node_rows: Rows,
    notes: Vec<String>,
}

/// The whole SVG element, with the lines of `head` above the picture.
pub(crate) fn svg(
    history: &History,
    index: Index,
    marks: &[Mark],
    scale: Scale,
    head: &[(&str, String)],
) -> String {
    let shown = |mark: &&Mark| scale.shows(mark.from, mark.until);
    let marks: Vec<&Mark> = marks.iter().filter(shown).take(MARKS_MAX).collect();
    let focus = marks.first().map_or(scale.from(), |mark| mark.from);
    let subject = Subject::of(history, index, scale, focus);
    let head_height = u32::try_from(head.len()).unwrap_or(0) * HEAD_LINE;
    let (flag_rows, has_nameless) = flag_rows(&subject.faults, scale);
    let flags_height = (flag_rows + u32::from(has_nameless)) * FLAG_ROW;
    let mark_rows = u32::try_from(marks.len().min(MARK_ROWS_MAX)).unwrap_or(0);
    let top = head_height + 8 + flags_height + mark_rows * MARK_ROW + AXIS;
    let strip = match subject.message_count {
        0 => 8,
        1..=MESSAGES_READABLE => 30,
        _ => 34,
    };
    let mut picture = Picture {
        history,
        scale,
        lanes: Lanes::new(top, &subject.client_rows, &subject.node_rows, strip),
        out: String::new(),
        labels: String::new(),
        shades: shades(&subject.index.windows),
        has_key_rows: !subject.node_rows.keys.is_empty(),
        notes: Vec::new(),
        flag_rows,
        marks_y: head_height + 8 + flags_height,
    };
    picture.paint(&subject, &marks, head, head_height);
    picture.out
}

impl Subject {
    fn of(history: &History, mut index: Index, scale: Scale, focus: SimTime) -> Self {
        let mut notes = Vec::new();
        let mut keep = Selection {
            scale,
            focus,
            notes: &mut notes,
        };
        let mut moments = moment::moments(history, &index);
        keep.only(&mut moments, MOMENTS_MAX, "signs", |moment| {
            (moment.since.unwrap_or(moment.at), moment.at)
        });
        let windows = &index.windows;
        keep.only(&mut index.calls, CALLS_MAX, "lock acts", |call| {
            (call.called, call_end(history, windows, call))
        });
        index.absences.retain(|it| it.from < it.until);
        keep.only(&mut index.absences, ABSENCES_MAX, "absences", |it| {
            (it.from, it.until)
        });
        keep.only(&mut index.holdings, HOLDINGS_MAX, "locks on nodes", |it| {
            (it.from, it.until)
        });
        index.holdings.sort_by_key(|it| (it.from, it.node));
        let stops = &mut index.standstills;
        keep.only(stops, STOPS_MAX, "standstills", |it| (it.from, it.until));
        let mut messages = history.messages.clone();
        let message_end = |message: &Message| message.arrived.unwrap_or(message.sent);
        messages.retain(|message| scale.shows(message.sent, message_end(message)));
        let message_count = messages.len();
        keep.only(&mut messages, MESSAGES_MAX, "messages", |message| {
            (message.sent, message_end(message))
        });
        let faults = history
            .entries
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Fault(text) => Some((entry.at, clipped(&flag_text(text), FLAG_CHARS_MAX))),
                _ => None,
            });
        let mut faults: Vec<(SimTime, String)> = faults.collect();
        keep.only(&mut faults, FAULTS_MAX, "faults", |(at, _)| (*at, *at));
        let (client_rows, node_rows) = rows(history, &index);
        Self {
            index,
            moments,
            messages,
            message_count,
            faults,
            client_rows,
            node_rows,
            notes,
        }
    }
}

impl Picture<'_> {
    fn paint(
        &mut self,
        subject: &Subject,
        marks: &[&Mark],
        head: &[(&str, String)],
        head_height: u32,
    ) {
        self.notes.extend(subject.notes.iter().cloned());
        let missing = self.history.left_out.messages;
        if missing > 0 {
            self.notes.push(format!(
                "{missing} messages were not kept, for they were too many: where no arrow is, there may have been some."
            ));
        }
        let index = &subject.index;
        let is_crowded = subject.message_count > MESSAGES_READABLE;
        if is_crowded {
            self.notes.push(format!(
                "The {} messages are too many to be arrows here: the strip between clients and nodes shows how many there \
                 were. They are drawn where no more than {MESSAGES_READABLE} are in view.",
                subject.message_count
            ));
        }
        let notes_y = self.lanes.bottom + AXIS + 6;
        let notes_height = u32::try_from(self.notes.len()).unwrap_or(0) * NOTE_LINE;
        let legend_y = notes_y + notes_height + 10;
        let height = legend_y + legend::HEIGHT;
        self.open(height);
        for (line, (class, text)) in head.iter().enumerate() {
            let y = u32::try_from(line).unwrap_or(0) * HEAD_LINE + 18;
            let head = Tag::new(&mut self.out, "text").set("class", class);
            head.set("x", 8).set("y", y).text(text);
        }
        self.names(&subject.client_rows, &subject.node_rows, is_crowded);
        Tag::new(&mut self.out, "svg")
            .set("id", "ln-plot")
            .set("x", GUTTER)
            .set("y", 0)
            .set("width", WIDTH)
            .set("height", notes_y)
            .open();
        self.grounds();
        self.absences(&index.absences);
        self.bands(marks, self.marks_y);
        self.axis();
        self.density(if is_crowded {
            &self.history.messages
        } else {
            &[]
        });
        self.messages(&subject.messages, is_crowded);
        let rows = &subject.node_rows.rows;
        self.holdings(&index.holdings, rows);
        self.calls(index, &subject.client_rows.rows);
        self.stops(&index.standstills);
        self.clocks();
        self.moments(&subject.moments, &index.calls, &subject.client_rows.rows);
        self.out.push_str(&std::mem::take(&mut self.labels));
        self.flags(&subject.faults, head_height + 8);
        self.marks(marks, self.marks_y);
        self.out.push_str("</svg>\n");
        for (line, note) in self.notes.iter().enumerate() {
            let y = notes_y + u32::try_from(line).unwrap_or(0) * NOTE_LINE + 10;
            let line = Tag::new(&mut self.out, "text").set("class", "ln-note");
            line.set("x", GUTTER).set("y", y).text(note);
        }
        legend::paint(&mut self.out, legend_y);
        self.out.push_str("</svg>\n");
    }

    fn open(&mut self, height: u32) {
        let width = u64::from(GUTTER) + WIDTH + 20;
        Tag::new(&mut self.out, "svg")
            .set("xmlns", "http://www.w3.org/2000/svg")
            .set("id", "ln")
            .set("viewBox", format_args!("0 0 {width} {height}"))
            .set("data-from", self.scale.from().as_nanos())
            .set("data-span", self.scale.span_ns())
            .set("data-flag-rows", self.flag_rows)
            .set("data-messages", MESSAGES_READABLE)
            .set("data-poles", POLES_MAX)
            .open();
        self.out.push_str("<style>");
        self.out.push_str(include_str!("picture.css"));
        self.out.push_str("</style>\n");
        self.out.push_str(include_str!("signs.svg"));
        Tag::new(&mut self.out, "rect")
            .set("class", "ln-paper")
            .set("width", width)
            .set("height", height)
            .end();
    }

    /// The names of the lanes, left of them.
    fn names(&mut self, client_rows: &Rows, node_rows: &Rows, is_crowded: bool) {
        let clients = (0..).map(Who::Client).zip(&self.lanes.clients);
        for (who, lane) in clients.chain((0..).map(Who::Node).zip(&self.lanes.nodes)) {
            let y = lane.y + lane.height / 2;
            if let Who::Client(client) = who {
                let color = usize::from(client) % COLORS;
                let swatch = Tag::new(&mut self.out, "rect");
                let swatch = swatch.set("class", format_args!("c{color} s0"));
                let swatch = swatch.set("x", 8).set("y", y.saturating_sub(6));
                swatch.set("width", 12).set("height", 12).end();
            }
            let name = Tag::new(&mut self.out, "text").set("class", "ln-name");
            name.set("x", 26).set("y", y + 4).text(&who.to_string());
        }
        if is_crowded {
            let y = self.lanes.strip.y + self.lanes.strip.height - 4;
            let name = Tag::new(&mut self.out, "text").set("class", "ln-key");
            name.set("x", GUTTER - 5).set("y", y).text("messages");
        }
        if self.history.keys.len() < 2 {
            return;
        }
        for (rows, lanes) in [
            (client_rows, &self.lanes.clients),
            (node_rows, &self.lanes.nodes),
        ] {
            for (lane, row, key) in &rows.keys {
                let Some(lane) = lanes.get(usize::from(*lane)) else {
                    continue;
                };
                let y = lane.row(*row, self.lanes.row_height) + self.lanes.row_height / 2 + 3;
                let name = Tag::new(&mut self.out, "text").set("class", "ln-key");
                let name = name.set("x", GUTTER - 5).set("y", y);
                name.text(&clipped(self.history.key(*key), 9));
            }
        }
    }

    /// A line and a name for each round moment, below and above the lanes.
    fn axis(&mut self) {
        self.out.push_str("<g id=\"ln-axis\">\n");
        let (top, bottom) = (self.lanes.top, self.lanes.bottom);
        for (at, name) in self.scale.ticks() {
            let x = self.scale.x(at);
            let line = Tag::new(&mut self.out, "line").set("class", "ln-grid");
            let line = line.set("x1", Pixels(x)).set("x2", Pixels(x));
            line.set("y1", top - 6).set("y2", bottom + 2).end();
            for y in [top - 9, bottom + 15] {
                let text = Tag::new(&mut self.out, "text").set("class", "ln-tick");
                let anchor = match x {
                    ..20_000 => "start",
                    x if x > WIDTH * 1000 - 20_000 => "end",
                    _ => "middle",
                };
                let text = text.set("text-anchor", anchor);
                text.set("x", Pixels(x)).set("y", y).text(&name);
            }
        }
        self.out.push_str("</g>\n");
    }

    /// The class of what belongs to an attempt: its client's colour, a shade of its own, and whether it succeeded.
    pub(crate) fn class(&self, client: Option<u8>, attempt: AttemptNo) -> String {
        let color = client.map_or_else(
            || "cx".to_owned(),
            |client| format!("c{}", usize::from(client) % COLORS),
        );
        match self.shades.get(&attempt) {
            Some(shade) => format!("{color} s{shade}"),
            None => format!("{color} ln-vain"),
        }
    }

    /// A bar from one moment to another.
    pub(crate) fn bar(
        &mut self,
        class: &str,
        span: (SimTime, SimTime),
        y: u32,
        height: u32,
    ) -> Tag<'_> {
        self.wide_bar(class, span, y, BAR_MIN).set("height", height)
    }

    /// A bar that is to be seen however short its time is.
    pub(crate) fn visible_bar(
        &mut self,
        class: &str,
        span: (SimTime, SimTime),
        y: u32,
        height: u32,
    ) -> Tag<'_> {
        let width = self.width(span);
        // For the page's script, which zooms.
        self.wide_bar(class, span, y, SEEN_MIN)
            .set("data-width", Pixels(width))
            .set("data-least", Pixels(SEEN_MIN))
            .set("height", height)
    }

    fn wide_bar(
        &mut self,
        class: &str,
        span: (SimTime, SimTime),
        y: u32,
        width_min: u64,
    ) -> Tag<'_> {
        let (x, width) = (self.scale.x(span.0), self.width(span));
        let bar = Tag::new(&mut self.out, "rect").set("class", class);
        let bar = bar.set("x", Pixels(x)).set("y", y);
        bar.set("width", Pixels(width.max(width_min)))
    }

    fn width(&self, span: (SimTime, SimTime)) -> u64 {
        self.scale.x(span.1).saturating_sub(self.scale.x(span.0))
    }

    /// The name of a bar: the first of these, from the longest on, for which there is room. The script chooses again.
    pub(crate) fn label(&mut self, span: (SimTime, SimTime), y: u32, names: &[String]) {
        let (x, room) = (self.scale.x(span.0), self.width(span));
        let mut label = Tag::new(&mut self.labels, "text")
            .set("class", "ln-label")
            .set("x", Pixels(x + 3_000))
            .set("y", y)
            .set("data-r", Pixels(room));
        let mut fitting = String::new();
        for (attribute, name) in ["data-0", "data-1", "data-2"].iter().zip(names) {
            let name = clipped(name, LABEL_CHARS_MAX);
            label = label.set(attribute, &name);
            if fitting.is_empty() && text_width(&name) <= room {
                fitting = name;
            }
        }
        label.text(&fitting);
    }

    /// One sign of the list in `signs.svg`.
    pub(crate) fn sign(&mut self, id: &str, at: SimTime, y: u32) -> Tag<'_> {
        let x = self.scale.x(at);
        let sign = Tag::new(&mut self.out, "use").set("href", format_args!("#ln-{id}"));
        sign.set("x", Pixels(x)).set("y", y)
    }
}

/// Rows for each key where there are few, and otherwise wherever there is room.
fn rows(history: &History, index: &Index) -> (Rows, Rows) {
    let used: BTreeSet<KeyNo> = (index.calls.iter().map(|call| call.key))
        .chain(index.holdings.iter().map(|held| held.key))
        .collect();
    let used: Vec<KeyNo> = used.into_iter().collect();
    let keys = (1..=KEYS_WITH_ROWS_MAX).contains(&used.len());
    let keys = keys.then_some(used.as_slice());
    let of_call = |call: &Call| Place {
        lane: call.client,
        key: call.key,
        from: call.called,
        until: call_end(history, &index.windows, call),
        is_ghost: false,
    };
    let places: Vec<Place> = index.calls.iter().map(of_call).collect();
    let client_rows = Rows::of(history.clients, &places, keys);
    let of_holding = |held: &Holding| Place {
        lane: held.node,
        key: held.key,
        from: held.from,
        until: held.until,
        is_ghost: held.is_forgotten,
    };
    let places: Vec<Place> = index.holdings.iter().map(of_holding).collect();
    (client_rows, Rows::of(history.nodes, &places, keys))
}

/// The end of a call and of what the client believed of it.
fn call_end(history: &History, windows: &[Window], call: &Call) -> SimTime {
    let window = call.window.and_then(|place| windows.get(place));
    let believed = window.map_or(SimTime::ZERO, |window| window.until);
    believed.max(call.decided.min(history.end))
}

/// Neighbours of one client differ.
fn shades(windows: &[Window]) -> BTreeMap<AttemptNo, u8> {
    let mut counts: BTreeMap<u8, u8> = BTreeMap::new();
    windows
        .iter()
        .map(|window| {
            let count = counts.entry(window.client).or_default();
            let shade = *count;
            *count = (shade + 1) % SHADES;
            (window.attempt, shade)
        })
        .collect()
}

/// What stands beside a flag: a fault that takes another one back says so.
fn flag_text(fault: &str) -> String {
    let ended = matches!(
        Fault::parse(fault),
        Ok(Fault::Delay(_, Duration::ZERO)
            | Fault::Noise(_, Duration::ZERO)
            | Fault::Rate(_, 0)
            | Fault::Slew(_, 0))
    );
    match fault.rsplit_once(' ').filter(|_| ended) {
        Some((what, _)) => format!("end of {what}"),
        None => fault.to_owned(),
    }
}

/// How many rows the names of the faults need, and whether there is a fault for whose name is no room.
fn flag_rows(faults: &[(SimTime, String)], scale: Scale) -> (u32, bool) {
    let places = flag_places(faults, scale);
    let last = places.iter().flatten().max();
    (last.map_or(0, |row| row + 1), places.contains(&None))
}

/// By fault, the row of its name; `None` when there is no room for it.
pub(crate) fn flag_places(faults: &[(SimTime, String)], scale: Scale) -> Vec<Option<u32>> {
    let mut ends = [0_u64; FLAG_ROWS_MAX];
    faults
        .iter()
        .map(|(at, text)| {
            let x = scale.x(*at);
            let width = text_width(text) + FLAG_HEAD;
            // At the right edge the name stands left of its flag.
            let (start, end) = if x + width > WIDTH * 1000 {
                (x.saturating_sub(width), x + FLAG_HEAD)
            } else {
                (x, x + width)
            };
            let row = ends.iter().position(|end| *end <= start)?;
            if let Some(last) = ends.get_mut(row) {
                *last = end;
            }
            u32::try_from(row).ok()
        })
        .collect()
}

/// About how wide a text of the smaller size is, in thousandths of a pixel.
pub(crate) fn text_width(text: &str) -> u64 {
    text.chars().count() as u64 * CHAR_WIDTH + 5_000
}

/// Pixels left of the lanes, for their names.
pub(crate) const GUTTER: u32 = 130;

/// As many colours can be told apart, also by those who see fewer.
pub(crate) const COLORS: usize = 8;

const SHADES: u8 = 3;

/// The height of a fault's name, with its distance to the next.
pub(crate) const FLAG_ROW: u32 = 15;

pub(crate) const FLAG_ROWS_MAX: usize = 5;

/// As many lines through all lanes do not hide what is in them.
pub(crate) const POLES_MAX: usize = 30;

/// The cloth of a flag, in thousandths of a pixel.
pub(crate) const FLAG_HEAD: u64 = 11_000;

/// The height of a violation's text with its bracket.
pub(crate) const MARK_ROW: u32 = 22;

/// The height of the names of an axis.
const AXIS: u32 = 26;

const HEAD_LINE: u32 = 19;

const NOTE_LINE: u32 = 15;

/// The usual width of a character of the smaller size, in thousandths of a pixel: of the widest common sans-serif fonts.
const CHAR_WIDTH: u64 = 6_200;

/// What has no width is not painted, not even its edges; with the least one it is a line until somebody zooms.
const BAR_MIN: u64 = 1;

/// A violation of a millisecond in a run of a minute is seen at first sight.
const SEEN_MIN: u64 = 4_000;

/// Lanes of more rows than these would be too high, or their rows too low for a name.
const KEYS_WITH_ROWS_MAX: usize = 3;

/// The longest faults that name every client and node of a set.
const FLAG_CHARS_MAX: usize = 110;

/// Rows of violations with texts; the others share the last one.
pub(crate) const MARK_ROWS_MAX: usize = 8;

/// A bar rarely has room for more.
const LABEL_CHARS_MAX: usize = 60;

/// More arrows than these hide each other.
const MESSAGES_READABLE: usize = 400;

// Together these bound a file to a few megabytes, which browsers still move without delay, and are far above what a minute
// of a usual world has.
const CALLS_MAX: usize = 1_500;
const MOMENTS_MAX: usize = 2_000;
const HOLDINGS_MAX: usize = 3_000;
const ABSENCES_MAX: usize = 500;
const STOPS_MAX: usize = 500;
const MESSAGES_MAX: usize = 5_000;
const FAULTS_MAX: usize = 300;
const MARKS_MAX: usize = 30;
