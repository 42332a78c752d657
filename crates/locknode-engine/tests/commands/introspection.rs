//! COMMAND.

use crate::node::{Node, check};

#[test]
fn an_entry_lists_arity_flags_and_keys() {
    check(
        "COMMAND INFO get nosuch => *2 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 *6 $5 flags *1 +RO $12 begin_search *4 $4 type $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0 $-1
         COMMAND INFO time => *1 *10 $4 time :1 *2 +loading +fast :0 :0 :0 *1 +@fast *0 *0 *0
         COMMAND INFO client|id => *1 *10 $9 client|id :2 *2 +noscript +loading :0 :0 :0 *2 +@slow +@connection *0 *0 *0",
    );
    let mut node = Node::new();
    assert!(node.run("COMMAND INFO mset").contains(" :1 :-1 :2 "));
    assert!(
        node.run("COMMAND INFO eval")
            .contains(" $6 keynum $4 spec *6 $9 keynumidx :0 $8 firstkey :1 $7 keystep :1 ")
    );
    assert!(
        node.run("COMMAND INFO client")
            .contains(" *19 *10 $14 client|caching ")
    );
    node.run("HELLO 3");
    node.check(
        "COMMAND INFO get nosuch => *2 *10 $3 get :2 ~2 +readonly +fast :1 :1 :1 ~3 +@read +@string +@fast ~0 ~1 %3 $5 flags ~1 +RO $12 begin_search %2 $4 type $5 index $4 spec %1 $5 index :1 $9 find_keys %2 $4 type $5 range $4 spec %3 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0 _",
    );
}

#[test]
fn the_count_is_that_of_the_entries() {
    let mut node = Node::new();
    let count = node.run("COMMAND COUNT").trim_start_matches(':').to_owned();
    for request in ["COMMAND", "COMMAND INFO"] {
        assert!(
            node.run(request).starts_with(&format!("*{count} ")),
            "{request}"
        );
    }
    node.run("HELLO 3");
    assert!(node.run("COMMAND DOCS").starts_with(&format!("%{count} ")));
}

#[test]
fn docs_describe_those_that_exist() {
    check(
        "COMMAND DOCS nosuch => *0
         COMMAND DOCS ping nosuch => *2 $4 ping *8 $7 summary $35 Returns PONG, or the given message. $5 since $5 1.0.0 $5 group $10 connection $9 arguments *1 *8 $4 name $7 message $4 type $6 string $12 display_text $7 message $5 flags *1 +optional
         COMMAND DOCS client|id => *2 $9 client|id *6 $7 summary $36 Return the number of the connection. $5 since $5 5.0.0 $5 group $10 connection
         COMMAND DOCS config|HELP => *2 $11 config|help *6 $7 summary $22 Print the subcommands. $5 since $5 5.0.0 $5 group $6 server
         COMMAND DOCS client|nosuch => *0
         COMMAND DOCS get|x => *0",
    );
}

#[test]
fn the_list_can_be_filtered() {
    check(
        "COMMAND LIST FILTERBY PATTERN ech* => *1 $4 echo
         COMMAND LIST FILTERBY pattern CLIENT|I* => *2 $9 client|id $11 client|info
         COMMAND LIST FILTERBY PATTERN cl*help => *2 $11 client|help $12 cluster|help
         COMMAND LIST FILTERBY MODULE x => *0
         COMMAND LIST FILTERBY ACLCAT nosuch => *0
         COMMAND LIST FILTERBY ACLCAT bitmap => *0
         COMMAND LIST FILTERBY foo bar => -ERR syntax error
         COMMAND LIST FILTERBY => -ERR syntax error
         COMMAND LIST x => -ERR syntax error",
    );
    assert!(
        Node::new()
            .run("COMMAND LIST")
            .contains(" $11 client|list ")
    );
    assert!(
        Node::new()
            .run("COMMAND LIST FILTERBY ACLCAT scripting")
            .contains(" $7 evalsha ")
    );
}

#[test]
fn keys_are_found_among_the_arguments() {
    check(
        "COMMAND GETKEYS set a b => *1 $1 a
         COMMAND GETKEYS MSET a b c d => *2 $1 a $1 c
         COMMAND GETKEYS mset a b c => *2 $1 a $1 c
         COMMAND GETKEYS del a b c => *3 $1 a $1 b $1 c
         COMMAND GETKEYS eval x 2 a b => *2 $1 a $1 b
         COMMAND GETKEYS eval x 2 a => *0
         COMMAND GETKEYS eval x a => *0
         COMMAND GETKEYS eval x -1 a => *0
         COMMAND GETKEYS => -ERR wrong number of arguments for 'command|getkeys' command
         COMMAND GETKEYS set => -ERR Invalid number of arguments specified for command
         COMMAND GETKEYS nosuch a => -ERR Invalid command specified
         COMMAND GETKEYS config nosuch => -ERR Invalid command specified
         COMMAND GETKEYS config get => -ERR The command has no key arguments
         COMMAND GETKEYS flushall => -ERR The command has no key arguments",
    );
}

#[test]
fn bad_questions_are_refused() {
    check(
        "COMMAND FOO => -ERR unknown subcommand 'FOO'. Try COMMAND HELP.
         COMMAND COUNT x => -ERR wrong number of arguments for 'command|count' command
         COMMAND HELP x => -ERR wrong number of arguments for 'command|help' command",
    );
    assert!(
        Node::new()
            .run("COMMAND HELP")
            .starts_with("*13 +COMMAND <subcommand> ")
    );
}

#[test]
fn a_reply_is_bounded() {
    let mut node = Node::new();
    node.check("CONFIG SET client-output-buffer-limit normal%201mb%200%200 => +OK");
    let request = "COMMAND INFO ".to_owned() + &"client ".repeat(1000);
    assert_eq!(
        node.run(request.trim_end()),
        "-ERR the reply is longer than client-output-buffer-limit"
    );
    let request = "COMMAND DOCS ".to_owned() + &"client ".repeat(1000);
    assert_eq!(
        node.run(request.trim_end()),
        "-ERR the reply is longer than client-output-buffer-limit"
    );
}
