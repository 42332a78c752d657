//! The output and exit code of `locknode status`. Pure: from states to text.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use super::restart::Restart;
use crate::duration;
use crate::failure::Exit;
use crate::json::Object;
use crate::server_info::ServerInfo;
use crate::size;

/// The state of all nodes.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) nodes: Vec<NodeStatus>,
}

/// A node and its state.
#[derive(Debug)]
pub(super) struct NodeStatus {
    pub(super) address: String,
    /// Or why it does not reply.
    pub(super) state: Result<State, String>,
}

/// The state of a node that replies.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// [`SERVING`], or why it grants no locks.
    pub(super) condition: &'static str,
    pub(super) info: ServerInfo,
    pub(super) round_trip: Duration,
}

impl Report {
    /// 0 when every node serves, 75 when a majority does, 69 otherwise.
    pub(super) fn exit(&self) -> Exit {
        let serving = self.serving();
        if serving == self.nodes.len() {
            Exit::Success
        } else if serving >= self.majority() {
            Exit::Degraded
        } else {
            Exit::Unavailable
        }
    }

    /// A table for people, with a summary of the majority.
    pub(super) fn table(&self) -> String {
        let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
        rows.extend(self.nodes.iter().map(NodeStatus::cells));
        let mut text = table(&rows, NUMBERS_FROM..HEADER.len());
        for node in &self.nodes {
            if let Some(note) = node.note() {
                let _ = writeln!(text, "\n{}: {note}", node.address);
            }
        }
        let verdict = match self.exit() {
            Exit::Success => "all nodes serve",
            Exit::Degraded => "locks can be acquired, but check the others",
            _ => "no lock can be acquired",
        };
        let (serving, all, majority) = (self.serving(), self.nodes.len(), self.majority());
        let _ = writeln!(
            text,
            "\n{serving} of {all} serve, a majority is {majority}: {verdict}"
        );
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let object = Object::default()
            .list("nodes", self.nodes.iter().map(NodeStatus::json))
            .number("serving", self.serving())
            .number("majority", self.majority());
        object.finish() + "\n"
    }

    fn serving(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_serving()).count()
    }

    fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }
}

impl NodeStatus {
    fn is_serving(&self) -> bool {
        let state = self.state.as_ref();
        state.is_ok_and(|state| state.condition == SERVING)
    }

    /// Why a node replies but does not serve, for people.
    fn note(&self) -> Option<String> {
        Restart::of(&self.state.as_ref().ok()?.info)?.note()
    }

    fn cells(&self) -> Vec<String> {
        let address = self.address.clone();
        let state = match &self.state {
            Ok(state) => state,
            Err(reason) => return vec![address, format!("away: {reason}")],
        };
        let nothing = || ["-".to_owned(), "-".to_owned()];
        let info = &state.info;
        let restart = Restart::of(info);
        let [durability, run] = restart.map_or_else(nothing, |restart| restart.cells());
        let (server, version) = info.server();
        vec![
            address,
            state.condition.to_owned(),
            format!("{server} {version}"),
            durability,
            run,
            duration::display_seconds(info.number("uptime_in_seconds")),
            info.keys().to_string(),
            info.number("connected_clients").to_string(),
            info.number("instantaneous_ops_per_sec").to_string(),
            size::display(info.number("used_memory")),
            format!("{:.3} ms", state.round_trip.as_secs_f64() * 1e3),
        ]
    }

    fn json(&self) -> Object {
        let object = Object::default().text("address", &self.address);
        let state = match &self.state {
            Ok(state) => state,
            Err(reason) => return object.text("state", "away").text("reason", reason),
        };
        let info = &state.info;
        let (server, version) = info.server();
        let object = object
            .text("state", state.condition)
            .text("server", server)
            .text("version", version)
            .number("uptime_seconds", info.number("uptime_in_seconds"))
            .number("keys", info.keys())
            .number("clients", info.number("connected_clients"))
            .number(
                "commands_per_second",
                info.number("instantaneous_ops_per_sec"),
            )
            .number("memory_bytes", info.number("used_memory"))
            .number("round_trip_us", state.round_trip.as_micros());
        match Restart::of(info) {
            Some(restart) => object.object("restart", restart.json()),
            None => object,
        }
    }
}

/// The rows as lines with their cells in columns, those in `right` aligned to the right. A row with
/// fewer cells than the first may run through all columns.
pub(crate) fn table(rows: &[Vec<String>], right: Range<usize>) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let rows = rows
            .iter()
            .filter(|row| column == 0 || row.len() == columns);
        let lens = rows.map(|row| row[column].chars().count());
        lens.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if right.contains(&column) {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The condition of a node that grants locks.
pub(super) const SERVING: &str = "serving";

const HEADER: [&str; 11] = [
    "address",
    "state",
    "server",
    "durability",
    "run",
    "uptime",
    "keys",
    "clients",
    "ops/s",
    "memory",
    "round trip",
];

/// The first column that is right-aligned.
const NUMBERS_FROM: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: usize, condition: Option<&'static str>) -> NodeStatus {
        node_with(index, condition, "")
    }

    fn node_with(index: usize, condition: Option<&'static str>, restart: &str) -> NodeStatus {
        let info =
            "locknode_version:0.1.0\nuptime_in_seconds:61\ndb0:keys=12\nconnected_clients:3\n\
            instantaneous_ops_per_sec:4567\nused_memory:1048576\n"
                .to_owned();
        let state = condition.map(|condition| State {
            condition,
            info: ServerInfo::parse((info + restart).as_bytes()),
            round_trip: Duration::from_micros(87),
        });
        NodeStatus {
            address: format!("127.0.0.1:710{index}"),
            state: state.ok_or_else(|| "connection refused".to_owned()),
        }
    }

    #[test]
    fn the_exit_code_says_whether_a_majority_serves() {
        let up = Some(SERVING);
        for (conditions, expected) in [
            (vec![up], Exit::Success),
            (vec![None], Exit::Unavailable),
            (vec![up, up, up], Exit::Success),
            (vec![up, up, None], Exit::Degraded),
            (vec![up, up, Some("loading")], Exit::Degraded),
            (vec![up, None, Some("replica")], Exit::Unavailable),
            (vec![up, up, None, None], Exit::Unavailable),
            (vec![up, up, up, None, None], Exit::Degraded),
        ] {
            let nodes = conditions
                .iter()
                .enumerate()
                .map(|(index, up)| node(index, *up))
                .collect();
            assert_eq!(Report { nodes }.exit(), expected, "{conditions:?}");
        }
    }

    /// `[G2]`
    #[test]
    fn the_table_lines_up_and_sentences_do_not_widen_it() {
        let report = Report {
            nodes: vec![
                node_with(1, Some(SERVING), SERVES),
                node(2, None),
                node_with(3, Some("quarantine"), WAITS),
                node(4, Some(SERVING)),
            ],
        };
        assert_eq!(
            report.table(),
            "address         state       server          durability  run  uptime  keys  clients  ops/s  memory  round trip\n\
             127.0.0.1:7101  serving     locknode 0.1.0  long         12   1m 1s    12        3   4567  1.0 MB    0.087 ms\n\
             127.0.0.1:7102  away: connection refused\n\
             127.0.0.1:7103  quarantine  locknode 0.1.0  none          -   1m 1s    12        3   4567  1.0 MB    0.087 ms\n\
             127.0.0.1:7104  serving     locknode 0.1.0  -             -   1m 1s    12        3   4567  1.0 MB    0.087 ms\n\
             \n\
             127.0.0.1:7103: in quarantine, 23 s left (no directory): do x\n\
             \n\
             2 of 4 serve, a majority is 3: no lock can be acquired\n"
        );
    }

    /// `[G2]`
    #[test]
    fn json_has_everything() {
        let report = Report {
            nodes: vec![
                node(1, Some(SERVING)),
                node(2, None),
                node_with(3, Some("quarantine"), WAITS),
            ],
        };
        assert_eq!(
            report.json(),
            "{\"nodes\":[{\"address\":\"127.0.0.1:7101\",\"state\":\"serving\",\"server\":\"locknode\",\
             \"version\":\"0.1.0\",\"uptime_seconds\":61,\"keys\":12,\"clients\":3,\
             \"commands_per_second\":4567,\"memory_bytes\":1048576,\"round_trip_us\":87},\
             {\"address\":\"127.0.0.1:7102\",\"state\":\"away\",\"reason\":\"connection refused\"},\
             {\"address\":\"127.0.0.1:7103\",\"state\":\"quarantine\",\"server\":\"locknode\",\
             \"version\":\"0.1.0\",\"uptime_seconds\":61,\"keys\":12,\"clients\":3,\
             \"commands_per_second\":4567,\"memory_bytes\":1048576,\"round_trip_us\":87,\
             \"restart\":{\"guard\":\"on\",\"state\":\"quarantine\",\"reason\":\"no_directory\",\
             \"wait_ms\":60602,\"left_ms\":22001,\"advice\":\"do x\",\"incarnation\":0,\
             \"durability\":\"none\",\"disk_error\":\"\"}}],\
             \"serving\":1,\"majority\":2}\n"
        );
    }

    const SERVES: &str = "restart_guard:on\nrestart_state:serving\nrestart_reason:clean_stop\nincarnation:12\n\
        durability:long\n";

    const WAITS: &str = "restart_guard:on\nrestart_state:quarantine\nrestart_reason:no_directory\n\
        restart_wait_ms:60602\nrestart_left_ms:22001\nrestart_advice:do x\nincarnation:0\ndurability:none\n";
}
