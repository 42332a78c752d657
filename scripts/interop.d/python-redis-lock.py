# needs: pip python-redis-lock==4.0.1 redis==8.1.0
# nodes: one
# lacks: query token
# has: wait watchdog
# prefix: lock:
# also: reset
"""python-redis-lock: SET NX EX, a release that wakes a waiter by a list, and BLPOP of it."""

import concurrent.futures

import redis
import redis_lock

PACKAGES = ["python-redis-lock", "redis"]


class Client:
    def __init__(self, nodes):
        [(host, port)] = nodes
        self.redis = redis.Redis(host=host, port=port)

    def acquire(self, key, ttl, _token):
        self.lock = redis_lock.Lock(self.redis, key, expire=seconds(ttl))
        return self.lock.acquire(blocking=False)

    def wait(self, key, ttl):
        self.lock = redis_lock.Lock(self.redis, key, expire=seconds(ttl))
        return self.lock.acquire(blocking=True, timeout=seconds(ttl))

    def watch(self, key, ttl):
        self.lock = redis_lock.Lock(self.redis, key, expire=seconds(ttl), auto_renewal=True)
        return self.lock.acquire(blocking=False)

    def extend(self, ttl):
        try:
            self.lock.extend(expire=seconds(ttl))
        except redis_lock.NotAcquired:
            return False
        return True

    def release(self):
        try:
            self.lock.release()
        except redis_lock.NotAcquired:
            return False
        return True

    def reset(self):
        """Locks without a TTL, given back by whoever tidies up, which wakes one that waits by BLPOP."""
        locks = [redis_lock.Lock(self.redis, f"reset-{number}") for number in range(2)]
        assert all(lock.acquire(blocking=False) for lock in locks)
        locks[0].reset()
        assert not locks[0].locked() and locks[1].locked()
        with concurrent.futures.ThreadPoolExecutor() as threads:
            waiting = threads.submit(redis_lock.Lock(self.redis, "reset-1").acquire, timeout=5)
            assert concurrent.futures.wait([waiting], timeout=0.2).not_done
            redis_lock.reset_all(self.redis)
            return waiting.result(timeout=1)


def seconds(ttl):
    """It counts whole seconds."""
    return max(1, ttl // 1000)
