//! Every command with arguments that make no sense.

use crate::node::Node;

/// Names of all commands and subcommands, subcommands as two words.
fn names() -> Vec<Vec<Vec<u8>>> {
    let listed = Node::new().bytes(&[b"COMMAND", b"LIST"]);
    let text = String::from_utf8(listed).expect("text");
    let words = |name: &str| {
        name.split('|')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    text.split("\r\n")
        .filter(|line| !line.is_empty() && !line.starts_with(['*', '$']))
        .map(words)
        .collect()
}

#[test]
fn no_argument_breaks_the_node_and_every_command_answers() {
    const STRANGE: [&[u8]; 8] = [
        b"",
        b"0",
        b"-1",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"\0\r\n\xff*",
        b"nx",
        b"[",
    ];
    let names = names();
    assert!(names.len() > 100, "{}", names.len());
    for name in names {
        let mut node = Node::with_options(|options| options.enable_debug_command = true);
        for pattern in 0..STRANGE.len().pow(3) {
            let choice = |place: u32| STRANGE[pattern / STRANGE.len().pow(place) % STRANGE.len()];
            let all = [choice(0), choice(1), choice(2)];
            let mut args: Vec<&[u8]> = name.iter().map(Vec::as_slice).collect();
            args.extend(&all[..pattern % 4]);
            let reply = node.bytes(&args);
            assert!(
                reply.is_empty() || reply.ends_with(b"\r\n"),
                "{args:?} gave {reply:?}"
            );
        }
        // Whatever it was, the node goes on, once nothing is paused or silenced.
        node.bytes(&[b"CLIENT", b"UNPAUSE"]);
        node.bytes(&[b"CLIENT", b"REPLY", b"ON"]);
        node.bytes(&[b"RESET"]);
        assert_eq!(
            node.bytes_for(1, &[b"PING", b"on"]),
            b"$2\r\non\r\n",
            "{name:?}"
        );
    }
}
