// needs: cargo
// each: RESP2 RESP3
// also: login
//! The `redis` crate, whose users write their locks themselves: multiplexed, and with its `Script`,
//! which loads what the node does not know.

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Client, ExistenceCheck, Script, SetExpiry, SetOptions};
use story::{Answer, Node, serve_by_hand};

struct Connection(MultiplexedConnection);

impl Node for Connection {
    async fn open(
        address: &str,
        protocol: &str,
        database: u8,
        password: Option<&str>,
    ) -> Answer<Self> {
        let login = password.map_or(String::new(), |password| format!(":{password}@"));
        let protocol = protocol.to_lowercase();
        let url = format!("redis://{login}{address}/{database}?protocol={protocol}");
        let client = Client::open(url)?;
        Ok(Self(client.get_multiplexed_async_connection().await?))
    }

    async fn set(&self, key: &str, value: &[u8], ttl: Option<u32>) -> Answer<bool> {
        let options = ttl.map_or(SetOptions::default(), |millis| {
            SetOptions::default()
                .conditional_set(ExistenceCheck::NX)
                .with_expiration(SetExpiry::PX(millis.into()))
        });
        let reply: Option<String> = self.0.clone().set_options(key, value, options).await?;
        Ok(reply.as_deref() == Some("OK"))
    }

    async fn get(&self, key: &str) -> Answer<Option<Vec<u8>>> {
        Ok(self.0.clone().get(key).await?)
    }

    async fn pttl(&self, key: &str) -> Answer<i64> {
        Ok(self.0.clone().pttl(key).await?)
    }

    async fn run(&self, script: &'static str, key: &str, arguments: &[&[u8]]) -> Answer<usize> {
        let script = Script::new(script);
        let mut call = script.key(key);
        for argument in arguments {
            call.arg(argument);
        }
        Ok(call.invoke_async(&mut self.0.clone()).await?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    serve_by_hand::<Connection>("redis-rs 1.8.1").await;
}
