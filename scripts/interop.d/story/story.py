"""The life of a lock, told through any library on all nodes.

usage: story.py ADAPTER COMMAND...   ADAPTER is the adapter's file, COMMAND starts it

The story acquires, contends, extends, releases and expires, and looks at every node itself, over its own
sockets, after each step. What it asks of the library goes by lines to an adapter, a program in the library's
language. Two adapters run at a time; each is a client that holds at most one lock.

An adapter is started with the name of a variant, connects, writes `ready TITLE` to its standard output, with
versions in the title, and then replies with one line to each line that it reads:

  acquire KEY TTL TOKEN  tries once to acquire KEY for TTL milliseconds: `yes` or `no`
  wait KEY TTL           waits until the lock is acquired: `yes`
  reenter                acquires the lock that it holds once more: `yes`; two releases are due then
  watch KEY TTL          acquires, and renews by itself until it releases: `yes` or `no`
  extend TTL             `yes`, or `no` when the lock is not held
  query                  what the library says about the lock: the milliseconds left, or `yes` or `no`
  release                `yes`, `no` when the lock is not held, or `done` when the library says nothing
  forge KEY TOKEN        takes TOKEN for the lock's, without asking the nodes: `done`
  login [PASSWORD]       connects to INTEROP_AUTH_NODE and sets `interop:login` to `in` in database 3: `yes`
  NAME                   a check of its own: `yes`

`error TEXT` says that something else happened. A TOKEN is in hexadecimal; a library that chooses its own ignores
it. An adapter that takes the TOKEN drives each node by hand: to acquire, extend and release it replies with the
number of nodes that did so, and the story counts the votes; to query it replies with the milliseconds of the node
with the fewest. At the end of its input an adapter closes its connections and ends with code 0.

Comments at the head of the adapter's file say the rest:

  lacks: NAME... (WHY)   what the library cannot do, and the story leaves out: extend, query, token (it chooses its
                         own; then there is no forge), refusal (its nodes refuse by an error reply), flush (it does
                         not load its scripts again), ttl (its key has no TTL, it writes a time into the value), expiry
                         (its lock does not end by itself), ownership (it releases what it does not hold), or
                         agreement (what holds its lock is another on each node)
  has: NAME...           what not every library can do: wait, reenter, watchdog
  nodes: one             it locks on one node only
  holds: KIND            what its lock is: string (without this line), counter, list (of holders, in MessagePack), hash,
                         zset, or channel
  each: VARIANT...       the variants to tell the story with; without this line there is one, which has no name
  prefix: TEXT           what the library puts before the name of a key
  key: TEXT              the whole key, where it has not the name in it
  also: NAME...          login and the checks of its own; they are left out while a node is away

INTEROP_AWAY says that another story is told: `down` and `quarantine` that one node is away, and so not looked at;
`killed` that the last node is killed while the lock is held, and comes back with its locks.

The result goes to the file INTEROP_RESULT as JSON: the adapter's title, what it lacks and has, the steps that it did
with each variant, and the one at which it failed, if it did.
"""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

RESOURCE = "interop:resource"
AWAY = os.environ.get("INTEROP_AWAY", "")
# Whether one of the nodes is down or in its quarantine, and so not looked at; then what takes time is left out.
IS_ONE_AWAY = AWAY in ("down", "quarantine")
# Some libraries add a millisecond.
LONG_TTL = 30_000
# Long enough that five writes on a busy machine fit in, short enough to wait for.
SHORT_TTL = 800
# Redis counts whole milliseconds, so that a lock may end up to one early.
CLOCK_STEP = 0 if os.environ["INTEROP_SERVER"] == "locknode" else 1
# How long the nodes that a library does not wait for may take to follow.
SETTLE_SECONDS = 5
# How long a client tries for a lock that expires meanwhile.
PATIENCE_SECONDS = 20
POLL_SECONDS = 0.005
# How long an adapter may take to start, to reply and to end, on a busy machine too. Ten seconds pass while ioredis
# asks a node that is down, and five until a Redis that loads replies.
ADAPTER_SECONDS = 30
# A reply is a word, or an error with a text.
LINE_BYTES = 65_536
# How much of a line a message shows.
SHOWN = 200
# Longer than a request takes, and short enough to wait for.
PAUSE_SECONDS = 0.3
# A lock that is renewed lives longer than this; libraries that count whole seconds need two.
WATCH_TTL = 2_000
# A story that fails while the machine, or all that runs here, stood still for so long says nothing, and is told again,
# this often in all.
STILL_SECONDS = 0.5
TRIES = 3
# How often a request is made again that failed because the connection to the killed node is gone.
RETRIES = 20
REPLIES = {"yes": True, "no": False, "done": None}
CAPABILITIES = {"extend", "query", "token", "refusal", "flush", "ttl", "expiry", "ownership", "agreement"}
EXTRAS = {"wait", "reenter", "watchdog"}
# How what holds a lock is read. Scores and counts change as a lock is extended, names do not.
READS = {
    "string": ["GET", "{}"],
    "counter": ["GET", "{}"],
    "list": ["GET", "{}"],
    "hash": ["HKEYS", "{}"],
    "zset": ["ZRANGE", "{}", 0, -1],
    "channel": ["PUBSUB", "NUMSUB", "{}"],
}
# What is read when nobody holds a lock.
FREE = (None, b"0", b"\x90", ())


def quorum():
    return len(os.environ["INTEROP_NODES"].split(",")) // 2 + 1


def node_addresses(variable):
    """The (host, port) of every node."""
    pairs = (address.rsplit(":", 1) for address in os.environ[variable].split(","))
    return [(host, int(port)) for host, port in pairs]


class Node:
    """A node seen over a bare socket."""

    def __init__(self, address):
        self.address = address
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(self.address, timeout=5)
        self.stream = self.socket.makefile("rb")

    def ask(self, *words):
        """Sends one command and returns its reply; an error reply is raised."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        frame = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self.socket.sendall(b"*%d\r\n%b" % (len(words), frame))
        return self.reply(words)

    def reply(self, words):
        line = self.stream.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"*":
            return tuple(self.reply(words) for _ in range(int(rest)))
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        raise RuntimeError(f"{words}: {line}")

    def restart(self):
        """Kills the server, which its keeper starts again, and waits until it serves."""
        facts = self.ask("INFO", "server").decode()
        os.kill(int(re.search(r"process_id:(\d+)", facts)[1]), signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.connect()
                return self.ask("PING")
            except (OSError, RuntimeError):
                assert time.monotonic() < deadline, "the killed node did not come back"
                time.sleep(POLL_SECONDS)


def eventually(what, condition):
    """Polls until the condition holds on every node; fails the story when it does not."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(POLL_SECONDS)


class Stage:
    """The nodes that serve and the one key that the story is about."""

    def __init__(self, key, kind, lacks):
        self.lacks = lacks
        self.key = key
        self.read = [str(word).format(key) for word in READS[kind]]
        self.nodes = [Node(address) for address in node_addresses("INTEROP_SERVING")]

    def everywhere(self, *words):
        return [node.ask(*words) for node in self.nodes]

    def held(self):
        """What holds the lock on each node, None where it is free."""
        found = self.everywhere(*self.read)
        if self.read[0] == "PUBSUB":
            found = [str(count).encode() for _, count in found]
        return [None if value in FREE else value for value in found]

    def token(self, step):
        """The token that every node holds, once they agree."""
        eventually(f"{step}: not one token on all nodes", lambda: self.majority(len(self.nodes)))
        return self.majority(len(self.nodes))

    def majority(self, size=0):
        """The token that a majority, or at least `size` nodes, hold; None when there is no such token."""
        tokens = self.held()
        if "agreement" in self.lacks:
            tokens = [tuple(tokens) if token else None for token in tokens]
        most = max(tokens, key=tokens.count)
        return most if tokens.count(most) >= max(size, len(tokens) // 2 + 1) else None

    def released(self, step):
        eventually(f"{step}: not released", lambda: self.held() == [None] * len(self.nodes))

    def errors(self):
        """How many error replies each node has sent."""
        stats = [stat.decode() for stat in self.everywhere("INFO", "stats")]
        return [stat.split("total_error_replies:")[1].split()[0] for stat in stats]

    def ttls(self):
        return self.everywhere("PTTL", self.key)


class AdapterFailure(Exception):
    """An adapter that ended, wrote nonsense or nothing, or reported an error."""


class Adapter:
    """A client of the library, in a process of its own, and the lock that it holds."""

    def __init__(self, command, lacks):
        self.retries = 0
        self.command = " ".join(os.path.basename(word) for word in command)
        self.lacks = lacks
        # What a reply about votes has to be: a word, or a number of nodes.
        self.votes = bool if "token" in lacks else int
        self.token = b""
        self.unread = b""
        self.process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def fail(self, what):
        raise AdapterFailure(f"the adapter `{self.command}` {what}")

    def ready(self):
        """Waits until the adapter has connected and returns its title."""
        line = self.line("its start")
        if not re.match("ready .", line):
            self.fail(f"wrote '{line[:SHOWN]}' in place of 'ready TITLE'")
        return line.partition(" ")[2]

    def line(self, cause):
        """The next line that the adapter writes."""
        deadline = time.monotonic() + ADAPTER_SECONDS
        while b"\n" not in self.unread:
            left = max(0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                self.fail(f"wrote no line within {ADAPTER_SECONDS} s after {cause}")
            received = self.process.stdout.read(LINE_BYTES)
            if not received:
                self.fail(f"closed its output after {cause}, and {self.end()}")
            self.unread += received
            if len(self.unread) > LINE_BYTES:
                self.fail(f"wrote more than {LINE_BYTES} bytes after {cause}")
        line, _, self.unread = self.unread.partition(b"\n")
        if self.unread:
            self.fail(f"wrote more than one line after {cause}: {line[:SHOWN]}, {self.unread[:SHOWN]}")
        return line.decode(errors="backslashreplace")

    def end(self):
        """How the process ended, in words."""
        try:
            return f"ended with code {self.process.wait(ADAPTER_SECONDS)}"
        except subprocess.TimeoutExpired:
            return f"did not end within {ADAPTER_SECONDS} s"

    def ask(self, *words):
        """Sends a request and returns the reply: True, False, None for `done`, a number, or an error's text."""
        reply = self.finish(self.begin(*words))
        while isinstance(reply, str) and self.retries:
            self.retries -= 1
            time.sleep(PAUSE_SECONDS)
            # By hand some nodes may have granted before the error, and would refuse their own holder now.
            if words[0] == "acquire" and self.votes is int:
                self.finish(self.begin("release"))
            reply = self.finish(self.begin(*words))
        return reply

    def begin(self, *words):
        """Sends a request, and returns what to call it."""
        words = [str(word) for word in words]
        # The fourth is a token, which is long.
        request = f"`{' '.join(words[:3])}`"
        try:
            self.process.stdin.write(f"{' '.join(words)}\n".encode())
        except BrokenPipeError:
            self.fail(f"does not read {request}, and {self.end()}")
        return request

    def is_silent(self, seconds):
        """Whether no reply comes for so long."""
        return not self.unread and not select.select([self.process.stdout], [], [], seconds)[0]

    def finish(self, request):
        line = self.line(request)
        if line in REPLIES:
            return REPLIES[line]
        if re.fullmatch(r"\d{1,18}", line):
            return int(line)
        if not line.startswith("error "):
            self.fail(f"replied '{line[:SHOWN]}' to {request}")
        return line

    def expect(self, kinds, *words):
        """Asks what has to be replied to by one of these kinds of value."""
        reply = self.ask(*words)
        if type(reply) not in kinds:
            self.fail(f"replied '{reply}' to `{words[0]}`")
        return reply

    def acquire(self, ttl):
        """Tries once, and counts the votes where the adapter drives the nodes by hand."""
        # Every byte that a text protocol could stumble over.
        self.token = bytes(range(256)) + b"\r\n$-1\r\n" + uuid.uuid4().bytes
        granted = self.expect([self.votes], "acquire", RESOURCE, ttl, self.token.hex())
        if self.votes is bool or granted >= quorum():
            return bool(granted)
        released = self.release()
        assert released <= granted, f"acquired on {granted} nodes, released on {released}"
        return False

    def extend(self, ttl):
        return self.expect([self.votes], "extend", ttl)

    def release(self):
        return self.expect([self.votes, type(None)], "release")

    def forge(self, token):
        self.expect([type(None)], "forge", RESOURCE, token.hex())

    def shows(self, above, most):
        """Checks that the library itself says that the lock is held, and for how long."""
        if "query" not in self.lacks:
            left = self.expect([bool, int], "query")
            assert left is True or above < left <= most, f"query: not {above} < {left} <= {most}"

    def close(self):
        """Ends the input, upon which the adapter has to end by itself."""
        self.process.stdin.close()
        end = self.end()
        if end != "ended with code 0":
            self.fail(f"{end} after its input")
        if rest := self.process.stdout.read():
            self.fail(f"wrote after its last reply: {rest[:SHOWN]}")


def tell(first, second, start, stage, lacks, has, steps):
    """Tells the story, and adds the name of each step before it is done; `start` starts one more client."""
    steps.append("acquire")
    # What is replied when all nodes have done it: a word, or their number; some libraries say nothing of a release.
    done = [True] if "token" in lacks else [len(stage.nodes)]
    released = [None, *done]

    assert first.acquire(LONG_TTL), "a free resource was refused"
    token = stage.token("acquire")
    assert lacks & {"ttl", "expiry"} or all(0 < ttl <= LONG_TTL + 1 for ttl in stage.ttls()), stage.ttls()
    first.shows(0, LONG_TTL)
    steps.append("contend")
    assert not second.acquire(LONG_TTL), "two holders at once"
    # Once more, when the client has asked all that it asks a node first and some nodes do not know.
    errors = stage.errors()
    assert not second.acquire(LONG_TTL), "two holders at the second try"
    # A node that answers with an error has not refused but failed.
    assert "refusal" in lacks or stage.errors() == errors, "the nodes refused by an error"
    assert stage.token("contend") == token, "the second client changed the token"

    if "extend" not in lacks:
        steps.append("extend")
        assert first.extend(2 * LONG_TTL) in done, "not extended"
        eventually("not extended", lambda: all(ttl > LONG_TTL for ttl in stage.ttls()))
        assert stage.token("extend") == token, "another token after the extension"
        first.shows(LONG_TTL, 2 * LONG_TTL)
    if "token" not in lacks:
        steps += ["binary token", "foreign release"]
        assert token == first.token, f"not the token that was sent: {token}"
        second.forge(b"stranger")
        assert not second.release(), "a stranger released"
        if "extend" not in lacks:
            steps.append("foreign extend")
            assert not second.extend(LONG_TTL), "a stranger extended"
            assert all(ttl > LONG_TTL for ttl in stage.ttls()), "a stranger changed the TTL"
        assert stage.token("foreign release") == token, "a stranger changed the token"

    if "flush" not in lacks:
        steps.append("script flush")
        stage.everywhere("SCRIPT", "FLUSH")
    steps.append("release")
    assert first.release() in released, "not released"
    stage.released("release")
    if "query" not in lacks:
        steps.append("query")
        assert not first.expect([bool, int], "query"), "query: held after the release"
    steps.append("acquire again")
    assert second.acquire(LONG_TTL), "a released resource was refused"
    stage.token("acquire again")
    second.shows(0, LONG_TTL)
    assert second.release() in released, "not released again"
    stage.released("second release")
    if IS_ONE_AWAY:
        return

    if "wait" in has:
        steps.append("wait")
        assert first.acquire(LONG_TTL), "a free resource was refused"
        request = second.begin("wait", RESOURCE, LONG_TTL)
        assert second.is_silent(PAUSE_SECONDS), "did not wait"
        assert first.release() in released, "not released"
        assert second.finish(request) is True, "waited for nothing"
        assert stage.majority(), "wait: no majority holds the lock"
        assert second.release() in released, "not released after the wait"
        stage.released("wait")
    if "reenter" in has:
        steps.append("reenter")
        assert first.acquire(LONG_TTL), "a free resource was refused"
        assert first.expect([bool], "reenter"), "refused its own holder"
        assert first.release() in released, "not released once"
        assert stage.token("reenter"), "free after one of two releases"
        assert not second.acquire(LONG_TTL), "two holders after one of two releases"
        assert first.release() in released, "not released twice"
        stage.released("reenter")
    if "watchdog" in has:
        steps.append("watchdog")
        until = time.monotonic() + 1.6 * WATCH_TTL / 1000
        assert first.expect([bool], "watch", RESOURCE, WATCH_TTL), "a free resource was refused"
        while time.monotonic() < until:
            assert not second.acquire(LONG_TTL), "not renewed"
            time.sleep(PAUSE_SECONDS)
        assert first.release() in released, "not released"
        stage.released("watchdog")
    if "watchdog" in has and "wait" in has:
        steps.append("orphan")
        owner = start()
        owner.ready()
        started = time.monotonic()
        assert owner.expect([bool], "watch", RESOURCE, WATCH_TTL), "a free resource was refused"
        request = second.begin("wait", RESOURCE, WATCH_TTL)
        owner.process.kill()
        # Nobody tells who waits that the holder is gone, and some look only when their own TTL is over.
        assert second.finish(request) is True, "the lock of a process that died was never acquired"
        assert time.monotonic() - started >= (WATCH_TTL - CLOCK_STEP) / 1000, "the lock expired too early"
        assert second.release() in released, "not released after the wait"
        stage.released("orphan")
    if "expiry" in lacks:
        return

    steps.append("expire")
    started = time.monotonic()
    assert first.acquire(SHORT_TTL), "a free resource was refused"
    first.shows(0, SHORT_TTL)
    while not second.acquire(LONG_TTL):
        assert time.monotonic() < started + PATIENCE_SECONDS, "the lock never expired"
        time.sleep(POLL_SECONDS)
    assert time.monotonic() - started >= (SHORT_TTL - CLOCK_STEP) / 1000, "the lock expired too early"
    # Nodes may expire the old lock a little after the majority that the new one was won on. By hand nothing may be
    # released then; a library may count a minority as it likes.
    eventually("the lock never expired on all nodes", lambda: not any(0 <= ttl <= SHORT_TTL for ttl in stage.ttls()))
    token = stage.majority()
    assert token, "expire: no majority holds the new lock"
    if "ownership" not in lacks:
        steps.append("stale release")
        assert not first.release(), "released a lost lock"
    if "extend" not in lacks:
        steps.append("stale extend")
        assert not first.extend(LONG_TTL), "extended a lost lock"
    assert stage.majority() == token, "a client without the lock changed it"
    # By hand the query is of all nodes, and a majority may hold the lock.
    if "token" in lacks:
        second.shows(0, LONG_TTL)
    assert second.release() in [*released, *range(quorum(), len(stage.nodes))], "not released at the end"
    stage.released("last release")


def tell_killed(first, second, stage, lacks, steps):
    """A node is killed and comes back with its locks: nobody else gets the lock, and its holder can release it."""
    steps.append("acquire")
    assert first.acquire(LONG_TTL), "a free resource was refused"
    token = stage.token("acquire")
    steps.append("killed")
    stage.nodes[-1].restart()
    assert stage.token("killed") == token, "another token after the restart"
    # A driver notices at its next request that its connection is gone.
    first.retries = second.retries = RETRIES
    assert not second.acquire(LONG_TTL), "two holders after the restart"
    assert stage.token("contend") == token, "the second client changed the token"
    if "extend" not in lacks:
        steps.append("extend")
        assert first.extend(2 * LONG_TTL) is not False, "not extended after the restart"
        assert stage.token("extend") == token, "another token after the extension"
    steps.append("release")
    assert first.release() is not False, "not released after the restart"
    stage.released("release")
    steps.append("acquire again")
    assert second.acquire(LONG_TTL), "a released resource was refused"
    assert second.release() is not False, "not released again"
    stage.released("second release")


def log_in(adapter):
    """Nothing without the password; with it, what is written is in the database that was chosen."""
    for password in ((), ("wrong",)):
        reply = adapter.ask("login", *password)
        # Some libraries have a text of their own, and some go on without a password.
        assert re.match("error .*(NOAUTH|WRONGPASS|[Aa]uthentication (failed|required))", str(reply)), f"login{password}: {reply}"
    password = os.environ["INTEROP_PASSWORD"]
    reply = adapter.ask("login", password)
    assert reply is True, f"not let in: {reply}"
    node = Node(node_addresses("INTEROP_AUTH_NODE")[0])
    node.ask("AUTH", password)
    assert node.ask("GET", "interop:login") is None, "written to another database"
    node.ask("SELECT", 3)
    assert node.ask("GET", "interop:login") == b"in", "not written"
    # The next variant has to write it anew.
    node.ask("DEL", "interop:login")


class Stillness(threading.Thread):
    """Notes for how long this process did not run at most: then the locks of a story may have expired before it
    looked."""

    def __init__(self):
        super().__init__(daemon=True)
        self.longest = 0

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(STILL_SECONDS / 10)
            last, before = time.monotonic(), last
            self.longest = max(self.longest, last - before)


def check_also(adapter, name):
    """Runs what only this adapter can do."""
    if name == "login":
        log_in(adapter)
    else:
        reply = adapter.ask(name)
        assert reply is True, f"{name}: {reply}"


def header(file):
    """What the comments at the head of the adapter's file say to the story, a list of words for each name."""
    names = ["lacks", "has", "each", "nodes", "holds", "prefix", "key", "also"]
    with open(file, encoding="utf-8") as adapter:
        found = dict(re.findall(rf"^[^a-z\n]*({'|'.join(names)}): ([^(\n]*)", adapter.read(), re.M))
    said = {name: found.get(name, "").split() for name in names}
    unknown = set(said["lacks"]) - CAPABILITIES | set(said["has"]) - EXTRAS
    assert not unknown, f"{file} says what the story does not know: {unknown}"
    return said


def run(command, said, result, steps):
    """Tells the story with one variant; leaves the adapter's title in the result and adds the names of the steps."""
    print("--", *command, flush=True)
    key = "".join(said["key"] or [*said["prefix"], RESOURCE])
    lacks = set(said["lacks"])
    stage = Stage(key, "".join(said["holds"]) or "string", lacks)
    adapters = []

    def start():
        adapters.append(Adapter(command, lacks))
        return adapters[-1]

    try:
        first, second = start(), start()
        result["title"] = first.ready()
        second.ready()
        if AWAY == "killed":
            tell_killed(first, second, stage, lacks, steps)
        else:
            tell(first, second, start, stage, lacks, said["has"], steps)
        if not AWAY:
            for name in said["also"]:
                steps.append(name)
                check_also(first, name)
        first.close()
        second.close()
    finally:
        for adapter in adapters:
            adapter.process.kill()
            adapter.process.wait()


def main(file, *command):
    said = header(file)
    if said["nodes"] == ["one"]:
        for variable in ("INTEROP_NODES", "INTEROP_SERVING"):
            os.environ[variable] = os.environ[variable].split(",")[0]
    # CI has the time for one of them.
    variants = (said["each"] or [""])[: 1 if "INTEROP_FAST" in os.environ else None]
    result = {"lacks": said["lacks"], "has": said["has"], "steps": {}}
    still = Stillness()
    still.start()
    try:
        for variant in variants:
            for tries_left in reversed(range(TRIES)):
                steps = result["steps"][variant] = []
                still.longest = 0
                try:
                    run([*command, *variant.split()], said, result, steps)
                    break
                except (AdapterFailure, AssertionError, OSError, RuntimeError) as failure:
                    if still.longest < STILL_SECONDS or not tries_left:
                        raise
                    print(f"-- once more, for everything stood still for {still.longest:.1f} s: {failure}", flush=True)
                    for address in node_addresses("INTEROP_SERVING"):
                        Node(address).ask("FLUSHALL")
    except (AdapterFailure, AssertionError, OSError, RuntimeError) as failure:
        result["failed"] = f"{steps[-1] if steps else 'start'}: {failure}"
        sys.exit(f"story: {variant} failed at {result['failed']}")
    finally:
        if path := os.environ.get("INTEROP_RESULT"):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(result, file)
    variants = " and ".join(filter(None, variants))
    lacks = f"; lacks {', '.join(said['lacks'])}" if said["lacks"] else ""
    print(f"{result['title']} ({variants}{': ' if variants else ''}{', '.join(steps)}{lacks})")


main(*sys.argv[1:])
