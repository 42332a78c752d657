//! The fakes are what they pretend to be.

use std::time::Duration;

use locknode_resp::Reply;
use locknode_tests::Conversation;
use locknode_tests::fake_node::{Behaviour, FakeNode, Flavour, Purpose, errors};
use locknode_tests::patience::eventually;
use tokio::net::TcpStream;

const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const EXTEND: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

async fn talk(fake: &FakeNode) -> Conversation {
    Conversation::with(fake.address()).await.unwrap()
}

fn ok() -> Option<Reply> {
    Some(Reply::Simple(b"OK".to_vec()))
}

fn error(text: &str) -> Option<Reply> {
    Some(Reply::Error(text.as_bytes().to_vec()))
}

const TAKE: [&str; 6] = ["SET", "k", "t", "NX", "PX", "30000"];

#[tokio::test]
async fn an_honest_fake_grants_extends_and_releases() {
    for flavour in Flavour::USEFUL {
        let fake = FakeNode::start_as(flavour).await;
        let mut node = talk(&fake).await;
        assert_eq!(node.ask(&TAKE).await, ok());
        assert_eq!(node.ask(&TAKE).await, Some(Reply::Null));
        assert_eq!(fake.holder("k").as_deref(), Some("t"));
        let extended = node.ask(&["EVAL", EXTEND, "1", "k", "t", "90000"]).await;
        assert_eq!(extended, Some(Reply::Integer(1)));
        assert!(fake.remaining("k").unwrap() > Duration::from_secs(80));
        let sha = sha1_smol::Sha1::from(RELEASE).digest().to_string();
        let by_sha = node.ask(&["EVALSHA", &sha, "1", "k", "other"]).await;
        assert_eq!(by_sha, error(errors::NOSCRIPT));
        let foreign = node.ask(&["EVAL", RELEASE, "1", "k", "other"]).await;
        assert_eq!(foreign, Some(Reply::Integer(0)));
        let own = node.ask(&["EVALSHA", &sha, "1", "k", "t"]).await;
        assert_eq!(own, Some(Reply::Integer(1)), "{flavour:?}");
        assert!(fake.keys().is_empty());
        let purposes: Vec<_> = fake.received().iter().map(|r| r.purpose).collect();
        use Purpose::{Acquire, Extend, Release};
        assert_eq!(
            purposes,
            [Acquire, Acquire, Extend, Release, Release, Release]
        );
    }
}

#[tokio::test]
async fn a_flavour_has_the_commands_of_its_server_and_no_others() {
    let newer = ["DELEX k IFEQ t", "DELIFEQ k t"];
    let basic = ["EVAL x 0", "SET k t IFEQ t"];
    let rows = [
        (Flavour::Redis7, newer, [false, false]),
        (Flavour::Redis8, newer, [true, false]),
        (Flavour::Valkey9, newer, [false, true]),
        (Flavour::Locknode, newer, [true, true]),
        (Flavour::Bare, basic, [false, false]),
    ];
    for (flavour, commands, expected) in rows {
        let fake = FakeNode::start_as(flavour).await;
        let mut node = talk(&fake).await;
        for (command, is_known) in commands.iter().zip(expected) {
            let words: Vec<&str> = command.split(' ').collect();
            let reply = node.ask(&words).await;
            let is_error = matches!(reply, Some(Reply::Error(_)));
            assert_eq!(!is_error, is_known, "{flavour:?} {command}: {reply:?}");
            if words[0] != "SET" {
                let Some(Reply::Array(infos)) = node.ask(&["COMMAND", "INFO", words[0]]).await
                else {
                    panic!("COMMAND INFO gives an array");
                };
                assert_eq!(infos[0] != Reply::Null, is_known, "{flavour:?} {command}");
            }
        }
        let Some(Reply::Bulk(info)) = node.ask(&["INFO", "server"]).await else {
            panic!("INFO gives a string");
        };
        assert!(String::from_utf8(info).unwrap().contains("run_id:"));
    }
}

#[tokio::test]
async fn each_behaviour_is_that_of_one_request() {
    let cut = "+O";
    let rows: [(Behaviour, &str, bool); 12] = [
        (Behaviour::Honest, "+OK\r\n", true),
        (Behaviour::Close, "", false),
        (Behaviour::ApplyThenClose, "", true),
        (Behaviour::ApplyThenCutReply, cut, true),
        (Behaviour::Answer(b"?!".to_vec()), "?!", false),
        (
            Behaviour::ApplyThenAnswer(b":7\r\n".to_vec()),
            ":7\r\n",
            true,
        ),
        (Behaviour::ApplyThenAnswerTwice, "+OK\r\n+OK\r\n", true),
        (Behaviour::ApplyThenTrickle, "+OK\r\n", true),
        (
            Behaviour::error(errors::OOM),
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
            false,
        ),
        (
            Behaviour::push_first(),
            ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
            true,
        ),
        (Behaviour::Flood(3), "$3\r\nxxx\r\n", false),
        (Behaviour::Ignore, "", false),
    ];
    for (behaviour, bytes, is_applied) in rows {
        let fake = FakeNode::start().await;
        fake.next(Purpose::Acquire, behaviour.clone());
        let mut node = talk(&fake).await;
        node.say(&TAKE).await;
        fake.wait_for_count(Purpose::Acquire, 1).await;
        eventually("applied", || fake.keys().is_empty() != is_applied).await;
        node.say(&["QUIT"]).await;
        if matches!(behaviour, Behaviour::Ignore) {
            fake.wait_for_count("QUIT", 1).await;
            fake.go_down().await;
        } else if node_is_open(&behaviour) {
            let want = [bytes, "+OK\r\n"].concat();
            let mut heard = Vec::new();
            while heard.len() < want.len() {
                heard.extend(node.bytes(want.len() - heard.len()).await);
            }
            assert_eq!(String::from_utf8_lossy(&heard), want, "{behaviour:?}");
            continue;
        }
        let heard = node.rest().await;
        assert_eq!(String::from_utf8_lossy(&heard), bytes, "{behaviour:?}");
    }
}

fn node_is_open(behaviour: &Behaviour) -> bool {
    !matches!(
        behaviour,
        Behaviour::Close | Behaviour::ApplyThenClose | Behaviour::ApplyThenCutReply
    )
}

#[tokio::test]
async fn a_held_reply_leaves_when_it_is_let_go() {
    let fake = FakeNode::start().await;
    let hold = fake.hold(Purpose::Acquire);
    let mut node = talk(&fake).await;
    node.say(&TAKE).await;
    hold.caught().await;
    assert_eq!(hold.held(), 1);
    assert_eq!(fake.holder("k").as_deref(), Some("t"), "executed at once");
    hold.release();
    assert_eq!(node.hear().await, ok());
    assert_eq!(
        node.ask(&TAKE).await,
        Some(Reply::Null),
        "and not held again"
    );
}

#[tokio::test]
async fn a_delayed_request_is_executed_even_if_nobody_waits_for_it() {
    let fake = FakeNode::start().await;
    let hold = fake.delay_next(Purpose::Acquire);
    let mut node = talk(&fake).await;
    node.say(&TAKE).await;
    hold.caught().await;
    assert!(fake.keys().is_empty());
    drop(node);
    hold.release();
    eventually("executed", || fake.holder("k").is_some()).await;
}

#[tokio::test]
async fn a_node_that_is_down_refuses_and_comes_back_with_its_keys_unless_it_crashed() {
    let fake = FakeNode::start().await;
    let mut node = talk(&fake).await;
    node.ask(&TAKE).await;
    fake.go_down().await;
    assert_eq!(node.rest().await, b"");
    assert!(TcpStream::connect(fake.address()).await.is_err());
    fake.come_back().await;
    let mut node = talk(&fake).await;
    assert_eq!(node.ask(&TAKE).await, Some(Reply::Null));
    fake.crash().await;
    fake.come_back().await;
    let mut node = talk(&fake).await;
    assert_eq!(node.ask(&TAKE).await, ok());
}

#[tokio::test]
async fn a_silent_node_records_what_it_reads_and_answers_again_on_new_connections() {
    let fake = FakeNode::start().await;
    let mut node = talk(&fake).await;
    node.ask(&["PING"]).await;
    fake.fall_silent();
    node.say(&TAKE).await;
    fake.wait_for_count(Purpose::Acquire, 1).await;
    assert!(fake.keys().is_empty());
    fake.come_back().await;
    assert_eq!(node.rest().await, b"");
    assert_eq!(talk(&fake).await.ask(&TAKE).await, ok());
}

#[tokio::test]
async fn a_node_that_stops_reading_accepts_connections_and_nothing_else() {
    let fake = FakeNode::start().await;
    fake.stop_reading();
    let mut node = talk(&fake).await;
    node.say(&TAKE).await;
    eventually("accepted", || fake.connections() == 1).await;
    tokio::task::yield_now().await;
    assert!(fake.received().is_empty());
}

#[tokio::test]
async fn a_hanging_connect_neither_succeeds_nor_fails() {
    let fake = FakeNode::start().await;
    fake.leave_connects_hanging().await;
    let connect = TcpStream::connect(fake.address());
    let result = tokio::time::timeout(Duration::from_millis(100), connect).await;
    assert!(result.is_err(), "{result:?}");
    fake.come_back().await;
    assert_eq!(talk(&fake).await.ask(&TAKE).await, ok());
}

#[tokio::test]
async fn time_passes_on_one_node_only() {
    let (slow, fast) = (FakeNode::start().await, FakeNode::start().await);
    for fake in [&slow, &fast] {
        talk(fake).await.ask(&TAKE).await;
    }
    fast.pass_time(Duration::from_secs(31));
    assert!(fast.keys().is_empty());
    assert_eq!(slow.holder("k").as_deref(), Some("t"));
}

#[tokio::test]
async fn two_doors_lead_to_one_node() {
    let fake = FakeNode::start().await;
    let door = fake.open_another_door();
    assert_eq!(talk(&fake).await.ask(&TAKE).await, ok());
    let mut other = Conversation::with(door).await.unwrap();
    assert_eq!(other.ask(&TAKE).await, Some(Reply::Null));
}

#[tokio::test]
async fn a_password_is_asked_for() {
    let fake = FakeNode::start_with_password("secret").await;
    let mut node = talk(&fake).await;
    assert_eq!(node.ask(&TAKE).await, error(errors::NOAUTH));
    assert_eq!(node.ask(&["INFO"]).await, error(errors::NOAUTH));
    assert_eq!(node.ask(&["AUTH", "wrong"]).await, error(errors::WRONGPASS));
    assert_eq!(node.ask(&["AUTH", "secret"]).await, ok());
    assert_eq!(node.ask(&TAKE).await, ok());
    assert_eq!(fake.holder("k").as_deref(), Some("t"));
}
