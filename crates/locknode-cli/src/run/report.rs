//! The reports of `locknode run` on standard error: only problems, as sentences, or with `--json` a line
//! for every event. Standard output belongs to the command.

use std::time::Duration;

use redlock_client::Released;

use super::refusal::Refusal;
use super::timeline::{Ending, Why};
use crate::acquisition::Validity;
use crate::failure::Failure;
use crate::json::Object;
use crate::lines::Lines;

/// Reports the events of one lock and its command.
#[derive(Clone, Debug)]
pub(super) struct Report {
    manner: Manner,
    name: String,
    lines: Lines,
}

/// The form of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Text,
    Json,
    Quiet,
}

impl Report {
    pub(super) const fn new(manner: Manner, name: String, lines: Lines) -> Self {
        Self {
            manner,
            name,
            lines,
        }
    }

    /// Waits briefly until all reports are written.
    pub(super) fn finish(&self) {
        self.lines.finish();
    }

    pub(super) fn waiting(&self, reason: &str) {
        self.line("waiting", |object| object.text("reason", reason));
        self.text(|name| format!("still waiting for the lock {name}: {reason}"));
    }

    pub(super) fn acquired(&self, validity: Validity) {
        self.line("acquired", |object| validity.describe(object));
    }

    pub(super) fn started(&self, id: u64) {
        self.line("started", |object| object.number("pid", id));
    }

    pub(super) fn renewed(&self, validity: Validity) {
        self.line("renewed", |object| validity.describe(object));
    }

    /// The command got SIGTERM because the lock with this validity cannot be kept; it is killed after `time`.
    pub(super) fn terminating(&self, reason: &str, validity: Validity, time: Duration) {
        self.line("lost", |object| {
            validity.describe(object.text("reason", reason))
        });
        self.text(|name| {
            format!(
                "the lock {name} cannot be kept: {reason}; sent SIGTERM to the command, SIGKILL follows in {:.1} s",
                time.as_secs_f64()
            )
        });
    }

    /// The command was killed, except for the processes that the system refused to kill.
    pub(super) fn killing(&self, why: Why, refusals: &[Refusal]) {
        let reason = reason(why);
        if refusals.is_empty() {
            self.line("killed", |object| object.text("reason", reason));
            if why != Why::Left {
                self.text(|name| format!("killed the command that held the lock {name}: {reason}"));
            }
        }
        for refusal in refusals.iter().take(REFUSALS_MAX) {
            let (id, error) = (refusal.id.as_raw_nonzero(), refusal.error);
            self.line("not_killed", |object| {
                let object = object.number("pid", u64::from(id.get().unsigned_abs()));
                object.text("reason", &error.to_string())
            });
            self.text(|name| {
                format!(
                    "cannot kill process {id}, a descendant of the command that held the lock {name}: {error}; \
                     it still runs, perhaps as another user: kill it yourself"
                )
            });
        }
    }

    /// The command ended and left `left` processes running.
    pub(super) fn exited(&self, ending: Ending, left: usize) {
        self.line("exited", |object| {
            let object = match ending {
                Ending::Code(code) => object.number("code", code),
                Ending::Signal(signal) => object.number("signal", signal),
            };
            if left > 0 {
                object.number("left_running", left)
            } else {
                object
            }
        });
    }

    pub(super) fn released(&self, released: &Released) {
        self.line("released", |object| {
            object
                .number("confirmed", released.confirmed())
                .number("not_held", released.not_held())
                .number("unknown", released.unknown())
                .number("pending", released.pending())
        });
    }

    /// The lock was left to its TTL.
    pub(super) fn kept(&self, reason: &str) {
        self.line("kept", |object| object.text("reason", reason));
        self.text(|name| {
            format!("the lock {name} was not released and will expire by its TTL: {reason}")
        });
    }

    /// Reports why the run fails. Returns a failure with the exit code and no message.
    pub(super) fn failed(&self, failure: &Failure) -> Failure {
        self.line("failed", |object| {
            object
                .number("exit", failure.exit().code())
                .text("reason", &failure.to_string())
        });
        if !failure.to_string().is_empty() {
            self.text(|name| format!("{name}: {failure}"));
        }
        Failure::new(failure.exit(), "")
    }

    fn line(&self, event: &str, fields: impl FnOnce(Object) -> Object) {
        if self.manner == Manner::Json {
            let object = Object::default()
                .text("event", event)
                .text("name", &self.name);
            self.lines.say(fields(object).finish());
        }
    }

    fn text(&self, sentence: impl FnOnce(&str) -> String) {
        if self.manner == Manner::Text {
            self.lines
                .say(format!("locknode: {}", sentence(&self.name)));
        }
    }
}

/// The reason for a kill, as part of a sentence.
const fn reason(why: Why) -> &'static str {
    match why {
        Why::RunningOut | Why::Lost | Why::RanOut => "the lock cannot be kept",
        Why::Stayed => "it did not end in time",
        Why::Interrupted => "there was a second interrupt",
        Why::Left => "the command has ended",
    }
}

/// More lines than this are of no use.
const REFUSALS_MAX: usize = 8;
