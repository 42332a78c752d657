//! A comparison as a picture: a bar of CPU per command for each server, and the distributions of their latencies.
//!
//! One SVG that stands alone and follows the reader's choice of a light or a dark page.

use std::fmt::{self, Write as _};

use super::comparison::{Comparison, Contestant, FIGURES};
use super::recorder::exact;

/// The picture.
pub(super) fn svg(comparison: &Comparison) -> String {
    let notes: Vec<String> = (comparison.notes().iter())
        .flat_map(|note| wrapped(note, NOTE_CHARS))
        .collect();
    let count = |len: usize| f64::from(u32::try_from(len).unwrap_or(u32::MAX));
    let bars_y = 112.0;
    let curves_y = bars_y + BAR_ROW * count(comparison.contestants.len()) + 44.0;
    let notes_y = curves_y + CURVES_HEIGHT + 62.0;
    let height = notes_y + NOTE_LINE * count(notes.len());
    let mut picture = Picture(String::new());
    picture.open(height);
    let title = format!(
        "{}, {} connections, pipeline {}",
        comparison.workload, comparison.connections, comparison.pipeline
    );
    picture.text("title", MARGIN, 28.0, &title);
    for (line, y) in wrapped(&comparison.load, NOTE_CHARS).iter().zip([46.0, 61.0]) {
        picture.text("more", MARGIN, y, line);
    }
    picture.text("more", MARGIN, 76.0, &comparison.machine);
    picture.text(
        "head",
        MARGIN,
        bars_y - 10.0,
        "CPU time of the server per command: full colour the server, pale the kernel; lines from quarter to quarter of the rounds",
    );
    picture.bars(comparison, bars_y);
    picture.text("head", MARGIN, curves_y - 12.0, "Latency within which that share of the replies came");
    picture.curves(comparison, curves_y);
    for (line, note) in notes.iter().enumerate() {
        picture.text("more", MARGIN, notes_y + NOTE_LINE * count(line), note);
    }
    picture.0.push_str("</svg>\n");
    picture.0
}

/// A picture that is being painted.
struct Picture(String);

/// Where latencies and shares of replies are drawn.
struct Plane {
    top: f64,
    least_us: f64,
    most_us: f64,
    nines_max: f64,
}

impl Picture {
    fn open(&mut self, height: f64) {
        let size = format!("viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\"");
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"lb\" {size}>\n<style>{}</style>\n",
            include_str!("picture.css")
        ));
        self.put(format_args!(
            "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
        ));
    }

    fn bars(&mut self, comparison: &Comparison, top: f64) {
        let spreads: Vec<_> = (comparison.contestants.iter())
            .map(|contestant| contestant.spread(|turn| turn.cpu_us))
            .collect();
        let most = spreads.iter().flatten().map(|it| it.upper).fold(0.0, f64::max);
        let scale = BAR_MAX / most.max(f64::MIN_POSITIVE);
        for (index, contestant) in comparison.contestants.iter().enumerate() {
            let y = top + BAR_ROW * f64::from(u32::try_from(index).unwrap_or(u32::MAX));
            self.text("", MARGIN, y + 18.0, &clipped(&contestant.target.title()));
            let Some(spread) = spreads.get(index).copied().flatten() else {
                let reason = contestant.without_cpu().unwrap_or_default();
                self.text("more", BAR_X, y + 18.0, &format!("no CPU time, for {reason}"));
                continue;
            };
            let width = spread.median * scale;
            let user = contestant.spread(|turn| turn.user_us);
            let user_width = user.map_or(0.0, |user| user.median * scale).min(width);
            for (kind, x, width) in [
                ("", BAR_X, user_width),
                (" kernel", BAR_X + user_width, width - user_width),
            ] {
                self.put(format_args!(
                    "<rect class=\"c{index} bar{kind}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\"/>\n",
                    y + 3.0
                ));
            }
            let (from, until) = (BAR_X + spread.lower * scale, BAR_X + spread.upper * scale);
            let middle = y + 3.0 + BAR_HEIGHT / 2.0;
            self.put(format_args!(
                "<path class=\"spread\" d=\"M{from:.1} {:.1}v8M{from:.1} {middle:.1}H{until:.1}M{until:.1} {:.1}v8\"/>\n",
                middle - 4.0,
                middle - 4.0
            ));
            let mut figure = format!("{:.2} us", spread.median);
            let ratio = comparison.ratio(index, FIGURES[0]).filter(|_| index > 0);
            if let Some(ratio) = ratio {
                let _ = write!(
                    figure,
                    ", {:.2} times [{:.2}-{:.2}]",
                    ratio.median, ratio.lower, ratio.upper
                );
            }
            self.text("", BAR_X + spread.upper.max(spread.median) * scale + 8.0, y + 18.0, &figure);
        }
    }

    fn curves(&mut self, comparison: &Comparison, top: f64) {
        let Some(plane) = Plane::of(comparison, top) else {
            return;
        };
        let bottom = top + CURVES_HEIGHT;
        for (nines, name) in [
            (0.0, "0 %"),
            (0.30103, "50 %"),
            (1.0, "90 %"),
            (2.0, "99 %"),
            (3.0, "99.9 %"),
            (4.0, "99.99 %"),
            (5.0, "99.999 %"),
        ] {
            if nines <= plane.nines_max {
                let x = plane.x(nines);
                self.put(format_args!(
                    "<path class=\"grid\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>\n"
                ));
                self.anchored("tick", "middle", x, bottom + 16.0, name);
            }
        }
        for us in plane.ticks() {
            let y = plane.y(us);
            self.put(format_args!(
                "<path class=\"grid\" d=\"M{PLANE_X} {y:.1}H{}\"/>\n",
                PLANE_X + PLANE_WIDTH
            ));
            let name = match us {
                us if us < 1000.0 => format!("{us} us"),
                us if us < 1e6 => format!("{} ms", us / 1e3),
                us => format!("{} s", us / 1e6),
            };
            self.anchored("tick", "end", PLANE_X - 6.0, y + 4.0, &name);
        }
        for (index, contestant) in comparison.contestants.iter().enumerate() {
            let mut path = String::new();
            for (nines, us) in points(contestant, plane.nines_max) {
                let begin = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{begin}{:.1} {:.1}", plane.x(nines), plane.y(us));
            }
            self.put(format_args!("<path class=\"c{index} curve\" d=\"{path}\"/>\n"));
            // Latencies grow to the right, so there is room for names at the left of the top.
            let y = top + 16.0 + 18.0 * f64::from(u32::try_from(index).unwrap_or(u32::MAX));
            self.put(format_args!(
                "<rect class=\"c{index} bar\" x=\"{}\" y=\"{:.1}\" width=\"12\" height=\"12\"/>\n",
                PLANE_X + 10.0,
                y - 10.0
            ));
            self.text("", PLANE_X + 28.0, y, &clipped(&contestant.target.title()));
        }
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.anchored(class, "start", x, y, text);
    }

    fn anchored(&mut self, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
        self.put(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n",
            Escaped(text)
        ));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(text);
    }
}

impl Plane {
    /// The plane that holds the curves of all servers; `None` when there are no latencies.
    fn of(comparison: &Comparison, top: f64) -> Option<Self> {
        let replies = comparison.contestants.iter().map(|it| it.latencies.len());
        let nines_max = exact(replies.max()?).log10().clamp(1.0, 5.0);
        let curves = comparison.contestants.iter();
        let all: Vec<f64> = curves
            .flat_map(|contestant| points(contestant, nines_max))
            .map(|(_, us)| us)
            .collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(0.0, f64::max);
        least.is_finite().then(|| Self {
            top,
            least_us: round_below(least),
            // A flat curve has some room above it.
            most_us: round_below(most * 2.5),
            nines_max,
        })
    }

    fn x(&self, nines: f64) -> f64 {
        PLANE_X + PLANE_WIDTH * nines / self.nines_max
    }

    fn y(&self, us: f64) -> f64 {
        let range = (self.most_us / self.least_us).ln();
        self.top + CURVES_HEIGHT * (1.0 - (us / self.least_us).ln() / range)
    }

    /// 1, 2 and 5 of every power of ten that is shown.
    fn ticks(&self) -> Vec<f64> {
        let powers = (-3..9).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]);
        let shown = self.least_us * 0.999..self.most_us * 1.001;
        all.filter(|us| shown.contains(us)).collect()
    }
}

/// Text in which nothing is markup.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            c if c.is_control() => f.write_char('?'),
            c => f.write_char(c),
        })
    }
}

/// The curve of a server: how many nines the share of replies has, and within which time they came.
fn points(contestant: &Contestant, nines_max: f64) -> impl Iterator<Item = (f64, f64)> {
    let latencies = &contestant.latencies;
    let nines_known = exact(latencies.len()).max(1.0).log10().min(nines_max);
    let count = if latencies.is_empty() { 0 } else { POINTS + 1 };
    (0..count).map(move |point| {
        let nines = nines_known * f64::from(point) / f64::from(POINTS);
        let latency_ns = latencies.value_at_quantile(1.0 - 10_f64.powf(-nines));
        (nines, exact(latency_ns.max(1)) / 1e3)
    })
}

/// The next of 1, 2 and 5 times a power of ten that is not above.
fn round_below(us: f64) -> f64 {
    let power = 10_f64.powf(us.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|step| step * power);
    steps.into_iter().find(|step| *step <= us).unwrap_or(power)
}

fn clipped(text: &str) -> String {
    if text.chars().count() <= TITLE_CHARS {
        return text.to_owned();
    }
    let begin: String = text.chars().take(TITLE_CHARS - 3).collect();
    begin + "..."
}

/// Lines of so many characters at most, unless a word is longer.
fn wrapped(text: &str, chars_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < chars_max => {
                line.extend([" ", word]);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

const WIDTH: f64 = 880.0;

const MARGIN: f64 = 14.0;

/// Where bars begin: right of the titles.
const BAR_X: f64 = 270.0;

/// The longest bar; its figures stand right of it.
const BAR_MAX: f64 = 400.0;

const BAR_ROW: f64 = 34.0;

const BAR_HEIGHT: f64 = 22.0;

const PLANE_X: f64 = 70.0;

const PLANE_WIDTH: f64 = 780.0;

const CURVES_HEIGHT: f64 = 260.0;

const NOTE_LINE: f64 = 15.0;

/// As many of the usual letters fit into the width.
const NOTE_CHARS: usize = 145;

/// As many fit left of the bars.
const TITLE_CHARS: usize = 40;

/// More points would not be seen.
const POINTS: u32 = 120;
