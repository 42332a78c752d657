//! The lines on standard error: what a node says about itself.
//!
//! Text has no time stamps: whatever collects the lines (systemd, a container runtime) puts its own on. No line shows a
//! password or a token, and whatever is in it stays one line.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use clap::ValueEnum;
use locknode::{LogLevel, Node};

use crate::json::Object;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people, and for what puts a time on each line.
    Text,
    /// One object to a line, with time, level and message.
    Json,
}

/// Writes lines of the level that the node's options name, and above.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    format: LogFormat,
    /// Until there is a node, whose options may change.
    level: LogLevel,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    node: OnceLock<Node>,
    started: Instant,
    budget: Mutex<Budget>,
}

/// How many lines may be written, so that nothing can fill the disk that collects them.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    window: Duration,
    written: u32,
    left_out: u64,
}

impl Log {
    pub(crate) fn new(level: LogLevel, format: LogFormat) -> Self {
        Self {
            format,
            level,
            shared: Arc::new(Shared {
                node: OnceLock::new(),
                started: Instant::now(),
                budget: Mutex::default(),
            }),
        }
    }

    /// Obeys the options of a node from here on.
    pub(crate) fn follow(&self, node: &Node) {
        let _ = self.shared.node.set(node.clone());
    }

    pub(crate) fn warn(&self, message: impl fmt::Display) {
        self.line(LogLevel::Warning, message);
    }

    pub(crate) fn info(&self, message: impl fmt::Display) {
        self.line(LogLevel::Notice, message);
    }

    pub(crate) fn debug(&self, message: impl fmt::Display) {
        self.line(LogLevel::Debug, message);
    }

    fn line(&self, level: LogLevel, message: impl fmt::Display) {
        let node = self.shared.node.get();
        if level < node.map_or(self.level, |node| node.options().loglevel) {
            return;
        }
        let budget = self.shared.budget.lock();
        let admitted = budget
            .unwrap_or_else(PoisonError::into_inner)
            .admit(self.shared.started.elapsed());
        let Some(left_out) = admitted else { return };
        let mut lines = String::new();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default();
        if left_out > 0 {
            let why = format!("{left_out} lines were left out: there were too many");
            render(&mut lines, self.format, now, LogLevel::Warning, &why);
        }
        render(&mut lines, self.format, now, level, &message.to_string());
        // One write for all, so that lines of several threads do not mix. A failed write cannot be reported anywhere.
        let _ = std::io::stderr().lock().write_all(lines.as_bytes());
    }
}

impl Budget {
    /// Returns whether a line may be written at `now`, and how many were left out before it.
    fn admit(&mut self, now: Duration) -> Option<u64> {
        if now.saturating_sub(self.window) >= WINDOW {
            self.window = now;
            self.written = 0;
        }
        if self.written >= LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Appends a line.
fn render(lines: &mut String, format: LogFormat, now: Duration, level: LogLevel, message: &str) {
    if format == LogFormat::Json {
        let object = Object::default()
            .decimal("time", now.as_secs_f64())
            .text("level", level.name())
            .text("message", message);
        lines.push_str(&object.finish());
    } else {
        lines.push_str(match level {
            LogLevel::Debug => "debug: ",
            LogLevel::Warning => "warning: ",
            _ => "",
        });
        for c in message.chars() {
            if is_shown(c) {
                lines.push(c);
            } else {
                let _ = write!(lines, "{}", c.escape_default());
            }
        }
    }
    lines.push('\n');
}

/// Whether a terminal shows a character as it is: those that begin a line, or change the order or the colour of others,
/// could make one line look like another.
fn is_shown(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The lines written in one [`WINDOW`]: more than a node has to say, however often its disk fills up.
const LINES_MAX: u32 = 200;

const WINDOW: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(format: LogFormat, level: LogLevel, message: &str) -> String {
        let mut lines = String::new();
        render(
            &mut lines,
            format,
            Duration::from_millis(1500),
            level,
            message,
        );
        lines
    }

    #[test]
    fn no_message_can_look_like_two_lines_or_like_another() {
        let evil = "key \"a\\\r\nwarning: \u{1b}[31m\u{7}\u{202e}\u{2028}\u{85}\0 \u{e9}";
        assert_eq!(
            rendered(LogFormat::Text, LogLevel::Notice, evil),
            "key \"a\\\\r\\nwarning: \\u{1b}[31m\\u{7}\\u{202e}\\u{2028}\\u{85}\\u{0} \u{e9}\n"
        );
        let json = rendered(LogFormat::Json, LogLevel::Warning, evil);
        assert_eq!(json.matches('\n').count(), 1, "{json}");
        assert!(
            json.starts_with(
                r#"{"time":1.500,"level":"warning","message":"key \"a\\\u000d\u000awarning: \u001b[31m"#
            ),
            "{json}"
        );
    }

    #[test]
    fn too_many_lines_are_left_out_and_counted() {
        let mut budget = Budget::default();
        let at = Duration::from_secs;
        for _ in 0..LINES_MAX {
            assert_eq!(budget.admit(at(1)), Some(0));
        }
        assert_eq!(budget.admit(at(2)), None);
        assert_eq!(budget.admit(at(9)), None);
        assert_eq!(budget.admit(at(11)), Some(2));
        assert_eq!(budget.admit(at(11)), Some(0));
    }
}
