//! ACL: users, passwords, and what is allowed: of commands, keys and channels.

use crate::node::{Node, check};

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn a_user_logs_in_with_its_password_while_it_is_on() {
    check(&format!(
        "ACL WHOAMI => $7 default
         ACL SETUSER alice >secret ~lock:* +@lock => +OK
         b> AUTH alice secret => {WRONG}
         ACL SETUSER alice on => +OK
         b> AUTH alice wrong => {WRONG}
         b> AUTH nobody secret => {WRONG}
         b> ACL WHOAMI => $7 default
         b> AUTH alice secret => +OK
         b> ACL WHOAMI => $5 alice
         b> SET lock:1 t => +OK
         b> SET other t => -NOPERM No permissions to access a key
         b> FLUSHALL => -NOPERM User alice has no permissions to run the 'flushall' command
         # Whoever is logged in stays so.
         ACL SETUSER alice off => +OK
         b> GET lock:1 => $1 t
         c> AUTH alice secret => {WRONG}
         b> RESET => +RESET
         b> ACL WHOAMI => $7 default"
    ));
}

#[test]
fn a_user_is_shown_as_its_rules() {
    check(
        "ACL SETUSER a on >pw ~k:* %R~r:* %W~w:* &ch* +@all -@dangerous +get => +OK
         ACL SETUSER b nopass allkeys allchannels allcommands => +OK
         ACL SETUSER b reset => +OK
         ACL SETUSER c +client|id +client +select|0 +CLIENT -client|id +Get|X => +OK
         ACL SETUSER c %RW~* ~x %r~y %W~y &a &b &a => +OK
         ACL LIST => *4 $153 user a on sanitize-payload #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 ~k:* %R~r:* %W~w:* resetchannels &ch* +@all -@dangerous +get $47 user b off sanitize-payload resetchannels -@all $98 user c off sanitize-payload ~* ~x ~y resetchannels &a &b -@all +select|0 +client -client|id +get|x $51 user default on nopass sanitize-payload ~* &* +@all
         ACL GETUSER a => *12 $5 flags *2 $2 on $16 sanitize-payload $9 passwords *1 $64 30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 $8 commands $22 +@all -@dangerous +get $4 keys $18 ~k:* %R~r:* %W~w:* $8 channels $4 &ch* $9 selectors *0
         ACL GETUSER nobody => $-1
         ACL USERS => *4 $1 a $1 b $1 c $7 default",
    );
}

#[test]
fn rules_are_refused_as_a_whole_with_what_is_wrong() {
    check(
        "ACL SETUSER a ~x => +OK
         ACL SETUSER a ~y +nosuch => -ERR Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL
         ACL SETUSER a ~y +@nosuch => -ERR Error in ACL SETUSER modifier '+@nosuch': Unknown command or category name in ACL
         ACL SETUSER a ~y foo => -ERR Error in ACL SETUSER modifier 'foo': Syntax error
         ACL SETUSER a ~y <pw => -ERR Error in ACL SETUSER modifier '<pw': The password you are trying to remove from the user does not exist
         ACL SETUSER a #abc => -ERR Error in ACL SETUSER modifier '#abc': The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters
         ACL SETUSER a +config|get|x => -ERR Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not supported
         ACL SETUSER a -get|x => -ERR Error in ACL SETUSER modifier '-get|x': Unknown command or category name in ACL
         ACL SETUSER a ~a%20b => -ERR Error in ACL SETUSER modifier '~a b': Syntax error
         ACL SETUSER a %X~a => -ERR Error in ACL SETUSER modifier '%X~a': Syntax error
         ACL SETUSER a%20b on => -ERR Usernames can't contain spaces or null characters
         ACL SETUSER a (~y) => -UNSUPPORTED this node has no selectors: put all rules of the user side by side
         ACL DELUSER default => -ERR The 'default' user cannot be removed
         ACL LOG => -UNSUPPORTED ACL LOG: the node counts what it denied in INFO, and a refused command says why
         ACL DRYRUN a get x => -UNSUPPORTED ACL DRYRUN: the node counts what it denied in INFO, and a refused command says why
         ACL LIST => *2 $50 user a off sanitize-payload ~x resetchannels -@all $51 user default on nopass sanitize-payload ~* &* +@all",
    );
}

#[test]
fn keys_are_read_or_written_by_permission() {
    check(
        "ACL SETUSER u on nopass %R~r %W~w +@all => +OK
         b> AUTH u x => +OK
         b> GET r => $-1
         b> GET w => -NOPERM No permissions to access a key
         b> SET w t => +OK
         b> SET r t => -NOPERM No permissions to access a key
         b> SET w t GET => -NOPERM No permissions to access a key
         b> SET w t EX 9 GET => -NOPERM No permissions to access a key
         b> INCR w => -NOPERM No permissions to access a key
         b> EXISTS w r => :1
         b> EXISTS w r x => -NOPERM No permissions to access a key
         b> MGET r w => -NOPERM No permissions to access a key
         b> LOCK.GET w => -NOPERM No permissions to access a key
         # Redis lets every name be listed.
         b> KEYS * => *1 $1 w",
    );
}

#[test]
fn rules_reach_connections_that_are_logged_in() {
    check(
        "ACL SETUSER u on nopass ~* +get +ping => +OK
         b> AUTH u x => +OK
         b> GET k => $-1
         ACL SETUSER u -get => +OK
         b> GET k => -NOPERM User u has no permissions to run the 'get' command
         b> PING => +PONG
         ACL SETUSER default -ping => +OK
         PING => -NOPERM User default has no permissions to run the 'ping' command
         ACL SETUSER default +ping => +OK
         PING => +PONG
         ACL DELUSER u nobody => :1",
    );
}

#[test]
fn the_connections_of_a_user_that_is_removed_are_closed() {
    let mut node = Node::new();
    node.check(
        "ACL SETUSER u on nopass +@all => +OK
         b> AUTH u x => +OK
         c> AUTH u x => +OK
         c> ACL DELUSER u => :1 Close",
    );
    assert!(node.clients[1].client().is_killed());
    // What it has sent meanwhile is refused.
    node.check("b> PING => -NOPERM User u has no permissions to run the 'ping' command");
}

#[test]
fn subcommands_have_permissions_of_their_own() {
    check(
        "ACL SETUSER u on nopass +client -client|kill +config|get +select|1 => +OK
         b> AUTH u x => +OK
         b> CLIENT ID => :2
         b> CLIENT HELP x => -ERR wrong number of arguments for 'client|help' command
         b> CLIENT NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.
         b> CLIENT KILL a b => -NOPERM User u has no permissions to run the 'client|kill' command
         b> CONFIG GET maxclients => *2 $10 maxclients $5 10000
         b> CONFIG SET maxclients 9 => -NOPERM User u has no permissions to run the 'config|set' command
         b> CONFIG HELP => -NOPERM User u has no permissions to run the 'config|help' command
         b> SELECT 1 => +OK
         b> SELECT 0 => -NOPERM User u has no permissions to run the 'select' command",
    );
}

#[cfg(feature = "compat")]
#[test]
fn scripts_do_what_their_user_may_do() {
    check(
        "ACL SETUSER u on nopass ~a ~b +@all -del => +OK
         b> AUTH u x => +OK
         b> SET a t => +OK
         b> EVAL \"return redis.call('get', 'x')\" 0 => -ERR ACL failure in script: No permissions to access a key script: 7b232de2280a0be147450f1bfc287bf012a22d2b, on @user_script:1.
         b> EVAL \"return redis.pcall('get', 'x')\" 0 => -ERR ACL failure in script: No permissions to access a key
         b> EVAL \"return redis.pcall('del', 'a')\" 0 => -ERR ACL failure in script: User u has no permissions to run the 'del' command
         b> EVAL \"return redis.pcall('publish', 'x', 'y')\" 0 => -ERR ACL failure in script: No permissions to access a channel
         b> EVAL \"return 1\" 1 x => -NOPERM No permissions to access a key
         b> EVAL \"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end\" 1 a t => -ERR ACL failure in script: User u has no permissions to run the 'del' command script: ae3671744a5dbb24ea37ef607b8b10ac7856d43e, on @user_script:1.
         b> EVALSHA ae3671744a5dbb24ea37ef607b8b10ac7856d43e 1 a t => -ERR ACL failure in script: User u has no permissions to run the 'del' command script: ae3671744a5dbb24ea37ef607b8b10ac7856d43e, on @user_script:1.
         ACL SETUSER u +del => +OK
         b> EVALSHA ae3671744a5dbb24ea37ef607b8b10ac7856d43e 1 a t => :1",
    );
}

#[cfg(feature = "compat")]
#[test]
fn a_transaction_is_checked_when_it_is_queued_and_when_it_runs() {
    check(
        "ACL SETUSER u on nopass ~a ~b &ch +@all => +OK
         b> AUTH u x => +OK
         b> MULTI => +OK
         b> GET x => -NOPERM No permissions to access a key
         b> EXEC => -EXECABORT Transaction discarded because of previous errors.
         b> MULTI => +OK
         b> SET a t => +QUEUED
         b> SET b t => +QUEUED
         b> PUBLISH ch x => +QUEUED
         ACL SETUSER u resetkeys ~b -publish => +OK
         b> EXEC => *3 -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to touch the specified keys +OK -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand
         ACL SETUSER u -exec => +OK
         b> MULTI => +OK
         b> EXEC => -EXECABORT Transaction discarded because of: NOPERM User u has no permissions to run the 'exec' command",
    );
}

#[cfg(feature = "compat")]
#[test]
fn channels_are_used_by_permission() {
    let mut node = Node::new();
    node.check(
        "ACL SETUSER u on nopass ~lock:* &ch* &pat:* &__key* +@all => +OK
         b> HELLO 3 AUTH u x => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :2 $4 mode $10 standalone $4 role $6 master $7 modules *0
         b> SUBSCRIBE ch1 other => -NOPERM No permissions to access a channel
         b> SUBSCRIBE ch1 ch2 => >3 $9 subscribe $3 ch1 :1 >3 $9 subscribe $3 ch2 :2
         b> PSUBSCRIBE pat:1 => -NOPERM No permissions to access a channel
         b> PSUBSCRIBE pat:* => >3 $10 psubscribe $5 pat:* :3
         b> SSUBSCRIBE x => -NOPERM No permissions to access a channel
         b> PUBLISH x y => -NOPERM No permissions to access a channel
         b> UNSUBSCRIBE x => >3 $11 unsubscribe $1 x :3
         # What is still allowed goes on.
         ACL SETUSER u resetchannels &ch? &pat:* &__key* => +OK
         b> PING => +PONG",
    );
    assert!(!node.clients[1].client().is_killed());
    node.check("ACL SETUSER u resetchannels &ch1 &pat:* => +OK");
    assert!(node.clients[1].client().is_killed());
}

#[cfg(feature = "compat")]
#[test]
fn nobody_learns_of_keys_that_it_may_not_read() {
    let mut node = Node::new();
    node.check(
        "CONFIG SET notify-keyspace-events KEA => +OK
         ACL SETUSER u on nopass ~lock:* allchannels +@all => +OK
         b> AUTH u x => +OK
         b> SUBSCRIBE __keyevent@0__:set => *3 $9 subscribe $18 __keyevent@0__:set :1
         SET other t => +OK
         b< =>
         SET lock:1 t => +OK
         b< => *3 $7 message $18 __keyevent@0__:set $6 lock:1",
    );
    let mut node = Node::new();
    node.check(
        "ACL SETUSER u on nopass ~lock:* +@all => +OK
         b> HELLO 3 AUTH u x => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :2 $4 mode $10 standalone $4 role $6 master $7 modules *0
         b> CLIENT TRACKING ON BCAST => +OK
         MSET other t lock:1 t => +OK
         b< => >2 $10 invalidate *1 $6 lock:1
         SET other t => +OK
         b< =>",
    );
}

#[test]
fn wrong_passwords_are_answered_later_and_later() {
    let mut node = Node::new();
    node.skips_login_delay = false;
    let delay = |node: &Node| {
        let end = node.engine.wait_end(&node.clients[1], node.moment.time);
        end.map(|end| end.since(node.moment.time).as_millis())
    };
    node.check("ACL SETUSER u on >right +@all => +OK");
    for expected in [100, 200, 400, 800, 1_600, 3_200, 3_200] {
        node.check("b> AUTH u wrong => Paused");
        assert_eq!(delay(&node), Some(expected));
        // Others are served meanwhile, and nothing else on this connection.
        node.check("PING => +PONG\n c> AUTH u right => +OK\n b> PING => Paused");
        node.advance_millis(u64::try_from(expected).expect("milliseconds"));
        assert_eq!(delay(&node), None);
        node.check(&format!("b> AUTH u wrong => {WRONG}"));
    }
    node.check("b> AUTH u right => +OK\n b> AUTH u wrong => Paused");
    assert_eq!(delay(&node), Some(100));
}

#[cfg(feature = "compat")]
#[test]
fn a_transaction_is_no_way_to_try_many_passwords() {
    let mut node = Node::new();
    node.skips_login_delay = false;
    node.check(&format!(
        "ACL SETUSER u on >right +@all => +OK
         b> MULTI => +OK
         b> AUTH u wrong => +QUEUED
         b> AUTH u right => +QUEUED
         b> EXEC => *2 {WRONG} {WRONG}
         b> PING => Paused
         + 100
         b> PING => +PONG
         b> AUTH u wrong => Paused"
    ));
}

#[test]
fn requirepass_is_the_password_of_default() {
    let mut node = Node::with_options(|options| options.requirepass = "one".to_owned());
    node.check(&format!(
        "PING => -NOAUTH Authentication required.
         AUTH default one => +OK
         ACL GETUSER default => *12 $5 flags *2 $2 on $16 sanitize-payload $9 passwords *1 $64 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed $8 commands $5 +@all $4 keys $2 ~* $8 channels $2 &* $9 selectors *0
         CONFIG SET requirepass two => +OK
         b> AUTH one => {WRONG}
         b> AUTH two => +OK
         ACL SETUSER default >three => +OK
         c> AUTH three => +OK
         # Another option does not undo it.
         CONFIG SET maxclients 99 => +OK
         c> RESET => +RESET
         c> AUTH three => +OK
         CONFIG SET requirepass '' => +OK
         c> RESET => +RESET
         c> PING => +PONG"
    ));
}

#[test]
fn what_was_denied_is_counted() {
    let mut node = Node::new();
    node.check(&format!(
        "ACL SETUSER u on nopass ~a +@all -get => +OK
         b> AUTH u x => +OK
         b> GET a => -NOPERM User u has no permissions to run the 'get' command
         b> SET x t => -NOPERM No permissions to access a key
         b> SET y t => -NOPERM No permissions to access a key
         b> AUTH nobody x => {WRONG}"
    ));
    let stats = node.text("INFO stats");
    for line in [
        "acl_access_denied_auth:1",
        "acl_access_denied_cmd:1",
        "acl_access_denied_key:2",
        "acl_access_denied_channel:0",
    ] {
        assert!(stats.contains(line), "{stats}");
    }
}

#[test]
fn clients_are_listed_and_killed_by_user() {
    let mut node = Node::new();
    node.check("ACL SETUSER u on nopass +@all => +OK\n b> AUTH u x => +OK");
    let list = node.text("CLIENT LIST");
    let users: Vec<bool> = list.lines().map(|it| it.contains(" user=u ")).collect();
    assert_eq!(users, [false, true, false], "{list}");
    node.check(
        "CLIENT KILL USER nobody => -ERR No such user 'nobody'
         CLIENT KILL USER u => :1",
    );
    assert!(node.clients[1].client().is_killed());
}
