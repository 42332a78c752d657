//! A lock node inside your program: `cargo run -p locknode --example embedded -- 7101`.

#![expect(
    clippy::print_stdout,
    reason = "an example prints for the person who runs it"
)]

use locknode::Node;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
    let port = listener.local_addr()?.port();
    println!("redis-cli -p {port} set k t nx px 30000");
    // This node has never granted a lock, so it need not wait for the locks of an earlier run to
    // expire.
    let node = Node::builder().first_start(true).build();
    node.serve(listener, std::future::pending()).await?;
    Ok(())
}
