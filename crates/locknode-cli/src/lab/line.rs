//! Colored lines for a terminal.

use std::fmt::Write as _;

/// How much room there is, and what for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) is_colored: bool,
}

impl Canvas {
    /// Without end, and without color.
    pub(super) const ENDLESS: Self = Self {
        width: usize::MAX,
        height: usize::MAX,
        is_colored: false,
    };
}

/// A line in pieces, and how each is colored.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) spans: Vec<(String, Option<&'static str>)>,
}

impl Line {
    pub(super) fn of(text: String, color: Option<&'static str>) -> Self {
        Self {
            spans: vec![(text, color)],
        }
    }

    /// Without color.
    pub(super) fn plain(text: String) -> Self {
        Self::of(text, None)
    }

    pub(super) fn colored(text: String, color: &'static str) -> Self {
        Self::of(text, Some(color))
    }

    /// A heading.
    pub(super) fn bold(text: String) -> Self {
        Self::colored(text, BOLD)
    }

    /// The line as it is written, no wider than there is room.
    pub(super) fn fit(&self, canvas: Canvas) -> String {
        let mut room = canvas.width;
        let mut line = String::new();
        for (place, (text, color)) in self.spans.iter().enumerate() {
            let is_last = place + 1 == self.spans.len();
            let text = if is_last { text.trim_end() } else { text };
            let text: String = text.chars().take(room).collect();
            room -= text.chars().count();
            match color.filter(|_| canvas.is_colored && !text.is_empty()) {
                Some(color) => {
                    let _ = write!(line, "{color}{text}{PLAIN}");
                }
                None => line.push_str(&text),
            }
        }
        line
    }
}

pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const RED_BOLD: &str = "\x1b[1;31m";
pub(super) const YELLOW: &str = "\x1b[33m";
pub(super) const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";
