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
