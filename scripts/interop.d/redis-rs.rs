// needs: cargo
//! The `redis` crate, whose users write their locks themselves: under RESP2 and RESP3, with a
//! binary token, multiplexed, and its `Script`, which loads what the node does not know.

use std::env;
use std::marker::PhantomData;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, ExistenceCheck, Script, SetExpiry, SetOptions};
use story::{Client, EXTEND, RELEASE, RESOURCE, binary_token, nodes, quorum, tell};

trait Protocol {
    const QUERY: &'static str;
}

struct Resp2;
impl Protocol for Resp2 {
    const QUERY: &'static str = "protocol=resp2";
}

struct Resp3;
impl Protocol for Resp3 {
    const QUERY: &'static str = "protocol=resp3";
}

struct Connections<P>(Vec<MultiplexedConnection>, PhantomData<P>);

impl<P: Protocol> Client for Connections<P> {
    type Handle = Vec<u8>;

    async fn connect() -> Self {
        let mut connections = Vec::new();
        for node in nodes() {
            connections.push(
                open(&format!("redis://{node}/0?{}", P::QUERY))
                    .await
                    .expect("connected"),
            );
        }
        Self(connections, PhantomData)
    }

    async fn acquire(&self, resource: &str, ttl: Duration) -> Option<Vec<u8>> {
        let token = binary_token();
        let millis = u64::try_from(ttl.as_millis()).expect("a TTL fits");
        let options = SetOptions::default()
            .conditional_set(ExistenceCheck::NX)
            .with_expiration(SetExpiry::PX(millis));
        let mut votes = 0;
        for connection in &self.0 {
            let mut connection = connection.clone();
            let reply: Option<String> = connection
                .set_options(resource, &token, options.clone())
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
        let millis = u64::try_from(ttl.as_millis()).expect("a TTL fits");
        let mut votes = 0;
        for connection in &self.0 {
            let mut connection = connection.clone();
            let vote: usize = Script::new(EXTEND)
                .key(RESOURCE)
                .arg(token)
                .arg(millis)
                .invoke_async(&mut connection)
                .await
                .expect("the script runs");
            votes += vote;
        }
        votes >= quorum()
    }

    async fn release(&self, token: &Vec<u8>) {
        for connection in &self.0 {
            let mut connection = connection.clone();
            let _: usize = Script::new(RELEASE)
                .key(RESOURCE)
                .arg(token)
                .invoke_async(&mut connection)
                .await
                .expect("the script runs");
        }
    }
}

async fn open(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    redis::Client::open(url)?
        .get_multiplexed_async_connection()
        .await
}

async fn logs_in() {
    let node = env::var("INTEROP_AUTH_NODE").expect("INTEROP_AUTH_NODE names a node");
    let password = env::var("INTEROP_PASSWORD").expect("INTEROP_PASSWORD is its password");
    for query in [Resp2::QUERY, Resp3::QUERY] {
        let mut connection = open(&format!("redis://:{password}@{node}/3?{query}"))
            .await
            .expect("logged in");
        let () = connection
            .set("interop:login", "in")
            .await
            .expect("SET replies");
        let refused = open(&format!("redis://:wrong@{node}/?{query}")).await;
        assert!(
            refused.is_err(),
            "a wrong password was accepted under {query}"
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    tell::<Connections<Resp2>>().await;
    let steps = tell::<Connections<Resp3>>().await;
    logs_in().await;
    println!("redis-rs 1.8.1 (RESP2 and RESP3: {steps}, binary token, AUTH)");
}
