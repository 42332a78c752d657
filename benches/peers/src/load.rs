//! The load: `locknode bench` in a process of its own on the second core.

use std::process::Command;

use locknode_peers::server::Running;
use serde_json::Value;

use crate::options::Options;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// What `locknode bench` calls it.
    pub(crate) workload: &'static str,
    pub(crate) pipeline: u32,
    pub(crate) ttl: &'static str,
}

/// What it saw.
#[derive(Debug)]
pub(crate) struct Report(Value);

impl Load {
    pub(crate) const fn new(workload: &'static str, pipeline: u32, ttl: &'static str) -> Self {
        Self {
            workload,
            pipeline,
            ttl,
        }
    }

    /// Sends this many commands; `None` when the server does not know the command.
    ///
    /// # Errors
    ///
    /// When a reply is wrong.
    pub(crate) fn send(
        &self,
        options: &Options,
        server: &Running,
        commands: u64,
    ) -> Result<Option<Report>, String> {
        let Self {
            workload,
            pipeline,
            ttl,
        } = self;
        let line = format!(
            "--json --addr 127.0.0.1:{} --workload {workload} --requests {commands} \
             --pipeline {pipeline} --connections {CONNECTIONS} --ttl {ttl} --warmup 0s",
            server.port
        );
        let output = Command::new("taskset")
            .args(["-c", "1", &options.locknode, "bench"])
            .args(line.split_whitespace())
            .output()
            .map_err(|error| format!("cannot start the load generator: {error}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            if complaint.contains("unknown command") || complaint.contains("syntax error") {
                return Ok(None);
            }
            return Err(format!("the load generator failed: {}", complaint.trim()));
        }
        let report = serde_json::from_slice(&output.stdout);
        let report = report.map_err(|error| format!("unreadable report: {error}"))?;
        Ok(Some(Report(report)))
    }
}

impl Report {
    /// The number at a place of the JSON.
    pub(crate) fn number(&self, pointer: &str) -> f64 {
        let value = self.0.pointer(pointer).and_then(Value::as_f64);
        value.unwrap_or(f64::NAN)
    }

    /// A percentile in microseconds.
    pub(crate) fn latency(&self, point: &str) -> f64 {
        // A workload of one step has no sum over its steps.
        let all = self.number(&format!("/latency_us/all/{point}"));
        if all.is_nan() {
            self.number(&format!("/latency_us/acquire/{point}"))
        } else {
            all
        }
    }
}

/// Connections of every row.
const CONNECTIONS: u32 = 50;
