"""The life of a lock, told through any Python library on all nodes.

A library's file gives `tell` a way to connect; the story acquires, contends, extends, releases and
expires, and looks at every node itself, over its own sockets, after each step. It knows nothing of
the library's own return values beyond "got it" and "did not".
"""

import os
import socket
import time

RESOURCE = "interop:resource"
# Whether one of the nodes is down or in its quarantine, and so not looked at; then what takes time is left out.
IS_ONE_AWAY = "INTEROP_AWAY" in os.environ
LONG_TTL = 30_000
# Long enough that five writes on a busy machine fit in, short enough to wait for.
SHORT_TTL = 800
# How long the nodes that a library does not wait for may take to follow.
SETTLE_SECONDS = 5
# How long a client tries for a lock that expires meanwhile.
PATIENCE_SECONDS = 20
POLL_SECONDS = 0.005


def node_addresses(variable="INTEROP_NODES"):
    """The (host, port) of every node."""
    pairs = (address.rsplit(":", 1) for address in os.environ[variable].split(","))
    return [(host, int(port)) for host, port in pairs]


class Node:
    """A node seen over a bare socket."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=5)
        self.stream = self.socket.makefile("rb")

    def ask(self, *words):
        """Sends one command and returns its reply; an error reply is raised."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        frame = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self.socket.sendall(b"*%d\r\n%b" % (len(words), frame))
        line = self.stream.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        raise RuntimeError(f"{words}: {line}")


def eventually(what, condition):
    """Polls until the condition holds on every node; fails the story when it does not."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(POLL_SECONDS)


class Stage:
    """The nodes and the one key that the story is about."""

    def __init__(self, key):
        self.key = key
        self.nodes = [Node(address) for address in node_addresses("INTEROP_SERVING")]

    def tokens(self):
        return [node.ask("GET", self.key) for node in self.nodes]

    def token(self, step):
        """The token that every node holds, once they agree."""
        eventually(f"{step}: not one token on all nodes", lambda: self.majority(len(self.nodes)))
        return self.majority(len(self.nodes))

    def majority(self, size=0):
        """The token that a majority, or at least `size` nodes, hold; None when there is none."""
        tokens = self.tokens()
        most = max(tokens, key=tokens.count)
        return most if tokens.count(most) >= max(size, len(tokens) // 2 + 1) else None

    def errors(self):
        """How many error replies each node has sent."""
        stats = [node.ask("INFO", "stats").decode() for node in self.nodes]
        return [stat.split("total_error_replies:")[1].split()[0] for stat in stats]

    def ttls(self):
        return [node.ask("PTTL", self.key) for node in self.nodes]

    def everywhere(self, *words):
        for node in self.nodes:
            node.ask(*words)


def tell(connect, key=RESOURCE, lost=(), refuses_by_error=False):
    """Tells the story and returns the names of its steps.

    `connect()` makes a client with `acquire(resource, ttl_ms)` (one attempt; a handle or None),
    `release(handle)` and, where the library can, `extend(handle, ttl_ms)`. `key` is what the
    resource is called on the wire, `lost` the exceptions that mean "you do not hold this". Scripts that
    answer with an error when the lock is held say so by `refuses_by_error`: of others, a node that answers
    with one has not refused but failed.
    """
    stage = Stage(key)
    first, second = connect(), connect()
    steps = ["acquire", "contend"]

    handle = first.acquire(RESOURCE, LONG_TTL)
    assert handle, "a free resource was refused"
    token = stage.token("acquire")
    assert all(0 < ttl <= LONG_TTL for ttl in stage.ttls()), stage.ttls()
    assert not second.acquire(RESOURCE, LONG_TTL), "two holders at once"
    # Once more, when the client has asked all that it asks a node first and some nodes do not know.
    errors = stage.errors()
    assert not second.acquire(RESOURCE, LONG_TTL), "two holders at the second try"
    assert refuses_by_error or stage.errors() == errors, "the nodes refused by an error"
    assert stage.token("contend") == token, "the second client changed the token"

    if hasattr(first, "extend"):
        steps.append("extend")
        first.extend(handle, 2 * LONG_TTL)
        eventually("not extended", lambda: all(ttl > LONG_TTL for ttl in stage.ttls()))
        assert stage.token("extend") == token

    steps += ["script flush", "release", "acquire again"]
    stage.everywhere("SCRIPT", "FLUSH")
    first.release(handle)
    eventually("not released", lambda: not any(stage.tokens()))
    handle = second.acquire(RESOURCE, LONG_TTL)
    assert handle, "a released resource was refused"
    stage.token("acquire again")
    second.release(handle)
    eventually("not released again", lambda: not any(stage.tokens()))

    if IS_ONE_AWAY:
        return ", ".join(steps)

    steps += ["expire", "stale release"]
    started = time.monotonic()
    stale = first.acquire(RESOURCE, SHORT_TTL)
    assert stale, "a free resource was refused"
    handle = None
    while not (handle := second.acquire(RESOURCE, LONG_TTL)):
        assert time.monotonic() < started + PATIENCE_SECONDS, "the lock never expired"
        time.sleep(POLL_SECONDS)
    assert time.monotonic() - started >= SHORT_TTL / 1000, "the lock expired too early"
    # Nodes may expire the old lock a little after the majority that the new one was won on.
    token = stage.majority()
    assert token, "expire: no majority holds the new lock"
    refuses(lambda: first.release(stale), lost)
    if hasattr(first, "extend"):
        steps.append("stale extend")
        assert not refuses(lambda: first.extend(stale, LONG_TTL), lost), "extended a lost lock"
    assert stage.majority() == token, "a client without the lock changed it"
    second.release(handle)
    eventually("not released at the end", lambda: not any(stage.tokens()))
    return ", ".join(steps)


def refuses(action, lost):
    """Runs what a client without the lock tries; its own way to say no counts as False."""
    try:
        return action()
    except lost:
        return False
