//! The text of `locknode run --help`. `docs/run.md` has the details, with the test of each sentence.

pub(crate) const LONG_ABOUT: &str = "\
Run a command while holding a lock.

Acquires the lock on a majority of the nodes, runs the command (never through a shell) and releases
the lock when the command ends. If another client holds the lock, the command does not run. So at
most one runs at a time, but they may run one after the other. For a job that every machine starts
at the same time and only one should run, see --at-least.

The lock expires after --ttl; with --renew it is renewed every third of that. If it cannot be
renewed, the command gets SIGTERM, and after --grace SIGKILL, a tenth of --ttl (at most 1s) before
the lock expires. The thread that does this never waits for a node, a resolver or a write.

\"The command\" is the started process and all its descendants, in any process group or session. A
service manager (systemd-run, docker, at) starts processes that do not descend from the command:
locknode run does not reach them. It cannot kill a process that became another user without
privileges, unless it can create a control group (v2). It then reports that, and does not release
the lock before that process ends or the lock expires.

SIGTERM is sent to all of the command; after --grace the rest is killed; then the lock is released.
HUP, INT, QUIT, USR1 and USR2 are passed on; if the command then ends, its descendants get SIGTERM
and --grace. A second INT kills everything. When the command ends by itself, descendants that still
run go on without the lock, unless you give --kill-group. A signal that is ignored when locknode run
starts stays ignored, for the command too.

With a controlling terminal the command shares the process group of locknode run, as job control
requires. A signal that the terminal sends to both is not passed on again; one sent to locknode run
alone is. Without a terminal the command leads its own process group.

If locknode run is killed with SIGKILL, Linux kills the started process, but not its descendants:
use SIGTERM to end locknode run. While it is stopped (SIGSTOP) or the machine sleeps, it kills
nothing; if the lock has expired when it resumes, it kills at once. If even then something must not
be written twice, check a fencing token where it is written.";

pub(crate) const EXAMPLES: &str = "\
The command's environment has LOCKNODE_NAME, LOCKNODE_TOKEN, LOCKNODE_VALID_UNTIL (when the lock
expires without renewal, as of the start, in milliseconds since 1970) and LOCKNODE_HELD=1.

With --json each line on standard error is an object with \"event\" (waiting, acquired, started,
renewed, lost, killed, not_killed, exited, released, kept, failed) and \"name\". The command's own
standard error appears between these lines. Lines that nobody reads are dropped.

Examples:
  export LOCKNODE_NODES=10.0.0.5:6379,10.0.0.6:6379,10.0.0.7:6379
  locknode run nightly-report -- /usr/local/bin/report --all
  locknode run --ttl 30s --renew --max-hold 2h backup -- backup.sh
  locknode run --wait 5m deploy -- sh -c 'make build && make install'
  locknode run --ttl 60s --at-least 50s minutely -- job     in the crontab of every machine

Exit codes: the command's own, if the lock was valid until it ended, 128+N if signal N killed it;
75 another client holds the lock, or clients kept splitting the votes (or the code of -E; flock uses
1); 79 the lock was lost while the command ran (or the code of --lost-exit-code); 69 too few nodes
took part to decide; 126 the command cannot be executed, 127 it was not found; 64 wrong usage, 70
internal error.";
