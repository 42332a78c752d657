//! A Redlock written by hand on the crate `redis`: one multiplexed connection per node, all replies awaited.

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult, Script, Value};

use crate::client::load::LockClient;
use crate::client::{TTL, pinned};

/// The connections and the release script.
#[derive(Debug)]
pub(crate) struct FanOut {
    /// A node that did not answer at the start has none and counts as a vote against.
    connections: Vec<Option<MultiplexedConnection>>,
    /// Kept, so that its digest is computed once.
    release: Script,
}

/// A key and the token that it was set to.
#[derive(Debug)]
pub(crate) struct Held {
    key: String,
    token: [u8; 20],
}

impl FanOut {
    /// Connects to all nodes, with the crate's own time limits.
    pub(crate) async fn connect(addresses: &[String]) -> Self {
        let connections = addresses.iter().map(|node| async move {
            let client = Client::open(format!("redis://{node}")).ok()?;
            client.get_multiplexed_async_connection().await.ok()
        });
        Self {
            connections: join_all(connections).await,
            release: Script::new(RELEASE),
        }
    }

    fn is_quorum(&self, votes: usize) -> bool {
        votes > self.connections.len() / 2
    }
}

impl LockClient for FanOut {
    type Held = Held;

    fn title(&self) -> String {
        format!(
            "fan-out on redis-rs {} (tokio, one thread)",
            pinned("redis")
        )
    }

    async fn acquire(&self, key: &str) -> Option<Held> {
        let token: [u8; 20] = rand::random();
        let mut command = redis::cmd("SET");
        command.arg(key).arg(&token).arg("NX").arg("PX");
        command.arg(TTL.as_secs() * 1000);
        let votes = join_all(self.connections.iter().flatten().map(|connection| {
            let mut connection = connection.clone();
            let command = &command;
            async move { command.query_async(&mut connection).await }
        }));
        let votes = votes.await.into_iter();
        let granted = votes.filter(|vote: &RedisResult<Value>| matches!(vote, Ok(Value::Okay)));
        self.is_quorum(granted.count()).then(|| Held {
            key: key.to_owned(),
            token,
        })
    }

    async fn release(&self, held: Held) -> bool {
        let mut invocation = self.release.key(held.key);
        invocation.arg(&held.token);
        let votes = join_all(self.connections.iter().flatten().map(|connection| {
            let mut connection = connection.clone();
            let invocation = &invocation;
            async move { invocation.invoke_async(&mut connection).await }
        }));
        let votes = votes.await.into_iter();
        let released = votes.filter(|vote: &RedisResult<u32>| matches!(vote, Ok(1)));
        self.is_quorum(released.count())
    }

    async fn settle(&self) {}
}

const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) \
    else return 0 end";
