# needs: pip redis==8.1.0
"""Transactions as redis-py sends them: pipelines, and a lock that is kept by WATCH, GET, MULTI and EXEC.

redis-py's Lock worked so before it had scripts; suo, mlanett's redis-lock, redis-plus-plus and StackExchange.Redis
still do.
"""

import importlib.metadata
import os
import threading
import time

import redis


class WatchLock:
    """A lock whose holder looks at the key before it changes it."""

    def __init__(self, client, key, token, pause=0.0):
        self.client, self.key, self.token, self.pause = client, key, token, pause

    def acquire(self, ttl_ms):
        return self.change(None, lambda pipe: pipe.set(self.key, self.token, px=ttl_ms))

    def extend(self, ttl_ms):
        return self.change(self.token, lambda pipe: pipe.pexpire(self.key, ttl_ms))

    def release(self):
        return self.change(self.token, lambda pipe: pipe.delete(self.key))

    def change(self, holder, queue):
        with self.client.pipeline() as pipe:
            pipe.watch(self.key)
            if pipe.get(self.key) != holder:
                return False
            time.sleep(self.pause)
            pipe.multi()
            queue(pipe)
            try:
                return bool(pipe.execute()[0])
            except redis.WatchError:
                return False


def pipelines(client):
    pipe = client.pipeline().set("tx:a", "1", nx=True, px=30_000).set("tx:a", "2", nx=True, px=30_000)
    assert pipe.get("tx:a").pttl("tx:b").execute() == [True, None, b"1", -2]
    pipe = client.pipeline().set("tx:b", "x", px=30_000).incr("tx:b").get("tx:b")
    replies = pipe.execute(raise_on_error=False)
    assert replies[0] and isinstance(replies[1], redis.ResponseError) and replies[2] == b"x"
    # What is refused when it is queued is raised, and nothing is done.
    pipe = client.pipeline().set("tx:c", "x", px=30_000)
    pipe.execute_command("NOSUCH")
    try:
        pipe.execute()
        raise AssertionError("executed")
    except redis.ResponseError as error:
        assert "unknown command" in str(error), error
    assert client.get("tx:c") is None
    assert client.pipeline().delete("tx:a", "tx:b").execute() == [2]


def story(client):
    mine, other = WatchLock(client, "tx:lock", b"mine"), WatchLock(client, "tx:lock", b"other")
    assert mine.acquire(30_000) and not other.acquire(30_000)
    assert mine.extend(20_000) and 10_000 < client.pttl("tx:lock") <= 20_000
    assert not other.extend(20_000) and not other.release()
    assert mine.release() and other.acquire(50)
    # Its TTL ends between the look and the change; first nobody takes the key, then somebody does.
    other.pause = 0.1
    assert not other.release()
    assert other.acquire(30_000)
    late = WatchLock(client, "tx:lock", b"other", pause=0.3)
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(late.release()))
    thread.start()
    time.sleep(0.1)
    assert client.set("tx:lock", "third", px=30_000)
    assert client.set("tx:lock", "fourth", nx=True) is None
    thread.join()
    assert outcome == [False] and client.get("tx:lock") == b"third"
    assert client.delete("tx:lock") == 1


def contention(client):
    """A counter in the hands of four threads, each of which holds the lock while it counts."""
    counts = [0]

    def work(name):
        lock = WatchLock(client, "tx:busy", name)
        for _ in range(25):
            while not lock.acquire(30_000):
                time.sleep(0.0005)
            before = counts[0]
            time.sleep(0.0002)
            counts[0] = before + 1
            assert lock.release()

    threads = [threading.Thread(target=work, args=(b"t%d" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [100], counts


host, port = os.environ["INTEROP_SERVING"].split(",")[0].split(":")
for protocol in (2, 3):
    at = redis.Redis(host=host, port=int(port), protocol=protocol)
    pipelines(at)
    story(at)
    contention(at)
print(f"transactions: redis-py {importlib.metadata.version('redis')}, pipelines and a lock by WATCH, RESP2 and RESP3")
