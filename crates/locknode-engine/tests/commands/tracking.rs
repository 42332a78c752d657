//! CLIENT TRACKING, and the invalidations that clients are sent.

use crate::node::Node;

/// Runs a script like [`Node::check`], in which `a< => bytes` is what client `a` has been sent since
/// it was last looked at.
#[track_caller]
fn run(node: &mut Node, script: &str) {
    for line in script.lines().map(str::trim) {
        let mail = line.split_once("< =>");
        let Some((client, want)) = mail.filter(|(client, _)| client.len() == 1) else {
            node.check(line);
            continue;
        };
        let index = "abc".find(client).expect("a client");
        let mut bytes = Vec::new();
        node.clients[index]
            .client()
            .take_mail(&mut bytes, usize::MAX);
        let sent = bytes.escape_ascii().to_string().replace("\\r\\n", " ");
        assert_eq!(sent.trim(), want.trim(), "{line}");
    }
}

/// Runs a script in which client `a` speaks RESP3.
#[track_caller]
fn check_resp3(script: &str) {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        assert!(node.run("HELLO 3").starts_with('%'));
        run(&mut node, script);
    }
}

#[test]
fn a_client_is_sent_the_first_change_of_a_key_that_it_has_read() {
    check_resp3(
        "CLIENT TRACKING ON => +OK
         b> SET k 1 => +OK
         a< =>
         GET k => $1 1
         b> SET k 2 NX => $-1
         b> DEL other => :0
         a< =>
         b> SET k 2 => +OK
         a< => >2 $10 invalidate *1 $1 k
         b> SET k 3 => +OK
         a< =>
         # A key that is not there can be cached too.
         EXISTS new => :0
         b> SETNX new 1 => :1
         a< => >2 $10 invalidate *1 $3 new
         MGET k new other => *3 $1 3 $1 1 _
         b> DEL k new => :2
         b> SET other 1 => +OK
         a< => >2 $10 invalidate *1 $1 k >2 $10 invalidate *1 $3 new >2 $10 invalidate *1 $5 other",
    );
}

#[test]
fn every_kind_of_change_counts() {
    for (change, reply) in [
        ("SET k 2 PX 1000", "+OK"),
        ("PEXPIRE k 1000", ":1"),
        ("PEXPIRE k 0", ":1"),
        ("PERSIST k", ":1"),
        ("INCR k", ":2"),
        ("GETDEL k", "$1 1"),
        ("GETEX k PX 1000", "$1 1"),
        ("DELEX k IFEQ 1", ":1"),
        ("UNLINK k", ":1"),
    ] {
        check_resp3(&format!(
            "CLIENT TRACKING ON => +OK
             b> SET k 1 PX 5000 => +OK
             PTTL k => :5000
             b> {change} => {reply}
             a< => >2 $10 invalidate *1 $1 k"
        ));
    }
}

#[test]
fn a_clients_own_changes_are_sent_to_it_unless_it_says_noloop() {
    check_resp3(
        "CLIENT TRACKING ON => +OK
         GET k => _
         SET k 1 => +OK
         a< => >2 $10 invalidate *1 $1 k
         CLIENT TRACKING ON NOLOOP => +OK
         GET k => $1 1
         SET k 2 => +OK
         a< =>
         # The key is forgotten all the same.
         b> SET k 3 => +OK
         a< =>
         GET k => $1 3
         b> SET k 4 => +OK
         a< => >2 $10 invalidate *1 $1 k",
    );
}

#[test]
fn expiry_counts_whoever_finds_it() {
    check_resp3(
        "CLIENT TRACKING ON => +OK
         SET k 1 PX 100 => +OK
         GET k => $1 1
         + 101
         b> GET k => $-1
         a< => >2 $10 invalidate *1 $1 k
         SET k 1 PX 100 => +OK
         GET k => $1 1
         + 101
         GET k => _
         a< => >2 $10 invalidate *1 $1 k
         b> SET k 1 => +OK
         a< => >2 $10 invalidate *1 $1 k",
    );
}

#[test]
fn the_sweep_sends_what_it_reclaims() {
    for mode in ["NOLOOP", "BCAST NOLOOP"] {
        let mut node = Node::new();
        node.run("HELLO 3");
        node.check(&format!(
            "CLIENT TRACKING ON {mode} => +OK\nSET k 1 PX 100 => +OK"
        ));
        node.check("GET k => $1 1\n+ 101");
        while !node.engine.sweep(node.moment.time, 1 << 10).finished_pass {}
        run(&mut node, "a< => >2 $10 invalidate *1 $1 k");
    }
}

#[test]
fn an_expiry_is_not_the_clients_own_change() {
    // Redis sends a NOLOOP client nothing when its own command finds the key expired.
    let script = "CLIENT TRACKING ON NOLOOP => +OK
         SET k 1 PX 100 => +OK
         GET k => $1 1
         + 101
         TTL k => :-2
         a< => >2 $10 invalidate *1 $1 k";
    let mut node = Node::new();
    node.run("HELLO 3");
    run(&mut node, script);
}

#[test]
fn all_clients_are_sent_null_when_keys_are_flushed() {
    check_resp3(
        "CLIENT TRACKING ON NOLOOP => +OK
         GET k => _
         b> FLUSHALL => +OK
         a< => >2 $10 invalidate _
         b> SET k 1 => +OK
         a< =>
         FLUSHDB => +OK
         a< => >2 $10 invalidate _
         CLIENT TRACKING OFF => +OK
         CLIENT TRACKING ON BCAST => +OK
         b> FLUSHDB ASYNC => +OK
         a< => >2 $10 invalidate _
         CLIENT TRACKING OFF => +OK
         b> FLUSHALL => +OK
         a< =>",
    );
}

#[test]
fn keys_are_tracked_by_name_whatever_their_database() {
    check_resp3(
        "CLIENT TRACKING ON => +OK
         GET k => _
         b> SELECT 3 => +OK
         b> SET k 1 => +OK
         a< => >2 $10 invalidate *1 $1 k",
    );
}

#[test]
fn opt_in_tracks_the_command_after_caching_yes() {
    check_resp3(
        "CLIENT CACHING YES => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
         CLIENT TRACKING ON OPTIN => +OK
         CLIENT CACHING NO => -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
         CLIENT CACHING maybe => -ERR syntax error
         GET a => _
         CLIENT CACHING YES => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~3 $2 on $5 optin $11 caching-yes $8 redirect :0 $8 prefixes *0
         GET b => _
         CLIENT TRACKINGINFO => %3 $5 flags ~2 $2 on $5 optin $8 redirect :0 $8 prefixes *0
         GET c => _
         b> MSET a 1 b 1 c 1 => +OK
         a< => >2 $10 invalidate *1 $1 b
         # Any command but CLIENT is the next one, refused or not.
         CLIENT CACHING YES => +OK
         CLIENT ID => :1
         GET a => $1 1
         CLIENT CACHING YES => +OK
         PING => +PONG
         GET b => $1 1
         CLIENT CACHING YES => +OK
         NOSUCH => -ERR unknown command 'NOSUCH', with args beginning with: 
         GET c => $1 1
         b> MSET a 2 b 2 c 2 => +OK
         a< => >2 $10 invalidate *1 $1 a",
    );
}

#[test]
fn opt_out_does_not_track_the_command_after_caching_no() {
    check_resp3(
        "CLIENT TRACKING ON OPTOUT => +OK
         CLIENT CACHING YES => -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
         GET a => _
         CLIENT CACHING NO => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~3 $2 on $6 optout $10 caching-no $8 redirect :0 $8 prefixes *0
         GET b => _
         b> MSET a 1 b 1 => +OK
         a< => >2 $10 invalidate *1 $1 a",
    );
}

/// rueidis and valkey-go send each cached read like this, in one pipeline.
#[test]
fn caching_counts_for_a_whole_transaction() {
    check_resp3(
        "CLIENT TRACKING ON OPTIN => +OK
         CLIENT CACHING YES => +OK
         MULTI => +OK
         PTTL a => +QUEUED
         GET => -ERR wrong number of arguments for 'get' command
         DISCARD => +OK
         CLIENT CACHING YES => +OK
         MULTI => +OK
         PTTL a => +QUEUED
         GET b => +QUEUED
         EXEC => *2 :-2 _
         GET c => _
         b> MSET a 1 b 1 c 1 => +OK
         a< => >2 $10 invalidate *1 $1 a >2 $10 invalidate *1 $1 b
         CLIENT TRACKING OFF => +OK
         CLIENT TRACKING ON BCAST NOLOOP => +OK
         b> MULTI => +OK
         b> SET b 1 => +QUEUED
         b> SET a 1 => +QUEUED
         b> EXEC => *2 +OK +OK
         a< => >2 $10 invalidate *2 $1 a $1 b
         CLIENT TRACKING OFF => +OK
         CLIENT TRACKING ON => +OK
         MULTI => +OK
         GET a => +QUEUED
         SET a 2 => +QUEUED
         EXEC => *2 $1 1 +OK
         a< => >2 $10 invalidate *1 $1 a",
    );
}

#[test]
fn broadcasting_sends_changed_keys_by_prefix_once_for_a_command() {
    check_resp3(
        "CLIENT TRACKING ON BCAST PREFIX job: PREFIX lock: => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~2 $2 on $5 bcast $8 redirect :0 $8 prefixes *2 $4 job: $5 lock:
         b> MSET lock:b 1 other 1 lock:a 1 job:1 1 => +OK
         a< => >2 $10 invalidate *1 $5 job:1 >2 $10 invalidate *2 $6 lock:a $6 lock:b
         # Without being read, and again and again.
         b> SET lock:a 2 => +OK
         a< => >2 $10 invalidate *1 $6 lock:a
         SET lock:a 3 => +OK
         a< => >2 $10 invalidate *1 $6 lock:a
         GET other => $1 1
         b> DEL other => :1
         a< =>
         CLIENT TRACKING OFF => +OK
         CLIENT TRACKING ON BCAST NOLOOP => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~3 $2 on $5 bcast $6 noloop $8 redirect :0 $8 prefixes *1 $0 
         SET lock:a 4 => +OK
         a< =>
         b> MSET lock:a 5 x 1 => +OK
         a< => >2 $10 invalidate *2 $6 lock:a $1 x",
    );
}

#[test]
fn invalidations_can_go_to_another_client() {
    check_resp3(
        "CLIENT GETREDIR => :-1
         b> GET k => $-1
         b> CLIENT TRACKING ON REDIRECT 1 => +OK
         b> CLIENT GETREDIR => :1
         b> CLIENT TRACKINGINFO => *6 $5 flags *1 $2 on $8 redirect :1 $8 prefixes *0
         b> GET k => $-1
         c> SET k 1 => +OK
         a< => >2 $10 invalidate *1 $1 k
         b< =>
         CLIENT TRACKING ON => +OK
         CLIENT GETREDIR => :0
         c> FLUSHALL => +OK
         a< => >2 $10 invalidate _ >2 $10 invalidate _",
    );
}

#[test]
fn a_client_is_sent_that_its_redirection_is_broken() {
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check("CLIENT TRACKING ON REDIRECT 3 => +OK\nGET k => _");
    node.clients.truncate(2);
    run(
        &mut node,
        "b> SET k 1 => +OK
         a< => >2 $21 tracking-redir-broken :3
         CLIENT TRACKINGINFO => %3 $5 flags ~2 $2 on $15 broken_redirect $8 redirect :3 $8 prefixes *0
         CLIENT TRACKING ON => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~1 $2 on $8 redirect :0 $8 prefixes *0",
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    check_resp3(
        "CLIENT TRACKING => -ERR wrong number of arguments for 'client|tracking' command
         CLIENT TRACKING maybe => -ERR syntax error
         CLIENT TRACKING ON maybe => -ERR syntax error
         CLIENT TRACKING ON PREFIX => -ERR syntax error
         CLIENT TRACKING ON REDIRECT => -ERR syntax error
         CLIENT TRACKING ON REDIRECT x => -ERR value is not an integer or out of range
         CLIENT TRACKING ON REDIRECT 0 => -ERR The client ID you want redirect to does not exist
         CLIENT TRACKING ON REDIRECT -1 => -ERR The client ID you want redirect to does not exist
         CLIENT TRACKING maybe REDIRECT 9999 => -ERR The client ID you want redirect to does not exist
         CLIENT TRACKING ON REDIRECT 1 REDIRECT 1 => -ERR A client can only redirect to a single other client
         CLIENT TRACKING ON PREFIX a => -ERR PREFIX option requires BCAST mode to be enabled
         CLIENT TRACKING ON OPTIN OPTOUT => -ERR You can't specify both OPTIN mode and OPTOUT mode
         CLIENT TRACKING ON BCAST OPTIN => -ERR OPTIN and OPTOUT are not compatible with BCAST
         CLIENT TRACKING ON BCAST OPTIN OPTOUT => -ERR OPTIN and OPTOUT are not compatible with BCAST
         CLIENT TRACKING OFF OPTOUT NOLOOP => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~1 $3 off $8 redirect :-1 $8 prefixes *0
         CLIENT TRACKING ON OPTIN => +OK
         CLIENT TRACKING ON OPTOUT => -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
         CLIENT TRACKING ON BCAST => -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
         CLIENT TRACKING ON => +OK
         CLIENT TRACKING ON OPTOUT => +OK
         CLIENT TRACKING OFF => +OK
         CLIENT TRACKING ON BCAST PREFIX ab PREFIX a => -ERR Prefix 'ab' overlaps with another provided prefix 'a'. Prefixes for a single client must not overlap.
         CLIENT TRACKING ON BCAST PREFIX ab => +OK
         CLIENT TRACKING ON BCAST PREFIX c PREFIX a => -ERR Prefix 'a' overlaps with an existing prefix 'ab'. Prefixes for a single client must not overlap.
         CLIENT TRACKING ON BCAST PREFIX ab => -ERR Prefix 'ab' overlaps with an existing prefix 'ab'. Prefixes for a single client must not overlap.
         CLIENT TRACKING ON BCAST PREFIX c => +OK
         CLIENT TRACKINGINFO => %3 $5 flags ~2 $2 on $5 bcast $8 redirect :0 $8 prefixes *2 $2 ab $1 c
         CLIENT TRACKING ON => -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
    );
}

#[test]
fn scripts_track_what_their_commands_read() {
    check_resp3(
        r#"CLIENT TRACKING ON NOLOOP => +OK
         EVAL "redis.call('SET',KEYS[1],'1','NX') return redis.call('GET',KEYS[1])" 1 k => $1 1
         a< =>
         b> SET k 2 => +OK
         a< => >2 $10 invalidate *1 $1 k
         # The release script of most libraries is native.
         EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 k x => :0
         b> DEL k => :1
         a< => >2 $10 invalidate *1 $1 k
         EVAL_RO "return 1" 1 k => :1
         b> SET k 1 => +OK
         a< =>"#,
    );
}

#[test]
fn a_reset_and_a_disconnect_end_the_tracking() {
    check_resp3(
        "CLIENT TRACKING ON => +OK
         GET k => _
         RESET => +RESET
         CLIENT TRACKINGINFO => *6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0
         b> SET k 1 => +OK
         a< =>",
    );
    let mut node = Node::new();
    node.check("CLIENT TRACKING ON BCAST => +OK\nb> CLIENT TRACKING ON => +OK\nb> GET k => $-1");
    let figures = |node: &mut Node| {
        let all = node.text("INFO");
        let lines = all.lines().filter(|line| line.contains("tracking_"));
        lines.collect::<Vec<_>>().join(" ")
    };
    let totals = "tracking_total_keys:1 tracking_total_items:1 tracking_total_prefixes:1";
    assert_eq!(figures(&mut node), format!("tracking_clients:2 {totals}"));
    node.clients.remove(1);
    let totals = "tracking_total_keys:1 tracking_total_items:1 tracking_total_prefixes:1";
    assert_eq!(figures(&mut node), format!("tracking_clients:1 {totals}"));
    node.run("CLIENT TRACKING OFF");
    let totals = "tracking_total_keys:0 tracking_total_items:0 tracking_total_prefixes:0";
    assert_eq!(figures(&mut node), format!("tracking_clients:0 {totals}"));
}

#[test]
fn keys_beyond_the_limit_are_forgotten_and_sent() {
    let mut node = Node::with_options(|options| options.tracking_table_max_keys = 2);
    node.run("HELLO 3");
    run(
        &mut node,
        "CLIENT TRACKING ON NOLOOP => +OK
         MGET a b => *2 _ _
         GET a => _
         a< =>
         GET c => _
         a< => >2 $10 invalidate *1 $1 a
         GET a => _
         a< => >2 $10 invalidate *1 $1 b
         CONFIG SET tracking-table-max-keys 1 => +OK",
    );
    node.engine.enforce_client_limits(node.moment.time);
    run(
        &mut node,
        "a< => >2 $10 invalidate *1 $1 c\nb> SET a 1 => +OK",
    );
    run(&mut node, "a< => >2 $10 invalidate *1 $1 a");
}

#[test]
fn client_list_shows_who_tracks() {
    let mut node = Node::new();
    for (options, want) in [
        ("ON", "flags=t redir=0"),
        ("ON REDIRECT 2", "flags=t redir=2"),
        ("OFF", "flags=N redir=-1"),
        ("ON BCAST", "flags=tB redir=0"),
    ] {
        assert_eq!(node.run(&format!("CLIENT TRACKING {options}")), "+OK");
        let line = node.text("CLIENT INFO");
        let field = |name| line.split(' ').find(|field| field.starts_with(name));
        let shown = [field("flags="), field("redir=")].map(Option::unwrap_or_default);
        assert_eq!(shown.join(" "), want);
    }
}
