//! What `locknode run` says on standard error: nothing while all is well, sentences for a person when it is not, or
//! with `--json` a line for everything that happens. Standard output belongs to the command.

use std::io::Write as _;
use std::time::Duration;

use redlock_client::Released;

use super::timeline::{Ending, Why};
use crate::acquisition;
use crate::failure::Failure;
use crate::json::Object;

/// Says what happens to one lock and its command.
#[derive(Clone, Debug)]
pub(super) struct Report {
    manner: Manner,
    name: String,
}

/// How it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Text,
    Json,
    Quiet,
}

impl Report {
    pub(super) const fn new(manner: Manner, name: String) -> Self {
        Self { manner, name }
    }

    pub(super) fn waiting(&self, reason: &str) {
        self.line("waiting", |object| object.text("reason", reason));
        self.text(|name| format!("still waiting for the lock {name}: {reason}"));
    }

    pub(super) fn acquired(&self, validity: Duration) {
        self.line("acquired", |object| with_validity(object, validity));
    }

    pub(super) fn started(&self, id: u64) {
        self.line("started", |object| object.number("pid", id));
    }

    pub(super) fn renewed(&self, validity: Duration) {
        self.line("renewed", |object| with_validity(object, validity));
    }

    /// The command is asked to end, with so much time left for that.
    pub(super) fn terminating(&self, why: Why, detail: &str, validity: Duration) {
        let reason = reason(why, detail);
        self.line("lost", |object| {
            with_validity(object.text("reason", &reason), validity)
        });
        self.text(|name| {
            format!(
                "the lock {name} cannot be kept: {reason}; asked the command to end (SIGTERM), killing it in {:.1} s",
                validity.as_secs_f64()
            )
        });
    }

    pub(super) fn killing(&self, why: Why, detail: &str) {
        let reason = reason(why, detail);
        self.line("killed", |object| object.text("reason", &reason));
        self.text(|name| format!("killed the command that held the lock {name}: {reason}"));
    }

    pub(super) fn exited(&self, ending: Ending) {
        self.line("exited", |object| match ending {
            Ending::Code(code) => object.number("code", code.into()),
            Ending::Signal(signal) => object.number("signal", signal.into()),
        });
    }

    pub(super) fn released(&self, released: &Released) {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        self.line("released", |object| {
            object
                .number("confirmed", count(released.confirmed()))
                .number("not_held", count(released.not_held()))
                .number("unknown", count(released.unknown()))
                .number("pending", count(released.pending()))
        });
    }

    /// The lock was left to end by itself.
    pub(super) fn kept(&self, reason: &str) {
        self.line("kept", |object| object.text("reason", reason));
        self.text(|name| {
            format!("the lock {name} was not released and ends with its TTL: {reason}")
        });
    }

    /// The failure as it is to be returned: said here already, unless it is a plain sentence.
    pub(super) fn failed(&self, failure: Failure) -> Failure {
        self.line("failed", |object| {
            object
                .number("exit", failure.exit().code().into())
                .text("reason", &failure.to_string())
        });
        match self.manner {
            Manner::Text => Failure::new(failure.exit(), format!("{}: {failure}", self.name)),
            Manner::Json | Manner::Quiet => Failure::new(failure.exit(), ""),
        }
    }

    fn line(&self, event: &str, fields: impl FnOnce(Object) -> Object) {
        if self.manner == Manner::Json {
            let object = Object::default()
                .text("event", event)
                .text("name", &self.name);
            say(fields(object).finish());
        }
    }

    fn text(&self, sentence: impl FnOnce(&str) -> String) {
        if self.manner == Manner::Text {
            say(format!("locknode: {}", sentence(&self.name)));
        }
    }
}

/// Why a command is ended, as part of a sentence.
fn reason(why: Why, detail: &str) -> String {
    let reason = match why {
        Why::RunningOut | Why::Lost => return detail.to_owned(),
        Why::RanOut => "the lock is over",
        Why::Stayed => "it did not end in time",
        Why::Interrupted => "a second interrupt came",
    };
    reason.to_owned()
}

/// One write per line, so that it does not mix with what the command writes. With standard error gone there is
/// nobody left to tell.
fn say(mut line: String) {
    line.push('\n');
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn with_validity(object: Object, validity: Duration) -> Object {
    object
        .number("valid_ms", acquisition::millis(validity))
        .number(
            "valid_until_unix_ms",
            acquisition::unix_millis_at_end(validity),
        )
}
