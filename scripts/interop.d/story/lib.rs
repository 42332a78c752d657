//! Drives a Rust library by the lines that story.py describes.

use std::env;
use std::error::Error;
use std::future::Future;

use tokio::io::{AsyncBufReadExt, BufReader};

/// The release script of the documented algorithm, for the clients that are no lock libraries.
const RELEASE: &str =
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
/// The same condition before a new TTL.
const EXTEND: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then \
     return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";

pub type Answer<T> = Result<T, Box<dyn Error>>;

/// The addresses of the nodes.
pub fn nodes() -> Vec<String> {
    let nodes = env::var("INTEROP_NODES").expect("INTEROP_NODES names the nodes");
    nodes.split(',').map(str::to_owned).collect()
}

/// The reply that says whether the library did it.
pub fn word(done: bool) -> Answer<String> {
    Ok(if done { "yes" } else { "no" }.to_owned())
}

/// Replies to the words of each line until the input ends.
pub async fn serve(title: &str, mut reply: impl AsyncFnMut(&[&str]) -> Answer<String>) {
    println!("ready {title}");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.expect("the story writes lines") {
        let words: Vec<&str> = line.split(' ').collect();
        match reply(&words).await {
            Ok(text) => println!("{text}"),
            Err(error) => println!("error {}", error.to_string().replace(['\r', '\n'], " ")),
        }
    }
}

/// A driver's connection to one node; a lock on all nodes is what its users write themselves.
pub trait Node: Sized {
    /// Connects under RESP2 or RESP3, and logs in where there is a password.
    fn open(
        address: &str,
        protocol: &str,
        database: u8,
        password: Option<&str>,
    ) -> impl Future<Output = Answer<Self>>;
    /// Sets the key, with a TTL only when there is none.
    fn set(&self, key: &str, value: &[u8], ttl: Option<u32>) -> impl Future<Output = Answer<bool>>;
    fn get(&self, key: &str) -> impl Future<Output = Answer<Option<Vec<u8>>>>;
    fn pttl(&self, key: &str) -> impl Future<Output = Answer<i64>>;
    fn run(
        &self,
        script: &'static str,
        key: &str,
        arguments: &[&[u8]],
    ) -> impl Future<Output = Answer<usize>>;
}

/// Serves the story with a lock by hand, under the protocol that is the variant.
pub async fn serve_by_hand<N: Node>(title: &str) {
    let protocol = env::args().nth(1).expect("a variant");
    let mut connections = Vec::new();
    for address in nodes() {
        connections.push(
            N::open(&address, &protocol, 0, None)
                .await
                .expect("connected"),
        );
    }
    let (mut key, mut token) = (String::new(), Vec::new());
    serve(title, async |words: &[&str]| {
        let mut votes = 0;
        match *words {
            ["acquire", name, ttl, hex] => {
                (key, token) = (name.to_owned(), bytes(hex)?);
                for node in &connections {
                    votes += usize::from(node.set(&key, &token, Some(ttl.parse()?)).await?);
                }
            }
            ["extend", ttl] => {
                for node in &connections {
                    votes += node.run(EXTEND, &key, &[&token, ttl.as_bytes()]).await?;
                }
            }
            ["query"] => {
                let mut least = i64::MAX;
                for node in &connections {
                    let held = node.get(&key).await?.as_ref() == Some(&token);
                    least = least.min(if held { node.pttl(&key).await? } else { 0 });
                }
                return Ok(least.to_string());
            }
            ["release"] => {
                for node in &connections {
                    votes += node.run(RELEASE, &key, &[&token]).await?;
                }
            }
            ["forge", name, hex] => {
                (key, token) = (name.to_owned(), bytes(hex)?);
                return Ok("done".to_owned());
            }
            ["login", ref password @ ..] => {
                let address = env::var("INTEROP_AUTH_NODE")?;
                let node = N::open(&address, &protocol, 3, password.first().copied()).await?;
                return word(node.set("interop:login", b"in", None).await?);
            }
            _ => return Err(format!("unknown request {words:?}").into()),
        }
        Ok(votes.to_string())
    })
    .await;
}

fn bytes(hex: &str) -> Answer<Vec<u8>> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16);
    Ok((0..hex.len())
        .step_by(2)
        .map(byte)
        .collect::<Result<_, _>>()?)
}
