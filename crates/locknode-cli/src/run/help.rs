//! The words of `locknode run --help`. `docs/run.md` says the same at more length, with the test of each sentence.

pub(crate) const LONG_ABOUT: &str = "\
Run a command while holding a lock.

Acquires the lock on a majority of the nodes, runs the command (never through a shell) and releases
the lock when the command has ended. If another client holds the lock, the command is not run. So
at most one runs at any time; one after the other, all may: for a job that is to run once per round
of every machine's clock, see --at-least.

A lock lives for --ttl; with --renew it is renewed every third of that. If it cannot be renewed,
the command gets SIGTERM, and SIGKILL after --grace, a tenth of --ttl (1s at most) before the lock
ends. The thread that does this never waits for a node, a resolver or a write.

The command is the process that was started and all that descends from it, whatever its process
group or session. A service manager (systemd-run, docker, at) starts processes that do not descend
from the command: they are not reached. A process that became another user cannot be killed without
privileges, except where locknode can make a control group (v2); then it says so, and the lock is
not released before that process has ended, or the lock has.

SIGTERM asks all of the command to end; what has not ended after --grace is killed; then the lock
is released. HUP, INT, QUIT, USR1 and USR2 are passed on; if the command ends, what it started gets
SIGTERM and --grace. A second INT kills all. What a command leaves running when it ends by itself
runs on without the lock, unless --kill-group is given. A signal that is ignored when locknode run
starts stays ignored, for the command too.

With a controlling terminal the command shares the process group of locknode run, as job control
wants it; a signal that the terminal sent to both is not passed on again, one that was sent to
locknode run alone is. Without one, the command leads a process group of its own.

If locknode run is killed with SIGKILL, Linux kills the command itself, but not what it started: end
locknode run with SIGTERM. While it is stopped (SIGSTOP) or the machine sleeps, nothing is killed;
when it goes on after the end of the lock, it kills at once. What must not be written twice even
then needs a check where it is written: a fencing token.";

pub(crate) const EXAMPLES: &str = "\
The command finds in its environment: LOCKNODE_NAME, LOCKNODE_TOKEN, LOCKNODE_VALID_UNTIL (when
the lock ends if it is not renewed, as of the start, in milliseconds since 1970) and
LOCKNODE_HELD=1.

With --json each line on standard error is an object with \"event\" (waiting, acquired, started,
renewed, lost, killed, not_killed, exited, released, kept, failed) and \"name\". What the command
itself writes to standard error is between these lines. Lines that nobody reads are dropped.

Examples:
  export LOCKNODE_NODES=10.0.0.5:6379,10.0.0.6:6379,10.0.0.7:6379
  locknode run nightly-report -- /usr/local/bin/report --all
  locknode run --ttl 30s --renew --max-hold 2h backup -- backup.sh
  locknode run --wait 5m deploy -- sh -c 'make build && make install'
  locknode run --ttl 60s --at-least 50s minutely -- job     in the crontab of every machine

Exit codes: that of the command if it ran while the lock was valid, 128+N if it died of signal N;
75 another client holds the lock (or the code of -E; -E 1 is what flock does); 79 the lock was lost
while the command ran (or the code of --lost-exit-code); 69 too few nodes took part to decide;
126 the command cannot be executed, 127 it was not found; 64 wrong usage, 70 internal error.";
