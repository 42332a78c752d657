//! A comparison as a picture: a bar of CPU per command for each server, and the distributions of their latencies.
//!
//! One SVG that stands alone and follows the reader's choice of a light or a dark page.

use std::fmt::{self, Write as _};

use super::comparison::{Comparison, Contestant, FIGURES};
use super::recorder::exact;

/// The picture.
pub(super) fn svg(comparison: &Comparison) -> String {
    let head: Vec<String> = wrapped(&comparison.load, NOTE_CHARS)
        .into_iter()
        .chain([comparison.machine.clone()])
        .collect();
    let notes: Vec<String> = (comparison.notes().iter())
        .flat_map(|note| wrapped(note, NOTE_CHARS))
        .collect();
    let head_y = 46.0;
    let bars_y = head_y + NOTE_LINE * place(head.len()) + 34.0;
    let names_y = bars_y + BAR_ROW * place(comparison.contestants.len()) + 48.0;
    let curves_y = names_y + NAME_ROW * place(comparison.contestants.len());
    let notes_y = curves_y + CURVES_HEIGHT + 46.0;
    let mut picture = Picture(String::new());
    picture.open(notes_y + NOTE_LINE * place(notes.len()));
    let flags = &comparison.flags;
    let title = format!(
        "{}, {} connections, pipeline {}",
        flags.workload.name(),
        flags.connections,
        flags.pipeline
    );
    let bars = "full colour: the server; pale: the kernel; line: the middle half of the rounds";
    let curves = "within which that share of the replies came, of all rounds";
    for (class, x, y, text) in [
        ("title", MARGIN, 28.0, &*title),
        ("head", MARGIN, bars_y - 10.0, "CPU time per command"),
        ("more", BAR_X, bars_y - 10.0, bars),
        ("head", MARGIN, names_y - 16.0, "Latency"),
        ("more", BAR_X, names_y - 16.0, curves),
    ] {
        picture.text(class, x, y, text);
    }
    picture.lines(head_y, &head);
    picture.bars(comparison, bars_y);
    for (index, contestant) in comparison.contestants.iter().enumerate() {
        picture.name(index, contestant, names_y + NAME_ROW * place(index));
    }
    picture.curves(comparison, curves_y);
    picture.lines(notes_y, &notes);
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
        let size =
            format!("viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\"");
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
        let upper = spreads.iter().flatten().map(|it| it.upper);
        let most = upper.fold(0.0, f64::max);
        let scale = BAR_MAX / most.max(f64::MIN_POSITIVE);
        for (index, contestant) in comparison.contestants.iter().enumerate() {
            let y = top + BAR_ROW * place(index);
            self.text("", MARGIN, y + 18.0, &clipped(&contestant.target.title()));
            let Some(spread) = spreads.get(index).copied().flatten() else {
                let reason = contestant.without_cpu().unwrap_or_default();
                let note = format!("no CPU time, for {reason}");
                self.text("more", BAR_X, y + 18.0, &note);
                continue;
            };
            let width = spread.median * scale;
            let user_width = contestant.user_us().unwrap_or(0.0) * scale;
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
            let end = BAR_X + spread.upper.max(spread.median) * scale;
            self.text("", end + 8.0, y + 18.0, &figure);
        }
    }

    fn curves(&mut self, comparison: &Comparison, top: f64) {
        let Some(plane) = Plane::of(comparison, top) else {
            return;
        };
        let bottom = top + CURVES_HEIGHT;
        for (nines, name) in [
            (0.0, "0 %"),
            (std::f64::consts::LOG10_2, "50 %"),
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
            self.put(format_args!(
                "<path class=\"c{index} curve\" d=\"{path}\"/>\n"
            ));
        }
    }

    /// The colour of a server.
    fn name(&mut self, index: usize, contestant: &Contestant, y: f64) {
        self.put(format_args!(
            "<rect class=\"c{index} bar\" x=\"{PLANE_X}\" y=\"{:.1}\" width=\"12\" height=\"12\"/>\n",
            y - 6.0
        ));
        self.text("", PLANE_X + 18.0, y + 4.0, &contestant.target.title());
    }

    fn lines(&mut self, top: f64, lines: &[String]) {
        for (number, line) in lines.iter().enumerate() {
            self.text("more", MARGIN, top + NOTE_LINE * place(number), line);
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

/// A place in a short list.
fn place(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
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

/// Breaks text into lines of at most `chars_max` characters, unless a word is longer.
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

/// The colours of the curves with their names.
const NAME_ROW: f64 = 18.0;

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

#[cfg(test)]
mod tests {
    use redlock_client::NodeAddress;

    use super::super::comparison::Turn;
    use super::super::flags::BenchFlags;
    use super::super::process::CpuTime;
    use super::super::recorder::empty_histogram;
    use super::super::target::Target;
    use super::*;
    use crate::server_address::ServerAddress;
    use crate::server_info::ServerInfo;

    fn contestant(info: &str, cpu_us: Option<f64>, latencies_us: &[u64]) -> Contestant {
        let address = NodeAddress::parse("127.0.0.1:6379").expect("an address");
        let info = ServerInfo::parse(info.as_bytes());
        let elsewhere = Err("it runs <elsewhere> & away".to_owned());
        let mut latencies = empty_histogram().expect("bounds that fit");
        for latency in latencies_us {
            latencies.record(latency * 1000).expect("within bounds");
        }
        let turn = Turn {
            cpu_us,
            cpu: cpu_us.map(|all| CpuTime {
                all,
                user: 0.1,
                system: 0.3,
            }),
            per_second: 50_000.0,
            p50_us: 900.0,
            p99_us: 1200.0,
            load_share: Some(0.97),
            others_share: None,
        };
        Contestant {
            target: Target::new(&info, ServerAddress::plain(address), elsewhere),
            turns: vec![turn; 3],
            latencies,
            cores: None,
        }
    }

    fn comparison(contestants: Vec<Contestant>) -> Comparison {
        Comparison {
            flags: BenchFlags::of("--workload mixed"),
            load: "3 rounds".to_owned(),
            machine: "a machine".to_owned(),
            contestants,
            load_cores: None,
        }
    }

    /// What is between the quotes of an attribute, wherever it is.
    fn values<'s>(svg: &'s str, name: &str) -> Vec<&'s str> {
        let begin = format!(" {name}=\"");
        let values = svg.split(begin.as_str()).skip(1);
        values.filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let svg = svg(&comparison(vec![
            contestant("locknode_version:1\r\n", Some(4.0), &[100; 100]),
            contestant("redis_version:7\r\n", Some(8.0), &[200; 100]),
        ]));
        let bars: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains(" bar") && line.contains("height=\"22\""))
            .map(|line| values(line, "width")[0].parse().expect("a number"))
            .collect();
        assert_eq!(bars, [50.0, 150.0, 100.0, 300.0]);
        assert!(svg.contains("8.00 us, 2.00 times [2.00-2.00]"), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark"));
        assert!(svg.contains("97 % busy"), "{svg}");
    }

    #[test]
    fn a_server_that_is_slower_has_the_higher_curve() {
        let fast: Vec<u64> = (100..300).collect();
        let slow: Vec<u64> = (1000..3000).collect();
        let comparison = comparison(vec![
            contestant("", None, &fast),
            contestant("", None, &slow),
            contestant("", None, &[]),
        ]);
        let svg = svg(&comparison);
        let heights = |class: &str| -> Vec<f64> {
            let line = svg
                .lines()
                .find(|line| line.contains(class))
                .expect("a curve");
            let points = values(line, "d")[0].split(['M', 'L']).skip(1);
            let heights = points.filter_map(|point| point.split(' ').nth(1)?.parse().ok());
            heights.collect()
        };
        let (fast, slow) = (heights("c0 curve"), heights("c1 curve"));
        assert_eq!(fast.len(), 121);
        // Down is greater.
        assert!(fast.iter().zip(&slow).all(|(fast, slow)| fast > slow));
        assert!(fast.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(heights("c2 curve").is_empty(), "nothing was measured");
    }

    #[test]
    fn everything_is_inside_and_nothing_is_markup_by_accident() {
        let svg = svg(&comparison(vec![
            contestant("redis_version:<7&\r\n", Some(3.0), &[1, 10, 60_000_000]),
            contestant("", None, &[1]),
        ]));
        assert!(svg.contains("no CPU time, for it runs &lt;elsewhere&gt; &amp; away"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let height: f64 = values(&svg, "height")[0].parse().expect("a number");
        for name in ["y", "x"] {
            for value in values(&svg, name) {
                let value: f64 = value.parse().expect("a number");
                assert!((0.0..=height.max(WIDTH)).contains(&value), "{name} {value}");
            }
        }
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }
}
