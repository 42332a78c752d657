# needs: pip redis==8.1.0
"""Locks that are released by WATCH, GET, MULTI, DEL, as users of Jedis and redis-py write them: what makes EXEC fail.

Each scene runs on a node and, where there is one, on redis-server, and has to end in the same way.
"""

import os
import time

import redis

KEY = "interop:watched"
TTL = 60
LONG_TTL = 30_000


def scene(address, meanwhile):
    """What EXEC replies, and who holds the lock in the end, when something is done between WATCH and EXEC."""
    host, port = address.rsplit(":", 1)
    holder, other = (redis.Redis(host=host, port=int(port), decode_responses=True) for _ in range(2))
    holder.delete(KEY)
    holder.set(KEY, "holder", nx=True, px=TTL if meanwhile in EXPIRING else LONG_TTL)
    with holder.pipeline() as pipe:
        pipe.watch(KEY)
        assert pipe.get(KEY) == "holder"
        meanwhile(other)
        pipe.multi()
        pipe.delete(KEY)
        try:
            replies = pipe.execute()
        except redis.WatchError:
            replies = None
    return replies, other.get(KEY)


def nothing(_):
    """Nobody comes."""


def refused(other):
    """Another client's failed SET NX changes nothing."""
    assert other.set(KEY, "other", nx=True, px=LONG_TTL) is None


def extended(other):
    """Another TTL is a change."""
    assert other.pexpire(KEY, 2 * LONG_TTL)


def expired(other):
    """A key that ends by itself is a change, though nobody touched it."""
    time.sleep(2 * TTL / 1000)


def taken(other):
    """Its end, and another holder."""
    while not other.set(KEY, "other", nx=True, px=LONG_TTL):
        time.sleep(0.005)


EXPIRING = (expired, taken)
EXPECTED = {
    nothing: ([1], None),
    refused: ([1], None),
    extended: (None, "holder"),
    expired: (None, None),
    taken: (None, "other"),
}


def main():
    node = os.environ["INTEROP_NODES"].split(",")[0]
    for meanwhile, expected in EXPECTED.items():
        for address in filter(None, (node, os.environ["INTEROP_REFERENCE"])):
            seen = scene(address, meanwhile)
            assert seen == expected, f"{meanwhile.__name__} on {address}: {seen}, not {expected}"
    print(f"redis-py {redis.__version__} with WATCH ({', '.join(meanwhile.__name__ for meanwhile in EXPECTED)})")


main()
