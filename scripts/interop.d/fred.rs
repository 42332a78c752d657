// needs: cargo
//! fred, whose users write their locks themselves: under RESP2 and RESP3, with a binary token and
//! its `Script`, which loads what the node does not know.

use std::env;
use std::marker::PhantomData;
use std::time::Duration;

use fred::clients::Client as Connection;
use fred::prelude::*;
use fred::types::RespVersion;
use fred::types::scripts::Script;
use story::{EXTEND, RELEASE, RESOURCE, binary_token, nodes, quorum, tell};

trait Protocol {
    const VERSION: RespVersion;
}

struct Resp2;
impl Protocol for Resp2 {
    const VERSION: RespVersion = RespVersion::RESP2;
}

struct Resp3;
impl Protocol for Resp3 {
    const VERSION: RespVersion = RespVersion::RESP3;
}

struct Connections<P>(Vec<Connection>, PhantomData<P>);

impl<P: Protocol> story::Client for Connections<P> {
    type Handle = Vec<u8>;

    async fn connect() -> Self {
        let mut connections = Vec::new();
        for node in nodes() {
            connections.push(
                open(&format!("redis://{node}/0"), P::VERSION)
                    .await
                    .expect("connected"),
            );
        }
        Self(connections, PhantomData)
    }

    async fn acquire(&self, resource: &str, ttl: Duration) -> Option<Vec<u8>> {
        let token = binary_token();
        let millis = i64::try_from(ttl.as_millis()).expect("a TTL fits");
        let mut votes = 0;
        for connection in &self.0 {
            let expiry = Some(Expiration::PX(millis));
            let reply: Option<String> = connection
                .set(
                    resource,
                    token.as_slice(),
                    expiry,
                    Some(SetOptions::NX),
                    false,
                )
                .await
                .expect("SET replies");
            votes += usize::from(reply.as_deref() == Some("OK"));
        }
        if votes >= quorum() {
            return Some(token);
        }
        self.release(&token).await;
        None
    }

    async fn extend(&self, token: &Vec<u8>, ttl: Duration) -> bool {
        let millis = i64::try_from(ttl.as_millis()).expect("a TTL fits");
        let mut votes = 0;
        for connection in &self.0 {
            let arguments = vec![Value::from(token.as_slice()), Value::from(millis)];
            votes += run(EXTEND, connection, arguments).await;
        }
        votes >= quorum()
    }

    async fn release(&self, token: &Vec<u8>) {
        for connection in &self.0 {
            run(RELEASE, connection, vec![Value::from(token.as_slice())]).await;
        }
    }
}

async fn run(script: &str, connection: &Connection, arguments: Vec<Value>) -> usize {
    let script = Script::from_lua(script);
    script
        .evalsha_with_reload(connection, RESOURCE, arguments)
        .await
        .expect("the script runs")
}

async fn open(url: &str, version: RespVersion) -> FredResult<Connection> {
    let mut config = Config::from_url(url)?;
    config.version = version;
    let connection = Builder::from_config(config).build()?;
    connection.init().await?;
    Ok(connection)
}

async fn logs_in() {
    let node = env::var("INTEROP_AUTH_NODE").expect("INTEROP_AUTH_NODE names a node");
    let password = env::var("INTEROP_PASSWORD").expect("INTEROP_PASSWORD is its password");
    for version in [RespVersion::RESP2, RespVersion::RESP3] {
        let url = format!("redis://default:{password}@{node}/3");
        let connection = open(&url, version.clone()).await.expect("logged in");
        let () = connection
            .set("interop:login", "in", None, None, false)
            .await
            .expect("SET replies");
        let refused = open(&format!("redis://default:wrong@{node}/0"), version).await;
        assert!(refused.is_err(), "a wrong password was accepted");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    tell::<Connections<Resp2>>().await;
    let steps = tell::<Connections<Resp3>>().await;
    logs_in().await;
    println!("fred 10.1.0 (RESP2 and RESP3: {steps}, binary token, AUTH)");
}
