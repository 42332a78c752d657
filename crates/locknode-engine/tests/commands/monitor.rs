//! MONITOR.

use crate::node::Node;

#[test]
fn those_who_watch_are_sent_every_command_that_runs() {
    let mut node = Node::new();
    node.check(
        r#"SET before 1 => +OK
         MONITOR => +OK
         MONITOR => +OK
         b> SELECT 2 => +OK
         b> SET k "a \" => +OK
         b> SET k => -ERR wrong number of arguments for 'set' command
         b> NOSUCH => -ERR unknown command 'NOSUCH', with args beginning with: 
         b> EVALSHA 0 0 => -NOSCRIPT No matching script. Please use EVAL.
         + 1500
         b> AUTH secret => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
         # What concerns the administration is not shown.
         b> CONFIG GET nosuch => *0
         b> CLIENT KILL ID 99 => :0
         b> CLIENT ID => :2
         RESET => +RESET
         b> STRLEN k => :3"#,
    );
    node.bytes_for(1, &[b"MONITOR"]);
    let args: [&[u8]; 2] = [b"ECHO", b"\"\n\r\t\x07\x08\x00\xff~"];
    node.bytes_for(2, &args);
    let hello = "HELLO 2 AUTH default secret SETNAME n";
    assert!(node.run(hello).starts_with("*14 "));
    let mut sent = Vec::new();
    let shown = |node: &Node, client: usize, sent: &mut Vec<u8>| {
        sent.clear();
        node.clients[client].client().take_mail(sent, usize::MAX);
        String::from_utf8_lossy(sent).into_owned()
    };
    let want = r#"
        +1767268800.000000 [2 10.0.0.2:5000] "SELECT" "2"
        +1767268800.000000 [2 10.0.0.2:5000] "SET" "k" "a \\"
        +1767268800.000000 [2 10.0.0.2:5000] "EVALSHA" "0" "0"
        +1767268801.500000 [2 10.0.0.2:5000] "AUTH" "(redacted)"
        +1767268801.500000 [2 10.0.0.2:5000] "CLIENT" "ID""#;
    let lines = |text: &str| {
        text.split_inclusive('\n')
            .map(|l| l.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&shown(&node, 0, &mut sent)), lines(want)[1..]);
    let want = r#"
        +1767268801.500000 [0 10.0.0.3:5000] "ECHO" "\"\n\r\t\a\b\x00\xff~"
        +1767268801.500000 [0 10.0.0.1:5000] "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "n""#;
    assert_eq!(lines(&shown(&node, 1, &mut sent)), lines(want)[1..]);
    assert!(node.text("CLIENT LIST ID 2").contains(" flags=O "));
    node.check("c> MULTI => +OK\nc> SET k 1 => +QUEUED\nc> EXEC => *1 +OK");
    let all = shown(&node, 1, &mut sent);
    let commands: Vec<_> = all
        .lines()
        .filter_map(|line| line.split_once("5000] "))
        .collect();
    let names: Vec<_> = commands.iter().map(|(_, words)| *words).collect();
    assert_eq!(
        names[names.len() - 3..],
        [r#""MULTI""#, r#""SET" "k" "1""#, r#""EXEC""#]
    );
}
