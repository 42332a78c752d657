"""A plain Redlock loop over redis-py, as people write it, and the crash that breaks it on nodes that forget.

    $ locknode lab --faults --restart-guard off     # nodes that forget, as Redis does without persistence
    $ python3 plain_redlock.py                      # in another terminal (pip install redis): two holders, exit code 1

    $ locknode lab --faults                         # nodes that stay out of every lock after a crash
    $ python3 plain_redlock.py                      # one holder, exit code 0

The story: client 1 locks A, B and C; what it sends to D and E is lost. C crashes and comes back. Client 2 locks what it can.
The client below does nothing wrong. What makes it safe is the node.
"""

import secrets
import sys
import time

import redis

TTL_MS = 10_000
RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'


class Redlock:
    """Redlock as the Redis documentation tells it: a random value, SET NX PX on all, a majority in time."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.majority = len(nodes) // 2 + 1

    def lock(self, key, ttl_ms):
        """The value and how long it is valid, in seconds; or None."""
        value, start = secrets.token_hex(20), time.monotonic()
        votes = sum(self.ask(node, key, value, ttl_ms) for node in self.nodes)
        validity = ttl_ms / 1000 - (time.monotonic() - start) - (ttl_ms / 1000 * 0.01 + 0.002)
        if votes >= self.majority and validity > 0:
            return value, validity
        self.unlock(key, value)
        return None

    def ask(self, node, key, value, ttl_ms):
        """Whether the node gives the lock; one that is down or stays out of it does not."""
        try:
            return bool(node.set(key, value, nx=True, px=ttl_ms))
        except redis.RedisError as error:
            print(f"    node {name(node)} does not vote: {error or type(error).__name__}")
            return False

    def unlock(self, key, value):
        """Releases the lock where it is."""
        for node in self.nodes:
            try:
                node.eval(RELEASE, 1, key, value)
            except redis.RedisError:
                pass


def name(node):
    """A letter for the node's place."""
    return node.letter


def connect(addresses):
    """A client of each node. One that does not answer costs a quarter of a second."""
    nodes = []
    for place, address in enumerate(addresses):
        host, port = address.rsplit(":", 1)
        node = redis.Redis(host, int(port), socket_timeout=0.25, socket_connect_timeout=0.25, retry=None)
        node.letter = chr(ord("A") + place)
        nodes.append(node)
    return nodes


def main(addresses):
    """Tells the story and returns the exit code: 1 when two clients held the lock."""
    first, second = Redlock(connect(addresses)), Redlock(connect(addresses))
    # Commands of the lab, which any client can send: see FAULT HELP.
    faults = connect(addresses)

    print("Client 1 asks for the lock; what it sends to D and E is lost:")
    for node in faults[3:]:
        node.execute_command("FAULT", "DROP", "REQUESTS", "1")
    held = first.lock("invoice", TTL_MS)
    if held is None:
        print("Client 1 did not get it, so there is no story. Are the nodes in quarantine, or is the lock held?")
        return 2
    until = time.monotonic() + held[1]
    print(f"    client 1 holds it for {held[1]:.1f} s, with A, B and C.")

    print("C crashes and comes back.")
    faults[2].execute_command("FAULT", "CRASH")
    faults[0].execute_command("FAULT", "RESTART")

    print("Client 2 asks for the lock:")
    stolen = second.lock("invoice", TTL_MS)
    both = stolen is not None and time.monotonic() < until
    if both:
        print(f"    client 2 holds it too, for {stolen[1]:.1f} s.")
        print("TWO CLIENTS HOLD ONE LOCK: node C had forgotten that it gave its vote away.")
    else:
        print("    client 2 does not get it.")
        print("One client holds the lock: node C stays out of it until all that it may have granted has ended.")
    for client, lock in ((first, held), (second, stolen)):
        if lock is not None:
            client.unlock("invoice", lock[0])
    return 1 if both else 0


if __name__ == "__main__":
    nodes = sys.argv[1:] or [f"127.0.0.1:{port}" for port in range(7101, 7106)]
    try:
        sys.exit(main(nodes))
    except redis.RedisError as error:
        print(f"{error}\nThe story needs five nodes that can be broken: start them with `locknode lab --faults`.", file=sys.stderr)
        sys.exit(2)
