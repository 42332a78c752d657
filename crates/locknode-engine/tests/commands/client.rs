//! CLIENT and its subcommands.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use crate::node::{Node, check, rows};

/// Counts how often it is woken.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Puts every client of the node to sleep under an alarm of its own.
fn alarms(node: &Node) -> Vec<Arc<Alarm>> {
    let sleep = |session: &locknode_engine::Session| {
        let alarm = Arc::new(Alarm::default());
        session
            .client()
            .sleep_with(&Waker::from(Arc::clone(&alarm)));
        alarm
    };
    node.clients.iter().map(sleep).collect()
}

fn rings(alarms: &[Arc<Alarm>]) -> Vec<usize> {
    alarms
        .iter()
        .map(|alarm| alarm.0.load(Ordering::Relaxed))
        .collect()
}

fn killed(node: &Node) -> Vec<bool> {
    node.clients
        .iter()
        .map(|session| session.client().is_killed())
        .collect()
}

#[test]
fn a_connection_has_a_number_and_may_have_names() {
    check(
        "CLIENT ID => :1
         b> CLIENT ID => :2
         CLIENT GETNAME => $-1
         CLIENT SETNAME worker-1 => +OK
         CLIENT GETNAME => $8 worker-1
         b> CLIENT GETNAME => $-1
         CLIENT SETNAME a%20b => -ERR Client names cannot contain spaces, newlines or special characters.
         CLIENT SETNAME a%0A => -ERR Client names cannot contain spaces, newlines or special characters.
         CLIENT GETNAME => $8 worker-1
         CLIENT SETNAME '' => +OK
         CLIENT GETNAME => $-1
         CLIENT SETINFO LIB-NAME redis-py => +OK
         CLIENT SETINFO lib-ver 8.0 => +OK
         CLIENT SETINFO LIB-NAME a%20b => -ERR LIB-NAME cannot contain spaces, newlines or special characters.
         CLIENT SETINFO lib-ver a%20b => -ERR lib-ver cannot contain spaces, newlines or special characters.
         CLIENT SETINFO foo bar => -ERR Unrecognized option 'foo'
         HELLO 3 SETNAME '' => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         CLIENT GETNAME => _",
    );
}

#[test]
fn a_name_is_bounded() {
    let mut node = Node::new();
    let (longest, longer) = ("n".repeat(1024), "n".repeat(1025));
    for command in [
        "CLIENT SETNAME",
        "CLIENT SETINFO LIB-NAME",
        "CLIENT SETINFO LIB-VER",
    ] {
        assert_eq!(node.run(&format!("{command} {longest}")), "+OK");
        let refusal = "-ERR Client names cannot be longer than 1024 bytes.";
        assert_eq!(node.run(&format!("{command} {longer}")), refusal);
    }
    assert_eq!(
        node.run(&format!("HELLO 3 SETNAME {longer}")),
        "-ERR Client names cannot be longer than 1024 bytes."
    );
    assert_eq!(node.run("CLIENT GETNAME"), format!("$1024 {longest}"));
}

#[test]
fn bad_subcommands_are_refused_in_the_words_of_redis() {
    check(
        "CLIENT => -ERR wrong number of arguments for 'client' command
         CLIENT FOO a b => -ERR unknown subcommand 'FOO'. Try CLIENT HELP.
         CLIENT MAINT_NOTIFICATIONS ON => -ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.
         client id x => -ERR wrong number of arguments for 'client|id' command
         CLIENT SETNAME => -ERR wrong number of arguments for 'client|setname' command
         CLIENT SETINFO LIB-NAME => -ERR wrong number of arguments for 'client|setinfo' command
         CLIENT GETNAME x => -ERR wrong number of arguments for 'client|getname' command
         CLIENT NO-EVICT => -ERR wrong number of arguments for 'client|no-evict' command
         CLIENT NO-EVICT maybe => -ERR syntax error
         CLIENT NO-TOUCH maybe => -ERR syntax error
         CLIENT HELP x => -ERR wrong number of arguments for 'client|help' command",
    );
    let help = Node::new().run("CLIENT HELP");
    assert!(
        help.starts_with("*39 +CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are: "),
        "{help}"
    );
    assert!(help.ends_with(" +HELP +    Print this help."), "{help}");
}

#[test]
fn what_concerns_caching_and_blocking_says_that_there_is_none() {
    #[cfg(not(feature = "compat"))]
    check(
        "CLIENT TRACKING ON => -ERR this node does not support client side caching
         CLIENT TRACKING ON BCAST PREFIX a REDIRECT 2 => -ERR this node does not support client side caching",
    );
    check(
        "CLIENT TRACKING OFF => +OK
         CLIENT TRACKING OFF OPTOUT NOLOOP => +OK
         CLIENT TRACKING maybe => -ERR syntax error
         CLIENT TRACKING ON maybe => -ERR syntax error
         CLIENT TRACKING ON PREFIX => -ERR syntax error
         CLIENT CACHING YES => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
         CLIENT TRACKINGINFO => *6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0
         CLIENT GETREDIR => :-1
         CLIENT CAPA redirect => +OK
         CLIENT CAPA => -ERR wrong number of arguments for 'client|capa' command
         CLIENT UNBLOCK 2 => :0
         CLIENT UNBLOCK 2 ERROR => :0
         CLIENT UNBLOCK a => -ERR value is not an integer or out of range
         CLIENT UNBLOCK 2 foo => -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
    );
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check("CLIENT TRACKINGINFO => %3 $5 flags ~1 $3 off $8 redirect :-1 $8 prefixes *0");
}

#[test]
fn replies_are_left_out_as_asked() {
    check(
        "CLIENT REPLY ON => +OK
         CLIENT REPLY SKIP =>
         PING =>
         PING => +PONG
         CLIENT REPLY SKIP =>
         CLIENT REPLY foo =>
         PING => +PONG
         CLIENT REPLY SKIP =>
         CLIENT REPLY ON => +OK
         CLIENT REPLY OFF =>
         PING =>
         NOSUCH =>
         CLIENT REPLY SKIP =>
         PING =>
         b> PING => +PONG
         CLIENT REPLY ON => +OK
         PING => +PONG
         CLIENT REPLY SKIP =>
         CLIENT REPLY OFF =>
         PING =>
         CLIENT REPLY ON => +OK
         CLIENT REPLY foo => -ERR syntax error
         CLIENT REPLY => -ERR wrong number of arguments for 'client|reply' command",
    );
}

#[test]
fn the_list_describes_each_connection() {
    let mut node = Node::new();
    node.check(
        "CLIENT SETNAME first => +OK
         CLIENT SETINFO LIB-NAME driver => +OK
         CLIENT SETINFO LIB-VER 1.2 => +OK
         CLIENT NO-EVICT ON => +OK
         CLIENT NO-TOUCH ON => +OK
         + 2500
         SELECT 4 => +OK
         b> SET k v => +OK
         + 1500",
    );
    let head = "db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0";
    assert_eq!(
        node.text("CLIENT LIST"),
        format!(
            "id=1 addr=10.0.0.1:5000 laddr=10.0.0.9:6379 fd=8 name=first age=4 idle=0 flags=eT {} cmd=client|list \
             user=default redir=-1 resp=2 lib-name=driver lib-ver=1.2 tot-cmds=6\n\
             id=2 addr=10.0.0.2:5000 laddr=10.0.0.9:6379 fd=8 name= age=4 idle=1 flags=N {head} cmd=set user=default \
             redir=-1 resp=2 lib-name= lib-ver= tot-cmds=1\n\
             id=3 addr=10.0.0.3:5000 laddr=10.0.0.9:6379 fd=8 name= age=4 idle=4 flags=N {head} cmd=NULL user=default \
             redir=-1 resp=2 lib-name= lib-ver= tot-cmds=0\n",
            head.replace("db=0", "db=4"),
        )
    );
    assert!(node.text("CLIENT INFO").starts_with("id=1 addr="));
    assert!(node.text("CLIENT INFO").contains(" cmd=client|info "));
}

#[test]
fn the_list_can_be_narrowed() {
    let mut node = Node::new();
    let mut ids = |request: &str| {
        let text = node.text(request);
        text.lines()
            .filter_map(|line| line.split(' ').next())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (request, want) in [
        ("CLIENT LIST", "id=1 id=2 id=3"),
        ("CLIENT LIST TYPE normal", "id=1 id=2 id=3"),
        ("CLIENT LIST TYPE NORMAL", "id=1 id=2 id=3"),
        ("CLIENT LIST TYPE pubsub", ""),
        ("CLIENT LIST TYPE master", ""),
        ("CLIENT LIST TYPE replica", ""),
        ("CLIENT LIST TYPE slave", ""),
        ("CLIENT LIST ID 3 1", "id=3 id=1"),
        ("CLIENT LIST ID 2 2 2", "id=2"),
        ("CLIENT LIST ID 0 -1 99", ""),
    ] {
        assert_eq!(ids(request), want, "{request}");
    }
    check(
        "CLIENT LIST TYPE => -ERR syntax error
         CLIENT LIST TYPE foo => -ERR Unknown client type 'foo'
         CLIENT LIST ID => -ERR syntax error
         CLIENT LIST ID a => -ERR Invalid client ID
         CLIENT LIST foo => -ERR syntax error
         CLIENT LIST TYPE normal x => -ERR syntax error",
    );
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check("CLIENT LIST ID 99 => =4 txt:");
}

#[test]
fn a_kill_marks_and_wakes_those_that_pass_all_filters() {
    let table = "
        10.0.0.2:5000 => +OK; b
        10.0.0.1:5000 => +OK Close;
        1.2.3.4:5 => -ERR No such client;
        ID => -ERR No such client;
        ID 3 => :1; c
        ID 2 TYPE normal => :1; b
        ID 1 SKIPME no => :1 Close;
        ID 1 SKIPME yes => :0;
        ID 1 TYPE normal => :0;
        ID 2 ID 3 => :1; c
        ADDR 10.0.0.3:5000 LADDR 10.0.0.9:6379 => :1; c
        ADDR 10.0.0.3:5000 LADDR 10.0.0.8:6379 => :0;
        LADDR 10.0.0.9:6379 SKIPME YES => :2; b c
        TYPE normal SKIPME no => :3 Close; b c
        TYPE pubsub SKIPME no => :0;
        USER default SKIPME yes => :2; b c
        MAXAGE 10 SKIPME yes => :2; b c
        MAXAGE 11 SKIPME yes => :0;
    ";
    for (filters, row) in rows(table) {
        let (want, closed) = row.split_once(';').expect("reply; clients");
        let closed = ["a", "b", "c"].map(|name| closed.contains(name));
        let mut node = Node::new();
        node.advance_millis(10_000);
        let alarms = alarms(&node);
        let reply = node.run(&format!("CLIENT KILL {filters}"));
        assert_eq!(reply, want, "{filters}");
        assert_eq!(killed(&node), closed, "{filters}");
        assert_eq!(rings(&alarms), closed.map(usize::from), "{filters}");
    }
}

#[test]
fn a_bad_kill_closes_nothing() {
    let mut node = Node::new();
    node.check(
        "CLIENT KILL => -ERR wrong number of arguments for 'client|kill' command
         CLIENT KILL foo bar => -ERR syntax error
         CLIENT KILL ID a => -ERR client-id should be greater than 0
         CLIENT KILL ID 0 => -ERR client-id should be greater than 0
         CLIENT KILL ID 2 TYPE => -ERR syntax error
         CLIENT KILL ID 2 3 => -ERR syntax error
         CLIENT KILL ID 2 TYPE foo => -ERR Unknown client type 'foo'
         CLIENT KILL USER bob => -ERR No such user 'bob'
         CLIENT KILL ID 2 SKIPME maybe => -ERR syntax error
         CLIENT KILL MAXAGE a => -ERR maxage is not an integer or out of range
         CLIENT KILL MAXAGE 0 => -ERR maxage should be greater than 0
         CLIENT KILL MAXAGE -1 => -ERR maxage should be greater than 0",
    );
    assert_eq!(killed(&node), [false; 3]);
}

#[test]
fn a_pause_holds_commands_back_until_its_end() {
    check(
        "SET k v => +OK
         CLIENT PAUSE 100 WRITE => +OK
         b> GET k => $1 v
         b> SET k w => Paused
         + 99
         b> SET k w => Paused
         + 1
         b> SET k w => +OK
         CLIENT PAUSE 100 => +OK
         b> GET k => Paused
         PING => Paused
         b> CLIENT ID => Paused
         b> CLIENT PAUSE 1 WRITE => Paused
         + 100
         b> CLIENT ID => :2
         b> GET k => $1 w
         CLIENT PAUSE 100 all => +OK
         b> GET k => Paused",
    );
}

#[test]
fn the_end_of_a_pause_wakes_those_that_wait() {
    let mut node = Node::new();
    let alarms = alarms(&node);
    node.check(
        "CLIENT PAUSE 9000000000000000000 => +OK
         b> SET k v => Paused
         CLIENT UNPAUSE => +OK
         b> SET k v => +OK",
    );
    assert_eq!(rings(&alarms), [1, 1, 1]);
}

#[test]
fn a_connection_that_waits_is_counted_as_blocked() {
    let mut node = Node::new();
    node.check(
        "CLIENT PAUSE 100 ALL => +OK\n b> CLIENT ID => Paused\n + 50\n CLIENT UNPAUSE => +OK",
    );
    node.check("CLIENT PAUSE 100 WRITE => +OK");
    assert!(
        node.text("INFO clients")
            .contains("\r\nblocked_clients:1\r\n")
    );
    assert!(node.text("CLIENT LIST ID 2").contains(" flags=b "));
    node.check("b> CLIENT ID => :2");
    assert!(
        node.text("INFO clients")
            .contains("\r\nblocked_clients:0\r\n")
    );
    assert!(node.text("CLIENT LIST ID 2").contains(" flags=N "));
}

#[test]
fn a_bad_pause_pauses_nothing() {
    check(
        "CLIENT PAUSE => -ERR wrong number of arguments for 'client|pause' command
         CLIENT PAUSE a => -ERR timeout is not an integer or out of range
         CLIENT PAUSE 1.5 => -ERR timeout is not an integer or out of range
         CLIENT PAUSE -1 => -ERR timeout is negative
         CLIENT PAUSE 9223372036854775807 => -ERR timeout is out of range
         CLIENT PAUSE 1 foo => -ERR CLIENT PAUSE mode must be WRITE or ALL
         CLIENT PAUSE a foo => -ERR CLIENT PAUSE mode must be WRITE or ALL
         CLIENT PAUSE 1 ALL x => -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
         CLIENT UNPAUSE x => -ERR wrong number of arguments for 'client|unpause' command
         SET k v => +OK",
    );
}
