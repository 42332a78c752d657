// needs: cargo
// away: down=ok quarantine=ok
// lacks: token
//! rslock's manager: SET NX PX with 20 random bytes, and EVALSHA with SCRIPT LOAD on NOSCRIPT.

use std::time::Duration;

use rslock::{LockError, LockManager};
use story::{nodes, serve, word};

const TITLE: &str = "rslock 0.10.0 on redis-rs 1.8.1";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let urls: Vec<String> = nodes()
        .iter()
        .map(|node| format!("redis://{node}"))
        .collect();
    let mut manager = LockManager::new(urls);
    manager.set_retry(1, Duration::from_millis(10));
    let mut lock = None;
    serve(TITLE, async |words: &[&str]| {
        let done = match (words, &lock) {
            (&["acquire", key, ttl, _], _) => manager.lock(key, millis(ttl)?).await,
            (&["extend", ttl], Some(held)) => manager.extend(held, millis(ttl)?).await,
            (["query"], Some(held)) => {
                return match manager.is_freed(held).await {
                    Ok(freed) => word(!freed),
                    Err(LockError::RedisKeyNotFound) => word(false),
                    Err(error) => Err(error.into()),
                };
            }
            (["release"], Some(held)) => {
                manager.unlock(held).await;
                return Ok("done".to_owned());
            }
            _ => return Err(format!("unknown request {words:?}").into()),
        };
        match done {
            Ok(held) => lock = Some(held),
            Err(LockError::Unavailable) => return word(false),
            Err(error) => return Err(error.into()),
        }
        word(true)
    })
    .await;
}

fn millis(ttl: &str) -> Result<Duration, std::num::ParseIntError> {
    Ok(Duration::from_millis(ttl.parse()?))
}
