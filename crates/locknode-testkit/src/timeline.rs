//! The timeline: a picture of what happened in a world, for people, in one file that needs nothing else.
//!
//! It draws a [`History`] and the violations that a checker found in it; it judges nothing itself. One history gives one
//! file, byte by byte, on any machine.

mod account;
mod bars;
mod clocks;
mod lanes;
mod legend;
mod marks;
mod markup;
mod moment;
mod picture;
mod scale;
mod selection;

use crate::history::History;
use crate::history::index::Index;
use crate::span::SimTime;
use crate::timeline::markup::{Tag, clipped};
use crate::timeline::scale::Scale;

/// A picture of a history: a lane for each client and each node, in true time.
///
/// ```
/// use locknode_testkit::{History, SimTime, Timeline};
///
/// let history = History { nodes: 5, clients: 2, ..History::default() };
/// let page = Timeline::new(&history)
///     .between(SimTime::ZERO, SimTime::from_nanos(3_000_000_000))
///     .html();
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Nobody held a lock."));
/// ```
#[derive(Clone, Debug)]
pub struct Timeline<'h> {
    history: &'h History,
    headline: Headline,
    marks: Vec<Mark>,
    between: Option<(SimTime, SimTime)>,
}

/// What stands above a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// What was run.
    pub title: String,
    /// Whether the verdict is bad news.
    pub verdict_is_bad: bool,
    /// What the checkers say.
    pub verdict: String,
    /// The line that does it again.
    pub replay: Option<String>,
}

/// Something in a timeline that must not be: a red band over all lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// When it began.
    pub from: SimTime,
    /// When it ended; the same moment when it took no time.
    pub until: SimTime,
    /// The clients whose lanes are framed.
    pub clients: Vec<u8>,
    /// The nodes whose lanes are framed.
    pub nodes: Vec<u8>,
    /// What it is, in one line.
    pub text: String,
}

impl<'h> Timeline<'h> {
    /// The whole history, without headline and marks.
    pub fn new(history: &'h History) -> Self {
        Self {
            history,
            headline: Headline::default(),
            marks: Vec::new(),
            between: None,
        }
    }

    /// With this above it.
    #[must_use]
    pub fn headline(mut self, headline: Headline) -> Self {
        self.headline = headline;
        self
    }

    /// With these bands, the most important one first: when there is too much to draw, what is near it is drawn.
    #[must_use]
    pub fn marks(mut self, marks: impl IntoIterator<Item = Mark>) -> Self {
        self.marks = marks.into_iter().collect();
        self
    }

    /// Only what happened from one moment to another.
    #[must_use]
    pub fn between(mut self, from: SimTime, until: SimTime) -> Self {
        self.between = Some((from, until));
        self
    }

    /// An HTML page with the picture in it, which can be moved and zoomed, and says more about whatever is pointed at.
    /// It loads nothing. It is ASCII, and has no more than a few megabytes however long the history is.
    pub fn html(&self) -> String {
        let mut page =
            String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        Tag::new(&mut page, "title").text(&clipped(&self.title(), HEAD_CHARS_MAX));
        page.push_str("<style>\n");
        page.push_str(include_str!("timeline/page.css"));
        page.push_str("</style>\n</head>\n<body>\n<header>\n");
        let index = Index::of(self.history);
        for (class, text) in self.head(&index) {
            let tag = match class {
                "ln-title" => "h1",
                "ln-replay" => "code",
                _ => "p",
            };
            Tag::new(&mut page, tag).set("class", class).text(&text);
        }
        page.push_str("</header>\n");
        page.push_str(include_str!("timeline/buttons.html"));
        page.push_str(&self.picture(index, &[]));
        page.push_str("<div id=\"ln-tip\"></div>\n<script>\n");
        page.push_str(include_str!("timeline/page.js"));
        page.push_str("</script>\n</body>\n</html>\n");
        page
    }

    /// The picture alone, with the headline in it: an SVG file.
    pub fn svg(&self) -> String {
        let index = Index::of(self.history);
        let head = self.head(&index);
        self.picture(index, &head)
    }

    fn picture(&self, index: Index, head: &[(&str, String)]) -> String {
        picture::svg(self.history, index, &self.marks, self.scale(), head)
    }

    fn scale(&self) -> Scale {
        let (from, until) = self.between.unwrap_or((SimTime::ZERO, self.end()));
        Scale::new(from, until)
    }

    /// The end of the world, or of what is known of one that has no end yet.
    fn end(&self) -> SimTime {
        let last = self.history.entries.last();
        last.map_or(self.history.end, |entry| entry.at.max(self.history.end))
    }

    fn title(&self) -> String {
        match self.headline.title.as_str() {
            "" => "Timeline".to_owned(),
            title => title.to_owned(),
        }
    }

    /// The lines above the picture, by class.
    fn head(&self, index: &Index) -> Vec<(&'static str, String)> {
        let mut head = vec![("ln-title", self.title())];
        if !self.headline.verdict.is_empty() {
            let class = if self.headline.verdict_is_bad {
                "ln-bad"
            } else {
                "ln-good"
            };
            head.push((class, self.headline.verdict.clone()));
        }
        let windows = &index.windows;
        let sentences = account::sentences(self.history, windows, self.scale());
        head.push(("ln-say", sentences.join(" ")));
        head.push((
            "ln-more",
            account::numbers(self.history, windows, self.scale()),
        ));
        if let Some(replay) = &self.headline.replay {
            head.push(("ln-replay", replay.clone()));
        }
        for (_, text) in &mut head {
            *text = clipped(text, HEAD_CHARS_MAX);
        }
        head
    }
}

/// What a window is wide enough for in two lines; a replay line can be long.
const HEAD_CHARS_MAX: usize = 400;

#[cfg(test)]
mod tests;
