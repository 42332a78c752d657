//! A part of a terminal that is drawn again and again in place.

use std::fmt::Write as _;

use super::line::Canvas;
use crate::failure::Failure;
use crate::output;

/// Draws until it is dropped, and then leaves the terminal as it was, with the last picture on it.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) is_terminal: bool,
    is_colored: bool,
    /// The picture on the screen, to go up over.
    shown: Vec<String>,
    width_shown: usize,
}

impl Screen {
    pub(super) fn new() -> Self {
        // https://no-color.org: any value but the empty one.
        let is_colored = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            is_terminal: output::is_terminal(),
            is_colored,
            shown: Vec::new(),
            width_shown: 0,
        }
    }

    /// How much room there is now.
    pub(super) fn canvas(&self) -> Canvas {
        let size = rustix::termios::tcgetwinsize(std::io::stdout());
        let (columns, rows) = size.map_or((0, 0), |size| {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        });
        Canvas {
            width: if columns == 0 { WIDTH_DEFAULT } else { columns },
            height: if rows == 0 { HEIGHT_DEFAULT } else { rows },
            is_colored: self.is_colored,
        }
    }

    /// Shows these lines in place of those before. They are to fit the canvas.
    ///
    /// # Errors
    ///
    /// When standard output fails.
    pub(super) fn draw(&mut self, lines: Vec<String>, canvas: Canvas) -> Result<(), Failure> {
        let is_resized = canvas.width != self.width_shown;
        if lines == self.shown && !is_resized {
            return Ok(());
        }
        let mut text = String::new();
        match self.shown.len() {
            0 => text.push_str(HIDE_CURSOR),
            // After a resize nobody knows where the old lines are: the picture starts anew below them.
            _ if is_resized => {}
            lines => {
                let _ = write!(text, "\x1b[{lines}A");
            }
        }
        text.push_str(CLEAR_BELOW);
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.shown = lines;
        self.width_shown = canvas.width;
        output::write(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if !self.shown.is_empty() {
            // If the terminal is gone there is nothing to restore.
            let _ = output::write(SHOW_CURSOR);
        }
    }
}

/// The size of a terminal that does not report it.
const WIDTH_DEFAULT: usize = 80;
const HEIGHT_DEFAULT: usize = 24;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_BELOW: &str = "\x1b[J";
