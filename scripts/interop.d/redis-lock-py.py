# needs: pip redis-lock-py==1.3.0 redis==8.1.0
# nodes: one
# lacks: query token refusal (each wait is a new connection, whose CLIENT MAINT_NOTIFICATIONS is an error)
# has: wait
# each: sync async
"""redis-lock-py: SET NX EX, a release that publishes, and a subscription while it waits."""

import asyncio
import sys

import redis
import redis.asyncio
from redis_lock import RedisLock, asyncio as of_asyncio
from redis_lock.exceptions import ExtendFailedError, LockNotOwnedError

PACKAGES = ["redis-lock-py", "redis"]
IS_ASYNC = sys.argv[2] == "async"
loop = asyncio.new_event_loop()
# Not zero, which the library refuses: the time for the one try.
AT_ONCE = 0.001


def run(outcome):
    return loop.run_until_complete(outcome) if IS_ASYNC else outcome


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.redis = (redis.asyncio if IS_ASYNC else redis).Redis(host=host, port=port)

    def acquire(self, key, ttl, _token, patience=AT_ONCE):
        kind = of_asyncio.RedisLock if IS_ASYNC else RedisLock
        # It counts whole seconds.
        expire = max(1, ttl // 1000)
        self.lock = kind(self.redis, key, blocking_timeout=patience, expire_timeout=expire)
        return run(self.lock.acquire())

    def wait(self, key, ttl):
        return self.acquire(key, ttl, None, ttl // 1000)

    def extend(self, ttl):
        try:
            # It adds to what is left.
            return run(self.lock.extend(ttl // 1000))
        except ExtendFailedError:
            return False

    def release(self):
        try:
            return run(self.lock.release())
        except LockNotOwnedError:
            return False

    def close(self):
        run(self.redis.aclose() if IS_ASYNC else self.redis.close())
