//! A lock node that misbehaves as it is told.
//!
//! It is honest until a test says otherwise: behind it works the engine of a locknode, so that what it grants, extends
//! and releases is what a real node would. A test then tells it to answer a certain request in a certain way, to
//! vanish, to fall silent, to come back; it looks at the keys that are left and at the requests that came. Nothing in
//! it depends on how long anything takes: late replies leave when the test lets them.
//!
//! ```text
//!  request --> received --> rule for it? --+-- no ---> engine ---------> reply
//!                                          +-- yes --> Behaviour decides what is applied and what is answered
//! ```
//! * [`Behaviour`]: how to answer one request
//! * [`On`]: which requests
//! * [`Flavour`]: which server it takes itself for
//! * [`Received`]: what came, in order of arrival over all fakes of the process

mod behaviour;
mod connection;
mod flavour;
mod received;
mod state;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;

pub use behaviour::{Behaviour, Hold, errors};
pub use flavour::Flavour;
pub use received::{On, Purpose, Received};

use crate::loopback::LoopbackPort;
use crate::patience::{PATIENCE, eventually};
use state::{Mode, State};

/// A scriptable lock node on a loopback port; it ends with its value.
#[derive(Debug)]
pub struct FakeNode {
    state: Arc<State>,
    /// The first is the one that [`FakeNode::url`] names; others are further ways to the same node.
    doors: Mutex<Vec<Door>>,
    password: Option<String>,
}

/// One address of a node.
#[derive(Debug)]
struct Door {
    port: LoopbackPort,
    listening: Option<JoinHandle<()>>,
    /// Connections that fill the backlog, so that nobody else gets an answer.
    stuffing: Vec<TcpStream>,
}

impl FakeNode {
    /// A node that takes itself for a plain Redis 7: scripts, none of the newer commands.
    pub async fn start() -> Self {
        Self::start_as(Flavour::Redis7).await
    }

    /// A node that takes itself for the given server.
    pub async fn start_as(flavour: Flavour) -> Self {
        Self::start_with(State::new(flavour, ""), None)
    }

    /// A node with a password for user `default`. [`FakeNode::url`] does not contain it.
    pub async fn start_with_password(password: &str) -> Self {
        Self::start_with(State::new(Flavour::Redis7, password), Some(password))
    }

    fn start_with(state: State, password: Option<&str>) -> Self {
        let fake = Self {
            state: Arc::new(state),
            doors: Mutex::default(),
            password: password.map(str::to_owned),
        };
        fake.open_another_door();
        fake
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.doors.lock().expect("no panic")[0].port.address()
    }

    /// Where it listens, as Redis users write it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// As [`FakeNode::url`], with the password.
    pub fn url_with_password(&self) -> String {
        let password = self.password.as_deref().unwrap_or_default();
        format!("redis://:{password}@{}", self.address())
    }

    /// Listens on one more port: another way to the same node.
    pub fn open_another_door(&self) -> SocketAddr {
        let port = LoopbackPort::reserve();
        let address = port.address();
        let listening = Some(connection::listen(&self.state, port.listen(BACKLOG)));
        self.doors.lock().expect("no panic").push(Door {
            port,
            listening,
            stuffing: Vec::new(),
        });
        address
    }

    // How it answers.

    /// Answers the next such request in the given way, and those after it as before.
    pub fn next(&self, on: impl Into<On>, behaviour: Behaviour) {
        self.state.add_rule(on.into(), behaviour, Some(1));
    }

    /// Answers every such request in the given way until [`FakeNode::behave`].
    pub fn always(&self, on: impl Into<On>, behaviour: Behaviour) {
        self.state.add_rule(on.into(), behaviour, None);
    }

    /// Executes such requests when they come and keeps their replies back until the handle lets them go; what comes
    /// after them on the same connection waits behind them.
    pub fn hold(&self, on: impl Into<On>) -> Hold {
        let hold = Hold::default();
        self.always(on, Behaviour::ApplyThenWait(hold.clone()));
        hold
    }

    /// As [`FakeNode::hold`] for the very next such request only.
    pub fn hold_next(&self, on: impl Into<On>) -> Hold {
        let hold = Hold::default();
        self.next(on, Behaviour::ApplyThenWait(hold.clone()));
        hold
    }

    /// Keeps such requests back, as a slow network does, and executes them when the handle lets them go, whether the
    /// client still waits or not.
    pub fn delay_next(&self, on: impl Into<On>) -> Hold {
        let hold = Hold::default();
        self.next(on, Behaviour::WaitThenApply(hold.clone()));
        hold
    }

    /// Forgets every rule.
    pub fn behave(&self) {
        self.state.clear_rules();
    }

    // Whether it answers at all.

    /// Closes every connection and refuses new ones. It keeps its keys.
    pub async fn go_down(&self) {
        let listening: Vec<_> = self.with_doors(|door| door.listening.take());
        for task in listening.into_iter().flatten() {
            task.abort();
            // Once the task has ended its listener is closed.
            let _ = task.await;
        }
        self.with_doors(|door| door.stuffing.clear());
        self.state.close_connections().await;
    }

    /// Goes down and forgets every key and script, as a node without a disk does. The run that comes back is another
    /// one.
    pub async fn crash(&self) {
        self.go_down().await;
        self.state.forget_everything();
    }

    /// Listens again and answers again. Connections that were left without an answer are closed.
    pub async fn come_back(&self) {
        self.go_down().await;
        self.state.set_mode(Mode::Answering);
        self.with_doors(|door| {
            door.listening = Some(connection::listen(&self.state, door.port.listen(BACKLOG)));
        });
    }

    /// Reads everything and neither executes nor answers it: on open connections, too.
    pub fn fall_silent(&self) {
        self.state.set_mode(Mode::Silent);
    }

    /// Accepts connections and never reads from them, nor from the open ones.
    pub fn stop_reading(&self) {
        self.state.set_mode(Mode::NotReading);
    }

    /// Closes every connection; new ones are neither accepted nor refused, as behind a firewall that drops packets.
    pub async fn leave_connects_hanging(&self) {
        self.go_down().await;
        let mut listeners = Vec::new();
        let addresses = self.with_doors(|door| {
            listeners.push(door.port.listen(0));
            door.port.address()
        });
        let mut stuffing = Vec::new();
        for address in addresses {
            let mut held = Vec::new();
            // The kernel takes a connection or two into the backlog before it drops the next.
            while let Ok(Ok(stream)) =
                tokio::time::timeout(CONNECT_HANGS, TcpStream::connect(address)).await
            {
                held.push(stream);
            }
            stuffing.push(held);
        }
        let (mut stuffing, mut listeners) = (stuffing.into_iter(), listeners.into_iter());
        self.with_doors(|door| {
            door.stuffing = stuffing.next().unwrap_or_default();
            let listener = listeners.next();
            door.listening = Some(tokio::spawn(async move {
                let _open = listener;
                std::future::pending().await
            }));
        });
    }

    /// Closes the connections that are open now.
    pub async fn hang_up(&self) {
        self.state.close_connections().await;
    }

    // What it holds.

    /// The keys it holds and their tokens.
    pub fn keys(&self) -> BTreeMap<String, String> {
        self.state.keys()
    }

    /// The token that the key is held by.
    pub fn holder(&self, key: &str) -> Option<String> {
        self.keys().remove(key)
    }

    /// How long the key still lives; `None` when it is not there or has no end.
    pub fn remaining(&self, key: &str) -> Option<Duration> {
        self.state.remaining(key)
    }

    /// Gives the key to somebody, or away.
    pub fn put(&self, key: &str, token: &str, ttl: Duration) {
        let ttl_ms = ttl.as_millis().to_string();
        self.state.run(&["SET", key, token, "PX", &ttl_ms]);
    }

    /// Takes the key away.
    pub fn remove(&self, key: &str) {
        self.state.run(&["DEL", key]);
    }

    /// Lets time pass on the node's clock, and only there.
    pub fn pass_time(&self, by: Duration) {
        self.state.pass_time(by);
    }

    /// Forgets the scripts that it was sent, as SCRIPT FLUSH and failovers do.
    pub fn forget_scripts(&self) {
        self.state.forget_scripts();
    }

    // What came.

    /// Every request in the order of arrival, those that were not answered included.
    pub fn received(&self) -> Vec<Received> {
        self.state.received()
    }

    /// How many requests with that purpose have come.
    pub fn count(&self, on: impl Into<On>) -> usize {
        let on = on.into();
        self.received()
            .iter()
            .filter(|request| on.matches(request))
            .count()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.state.connections_accepted()
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.state.connections_open()
    }

    /// Waits until the requests that have come satisfy the condition.
    pub async fn wait_for(&self, what: &str, condition: impl Fn(&[Received]) -> bool) {
        let result = tokio::time::timeout(PATIENCE, async {
            let mut changes = self.state.changes();
            while !condition(&self.received()) {
                let _ = changes.changed().await;
            }
        });
        assert!(
            result.await.is_ok(),
            "{} never saw {what}, only:\n{}",
            self.address(),
            self.story()
        );
    }

    /// Waits until at least that many such requests have come.
    pub async fn wait_for_count(&self, on: impl Into<On>, count: usize) {
        let on = on.into();
        self.wait_for(&format!("{count} of {on:?}"), |requests| {
            requests
                .iter()
                .filter(|request| on.matches(request))
                .count()
                >= count
        })
        .await;
    }

    /// Waits until it holds no key.
    pub async fn wait_until_empty(&self) {
        let what = format!("{} is empty of {:?}", self.address(), self.keys());
        eventually(&what, || self.keys().is_empty()).await;
    }

    /// The requests that came, one a line, for people.
    pub fn story(&self) -> String {
        self.received()
            .iter()
            .map(|request| format!("  {request}\n"))
            .collect()
    }

    fn with_doors<T>(&self, work: impl FnMut(&mut Door) -> T) -> Vec<T> {
        let mut doors = self.doors.lock().expect("no panic");
        doors.iter_mut().map(work).collect()
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        for task in self
            .with_doors(|door| door.listening.take())
            .iter()
            .flatten()
        {
            task.abort();
        }
        self.state.abort_connections();
    }
}

/// Connections that nobody has accepted yet, at most.
const BACKLOG: u32 = 128;

/// A loopback connection that is not there by now will not be: the kernel tries again after a second.
const CONNECT_HANGS: Duration = Duration::from_millis(200);
