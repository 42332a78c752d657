//! HELLO, AUTH, SELECT, PING, ECHO, RESET, QUIT.

use crate::node::{Node, check};

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";

fn secret() -> Node {
    Node::with_options(|options| options.requirepass = "sec".to_owned())
}

#[test]
fn hello_greets_in_the_protocol_it_agrees_on() {
    check(
        "HELLO => *14 $6 server $5 redis $7 version $5 8.4.0 $5 proto :2 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         hello 3 => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         HELLO => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         GET nothing => _
         b> HELLO 2 => *14 $6 server $5 redis $7 version $5 8.4.0 $5 proto :2 $2 id :2 $4 mode $10 standalone $4 role $6 master $7 modules *0
         b> GET nothing => $-1",
    );
}

#[test]
fn a_bad_hello_changes_nothing() {
    check(
        "HELLO 1 => -NOPROTO unsupported protocol version
         HELLO 4 => -NOPROTO unsupported protocol version
         HELLO -1 => -NOPROTO unsupported protocol version
         HELLO 9999999999 => -NOPROTO unsupported protocol version
         HELLO abc => -ERR Protocol version is not an integer or out of range
         HELLO 99999999999999999999 => -ERR Protocol version is not an integer or out of range
         HELLO SETNAME x => -ERR Protocol version is not an integer or out of range
         HELLO 3 FOO => -ERR Syntax error in HELLO option 'FOO'
         HELLO 3 FOO bar => -ERR Syntax error in HELLO option 'FOO'
         HELLO 3 AUTH => -ERR Syntax error in HELLO option 'AUTH'
         HELLO 3 AUTH default => -ERR Syntax error in HELLO option 'AUTH'
         HELLO 3 SETNAME => -ERR Syntax error in HELLO option 'SETNAME'
         HELLO 3 SETNAME x setname => -ERR Syntax error in HELLO option 'setname'
         HELLO 3 SETNAME a%20b => -ERR Client names cannot contain spaces, newlines or special characters.
         HELLO 3 SETNAME x AUTH bob x => -WRONGPASS invalid username-password pair or user is disabled.
         CLIENT GETNAME => $-1
         GET nothing => $-1",
    );
}

#[test]
fn hello_authenticates_and_names_in_any_order() {
    for options in [
        "AUTH default sec SETNAME me",
        "SETNAME me AUTH default sec",
        "setname no auth default bad SETNAME me AUTH default sec",
    ] {
        let mut node = secret();
        assert!(
            node.run(&format!("HELLO 3 {options}")).starts_with("%7 "),
            "{options}"
        );
        node.check("CLIENT GETNAME => $2 me\n PING => +PONG");
    }
}

#[test]
fn nothing_but_an_opening_is_served_before_the_password() {
    let mut node = secret();
    node.check(
        "PING => -NOAUTH Authentication required.
         GET => -ERR wrong number of arguments for 'get' command
         COMMAND COUNT => -NOAUTH Authentication required.
         CLIENT ID => -NOAUTH Authentication required.
         SHUTDOWN => -NOAUTH Authentication required.
         HELLO 4 => -NOPROTO unsupported protocol version
         HELLO 3 SETNAME a%20b => -ERR Client names cannot contain spaces, newlines or special characters.
         RESET => +RESET
         QUIT => +OK Close",
    );
    for hello in ["HELLO", "HELLO 2", "HELLO 3", "HELLO 3 SETNAME x"] {
        assert_eq!(
            node.run(hello),
            "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time"
        );
    }
}

#[test]
fn only_the_right_password_of_the_right_user_opens() {
    let mut node = secret();
    for attempt in [
        "AUTH bad",
        "AUTH ''",
        "AUTH secs",
        "AUTH default bad",
        "AUTH bob sec",
        "HELLO 3 AUTH default bad",
    ] {
        assert_eq!(node.run(attempt), WRONG, "{attempt}");
        assert_eq!(
            node.run("PING"),
            "-NOAUTH Authentication required.",
            "{attempt}"
        );
    }
    node.check(
        "AUTH a b c => -ERR syntax error
         AUTH => -ERR wrong number of arguments for 'auth' command
         AUTH sec => +OK
         PING => +PONG
         AUTH bad => -WRONGPASS invalid username-password pair or user is disabled.
         PING => +PONG
         RESET => +RESET
         PING => -NOAUTH Authentication required.
         auth default sec => +OK
         PING => +PONG",
    );
    assert!(
        node.text("INFO stats")
            .contains("acl_access_denied_auth:7\r\n")
    );
}

#[test]
fn without_a_password_the_default_user_needs_none() {
    check(
        "AUTH x => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
         AUTH default x => +OK
         AUTH default '' => +OK
         AUTH bob x => -WRONGPASS invalid username-password pair or user is disabled.",
    );
}

#[test]
fn a_new_password_counts_for_new_connections() {
    let mut node = Node::new();
    node.check("CONFIG SET requirepass sec => +OK\n PING => +PONG\n b> PING => +PONG");
    node.connect();
    assert_eq!(
        node.bytes_for(3, &[b"PING"]),
        b"-NOAUTH Authentication required.\r\n"
    );
    assert_eq!(node.bytes_for(3, &[b"AUTH", b"sec"]), b"+OK\r\n");
}

#[test]
fn databases_are_chosen_per_connection() {
    check(
        "SELECT 15 => +OK
         SET k v => +OK
         b> GET k => $-1
         b> SELECT 15 => +OK
         b> GET k => $1 v
         SELECT 16 => -ERR DB index is out of range
         SELECT -1 => -ERR DB index is out of range
         SELECT 300 => -ERR DB index is out of range
         SELECT abc => -ERR value is not an integer or out of range
         SELECT 9999999999999999999999 => -ERR value is not an integer or out of range
         SELECT 99999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
         SELECT => -ERR wrong number of arguments for 'select' command
         GET k => $1 v",
    );
}

#[test]
fn ping_and_echo_give_back_what_they_get() {
    check(
        "PING => +PONG
         ping hello => $5 hello
         PING '' => $0
         PING a b => -ERR wrong number of arguments for 'ping' command
         ECHO a%0Ab => $3 a\\nb
         ECHO => -ERR wrong number of arguments for 'echo' command
         ECHO a b => -ERR wrong number of arguments for 'echo' command
         HELLO 3 SETNAME x => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         PING x => $1 x",
    );
    assert_eq!(
        Node::new().bytes(&[b"ECHO", b"\0\xff\r\n"]),
        b"$4\r\n\0\xff\r\n\r\n"
    );
}

#[test]
fn a_reset_makes_the_connection_as_new() {
    let mut node = Node::new();
    node.run("HELLO 3 SETNAME me");
    node.check(
        "SELECT 3 => +OK
         CLIENT SETINFO LIB-NAME driver => +OK
         CLIENT NO-EVICT ON => +OK
         CLIENT NO-TOUCH ON => +OK
         CLIENT REPLY OFF =>
         RESET => +RESET
         RESET x => -ERR wrong number of arguments for 'reset' command
         CLIENT GETNAME => $-1
         GET nothing => $-1",
    );
    let info = node.text("CLIENT INFO");
    for field in [
        " name= ",
        " db=0 ",
        " flags=N ",
        " resp=2 ",
        " lib-name=driver ",
    ] {
        assert!(info.contains(field), "{field:?} in {info:?}");
    }
}

#[test]
fn quit_answers_and_closes() {
    check("QUIT => +OK Close\n QUIT a b => +OK Close");
}
