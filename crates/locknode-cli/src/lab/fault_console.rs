//! Executes the commands `FAULT ...` of clients, one after the other, and answers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locknode_testkit::Fault;
use locknode_testkit::cluster::{Cluster, TappedCommand};
use tokio::sync::mpsc::UnboundedReceiver;

use super::dashboard::Dashboard;
use super::fault_command::{Asked, FaultCommand, help};

/// Executes what clients ask for with the word `FAULT`.
#[derive(Debug)]
pub(super) struct FaultConsole {
    cluster: Cluster,
    dashboard: Dashboard,
    /// Faults that will be undone after a time.
    waiting: Arc<AtomicUsize>,
}

impl FaultConsole {
    pub(super) fn new(cluster: Cluster, dashboard: Dashboard) -> Self {
        Self {
            cluster,
            dashboard,
            waiting: Arc::default(),
        }
    }

    /// Works until the cluster ends.
    pub(super) async fn serve(self, mut commands: UnboundedReceiver<TappedCommand>) {
        while let Some(command) = commands.recv().await {
            self.execute(command).await;
        }
    }

    async fn execute(&self, command: TappedCommand) {
        let words = command.args.iter().skip(1);
        let words: Vec<String> = words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let clients = self.cluster.clients();
        let ports = (0..clients).flat_map(|client| self.cluster.addresses_for(client));
        let ports: Vec<u16> = ports.flatten().map(|address| address.port()).collect();
        let asked = Asked {
            node: command.node,
            nodes: self.cluster.nodes(),
            ports: &ports,
            clients,
        };
        match FaultCommand::read(&words, asked) {
            Err(expected) => command.answer(error(&expected)),
            Ok(FaultCommand::Help) => command.answer(list(&help())),
            Ok(FaultCommand::Status) => {
                let addresses = self.cluster.addresses_for(command.client);
                command.answer(list(&self.dashboard.status(&addresses.unwrap_or_default())));
            }
            Ok(FaultCommand::RestartAll) => {
                let down = (0..self.cluster.nodes()).filter(|node| !self.cluster.is_up(*node));
                self.inject(command, down.map(Fault::Restart).collect(), None)
                    .await;
            }
            Ok(FaultCommand::Faults(faults, undo)) => self.inject(command, faults, undo).await,
        }
    }

    async fn inject(
        &self,
        command: TappedCommand,
        faults: Vec<Fault>,
        undo: Option<(Duration, Vec<Fault>)>,
    ) {
        if let Some(problem) = self.problem(&faults, undo.is_some()) {
            return command.answer(error(&problem));
        }
        let asked = command.node;
        let is_its_end = |fault: &Fault| matches!(fault, Fault::Crash(node, _) if *node == asked);
        let mut command = Some(command);
        let mut answer = |reply: &str| {
            if let Some(command) = command.take() {
                command.answer(reply);
            }
        };
        // A node that crashes answers first: afterwards the connection is gone.
        if faults.iter().any(is_its_end) {
            answer(OK);
        }
        for fault in faults {
            if let Err(problem) = self.cluster.inject(fault).await {
                answer(&error(&problem.to_string()));
                return;
            }
        }
        answer(OK);
        if let Some((after, faults)) = undo {
            self.undo(after, faults);
        }
    }

    /// Why these faults are refused.
    fn problem(&self, faults: &[Fault], is_undone: bool) -> Option<String> {
        let mut checked = faults.iter().map(|fault| self.cluster.check(fault));
        if let Some(Err(problem)) = checked.find(Result::is_err) {
            return Some(problem.to_string());
        }
        if self.waiting.load(Ordering::Relaxed) + faults.len() > WAITING_MAX && is_undone {
            return Some(format!(
                "at most {WAITING_MAX} faults can wait for the end of their FOR"
            ));
        }
        let crashes = |node: u8| {
            let is_crash = |fault: &Fault| matches!(fault, Fault::Crash(it, _) if *it == node);
            faults.iter().any(is_crash)
        };
        let mut nodes = 0..self.cluster.nodes();
        let is_last = nodes.clone().any(crashes)
            && nodes.all(|node| crashes(node) || !self.cluster.is_up(node));
        (is_last && !is_undone).then(|| {
            "no node would be left to take FAULT RESTART: FAULT CRASH FOR 5s restarts it after 5s".to_owned()
        })
    }

    fn undo(&self, after: Duration, faults: Vec<Fault>) {
        let (cluster, waiting) = (self.cluster.clone(), Arc::clone(&self.waiting));
        waiting.fetch_add(faults.len(), Ordering::Relaxed);
        drop(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            for fault in &faults {
                // A node that does not start is recorded, and shown.
                let _ = cluster.inject(*fault).await;
            }
            waiting.fetch_sub(faults.len(), Ordering::Relaxed);
        }));
    }
}

const OK: &str = "+OK\r\n";

fn error(problem: &str) -> String {
    format!("-ERR FAULT: {}; see FAULT HELP\r\n", one_line(problem))
}

/// A list of simple strings, as the HELP of Redis's commands.
fn list(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| format!("+{}\r\n", one_line(line)));
    format!("*{}\r\n{}", lines.len(), lines.collect::<String>())
}

/// It may contain what a client has sent.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Each is a timer.
const WAITING_MAX: usize = 100;
