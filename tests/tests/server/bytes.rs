use locknode_tests::Wire;

use crate::node;

/// A conversation that touches every kind of reply.
const REQUESTS: &[u8] = b"PING\r\n\
*5\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$5\r\nt\r\n\0k\r\n$2\r\nNX\r\n$7\r\nKEEPTTL\r\n\
*2\r\n$3\r\nGET\r\n$6\r\nlock:a\r\n\
*0\r\n\
set lock:a other nx px 1000\r\n\
\r\n\
*2\r\n$6\r\nexists\r\n$6\r\nlock:a\r\n\
*3\r\n$5\r\nDELEX\r\n$6\r\nlock:a\r\n$4\r\nIFEQ\r\n\
*4\r\n$5\r\nDELEX\r\n$6\r\nlock:a\r\n$4\r\nIFEQ\r\n$5\r\nt\r\n\0k\r\n\
get \"lock:\\x61\"\r\n\
NOPE 'a b'\r\n";

const REPLIES: &[u8] = b"+PONG\r\n\
+OK\r\n\
$5\r\nt\r\n\0k\r\n\
$-1\r\n\
:1\r\n\
-ERR wrong number of arguments for 'delex' command\r\n\
:1\r\n\
$-1\r\n\
-ERR unknown command 'NOPE', with args beginning with: 'a b' \r\n";

#[tokio::test]
async fn a_conversation_is_answered_the_same_at_every_split() {
    for split in 0..REQUESTS.len() {
        let node = node();
        let mut wire = Wire::connect(&node);
        wire.send(&REQUESTS[..split]).await;
        wire.send(&REQUESTS[split..]).await;
        wire.expect(REPLIES).await;
    }
}

/// In a large table the node looks ahead to the keys of many requests; nobody can tell.
#[tokio::test]
async fn a_pipeline_is_answered_the_same_in_a_table_of_any_size() {
    let request = |words: &[&str]| {
        let words = words
            .iter()
            .map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let words: Vec<_> = words.collect();
        format!("*{}\r\n{}", words.len(), words.concat())
    };
    let long = "long".repeat(100);
    let conversation: &[&[&str]] = &[
        &["SET", "a", "1", "NX", "PX", "30000"],
        &["GET", "a"],
        &["SELECT", "1"],
        &["GET", "a"],
        &["SET", &long, "t"],
        &["SELECT", "0"],
        &["MULTI"],
        &["EXISTS", "a", &long],
        &["EXEC"],
        &[
            "EVALSHA",
            "4e92fdc63815b3a0a2dd1c1df3694de73607c88d",
            "1",
            "a",
            "2",
        ],
        &[
            "EVALSHA",
            "4e92fdc63815b3a0a2dd1c1df3694de73607c88d",
            "1",
            "a",
            "1",
        ],
        &["PING"],
        &["SETNX"],
    ];
    let one: String = conversation.iter().map(|words| request(words)).collect();
    let requests = one.repeat(5) + "QUIT\r\n" + &one;
    let mut replies = Vec::new();
    for locks in [0, 20_000] {
        let node = node();
        let mut wire = Wire::connect(&node);
        for number in 0..locks {
            wire.ask(&format!("SET other:{number} t"), "+OK").await;
        }
        wire.send(requests.as_bytes()).await;
        replies.push(String::from_utf8(wire.drain().await).unwrap());
    }
    assert_eq!(replies[0].matches("+PONG").count(), 5);
    assert_eq!(replies[0], replies[1]);
}

#[tokio::test]
async fn a_conversation_is_answered_one_byte_at_a_time() {
    let node = node();
    let mut wire = Wire::connect(&node);
    for byte in REQUESTS {
        wire.send(&[*byte]).await;
    }
    wire.expect(REPLIES).await;
}

#[tokio::test]
async fn a_protocol_error_is_answered_after_what_came_before_and_closes() {
    let rows: [(&[u8], &str); 8] = [
        (b"*abc\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n!3\r\n", "expected '$', got '!'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$abc\r\n", "invalid bulk length"),
        (b"*1\r\n$1048577\r\n", "invalid bulk length"),
        (b"set \"k\r\n", "unbalanced quotes in request"),
        (b"set 'k'x\r\n", "unbalanced quotes in request"),
    ];
    for (bad, text) in rows {
        let node = node();
        let mut wire = Wire::connect(&node);
        let mut requests = b"SET k t NX PX 30000\r\n".to_vec();
        requests.extend_from_slice(bad);
        // Nothing after the error is executed.
        requests.extend_from_slice(b"DEL k\r\n");
        wire.send(&requests).await;
        let want = format!("+OK\r\n-ERR Protocol error: {text}\r\n");
        assert_eq!(String::from_utf8(wire.drain().await).unwrap(), want);
        Wire::connect(&node).ask("EXISTS k", ":1").await;
    }
}

#[tokio::test]
async fn a_browser_is_disconnected_without_an_answer() {
    for line in ["POST / HTTP/1.1\r\n", "Host: localhost\r\n"] {
        let node = node();
        let mut wire = Wire::connect(&node);
        wire.send(line.as_bytes()).await;
        assert_eq!(wire.drain().await, b"", "{line:?}");
    }
}

#[tokio::test]
async fn quit_answers_what_came_before_and_closes() {
    let node = node();
    let mut wire = Wire::connect(&node);
    wire.send(b"SET k t\r\nQUIT\r\nDEL k\r\n").await;
    assert_eq!(wire.drain().await, b"+OK\r\n+OK\r\n");
    Wire::connect(&node).ask("GET k", "$1\r\nt").await;
}

#[tokio::test]
async fn requests_sent_before_the_end_of_the_stream_are_answered() {
    let node = node();
    let mut wire = Wire::connect(&node);
    wire.send(b"SET k t NX\r\nGET k\r\n").await;
    wire.finish_sending().await;
    assert_eq!(wire.drain().await, b"+OK\r\n$1\r\nt\r\n");
}
