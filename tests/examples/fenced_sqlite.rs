//! A holder that was paused for too long, and a database that does not let it write:
//! `cargo run -p locknode-tests --example fenced_sqlite`. Three lock nodes and the database are in this process.
//!
//! The whole of the protection is in one statement: the row keeps the highest fencing token that it was written with, and
//! `WHERE fence <= ?` compares and raises it in the transaction of the write. It works the same in any database.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person who runs it"
)]

use std::error::Error;
use std::time::Duration;

use locknode::Node;
use redlock_client::{FencingToken, Redlock};
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = start_nodes().await?;
    let mut database = Connection::open_in_memory()?;
    database.execute_batch(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL);
         INSERT INTO account VALUES (7, 100, 0);",
    )?;
    let (first, second) = (client(&nodes)?, client(&nodes)?);

    // The first holder reads the balance, and is paused: a garbage collector, a hypervisor, a debugger.
    let guard = first.lock("account/7").ttl(TTL).acquire().await?;
    let early = guard.fencing().ok_or("these nodes count")?;
    let read_early = balance(&database)?;
    println!("first:  holds the lock with token {early}, reads {read_early}, and is paused");
    tokio::time::sleep(TTL * 2).await;

    // The lock has ended meanwhile, so the second gets it. Its token is higher.
    let other = second.lock("account/7").acquire().await?;
    let late = other.fencing().ok_or("these nodes count")?;
    let read_late = balance(&database)?;
    println!("second: holds the lock with token {late}, reads {read_late}");
    let is_written = write(&mut database, read_late - 30, late)?;
    println!("second: takes 30, written: {is_written}");

    // The first goes on where it was. Had it looked at its guard it would know; it may be paused after any look.
    let is_overwritten = write(&mut database, read_early - 50, early)?;
    println!("first:  takes 50 from what it read, written: {is_overwritten}");
    println!("the balance is {}", balance(&database)?);
    assert!(is_written && !is_overwritten && early < late);
    assert_eq!(balance(&database)?, 70);

    let _ = other.release().await;
    first.close().await;
    second.close().await;
    Ok(())
}

/// Writes the balance for the holder with this token; false if there has been a later one.
fn write(database: &mut Connection, balance: i64, token: FencingToken) -> rusqlite::Result<bool> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let changed = transaction.execute(
        "UPDATE account SET balance = ?1, fence = ?2 WHERE id = 7 AND fence <= ?2",
        params![balance, i64::from(token)],
    )?;
    transaction.commit()?;
    Ok(changed == 1)
}

fn balance(database: &Connection) -> rusqlite::Result<i64> {
    database.query_row("SELECT balance FROM account WHERE id = 7", [], |row| {
        row.get(0)
    })
}

fn client(nodes: &[String]) -> Result<Redlock, redlock_client::Error> {
    Redlock::builder().nodes(nodes).build()
}

/// Three lock nodes that have never granted a lock, so that they need not wait for one to end.
async fn start_nodes() -> std::io::Result<Vec<String>> {
    let mut addresses = Vec::new();
    for _ in 0..3 {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        addresses.push(listener.local_addr()?.to_string());
        let node = Node::builder().restart_guard(false).build();
        tokio::spawn(async move { node.serve(listener, std::future::pending::<()>()).await });
    }
    Ok(addresses)
}

/// Shorter than any real one, so that nobody has to wait.
const TTL: Duration = Duration::from_millis(200);
