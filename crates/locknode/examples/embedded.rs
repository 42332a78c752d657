//! A lock node inside your program: `cargo run -p locknode --example embedded -- 7101`.

#![expect(
    clippy::print_stdout,
    reason = "an example prints for the person who runs it"
)]

use locknode::Node;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args()
        .nth(1)
        .unwrap_or_default()
        .parse()
        .unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!(
        "redis-cli -p {} set k t nx px 30000",
        listener.local_addr()?.port()
    );
    // This node has never granted a lock, so it need not wait for the locks of an earlier run to
    // expire.
    Node::builder()
        .first_start(true)
        .build()
        .serve(listener, std::future::pending())
        .await?;
    Ok(())
}
