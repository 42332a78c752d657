// needs: cargo
// each: RESP2 RESP3
// also: login
//! fred, whose users write their locks themselves: with its `Script`, which loads what the node
//! does not know.

use fred::clients::Client;
use fred::prelude::*;
use fred::types::RespVersion;
use fred::types::scripts::Script;
use story::{Answer, Node, serve_by_hand};

struct Connection(Client);

impl Node for Connection {
    async fn open(
        address: &str,
        protocol: &str,
        database: u8,
        password: Option<&str>,
    ) -> Answer<Self> {
        let login = password.map_or(String::new(), |password| format!("default:{password}@"));
        let mut config = Config::from_url(&format!("redis://{login}{address}/{database}"))?;
        config.version = match protocol {
            "RESP2" => RespVersion::RESP2,
            _ => RespVersion::RESP3,
        };
        let client = Builder::from_config(config).build()?;
        client.init().await?;
        Ok(Self(client))
    }

    async fn set(&self, key: &str, value: &[u8], ttl: Option<u32>) -> Answer<bool> {
        let expiry = ttl.map(|millis| Expiration::PX(millis.into()));
        let condition = ttl.map(|_| SetOptions::NX);
        let reply: Option<String> = self.0.set(key, value, expiry, condition, false).await?;
        Ok(reply.as_deref() == Some("OK"))
    }

    async fn get(&self, key: &str) -> Answer<Option<Vec<u8>>> {
        Ok(self.0.get(key).await?)
    }

    async fn pttl(&self, key: &str) -> Answer<i64> {
        Ok(self.0.pttl(key).await?)
    }

    async fn run(&self, script: &'static str, key: &str, arguments: &[&[u8]]) -> Answer<usize> {
        let script = Script::from_lua(script);
        let arguments: Vec<Value> = arguments.iter().map(|&bytes| Value::from(bytes)).collect();
        Ok(script.evalsha_with_reload(&self.0, key, arguments).await?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    serve_by_hand::<Connection>("fred 10.1.0").await;
}
