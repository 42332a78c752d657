//! Where `FAULT` commands are done and answered, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locknode_testkit::Fault;
use locknode_testkit::cluster::{Cluster, DeskRequest};
use tokio::sync::mpsc::UnboundedReceiver;

use super::dashboard::Dashboard;
use super::fault_command::{Asked, Order, help};

/// Does what clients ask for with the word `FAULT`.
#[derive(Debug)]
pub(super) struct Desk {
    hands: Hands,
    requests: UnboundedReceiver<DeskRequest>,
}

/// What it takes to do a fault. Clones share everything.
#[derive(Clone, Debug)]
struct Hands {
    cluster: Cluster,
    dashboard: Dashboard,
    /// Faults that wait for being taken back.
    waiting: Arc<AtomicUsize>,
}

impl Desk {
    pub(super) fn new(
        cluster: Cluster,
        dashboard: Dashboard,
        requests: UnboundedReceiver<DeskRequest>,
    ) -> Self {
        let hands = Hands {
            cluster,
            dashboard,
            waiting: Arc::default(),
        };
        Self { hands, requests }
    }

    /// Works until the cluster ends.
    pub(super) async fn serve(mut self) {
        while let Some(request) = self.requests.recv().await {
            self.hands.serve(request).await;
        }
    }
}

impl Hands {
    async fn serve(&self, request: DeskRequest) {
        let words = request.args.iter().skip(1);
        let words: Vec<String> = words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let addresses = self
            .cluster
            .addresses_for(request.client)
            .unwrap_or_default();
        let clients = self.cluster.clients();
        let ports = (0..clients).flat_map(|client| self.cluster.addresses_for(client));
        let ports: Vec<u16> = ports.flatten().map(|address| address.port()).collect();
        let asked = Asked {
            node: request.node,
            nodes: self.cluster.nodes(),
            ports: &ports,
            clients,
        };
        match Order::read(&words, asked) {
            Err(expected) => request.answer(error(&expected)),
            Ok(Order::Help) => request.answer(lines(help().iter().map(String::as_str))),
            Ok(Order::Status) => {
                let status = self.dashboard.status(&addresses);
                request.answer(lines(status.iter().map(String::as_str)));
            }
            Ok(Order::RestartAll) => {
                let down = (0..self.cluster.nodes()).filter(|node| !self.cluster.is_up(*node));
                let restarts: Vec<Fault> = down.map(Fault::Restart).collect();
                self.answer(request, restarts, None).await;
            }
            Ok(Order::Faults(faults, later)) => self.answer(request, faults, later).await,
        }
    }

    async fn answer(
        &self,
        request: DeskRequest,
        faults: Vec<Fault>,
        later: Option<(Duration, Vec<Fault>)>,
    ) {
        if let Some(problem) = self.problem(&faults, later.is_some()) {
            request.answer(error(&problem));
            return;
        }
        // Nobody who is asked to die can answer afterwards.
        let mut request = Some(request);
        let dies = request.as_ref().is_some_and(|request| {
            faults
                .iter()
                .any(|fault| matches!(fault, Fault::Crash(node, _) if *node == request.node))
        });
        if dies && let Some(request) = request.take() {
            request.answer(OK);
        }
        let mut done = Ok(());
        for fault in faults {
            done = self.cluster.inject(fault).await;
            if done.is_err() {
                break;
            }
        }
        if let Some(request) = request {
            match &done {
                Ok(()) => request.answer(OK),
                Err(problem) => request.answer(error(&problem.to_string())),
            }
        }
        if let (Ok(()), Some((lasts, undone))) = (done, later) {
            self.undo_after(lasts, undone);
        }
    }

    /// What speaks against these faults.
    fn problem(&self, faults: &[Fault], is_taken_back: bool) -> Option<String> {
        if let Some(problem) = faults
            .iter()
            .find_map(|fault| self.cluster.check(fault).err())
        {
            return Some(problem.to_string());
        }
        if self.waiting.load(Ordering::Relaxed) + faults.len() > WAITING_MAX && is_taken_back {
            return Some(format!(
                "more than {WAITING_MAX} faults wait for being taken back"
            ));
        }
        let ended: BTreeSet<u8> = faults
            .iter()
            .filter_map(|fault| match fault {
                Fault::Crash(node, _) => Some(*node),
                _ => None,
            })
            .collect();
        let mut up = (0..self.cluster.nodes()).filter(|node| self.cluster.is_up(*node));
        let is_last = !ended.is_empty() && up.all(|node| ended.contains(&node));
        (is_last && !is_taken_back).then(|| {
            "no node would be left to tell them to start again: FAULT CRASH FOR 5s starts it by itself"
                .to_owned()
        })
    }

    fn undo_after(&self, lasts: Duration, undone: Vec<Fault>) {
        let hands = self.clone();
        hands.waiting.fetch_add(undone.len(), Ordering::Relaxed);
        drop(tokio::spawn(async move {
            tokio::time::sleep(lasts).await;
            for fault in &undone {
                // A node that does not start is recorded, and shown.
                let _ = hands.cluster.inject(*fault).await;
            }
            hands.waiting.fetch_sub(undone.len(), Ordering::Relaxed);
        }));
    }
}

const OK: &str = "+OK\r\n";

fn error(problem: &str) -> String {
    format!(
        "-ERR FAULT: {}; FAULT HELP tells what there is\r\n",
        one_line(problem)
    )
}

/// A list of simple strings, as HELP of Redis' commands.
fn lines<'a>(lines: impl ExactSizeIterator<Item = &'a str>) -> String {
    let mut reply = format!("*{}\r\n", lines.len());
    for line in lines {
        reply.push('+');
        reply.push_str(&one_line(line));
        reply.push_str("\r\n");
    }
    reply
}

/// What a client has sent may be in it.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Each is a timer.
const WAITING_MAX: usize = 100;
