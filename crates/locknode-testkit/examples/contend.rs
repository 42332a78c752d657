//! Clients that acquire and release locks on nodes elsewhere for a while, whatever happens to these, and a verdict on what they
//! believed: were two of them holders of one lock at a time?
//!
//! ```text
//! cargo run --release -p locknode-testkit --example contend -- 10.0.0.1,10.0.0.2,10.0.0.3 60 history.jsonl
//! ```
//!
//! The arguments are the nodes, how many seconds, and where the history goes. Half of the clients want the same three locks;
//! each of the others has a lock of its own, which it gets at once unless the nodes make it wait: its longest wait is what
//! the nodes cost. It prints an object of JSON. A line on standard input ends it early. Exits with 1 when a promise was broken.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is there to tell people"
)]

use std::collections::BTreeMap;
use std::io::stdin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locknode_testkit::cluster::Recorder;
use locknode_testkit::history::Event;
use locknode_testkit::{Scenario, Setup, ViolationKind, check_all};
use redlock_client::{FencingToken, Redlock, RetryPolicy};
use tokio::time::{Instant, sleep};

/// How many clients want the same locks, and how many have one of their own.
const CLIENTS: u8 = 4;
/// The locks that several want.
const SHARED: usize = 3;
const TTL: Duration = Duration::from_secs(5);
/// A client works for so long under its lock.
const HOLD: Duration = Duration::from_millis(5);
/// A client gives up after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The rules about what clients believe. What the nodes did is in no history here, so that others would judge by nothing.
const OF_BELIEFS: [ViolationKind; 5] = [
    ViolationKind::Exclusion,
    ViolationKind::FencingDuplicate,
    ViolationKind::FencingOrder,
    ViolationKind::Continuity,
    ViolationKind::Expired,
];

/// What the clients saw.
#[derive(Debug, Default)]
struct Seen {
    acquired: u64,
    failed: u64,
    lost: u64,
    /// The longest that a client with a lock of its own has waited for it.
    longest: Duration,
    /// Why nodes took no part, and how often: what they replied, or what became of the request.
    causes: BTreeMap<String, u64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [nodes, seconds, history] = &words[..] else {
        eprintln!("usage: contend NODES SECONDS FILE");
        return ExitCode::from(64);
    };
    let Ok(seconds) = seconds.parse() else {
        eprintln!("how many seconds? not {seconds}");
        return ExitCode::from(64);
    };
    let urls: Vec<&str> = nodes.split(',').collect();
    let count = u8::try_from(urls.len()).unwrap_or(u8::MAX);
    let recorder = Arc::new(Recorder::new(count, 2 * CLIENTS));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let ends = Arc::new(Ends {
        at: Instant::now() + Duration::from_secs(seconds),
        is_asked: AtomicBool::new(false),
    });
    let asked = Arc::clone(&ends);
    std::thread::spawn(move || {
        // The end of the input is no line: who has no terminal gets the whole time.
        let is_line = stdin()
            .read_line(&mut String::new())
            .is_ok_and(|len| len > 0);
        asked.is_asked.fetch_or(is_line, Ordering::Relaxed);
    });
    let mut clients = Vec::new();
    for client in 0..2 * CLIENTS {
        let redlock = match Redlock::builder().nodes(&urls).build() {
            Ok(redlock) => redlock,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(64);
            }
        };
        let work = work(
            client,
            redlock,
            Arc::clone(&recorder),
            Arc::clone(&seen),
            Arc::clone(&ends),
        );
        clients.push(tokio::spawn(work));
    }
    for client in clients {
        if let Err(error) = client.await {
            eprintln!("{error}");
            return ExitCode::from(70);
        }
    }
    let recorded = recorder.history();
    let lines: Vec<String> = recorded.json_lines().collect();
    if let Err(error) = std::fs::write(history, lines.join("\n") + "\n") {
        eprintln!("cannot write {history}: {error}");
        return ExitCode::from(70);
    }
    let mut broken = check_all(&recorded, &Scenario::new(Setup::default()));
    broken.retain(|violation| OF_BELIEFS.contains(&violation.kind));
    for violation in &broken {
        eprintln!("{violation}");
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        r#"{{"acquired":{},"failed":{},"lost":{},"longest_wait_ms":{},"violations":{},"causes":{:?}}}"#,
        seen.acquired,
        seen.failed,
        seen.lost,
        seen.longest.as_millis(),
        broken.len(),
        seen.causes
    );
    ExitCode::from(u8::from(!broken.is_empty()))
}

/// When the clients stop.
struct Ends {
    at: Instant,
    is_asked: AtomicBool,
}

impl Ends {
    fn is_over(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed) || Instant::now() >= self.at
    }
}

/// Acquires, holds and releases one lock after the other.
async fn work(
    client: u8,
    redlock: Redlock,
    recorder: Arc<Recorder>,
    seen: Arc<Mutex<Seen>>,
    ends: Arc<Ends>,
) {
    let is_alone = client >= CLIENTS;
    let note = |event: Event| recorder.note(event);
    let mut round = usize::from(client);
    while !ends.is_over() {
        round += 1;
        let name = if is_alone {
            format!("own-{client}")
        } else {
            format!("shared-{}", round % SHARED)
        };
        let (lock, key) = (recorder.next_lock(), recorder.key(name.as_bytes()));
        note(Event::Calls { client, lock, key });
        let called = Instant::now();
        let request = redlock.lock(name.as_bytes()).ttl(TTL);
        let retry = RetryPolicy::wait_for(PATIENCE);
        let acquired = request.retry(retry).acquire().await;
        let waited = called.elapsed();
        let guard = match acquired {
            Ok(guard) if guard.is_valid() => guard,
            Ok(_) => {
                note(Event::Failed {
                    client,
                    lock,
                    why: "expired",
                });
                continue;
            }
            Err(error) => {
                note(Event::Failed {
                    client,
                    lock,
                    why: error.kind().name(),
                });
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                // Who waits for what others hold may wait in vain.
                seen.failed += u64::from(is_alone || !error.is_busy());
                for failure in error.nodes() {
                    // Without figures, such as the time left.
                    let text = failure.cause.to_string();
                    let text = text.split(|c: char| c.is_ascii_digit()).next();
                    let text = text.unwrap_or_default().trim_end().to_owned();
                    *seen.causes.entry(text).or_default() += 1;
                }
                continue;
            }
        };
        let attempt = recorder.attempt(guard.token().as_ref());
        recorder.note_with(|now| Event::Acquired {
            client,
            lock,
            key,
            attempt,
            fencing: guard.fencing().map(FencingToken::get),
            valid_until: now + guard.validity(),
        });
        tokio::select! {
            biased;
            _ = guard.lost() => {
                note(Event::Lost { client, lock, why: "lost" });
                seen.lock().unwrap_or_else(PoisonError::into_inner).lost += 1;
                continue;
            }
            () = sleep(HOLD) => {}
        }
        note(Event::Releases {
            client,
            lock,
            is_left: false,
        });
        let released = guard.release().await;
        let confirmed = u8::try_from(released.confirmed()).unwrap_or(u8::MAX);
        note(Event::Released {
            client,
            lock,
            confirmed,
        });
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.acquired += 1;
        if is_alone {
            seen.longest = seen.longest.max(waited);
        }
    }
}
