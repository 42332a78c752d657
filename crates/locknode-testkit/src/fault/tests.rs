use super::*;

const MS: Duration = Duration::from_millis(1);

fn every_fault() -> Vec<Fault> {
    let links = Links::between([0, 2], 1);
    let (node, client) = (Who::Node(3), Who::Client(1));
    let mut faults: Vec<Fault> = Crash::ALL.map(|how| Fault::Crash(2, how)).into();
    faults.extend(Phase::ALL.map(|phase| Fault::CrashIn(2, phase, 7, Crash::PowerLoss)));
    faults.extend([
        Fault::Restart(2),
        Fault::CrashClient(1),
        Fault::Promote(0),
        Fault::Pause(node, MS),
        Fault::Suspend(client, 1500 * MS),
        Fault::Freeze(node, 2 * MS),
        Fault::Cut(links, Way::Both),
        Fault::Cut(Links::ALL, Way::Replies),
        Fault::Heal(Links::ALL),
        Fault::Delay(links, 30 * MS),
        Fault::Hold(links, Way::Requests),
        Fault::Release(links, Way::Requests),
        Fault::Drop(links, Way::Replies, 3),
        Fault::Late(links, Way::Requests, 2, 500 * MS),
        Fault::Duplicate(links, 1),
        Fault::Refuse(links, Refusal::ReadOnly, 3),
        Fault::Reset(links),
        Fault::Rate(node, 9_000),
        Fault::Slew(node, -83_333),
        Fault::Noise(client, MS),
        Fault::WallJump(node, -3_600_000),
        Fault::Disk(1, DiskFault::SyncError),
        Fault::Disk(1, DiskFault::SyncFull),
        Fault::Disk(1, DiskFault::WriteError),
        Fault::Disk(1, DiskFault::WriteFull),
        Fault::Disk(1, DiskFault::Rot),
        Fault::Disk(1, DiskFault::Cut),
        Fault::Disk(1, DiskFault::Full),
        Fault::Disk(1, DiskFault::Room),
        Fault::Disk(1, DiskFault::Slow(20 * MS)),
        Fault::Disk(1, DiskFault::Stall),
        Fault::Disk(1, DiskFault::Go),
        Fault::MaxTtl(0, 10_000 * MS),
        Fault::Calm,
    ]);
    faults
}

#[test]
fn every_fault_is_read_as_it_was_written() {
    for fault in every_fault() {
        let line = fault.to_string();
        assert_eq!(Fault::parse(&line), Ok(fault), "{line}");
    }
}

#[test]
fn a_line_that_is_no_fault_is_told_what_was_expected() {
    let rows = [
        ("", "a fault"),
        ("explode node 1", "crash, crash-in, restart"),
        ("crash node", "a number from 0 to 15"),
        ("crash", "node or client"),
        ("crash disk 1", "node or client"),
        ("crash node 16 kill", "a number from 0 to 15"),
        ("crash node 1 softly", "kill, power-loss"),
        ("pause client 1 soon", "a time such as"),
        ("cut client 0 node 1", "requests, replies or both"),
        ("cut client 0,99 node 1 both", "numbers from 0 to 15"),
        ("drop client 0 node 1 replies many", "how many"),
        ("rate node 1 fast", "a rate such as"),
        ("rate node 1 +1000000ppm", "a rate such as"),
        ("wall node 1 tomorrow", "milliseconds such as"),
        ("disk node 1 melts", "sync-error, sync-full"),
        ("calm down", "the end of the line"),
    ];
    for (line, expected) in rows {
        let error = Fault::parse(line).expect_err(line).to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn faults_are_sentences() {
    for (fault, want) in [
        ("crash node 2 kill", "node 2 is killed"),
        ("crash node 2 moved", "node 2 is killed (moved)"),
        ("restart node 2", "node 2 starts again"),
        ("pause client 1 300ms", "client 1 stands still for 300ms"),
        (
            "cut client 0,2 node 1 both",
            "cut: between clients 0,2 and node 1",
        ),
        (
            "cut client all node 1,3 replies",
            "cut: replies from nodes 1,3 to every client",
        ),
        ("heal client all node all", "healed: every link"),
        (
            "delay client all node 0 80ms",
            "80ms later: messages between every client and node 0",
        ),
        (
            "drop client 1 node 0 replies 2",
            "lost: the next 2 replies from node 0 to client 1",
        ),
        (
            "drop client all node 0 requests 1",
            "lost: the next 1 request from every client to node 0",
        ),
        (
            "rate node 1 -4000ppm",
            "the clock of node 1 runs 0.40 % too slow",
        ),
        (
            "wall node 1 -3600000ms",
            "the calendar of node 1 is set back by 3600s",
        ),
        (
            "hold client 0 node 1 both",
            "held back: requests and replies between client 0 and node 1",
        ),
        (
            "release client 0 node 1 replies",
            "delivered: held replies from node 1 to client 0",
        ),
        (
            "late client 0 node 1 requests 2 30ms",
            "30ms later: the next 2 requests from client 0 to node 1",
        ),
        (
            "duplicate client 0 node 1 3",
            "doubled: the next 3 requests between client 0 and node 1",
        ),
        ("suspend node 1 2s", "suspend node 1 2s"),
    ] {
        let fault = Fault::parse(fault).unwrap();
        assert_eq!(fault.sentence(5, 3), want);
    }
}

#[test]
fn a_link_is_struck_as_the_fault_says_and_what_is_undone_is_as_before() {
    let links = Links::ALL;
    for fault in every_fault()
        .into_iter()
        .filter(|fault| fault.links().is_some())
    {
        let mut link = LinkState::default();
        fault.strike(&mut link);
        let is_struck = format!("{link:?}") != format!("{:?}", LinkState::default());
        let is_repair = matches!(fault, Fault::Heal(_) | Fault::Release(..) | Fault::Reset(_));
        assert_eq!(is_struck, !is_repair, "{fault}");
        if let Some(undo) = fault.undo() {
            undo.strike(&mut link);
            assert_eq!(
                format!("{link:?}"),
                format!("{:?}", LinkState::default()),
                "{fault}"
            );
        }
    }
    assert_eq!(Fault::Heal(links).links(), Some(links));
}

#[test]
fn refusals_are_counted_and_nothing_is_left_of_them() {
    let mut link = LinkState::default();
    Fault::Refuse(Links::ALL, Refusal::Oom, 2).strike(&mut link);
    assert_eq!(link.take_refusal(b"ping"), None);
    for name in [&b"SET"[..], b"lock.acquire"] {
        assert_eq!(link.take_refusal(name), Some(Refusal::Oom));
    }
    assert_eq!((link.take_refusal(b"SET"), link.refusals), (None, None));
}
