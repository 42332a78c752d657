//! What a lock node reports about its last start and the next one. Pure: from fields to text.

use crate::json::Object;
use crate::server_info::ServerInfo;

/// The restart state of a node.
#[derive(Clone, Debug)]
pub(super) struct Restart {
    guard: String,
    state: String,
    reason: String,
    advice: String,
    wait_ms: u64,
    left_ms: u64,
    quarantine_seconds: Option<u64>,
    incarnation: u64,
    durability: String,
    disk_error: String,
}

impl Restart {
    /// Reads it from INFO; `None` for a server without a restart guard.
    pub(super) fn read(info: &ServerInfo) -> Option<Self> {
        let text = |field| info.text(field).unwrap_or_default().to_owned();
        let number = |field| info.number(field).unwrap_or(0);
        Some(Self {
            state: info.text("restart_state")?.to_owned(),
            guard: text("restart_guard"),
            reason: text("restart_reason"),
            advice: text("restart_advice"),
            wait_ms: number("restart_wait_ms"),
            left_ms: number("restart_left_ms"),
            quarantine_seconds: info.quarantine_seconds(),
            incarnation: number("incarnation"),
            durability: text("durability"),
            disk_error: text("disk_error"),
        })
    }

    /// Why the node grants no locks, in a word; `None` if it does.
    pub(super) fn condition(&self) -> Option<&'static str> {
        match self.state.as_str() {
            "serving" => None,
            "quarantine" => Some("quarantine"),
            "full" => Some("disk full"),
            "failed" => Some("disk failed"),
            "closed" => Some("closed"),
            _ => Some("not serving"),
        }
    }

    /// A sentence about a node that does not serve.
    pub(super) fn note(&self) -> Option<String> {
        let reason = self.reason.replace('_', " ");
        let mut note = match self.state.as_str() {
            "serving" => return None,
            "quarantine" => format!(
                "in quarantine, {} s left ({reason})",
                self.quarantine_seconds.unwrap_or(0)
            ),
            "full" => "refuses requests that need the disk: it is full".to_owned(),
            "failed" => "grants nothing until it is restarted: the disk failed".to_owned(),
            other => other.to_owned(),
        };
        let more = if self.quarantine_seconds.is_some() {
            &self.advice
        } else {
            &self.disk_error
        };
        if !more.is_empty() {
            note.push_str(": ");
            note.push_str(more);
        }
        Some(note)
    }

    /// The number of starts, and which locks the disk keeps.
    pub(super) fn cells(&self) -> [String; 2] {
        let run = match self.incarnation {
            0 => "-".to_owned(),
            run => run.to_string(),
        };
        [self.durability.clone(), run]
    }

    pub(super) fn json(&self) -> Object {
        Object::default()
            .text("guard", &self.guard)
            .text("state", &self.state)
            .text("reason", &self.reason)
            .number("wait_ms", self.wait_ms)
            .number("left_ms", self.left_ms)
            .text("advice", &self.advice)
            .number("incarnation", self.incarnation)
            .text("durability", &self.durability)
            .text("disk_error", &self.disk_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[G2]` `[G13]` `[G14]`
    #[test]
    fn a_node_that_does_not_serve_says_why() {
        for (text, condition, note) in [
            (
                "restart_state:quarantine\nrestart_reason:crash\nrestart_left_ms:22001\nrestart_advice:do x",
                Some("quarantine"),
                Some("in quarantine, 23 s left (crash): do x"),
            ),
            (
                "restart_state:quarantine\nrestart_reason:no_directory\nrestart_left_ms:1000\n",
                Some("quarantine"),
                Some("in quarantine, 1 s left (no directory)"),
            ),
            (
                "restart_state:failed\nrestart_reason:crash\nrestart_advice:do x\ndisk_error:state: Input/output error",
                Some("disk failed"),
                Some(
                    "grants nothing until it is restarted: the disk failed: state: Input/output error",
                ),
            ),
            (
                "restart_state:full\ndisk_error:",
                Some("disk full"),
                Some("refuses requests that need the disk: it is full"),
            ),
            ("restart_state:closed\n", Some("closed"), Some("closed")),
            ("restart_state:serving\nrestart_reason:crash\n", None, None),
        ] {
            let restart = Restart::read(&ServerInfo::parse(text.as_bytes())).expect("a lock node");
            assert_eq!(restart.condition(), condition, "{text}");
            assert_eq!(restart.note().as_deref(), note, "{text}");
        }
        assert!(Restart::read(&ServerInfo::parse(b"redis_version:7.0.15")).is_none());
    }
}
