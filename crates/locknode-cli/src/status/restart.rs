//! What a lock node reports about its last start and the next one. Pure: from fields to text.

use crate::json::Object;
use crate::server_info::ServerInfo;

/// What INFO of a lock node says about its restart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart<'i> {
    info: &'i ServerInfo,
    state: &'i str,
}

impl<'i> Restart<'i> {
    /// `None` for a server without a restart guard.
    pub(super) fn of(info: &'i ServerInfo) -> Option<Self> {
        let state = info.text("restart_state")?;
        Some(Self { info, state })
    }

    fn text(&self, field: &str) -> &'i str {
        self.info.text(field).unwrap_or_default()
    }

    /// Why the node grants no locks, in a word; `None` if it does.
    pub(super) fn condition(&self) -> Option<&'static str> {
        match self.state {
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
        let reason = self.text("restart_reason").replace('_', " ");
        let quarantine_seconds = self.info.quarantine_seconds();
        let mut note = match self.state {
            "serving" => return None,
            "quarantine" => format!(
                "in quarantine, {} s left ({reason})",
                quarantine_seconds.unwrap_or(0)
            ),
            "full" => "refuses requests that need the disk: it is full".to_owned(),
            "failed" => "grants nothing until it is restarted: the disk failed".to_owned(),
            other => other.to_owned(),
        };
        let more = self.text(match quarantine_seconds {
            Some(_) => "restart_advice",
            None => "disk_error",
        });
        if !more.is_empty() {
            note.extend([": ", more]);
        }
        Some(note)
    }

    /// The number of starts, and which locks the disk keeps.
    pub(super) fn cells(&self) -> [String; 2] {
        let run = match self.info.number("incarnation") {
            0 => "-".to_owned(),
            run => run.to_string(),
        };
        [self.text("durability").to_owned(), run]
    }

    pub(super) fn json(&self) -> Object {
        Object::default()
            .text("guard", self.text("restart_guard"))
            .text("state", self.state)
            .text("reason", self.text("restart_reason"))
            .number("wait_ms", self.info.number("restart_wait_ms"))
            .number("left_ms", self.info.number("restart_left_ms"))
            .text("advice", self.text("restart_advice"))
            .number("incarnation", self.info.number("incarnation"))
            .text("durability", self.text("durability"))
            .text("disk_error", self.text("disk_error"))
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
            let info = ServerInfo::parse(text.as_bytes());
            let restart = Restart::of(&info).expect("a lock node");
            assert_eq!(restart.condition(), condition, "{text}");
            assert_eq!(restart.note().as_deref(), note, "{text}");
        }
        assert!(Restart::of(&ServerInfo::parse(b"redis_version:7.0.15")).is_none());
    }
}
